"""Estimates of attention heads from noisy responses, at any size: the attention layer itself, before averaging."""

from collections.abc import Iterator

from nwmha import _check
from nwmha._stream import gathered, stream, streams
from nwmha.attention import head_weights


def head_estimates(
    projections, queries, design, response=None, *,
    query_projections=None, inverse_temperature=None, route="auto", snapshots=None, progress=None,
):  # fmt: skip
    r"""The Nadaraya-Watson estimate of every head at every query.

    .. math:: \hat m_h(x) = \sum_i w_i^h(x)\, Y_i

    Parameters: ``projections (heads, p, d_k)``, ``queries (m, p)``, ``design (n, p)`` with ``response (n,)`` or
    ``(n, q)``, or an iterator of pairs ``(points, responses)`` and no ``response``; the other arguments as in
    :func:`nwmha.ensemble.head_moments`. Returns ``(m, heads)`` or ``(m, heads, q)``, with a leading axis for
    ``snapshots``. Memory does not grow with n on the streaming route. Source: Theorem 2.1.

    >>> import numpy as np
    >>> head_estimates(np.ones((2, 3, 1)), np.zeros((1, 3)), np.eye(3), np.array([0.0, 1.0, 5.0]))
    array([[2., 2.]])
    """
    projections = _check.array("projections", projections, ("heads", "p", "d_k"))
    queries = _check.array("queries", queries, ("m", projections.shape[1]), like=projections)
    options = {"query_projections": query_projections, "inverse_temperature": inverse_temperature}
    pairs = _pairs(design, response, projections)
    if streams(route, projections, queries, design, snapshots=snapshots, progress=progress):
        first = next(pairs, None)
        flat = first is not None and first[1].ndim == 1
        blocks = ((x, y[:, None] if flat else y) for x, y in _chain(first, pairs))
        sums = stream(projections, queries, blocks, pairs=False, snapshots=snapshots, progress=progress, **options)
        means = [s.means[..., 0] if flat else s.means for s in sums]
        return gathered(means, means, snapshots)[0]
    ((points, values),) = pairs
    weights = head_weights(projections, queries, points, **options)
    xp = _check.namespace(weights)
    means = weights @ (values[:, None] if values.ndim == 1 else values)
    means = xp.permute_dims(means, (1, 0, 2))
    return means[..., 0] if values.ndim == 1 else means


def _pairs(design, response, projections):
    """Checked blocks of points and responses."""
    if isinstance(design, Iterator):
        if response is not None:
            raise ValueError("response must be None when design is an iterator of (points, responses)")
        for points, values in design:
            yield _pair(points, values, projections)
    else:
        yield _pair(design, response, projections)


def _pair(points, values, projections):
    points = _check.array("design", points, ("n", projections.shape[1]), like=projections)
    if values is None:
        raise ValueError("response must be given with a design of points")
    matrix = len(getattr(values, "shape", ())) == 2
    shape = (points.shape[0], "q") if matrix else (points.shape[0],)
    return points, _check.array("response", values, shape, like=points)


def _chain(first, rest):
    if first is not None:
        yield first
    yield from rest
