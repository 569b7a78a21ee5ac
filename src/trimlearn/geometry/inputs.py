"""What is checked about images, pairs of them, and matches before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from trimlearn._utils.warn import warn
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.mosaic.images import ImageLike

__all__ = ["check_flag", "check_images", "check_index", "check_inside", "check_sizes", "refuse_weights", "seed_of"]

MARGIN = 0.1  # of the longer side: how far outside points may be without a warning; a choice, for images cut afterwards
SEEDS = np.iinfo(np.int32).max  # the largest that RandomState draws on every platform


def check_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def seed_of(random_state: Any) -> int:
    """An integer for random numbers: the one given, or one drawn from a RandomState, a Generator, or chance (None).

    >>> seed_of(7)
    7
    """
    if _whole(random_state) and 0 <= int(random_state) < 1 << 32:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(SEEDS))
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        raise ValueError(
            f"random_state must be an integer from 0 to 2**32 - 1, a RandomState, a Generator or None, "
            f"got {random_state!r}."
        )
    return int(check_random_state(random_state).randint(SEEDS))


def refuse_weights(sample_weight: Any) -> None:
    """ValueError where matches are given sample weights."""
    if sample_weight is not None:
        raise ValueError("sample_weight must be None: every match counts once.")


def check_images(images: Iterable[ImageLike]) -> list[ImageLike]:
    """At least two images in a list, of anything that gives one after the other."""
    single = isinstance(images, str | bytes | os.PathLike | np.ndarray)
    found = [] if single or not isinstance(images, Iterable) else list(images)
    if len(found) < 2:
        got = f"a {type(images).__name__}" if single or not isinstance(images, Iterable) else f"{len(found)} of them"
        raise ValueError(f"images must be a list of at least two images (paths or arrays), got {got}.")
    for k, image in enumerate(found):
        if not isinstance(image, str | os.PathLike) and np.ndim(image) < 2:
            what = "None" if image is None else f"of type {type(image).__name__}"
            raise ValueError(f"images must hold paths or arrays of pixels, (h, w) or (h, w, 3); image {k} is {what}.")
    return found


def check_sizes(sizes: Any) -> list[tuple[int, int]]:
    """(w, h) of each of at least two images.

    >>> check_sizes([(640, 480), np.array([640.0, 480.0])])
    [(640, 480), (640, 480)]
    """
    found = list(sizes) if isinstance(sizes, Iterable) and not isinstance(sizes, str | bytes) else []
    if len(found) < 2:
        raise ValueError(f"sizes must hold (w, h) of at least two images, got {sizes!r}.")
    return [_size(size, k) for k, size in enumerate(found)]


def check_index(k: Any, m: int, name: str) -> int:
    """The number of one of m images."""
    if not _whole(k) or not 0 <= int(k) < m:
        raise ValueError(f"{name} must be the number of an image, an integer from 0 to {m - 1}, got {k!r}.")
    return int(k)


def check_inside(points: Floats, size: tuple[int, int], image: str) -> None:
    """ValueError where points (n, 2) cannot be of an image of that size, a warning where they are well outside it."""
    off = _outside(points, size)
    if off.size == 0 or off.max() <= MARGIN * max(size):
        return
    (x, y), (w, h) = points[np.argmax(off)], size
    message = f"sizes are (width, height): point ({x:.4g}, {y:.4g}) of {image} is outside {w} × {h}"
    if _outside(points, (h, w)).max() <= 0:
        raise ValueError(f"{message}; are they swapped?")
    if off.max() > max(size):
        raise ValueError(f"{message}; give its size in the pixels that points are measured in.")
    warn(f"{message}.")


def _outside(points: Floats, size: Sequence[int]) -> Floats:
    """By how many pixels points are outside an image (n,)."""
    last = np.array(size, np.float64) - 1.0
    return np.asarray(np.max(np.maximum(-points, points - last), axis=1, initial=0.0))


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _size(size: Any, k: int) -> tuple[int, int]:
    sides = list(size) if isinstance(size, Iterable) else []
    if len(sides) != 2 or not all(isinstance(a, Real) and float(a).is_integer() and float(a) >= 1 for a in sides):
        raise ValueError(f"sizes must hold (width, height) of each image, two integers >= 1; image {k} has {size!r}.")
    return int(sides[0]), int(sides[1])
