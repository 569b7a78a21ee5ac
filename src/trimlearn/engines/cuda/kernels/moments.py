# mypy: ignore-errors
"""Second and fourth moments of columns."""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl

__all__ = ["moments_kernel"]


@jit
def moments_kernel(
    V, C, center, unit, second, fourth, n, p, PX, per,
    CENTER: tl.constexpr, BM: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    """Σ cᵢqᵢⱼ² and Σ cᵢqᵢⱼ⁴ over ``per`` rows, q = (v − center)·unit, into a row of ``second`` and ``fourth``."""
    part = tl.program_id(0)
    j = tl.program_id(1) * BP + tl.arange(0, BP)
    length = tl.load(unit + j, mask=j < p, other=0.0)
    middle = tl.zeros((BP,), tl.float32)
    if CENTER:
        middle = tl.load(center + j, mask=j < p, other=0.0)
    squares = tl.zeros((BP,), tl.float32)
    fourths = tl.zeros((BP,), tl.float32)
    begin = part.to(tl.int64) * per
    for first in range(0, per, BM):
        i = begin + first + tl.arange(0, BM)
        inside = (i < n) & (first + tl.arange(0, BM) < per)
        c = tl.load(C + i, mask=inside, other=0.0)
        there = (inside & (c != 0))[:, None] & (j < p)[None, :]
        q = (tl.load(V + i[:, None] * p + j[None, :], mask=there, other=0).to(tl.float32) - middle) * length
        q = q * q
        squares += tl.sum(c[:, None] * q, 0)
        fourths += tl.sum(c[:, None] * q * q, 0)
    tl.store(second + part * PX + j, squares, mask=j < p)
    tl.store(fourth + part * PX + j, fourths, mask=j < p)
