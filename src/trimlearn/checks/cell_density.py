"""The density of the values of a column, groups far out among them."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

__all__ = ["CellDensity"]

STEP, REACH = 0.05, 16.0  # of the grid of a column's density: finer than its kernel, and up to 4 million σ
KERNEL = 0.6  # σ of the kernel is this times n^(−1/5): two thirds of Silverman's, as groups are narrow
TAIL = 0.1  # of such a density is a Cauchy law: with 0.3, 1 in 1000 more of the clean cells of dirty tables are flagged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@final
class CellDensity:
    """The density of a column's transformed values, each counting for the probability that it is right.

    Of arsinh z, which is z in the bulk and a logarithm further out, where there may be groups at any distance.
    """

    def __init__(self, z: Floats, right: Floats) -> None:
        self.total = max(float(right.sum()), 1.0)
        self.width = KERNEL * self.total**-0.2
        counts = np.bincount(self._place(z), right, minlength=2 * round(REACH / STEP) + 1)
        self.curve = gaussian_filter1d(counts, self.width / STEP, mode="constant") / (self.total * STEP)

    @staticmethod
    def _place(z: Floats) -> Ints:
        at = np.clip(np.arcsinh(np.nan_to_num(z)), -REACH, REACH)
        return np.rint((at + REACH) / STEP).astype(np.int64)

    def at(self, z: Floats) -> Floats:
        """The density at z."""
        inside = self.curve[self._place(z)] / np.hypot(1.0, z)
        return np.asarray((1.0 - TAIL) * inside + TAIL / (np.pi * (1.0 + z**2)))

    def without(self, z: Floats, right: Floats) -> Floats:
        """The density at values that are among those it is made of, each left out at its own place."""
        own = right / (np.sqrt(2 * np.pi) * self.width * self.total * np.hypot(1.0, z))
        return np.asarray(np.maximum(self.at(z) - (1.0 - TAIL) * own, TAIL / (np.pi * (1.0 + z**2))))
