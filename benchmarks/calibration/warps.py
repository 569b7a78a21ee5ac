"""The weights of the last step in geometry/homography/refine.py: photographs of a plane seen from the side, warped by
known homographies, with a detector's own noise."""

from __future__ import annotations

from itertools import product
from typing import Any

import cv2
import numpy as np

from benchmarks.calibration import with_constant
from trimlearn.datasets import load_oxford_pair
from trimlearn.geometry import TrimmedHomography
from trimlearn.geometry.homography import refine
from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.homography.transfer import transform
from trimlearn.geometry.mosaic.images import Pixels
from trimlearn.geometry.mosaic.matches import Matches, detect, match

FREEDOMS, CUTS = (2.0, 4.0, 8.0, 1e6), (1e-3, 1e-5, 1e-9)  # of Student's law; shares: 3.7, 4.8 and 6.4 scales
TILTS, ZOOMS = (0.0, 40.0, 60.0), (0.4, 1.0, 1.6)  # degrees from above, and sizes
FINER = 3  # as many pixels a side for the warp, then averaged: no aliasing
LENS = 1.2  # focal length by the width of the image
GREY = 3.0  # of 255: the noise of the camera
NEAR, FEWEST = 3.0, 12  # px, and right matches that a pair must have


def run() -> dict[str, Any]:
    """The geometric mean over all pairs of the rms error inside the overlap, px; OpenCV's MAGSAC beside it."""
    pairs = [pair for i, case in enumerate(product(("graf", "boat"), TILTS, ZOOMS)) if (pair := _pair(i, *case))]
    summary: list[dict[str, Any]] = []
    for freedom, cut in product(FREEDOMS, CUTS):
        with with_constant(refine, "FREEDOM", freedom), with_constant(refine, "CUT", cut):
            found = [error(TrimmedHomography().fit(*m).homography_, H, size) for m, H, size in pairs]
        summary.append({"freedom": freedom, "cut": cut, "error": mean(found)})
    with with_constant(refine, "GRID", 1):  # one cell: neighbours are everybody
        found = [error(TrimmedHomography().fit(*m).homography_, H, size) for m, H, size in pairs]
    rival = [
        error(cv2.findHomography(m.src, m.dst, cv2.USAC_MAGSAC, 3.0, maxIters=10_000, confidence=0.9999)[0], H, size)
        for m, H, size in pairs
    ]
    return {"pairs": len(pairs), "summary": summary, "one cell": mean(found), "MAGSAC": mean(rival)}


def _pair(seed: int, name: str, tilt: float, zoom: float) -> tuple[Matches, Floats, tuple[int, int]] | None:
    """Matches of a photograph and of itself as a camera would see it on a plane, and the true homography."""
    one, other, H = warped(np.random.default_rng(seed), name, tilt, zoom)
    found = match(detect(one), detect(other))
    right = np.linalg.norm(transform(H, found.src) - found.dst, axis=1) < NEAR
    h, w = one.shape
    return (found, H, (w, h)) if np.sum(right) >= FEWEST else None


def warped(rng: np.random.Generator, name: str, tilt: float, zoom: float) -> tuple[Pixels, Pixels, Floats]:
    """A photograph, itself as a camera would see it on a plane, darker, and the homography between them."""
    image = cv2.imread(str(load_oxford_pair(name, 2)[0]), cv2.IMREAD_GRAYSCALE)
    h, w = image.shape
    H = _view(rng, w, h, np.radians(tilt), zoom)
    middle = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])  # pixel centres are at whole numbers
    finer = np.linalg.inv(middle) @ np.diag([FINER, FINER, 1.0]) @ middle @ H
    seen = cv2.warpPerspective(image, finer, (FINER * w, FINER * h), flags=cv2.INTER_CUBIC)
    seen = cv2.resize(cv2.GaussianBlur(seen, (0, 0), FINER * 0.4), (w, h), interpolation=cv2.INTER_AREA)
    one, other = (np.clip(a + rng.normal(0, GREY, a.shape), 0, 255).astype(np.uint8) for a in (image, 0.8 * seen))
    return one, other, H


def _view(rng: np.random.Generator, w: int, h: int, tilt: float, zoom: float) -> Floats:
    """A plane turned about an axis in it, and moved away, as a camera sees it."""
    f, azimuth = LENS * w, rng.uniform(0, 2 * np.pi)
    turn = cv2.Rodrigues(tilt * np.array([np.cos(azimuth), np.sin(azimuth), 0.0]))[0]
    plane = np.column_stack([turn[:, 0] / f, turn[:, 1] / f, [0.0, 0.0, 1.0 / zoom]])
    K = np.array([[f, 0.0, w / 2], [0.0, f, h / 2], [0.0, 0.0, 1.0]])
    return np.asarray(K @ plane @ np.array([[1.0, 0.0, -w / 2], [0.0, 1.0, -h / 2], [0.0, 0.0, 1.0]]))


def error(H: Floats, true: Floats, size: tuple[int, int]) -> float:
    """Root mean square, px of the second image, over a grid of points that both images show."""
    w, h = size
    grid = np.stack(np.meshgrid(np.linspace(0, w - 1, 30), np.linspace(0, h - 1, 30)), axis=-1).reshape(-1, 2)
    there = transform(true, grid)
    inside = ((there >= 0) & (there <= [w - 1, h - 1])).all(axis=1)
    return float(np.sqrt(np.mean(np.square(transform(H, grid) - there)[inside].sum(axis=1))))


def mean(errors: list[float]) -> float:
    return float(np.exp(np.mean(np.log(errors))))
