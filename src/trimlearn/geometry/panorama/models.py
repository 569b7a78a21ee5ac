"""The two models of `TrimmedPanorama`: where their joint fit starts, and what is known about x beforehand.

Focal lengths from the overlaps alone: those with which every overlap is best explained by a turn of the camera.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import NamedTuple, TypeVar

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.losses import HomographyLoss, RotationLoss, TransferLoss, homogeneous
from trimlearn.geometry.panorama.rotations import nearest_rotation, rotation_between
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.geometry.panorama.trees import chain, spanning_tree
from trimlearn.regularizers import Regularizer, Ridge, Zero

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


L = TypeVar("L", bound=TransferLoss)

SPREAD = 0.5  # standard deviation of log focal lengths around the first estimate: zooms by 1.6 either way (a choice)
NOISE = 1.0  # px: of a point, against which that is weighed; a detector's error is about half of it, a lens's more
# Random spanning trees tried besides that of most inliers: a limit on time. A wrong pair as strong as the others that
# close a loop of m with it is left out by one tree in m: of 20 trees one does, for a loop of 12, in 5 of 6 cases.
TREES = 20
NEAR = 0.01  # of the diagonal: beyond it the size of an error hardly matters in comparing trees; LOOSE, rounded up


class ModelStart(NamedTuple):
    """The loss around the first estimate, x = 0; r2, what is known about x; and what is doubtful, in words."""

    loss: TransferLoss
    r2: Regularizer
    doubts: list[str]


def rotation_start(scene: Scene, seed: int, cameras: tuple[Floats, Floats] | None = None) -> ModelStart:
    """A camera that turns, from the focal lengths and rotations that pairs tell, or from cameras (R, f) known before.

    r2 is a ridge on log focal lengths, so weak that it counts only where matches say nothing about them.
    """
    r2 = Ridge(np.array([0.0, 0.0, 0.0, 4.0 * NOISE**2 / (SPREAD**2 * len(scene.pair))]))
    if cameras is not None:
        return ModelStart(RotationLoss(scene.matches, *cameras), r2, [])
    f, known = estimate_focals(scene)
    seen = [zip(scene.core_of(k), edge, strict=True) for k, edge in enumerate(scene.edges)]
    turns = np.stack([rotation_between(*(rays(p, f[k]) for p, k in both)) for both in seen])
    unknown = (
        "the overlaps do not tell the focal length (images that do not turn, or hardly): a typical one, "
        f"{np.median(f):.0f} px, was the start."
    )
    loss = _best_tree(scene, turns, lambda B: RotationLoss(scene.matches, B, f), seed)
    return ModelStart(loss, r2, [] if known else [unknown])


def homography_start(scene: Scene, seed: int, homographies: Floats | None = None) -> ModelStart:
    """One homography per image, from those of pairs, or from homographies (m, 3, 3) to one plane known before."""

    def around(A: Floats) -> HomographyLoss:
        return HomographyLoss(scene.matches, A, scene.diagonal / 2)

    if homographies is not None:
        return ModelStart(around(homographies), Zero(), [])
    steps = np.stack([scene.centred(k) for k in range(len(scene.edges))])
    return ModelStart(_best_tree(scene, steps, lambda B: around(np.asarray(np.linalg.inv(B))), seed), Zero(), [])


STARTS: dict[str, Callable[[Scene, int], ModelStart]] = {"rotation": rotation_start, "homography": homography_start}


def _best_tree(scene: Scene, steps: Floats, make: Callable[[Floats], L], seed: int) -> L:
    """The loss around the frames that fit all pairs best, of those chained along some spanning trees.

    The tree of most inliers may hold a pair that is wrong as a whole; a tree without it leaves fewer pairs far off.
    Trees are compared by the sum over pairs of the mean log(1 + f/τ²) of what the pair's own homography explains: a
    chain of a dozen pairs may end far from where it should, and a wrong pair has one vote, however many matches.
    """
    rows = np.flatnonzero(scene.core)
    share = 1.0 / scene.inliers[scene.pair[rows]]

    def cost(loss: L) -> float:
        f = loss.values(np.zeros(loss.x_shape), rows)
        return float(share @ np.log1p(f / (NEAR * scene.diagonal) ** 2))

    return min((make(chain(tree, scene.edges, steps)) for tree in _trees(scene, seed)), key=cost)


def _trees(scene: Scene, seed: int) -> list[list[int]]:
    """Different trees: that of most inliers, and random ones in which a pair of many inliers is likely."""
    rng, inliers = np.random.default_rng(seed), scene.inliers
    noises = [np.zeros(len(inliers)), *(rng.gumbel(size=len(inliers)) for _ in range(TREES))]
    found = [spanning_tree(scene.edges, scene.matches.images, np.log1p(inliers) + noise) for noise in noises]
    different: dict[frozenset[int], list[int]] = {}
    for tree in found:
        different.setdefault(frozenset(tree), tree)
    return list(different.values())
