# mypy: ignore-errors
"""The kernel that goes over many rows: predict, residual and gradient of a tile of rows at a time.

The partial sums of each program lie in scratch memory and are added in a fixed order by
`trimlearn.engines.cuda.kernels.moving`: the same bits on every run. Products with data that bfloat16 holds exactly are
made in bfloat16, the other factor split into two of them: it keeps 17 bits, and rounding is that of sums in float32.
Others are made of three products in TF32 that are as precise as float32. Totals are in float64.
"""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl
from trimlearn.engines.cuda.kernels.tile import chosen, count_draws, differences, remembered, split


@jit
def _times(a, b, c):
    """a b + c, as precise as float32."""
    return tl.dot(a, b, c, input_precision="tf32x3")


@jit
def _predict(z, v, J, model, WIDTH: tl.constexpr, EXACT: tl.constexpr):
    """z with the columns J of v (BM, BP) added; the rows of the model go on, as zeros, beyond p."""
    W = tl.load(model + J[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :])
    if EXACT:
        z = _times(v.to(tl.bfloat16), W, z)
    else:
        z = _times(v.to(tl.float32), W, z)
    return z


@jit
def _predictions(
    V, rows, alive, model, direction, p,
    KP: tl.constexpr, EXACT: tl.constexpr, WIDTH: tl.constexpr, BOTH: tl.constexpr,
    BM: tl.constexpr, BP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The predictions (BM, KP) of the model, and with BOTH those of the direction, without their bases."""
    z = tl.zeros((BM, WIDTH), tl.float32)
    u = tl.zeros((BM, WIDTH), tl.float32)
    for first in tl.range(0, p, BP, num_stages=STAGES):
        J = first + tl.arange(0, BP)
        v = tl.load(V + rows[:, None] * p + J[None, :], mask=alive[:, None] & (J < p)[None, :], other=0)
        z = _predict(z, v, J, model, WIDTH, EXACT)
        if BOTH:
            u = _predict(u, v, J, direction, WIDTH, EXACT)
    if EXACT:
        z = tl.sum(tl.reshape(z, (BM, 2, KP)), 1)
        u = tl.sum(tl.reshape(u, (BM, 2, KP)), 1)
    return z, u


@jit
def _add_gradient(
    V, rows, alive, d, parts, pid, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr, AGAIN: tl.constexpr,
    BP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A program's sums ← Σ dᵢvᵢᵀ, d (KP, BM), or with AGAIN added to: rows are read once more, from the cache."""
    k = tl.arange(0, KP)
    high, low = split(d)
    for first in tl.range(0, p, BP, num_stages=STAGES):
        J = first + tl.arange(0, BP)
        v = tl.load(V + rows[:, None] * p + J[None, :], mask=alive[:, None] & (J < p)[None, :], other=0)
        to = parts + (pid * K + k[:, None]) * PX + J[None, :]
        here = (k < K)[:, None] & (J < p)[None, :]
        if AGAIN:
            G = tl.load(to, mask=here, other=0.0)
        else:
            G = tl.zeros((KP, BP), tl.float32)
        if EXACT:
            w = v.to(tl.bfloat16)
            G = _times(low, w, _times(high, w, G))
        else:
            G = _times(d, v.to(tl.float32), G)
        tl.store(to, G, mask=here)


@jit
def sweep_kernel(
    model, base, direction, direction_base,  # of `trimlearn.engines.cuda.kernels.fold`
    V, T, A, a, b,  # the data (n, p), what φ knows of each row
    table, C, F,  # residuals (n, K), what each row counts (n,), losses (n,)
    rows_of, notes, factor,  # rows drawn (steps, m); see `Steps.notes`; what C is multiplied by in each step
    stamps, tag,  # when each row was drawn last (n,), and now
    parts, sums,  # Σ c d vᵀ (NP, K, PX) and Σ c d (NP, KP) of each program's rows
    m, p, PX,
    tiles, NP,
    K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr, EXACT: tl.constexpr, DRAWN: tl.constexpr, TABLE: tl.constexpr,
    WIDTH: tl.constexpr, BM: tl.constexpr, BP: tl.constexpr, AGAIN: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """One program's share of Σ cᵢ Aᵢᵀ dᵢ, over rows that were DRAWN or over all m of them; d: see
    `trimlearn.engines.cuda.kernels.tile`. AGAIN: a program has several tiles, and its sums begin at 0 in memory."""
    pid = tl.program_id(0)
    k = tl.arange(0, KP)
    for tile in range(pid, tiles, NP):
        rows, inside, c = chosen(tile * BM, m, C, rows_of, notes, factor, m, DRAWN, BM)
        alive = inside
        if TABLE != "write" and TABLE != "predict":
            alive = inside & (c != 0)
        d = tl.zeros((BM, KP), tl.float32)
        if TABLE == "read" or TABLE == "subtract":
            d = remembered(table, rows, alive, K, KP)
        if TABLE != "read":
            z, u = _predictions(V, rows, alive, model, direction, p, KP, EXACT, WIDTH, TABLE == "curve", BM, BP, STAGES)
            z += tl.load(base + k)[None, :]
            u += tl.load(direction_base + k)[None, :]
            d = differences(z, u, d, rows, alive, T, A, a, b, table, F, K, KP, PHI, TABLE)
        if TABLE != "predict":
            d = tl.where((c != 0)[:, None] & alive[:, None], d * c[:, None], 0.0)
            total = tl.sum(d, 0)
            if AGAIN:
                total += tl.load(sums + pid * KP + k)
            tl.store(sums + pid * KP + k, total)
            _add_gradient(V, rows, alive, tl.trans(d), parts, pid, p, PX, K, KP, EXACT, AGAIN, BP, STAGES)
        if TABLE == "subtract":
            count_draws(rows, alive, notes, stamps, tag, BM)
