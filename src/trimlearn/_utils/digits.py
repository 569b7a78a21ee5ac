"""Order statistics and histograms of many numbers, a piece at a time: nothing as large as the numbers is copied.

Floats of one sign order like their bit patterns read as integers.
"""

from __future__ import annotations

import numpy as np

from trimlearn._utils.threads import total

PIECE = 1 << 18  # numbers looked at in one go: a limit on memory, 2 MB for their patterns
DIGITS = 16  # bits of a pattern counted at a time: 65,536 counts fit in a level-2 cache
RANGE = (2.0**-24, 2.0**30)  # of sizes that a summary tells apart: what float32 does, and a billion
KEPT = 12  # bits of a fraction that a summary keeps: numbers are known to one part in 4,096


def kth_by_digits(a: np.ndarray, k: int) -> float:
    """The value at position ``k`` (from 0) of |a| in sorted order, exactly; NaN counts as infinity.

    >>> kth_by_digits(np.array([3.0, -1.0, 2.0, np.nan]), 2)
    3.0
    """
    a = a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)
    bits = 8 * a.itemsize
    known, left = 0, k  # the leading digits of the value, and its position among the numbers that share them
    for shift in range(bits - DIGITS, -1, -DIGITS):

        def counted(start: int, shift: int = shift, known: int = known) -> np.ndarray:
            pattern = _patterns(a[start : start + PIECE])
            if shift < bits - DIGITS:
                pattern = pattern[pattern >> np.uint64(shift + DIGITS) == known]
            digits = (pattern >> np.uint64(shift)) & np.uint64((1 << DIGITS) - 1)
            return np.bincount(digits.astype(np.intp), minlength=1 << DIGITS)

        upto = np.cumsum(total(counted, range(0, len(a), PIECE), np.zeros(1 << DIGITS, dtype=np.int64)))
        digit = int(np.searchsorted(upto, left, side="right"))
        left -= int(upto[digit - 1]) if digit else 0
        known = (known << DIGITS) | digit
    kind = np.uint32 if bits == 32 else np.uint64
    return float(np.array([known], dtype=kind).view(a.dtype)[0])


def _patterns(a: np.ndarray) -> np.ndarray:
    """|a| as whole numbers in the same order."""
    size = np.abs(a)
    size[np.isnan(size)] = np.inf
    return np.asarray(size.view(np.uint32 if a.itemsize == 4 else np.uint64), dtype=np.uint64)


def summarised(a: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """Values that stand for the numbers ``a``, to one part in 4,096, in increasing order; and how many each stands for.

    unit: about the size of most of them. Numbers beyond 10⁹ units count as that, as does NaN, and those below 10⁻⁷
    units as that.

    >>> values, counts = summarised(np.array([1.0, 1.00001, -2.0]), 1.0)
    >>> values.round(3), counts
    (array([-2.,  1.]), array([1., 2.]))
    """
    shift = np.uint32(23 - KEPT)
    low, high = (int(np.array([edge], np.float32).view(np.uint32)[0] >> shift) for edge in RANGE)
    size = high - low + 1

    def counted(start: int) -> np.ndarray:
        scaled = (a[start : start + 4 * PIECE] / unit).astype(np.float32)
        negative = scaled < 0
        np.abs(scaled, out=scaled)
        np.nan_to_num(scaled, copy=False, nan=RANGE[1])
        np.clip(scaled, *RANGE, out=scaled)
        number = (scaled.view(np.uint32) >> shift).astype(np.intp)
        number += np.where(negative, size - low, -low)
        return np.bincount(number, minlength=2 * size)

    with np.errstate(over="ignore", invalid="ignore"):
        counts = total(counted, range(0, len(a), 4 * PIECE), np.zeros(2 * size, dtype=np.int64))
    middles = ((np.arange(low, high + 1, dtype=np.uint32) << shift) + (np.uint32(1) << shift - np.uint32(1))).view(
        np.float32
    )
    values = np.concatenate([-middles[::-1], middles]).astype(np.float64) * unit
    counts = np.concatenate([counts[size:][::-1], counts[:size]])
    there = counts > 0
    return values[there], counts[there].astype(np.float64)


def upper_edge(value: float, unit: float) -> float:
    """The largest number that ``value``, which `summarised` gave, stands for; of another value, a number just above.

    >>> values, _ = summarised(np.array([3.0001, 3.0002]), 1.0)
    >>> bool(3.0002 <= upper_edge(values[0], 1.0) < 3.001)
    True
    """
    shift = np.uint32(23 - KEPT)
    bits = np.array([min(max(value / unit, RANGE[0]), RANGE[1])], dtype=np.float32).view(np.uint32)
    return float((((bits >> shift) + np.uint32(1)) << shift).view(np.float32)[0]) * unit
