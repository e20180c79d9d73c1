"""One pass over the keys: weighted means and all pair products of the weights, without the weights.

For a block of queries and a block of keys the logits are exponentiated once, relative to the largest logit
seen so far at each (query, head); one batched product of [E] with [E, 1, m(X)] then accumulates the pair
products <e^h, e^h'>, the normalisers and the weighted sums. When the running maximum rises, what was
accumulated is rescaled. Nothing of size (heads, m, n) is held; no array is changed in place, so automatic
differentiation passes through.
"""

from nwmha import _check
from nwmha.attention import _inverse_temperature

QUERY_BLOCK, KEY_BLOCK = 128, 256  # the working set of a block fits the second-level cache


def stream_sums(projections, queries, design, *, target, query_projections=None, inverse_temperature=None):
    """Weighted means of the target ``(m, heads)`` and pair products of the weights ``(m, heads, heads)``."""
    if query_projections is None:
        query_projections = projections
    query_projections = _check.array("query_projections", query_projections, tuple(projections.shape))
    beta = _inverse_temperature(inverse_temperature, projections.shape[2])
    xp = _check.namespace(projections)
    parts = [
        _query_block(beta * (queries[i : i + QUERY_BLOCK] @ query_projections), projections, design, target)
        for i in range(0, queries.shape[0], QUERY_BLOCK)
    ]
    return tuple(xp.concat(list(column), axis=0) for column in zip(*parts))


def _query_block(transformed, projections, design, target):
    """The sums for one block of transformed queries ``(heads, m, d_k)``."""
    xp = _check.namespace(transformed)
    peak = sums = None
    for i in range(0, design.shape[0], KEY_BLOCK):
        points = design[i : i + KEY_BLOCK]
        logits = xp.permute_dims(transformed @ (points @ projections).mT, (1, 0, 2))  # (m, heads, keys)
        top = xp.max(logits, axis=-1)
        raised = top if peak is None else xp.maximum(peak, top)
        block = _block_sums(xp.exp(logits - raised[..., None]), target(points))
        if peak is not None:
            factor = xp.exp(peak - raised)
            # Pair products carry the factors of both heads; normaliser and weighted sum carry one.
            both = xp.concat([factor, xp.ones((factor.shape[0], 2), dtype=factor.dtype, device=factor.device)], axis=1)
            block = block + sums * factor[..., None] * both[:, None, :]
        peak, sums = raised, block
    heads = projections.shape[0]
    normaliser = sums[..., heads]
    products = sums[..., :heads] / (normaliser[..., None] * normaliser[:, None, :])
    return sums[..., heads + 1] / normaliser, products


def _block_sums(e, values):
    """E (m, heads, keys) times [E, 1, values]: ``(m, heads, heads + 2)``."""
    xp = _check.namespace(e)
    values = _check.array("target(points)", values, (e.shape[-1],), like=e)
    columns = xp.broadcast_to(xp.stack([xp.ones_like(values), values]), (e.shape[0], 2, e.shape[-1]))
    return e @ xp.concat([e, columns], axis=1).mT
