"""A lens that bends lines: one radial coefficient, exact both ways.

A point p, from the centre of its image and in half diagonals, is where a lens without distortion would show the point

    u = p/(1 + κ ‖p‖²)                                                                             (the division model)

κ < 0 is a barrel: the lens draws corners in by the share −κ. Back it is p = 2u/(1 + √(1 − 4κ‖u‖²)). A. Fitzgibbon,
Simultaneous linear estimation of multiple view geometry and lens distortion, CVPR 2001.
"""

from __future__ import annotations

import numpy as np

from trimlearn.geometry.homography.points import Floats


def straight(points: Floats, kappa: Floats, half: Floats) -> Floats:
    """Where a lens without distortion shows points (n, 2) from the centre; κ and half diagonals in px, one or (n,).

    >>> straight(np.array([[300.0, 400.0]]), np.array(-0.2), np.array(500.0))
    array([[375., 500.]])
    """
    return np.asarray(points / (1.0 + kappa * _radius2(points, half))[..., None])


def bend(points: Floats, kappa: Floats, half: Floats) -> Floats:
    """The inverse of `straight`; NaN for what no point of the image is shown at.

    >>> bend(np.array([[375.0, 500.0]]), np.array(-0.2), np.array(500.0))
    array([[300., 400.]])
    """
    with np.errstate(invalid="ignore"):
        root = np.sqrt(1.0 - 4.0 * kappa * _radius2(points, half))
    return np.asarray(2.0 * points / (1.0 + root)[..., None])


def magnification(points: Floats, kappa: Floats, half: Floats) -> Floats:
    """By how much `straight` enlarges lengths at points (n, 2): the root of what it does to areas.

    Along a radius it is (1 − κ‖p‖²)/(1 + κ‖p‖²)², across 1/(1 + κ‖p‖²).
    """
    bent = kappa * _radius2(points, half)
    return np.asarray(np.sqrt(np.maximum(1.0 - bent, 0.0) / (1.0 + bent) ** 3))


def _radius2(points: Floats, half: Floats) -> Floats:
    return np.asarray(np.sum(points**2, axis=-1) / np.asarray(half) ** 2)
