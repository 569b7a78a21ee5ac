"""The trimmed problem itself: min 1/n Σ wᵢfᵢ(H) over weights and ‖H‖ = 1, from a homography that is nearly right."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from trimlearn.geometry.homography.four_point import four_point
from trimlearn.geometry.homography.points import Floats, PointPairs, SortedPairs, scaled
from trimlearn.losses import Homography
from trimlearn.problem import Problem
from trimlearn.regularizers import Sphere
from trimlearn.robust.distinct import distinct_rows
from trimlearn.smart import alternating
from trimlearn.solution import Solution
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex

BEST = 8  # matches among which the paper's four are looked for, where three of them are on a line: 70 samples of four


class TrimmedFit(NamedTuple):
    """The trimmed problem solved: weights (n,) of the matches as they were given, H between pixels, and the rest."""

    weights: Floats
    H: Floats
    solution: Solution


def trimmed_fit(matches: SortedPairs, H: Floats, h: float, form: str) -> TrimmedFit:
    """Alternating minimisation from H (pixels), in normalised coordinates; ``form`` as in `trimlearn.losses`."""
    pairs = matches.pairs
    loss = Homography(pairs.normalised.src, pairs.normalised.dst, form)
    x = pairs.to_normalised(H)
    x = min(x, -x, key=lambda x: float(np.median(loss.values(x))))  # the printed form tells H from −H
    found = solve(Problem(loss, CappedSimplex(h), Sphere()), alternating(), x0=x, start=None)
    return TrimmedFit(matches.unsorted(found.w), scaled(pairs.to_pixels(found.x)), found)


def four_best(pairs: PointPairs, losses: Floats) -> Floats:
    """The homography (pixels) through the four matches of smallest loss, or the next best where three are on a line."""
    first = distinct_rows(np.hstack([pairs.src, pairs.dst]))[0]
    best = first[np.argsort(losses[first], kind="stable")[:BEST]]
    for sample in sorted(combinations(range(len(best)), 4), key=sum):
        found = four_point(pairs.normalised, best[list(sample)][None])
        if len(found):
            return pairs.to_pixels(found[0])
    raise ValueError("refine='paper': the matches of smallest loss are nearly on a line; use refine='inliers'.")
