r"""A colony that estimates or chooses: two minimal models (chapter 8). Teaching models, fitted to no data.

Estimation: ant h perceives T_h = M g_h, shared M = q L with L lognormal of mean 1 and variance tau^2, private g_h gamma
with mean 1 and variance 1/k. Choice: T_h = delta + E + e_h, shared E ~ N(0, F), private e_h ~ N(0, W), and a vote for
T_h > 0.
"""

import numpy as np

from nwmha import _check


def assessments(J, K, *, quality, shared, k, rng):
    r"""Perceived qualities of K ants in J environments, ``(J, K, 1)``.

    ``shared`` is tau^2, the relative variance of the environment, ``k`` > 0 the shape of the private gamma noise.
    Then F = q^2 tau^2 and W = q^2 (1 + tau^2) / k. Source: section "Numerical verification" of chapter 8.

    >>> import numpy as np
    >>> assessments(3, 4, quality=1.0, shared=0.05, k=4.0, rng=np.random.default_rng(0)).shape
    (3, 4, 1)
    """
    log_variance = np.log1p(_check.positive("shared", shared))
    size = (_check.at_least("J", J, 1), 1)
    M = _check.positive("quality", quality) * np.exp(rng.normal(-log_variance / 2, log_variance**0.5, size=size))
    return (M * rng.gamma(_check.positive("k", k), 1 / k, size=(size[0], _check.at_least("K", K, 1))))[..., None]


def recruited_moments(H, *, quality, shared, k):
    r"""Mean and mean square of the opinion of a colony whose recruits inherit the recruiter's opinion.

    .. math:: R_H = \frac{\sum T_h^2}{\sum T_h}, \quad \mathrm E R_H = q\,\frac{H(k+1)}{Hk+1}, \quad \mathrm E R_H^2 =
        \frac{q^2(1+\tau^2)}{k^2}\,\frac{Hk(k+1)(k+2)(k+3) + H(H-1)k^2(k+1)^2}{(Hk+2)(Hk+3)}

    Each ant recruits in proportion to its own perceived quality. Parameters as in :func:`assessments`.
    Source: section "Numerical verification" of chapter 8, by moments of the Dirichlet distribution.

    >>> recruited_moments(1, quality=1.0, shared=0.05, k=4.0)        # one ant: unbiased, variance F + W
    (1.0, 1.3125)
    """
    H, k, q = _check.at_least("H", H, 1), _check.positive("k", k), _check.positive("quality", quality)
    squares = H * k * (k + 1) * (k + 2) * (k + 3) + H * (H - 1) * (k * (k + 1)) ** 2
    scale = q**2 * (1 + _check.positive("shared", shared)) / k**2
    return q * H * (k + 1) / (H * k + 1), scale * squares / ((H * k + 2) * (H * k + 3))


def vote_correlation(z, rho):
    r"""Correlation of two votes 1{T > c}, T standard Gaussian with correlation rho, threshold -z.

    .. math:: \frac{\Phi_2(z, z; \rho) - \Phi(z)^2}{\Phi(z)\,(1 - \Phi(z))}

    By Owen's T function; ``rho`` in (-1, 1). At z = 0 it is (2 / pi) arcsin(rho). Source: Ladha (1992) for the use.

    >>> round(float(vote_correlation(0.0, 0.5)), 12)
    0.333333333333
    """
    from scipy.special import ndtr, owens_t

    if not -1 < rho < 1:
        raise ValueError(f"rho must lie in (-1, 1), got {rho!r}")
    yes = ndtr(z)
    both = yes - 2 * owens_t(z, np.sqrt((1 - rho) / (1 + rho)))
    return (both - yes**2) / (yes * (1 - yes))


def mean_rule_accuracy(H, delta, *, shared, private):
    """Probability that the average of H Gaussian opinions with mean delta has the sign of delta > 0; H may be infinite.

    >>> round(float(mean_rule_accuracy(1, 0.3, shared=0.2, private=0.8)), 6)
    0.617911
    """
    from scipy.special import ndtr

    F, W = _check.positive("shared", shared), _check.positive("private", private)
    return ndtr(_check.positive("delta", delta) / np.sqrt(F + W / np.asarray(H, dtype=float)))


def quorum_probability(H, quorum, delta, *, shared, private, nodes=200):
    """Probability that at least ``quorum`` of H voters vote yes, Gauss-Hermite quadrature over the shared noise.

    A voter says yes if its opinion, N(delta, private) given the shared noise N(0, shared), is positive. Majority of an
    odd H: quorum (H + 1) / 2. ``shared`` = 0: independent voters.

    >>> round(float(quorum_probability(1, 1, 0.3, shared=0.2, private=0.8)), 6)
    0.617911
    """
    from scipy.special import ndtr, roots_hermitenorm
    from scipy.stats import binom

    H, W = _check.at_least("H", H, 1), _check.positive("private", private)
    if shared < 0:
        raise ValueError(f"shared must not be negative, got {shared!r}")
    points, weights = roots_hermitenorm(_check.at_least("nodes", nodes, 1))
    yes = ndtr((delta + np.sqrt(shared) * points) / np.sqrt(W))
    return float(weights @ binom.sf(_check.at_least("quorum", quorum, 0) - 1, H, yes) / weights.sum())
