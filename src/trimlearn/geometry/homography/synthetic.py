"""Made-up matches with a known homography, to measure with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trimlearn.geometry.homography.four_point import four_point
from trimlearn.geometry.homography.points import Bools, Floats, PointPairs
from trimlearn.geometry.homography.transfer import transform

__all__ = ["SIZE", "SyntheticMatches", "corner_error", "random_homography", "random_scene"]

SIZE = (1000.0, 800.0)  # width and height of both images, in pixels (a choice: round numbers)
COVER = 0.1  # of the first image, at least, is also in the second: with less even a person sees no overlap (a choice)


class SyntheticMatches(NamedTuple):
    """Matches src, dst (n, 2), the homography behind the good ones, which these are, and scores that hint at them."""

    src: Floats
    dst: Floats
    H: Floats
    good: Bools
    scores: Floats


def corner_error(H: Floats, true: Floats, size: tuple[float, float] = SIZE) -> float:
    """The mean distance, in pixels, between the images of the four corners of an image of that width and height.

    >>> corner_error(np.eye(3), np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]))
    5.0
    """
    return float(np.linalg.norm(transform(H, _corners(size)) - transform(true, _corners(size)), axis=1).mean())


def random_homography(rng: np.random.Generator, tilt: float = 0.25) -> Floats:
    """A zoom by up to 2, any turn, a shift, corners moved by up to ``tilt`` of the image: strong perspective."""
    size = np.array(SIZE)
    while True:
        angle, zoom = rng.uniform(-np.pi, np.pi), np.exp(rng.uniform(-0.7, 0.7))
        turn = zoom * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        moved = _corners(SIZE) + rng.uniform(-tilt, tilt, (4, 2)) * size
        pairs = PointPairs(_corners(SIZE), (moved - size / 2) @ turn.T + size / 2 + rng.uniform(-0.15, 0.15, 2) * size)
        found = four_point(pairs.normalised, np.array([[0, 1, 2, 3]]))
        if len(found):  # else the corners have changed their order
            H = pairs.to_pixels(found[0])
            return np.asarray(H / H[2, 2])


def random_scene(
    rng: np.random.Generator, n: int = 1000, contamination: float = 0.8, noise: float = 1.0, tilt: float = 0.25
) -> SyntheticMatches:
    """n matches in images of SIZE: good ones with normal noise of that many pixels in dst, bad ones uniform in both.

    >>> scene = random_scene(np.random.default_rng(0), n=100, contamination=0.7)
    >>> scene.src.shape, int(scene.good.sum())
    ((100, 2), 30)
    """
    count = n - round(n * contamination)
    src, dst, H = _seen(rng, n, tilt)
    good = np.arange(n) < count
    dst[good] += noise * rng.standard_normal((count, 2))
    src[~good], dst[~good] = rng.uniform(0, SIZE, (2, n - count, 2))
    scores = rng.normal(np.where(good, 1.0, 0.0), 1.0)
    order = rng.permutation(n)
    return SyntheticMatches(src[order], dst[order], H, good[order], scores[order])


def _seen(rng: np.random.Generator, n: int, tilt: float) -> tuple[Floats, Floats, Floats]:
    """n points that are in both images, their images, and the homography between them."""
    tries = round(10 * n / COVER)
    while True:
        H = random_homography(rng, tilt)
        src = rng.uniform(0, SIZE, (tries, 2))
        dst = transform(H, src)
        inside = np.flatnonzero(((dst >= 0) & (dst <= SIZE)).all(axis=1))
        if len(inside) >= max(n, COVER * tries):
            return src[inside[:n]], dst[inside[:n]], H


def _corners(size: tuple[float, float]) -> Floats:
    w, h = size
    return np.array([[0.0, 0.0], [w, 0.0], [w, h], [0.0, h]])
