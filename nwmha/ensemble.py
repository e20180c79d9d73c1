"""Bias, variance and covariance of an ensemble of attention heads (chapter 3, Theorem 3.1).

Shapes: ``bias (..., m, heads)``, ``covariance (..., m, heads, heads)``, ``alpha (heads,)``; the leading axes,
if any, run over designs. Numpy arrays or torch tensors in, the same kind out.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from nwmha import _check
from nwmha._stream import stream_sums
from nwmha.attention import head_weights

DENSE_LIMIT = 4_000_000  # weights (heads * m * n) up to which the dense route is used by "auto": 32 MB


class HeadMoments(NamedTuple):
    """Bias ``(..., m, heads)`` and noise covariance ``(..., m, heads, heads)`` of the heads, given the design."""

    bias: Any
    covariance: Any


def head_moments(
    projections, queries, design, *,
    target, sigma, query_projections=None, inverse_temperature=None, route="auto",
):  # fmt: skip
    r"""Exact bias and covariance of every head, given the design, in closed form (no simulation).

    .. math:: b_h(x) = \sum_i w_i^h(x)\, m(X_i) - m(x), \qquad C_{hh'}(x) = \sigma^2 \langle w^h(x), w^{h'}(x)\rangle

    Parameters: ``projections (heads, p, d_k)``, ``queries (m, p)``, ``design (n, p)``; ``target``, a
    callable ``(k, p) -> (k,)``, the regression function m; ``sigma`` > 0, the noise standard deviation;
    ``query_projections``, ``inverse_temperature`` as in :func:`nwmha.attention.head_weights`.
    ``route``: "dense" holds all weights and allows designs ``(..., n, p)``; "stream" passes once over the
    keys and never holds ``(heads, m, n)``; "auto" streams when the weights would exceed 32 MB.
    Returns :class:`HeadMoments`. Source: Theorem 3.1 (b).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> moments = head_moments(np.ones((2, 3, 1)), np.zeros((1, 3)), rng.normal(size=(4, 3)),
    ...                        target=lambda x: x[:, 0], sigma=2.0)
    >>> moments.covariance[0]                     # both heads have weights 1/4: C = sigma^2 / n = 1
    array([[1., 1.],
           [1., 1.]])
    """
    sigma = _check.positive("sigma", sigma)
    if route not in ("auto", "dense", "stream"):
        raise ValueError(f"route must be 'auto', 'dense' or 'stream', got {route!r}")
    projections = _check.array("projections", projections, ("heads", "p", "d_k"))
    queries = _check.array("queries", queries, (..., "m", projections.shape[1]), like=projections)
    design = _check.array("design", design, (..., "n", projections.shape[1]), like=projections)
    batched = design.ndim > 2 or queries.ndim > 2
    if route == "stream" and batched:
        raise ValueError(f"design must be (n, p) on the streaming route, got {tuple(design.shape)}")
    large = projections.shape[0] * queries.shape[-2] * design.shape[-2] > DENSE_LIMIT
    options = {"query_projections": query_projections, "inverse_temperature": inverse_temperature}
    if route == "stream" or (route == "auto" and large and not batched):
        smoothed, products = stream_sums(projections, queries, design, target=target, **options)
    else:
        weights = head_weights(projections, queries, design, **options)
        xp = _check.namespace(weights)
        smoothed = xp.moveaxis((weights @ _values(target, design)[..., None, :, None])[..., 0], -2, -1)
        by_query = xp.moveaxis(weights, -3, -2)  # (..., m, heads, n)
        products = by_query @ by_query.mT
    return HeadMoments(smoothed - _values(target, queries)[..., None], sigma**2 * products)


@dataclass(frozen=True)
class UnconditionalMoments:
    """Moments over designs and noise: ``covariance = noise_covariance + design_covariance`` (Theorem 3.1 (c)).

    ``bias (m, heads)``; the three covariances ``(m, heads, heads)``.
    """

    bias: Any
    noise_covariance: Any
    design_covariance: Any

    @property
    def covariance(self):
        return self.noise_covariance + self.design_covariance


def over_designs(moments):
    r"""Unconditional moments from conditional ones, by the law of total covariance.

    .. math:: C_{hh'} = \operatorname{E} C_{hh'}(X) + \operatorname{Cov}(b_h(X), b_{h'}(X))

    ``moments`` has R >= 2 designs on its first axis; expectations are averages over them, the design
    covariance has divisor R - 1 (unbiased). Source: Theorem 3.1 (c).

    >>> import numpy as np
    >>> over_designs(HeadMoments(np.array([[[0.0]], [[2.0]]]), np.ones((2, 1, 1, 1)))).covariance
    array([[[3.]]])
    """
    bias = _check.array("moments.bias", moments.bias, ("designs", "m", "heads"))
    heads = bias.shape[2]
    covariance = _check.array("moments.covariance", moments.covariance, (*bias.shape[:2], heads, heads))
    if bias.shape[0] < 2:
        raise ValueError("moments must hold at least 2 designs to estimate a covariance over designs, got 1")
    xp = _check.namespace(bias)
    mean = xp.mean(bias, axis=0)
    centred = xp.permute_dims(bias - mean, (1, 2, 0))  # (m, heads, designs)
    return UnconditionalMoments(mean, xp.mean(covariance, axis=0), centred @ centred.mT / (bias.shape[0] - 1))


@dataclass(frozen=True)
class Decomposition:
    """The three parts of the mean squared error, each ``(..., m)``, in squared units of the response."""

    bias_squared: Any
    variance: Any
    covariance: Any

    @property
    def scatter(self):
        """Variance of the ensemble: the variance and covariance parts together."""
        return self.variance + self.covariance

    @property
    def mse(self):
        """Mean squared error: the sum of the three parts."""
        return self.bias_squared + self.scatter


def decompose(bias, covariance, alpha, *, truth=None):
    r"""Theorem 3.1: the mean squared error of the ensemble, in three parts.

    .. math:: \big(\alpha^\top b + (S-1)\theta\big)^2 + \sum_h \alpha_h^2 V_h
        + \sum_{h \ne h'} \alpha_h \alpha_{h'} C_{hh'}, \qquad S = \sum_h \alpha_h

    Parameters: ``bias (..., heads)``, ``covariance (..., heads, heads)``, ``alpha (heads,)`` with any sum;
    ``truth (...)``, the value theta that is estimated, needed unless alpha sums to one.
    Returns :class:`Decomposition`. Source: Theorem 3.1 (a).

    >>> import numpy as np
    >>> parts = decompose(np.array([1.0, -1.0]), np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.5, 0.5]))
    >>> float(parts.bias_squared), float(parts.variance), float(parts.covariance), float(parts.mse)
    (0.0, 1.0, 0.5, 1.5)
    """
    bias = _check.array("bias", bias, (..., "heads"))
    heads = bias.shape[-1]
    covariance = _check.array("covariance", covariance, (..., heads, heads), like=bias)
    alpha = _check.array("alpha", alpha, (heads,), like=bias)
    xp = _check.namespace(bias, covariance)
    excess = xp.sum(alpha) - 1
    mean_error = bias @ alpha
    if truth is not None:
        mean_error = mean_error + excess * _check.array("truth", truth, (...,), like=bias)
    elif abs(float(excess)) > 1e-12:
        raise ValueError(f"truth must be given when alpha does not sum to one, got a sum of {float(excess) + 1:g}")
    variances = xp.linalg.diagonal(covariance)
    variance = variances @ alpha**2
    # Off-diagonal terms are summed themselves, so that the three parts are computed independently.
    off_diagonal = covariance * (1 - xp.eye(heads, dtype=covariance.dtype, device=covariance.device))
    return Decomposition(mean_error**2, variance, (off_diagonal @ alpha) @ alpha)


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


def _values(target, points):
    """Target at points (..., p), called with a flat (k, p) array as promised."""
    xp = _check.namespace(points)
    values = _check.array("target(points)", target(xp.reshape(points, (-1, points.shape[-1]))), ("k",), like=points)
    return xp.reshape(values, tuple(points.shape[:-1]))
