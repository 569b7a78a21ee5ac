"""Focal lengths from the overlaps alone: those with which every overlap is best explained by a turn of the camera."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.losses import homogeneous
from trimlearn.geometry.panorama.rotations import nearest_rotation
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.geometry.panorama.trees import chain, spanning_tree

SPAN, GRID = (0.25, 10.0), 48  # focal lengths tried, in diagonals: fields of view from 127° to 6°, in steps of 8 %
TYPICAL = 1.2  # of the longer side, where nothing is known: a field of view of 45°, that of a normal lens
POINTS = 100  # matches per pair that are looked at: a limit on time; they tell the error of a rotation to 10 %
ROUNDING = 0.3  # px: errors below are the detector's, and tell nothing (SIFT's: test_matches finds a median below it)
ZOOM = log(1.15)  # pairs whose scales differ by less were taken with the same focal length: two steps of the grid
# Log-likelihood by which the best focal length must beat the longest tried. Twice it is χ² with one degree of freedom
# where errors are independent: 40, far beyond chance, as the errors of a lens are not independent.
CLEAR = 20.0


class Focals(NamedTuple):
    """One focal length per image (m,), in px, and whether the overlaps tell them at all."""

    focals: Floats
    known: bool


def estimate_focals(scene: Scene) -> Focals:
    """The f (times each image's zoom) that minimises Σ_pairs n log(mean squared error of the best rotation + ε²).

    For each pair and each f of a grid the rotation is the best one for the rays of its matches (Kabsch). An overlap
    tells f by how it is bent, so that pure shifts, repeated images and tiny turns tell nothing: where f is not clearly
    better than the longest tried, it is unknown, and a typical one is returned.
    """
    zoom = _zoom(scene)
    grid = np.geomspace(*SPAN, GRID) * scene.diagonal
    cost = np.zeros(GRID)
    for k, (i, j) in enumerate(scene.edges):
        src, dst = scene.core_of(k)
        some = np.linspace(0, len(src) - 1, min(POINTS, len(src))).astype(int)
        e2 = _turn_error(src[some], dst[some], grid * zoom[i], grid * zoom[j])
        cost += len(some) * np.log(e2 + ROUNDING**2)
    best = int(np.argmin(cost))
    if cost[-1] - cost[best] < CLEAR:
        return Focals(TYPICAL * float(np.median(np.max(scene.pairs.sizes, axis=1))) * zoom, False)
    return Focals(grid[best] * zoom, True)


def rays(points: Floats, focal: Floats) -> Floats:
    """Unit vectors (..., n, 3) along which a camera of this focal length sees points (n, 2) from its image's centre.

    >>> rays(np.array([[30.0, 40.0]]), np.array(120.0)).round(3)
    array([[0.231, 0.308, 0.923]])
    """
    flat = points / focal[..., None, None]
    d = np.concatenate([flat, np.ones((*flat.shape[:-1], 1))], axis=-1)
    return np.asarray(d / np.linalg.norm(d, axis=-1, keepdims=True))


def _turn_error(src: Floats, dst: Floats, f: Floats, g: Floats) -> Floats:
    """The mean squared error in px of the best rotation, for each of the focal lengths f of one and g of the other."""
    a, b = rays(src, f), rays(dst, g)
    R = nearest_rotation(b.transpose(0, 2, 1) @ a)
    turned = a @ R.transpose(0, 2, 1)
    seen = g[:, None, None] * turned[..., :2] / np.maximum(turned[..., 2:], 0.1)
    return np.asarray(np.mean(np.sum((seen - dst) ** 2, axis=-1), axis=-1))


def _zoom(scene: Scene) -> Floats:
    """Relative focal lengths: 1 for all unless a pair of images plainly differs in scale.

    A homography H changes areas at p by det H/z³, z = (H p)₃: over an overlap of equal cameras by 1, on average.
    """
    steps = np.tile(np.eye(3), (len(scene.edges), 1, 1))
    for k in range(len(steps)):
        z = np.maximum(homogeneous(scene.core_of(k)[0]) @ scene.centred(k)[2], 1e-6)
        scale = -1.5 * float(np.mean(np.log(z)))  # half the log of the areas: of lengths
        steps[k, :2, :2] *= np.exp(scale) if abs(scale) > ZOOM else 1.0
    tree = spanning_tree(scene.edges, scene.matches.images, scene.inliers.astype(np.float64))
    zoom = chain(tree, scene.edges, steps)[:, 0, 0]
    return np.asarray(zoom / np.median(zoom))
