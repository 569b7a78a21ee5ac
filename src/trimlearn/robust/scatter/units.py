"""Robust location and scale, feature by feature, and the coordinates they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from trimlearn.robust.order import weighted_medians

__all__ = ["RobustUnits", "median_and_scale"]

MAD: Final = 1.482602218505602  # 1/Φ⁻¹(¾): makes the median of |z| consistent for normal z
EQUAL: Final = 1e-12  # of the largest deviation: a MAD below it is rounding, and more than half of the values are equal


def median_and_scale(Z: np.ndarray, s: np.ndarray, centred: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Median (0 where ``centred``) and MAD of each column; the mean deviation where more than half are equal."""
    centre = np.zeros(Z.shape[1]) if centred else weighted_medians(Z, s)
    away = np.abs(Z - centre)
    scale = MAD * weighted_medians(away, s)
    flat = scale <= EQUAL * away.max(axis=0, initial=0.0)
    if np.any(flat):
        scale = np.where(flat, s @ away / s.sum(), scale)
    return centre, scale


@final
@dataclass(frozen=True)
class RobustUnits:
    """The coordinates Z = (A − centre) / scale: feature by feature, by median and MAD."""

    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, A: np.ndarray, s: np.ndarray, centred: bool) -> RobustUnits:
        centre, scale = median_and_scale(A, s, centred)
        return cls(centre, np.where(scale > 0, scale, 1.0))

    def into(self, A: np.ndarray) -> np.ndarray:
        """Rows A in these coordinates."""
        return np.asarray((A - self.centre) / self.scale)

    @property
    def log_det(self) -> float:
        """What log det of a covariance gains on the way back to the units of the data."""
        return 2.0 * float(np.sum(np.log(self.scale)))
