"""What softmax heads cannot escape, given the design: sharp bounds of their noise moments (Theorem 3.1.F)."""

from nwmha import _check


def correlation_floor(delta):
    r"""Smallest possible noise correlation of two heads, given the design.

    .. math:: \operatorname{corr} \ge \operatorname{sech}(\delta / 2)

    ``delta`` >= 0, scalar or array: range over the design of the difference of the two logits. Source: (F1).

    >>> float(correlation_floor(0.0))
    1.0
    """
    delta = _check.array("delta", delta, (...,))
    _refuse_negative("delta", delta)
    xp = _check.namespace(delta)
    half = xp.exp(-delta / 2)
    return 2 * half / (1 + half**2)


def covariance_bounds(spread, other_spread):
    r"""Sharp bounds of n C / sigma^2 for two heads, given the design.

    .. math:: \frac{\cosh^2\frac{\Delta - \Delta'}{4}}{\cosh^2\frac{\Delta + \Delta'}{4}}
        \le \frac{n\,C_{hh'}(X)}{\sigma^2} \le
        \frac{\cosh^2\frac{\Delta + \Delta'}{4}}{\cosh^2\frac{\Delta - \Delta'}{4}}

    ``spread``, ``other_spread`` >= 0, scalars or arrays: ranges of the two heads' logits over the design.
    Returns ``(lower, upper)``. Source: (F2).

    >>> low, high = covariance_bounds(2.0, 2.0)
    >>> round(float(low), 12)
    0.419974341614
    """
    spread, other = (_check.array(n, v, (...,)) for n, v in (("spread", spread), ("other_spread", other_spread)))
    _refuse_negative("spread", spread)
    _refuse_negative("other_spread", other)
    xp = _check.namespace(spread, other)
    ratio = (xp.cosh((spread + other) / 4) / xp.cosh((spread - other) / 4)) ** 2
    return 1 / ratio, ratio


def effective_sample_size(weights):
    r"""Kish's effective sample size of weights that sum to one.

    .. math:: n_{\mathrm{eff}} = 1 \Big/ \sum_i w_i^2

    ``weights (..., n)``; returns ``(...)``, between 1 and n for non-negative weights. Source: Corollary C5.

    >>> import numpy as np
    >>> float(effective_sample_size(np.full(4, 0.25)))
    4.0
    """
    weights = _check.array("weights", weights, (..., "n"))
    xp = _check.namespace(weights)
    total = xp.sum(weights, axis=-1)
    if bool(xp.any(xp.abs(total - 1) > 1e-6)):
        raise ValueError("weights must sum to one over the last axis")
    return 1 / xp.sum(weights**2, axis=-1)


def _refuse_negative(name, value):
    if bool((value < 0).any()):
        raise ValueError(f"{name} must be non-negative")
