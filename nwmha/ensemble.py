"""Bias, variance and covariance of an ensemble of attention heads (chapter 3, Theorem 3.1).

Shapes: ``bias (..., m, heads)``, ``covariance (..., m, heads, heads)``, ``alpha (heads,)``; the leading axes,
if any, run over designs. Numpy arrays or torch tensors in, the same kind out.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from nwmha import _check
from nwmha._stream import gathered, point_blocks, stream, streams
from nwmha.attention import head_weights


class HeadMoments(NamedTuple):
    """Bias ``(..., m, heads)`` and noise covariance ``(..., m, heads, heads)`` of the heads, given the design."""

    bias: Any
    covariance: Any


def head_moments(
    projections, queries, design, *,
    target, sigma, query_projections=None, inverse_temperature=None, route="auto", snapshots=None, progress=None,
):  # fmt: skip
    r"""Exact bias and covariance of every head, given the design, in closed form (no simulation).

    .. math:: b_h(x) = \sum_i w_i^h(x)\, m(X_i) - m(x), \qquad C_{hh'}(x) = \sigma^2 \langle w^h(x), w^{h'}(x)\rangle

    Parameters: ``projections (heads, p, d_k)``, ``queries (m, p)``, ``design (n, p)`` or an iterator of
    such blocks; ``target``, a callable ``(k, p) -> (k,)``, the regression function m; ``sigma`` > 0, the
    noise standard deviation; ``query_projections``, ``inverse_temperature`` as in
    :func:`nwmha.attention.head_weights`; ``snapshots``, increasing sample sizes: the moments for the first n
    points, for each of them, in one pass, on a leading axis; ``progress``, called with the number of points done.
    ``route``: "dense" holds all weights and allows designs ``(..., n, p)``; "stream" passes once over the
    keys and never holds ``(heads, m, n)``; "auto" takes the faster one.
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
    projections = _check.array("projections", projections, ("heads", "p", "d_k"))
    queries = _check.array("queries", queries, (..., "m", projections.shape[1]), like=projections)
    options = {"query_projections": query_projections, "inverse_temperature": inverse_temperature}
    if streams(route, projections, queries, design, snapshots=snapshots, progress=progress):
        blocks = ((points, _values(target, points)[:, None]) for points in point_blocks(design, projections))
        sums = stream(projections, queries, blocks, pairs=True, snapshots=snapshots, progress=progress, **options)
        smoothed, products = gathered([s.means[..., 0] for s in sums], [s.products for s in sums], snapshots)
    else:
        design = _check.array("design", design, (..., "n", projections.shape[1]), like=projections)
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


def _values(target, points):
    """Target at points (..., p), called with a flat (k, p) array as promised."""
    xp = _check.namespace(points)
    values = _check.array("target(points)", target(xp.reshape(points, (-1, points.shape[-1]))), ("k",), like=points)
    return xp.reshape(values, tuple(points.shape[:-1]))
