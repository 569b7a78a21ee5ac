"""Location and covariance of the rows that a fit keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from trimlearn.robust.scatter.steps import FLOOR, Moments, Shrinkage
from trimlearn.robust.scatter.units import RobustUnits

__all__ = ["ScatterFit"]


@final
@dataclass(frozen=True)
class ScatterFit:
    """Weights w (n,), and the moments of the rows they keep: those of a single start, in ``units``."""

    units: RobustUnits
    shrinkage: Shrinkage
    w: np.ndarray
    moments: Moments
    history: tuple[float, ...] = ()  # log det K(S) after each concentration step, in the units of the data
    converged: bool = True

    def refitted(self, A: np.ndarray, s: np.ndarray, w: np.ndarray, centred: bool) -> ScatterFit:
        """Mean and covariance, divided by Σsw − 1, of the rows of A that w keeps, in the same units."""
        m = float(s @ w)
        shrinkage = Shrinkage(self.shrinkage.rho, 1.0 if centred else m / max(m - 1.0, 1.0))
        return ScatterFit(self.units, shrinkage, w, Moments.of(self.units.into(A), (s * w)[None], centred))

    def extended(self, A: np.ndarray, s: np.ndarray, centred: bool) -> ScatterFit:
        """The same rows kept, with as much shrinkage, of rows A that have more features."""
        units = RobustUnits.of(A, s, centred)
        return replace(self, units=units, moments=Moments.of(units.into(A), (s * self.w)[None], centred))

    def scaled(self, factor: float) -> ScatterFit:
        """The same with c, and for ρ = 0 with the covariance, ``factor`` times as large."""
        return replace(self, shrinkage=Shrinkage(self.shrinkage.rho, self.shrinkage.c * factor))

    @property
    def location(self) -> np.ndarray:
        return np.asarray(self.units.centre + self.units.scale * self.moments.mu[0])

    @property
    def covariance(self) -> np.ndarray:
        """K(S) in the units of the data; singular where the kept rows lie on a hyperplane."""
        S, rho, c = self.moments.S[0], self.shrinkage.rho, self.shrinkage.c
        return np.asarray((rho * np.eye(len(S)) + (1.0 - rho) * c * S) * np.outer(self.units.scale, self.units.scale))

    @property
    def precision(self) -> np.ndarray:
        """The inverse of the covariance; where that is singular, of the nearest regular one."""
        values, vectors = self._eigen
        T = vectors / np.sqrt(values) / self.units.scale[:, None]
        return np.asarray(T @ T.T)

    @property
    def rank(self) -> int:
        """In how many directions K varies."""
        return int(np.count_nonzero(self._eigen[0] > FLOOR))

    @property
    def log_det(self) -> float:
        """log det K(S) in the units of the data, eigenvalues at least FLOOR."""
        return float(np.sum(np.log(self._eigen[0]))) + self.units.log_det

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        return self.shrinkage.eigen(self.moments.S[0])

    def whitened(self, A: np.ndarray) -> np.ndarray:
        """The rows of A in coordinates in which their distances from the location are Euclidean norms."""
        values, vectors = self._eigen
        return np.asarray((self.units.into(A) - self.moments.mu[0]) @ (vectors / np.sqrt(values)))

    def squared_distances(self, A: np.ndarray) -> np.ndarray:
        """d² of every row of A."""
        return np.asarray(self.moments.squared_distances(self.units.into(A), self.shrinkage)[0])
