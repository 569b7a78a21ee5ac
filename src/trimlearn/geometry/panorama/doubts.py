"""What became of each pair of a panorama, and what may be wrong with the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trimlearn.geometry.homography.a_contrario import Chance
from trimlearn.geometry.homography.doubt import rival_of
from trimlearn.geometry.homography.points import Bools, Floats, PointPairs, sort_pairs
from trimlearn.geometry.panorama.consistency import Agreement, ambiguous
from trimlearn.geometry.panorama.scene import Scene

__all__ = ["MISFIT", "PairReport", "loose_ends", "pair_reports", "rivalries", "strains"]

# Of the diagonal: a median error of a pair beyond which the model is in doubt, 12 px in 640 × 480. Twice what lenses do
# to right pairs (benchmarks/calibration/panoramas.py).
MISFIT = 0.015
SAMPLES = 10_000  # in which a pair's rival is looked for: one of 15 % of the matches left is met with 99 %


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


def rivalries(scene: Scene, agrees: Bools, errors: Floats, threshold: float) -> list[str]:
    """Pairs, of several, where matches that the panorama does not explain agree on another homography.

    Asked where a pair's own fit was in doubt: that another part of the matches agrees elsewhere may be the lens or the
    view, which the joint fit knows. Of a single pair its own fit has told.
    """
    if len(scene.pairs) == 1:
        return []
    found = [
        f"{scene.titles[k]} ({count} matches)"
        for k, pair in enumerate(scene.pairs.pairs)
        if pair.doubts and agrees[k] and (count := _rival(pair.src, pair.dst, errors[scene.pair == k], threshold))
    ]
    if not found:
        return []
    return [
        f"where {', '.join(found)} overlap, matches agree with another placing than the one used, as those of a second "
        "plane or of repeated structure would: which of both is meant cannot be told."
    ]


def _rival(src: Floats, dst: Floats, errors: Floats, threshold: float) -> int:
    """How many matches further off than the threshold agree on a homography of their own."""
    matches = sort_pairs(PointPairs(src, dst))
    pairs, e2 = matches.distinct, np.square(errors[matches.order][matches.first])
    found = rival_of(pairs, e2, threshold, Chance(pairs), SAMPLES)
    return 0 if found is None else found.matches
