"""Trimmed flats: the numerics behind `trimlearn.estimators.TrimmedPCA`.

    minimise 1/S Σ sᵢwᵢ fᵢ(U, m),  fᵢ = ½‖(I − UUᵀ)(aᵢ − m)‖²,  over UᵀU = I, w in the capped simplex, and m if free.

For given w the best m is the weighted mean and the best U the leading eigenvectors of the weighted covariance; for a
given flat the best w keeps the h nearest rows. The two in turn are concentration steps (Rousseeuw and Van Driessen
1999); every one lowers the objective.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final, final

import numpy as np

from trimlearn._utils.arrays import sum64
from trimlearn.losses.base import weighted
from trimlearn.robust.subspace.flat import Flat, Points, spectrum
from trimlearn.weights import CappedSimplex

__all__ = ["FlatProblem", "TrimmedFlat", "best_flat"]

TOL: Final = 1e-10  # the least relative decrease worth another concentration step: F is known to 1e-12 or so
# Of the objective's own standard error, how little of it the last of `STEPS` steps may have gained: where the variances
# along several axes are equal the flat turns for long, and another sample would turn it more. Clean spherical rows,
# 20,000 × 5, gain less than a twentieth by then, and a search that was stopped after one step a fifth.
LITTLE: Final = 0.1
STEPS: Final = 100  # a limit on time: the slowest start of `benchmarks.calibration subspace` takes 26


def best_flat(points: Points, c: np.ndarray, k: int, m: np.ndarray, free: bool) -> Flat:
    """The flat of dimension k nearest to the rows weighted by c: through m, or, if that is free, through their mean."""
    d, M = points.moments(c, m)
    if free:
        m, M = m + d, M - np.outer(d, d)
    return Flat(spectrum(M, k)[1], m)


@final
@dataclass(frozen=True)
class TrimmedFlat:
    """A flat with the weights w that are best for it, and the squared distances of all rows."""

    flat: Flat
    w: np.ndarray
    distances2: np.ndarray
    objective: float
    history: tuple[float, ...] = ()  # the objective after every concentration step
    converged: bool = True


@final
@dataclass(frozen=True)
class FlatProblem:
    """The problem: flats for h of the points, which count s times, through a given m or, if that is free, any."""

    points: Points
    s: np.ndarray
    h: float
    free: bool

    def weigh(self, flat: Flat) -> TrimmedFlat:
        """The w-step: the h rows nearest to the flat."""
        d2 = self.points.distances2(flat)
        w = CappedSimplex(self.h).minimise(d2, self.s)
        return TrimmedFlat(flat, w, d2, 0.5 * sum64(weighted(d2, self.s * w)) / float(self.s.sum()))

    def next(self, fit: TrimmedFlat) -> Flat:
        """The best flat for the rows that a fit keeps."""
        return best_flat(self.points, self.s * fit.w, fit.flat.U.shape[1], fit.flat.m, self.free)

    def concentrate(self, flat: Flat, most: int = STEPS, tol: float = TOL) -> TrimmedFlat:
        """Concentration steps until the objective no longer falls, at most ``most``."""
        best = TrimmedFlat(flat, self.s, self.s, inf)
        history: list[float] = []
        while True:
            fit = self.weigh(flat)
            history.append(fit.objective)
            stalled = not fit.objective < best.objective * (1 - tol)
            best = fit if fit.objective <= best.objective else best
            if stalled or len(history) > most:
                return replace(best, history=tuple(history), converged=stalled or self._settled(fit, history))
            flat = self.next(fit)

    def _settled(self, fit: TrimmedFlat, history: list[float]) -> bool:
        """Whether the last step gained little beside the standard error of the objective."""
        c = self.s * fit.w
        mean = sum64(weighted(fit.distances2, c)) / self.h
        spread = sum64(weighted(np.square(fit.distances2 - mean), c))
        return history[-2] - history[-1] < LITTLE * 0.5 * sqrt(spread) / float(self.s.sum())
