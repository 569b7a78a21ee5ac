"""The threshold of a w-step where rows lie in many places: found by counting, so that only numbers travel.

The threshold θ, the smallest value of f with Σ_{fᵢ ≤ θ} sᵢ ≥ h, is found from its leading bits to its last
(`trimlearn._utils.digits`): each place counts, for the rows whose bits agree with those known, what the next twelve
are. Three rounds for float32 and six for float64 give a value of f itself, ties included, and not an approximation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import final

import numpy as np

from trimlearn._utils.digits import Counts, find_key, value_of
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet, snap_h
from trimlearn.weights.simplex import ROUNDING

BITS = 12  # found in a round: 4,096 counts, 32 kB of each place; with 8, twice as many rounds would be needed


@final
@dataclass(frozen=True)
class Level:
    """Who is kept: weight 1 below θ, ``share`` at θ, 0 above; and 0 for rows of sample weight 0. NaN counts as +inf."""

    theta: float
    share: float

    def weights(self, f: np.ndarray, s: np.ndarray | None) -> np.ndarray:
        """The weights of rows with losses f and sample weights s.

        >>> Level(2.0, 0.5).weights(np.array([1.0, 2.0, np.nan]), None)
        array([1. , 0.5, 0. ])
        """
        w = (f < self.theta).astype(f.dtype)
        tied = f == self.theta
        if self.theta == inf:
            tied |= np.isnan(f)
        w[tied] = self.share
        if s is not None:
            w[s == 0] = 0.0
        return w


def level(r1: WeightSet, total: float, counted: bool, dtype: np.dtype, counts: Counts) -> Level:
    """The best weights in r1 for losses that are only known by `trimlearn._utils.digits.histogram`, over all places.

    total: Σs of all rows. counted: whether s is 1 for every row, so that sums are exact.

    >>> from trimlearn._utils.digits import histogram, order_keys
    >>> f = np.array([3.0, 0.5, 0.5, 7.0])
    >>> level(CappedSimplex(2.5), 4.0, True, f.dtype, lambda *at: histogram(order_keys(f), None, *at))
    Level(theta=3.0, share=0.5)
    """
    if isinstance(r1, AllOnes):
        return Level(inf, 1.0)
    if not isinstance(r1, CappedSimplex):
        raise ValueError(f"rows in several places take CappedSimplex(h) or AllOnes() as r1, got {r1!r}.")
    h = snap_h(r1.h, total)
    if h >= total:
        return Level(inf, 1.0)
    enough = h if counted else h - ROUNDING * total
    known, below, tied = find_key(8 * dtype.itemsize, BITS, enough, counts)
    share = (h - below) / tied
    return Level(value_of(known, dtype), min(max(share, 0.0), 1.0))
