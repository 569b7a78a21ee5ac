"""The threshold of a w-step where rows lie in many places: found by counting, so that only numbers travel.

Floats order like their bits read as integers (those of negative ones flipped). So the threshold θ, the smallest value
of f with Σ_{fᵢ ≤ θ} sᵢ ≥ h, is found from its leading bits to its last: each place counts, for the rows whose bits
agree with those known, what the next twelve are. Three rounds for float32 and six for float64 give a value of f
itself, ties included, and not an approximation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, final

import numpy as np

from trimlearn.weights import AllOnes, CappedSimplex, WeightSet, snap_h
from trimlearn.weights.simplex import ROUNDING

BITS = 12  # found in a round: 4,096 counts, 32 kB of each place; with 8, twice as many rounds would be needed

Counts = Callable[[int, int, int], np.ndarray]  # (leading bits known, how many bits follow the next ones, their number)


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


def order_keys(f: np.ndarray) -> np.ndarray:
    """Unsigned integers in the order of the floats f, equal where these are; NaN as +inf.

    >>> order_keys(np.array([-1.0, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort(kind="stable").tolist()
    [0, 1, 2, 3, 4, 5]
    """
    width = 8 * f.dtype.itemsize
    plain = (np.where(np.isnan(f), inf, f) + 0.0).astype(f.dtype, copy=False)  # + 0.0: −0 becomes 0
    bits: Any = plain.view(f"u{f.dtype.itemsize}")
    sign = bits.dtype.type(1 << (width - 1))
    return np.asarray(np.where(bits & sign, ~bits, bits | sign))


def value_of(key: int, dtype: np.dtype) -> float:
    """The float of a key.

    >>> value_of(int(order_keys(np.array([-2.5]))[0]), np.dtype("f8"))
    -2.5
    """
    width = 8 * dtype.itemsize
    sign = 1 << (width - 1)
    bits = key ^ sign if key & sign else ~key & ((1 << width) - 1)
    return float(np.array([bits], dtype=f"u{dtype.itemsize}").view(dtype)[0])


def histogram(keys: np.ndarray, s: np.ndarray | None, known: int, after: int, bits: int) -> np.ndarray:
    """Σs, or the number, of the rows whose leading bits are ``known``, by their next ``bits``; ``after`` follow."""
    kind = keys.dtype.type
    lead = keys >> kind(after)
    if 8 * keys.dtype.itemsize > after + bits:
        inside = (lead >> kind(bits)) == kind(known)
        lead, s = lead[inside], None if s is None else s[inside]
    digits = (lead & kind((1 << bits) - 1)).astype(np.int64)
    return np.bincount(digits, None if s is None else s.astype(np.float64), 1 << bits)


def level(r1: WeightSet, total: float, counted: bool, dtype: np.dtype, counts: Counts) -> Level:
    """The best weights in r1 for losses that are only known by `histogram`, summed over all places.

    total: Σs of all rows. counted: whether s is 1 for every row, so that sums are exact.

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
    known, below, after = 0, 0.0, 8 * dtype.itemsize
    while after:
        bits = min(BITS, after)
        after -= bits
        found = counts(known, after, bits)
        held = below + np.cumsum(found)
        at = int(np.argmax(held >= enough)) if held[-1] >= enough else int(np.flatnonzero(found)[-1])
        below, tied = float(held[at - 1]) if at else below, float(found[at])
        known = (known << bits) | at
    share = (h - below) / tied
    return Level(value_of(known, dtype), min(max(share, 0.0), 1.0))
