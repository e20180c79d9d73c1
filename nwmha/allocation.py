r"""How to split a budget D = H d_k: optimisers, laws, the variance floor, the Gaussian world (chapter 6).

The bound of Theorem 6.1 is U(k) = B k^-r + (S / n) Phi(k) (rho + (1 - rho) k / D), with k = d_k. Sample sizes enter by
their logarithm where they may be astronomically large.
"""

import numpy as np

from nwmha import _check
from nwmha.gaussian import output_square, single_variance


def divisors(D):
    """Divisors of a budget, increasing: the head dimensions that fit.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    D = _check.at_least("D", D, 1)
    small = [k for k in range(1, int(D**0.5) + 1) if D % k == 0]
    return sorted({*small, *(D // k for k in small)})


def power_optimum(log_n, *, q, rho, log_D, r=2.0, log_ratio=0.0):
    r"""Logarithm of the best head dimension for power inflation Phi = k^q (unconstrained).

    .. math:: \rho q k^{q+r} + (1-\rho)(q+1)\, k^{q+r+1} / D = r B n / S

    Parameters: logarithms of n and D, ``log_ratio`` = log(B / S), ``q``, ``r`` > 0, 0 <= rho <= 1. The root
    is found in logarithms. Source: Theorem 6.1 (d).

    >>> round(float(np.exp(power_optimum(np.log(1e6), q=0.5, rho=1.0, log_D=0.0))), 6)      # (4 n)^(2/5)
    437.34483
    """
    from scipy.optimize import brentq

    q, r = _check.positive("q", q), _check.positive("r", r)
    if not 0 <= rho <= 1:
        raise ValueError(f"rho must lie in [0, 1], got {rho!r}")
    terms = [(np.log(rho * q), q + r)] if rho else []
    terms += [(np.log((1 - rho) * (q + 1)) - log_D, q + r + 1)] if rho < 1 else []
    wanted = np.log(r) + log_ratio + log_n
    # Each term alone gives an upper bound of the root; both together are at most twice the larger one.
    high = min((wanted - constant) / power for constant, power in terms)
    return brentq(lambda t: np.logaddexp.reduce([c + e * t for c, e in terms]) - wanted, high - 2, high + 1e-9)


def exponential_optimum(log_n, *, gamma, c=1.0, rho=1.0, r=2.0, log_ratio=0.0):
    r"""Best head dimension for exponential inflation Phi = exp(c k^gamma) and a floor rho > 0, D infinite.

    .. math:: k^* = (y / c)^{1/\gamma}, \quad y = m\,W\big(N^{1/m} / m\big), \quad m = (r + \gamma)/\gamma,
        \quad N = \frac{r B}{S \rho \gamma}\, c^{r/\gamma}\, n

    with Lambert's W, evaluated through Wright's omega function so that log n may be huge. Source: Theorem 6.1 (e).

    >>> round(float(exponential_optimum(np.log(1e6), gamma=1.0)), 4)
    8.1973
    """
    from scipy.special import wrightomega

    gamma, c, rho = (_check.positive(name, v) for name, v in (("gamma", gamma), ("c", c), ("rho", rho)))
    m = (r + gamma) / gamma
    log_N = np.log(r / (rho * gamma)) + log_ratio + r / gamma * np.log(c) + log_n
    return (m * wrightomega(log_N / m - np.log(m)) / c) ** (1 / gamma)


def best_divisor(D, risk):
    """The divisor k of D with the smallest ``risk(k)``.

    >>> best_divisor(12, lambda k: (k - 3.4) ** 2)
    3
    """
    return min(divisors(D), key=risk)


def floor_constant(d):
    r"""Sharp constant of the variance floor: E|w|^2 >= c_d / (n f_max (a h^2)^(d/2)) for positive weights.

    .. math:: c_d = \frac{2(d+2)}{d+4}\Big(\frac{d}{d+4}\Big)^{d/2}\frac{1}{v_d},\qquad
        v_d = \pi^{d/2} / \Gamma(d/2 + 1)

    Attained by Epanechnikov's kernel. Source: Theorem 6.2.

    >>> round(floor_constant(1), 6)
    0.268328
    """
    from math import gamma, pi

    d = _check.at_least("d", d, 1)
    return 2 * (d + 2) / (d + 4) * (d / (d + 4)) ** (d / 2) * gamma(d / 2 + 1) / pi ** (d / 2)


def floor_efficiency(d):
    """The floor over the variance of one Gaussian-kernel head of the same second moment: all that heads can gain.

    >>> [round(floor_efficiency(d), 3) for d in (1, 2, 3, 4, 10)]
    [0.951, 0.889, 0.82, 0.75, 0.392]
    """
    return floor_constant(d) * (4 * np.pi / d) ** (d / 2)


class Participation:
    """R_n(s) = E sum_i w_i^2 for softmax weights of n Gaussian logits of standard deviation s, as a spline in s.

    ``n`` up to 1e100, 0 <= s <= ``limit``. :meth:`mean` averages over s = beta chi_k. Source: Theorem 6.4.

    >>> R = Participation(100, 6.0)
    >>> abs(float(R(1.0)) - float(single_variance(1.0, 100)) / 100) < 1e-8
    True
    """

    def __init__(self, n, limit, points=120):
        from scipy.interpolate import CubicSpline

        self.n, self.limit = _check.at_least("n", n, 2), _check.positive("limit", limit)
        s = np.linspace(0, self.limit, points)
        self._log = CubicSpline(s, np.log(single_variance(s, self.n)))

    def __call__(self, s):
        if np.any(np.asarray(s) > self.limit) or np.any(np.asarray(s) < 0):
            raise ValueError(f"s must lie in [0, {self.limit:g}]")
        return np.exp(self._log(s)) / self.n

    def mean(self, k, beta):
        """E R_n(beta chi_k) for arrays ``k``, ``beta``: trapezoidal sum over the normal quantiles of chi_k."""
        return chi_mean(self, k, beta)


def chi_mean(function, k, beta):
    """E f(beta chi_k), elementwise over arrays ``k`` and ``beta``.

    >>> bool(abs(chi_mean(lambda s: s**2, np.array([3, 50]), 2.0) - [12, 200]).max() < 1e-6)
    True
    """
    from scipy.stats import chi2, norm

    z = np.linspace(-6.5, 6.5, 53)
    weight = norm.pdf(z) * (z[1] - z[0])
    k, beta = np.asarray(k, dtype=float)[..., None], np.asarray(beta, dtype=float)[..., None]
    square = np.where(z < 0, chi2.ppf(norm.cdf(z), k), chi2.isf(norm.sf(z), k))
    return function(beta * np.sqrt(square)) @ weight


def gaussian_gain(k, participation, *, beta, lam, delta=1.0):
    r"""F_n(k), whose maximiser is the best head dimension in the Gaussian world for large budgets.

    .. math:: F_n(k) = k\,\{2\beta\delta (1 - \tilde R_k) - (1 + \lambda)(R_k - 1/n)\}

    Parameters: ``k`` array; ``participation``, a :class:`Participation`; ``beta``, number or array like k; ``lam``
    = sigma^2 / tau^2; ``delta`` = D / p. Source: Theorem 6.4 (b).

    >>> k = np.arange(1, 60)
    >>> int(k[np.argmax(gaussian_gain(k, Participation(100, 7.0), beta=0.5, lam=1.0))])
    20
    """
    k = np.asarray(k, dtype=float)
    beta = np.broadcast_to(np.asarray(beta, dtype=float), k.shape)
    R, R2 = participation.mean(k, beta), participation.mean(k + 2, beta)
    return k * (2 * beta * delta * (1 - R2) - (1 + lam) * (R - 1 / participation.n))


def gaussian_risk(k, participation, *, D, p, beta, lam):
    r"""Exact risk / tau^2 of H = D / k orthogonal softmax heads in the Gaussian world, at every n.

    .. math:: 1 + \frac{1+\lambda}{n} - \frac kD\Big\{2\beta\tfrac Dp(1-\tilde R_k)
        - (1+\lambda)\big(R_k - \tfrac1n\big)\Big\} + \frac{k(\bar A_k - R_k)}{pD}

    Parameters as in :func:`gaussian_gain`; D <= p. Source: Theorem 6.4 (a).

    >>> round(float(gaussian_risk(np.array([4]), Participation(50, 6.0), D=8, p=8, beta=0.5, lam=1.0)[0]), 4)
    0.663
    """
    if p < D:
        raise ValueError(f"D must not exceed p for orthogonal heads, got D = {D} > p = {p}")
    k, n = np.asarray(k, dtype=float), participation.n
    beta = np.broadcast_to(np.asarray(beta, dtype=float), k.shape)
    gain = gaussian_gain(k, participation, beta=beta, lam=lam, delta=D / p)
    A = chi_mean(lambda s: output_square(s, n), k, beta)
    return 1 + (1 + lam) / n - gain / D + k * (A - participation.mean(k, beta)) / (p * D)
