r"""Measures of trained heads, and their null distributions (chapter 9).

``weights (heads, m, n)`` of one text or ``(..., heads, m, n)``; ``projections (heads, p, d_k)`` as elsewhere.
"""

from typing import NamedTuple

import numpy as np

from nwmha import _check
from nwmha.attention import softmax_weights
from nwmha.diversity import diversity_index
from nwmha.families import haar_heads


class Reduction(NamedTuple):
    """Variance-reduction factor of the average of all heads and its largest possible value, ``(..., m)`` each."""

    factor: np.ndarray
    cap: np.ndarray


def variance_reduction(weights):
    r"""How much less noise the average of the heads has than one head, at every query.

    .. math:: \frac{\frac1H\sum_h \|w^h\|^2}{\|\bar w\|^2} \le \min\Big(H,\; \frac nH \sum_h \|w^h\|^2\Big)

    for independent noise on the n values, the same for all heads. Source: Proposition 9.3.

    >>> variance_reduction(np.eye(2)[:, None])            # two heads that look at different keys
    Reduction(factor=array([2.]), cap=array([2.]))
    """
    w = _check.array("weights", weights, (..., "heads", "m", "n"))
    one = np.mean(np.sum(w**2, axis=-1), axis=-2)
    return Reduction(one / np.sum(np.mean(w, axis=-3) ** 2, axis=-1), np.minimum(w.shape[-3], w.shape[-1] * one))


def effective_dimension(projections):
    r"""Number of directions that the heads of a layer use together, from their mean overlap.

    .. math:: r = \frac{H d_k}{1 + (H - 1)\bar\kappa} = \frac{(\operatorname{tr} \sum_h P_h)^2}{\|\sum_h P_h\|_F^2}

    It is d_k for identical and H d_k for orthogonal heads. Source: Definition 9.1.

    >>> float(effective_dimension(np.stack([np.eye(4)[:, :2], np.eye(4)[:, 2:]])))
    4.0
    """
    H, _, d_k = projections.shape
    return H * d_k / (1 + (H - 1) * (1 - diversity_index(projections)))


def factor_products(left, right):
    r"""Frobenius inner products of the matrices A_h B_h', without forming them.

    .. math:: \langle A_h B_h^\top, A_{h'} B_{h'}^\top\rangle_F = \langle A_h^\top A_{h'}, B_h^\top B_{h'}\rangle_F

    ``left (heads, p, d)``, ``right (heads, q, d)``; returns ``(heads, heads)``.

    >>> factor_products(np.ones((1, 2, 1)), np.ones((1, 3, 1)))
    array([[6.]])
    """
    A = _check.array("left", left, ("heads", "p", "d"))
    B = _check.array("right", right, (A.shape[0], "q", A.shape[2]))
    return np.sum((A[:, None].mT @ A[None]) * (B[:, None].mT @ B[None]), axis=(-2, -1))


def cosines(products):
    """Cosines from a matrix of inner products, ``(..., heads, heads)``.

    >>> cosines(np.array([[4.0, 1.0], [1.0, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    length = np.sqrt(np.diagonal(products, axis1=-2, axis2=-1))
    return products / (length[..., :, None] * length[..., None, :])


def mixed_heads(projections, *, rng):
    """The same directions dealt out at random: all columns of a layer, rotated together and cut again.

    Keeps sum_h W_h W_h', hence the spectrum that the heads share, and nothing of who has what.

    >>> import numpy as np
    >>> W = np.random.default_rng(0).normal(size=(3, 5, 2))
    >>> V = mixed_heads(W, rng=np.random.default_rng(1))
    >>> bool(np.allclose(np.einsum("hpd,hqd->pq", W, W), np.einsum("hpd,hqd->pq", V, V)))
    True
    """
    W = _check.array("projections", projections, ("heads", "p", "d_k"))
    H, p, d_k = W.shape
    turn = haar_heads(1, H * d_k, H * d_k, rng=rng)[0]
    return (W.transpose(1, 0, 2).reshape(p, H * d_k) @ turn).reshape(p, H, d_k).transpose(1, 0, 2)


def turned_heads(projections, *, rng):
    """Every head turned by a random rotation of its own: same singular values, random subspaces.

    >>> import numpy as np
    >>> W = np.random.default_rng(0).normal(size=(3, 5, 2))
    >>> bool(np.allclose(W.mT @ W, (V := turned_heads(W, rng=np.random.default_rng(1))).mT @ V))
    True
    """
    W = _check.array("projections", projections, ("heads", "p", "d_k"))
    _, values, right = np.linalg.svd(W, full_matrices=False)
    return haar_heads(*W.shape, rng=rng) @ (values[..., None] * right)


def sharpness(weights):
    """n times the squared length of the weights, mean over texts and queries: ``(heads,)`` from a list of weights."""
    return np.mean([w.shape[-1] * np.mean(np.sum(w**2, axis=-1), axis=-1) for w in weights], axis=0)


def matched_weights(queries, keys, wanted, *, steps=30):
    """Attention weights of heads whose temperatures are tuned so that their sharpness is ``wanted (heads,)``.

    ``queries``, ``keys``: lists of ``(heads, n, d_k)``, one for each text. Bisection in the logarithm of a factor on
    the logits between e^-8 and e^8; sharpness grows with it. Returns a list of ``(heads, n, n)``.
    """
    low, high = np.full(len(wanted), -8.0), np.full(len(wanted), 8.0)
    for _ in range(steps):
        middle = (low + high) / 2
        scale = np.exp(middle)[:, None, None]
        weights = [softmax_weights(scale * q, k) for q, k in zip(queries, keys, strict=True)]
        above = sharpness(weights) > wanted
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return weights


def mean_products(weights):
    """n times the inner products of the heads' weights, mean over texts and queries, ``(heads, heads)``."""
    by_query = [np.moveaxis(w, -3, -2) for w in weights]
    return np.mean([w.shape[-1] * np.mean(w @ w.mT, axis=0) for w in by_query], axis=0)


def mean_correlations(values):
    """Correlation over the keys of all pairs of heads, ``(heads, heads)``, mean over texts and queries.

    ``values``: list of logits ``(heads, m, n)``. A constant row has no correlation: give logits, not uniform weights.
    """
    rows = [np.moveaxis(v - v.mean(axis=-1, keepdims=True), -3, -2) for v in values]
    return np.mean([np.mean(cosines(row @ row.mT), axis=0) for row in rows], axis=0)


class Association(NamedTuple):
    """Mean rank correlation over layers, its value in every layer, and its two-sided permutation p value."""

    mean: float
    layers: np.ndarray
    p_value: float


def pair_association(first, second, *, permutations, rng):
    """Does one quantity of head pairs predict another? Spearman's correlation, with heads permuted for the null.

    ``first``, ``second``: lists of symmetric ``(heads, heads)``, one for each layer. Pairs that share a head are
    dependent, so whole heads are permuted, in every layer on its own (Mantel, 1967). Returns :class:`Association`.

    >>> import numpy as np
    >>> A = [np.arange(36.0).reshape(6, 6) + np.arange(36.0).reshape(6, 6).T]
    >>> round(pair_association(A, A, permutations=99, rng=np.random.default_rng(0)).mean, 12)
    1.0
    """
    left, right = ([_ranks(matrix) for matrix in side] for side in (first, second))
    upper = np.triu_indices(len(first[0]), 1)
    found = np.array([np.mean(a[upper] * b[upper]) for a, b in zip(left, right, strict=True)])
    null = np.zeros(_check.at_least("permutations", permutations, 1))
    for a, b in zip(left, right):
        for k in range(permutations):
            order = rng.permutation(len(a))
            null[k] += np.mean(a[np.ix_(order, order)][upper] * b[upper]) / len(left)
    beyond = np.sum(np.abs(null) >= abs(found.mean()) - 1e-12)
    return Association(float(found.mean()), found, float((1 + beyond) / (1 + permutations)))


def _ranks(matrix):
    """Standardised ranks of the pairs, as a symmetric matrix."""
    from scipy.stats import rankdata

    upper = np.triu_indices(len(matrix), 1)
    ranks = rankdata(np.round(matrix[upper], 12))
    filled = np.zeros(matrix.shape)
    filled[upper] = (ranks - ranks.mean()) / ranks.std()
    return filled + filled.T
