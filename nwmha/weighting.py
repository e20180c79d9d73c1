r"""Ensemble weights: uniform, geometric, Fibonacci, optimal, and when one set beats another (chapter 7).

The error of weights alpha with sum one is ``alpha @ M @ alpha``, M the second moments of the heads' errors. Structured
weights are decreasing: head 1 is meant to be the best head.
"""

import numpy as np

from nwmha import _check


def uniform(H):
    """Equal weights 1 / H.

    >>> uniform(4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    return np.full(_check.at_least("H", H, 1), 1 / H)


def geometric(H, r):
    r"""Geometric weights.

    .. math:: \alpha_h = \frac{(1 - r)\, r^{h-1}}{1 - r^H}

    ``r`` lies in (0, 1]; 1 gives equal weights. Source: Theorem 7.1.

    >>> geometric(3, 0.5) * 7
    array([4., 2., 1.])
    """
    if not 0 < r <= 1:
        raise ValueError(f"r must lie in (0, 1], got {r!r}")
    powers = float(r) ** np.arange(_check.at_least("H", H, 1))
    return powers / powers.sum()


def fibonacci(H):
    r"""Fibonacci weights, the largest first; neighbours have ratios that tend to the golden ratio.

    .. math:: \alpha_h = F_{H+1-h} / (F_{H+2} - 1), \qquad F_1 = F_2 = 1

    The last two weights are equal. The normalisation is the book's reading of the source. Source: Theorem 7.1.

    >>> (fibonacci(5) * 12).round(12)
    array([5., 3., 2., 1., 1.])
    """
    numbers = [1, 1]
    while len(numbers) < _check.at_least("H", H, 1):
        numbers.append(numbers[-1] + numbers[-2])
    weights = np.array(numbers[:H][::-1], dtype=float)
    return weights / weights.sum()


def inverse_variance(variances):
    """Weights in proportion to one over the variance, optimal for uncorrelated unbiased heads.

    >>> inverse_variance(np.array([1.0, 3.0]))
    array([0.75, 0.25])
    """
    variances = _check.array("variances", variances, ("heads",))
    if np.any(variances <= 0):
        raise ValueError("variances must be above 0")
    return (1 / variances) / np.sum(1 / variances)


def inverse_excess(variances, *, floor=1.0):
    """Weights in proportion to one over the variance above a floor that all heads share (orthogonal heads: 1).

    >>> inverse_excess(np.array([2.0, 4.0]))
    array([0.75, 0.25])
    """
    variances = _check.array("variances", variances, ("heads",))
    if np.any(variances <= floor):
        raise ValueError(f"variances must be above the floor {floor!r}")
    return inverse_variance(variances - floor)


def optimal(M):
    r"""The best weights with sum one, of any sign: M^-1 1 / (1' M^-1 1).

    ``M (heads, heads)``, symmetric positive definite. Their error is 1 / (1' M^-1 1). Source: Theorem 7.1, part 1.

    >>> optimal(np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([0.75, 0.25])
    """
    raw = np.linalg.solve(_moments(M), np.ones(len(M)))
    return raw / raw.sum()


def optimal_nonnegative(M):
    """The best weights with sum one and no negative entry, exactly, by non-negative least squares.

    The minimiser of b' M b / 2 - 1' b over b >= 0 is a multiple of them. ``M`` as in :func:`optimal`.

    >>> optimal_nonnegative(np.array([[1.0, 1.2], [1.2, 2.0]]))
    array([1., 0.])
    """
    from scipy.optimize import nnls

    root = np.linalg.cholesky(_moments(M))
    raw, _ = nnls(root.T, np.linalg.solve(root, np.ones(len(M))))
    return raw / raw.sum()


def error(alpha, M):
    """Mean squared error ``alpha @ M @ alpha``; ``M`` may be the diagonal ``(heads,)`` of a diagonal matrix.

    >>> float(error(np.array([0.5, 0.5]), np.array([1.0, 3.0])))
    1.0
    """
    alpha, M = _check.array("alpha", alpha, ("heads",)), _check.array("M", M, (..., len(alpha)))
    return alpha**2 @ M if M.ndim == 1 else alpha @ M @ alpha


def threshold(alpha):
    r"""The ratio g* from which on decreasing weights beat uniform ones for variances V, V g, V g^2, ...

    .. math:: \sum_h \big(\alpha_h^2 - H^{-2}\big)\, (g^*)^{h-1} = 0, \qquad g^* > 1

    ``alpha (heads,)``, decreasing, not all equal, not negative, sum one. Source: Theorem 7.1, part 3.

    >>> round(float(threshold(geometric(2, 0.5))), 12)      # (3 + r) / (1 + 3 r)
    1.4
    """
    from scipy.optimize import brentq

    alpha = _check.array("alpha", alpha, ("heads",))
    if np.any(np.diff(alpha) > 0) or alpha[-1] < 0 or alpha[0] <= alpha[-1] or abs(alpha.sum() - 1) > 1e-9:
        raise ValueError("alpha must decrease, not be constant or negative, and sum to one")
    steps = np.arange(len(alpha)) - (len(alpha) - 1)
    gain = lambda eta: np.sum((alpha**2 - len(alpha) ** -2.0) * np.exp(eta * steps))  # noqa: E731  scaled by g^(1-H)
    high = 1.0
    while gain(high) > 0:
        high *= 2
    return np.exp(brentq(gain, 0, high, xtol=1e-14))


def plug_in_error(best, N, H, *, noise=0.0):
    r"""Expected error of optimal weights that were estimated from N Gaussian validation errors.

    .. math:: \mathrm{MSE}^* + (\mathrm{MSE}^* + \sigma_v^2)\frac{H-1}{N-H}, \qquad N > H

    ``best`` is MSE*, ``noise`` the variance sigma_v^2 of the validation responses; infinite at N = H, and below
    there is no estimate: ``ValueError``. Source: Proposition 7.3.

    >>> plug_in_error(1.0, 24, 8)
    1.4375
    """
    best, H = _check.positive("best", best), _check.at_least("H", H, 2)
    if _check.at_least("N", N, H) == H:
        return float("inf")
    return best + (best + noise) * (H - 1) / (N - H)


def break_even_sample(fixed, best, H, *, noise=0.0):
    """Validation size N* below which fixed weights with error ``fixed`` beat estimated optimal weights.

    >>> round(break_even_sample(2.978, 1.0, 8), 1)
    11.5
    """
    best, fixed = _check.positive("best", best), _check.positive("fixed", fixed)
    if fixed <= best:
        raise ValueError(f"fixed must exceed best, got {fixed!r} and {best!r}")
    return H + (H - 1) * (best + noise) / (fixed - best)


def break_even_order(in_order, uniform_error, random_order):
    """Probability of a right order from which on structured weights beat uniform ones (else the order is random).

    >>> break_even_order(1.0, 2.0, 5.0)
    0.75
    """
    if not in_order < uniform_error < random_order:
        raise ValueError("errors must satisfy in_order < uniform_error < random_order")
    return (random_order - uniform_error) / (random_order - in_order)


def _moments(M):
    M = _check.array("M", M, ("heads", "heads"))
    if M.shape[0] != M.shape[1] or not np.allclose(M, M.T) or np.linalg.eigvalsh(M)[0] <= 0:
        raise ValueError("M must be symmetric and positive definite")
    return M
