"""What became of each pair of a panorama, and what may be wrong with the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trimlearn.geometry.homography.points import Bools, Floats
from trimlearn.geometry.panorama.consistency import Agreement, ambiguous
from trimlearn.geometry.panorama.scene import Scene

__all__ = ["MISFIT", "PairReport", "loose_ends", "pair_reports", "strains"]

# Of the diagonal: a median error of a pair beyond which the model is in doubt, 12 px in 640 × 480. Twice what lenses do
# to right pairs (benchmarks/calibration/panoramas.py).
MISFIT = 0.015


class PairReport(NamedTuple):
    """What became of one pair: its matches, those its own homography explains, those the panorama explains, the median
    error of the former in px, and whether the pair agrees with the others."""

    i: int
    j: int
    matches: int
    own_inliers: int
    inliers: int
    error: float
    agrees: bool


def pair_reports(scene: Scene, agrees: Bools, errors: Floats, inside: Bools) -> list[PairReport]:
    """One for each pair. errors: of all matches, px. inside: which of them the panorama explains."""
    inliers = np.bincount(scene.pair[inside], minlength=len(scene.pairs))
    numbers = zip(scene.pairs.pairs, scene.inliers, inliers, scene.medians(errors), agrees, strict=True)
    return [PairReport(p.i, p.j, len(p), int(o), int(n), float(e), bool(a)) for p, o, n, e, a in numbers]


def strains(scene: Scene, reports: Sequence[PairReport]) -> list[str]:
    """A fit that leaves some pair far off where it is, or much further than the pair's own homography does."""
    errors = np.array([r.error if r.agrees else 0.0 for r in reports])
    strain = np.maximum(scene.strained(errors), errors / (MISFIT * scene.diagonal))
    worst = int(np.argmax(strain))
    if strain[worst] <= 1.0:
        return []
    return [
        f"the model is {errors[worst]:.0f} px off where {scene.titles[worst]} overlap, which by themselves match "
        f"to {scene.own_errors[worst]:.1g} px: the camera may have moved, its lens may bend lines, or an overlap, "
        "this or another, may be wrong as a whole."
    ]


def loose_ends(scene: Scene, found: Agreement) -> list[str]:
    """Pairs that were left out, where it could as well have been another."""
    return [
        f"the overlap of {scene.titles[pair]} contradicts the others and is not used; but these form a chain, of which "
        "another may be the wrong one. Look at the result, or add images that overlap more."
        for pair in ambiguous(scene, found)
    ]
