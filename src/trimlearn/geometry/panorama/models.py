"""The two models of `TrimmedPanorama`: where their joint fit starts, and what is known about x beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.focals import estimate_focals, rays
from trimlearn.geometry.panorama.losses import HomographyLoss, RotationLoss, TransferLoss
from trimlearn.geometry.panorama.rotations import rotation_between
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.geometry.panorama.trees import chain, spanning_tree
from trimlearn.regularizers import Regularizer, Ridge, Zero

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
    if len(inliers) < scene.matches.images:  # there is one
        return [list(range(len(inliers)))]
    noises = [np.zeros(len(inliers)), *(rng.gumbel(size=len(inliers)) for _ in range(TREES))]
    found = [spanning_tree(scene.edges, scene.matches.images, np.log1p(inliers) + noise) for noise in noises]
    different: dict[frozenset[int], list[int]] = {}
    for tree in found:
        different.setdefault(frozenset(tree), tree)
    return list(different.values())
