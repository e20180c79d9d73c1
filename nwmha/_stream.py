"""One pass over the keys: weighted means and all pair products of the weights, without the weights.

For a block of queries and a block of keys the logits come from one batched product and are exponentiated in place;
one more batched product of E (heads, keys) with [E; 1; values] then accumulates the pair products <e^h, e^h'>, the
normalisers and the weighted sums. Nothing of size (heads, m, n) is held.

While Cauchy-Schwarz keeps every logit small, exponentials need no shift. Else they are taken relative to the largest
logit seen so far at each (query, head), and what was accumulated is rescaled when it rises.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from nwmha import _check
from nwmha.attention import _inverse_temperature

KEYS, QUERIES = 512, 512  # keys of a block; queries times heads of a block: the working set stays in the cache
CHUNK = 8192  # points whose values are computed at once
DENSE = 100_000  # weights up to which "auto" holds them all: there the dense route is as fast
UNSHIFTED = {8: 300.0, 4: 30.0}  # largest |logit| without a shift: exp(2 * it), times n, is far from overflow


class Sums(NamedTuple):
    """Weighted means of the values ``(m, heads, q)``; pair products of the weights ``(m, heads, heads)`` or None."""

    means: Any
    products: Any


def stream(
    projections, queries, blocks, *,
    pairs, query_projections=None, inverse_temperature=None, snapshots=None, progress=None,
):  # fmt: skip
    """:class:`Sums` for the first n points, for every n of ``snapshots`` (increasing), or for all (no snapshots).

    ``blocks`` yields ``(points (k, p), values (k, q))``, as many and as long as it likes. ``progress`` is called with
    the number of points done, after every block of keys. Returns a list.
    """
    if query_projections is None:
        query_projections = projections
    query_projections = _check.array("query_projections", query_projections, tuple(projections.shape))
    beta = _inverse_temperature(inverse_temperature, projections.shape[2])
    size = max(64, min(KEYS, 2**17 // (projections.shape[0] * projections.shape[2])))
    state, found, done, snapshots = None, [], 0, tuple(snapshots or ())
    for points, values in _cut(blocks, size, snapshots):
        if state is None:
            state = _State(projections, beta * (queries @ query_projections), values.shape[-1], pairs, size)
        state.add(points, values)
        done += points.shape[0]
        if progress is not None:
            progress(done)
        if done in snapshots:
            found.append(state.sums())
            if len(found) == len(snapshots):
                break
    if state is None:
        raise ValueError("design must hold at least one point, got an empty one")
    if len(found) < len(snapshots):
        raise ValueError(f"snapshots must not exceed the {done} points of the design, got {snapshots[-1]}")
    return found or [state.sums()]


def streams(route, projections, queries, design, *, snapshots=None, progress=None):
    """Does this call take the streaming route? Refuses routes and snapshots that do not fit the design."""
    if route not in ("auto", "dense", "stream"):
        raise ValueError(f"route must be 'auto', 'dense' or 'stream', got {route!r}")
    sizes = [] if snapshots is None else [_check.at_least("snapshots", n, 1) for n in snapshots]
    if snapshots is not None and (not sizes or sorted(set(sizes)) != sizes):
        raise ValueError(f"snapshots must be increasing sample sizes, at least one, got {snapshots!r}")
    needed = isinstance(design, Iterator) or snapshots is not None or progress is not None
    if route == "dense" and needed:
        raise ValueError("route must be 'stream' or 'auto' for an iterator, snapshots or progress, got 'dense'")
    batched = queries.ndim > 2 or (not isinstance(design, Iterator) and len(getattr(design, "shape", ())) > 2)
    if batched and (needed or route == "stream"):
        shape = getattr(design, "shape", "an iterator")
        raise ValueError(f"design must be (n, p), and queries (m, p), on the streaming route, got {shape}")
    if needed or route == "stream":
        return True
    return route == "auto" and not batched and projections.shape[0] * queries.shape[-2] * len(design) > DENSE


def point_blocks(design, projections):
    """The points of a design ``(n, p)``, or of an iterator of such blocks, checked, in blocks."""
    for points in design if isinstance(design, Iterator) else (design,):
        points = _check.array("design", points, ("n", projections.shape[1]), like=projections)
        for start in range(0, points.shape[0], CHUNK):
            yield points[start : start + CHUNK]


def gathered(first, second, snapshots):
    """Two lists of results as two arrays, with a leading axis only if snapshots were asked for."""
    xp = _check.namespace(first[0])
    return (first[0], second[0]) if snapshots is None else (xp.stack(first), xp.stack(second))


def _cut(blocks, size, snapshots):
    """Blocks of at most ``size`` points that end where a snapshot is taken."""
    done, ends = 0, iter(snapshots)
    end = next(ends, None)
    for points, values in blocks:
        start = 0
        while start < points.shape[0]:
            stop = min(points.shape[0], start + size)
            if end is not None and done + stop - start >= end:
                stop = start + end - done
            yield points[start:stop], values[start:stop]
            done, start = done + stop - start, stop
            if done == end:
                end = next(ends, None)


class _State:
    """What has been accumulated, for all queries: sums ``(m, heads, heads + 1 + q)``, or without pairs ``1 + q``."""

    def __init__(self, projections, transformed, q, pairs, size):
        xp = self.xp = _check.namespace(transformed)
        self.projections, self.transformed, self.q, self.pairs = projections, transformed, q, pairs
        heads, m, _ = transformed.shape
        self.kind = {"dtype": transformed.dtype, "device": transformed.device}
        self.limit = UNSHIFTED[xp.finfo(transformed.dtype).bits // 8]
        self.longest = _longest(transformed)
        self.step = max(1, min(m, QUERIES // heads))
        self.sums_of = [0.0] * -(-m // self.step)
        self.peak = [None] * len(self.sums_of)  # None: unshifted so far
        # Differentiation needs the intermediate arrays: then nothing is changed in place.
        self.inplace = not any(getattr(a, "requires_grad", False) for a in (transformed, projections))
        if self.inplace:
            self.logits = xp.empty((heads, self.step, size), **self.kind)
            self.augmented = xp.ones((self.step, heads + 1 + q, size), **self.kind)

    def add(self, points, values):
        xp, heads = self.xp, self.projections.shape[0]
        keys = points @ self.projections
        inplace = self.inplace and not any(getattr(a, "requires_grad", False) for a in (keys, values))
        columns = xp.concat([xp.ones((1, values.shape[0]), **self.kind), values.mT], axis=0)
        if inplace and self.pairs:
            self.augmented[:, heads:, : points.shape[0]] = columns
        unshifted = self.longest * _longest(keys) <= self.limit
        for k in range(len(self.sums_of)):
            queries = self.transformed[:, k * self.step : (k + 1) * self.step]
            if inplace:
                logits = self.logits[:, : queries.shape[1], : points.shape[0]]
                xp.matmul(queries, keys.mT, out=logits)
            else:
                logits = queries @ keys.mT
            if not unshifted or self.peak[k] is not None:
                logits = self._shift(k, logits, inplace)
            block = self._block_in_place(logits) if inplace else self._block(logits, columns)
            self.sums_of[k] = self.sums_of[k] + (block if self.pairs else block @ columns.mT)

    def _shift(self, k, logits, inplace):
        """Make logits relative to the running maximum, and rescale what was accumulated relative to the old one."""
        xp = self.xp
        top = xp.max(logits, axis=-1).mT  # (m, heads)
        begun = not isinstance(self.sums_of[k], float)
        old = self.peak[k] if self.peak[k] is not None else xp.zeros_like(top) if begun else top
        self.peak[k] = xp.maximum(old, top)
        if begun:
            factor = xp.exp(old - self.peak[k])
            rescaled = self.sums_of[k]
            if self.pairs:  # a pair product carries the factors of both heads, the other sums that of one
                ones = xp.ones((factor.shape[0], 1 + self.q), **self.kind)
                self.sums_of[k] = rescaled * factor[..., None] * xp.concat([factor, ones], axis=1)[:, None, :]
            else:
                self.sums_of[k] = rescaled * factor.mT[..., None]
        shift = self.peak[k].mT[..., None]
        return xp.subtract(logits, shift, out=logits) if inplace else logits - shift

    def _block_in_place(self, logits):
        heads, m, keys = logits.shape
        if not self.pairs:
            return self.xp.exp(logits, out=logits)
        augmented = self.augmented[:m, :, :keys]
        e = augmented[:, :heads]
        self.xp.exp(self.xp.permute_dims(logits, (1, 0, 2)), out=e)
        return e @ augmented.mT

    def _block(self, logits, columns):
        e = self.xp.exp(logits)
        if not self.pairs:
            return e
        e = self.xp.permute_dims(e, (1, 0, 2))
        return e @ self.xp.concat([e, self.xp.broadcast_to(columns, (e.shape[0], *columns.shape))], axis=1).mT

    def sums(self):
        """The accumulated sums, normalised."""
        xp, heads = self.xp, self.projections.shape[0]
        if not self.pairs:
            total = xp.permute_dims(xp.concat(self.sums_of, axis=1), (1, 0, 2))
            return Sums(total[..., 1:] / total[..., :1], None)
        total = xp.concat(self.sums_of, axis=0)
        normaliser = total[..., heads]
        products = total[..., :heads] / (normaliser[..., None] * normaliser[:, None, :])
        return Sums(total[..., heads + 1 :] / normaliser[..., None], products)


def _longest(vectors):
    xp = _check.namespace(vectors)
    vectors = vectors.detach() if hasattr(vectors, "detach") else vectors
    return float(xp.max(xp.linalg.vector_norm(vectors, axis=-1)))
