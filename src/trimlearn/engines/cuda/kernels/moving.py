# mypy: ignore-errors
"""The second kernel of a step: the programs' sums added up in a fixed order, and the move of x."""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl


@jit
def move_kernel(
    parts, sums, center, scale, gradient,  # of `rows_kernel`; where Σ Aᵢᵀ dᵢ goes, (K, PX), where nothing moves
    X, before, mean, inverse, l1, l2, gamma, momentum,  # x, the one before, mean of y; the diagonal of M⁻¹; r2; steps
    notes, tag,  # of `rows_kernel`
    p, PX, NP,
    KP: tl.constexpr, INTERCEPT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr, MOVE: tl.constexpr,
    BN: tl.constexpr, BJ: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The programs' sums added up; with MOVE then, in float64, x ← prox of x + momentum·(x − before) − γ M⁻¹ g."""
    k, block = tl.program_id(1), tl.program_id(0)
    j = block * BJ + tl.arange(0, BJ)
    n = tl.arange(0, BN)
    total = tl.zeros((BJ,), tl.float64)
    through = tl.zeros((BN,), tl.float64)
    for first in range(0, NP, BN):
        part = first + n
        some = tl.load(
            parts + (part[:, None] * K + k) * PX + j[None, :], mask=(part < NP)[:, None] & (j < p)[None, :], other=0.0
        )
        total += tl.sum(some.to(tl.float64), 0)
        through += tl.load(sums + part * KP + k, mask=part < NP, other=0.0).to(tl.float64)
    column = tl.sum(through, 0)
    if CENTER:
        total -= column * tl.load(center + j, mask=j < p, other=0.0)
    if SCALE:
        total /= tl.load(scale + j, mask=j < p, other=1.0)
    size = p
    if INTERCEPT:
        total = tl.where(j == p, column, total)
        size = p + 1
    here, there = j < size, k * PX + j
    if not MOVE:
        tl.store(gradient + there, total.to(tl.float32), mask=here)
    else:
        x = tl.load(X + there, mask=here, other=0.0)
        old = tl.load(before + there, mask=here, other=0.0)
        g = tl.load(mean + there, mask=here, other=0.0) + total.to(tl.float32)
        ahead = x + tl.load(momentum) * (x - old)
        step = tl.load(gamma) * tl.load(inverse + j, mask=here, other=0.0)
        wide = ahead.to(tl.float64) - step * g.to(tl.float64)
        level = step * tl.load(l1 + there, mask=here, other=0.0)
        shrunk = tl.where(wide > level, wide - level, tl.where(wide < -level, wide + level, wide * 0.0))
        new = shrunk / (1.0 + step * tl.load(l2 + there, mask=here, other=0.0))
        tl.store(before + there, x, mask=here)
        tl.store(X + there, new.to(tl.float32), mask=here)
        spoilt = tl.sum(tl.where(here & ~(tl.abs(g) < float("inf")), 1, 0), 0)
        if spoilt > 0:
            tl.store(notes + 3, 1)
        if block + k == 0:
            tl.store(notes, tl.load(notes) + 1)
            tl.store(tag, tl.load(tag) + 1)
