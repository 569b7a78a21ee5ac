# mypy: ignore-errors
"""The h smallest of n numbers without sorting them: eight bits of the threshold at a time, then weights and totals.

The numbers are compared as whole numbers in the same order. `count_kernel` counts, among those that agree with the
bits known so far, each value of the next eight; `weigh_kernel` knows the threshold by then. What is chosen is found
again by every program from the counts: 256 additions are cheaper than another kernel.
"""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl


@jit
def _key(f):
    """A whole number for each of f, in the same order: NaN is that of ∞, and −0 that of 0."""
    f = tl.where(f == f, f, float("inf")) + 0.0
    bits = f.to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) | -2147483648)).to(tl.uint32, bitcast=True)


@jit
def _chosen(counts, known, below, rank, turn: tl.constexpr):
    """The upper bits of the threshold with eight more of them, how many numbers lie below, how many agree with it."""
    digit = tl.arange(0, 256)
    count = tl.load(counts + turn * 256 + digit)
    left = rank - below
    here = tl.sum((tl.cumsum(count, 0) <= left).to(tl.int32), 0)
    below += tl.sum(tl.where(digit < here, count, 0), 0)
    return known * 256 + here.to(tl.int64), below, tl.sum(tl.where(digit == here, count, 0), 0)


@jit
def count_kernel(F, H, counts, n, TURN: tl.constexpr, BLOCK: tl.constexpr):
    """Into counts[TURN], the next eight bits of the numbers F (n,) whose bits before are those of number ⌈h⌉."""
    rank = tl.ceil(tl.load(H)).to(tl.int32) - 1
    known, below = 0, 0
    for turn in tl.static_range(TURN):
        known, below, _ = _chosen(counts, known, below, rank, turn)
    found = tl.zeros((512,), tl.int32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = first + tl.arange(0, BLOCK)
        key = _key(tl.load(F + i, mask=i < n, other=0.0)).to(tl.int64)
        agrees = (i < n) & ((key >> (32 - 8 * TURN)) == known)
        digit = (key >> (24 - 8 * TURN)) & 255
        found += tl.histogram(tl.where(agrees, digit, 256).to(tl.int32), 512)  # 256: of no interest
    digit = tl.arange(0, 512)
    tl.atomic_add(counts + TURN * 256 + digit, found, mask=(digit < 256) & (found > 0))


@jit
def weigh_kernel(F, W, H, counts, best, totals, n, BLOCK: tl.constexpr):
    """best ← the weights of sum h that keep the smallest of F; each program's Σ best·F and Σ W·F into ``totals``."""
    h = tl.load(H)
    rank = tl.ceil(h).to(tl.int32) - 1
    known, below, tied = 0, 0, 0
    for turn in tl.static_range(4):
        known, below, tied = _chosen(counts, known, below, rank, turn)
    share = tl.minimum((h - below.to(tl.float64)) / tied.to(tl.float64), 1.0).to(tl.float32)
    after = tl.zeros((BLOCK,), tl.float64)
    before = tl.zeros((BLOCK,), tl.float64)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = first + tl.arange(0, BLOCK)
        f = tl.load(F + i, mask=i < n, other=0.0)
        key = _key(f).to(tl.int64)
        new = tl.where(key < known, 1.0, tl.where(key == known, share, 0.0))
        new = tl.where(h >= n, 1.0, new)  # every row is kept
        tl.store(best + i, new, mask=i < n)
        old = tl.load(W + i, mask=i < n, other=0.0)
        after += tl.where(new != 0, new * f, 0.0).to(tl.float64)
        before += tl.where(old != 0, old * f, 0.0).to(tl.float64)
    tl.store(totals + tl.program_id(0), tl.sum(after, 0))
    tl.store(totals + tl.num_programs(0) + tl.program_id(0), tl.sum(before, 0))
