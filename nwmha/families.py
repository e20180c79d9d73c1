"""Families of heads, from identical to as diverse as can be (chapters 3 to 6).

Every function returns ``(heads, p, d_k)`` with orthonormal columns and refuses sizes for which the family does not
exist with a ``ValueError`` that names the argument.
"""

import numpy as np

from nwmha import _check


def haar_heads(H, p, d_k, *, rng):
    """Independent heads, each uniformly distributed (Haar) over the subspaces of dimension d_k.

    Returns ``(H, p, d_k)`` with orthonormal columns. Needs d_k <= p. Mean overlap: d_k / p.

    >>> import numpy as np
    >>> W = haar_heads(4, 8, 2, rng=np.random.default_rng(0))
    >>> bool(np.allclose(W.mT @ W, np.eye(2)))
    True
    """
    H, p, d_k = _check.sizes(H, p, d_k)
    return _orthonormal(rng.normal(size=(H, p, d_k)))


def orthogonal_heads(H, p, d_k, *, rng):
    """Mutually orthogonal heads: the first H * d_k columns of a Haar rotation, cut into H blocks.

    Returns ``(H, p, d_k)``. Needs H * d_k <= p.

    >>> import numpy as np
    >>> W = orthogonal_heads(2, 8, 3, rng=np.random.default_rng(0))
    >>> bool(np.allclose(W[0].T @ W[1], 0))
    True
    """
    H, p, d_k = _check.sizes(H, p, d_k)
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
    H, p, d_k = _check.sizes(H, p, d_k)
    return np.repeat(haar_heads(1, p, d_k, rng=rng), H, axis=0)


def isoclinic_heads(H, p, d_k, *, kappa, rng):
    r"""Heads with all principal cosines of all pairs equal: ``sqrt(kappa)``, 0 <= kappa <= 1.

    H unit vectors with common inner product sqrt(kappa), each tensored with the identity, in a Haar rotation.
    Returns ``(H, p, d_k)``. Needs H * d_k <= p. Source: Theorem 4.2.A, part 5.

    >>> import numpy as np
    >>> from nwmha.diversity import overlap
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
    H, p, d_k = _check.sizes(H, p, d_k)
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


def clustered_heads(H, p, d_k, *, clusters, rng):
    """Heads in ``clusters`` groups of equal size: identical within a group, orthogonal between groups.

    Returns ``(H, p, d_k)``. Needs ``clusters`` to divide H and clusters * d_k <= p. Of all heads with their
    diversity index these have the largest noise variance. Source: Theorem 4.2.A, part 3.

    >>> import numpy as np
    >>> from nwmha.diversity import overlap
    >>> overlap(clustered_heads(4, 8, 2, clusters=2, rng=np.random.default_rng(0)))[0].round(12)
    array([1., 1., 0., 0.])
    """
    H, p, d_k = _check.sizes(H, p, d_k)
    if H % _check.at_least("clusters", clusters, 1):
        raise ValueError(f"clusters must divide H, got {clusters} clusters of {H} heads")
    if clusters * d_k > p:
        raise ValueError(f"clusters * d_k must not exceed p, got {clusters} * {d_k} > {p}")
    return np.repeat(orthogonal_heads(clusters, p, d_k, rng=rng), H // clusters, axis=0)


def simplex_heads(p, d_k):
    """One head more than fits: p / d_k + 1 heads with all principal cosines of all pairs equal to d_k / p.

    The corners of a regular simplex in p / d_k dimensions, tensored with the identity. Returns
    ``(p / d_k + 1, p, d_k)``; d_k must divide p and be smaller. Source: Theorem 5.1, part E.

    >>> from nwmha.diversity import overlap
    >>> float(overlap(simplex_heads(6, 2))[0, 1].round(12))
    0.111111111111
    """
    _, p, d_k = _check.sizes(1, p, d_k)
    q = p // d_k
    if p % d_k or q == 1:
        raise ValueError(f"d_k must divide p and be smaller than p, got p = {p}, d_k = {d_k}")
    _, _, vectors = np.linalg.svd(np.ones((1, q + 1)))
    corners = vectors[1:].T * ((q + 1) / q) ** 0.5  # rows: the corners of the simplex, centred
    return np.einsum("hg,ij->hgij", corners, np.eye(d_k)).reshape(q + 1, p, d_k)


def _orthonormal(gaussian):
    # QR with the signs of R's diagonal made positive: without them the law is not Haar.
    q, r = np.linalg.qr(gaussian)
    return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
