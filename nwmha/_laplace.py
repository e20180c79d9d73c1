"""Quadrature for ratios of sums over Gaussian logits: 1 / S^2 = int lambda exp(-lambda S) d lambda, trapezoidal sums.

With k = exp(s z - s^2 / 2), z standard normal. Exponents are added before they are taken, so that n may be 1e100.
"""

import numpy as np
from scipy.special import ndtri

STEP = 0.25  # in log lambda


def normal_grid(s, n):
    # Trapezoidal sums converge exponentially; exp(-lambda exp(sz)) stays bounded for |Im z| < pi / (2 s) only.
    step = min(0.25, 0.3 / s) if s else 0.25
    z = np.arange(
        -9, min(9 + 2 * s, (4 * np.log(n) + 64) ** 0.5) + step, step
    )  # beyond, n^2 times the density vanishes
    return z, step * np.exp(-(z**2) / 2) / (2 * np.pi) ** 0.5


def laplace_grid(s, n, depth):
    # log lambda. What is cut off below is of relative size exp(-depth); above, (E exp(-lambda k))^n has vanished.
    top = (4 * np.log(n) + 64) ** 0.5
    low = -np.log(n) - min(s**2 / 2, s * top - s**2 / 2) - depth
    z = -ndtri(60 / n) if n > 200 else -9.0
    return np.arange(low, s**2 / 2 - s * z + 4, STEP)


def power(loss, exponent):
    return np.exp(exponent * np.log1p(-np.minimum(loss, 1 - 1e-16)))


def laplace(s, n):
    """Normal nodes and weights, lambda k ``(lambda, z)``, 1 - E exp(-lambda k)."""
    z, weight = normal_grid(s, n)
    scaled = np.exp(np.minimum(laplace_grid(s, n, 15)[:, None] + (s * z - s**2 / 2), 300))
    return z, weight, scaled, -np.expm1(-scaled) @ weight


def single(s, n):
    _, weight, scaled, loss = laplace(s, n)
    return n**2 * STEP * np.sum((scaled**2 * np.exp(-scaled)) @ weight * power(loss, n - 1))


def output_square(s, n):
    z, weight, scaled, loss = laplace(s, n)
    survive = np.exp(-scaled)
    squares = ((z * scaled) ** 2 * survive) @ weight * power(loss, n - 1)
    mixed = ((z * scaled * survive) @ weight) ** 2 * power(loss, n - 2)
    return n * STEP * np.sum(squares + (n - 1) * mixed)
