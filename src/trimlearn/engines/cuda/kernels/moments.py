# mypy: ignore-errors
"""What is to be known of each column: its largest entry, and its second and fourth moment.

Program (i, j) reads ``per`` rows of a block of columns and leaves one row of partial results.
"""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl


@jit
def _columns(center, p, CENTER: tl.constexpr, BP: tl.constexpr):
    """The numbers of a program's columns, and their centres."""
    j = tl.program_id(1) * BP + tl.arange(0, BP)
    middle = tl.zeros((BP,), tl.float32)
    if CENTER:
        middle = tl.load(center + j, mask=j < p, other=0.0)
    return j, middle


@jit
def _rows(first, n, per, BM: tl.constexpr):
    """Rows ``first``, … of a program's, and which of them there are."""
    i = first + tl.arange(0, BM)
    rows = tl.program_id(0).to(tl.int64) * per + i
    return rows, (rows < n) & (i < per)


@jit
def largest_kernel(V, center, largest, n, p, PX, per, CENTER: tl.constexpr, BM: tl.constexpr, BP: tl.constexpr):
    """The largest |v − center| of each column."""
    j, middle = _columns(center, p, CENTER, BP)
    most = tl.zeros((BM, BP), tl.float32)
    for first in range(0, per, BM):
        rows, inside = _rows(first, n, per, BM)
        there = inside[:, None] & (j < p)[None, :]
        v = tl.load(V + rows[:, None] * p + j[None, :], mask=there, other=0).to(tl.float32)
        most = tl.maximum(most, tl.where(there, tl.abs(v - middle), 0.0))
    tl.store(largest + tl.program_id(0) * PX + j, tl.max(most, 0), mask=j < p)


@jit
def moments_kernel(
    V, C, center, unit, second, fourth, n, p, PX, per,
    CENTER: tl.constexpr, BM: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    """Σ cᵢqᵢⱼ² and Σ cᵢqᵢⱼ⁴ with q = (v − center)·unit."""
    j, middle = _columns(center, p, CENTER, BP)
    length = tl.load(unit + j, mask=j < p, other=0.0)
    squares = tl.zeros((BM, BP), tl.float32)
    fourths = tl.zeros((BM, BP), tl.float32)
    for first in range(0, per, BM):
        rows, inside = _rows(first, n, per, BM)
        c = tl.load(C + rows, mask=inside, other=0.0)
        there = (inside & (c != 0))[:, None] & (j < p)[None, :]
        q = (tl.load(V + rows[:, None] * p + j[None, :], mask=there, other=0).to(tl.float32) - middle) * length
        q = q * q
        share = c[:, None] * q
        squares += share
        fourths += share * q
    to = tl.program_id(0) * PX + j
    tl.store(second + to, tl.sum(squares, 0), mask=j < p)
    tl.store(fourth + to, tl.sum(fourths, 0), mask=j < p)
