"""The joint trimmed problem of a panorama: how much of each pair to keep, SMART on what is kept, the last polish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.geometry.homography.points import Floats
from trimlearn.geometry.panorama.consistency import least_squares
from trimlearn.geometry.panorama.losses import TransferLoss
from trimlearn.geometry.panorama.scene import Scene
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.robust.scale import Chi, judge
from trimlearn.smart.method import Method
from trimlearn.solution import Solution
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex, GroupCappedSimplex, WeightSet

ROUNDS = 3  # of quotas and trimmed fits: a limit on time; quotas change by a few matches after the first
JOINT_PASSES = 60  # of SMART a round, a limit on time: the photographs of docs/panorama.md take 72 from a worse start
EXACT = 1e-7  # of the diagonal: errors below are rounding, 6·10⁻⁸ of coordinates read as float32
LAW = Chi(2)  # of the errors of right matches, in units of their noise: two coordinates, each normal


class Cut(NamedTuple):
    """Matches with errors up to ``threshold`` px are inliers; ``contamination`` is the share that is wrong; ``scale``
    is the noise of the others in px."""

    threshold: float
    contamination: float
    scale: float


@final
@dataclass(frozen=True)
class JointFit:
    """min over w, x of 1/N Σ wᵢfᵢ(x) + r2(x), w in {0 ≤ w ≤ 1, Σ_{pair p} w = h_p}, or with Σ w = h where h is given.

    ``agrees`` (P,) says which pairs agree with the others; threshold, px, is found from the errors where it is None.
    """

    loss: TransferLoss
    scene: Scene
    r2: Regularizer
    agrees: NDArray[np.bool_]
    h: float | None
    threshold: float | None

    def errors(self, x: Floats) -> Floats:
        """Symmetric transfer errors in px (N,)."""
        return np.asarray(np.sqrt(self.loss.values(x)))

    def trim(self, x: Floats, method: Method, seed: int) -> Solution:
        """The trimmed fit from x; quotas h_p are counted anew at its end, until they stay."""
        quotas = self.quotas(x)
        for _ in range(ROUNDS):
            problem = self.problem(quotas)
            solution = solve(problem, method, x0=x, max_passes=JOINT_PASSES, seed=seed)
            x, last = np.asarray(solution.x), quotas
            quotas = self.quotas(x)
            if np.array_equal(quotas, last):
                break
        return solution

    def problem(self, quotas: Floats) -> Problem:
        """The problem with these quotas, one for each pair, or h alone."""
        r1: WeightSet = CappedSimplex(self.h) if self.h is not None else GroupCappedSimplex(self.scene.pair, quotas)
        return Problem(self.loss, r1, self.r2)

    def polish(self, solution: Solution) -> Floats:
        """Least squares on what the trimmed fit explains."""
        x = np.asarray(solution.x)
        kept = self.errors(x) <= self.cut(x, solution.w).threshold
        return least_squares(self.loss, kept.astype(np.float64), self.r2, x)

    def cut(self, x: Floats, w: Floats | None = None) -> Cut:
        """Who is an inlier at x. With h given, all of those that the weights ``w`` kept.

        The errors of right matches follow σχ₂. However bent a lens, half of the inliers of a pair that agrees are kept.
        """
        errors = self.errors(x)
        trusted = self.h or float(np.sum(self.scene.core & self.agrees[self.scene.pair]))
        verdict = judge(errors, trusted, np.prod(self.loss.x_shape) / 2, law=LAW, floor=EXACT * self.scene.diagonal)
        if self.h is not None:
            assert w is not None, "with h given the weights decide"
            return Cut(self.threshold or float(errors[w > 0].max()), 1.0 - self.h / self.loss.n, verdict.scale)
        least = float(self.scene.medians(errors)[self.agrees].max())
        found = max(verdict.cutoff * verdict.scale, least)
        return Cut(self.threshold or found, verdict.contamination, found / verdict.cutoff)

    def quotas(self, x: Floats) -> Floats:
        """h, or h_p for each pair: how many of its matches are inliers at x."""
        if self.h is not None:
            return np.array([self.h])
        inside = self.errors(x) <= self.cut(x).threshold
        if not inside.any():
            raise ValueError(f"threshold={self.threshold} px leaves no match at all; raise it, or leave it out.")
        return np.bincount(self.scene.pair[inside], minlength=len(self.scene.pairs)).astype(np.float64)
