"""How different are the heads? Principal angles, overlap, diversity index and frame potential (chapters 3 to 5).

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
    H, p, d_k = _check.sizes(H, p, d_k)
    if H < 2:
        raise ValueError("H must be at least 2: one head has no overlap")
    return max(0.0, (H * d_k - p) / (p * (H - 1)), (2 * d_k - p) / d_k)


def frame_potential(projections):
    r"""Sum of the squared overlaps of all ordered pairs of heads, each head with itself included.

    .. math:: \sum_{h,h'} \| W_h^\top W_{h'} \|_F^2 = \Big\| \sum_h P_h \Big\|_F^2 \ge \frac{(H d_k)^2}{p}

    for orthonormal bases ``W_h`` of the key subspaces. Parameters: ``projections (heads, p, d_k)``. Equality iff
    the projections sum to a multiple of the identity (tight fusion frame). Source: Theorem 5.1, part A.

    >>> import numpy as np
    >>> float(frame_potential(np.stack([np.eye(4)[:, :2], np.eye(4)[:, 2:]])))
    4.0
    """
    kappa = overlap(projections)
    return np.sum(kappa) * projections.shape[-1]


def random_index(H, p, d_k):
    r"""Mean and standard deviation of the diversity index of independent uniformly random subspaces.

    .. math:: \mathrm E\,\mathrm{HDI} = 1 - \frac{d_k}p, \qquad \operatorname{Var} \mathrm{HDI}
        = \frac{2}{H(H-1)} \cdot \frac{2 (p - d_k)^2}{p^2 (p - 1)(p + 2)}

    Source: Proposition 5.2.

    >>> tuple(round(v, 4) for v in random_index(4, 16, 4))
    (0.75, 0.0264)
    """
    H, p, d_k = _check.sizes(H, p, d_k)
    if H < 2 or p < 2:
        raise ValueError(f"H and p must be at least 2, got H = {H}, p = {p}")
    variance = 2 * (p - d_k) ** 2 / (p**2 * (p - 1) * (p + 2))
    return 1 - d_k / p, (2 * variance / (H * (H - 1))) ** 0.5


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
