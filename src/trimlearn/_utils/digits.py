"""Order statistics and histograms of many numbers, a piece at a time: nothing as large as the numbers is copied.

Floats of one sign order like their bit patterns read as integers, and of both where those of negative ones are flipped.
So a threshold is found by counting: exactly, ties included, and wherever the numbers are.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from trimlearn._utils.threads import total

PIECE = 1 << 18  # numbers looked at in one go: a limit on memory, 2 MB for their patterns
DIGITS = 16  # bits of a pattern counted at a time: 65,536 counts fit in a level-2 cache
RANGE = (2.0**-24, 2.0**30)  # of sizes that a summary tells apart: what float32 does, and a billion
KEPT = 12  # bits of a fraction that a summary keeps: numbers are known to one part in 4,096
Counts = Callable[[int, int, int], np.ndarray]  # (leading bits known, how many bits follow the next ones, their number)


def kth_by_digits(a: np.ndarray, k: int) -> float:
    """The value at position ``k`` (from 0) of |a| in sorted order, exactly; NaN counts as infinity.

    >>> kth_by_digits(np.array([3.0, -1.0, 2.0, np.nan]), 2)
    3.0
    """
    a = a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)

    def counts(known: int, after: int, bits: int) -> np.ndarray:
        def part(start: int) -> np.ndarray:
            return histogram(order_keys(np.abs(a[start : start + PIECE])), None, known, after, bits)

        return total(part, range(0, len(a), PIECE), np.zeros(1 << bits, dtype=np.int64))

    known, _, _ = find_key(8 * a.itemsize, DIGITS, k + 1, counts)
    return value_of(known, a.dtype)


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


def find_key(width: int, bits: int, enough: float, counts: Counts) -> tuple[int, float, float]:
    """The key of the smallest number with Σs ≥ ``enough`` up to it, Σs below it, and Σs at it.

    Keys have ``width`` bits, of which so many are found at a time, the leading ones first: ``counts`` are sums of
    `histogram`, wherever the numbers are.
    """
    known, below, tied, after = 0, 0.0, 0.0, width
    while after:
        step = min(bits, after)
        after -= step
        found = counts(known, after, step)
        held = below + np.cumsum(found)
        at = int(np.argmax(held >= enough)) if held[-1] >= enough else int(np.flatnonzero(found)[-1])
        below, tied = float(held[at - 1]) if at else below, float(found[at])
        known = (known << step) | at
    return known, below, tied


def histogram(keys: np.ndarray, s: np.ndarray | None, known: int, after: int, bits: int) -> np.ndarray:
    """Σs, or the number, of the rows whose leading bits are ``known``, by their next ``bits``; ``after`` follow."""
    kind = keys.dtype.type
    lead = keys >> kind(after)
    if 8 * keys.dtype.itemsize > after + bits:
        inside = (lead >> kind(bits)) == kind(known)
        lead, s = lead[inside], None if s is None else s[inside]
    digits = (lead & kind((1 << bits) - 1)).astype(np.int64)
    return np.bincount(digits, None if s is None else s.astype(np.float64), 1 << bits)


def order_keys(f: np.ndarray) -> np.ndarray:
    """Unsigned integers in the order of the floats f, equal where these are; NaN as +inf.

    >>> order_keys(np.array([-1.0, -0.0, 0.0, 2.0, np.inf, np.nan])).argsort(kind="stable").tolist()
    [0, 1, 2, 3, 4, 5]
    """
    plain = f + f.dtype.type(0)  # a copy, in which −0 is 0
    plain[np.isnan(plain)] = inf
    size = f.dtype.itemsize
    bits: Any = plain.view(f"u{size}")
    negative = (plain.view(f"i{size}") >> (8 * size - 1)).view(bits.dtype)  # all bits, or none
    return np.asarray(bits ^ (negative | bits.dtype.type(1 << (8 * size - 1))))


def value_of(key: int, dtype: np.dtype) -> float:
    """The float of a key.

    >>> value_of(int(order_keys(np.array([-2.5]))[0]), np.dtype("f8"))
    -2.5
    """
    width = 8 * dtype.itemsize
    sign = 1 << (width - 1)
    bits = key ^ sign if key & sign else ~key & ((1 << width) - 1)
    return float(np.array([bits], dtype=f"u{dtype.itemsize}").view(dtype)[0])
