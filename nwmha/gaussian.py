r"""Exact results for Gaussian designs: noise covariance of heads at every n, their limits, the cap (chapters 4 to 6).

The model of Theorem 4.2: design points and queries are independent N(0, I_p); every head has ``W_Q = W_K = W``
with orthonormal columns and the inverse temperature ``beta``. Noise variances and covariances are given in
units of sigma^2 / n, so that uniform attention has the value 1. Limits are limits n -> infinity.
"""

import numpy as np

from nwmha import _check, _laplace
from nwmha.diversity import overlap


def covariance_limit(cosines, *, beta):
    r"""Limit of the noise covariance of two heads, integrated over the query.

    .. math:: S_\infty = \prod_{j=1}^{d_k} \big[(1 - \beta^2 u_j)^2 - \beta^4 u_j\big]^{-1/2}, \qquad u_j = c_j^2

    Parameters: ``cosines (..., d_k)``, the principal cosines of the pair, numpy or torch; ``beta`` with
    2 beta^2 < 1 (at beta = d_k^-1/2: d_k >= 3), else ``ValueError``. Returns ``(...)``. Source: Theorem 4.2.B.

    >>> import numpy as np
    >>> covariance_limit(np.array([[0.0] * 4, [1.0] * 4]), beta=0.5).round(12)
    array([1., 4.])
    """
    tau = _tau(beta)
    cosines = _check.array("cosines", cosines, (..., "d_k"))
    xp = _check.namespace(cosines)
    if bool(xp.any(xp.abs(cosines) > 1 + 1e-9)):
        raise ValueError("cosines must lie in [0, 1]")
    u = cosines**2
    return xp.prod((1 - tau * u) ** 2 - tau**2 * u, axis=-1) ** -0.5


def covariance_limit_matrix(projections, *, beta):
    r"""The limits of :func:`covariance_limit` for all pairs of heads, smooth in the projections.

    .. math:: S_{hh'} = \det\big(I - (2\tau + \tau^2) A + \tau^2 A^2\big)^{-1/2},
        \quad A = W_h^\top W_{h'}W_{h'}^\top W_h, \quad \tau = \beta^2

    A determinant, no singular values: torch can differentiate it everywhere. Parameters: ``projections
    (..., heads, p, d_k)`` with orthonormal columns, else ``ValueError``; 2 beta^2 < 1. Returns
    ``(..., heads, heads)``. Source: Theorems 4.2.B and 5.1.

    >>> import numpy as np
    >>> covariance_limit_matrix(np.stack([np.eye(8)[:, :4], np.eye(8)[:, 4:]]), beta=0.5).round(12)
    array([[4., 1.],
           [1., 4.]])
    """
    tau = _tau(beta)
    W = _check.array("projections", projections, (..., "heads", "p", "d_k"))
    xp = _check.namespace(W)
    eye = xp.eye(W.shape[-1], dtype=W.dtype, device=W.device)
    if bool(xp.any(xp.abs(W.mT @ W - eye) > 1e-5)):
        raise ValueError("projections must have orthonormal columns in every head")
    C = W[..., :, None, :, :].mT @ W[..., None, :, :, :]
    A = C @ C.mT
    return xp.exp(-0.5 * xp.linalg.slogdet(eye - (2 * tau + tau**2) * A + tau**2 * (A @ A))[1])


def variance_limit(d_k, *, beta):
    """Limit of one head's noise variance, (1 - 2 beta^2)^(-d_k / 2): no number of heads reduces it by more.

    Needs 2 beta^2 < 1, else ``ValueError`` (there the variance grows without bound with n). At beta = d_k^-1/2 it
    falls to e as d_k grows. Source: Theorem 4.2.E.

    >>> round(variance_limit(8, beta=8**-0.5), 4)
    3.1605
    """
    return (1 - 2 * _tau(beta)) ** (-_check.at_least("d_k", d_k, 1) / 2)


def reduction_factor(variance, H):
    r"""How often H orthogonal heads with uniform weights reduce the noise variance of one head.

    .. math:: \frac{H S}{S + H - 1} < S

    Exact at every n. Parameters: ``variance``, S >= 1, that of one head in units of sigma^2 / n; ``H``.
    Source: Theorem 4.2.E.

    >>> reduction_factor(4.0, 4)
    2.2857142857142856
    """
    if np.any(np.asarray(variance) < 1 - 1e-12):
        raise ValueError(f"variance must be at least 1, in units of sigma^2 / n, got {variance!r}")
    H = _check.at_least("H", H, 1)
    return H * variance / (variance + H - 1)


def linear_risk_limit(projections, *, beta):
    r"""Limit of the whole risk of uniformly weighted heads for an isotropic random linear target.

    .. math:: R_\infty / \tau^2 = p - 2\beta d_k
        + \beta^2 d_k \Big[\tfrac1H + \big(1 - \tfrac1H\big)(1 - \mathrm{HDI})\Big]

    where the target is <a, x> with E aa^T = tau^2 I. Parameters: ``projections (heads, p, d_k)`` of full column
    rank (an orthonormal basis is used); any beta > 0. Source: Theorem 4.2.C, part 2.

    >>> import numpy as np
    >>> float(linear_risk_limit(np.stack([np.eye(4)[:, :2], np.eye(4)[:, 2:]]), beta=0.5))
    2.25
    """
    beta = _check.positive("beta", beta)
    kappa = overlap(projections)
    p, d_k = projections.shape[1:]
    return p - 2 * beta * d_k + beta**2 * d_k * np.mean(kappa)


def single_variance(s, n):
    r"""n E|w|^2 of one head whose logits have standard deviation s, exact at every n.

    .. math:: h_n(s) = n^2 \int_0^\infty \lambda\, E[k^2 e^{-\lambda k}]\, (E e^{-\lambda k})^{n-1} d\lambda,
        \qquad k = e^{sZ - s^2/2}

    Trapezoidal sums; relative error below 1e-9. Parameters: ``s >= 0``, any shape; ``n``. Source: Theorem 4.2.A'.

    >>> float(single_variance(1.0, 64).round(7))
    2.4834713
    """
    n, s = float(_check.at_least("n", n, 1)), _deviation("s", s)
    return np.vectorize(_laplace.single, otypes=[float])(s, n)[()]


def bias_factor(s, n):
    r"""Length of the mean attention output against its limit: E sum_i w_i X_i = (1 - h_n(s) / n) u, |u| = s.

    >>> round(float(bias_factor(0.0, 8)), 9)     # uniform attention
    0.875
    """
    return 1 - single_variance(s, n) / n


def output_square(s, n):
    r"""E(sum_i w_i g_i)^2 for softmax weights of the logits s g_i, g_i independent N(0, 1), exact at every n.

    .. math:: n\int t\,\big\{E[g^2k^2e^{-tk}]\,\varphi^{n-1} + (n-1)\,(E[gke^{-tk}])^2\,\varphi^{n-2}\big\}\,dt,
        \qquad \varphi(t) = E e^{-tk}

    Parameters as in :func:`single_variance`. Source: Theorem 6.4.

    >>> float(output_square(0.0, 8).round(9))      # the square of a mean of 8
    0.125
    """
    n, s = float(_check.at_least("n", n, 1)), _deviation("s", s)
    return np.vectorize(_laplace.output_square, otypes=[float])(s, n)[()]


def pair_covariance(r, s, s_other, n):
    r"""n E<w, w'> of two heads whose logits have covariance r and standard deviations s, s', exact at every n.

    .. math:: h_n(r; s, s') = n^2 \iint E[kk' e^{-\lambda k - \mu k'}]\,
        \big(E e^{-\lambda k - \mu k'}\big)^{n-1} d\lambda\, d\mu

    Trapezoidal sums; relative error below 1e-9. Parameters: numbers with ``|r| <= s s_other``; ``n``.
    Limit: e^r. Source: Theorem 4.2.A'.

    >>> round(pair_covariance(0.5, 1.0, 0.7**0.5, 64), 9)
    1.595760059
    """
    n, s, other = float(_check.at_least("n", n, 1)), float(_deviation("s", s)), float(_deviation("s_other", s_other))
    if not abs(r) <= s * other * (1 + 1e-12):
        raise ValueError(f"r must lie in [-s s_other, s s_other], got r = {r!r} with s s_other = {s * other:g}")
    rho = float(np.clip(r / (s * other), -1, 1)) if s * other else 0.0
    z, weight = _laplace.normal_grid(max(s, other), n)
    k = np.exp(s * z - s**2 / 2)
    k_other = np.exp(other * (rho * z[:, None] + (1 - rho**2) ** 0.5 * z) - other**2 / 2)
    lam, mu = np.exp(_laplace.laplace_grid(s, n, 30)), np.exp(_laplace.laplace_grid(other, n, 30))
    damped = np.exp(-mu[:, None, None] * k_other)  # (mu, z, z')
    inner, inner_loss = (damped * k_other) @ weight, 1 - damped @ weight
    outer = np.exp(-lam[:, None] * k) * weight
    loss = -np.expm1(-lam[:, None] * k) @ weight
    power = _laplace.power(loss[:, None] + outer @ inner_loss.T, n - 1)
    return float(n**2 * _laplace.STEP**2 * (lam @ ((outer * k) @ inner.T * power) @ mu))


def integrated_ends(d_k, n, *, beta):
    r"""The two constants of Theorem 4.2.A: one head's noise variance, and the slope of the lower bound in kappa.

    .. math:: S_n^\star = E\,h_n(\beta|a|), \qquad
        \ell_n = \frac{\beta^2 n}{d_k (n-1)}\big(E[|a|^2 (1 - h_n(\beta|a|)/n)]\big)^2, \qquad a \sim N(0, I_{d_k})

    Gauss-Laguerre over |a|^2 around :func:`single_variance`. Needs n >= 2. Returns ``(S_n_star, ell_n)``.

    >>> [round(float(v), 6) for v in integrated_ends(8, 64, beta=8**-0.5)]
    [2.585773, 0.919372]
    """
    from scipy.special import gamma, roots_genlaguerre

    d_k, n, beta = _check.at_least("d_k", d_k, 1), _check.at_least("n", n, 2), _check.positive("beta", beta)
    half_square, weight = roots_genlaguerre(64, d_k / 2 - 1)
    keep = weight > 1e-18 * weight.sum()
    half_square, weight = half_square[keep], weight[keep] / gamma(d_k / 2)
    h = single_variance(beta * (2 * half_square) ** 0.5, n)
    gain = weight @ (2 * half_square * (1 - h / n))
    return float(weight @ h), float(beta**2 * n / (d_k * (n - 1)) * gain**2)


def _tau(beta):
    tau = _check.positive("beta", beta) ** 2
    if 2 * tau >= 1:
        raise ValueError(f"beta must satisfy 2 beta^2 < 1 for a finite limit (beta = d_k^-1/2: d_k >= 3), got {beta!r}")
    return tau


def _deviation(name, value):
    value = _check.array(name, np.asarray(value, dtype=float), (...,))
    if np.any(value < 0):
        raise ValueError(f"{name} must not be negative")
    return value
