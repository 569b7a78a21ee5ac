# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
"""The rows of an x-step: the numbers of `trimlearn.smart.draws`, to the bit, and how often each row was drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64
from numba.extending import register_jitable

# Philox4x64-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3
# (SC 2011), as NumPy has it: the counter is raised by one before the first block.
ROUNDS = 10  # theirs
FACTORS = (uint64(0xD2E7470EE14C6C93), uint64(0xCA5A826395121157))  # theirs
WEYL = (uint64(0x9E3779B97F4A7C15), uint64(0xBB67AE8584CAA73B))  # theirs
HALF = uint64(0xFFFFFFFF)  # the lower half of a word
UNIT = 2.0**-53  # a double has 53 bits
MANY = 8  # n/b from which on rows are counted in the order drawn; below, in the order of memory


@register_jitable
def _high(a, b):
    """The upper word of a·b."""
    low_a, high_a, low_b, high_b = a & HALF, a >> uint64(32), b & HALF, b >> uint64(32)
    middle = high_a * low_b + ((low_a * low_b) >> uint64(32))
    other = low_a * high_b + (middle & HALF)
    return high_a * high_b + (middle >> uint64(32)) + (other >> uint64(32))


@register_jitable
def _block(block, k, stream, key, out):
    """Four words: block number ``block`` (from 0) of iteration k."""
    a, b, c, d = uint64(block) + uint64(1), uint64(k), uint64(stream), uint64(0)
    s, t = key[0], key[1]
    for _ in range(ROUNDS):
        first, second = FACTORS[0] * a, FACTORS[1] * c
        a, b, c, d = _high(FACTORS[1], c) ^ b ^ s, second, _high(FACTORS[0], a) ^ d ^ t, first
        s, t = s + WEYL[0], t + WEYL[1]
    out[0], out[1], out[2], out[3] = a, b, c, d


@njit(nogil=True, cache=True)
def uniforms(key: Any, k: int, stream: int, skip: int, out: Any) -> None:
    """out ← the numbers of iteration k after the first ``skip``, uniform on [0, 1)."""
    words = np.empty(4, np.uint64)
    for q in range(skip - skip % 4, skip + len(out)):
        if q % 4 == 0:
            _block(q // 4, k, stream, key, words)
        if q >= skip:
            out[q - skip] = np.float64(words[q % 4] >> uint64(11)) * UNIT


@njit(nogil=True, cache=True)
def draw(u: Any, n: int, cumulative: Any, out: Any) -> None:
    """out ← the rows that numbers u stand for; ``cumulative``: sums of sample weights, of length 0 without."""
    for q in range(len(out)):
        if len(cumulative):
            at = np.searchsorted(cumulative, u[q] * cumulative[-1], side="right")
        else:
            at = np.int64(u[q] * n)
        out[q] = min(at, n - 1)


@njit(nogil=True, cache=True)
def count(drawn: Any, w: Any, seen: Any, rows: Any, shares: Any, apart: bool) -> Any:
    """The distinct rows of positive weight among those drawn, and w·(times drawn)/b for each.

    ``seen``: an int32 for every row, 0 before and after. Returns how many rows there are, the draws of weight 0, and
    how many rows follow: with ``apart`` the share of each row is w/b, and those drawn more than once stand there again,
    with what is left.
    """
    b, found, idle, again = len(drawn), 0, 0, 0
    in_order = b * MANY > len(w)
    for q in range(b):
        i = drawn[q]
        if w[i] > 0:
            if seen[i] == 0 and not in_order:
                rows[found] = i
                found += 1
            seen[i] += 1
        else:
            idle += 1
    if in_order:
        for i in range(len(w)):
            if seen[i] > 0:
                rows[found] = i
                found += 1
    for q in range(found):
        i = rows[q]
        times = 1 if apart else seen[i]
        shares[q] = w[i] * shares.dtype.type(times / b)
        if seen[i] > times:
            rows[found + again] = i
            shares[found + again] = w[i] * shares.dtype.type((seen[i] - times) / b)
            again += 1
        seen[i] = 0
    return found, idle, again


def distinct(drawn: np.ndarray, w: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The same as new arrays, and how many draws had weight 0."""
    rows, shares = np.empty(len(drawn), np.int64), np.empty(len(drawn), w.dtype)
    found, idle, _ = count(drawn, w, seen, rows, shares, False)
    return rows[:found], shares[:found], idle
