"""Acceptance rules: pure functions from a quantity and its reference to an :class:`Outcome`.

Each rule states its error rate: ``exact``, ``close``, ``slope`` and ``order`` are deterministic; ``mean`` gives a
false alarm with the probability that fixes ``critical``; ``paired`` accepts a mean that is not positive with
probability below 3e-7 at the default z = 5.
"""

import math
from typing import NamedTuple

import numpy as np

from nwmha import _check


class Outcome(NamedTuple):
    """What a rule found: the statistic, the threshold it was held against, and whether it passed."""

    statistic: float
    threshold: float | list[float]
    accepted: bool
    scores: tuple[float, ...] = ()


def exact(left, right):
    """Accept iff left - right is exactly 0, for integers, fractions and symbolic expressions (sympy).

    The statistic is the number of entries that differ. Floating-point numbers are refused: use ``close``.
    """
    pairs = list(zip(_flat(left), _flat(right), strict=True))
    if not pairs:
        raise ValueError("left must not be empty")
    if any(isinstance(side, (float, complex, np.floating)) for pair in pairs for side in pair):
        raise ValueError("left and right must be exact numbers or expressions, got a float; use close")
    wrong = sum(_exact_difference(a, b) != 0 for a, b in pairs)
    return Outcome(float(wrong), 0.0, wrong == 0)


def close(left, right, *, tolerance):
    """Accept iff max|left - right| <= tolerance * max(1, max|right|).

    The statistic is max|left - right| / max(1, max|right|), reported as tolerance / 10 when it is smaller:
    rounding errors differ from machine to machine, and a record must not.
    """
    left, right = _check.array("left", np.asarray(left), (...,)), _check.array("right", np.asarray(right), (...,))
    if left.shape != right.shape:
        raise ValueError(f"left must have the shape of right, {right.shape}, got {left.shape}")
    tolerance = _check.positive("tolerance", tolerance)
    residual = float(np.max(np.abs(left - right)) / max(1.0, np.max(np.abs(right))))
    return Outcome(max(residual, tolerance / 10), tolerance, residual <= tolerance)


def mean(value, standard_error, expected, *, critical):
    """Accept iff max|value - expected| / standard_error <= critical: a two-sided z test per entry."""
    value, expected = np.broadcast_arrays(*(_finite("mean", value), _finite("expected", expected)))
    error = np.broadcast_to(_finite("standard_error", standard_error), value.shape)
    if np.any(error <= 0):
        raise ValueError("standard_error must be above 0 in every entry")
    z = ((value - expected) / error).ravel()
    largest = float(np.max(np.abs(z)))
    return Outcome(largest, critical, largest <= critical, tuple(z.tolist()))


def slope(x, y, *, interval):
    """Accept iff the least-squares slope of log y on log x lies in the interval."""
    x, y = _finite("x", x), _finite("y", y)
    if x.shape != y.shape or x.ndim != 1 or x.size < 3:
        raise ValueError(f"x and y must be (k,) with k >= 3, got {x.shape} and {y.shape}")
    if np.any(x <= 0) or np.any(y <= 0):
        raise ValueError("x and y must be positive to have a logarithmic slope")
    low, high = (float(v) for v in interval)
    fitted = float(np.polyfit(np.log(x), np.log(y), 1)[0])
    return Outcome(fitted, [low, high], low <= fitted <= high)


def order(smaller, larger, *, margin=0.0):
    """Accept iff larger - smaller > margin in every entry.

    The statistic is the smallest difference, reported as 0 below 1e-9: where a bound is attained, the rest is
    rounding error, which differs from machine to machine.
    """
    gap = float(np.min(_finite("larger", larger) - _finite("smaller", smaller)))
    return Outcome(gap if abs(gap) >= 1e-9 else 0.0, float(margin), gap > margin)


def paired(differences, *, z=5.0):
    """Accept iff the mean of the differences exceeds z standard errors."""
    d = _finite("differences", differences).ravel()
    if d.size < 2 or np.std(d) == 0:
        raise ValueError("differences must hold at least 2 values that are not all equal")
    score = float(np.mean(d) / (np.std(d, ddof=1) / math.sqrt(d.size)))
    return Outcome(score, float(z), score > z)


def _flat(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


def _exact_difference(a, b):
    difference = a - b
    return difference.simplify() if hasattr(difference, "simplify") else difference


def _finite(name, value):
    return _check.array(name, np.asarray(value, dtype=float), (...,))
