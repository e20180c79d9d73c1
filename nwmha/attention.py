"""One attention head as a Nadaraya-Watson estimator (chapter 2).

Shapes: ``projections (heads, p, d_k)``, ``queries (m, p)``, ``design (n, p)``, ``weights (heads, m, n)``.
Every function takes numpy arrays or torch tensors and returns the same kind.
"""

from typing import Any, NamedTuple

from nwmha import _check


def softmax_weights(queries, keys, *, inverse_temperature=None):
    r"""Attention weights of one head for queries and keys that are already projected.

    .. math:: w_i(q) = e^{\beta\langle q, k_i\rangle} \Big/ \sum_j e^{\beta\langle q, k_j\rangle}

    Parameters: ``queries (..., m, d_k)``, ``keys (..., n, d_k)``, ``inverse_temperature`` beta > 0
    (default ``1 / sqrt(d_k)``). Returns ``(..., m, n)``; each row sums to one. The largest logit of a
    row is subtracted first, so logits of any finite size are safe. Source: Theorem 2.1.

    >>> import numpy as np
    >>> softmax_weights(np.array([[1.0, 0.0]]), np.array([[9e4, 0.0], [0.0, 1.0]]))
    array([[1., 0.]])
    """
    queries = _check.array("queries", queries, (..., "m", "d_k"))
    keys = _check.array("keys", keys, (..., "n", queries.shape[-1]), like=queries)
    return _softmax(_inverse_temperature(inverse_temperature, queries.shape[-1]) * (queries @ keys.mT))


def head_weights(projections, queries, design, *, query_projections=None, inverse_temperature=None):
    r"""Attention weights of a stack of heads.

    .. math:: w_i^h(x) \propto \exp\big(\beta\,\langle W_Q^{h\top} x,\; W_K^{h\top} X_i\rangle\big)

    Parameters: ``projections (heads, p, d_k)`` are the key projections W_K; ``query_projections``, of the
    same shape, are W_Q (default: W_K, "tied" heads); ``queries (..., m, p)``; ``design (..., n, p)``;
    ``inverse_temperature`` beta > 0 (default ``1 / sqrt(d_k)``).
    Returns ``(..., heads, m, n)``. Source: Theorem 2.1.

    >>> import numpy as np
    >>> head_weights(np.ones((3, 2, 1)), np.zeros((1, 2)), np.eye(2)).shape
    (3, 1, 2)
    """
    keys, transformed = project(projections, queries, design, query_projections=query_projections)
    return _softmax(_inverse_temperature(inverse_temperature, keys.shape[-1]) * (transformed @ keys.mT))


def project(projections, queries, design, *, query_projections=None):
    """Keys ``(..., heads, n, d_k)`` and transformed queries ``(..., heads, m, d_k)`` of a stack of heads.

    >>> import numpy as np
    >>> keys, queries = project(np.ones((3, 2, 1)), np.zeros((5, 2)), np.eye(2))
    >>> keys.shape, queries.shape
    ((3, 2, 1), (3, 5, 1))
    """
    projections = _check.array("projections", projections, ("heads", "p", "d_k"))
    if query_projections is None:
        query_projections = projections
    query_projections = _check.array("query_projections", query_projections, tuple(projections.shape))
    p = projections.shape[1]
    queries = _check.array("queries", queries, (..., "m", p), like=projections)
    design = _check.array("design", design, (..., "n", p), like=projections)
    return design[..., None, :, :] @ projections, queries[..., None, :, :] @ query_projections


def nadaraya_watson(kernel, response):
    r"""Kernel-weighted mean of the responses.

    .. math:: \hat m(x) = \sum_i K(x, X_i) Y_i \Big/ \sum_i K(x, X_i)

    Parameters: ``kernel (..., m, n)``, values K(x, X_i) >= 0 with a positive sum over i (attention weights
    are such values); ``response (n,)`` or ``(n, q)``. Returns ``(..., m)`` or ``(..., m, q)``, in the
    units of the response. Source: Nadaraya (1964), Watson (1964); Theorem 2.1.

    >>> import numpy as np
    >>> nadaraya_watson(np.array([[1.0, 3.0]]), np.array([0.0, 4.0]))
    array([3.])
    """
    kernel = _check.array("kernel", kernel, (..., "m", "n"))
    xp = _check.namespace(kernel)
    matrix = len(getattr(response, "shape", ())) == 2
    response = _check.array(
        "response", response, (kernel.shape[-1], "q") if matrix else (kernel.shape[-1],), like=kernel
    )
    total = xp.sum(kernel, axis=-1, keepdims=True)
    if bool(xp.any(kernel < 0)) or bool(xp.any(total <= 0)):
        raise ValueError("kernel must be non-negative with a positive sum over the design at every query")
    normalised = kernel / total
    return normalised @ response if matrix else (normalised @ response[:, None])[..., 0]


def gaussian_weights(queries, keys, *, bandwidth, log_multiplier=None):
    r"""Weights of the Gaussian Nadaraya-Watson estimator, optionally with a multiplier per key.

    .. math:: w_i(q) \propto \omega_i\, e^{-|q - k_i|^2 / 2 b^2}

    Parameters: ``queries (..., m, d_k)``, ``keys (..., n, d_k)``, ``bandwidth`` b > 0 in the units of the
    keys, ``log_multiplier (..., n)`` = log omega_i (default 0). Returns ``(..., m, n)``; rows sum to one.
    Source: Theorem 2.2.

    >>> import numpy as np
    >>> gaussian_weights(np.array([[0.0]]), np.array([[-1.0], [1.0]]), bandwidth=0.5)
    array([[0.5, 0.5]])
    """
    queries = _check.array("queries", queries, (..., "m", "d_k"))
    keys = _check.array("keys", keys, (..., "n", queries.shape[-1]), like=queries)
    xp = _check.namespace(queries, keys)
    # Differences, not |q|^2 - 2 q k + |k|^2: an independent route to the distance, and no cancellation.
    distance = xp.sum((queries[..., :, None, :] - keys[..., None, :, :]) ** 2, axis=-1)
    log_kernel = -distance / (2 * _check.positive("bandwidth", bandwidth) ** 2)
    if log_multiplier is not None:
        multiplier = _check.array("log_multiplier", log_multiplier, (..., keys.shape[-2]), like=keys)
        log_kernel = log_kernel + multiplier[..., None, :]
    return _softmax(log_kernel)


def gaussian_bandwidth(inverse_temperature, *, key_norm=1.0):
    r"""Bandwidth of the Gaussian kernel that equals the softmax kernel when all keys have one norm.

    .. math:: b = \beta^{-1/2} / |k|

    ``key_norm`` is the unit of length: 1 gives the bandwidth in raw key coordinates, the common norm |k|
    of the keys gives it on the unit sphere. Source: Theorem 2.2.

    >>> gaussian_bandwidth(1 / 8)   # d_k = 64: beta = 1/8, b = 64 ** (1/4)
    2.8284271247461903
    """
    return _check.positive("inverse_temperature", inverse_temperature) ** -0.5 / _check.positive("key_norm", key_norm)


def transported_query(projections, query_projections, queries):
    r"""The point around which an asymmetric head smooths.

    .. math:: z_h(x) = W_K^h (W_K^{h\top} W_K^h)^{+} W_Q^{h\top} x

    The head (W_Q, W_K) at x has the weights of the symmetric head (W_K, W_K) at z(x). The plus is the
    pseudo-inverse, the inverse if W_K has full column rank.
    Parameters: ``projections``, ``query_projections (heads, p, d_k)``, ``queries (m, p)``.
    Returns ``(heads, m, p)``.
    Source: Theorem 2.3 (c).

    >>> import numpy as np
    >>> eye = np.eye(2)[None]
    >>> transported_query(eye, -eye, np.array([[1.0, 2.0]]))
    array([[[-1., -2.]]])
    """
    projections = _check.array("projections", projections, ("heads", "p", "d_k"))
    query_projections = _check.array("query_projections", query_projections, tuple(projections.shape))
    queries = _check.array("queries", queries, ("m", projections.shape[1]), like=projections)
    xp = _check.namespace(projections)
    return queries @ query_projections @ xp.linalg.pinv(projections)


class LayerReduction(NamedTuple):
    """What the value and output maps of a multi-head layer do with the heads (Theorem 2.4).

    ``maps (heads, p + q, q)`` are M_h = W_V^h W_O^h, ``alpha (heads,)`` the ensemble weights read off
    them, ``residual (heads,)`` the relative distance of M_h from an exact ensemble (0: exact).
    """

    maps: Any
    alpha: Any
    residual: Any


def layer_reduction(value_projections, output_projections, *, covariates):
    r"""Read the ensemble weights off the value and output maps of a multi-head layer.

    .. math:: M_h = W_V^h W_O^h,\quad \alpha_h = \tfrac1q \operatorname{tr} M_h^{(y)},\quad
        r_h = \|M_h - (0; \alpha_h I_q)\|_F / \|M_h\|_F

    A layer whose tokens are t = (x, y) is the ensemble sum_h alpha_h m_h(x) iff all residuals vanish.
    Parameters: ``value_projections (heads, p + q, d_v)``, ``output_projections (heads, d_v, q)``,
    ``covariates`` = p, the number of leading token entries that hold x. Source: Theorem 2.4 (a).

    >>> import numpy as np
    >>> read_y = np.array([[[0.0], [0.0], [1.0]]])          # p = 2, q = 1, one head
    >>> layer_reduction(read_y, np.array([[[0.5]]]), covariates=2).alpha
    array([0.5])
    """
    values = _check.array("value_projections", value_projections, ("heads", "p + q", "d_v"))
    heads, width, d_v = values.shape
    outputs = _check.array("output_projections", output_projections, (heads, d_v, "q"), like=values)
    p, q = _check.at_least("covariates", covariates, 0), outputs.shape[-1]
    if p + q != width:
        raise ValueError(f"covariates must be {width - q} (token width {width} less q = {q}), got {covariates}")
    xp = _check.namespace(values)
    maps = values @ outputs
    alpha = xp.linalg.trace(maps[:, p:, :]) / q
    exact = xp.concat([xp.zeros((heads, p, q), dtype=maps.dtype), alpha[:, None, None] * xp.eye(q)], axis=1)
    norm = xp.linalg.vector_norm(maps, axis=(1, 2))
    if bool(xp.any(norm == 0)):
        raise ValueError("value_projections @ output_projections must not vanish for any head")
    return LayerReduction(maps, alpha, xp.linalg.vector_norm(maps - exact, axis=(1, 2)) / norm)


def _softmax(logits):
    xp = _check.namespace(logits)
    shifted = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
    return shifted / xp.sum(shifted, axis=-1, keepdims=True)


def _inverse_temperature(value, d_k):
    return d_k**-0.5 if value is None else _check.positive("inverse_temperature", value)
