"""What follows from the decomposition: equal correlations, one more head, ambiguity (chapter 3, C1, C3, C4)."""

from typing import NamedTuple

from nwmha import _check


def equicorrelated_variance(H, *, rho, variance=1.0):
    r"""Variance of the average of H heads with equal variances and equal correlations.

    .. math:: V\,\big(\rho + (1 - \rho)/H\big)

    ``rho`` must lie in [-1/(H-1), 1]: no other common correlation exists. Source: Corollary C1.

    >>> equicorrelated_variance(4, rho=0.5)
    0.625
    """
    H = _check.at_least("H", H, 1)
    lowest = -1.0 if H <= 2 else -1 / (H - 1)
    if not lowest <= rho <= 1:
        raise ValueError(f"rho must lie in [{lowest:g}, 1] for H = {H}, got {rho!r}")
    return _check.positive("variance", variance) * (rho + (1 - rho) / H)


class AddedHead(NamedTuple):
    """What one more head does (Corollary C3); risks are mean squared errors."""

    uniform_helps: bool
    uniform_risk: float
    some_weight_helps: bool
    best_weight: float
    best_risk: float


def add_head(risk, new_risk, cross, *, H):
    r"""Does head H + 1 lower the mean squared error of the average of H heads?

    Uniform weights: iff 2 H c + r < (2 H + 1) R. With a free weight t on the new head: iff c < R, best at
    t = (R - c) / (R + r - 2 c), where the error is (R r - c^2) / (R + r - 2 c).

    Parameters: ``risk`` R >= 0 of the ensemble, ``new_risk`` r >= 0 of the new head, ``cross`` c, the mean
    product of their errors, with c^2 <= R r. ``best_weight`` may be negative or exceed one; it is 0 if both
    errors agree always. Source: Corollary C3.

    >>> added = add_head(1.0, 4.0, 0.75, H=1)
    >>> added.uniform_helps, added.uniform_risk, added.best_weight
    (False, 1.625, 0.07142857142857142)
    """
    H = _check.at_least("H", H, 1)
    R, r, c = (float(v) for v in (risk, new_risk, cross))
    if not (R >= 0 and r >= 0 and c * c <= R * r * (1 + 1e-12) + 1e-300):
        raise ValueError(f"cross must satisfy cross^2 <= risk * new_risk, risks >= 0, got {cross}, {risk}, {new_risk}")
    uniform = (H * H * R + 2 * H * c + r) / (H + 1) ** 2
    spread = R + r - 2 * c
    best = (R - c) / spread if spread > 0 else 0.0
    return AddedHead(uniform < R, uniform, c < R, best, (R * r - c * c) / spread if spread > 0 else R)


def ambiguity(estimates, alpha):
    r"""Weighted spread of the heads around the ensemble, to be subtracted from the average head error.

    .. math:: \sum_h \alpha_h (T_h - T)^2, \qquad T = \sum_h \alpha_h T_h

    Parameters: ``estimates (..., heads)``, ``alpha (heads,)`` with sum one. Returns ``(...)``.
    Source: Corollary C4 (Krogh and Vedelsby, 1995).

    >>> import numpy as np
    >>> float(ambiguity(np.array([1.0, 3.0]), np.array([0.5, 0.5])))
    1.0
    """
    estimates = _check.array("estimates", estimates, (..., "heads"))
    alpha = _check.array("alpha", alpha, (estimates.shape[-1],), like=estimates)
    if abs(float(alpha.sum()) - 1) > 1e-12:
        raise ValueError(f"alpha must sum to one, got {float(alpha.sum()):g}")
    return (estimates - (estimates @ alpha)[..., None]) ** 2 @ alpha
