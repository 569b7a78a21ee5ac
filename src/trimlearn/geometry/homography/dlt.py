"""The trimmed problem itself: min 1/n Σ wᵢfᵢ(H) over weights and ‖H‖ = 1, from a homography that is nearly right."""

from __future__ import annotations

from itertools import combinations
from typing import final

import numpy as np

from trimlearn.geometry.homography.minimal import four_point
from trimlearn.geometry.homography.points import Floats, PointPairs
from trimlearn.losses import Homography
from trimlearn.problem import Problem
from trimlearn.regularizers import Sphere
from trimlearn.robust.distinct import distinct_rows
from trimlearn.smart import alternating
from trimlearn.solution import Solution
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex

__all__ = ["PLACE", "SIX", "Moments", "dlt", "four_best", "trimmed_fit"]

SIX = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))  # the entries of a symmetric matrix of three rows
PLACE = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # which of SIX each entry is
BEST = 8  # matches among which the paper's four are looked for, where three of them are on a line: 70 samples of four


def trimmed_fit(pairs: PointPairs, H: Floats, h: float, form: str) -> Solution:
    """Alternating minimisation from H (pixels), in normalised coordinates; ``form`` as in `trimlearn.losses`."""
    loss = Homography(pairs.normalised.src, pairs.normalised.dst, form)
    x = pairs.to_normalised(H)
    x = min(x, -x, key=lambda x: float(np.median(loss.values(x))))  # the printed form tells H from −H
    return solve(Problem(loss, CappedSimplex(h), Sphere()), alternating(), x0=x, start=None)


@final
class Moments:
    """DLT for many weights: Σ wᵢAᵢᵀAᵢ, 9 × 9, is made of Σ w aaᵀ times 1, u, v and u² + v², for src a and dst (u, v).

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> H = Moments(PointPairs(square, 3.0 * square)).minimiser(np.ones(4))
    >>> ((H / H[2, 2]).round(9) + 0.0).tolist()
    [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, pairs: PointPairs) -> None:
        a, (u, v) = pairs.lifted[0], pairs.dst.T
        squares = np.stack([a[i] * a[j] for i, j in SIX])
        self._products = (squares[None] * np.stack([np.ones_like(u), u, v, u * u + v * v])[:, None]).reshape(24, -1)

    def minimiser(self, w: Floats) -> Floats:
        """The unit H between these points with the smallest Σ wᵢ‖Aᵢh‖²."""
        one, u, v, both = (self._products @ w).reshape(4, 6)[:, PLACE]
        A = np.zeros((9, 9))
        A[:3, :3], A[3:6, 3:6], A[6:, 6:] = one, one, both
        A[6:, :3], A[6:, 3:6] = -u, -v  # eigh reads the lower half
        return np.asarray(np.linalg.eigh(A)[1][:, 0].reshape(3, 3))


def dlt(pairs: PointPairs, w: Floats) -> Floats:
    """The H (pixels) with the smallest Σ wᵢ‖Aᵢh‖², ‖h‖ = 1."""
    return pairs.to_pixels(Moments(pairs.normalised).minimiser(w))


def four_best(pairs: PointPairs, losses: Floats) -> Floats:
    """The homography (pixels) through the four matches of smallest loss, or the next best where three are on a line."""
    first = distinct_rows(np.hstack([pairs.src, pairs.dst]))[0]
    best = first[np.argsort(losses[first], kind="stable")[:BEST]]
    for sample in sorted(combinations(range(len(best)), 4), key=sum):
        found = four_point(pairs.normalised, best[list(sample)][None])
        if len(found):
            return pairs.to_pixels(found[0])
    raise ValueError("refine='paper': the matches of smallest loss are nearly on a line; use refine='inliers'.")
