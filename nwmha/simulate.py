"""Simulations that need only pairs of logits: given the query, two normal numbers a key replace a whole design."""

import numpy as np
from scipy.special import softmax

from nwmha import _check


def paired_products(u, n, *, beta, replicates, rng, flip=False):
    """n <w, w'> for two heads with squared principal cosines u, one value a replicate, common random numbers.

    The Gaussian-design model of :mod:`nwmha.gaussian`. Given the key features a, b of the query, the logits of the two
    heads are independent pairs of normal numbers with standard deviations beta |a|, beta |b| and covariance
    beta^2 sum_j c_j a_j b_j; ``flip`` changes its sign (opposite queries). Parameters: ``u (k, d_k)`` in [0, 1].
    Returns ``(k, replicates)``; the rows share all random numbers. Mean: S_n(u) of Theorem 4.2.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> paired_products(np.zeros((1, 3)), 1, beta=0.5, replicates=2, rng=rng)      # one key: all weights are 1
    array([[1., 1.]])
    """
    u, n = _check.array("u", u, ("k", "d_k")), _check.at_least("n", n, 1)
    beta, replicates = _check.positive("beta", beta), _check.at_least("replicates", replicates, 1)
    if np.any((u < 0) | (u > 1)):
        raise ValueError("u must lie in [0, 1]: squared cosines")
    a, free = rng.normal(size=(2, replicates, u.shape[1]))
    z = rng.normal(size=(2, replicates, n))
    length = np.linalg.norm(a, axis=1)
    w = softmax(beta * length[:, None] * z[0], axis=1)
    found = np.empty((len(u), replicates))
    for row, cosine in zip(found, np.sqrt(u)):
        b = cosine * a + np.sqrt(1 - cosine**2) * free
        other = np.linalg.norm(b, axis=1)
        rho = np.clip(np.sum(cosine * a * b, axis=1) / (length * other), -1, 1) * (-1 if flip else 1)
        mixed = rho[:, None] * z[0] + np.sqrt(1 - rho[:, None] ** 2) * z[1]
        row[:] = n * np.sum(w * softmax(beta * other[:, None] * mixed, axis=1), axis=1)
    return found
