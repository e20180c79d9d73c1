"""How different are the heads? Principal angles, overlap and the diversity index; families of heads (chapters 3 to 5).

``projections (heads, p, d_k)`` have full column rank; only their column spaces ("key subspaces") matter,
except for :func:`raw_diversity_index`, which shows why that one is no measure of diversity.
"""

import numpy as np

from nwmha import _check


def principal_cosines(projections, other):
    r"""Cosines of the principal angles between the column spaces of two stacks of heads.

    .. math:: c_j = \cos\theta_j = \text{singular values of } Q^\top Q'

    with orthonormal bases Q, Q'. Parameters: ``projections``, ``other (..., p, d_k)``. Returns
    ``(..., d_k)``, in decreasing order, in [0, 1]. Small angles are lost in a cosine near 1: use
    :func:`principal_angles` for them. Source: Definition 4.1; Bjorck and Golub (1973).

    >>> import numpy as np
    >>> principal_cosines(np.eye(3)[:, :2], np.eye(3)[:, 1:])
    array([1., 0.])
    """
    return np.clip(
        np.linalg.svd(_basis("projections", projections).mT @ _basis("other", other), compute_uv=False), 0, 1
    )


def principal_angles(projections, other):
    """Principal angles in radians, ``(..., d_k)``, in increasing order, accurate for small angles too.

    Angles below 45 degrees are taken from their sines, the singular values of Q' - Q Q^T Q'.

    >>> import numpy as np
    >>> tilted = np.array([[np.cos(1e-9)], [np.sin(1e-9)]])
    >>> float(principal_angles(np.array([[1.0], [0.0]]), tilted)[0])
    1e-09
    """
    Q, R = _basis("projections", projections), _basis("other", other)
    C = Q.mT @ R
    cosines = np.clip(np.linalg.svd(C, compute_uv=False), 0, 1)
    sines = np.clip(np.linalg.svd(R - Q @ C, compute_uv=False)[..., ::-1], 0, 1)
    return np.where(cosines**2 > 0.5, np.arcsin(sines), np.arccos(cosines))


def overlap(projections):
    r"""Normalised overlap of every pair of heads.

    .. math:: \kappa_{hh'} = \frac{1}{d_k}\sum_j \cos^2\theta_j = \operatorname{tr}(P_h P_{h'}) / d_k \in [0, 1]

    Parameters: ``projections (heads, p, d_k)``. Returns ``(heads, heads)`` with ones on the diagonal.
    Source: Definition 4.1.

    >>> import numpy as np
    >>> overlap(np.stack([np.eye(3)[:, :2], np.eye(3)[:, 1:]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    Q = _basis("projections", _check.array("projections", projections, ("heads", "p", "d_k")))
    gram = Q[:, None].mT @ Q[None]
    return np.sum(gram**2, axis=(-2, -1)) / Q.shape[-1]


def diversity_index(projections):
    r"""Normalised head diversity index: 1 for orthogonal heads, 0 for heads with one common subspace.

    .. math:: \mathrm{HDI} = 1 - \frac{2}{H(H-1)} \sum_{h<h'} \kappa_{hh'}

    Parameters: ``projections (heads, p, d_k)`` with at least two heads (one head has no diversity:
    ``ValueError``). Invariant under W_K -> W_K B. Source: Definition 4.1.

    >>> import numpy as np
    >>> float(diversity_index(np.stack([np.eye(4)[:, :2], np.eye(4)[:, 2:]])))
    1.0
    """
    kappa = overlap(projections)
    return 1 - _mean_over_pairs(kappa)


def raw_diversity_index(projections):
    r"""The source's index, shown for its faults: it depends on the scale and the gauge of W_K.

    .. math:: 1 - \frac{2}{H(H-1)} \sum_{h<h'} \| W_K^{h\top} W_K^{h'} / d_k \|_F^2

    >>> import numpy as np
    >>> float(raw_diversity_index(np.stack([np.eye(4)[:, :2]] * 2)))     # identical heads, and not 0
    0.5
    """
    W = _check.array("projections", projections, ("heads", "p", "d_k"))
    gram = W[:, None].mT @ W[None] / W.shape[-1]
    return 1 - _mean_over_pairs(np.sum(gram**2, axis=(-2, -1)))


def whitened(projections, covariance):
    r"""Heads whose principal angles are the canonical angles of the key features W^T X, X ~ (0, Sigma).

    .. math:: W \mapsto \Sigma^{1/2} W

    Parameters: ``projections (heads, p, d_k)``, ``covariance (p, p)``, symmetric positive definite.
    For a design with covariance Sigma, diversity is measured on these. Source: Theorem 4.2.A, scope.

    >>> import numpy as np
    >>> whitened(np.ones((1, 2, 1)), 4 * np.eye(2))[0, :, 0]
    array([2., 2.])
    """
    W = _check.array("projections", projections, ("heads", "p", "d_k"))
    covariance = _check.array("covariance", covariance, (W.shape[1], W.shape[1]))
    values, vectors = np.linalg.eigh(covariance)
    if not np.allclose(covariance, covariance.T) or values[0] <= 0:
        raise ValueError("covariance must be symmetric and positive definite")
    return (vectors * np.sqrt(values)) @ vectors.T @ W


def smallest_overlap(H, p, d_k):
    r"""Lower bound of the mean overlap of H subspaces of dimension d_k in p dimensions.

    .. math:: \kappa_{\min} = \max\Big\{0,\; \frac{H d_k - p}{p (H - 1)},\; \frac{2 d_k - p}{d_k}\Big\}

    The second term is attained by tight fusion frames (d_k divides p, H d_k >= p). Source: Theorem 5.1-A.

    >>> smallest_overlap(4, 4, 2)
    0.3333333333333333
    """
    H, p, d_k = _sizes(H, p, d_k)
    if H < 2:
        raise ValueError("H must be at least 2: one head has no overlap")
    return max(0.0, (H * d_k - p) / (p * (H - 1)), (2 * d_k - p) / d_k)


def haar_heads(H, p, d_k, *, rng):
    """Independent heads, each uniformly distributed (Haar) over the subspaces of dimension d_k.

    Returns ``(H, p, d_k)`` with orthonormal columns. Needs d_k <= p. Mean overlap: d_k / p.

    >>> import numpy as np
    >>> W = haar_heads(4, 8, 2, rng=np.random.default_rng(0))
    >>> bool(np.allclose(W.mT @ W, np.eye(2)))
    True
    """
    H, p, d_k = _sizes(H, p, d_k)
    return _orthonormal(rng.normal(size=(H, p, d_k)))


def orthogonal_heads(H, p, d_k, *, rng):
    """Mutually orthogonal heads: the first H * d_k columns of a Haar rotation, cut into H blocks.

    Returns ``(H, p, d_k)``. Needs H * d_k <= p.

    >>> import numpy as np
    >>> W = orthogonal_heads(2, 8, 3, rng=np.random.default_rng(0))
    >>> bool(np.allclose(W[0].T @ W[1], 0))
    True
    """
    H, p, d_k = _sizes(H, p, d_k)
    if H * d_k > p:
        raise ValueError(f"H * d_k must not exceed p for orthogonal heads, got {H} * {d_k} > {p}")
    columns = _orthonormal(rng.normal(size=(p, H * d_k)))
    return np.ascontiguousarray(columns.reshape(p, H, d_k).transpose(1, 0, 2))


def identical_heads(H, p, d_k, *, rng):
    """H copies of one Haar head, ``(H, p, d_k)``.

    >>> import numpy as np
    >>> W = identical_heads(3, 8, 2, rng=np.random.default_rng(0))
    >>> bool((W[0] == W[2]).all())
    True
    """
    H, p, d_k = _sizes(H, p, d_k)
    return np.repeat(haar_heads(1, p, d_k, rng=rng), H, axis=0)


def isoclinic_heads(H, p, d_k, *, kappa, rng):
    r"""Heads with all principal cosines of all pairs equal: ``sqrt(kappa)``, 0 <= kappa <= 1.

    H unit vectors with common inner product sqrt(kappa), each tensored with the identity, in a Haar rotation.
    Returns ``(H, p, d_k)``. Needs H * d_k <= p. Source: Theorem 4.2.A, part 5.

    >>> import numpy as np
    >>> overlap(isoclinic_heads(2, 8, 3, kappa=0.25, rng=np.random.default_rng(0))).round(12)
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """
    if not 0 <= kappa <= 1:
        raise ValueError(f"kappa must lie in [0, 1], got {kappa!r}")
    frame = orthogonal_heads(H, p, d_k, rng=rng)
    values, vectors = np.linalg.eigh((1 - kappa**0.5) * np.eye(H) + kappa**0.5)
    vectors_h = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T  # rows: the H unit vectors
    return np.einsum("hg,gpk->hpk", vectors_h, frame)


def harmonic_heads(H, p, d_k):
    """A tight fusion frame: sum_h P_h = (H d_k / p) I, the smallest mean overlap. Needs d_k | p, H d_k >= p.

    Rows of a real harmonic frame of H vectors in p / d_k dimensions, tensored with the identity.
    Returns ``(H, p, d_k)``. Source: Theorem 5.1-A.

    >>> import numpy as np
    >>> W = harmonic_heads(3, 4, 2)
    >>> bool(np.allclose(sum(w @ w.T for w in W), 1.5 * np.eye(4)))
    True
    """
    H, p, d_k = _sizes(H, p, d_k)
    if p % d_k or H * d_k < p:
        raise ValueError(f"d_k must divide p and H * d_k must reach p, got H = {H}, p = {p}, d_k = {d_k}")
    q = p // d_k
    if q == H:
        frame = np.eye(q)
    else:
        angle = 2 * np.pi * np.outer(np.arange(H), np.arange(1, q // 2 + 1)) / H
        frame = np.sqrt(2 / q) * np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        frame = np.concatenate([frame, np.full((H, 1), q**-0.5)], axis=1) if q % 2 else frame
    return np.einsum("hg,ij->hgij", frame, np.eye(d_k)).reshape(H, p, d_k)


def _basis(name, projections):
    W = _check.array(name, projections, (..., "p", "d_k"))
    if W.shape[-1] > W.shape[-2] or np.any(np.linalg.matrix_rank(W) < W.shape[-1]):
        raise ValueError(f"{name} must have full column rank in every head")
    return np.linalg.qr(W)[0]


def _mean_over_pairs(matrix):
    H = matrix.shape[0]
    if H < 2:
        raise ValueError("projections must hold at least 2 heads: one head has no diversity index")
    return (np.sum(matrix) - np.trace(matrix)) / (H * (H - 1))


def _sizes(H, p, d_k):
    H, p, d_k = (_check.at_least(name, value, 1) for name, value in (("H", H), ("p", p), ("d_k", d_k)))
    if d_k > p:
        raise ValueError(f"d_k must not exceed p, got d_k = {d_k} > p = {p}")
    return H, p, d_k


def _orthonormal(gaussian):
    # QR with the signs of R's diagonal made positive: without them the law is not Haar.
    q, r = np.linalg.qr(gaussian)
    return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
