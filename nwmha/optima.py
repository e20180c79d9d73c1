"""Where the error of tied heads is smallest, and how to get there (chapter 5). Gaussian design, limit n -> infinity."""

from typing import NamedTuple

import numpy as np

from nwmha import _check
from nwmha.gaussian import covariance_limit


class ConcentratedOptimum(NamedTuple):
    """The best configuration for a target in r directions.

    ``alignment`` eta in [1/H, 1]: 1/H for orthogonal heads, 1 if all heads contain the signal; ``error`` in units of
    sigma^2 / n, without the part v / H that does not depend on the configuration; ``index``, its diversity index.
    """

    alignment: float
    error: float
    index: float


def concentrated_optimum(H, d_k, r, *, beta, signal):
    r"""The best heads for a linear target whose coefficients lie in r <= d_k directions.

    .. math:: \min_{1/H \le \eta \le 1}\; \mathcal S (1 - \beta\eta)^2 + \Big(1 - \frac1H\Big) f\big(c(\eta)^2\big)^r,
        \qquad c(\eta) = \frac{H\eta - 1}{H - 1}

    ``signal`` is n rho^2 / sigma^2 with rho^2 the variance of the target; 0 < beta < 1, 2 beta^2 < 1. Returns
    :class:`ConcentratedOptimum`. Source: Theorem 5.3.

    >>> best = concentrated_optimum(4, 4, 1, beta=0.5, signal=10.0)
    >>> round(best.alignment, 6), round(best.index, 6)
    (1.0, 0.75)
    """
    from scipy.optimize import minimize_scalar

    H, d_k, r = _check.at_least("H", H, 2), _check.at_least("d_k", d_k, 1), _check.at_least("r", r, 1)
    beta, signal = _check.positive("beta", beta), _check.positive("signal", signal)
    if r > d_k or beta >= 1:
        raise ValueError(f"r must not exceed d_k, and beta must be below 1, got r = {r}, d_k = {d_k}, beta = {beta}")

    def error(eta):
        cosines = np.full(r, (H * eta - 1) / (H - 1))
        return signal * (1 - beta * eta) ** 2 + (1 - 1 / H) * float(covariance_limit(cosines, beta=beta))

    inner = minimize_scalar(error, bounds=(1 / H, 1), method="bounded", options={"xatol": 1e-12}).x
    eta = min((1 / H, float(inner), 1.0), key=error)
    return ConcentratedOptimum(eta, error(eta), 1 - r / d_k * ((H * eta - 1) / (H - 1)) ** 2)


def alignment_threshold(r, *, beta):
    r"""The signal n rho^2 / sigma^2 from which on all heads should contain all r directions of the target.

    .. math:: \mathcal S^* = \frac{r f(1)^{r-1} f'(1)}{\beta (1 - \beta)},\quad f(1) = (1 - 2\tau)^{-1/2},
        \quad f'(1) = (\tau - \tau^2 / 2)(1 - 2\tau)^{-3/2},\quad \tau = \beta^2

    Source: Theorem 5.3, part 2.

    >>> [round(alignment_threshold(r, beta=0.5), 3) for r in (1, 2, 3)]
    [2.475, 7.0, 14.849]
    """
    r, beta = _check.at_least("r", r, 1), _check.positive("beta", beta)
    tau = beta**2
    if 2 * tau >= 1:
        raise ValueError(f"beta must satisfy 2 beta^2 < 1, got {beta!r}")
    rest = 1 - 2 * tau
    return r * rest ** (-(r - 1) / 2) * (tau - tau**2 / 2) * rest**-1.5 / (beta * (1 - beta))


def escape_path(projections, head, t):
    r"""Rotate one head towards the space that the others leave free: no overlap of any pair grows on the way.

    .. math:: W_h(t) = (\cos t\, W_h + \sin t\, V)(I + \sin 2t\, M)^{-1/2}, \qquad M = W_h^\top V \succeq 0

    with V orthonormal and orthogonal to all other heads. Parameters: ``projections (heads, p, d_k)`` with
    orthonormal columns and H d_k <= p, else ``ValueError``; ``head``; ``t`` in [0, pi/2]. Returns all
    projections at t. Source: Theorem 5.1, part 3.

    >>> W = np.stack([np.eye(4)[:, :2]] * 2)
    >>> abs(escape_path(W, 0, np.pi / 2)[0].T @ W[1]).round(12)
    array([[0., 0.],
           [0., 0.]])
    """
    W = _check.array("projections", projections, ("heads", "p", "d_k"))
    H, p, d_k = W.shape
    if H * d_k > p:
        raise ValueError(f"projections must have H * d_k <= p, got {H} * {d_k} > {p}")
    if not 0 <= t <= np.pi / 2:
        raise ValueError(f"t must lie in [0, pi/2], got {t!r}")
    others = np.delete(W, head, axis=0).transpose(1, 0, 2).reshape(p, -1)
    # An orthonormal basis of the complement of the others: left singular vectors of their smallest singular values.
    free = np.linalg.svd(others, full_matrices=True)[0][:, -d_k:]
    left, singular, right = np.linalg.svd(free.T @ W[head])
    V = free @ left @ right  # polar decomposition: W^T V is symmetric and positive semidefinite
    M = (right.T * singular) @ right
    values, vectors = np.linalg.eigh(np.eye(d_k) + np.sin(2 * t) * M)
    moved = W.copy()
    moved[head] = (np.cos(t) * W[head] + np.sin(t) * V) @ (vectors / np.sqrt(values)) @ vectors.T
    return moved
