"""The density of the values of a column, groups far out among them."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from trimlearn._utils.arrays import Floats

__all__ = ["CellDensity", "places"]

STEP, REACH = 0.05, 16.0  # of the grid of a column's density: finer than its kernel, and up to 4 million σ
KERNEL = 0.6  # σ of the kernel is this times n^(−1/5): two thirds of Silverman's, as groups are narrow
TAIL = 0.1  # of such a density is a Cauchy law: with 0.3, 1 in 1000 more of the clean cells of dirty tables are flagged

Places = NDArray[np.int16]


@final
class CellDensity:
    """The density of a column's transformed values, each counting for the probability that it is right.

    Of arsinh z, which is z in the bulk and a logarithm further out, where there may be groups at any distance. Values
    come with their `places` on the grid of that, which are found once and used several times.
    """

    def __init__(self, place: Places, right: Floats) -> None:
        self.total = max(float(right.sum()), 1.0)
        self.width = KERNEL * self.total**-0.2
        counts = np.bincount(place, right, minlength=2 * round(REACH / STEP) + 1)
        self.curve = gaussian_filter1d(counts, self.width / STEP, mode="constant") / (self.total * STEP)

    def at(self, z: Floats, place: Places) -> Floats:
        """The density at z."""
        inside = self.curve[place] / np.hypot(1.0, z)
        return np.asarray((1.0 - TAIL) * inside + TAIL / (np.pi * (1.0 + z**2)))

    def without(self, z: Floats, place: Places, right: Floats) -> Floats:
        """The density at values that are among those it is made of, each left out at its own place."""
        own = right / (np.sqrt(2 * np.pi) * self.width * self.total * np.hypot(1.0, z))
        return np.asarray(np.maximum(self.at(z, place) - (1.0 - TAIL) * own, TAIL / (np.pi * (1.0 + z**2))))


def places(z: Floats) -> Places:
    """Where values are on the grid of a `CellDensity`; there are 641 places."""
    at = np.clip(np.arcsinh(np.nan_to_num(z)), -REACH, REACH)
    return np.rint((at + REACH) / STEP).astype(np.int16)
