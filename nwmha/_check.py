"""Boundary checks: bad input is refused here, with the argument's name, so that no NaN travels inward."""

from array_api_compat import array_namespace, is_array_api_obj


def namespace(*arrays):
    """Array namespace shared by the arguments; None, Python scalars and lists count as numpy."""
    real = [a for a in arrays if is_array_api_obj(a)]
    if real:
        return array_namespace(*real)
    import array_api_compat.numpy as xp

    return xp


def array(name, value, shape, *, like=None):
    """Return ``value`` as a finite floating array of the given shape pattern, or raise ``ValueError``.

    ``shape`` is a tuple of names and integers, e.g. ``("heads", "p", "d_k")``; a leading ``...``
    allows batch dimensions. Every named size must be at least 1.
    """
    try:
        xp = namespace(value, like)
    except TypeError:
        raise ValueError(f"{name} must come from the same array library as the other arguments") from None
    value = value if is_array_api_obj(value) else xp.asarray(value)
    if not xp.isdtype(value.dtype, "real floating"):
        value = xp.astype(value, xp.float64)
    batch, core = (True, shape[1:]) if shape and shape[0] is ... else (False, shape)
    wanted = "(" + ", ".join(["..."] * batch + [str(s) for s in core]) + ("," if len(shape) == 1 else "") + ")"
    fits = value.ndim >= len(core) if batch else value.ndim == len(core)
    actual = value.shape[value.ndim - len(core) :] if fits else ()
    fits = fits and all(isinstance(s, str) or s == size for s, size in zip(core, actual))
    if not fits:
        raise ValueError(f"{name} must be {wanted}, got {tuple(value.shape)}")
    if 0 in value.shape:
        raise ValueError(f"{name} must not be empty, got shape {tuple(value.shape)}")
    if not bool(xp.all(xp.isfinite(value))):
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return value


def positive(name, value):
    """Return ``value`` as a float, or raise ``ValueError`` unless it is a finite number above zero."""
    number = float(value)
    if not 0 < number < float("inf"):
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    return number


def at_least(name, value, lowest):
    """Return ``value`` if it is an integer not below ``lowest``, else raise ``ValueError``."""
    if isinstance(value, bool) or int(value) != value or value < lowest:
        raise ValueError(f"{name} must be an integer of at least {lowest}, got {value!r}")
    return int(value)


def sizes(H, p, d_k):
    """Return H heads of d_k dimensions in p as integers, or raise ``ValueError``."""
    H, p, d_k = (at_least(name, value, 1) for name, value in (("H", H), ("p", p), ("d_k", d_k)))
    if d_k > p:
        raise ValueError(f"d_k must not exceed p, got d_k = {d_k} > p = {p}")
    return H, p, d_k
