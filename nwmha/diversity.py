"""Families of heads: projections with orthonormal columns (chapters 3 to 5)."""

import numpy as np

from nwmha import _check


def haar_heads(H, p, d_k, *, rng):
    """Independent heads, each uniformly distributed (Haar) over the subspaces of dimension d_k.

    Returns ``(H, p, d_k)`` with orthonormal columns. Needs d_k <= p.

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


def _sizes(H, p, d_k):
    H, p, d_k = (_check.at_least(name, value, 1) for name, value in (("H", H), ("p", p), ("d_k", d_k)))
    if d_k > p:
        raise ValueError(f"d_k must not exceed p, got d_k = {d_k} > p = {p}")
    return H, p, d_k


def _orthonormal(gaussian):
    # QR with the signs of R's diagonal made positive: without them the law is not Haar.
    q, r = np.linalg.qr(gaussian)
    return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
