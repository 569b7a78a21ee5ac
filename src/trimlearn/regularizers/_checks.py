"""What the terms of r2 check about their arguments, and the tolerance their sets share."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy


def check_reals(name: str, value: Any) -> np.ndarray:
    """``value`` as a float64 array; ValueError unless it holds real numbers, NaN excluded."""
    try:
        reals = np.asarray(to_numpy(value), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a number or an array of numbers, got {value!r}.") from error
    if np.isnan(reals).any():
        raise ValueError(f"{name} must not be NaN or None, got {value!r}.")
    return reals


def check_alpha(alpha: Any) -> None:
    """A penalty strength, or one per coordinate: finite and not negative."""
    reals = check_reals("alpha", alpha)
    if not (np.isfinite(reals) & (reals >= 0)).all():
        raise ValueError(f"alpha must be finite and >= 0 (0 switches the penalty off), got {alpha!r}.")


def check_matrix(x: Array, term: str) -> None:
    """A 2-D x."""
    if x.ndim != 2:
        raise ValueError(f"{term} needs a 2-D x, got shape {tuple(x.shape)}; reshape x to (rows, columns).")


def match(name: str, value: Any, x: Array) -> Array:
    """``value`` in the namespace and dtype of x; ValueError unless x is floating-point and it broadcasts to x."""
    if type(x) is np.ndarray and x.dtype.kind == "f" and type(value) is float:  # asked three times a step
        return x.dtype.type(value)
    if not namespace(x).isdtype(x.dtype, "real floating"):
        raise ValueError(f"x must hold real floating-point numbers, got dtype {x.dtype}; convert it first.")
    array = asarray_like(value, x)
    try:
        fits = np.broadcast_shapes(tuple(array.shape), tuple(x.shape)) == tuple(x.shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} of shape {tuple(array.shape)} does not broadcast to x of shape {tuple(x.shape)}; "
            "give a scalar or one value per coordinate of x."
        )
    return array


def check_step(gamma: float | Array, x: Array, coupled: str | None = None) -> Array:
    """The step as an array that broadcasts to x. A term that couples the coordinates gives its name: scalars only."""
    xp = namespace(x)
    step = match("gamma", gamma, x)
    if coupled is not None and step.ndim:
        raise ValueError(f"gamma must be a scalar: {coupled} couples the coordinates. Got shape {tuple(step.shape)}.")
    if not bool(xp.all((step > 0) & xp.isfinite(step))):
        raise ValueError(f"gamma must be finite and > 0, got {gamma!r}.")
    return step


def rounding(x: Array) -> float:
    """The relative slack within which a point of x's dtype counts as feasible: √eps."""
    return sqrt(float(namespace(x).finfo(x.dtype).eps))


def positive_part(x: Array) -> Array:
    """max(x, 0)."""
    xp = namespace(x)
    return xp.maximum(x, xp.zeros_like(x))
