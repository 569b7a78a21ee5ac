# mypy: ignore-errors
"""The fused step on a GPU: every row is read once, predict, residual and gradient in one kernel; a second one sums.

The partial sums lie in scratch memory and are added in a fixed order: the same bits on every run. `Phi` names the
function of a loss; `trimlearn.losses.compiled` says what its numbers are. Products with data that bfloat16 holds
exactly are made in bfloat16, the other factor split into two of them: it keeps 17 bits, and rounding is that of sums in
float32. Others are made of three products in TF32 that are as precise as float32. Totals are in float64.
"""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl
from trimlearn.engines.cuda.kernels.losses import bend, phi

__all__ = ["rows_kernel"]


@jit
def _split(a):
    """Two bfloat16 numbers that add up to ``a``, to 17 bits."""
    high = a.to(tl.bfloat16)
    return high, (a - high.to(tl.float32)).to(tl.bfloat16)


@jit
def _times(a, b, c):
    """a b + c, as precise as float32."""
    return tl.dot(a, b, c, input_precision="tf32x3")


@jit
def _predict(
    Z, off, v, J, X, center, scale, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """Z (BM, KP) and what is to be taken off it, with the columns J of v (BM, BP) added."""
    k = tl.arange(0, KP)
    W = tl.load(X + k[None, :] * PX + J[:, None], mask=(J < p)[:, None] & (k < K)[None, :], other=0.0)
    if SCALE:
        W = W / tl.load(scale + J, mask=J < p, other=1.0)[:, None]
    if EXACT:
        high, low = _split(W)
        b = v.to(tl.bfloat16)
        Z = _times(b, low, _times(b, high, Z))
    else:
        Z = _times(v.to(tl.float32), W, Z)
    if CENTER:
        off += tl.sum(W * tl.load(center + J, mask=J < p, other=0.0)[:, None], 0)
    return Z, off


@jit
def _predict_slices(
    v, J, X, center, scale, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """What the columns J of v (S, BM, BP) add to the predictions (BM, KP)."""
    k = tl.arange(0, KP)
    W = tl.load(X + k[None, None, :] * PX + J[:, :, None], mask=(J < p)[:, :, None] & (k < K)[None, None, :], other=0.0)
    if SCALE:
        W = W / tl.load(scale + J, mask=J < p, other=1.0)[:, :, None]
    if EXACT:
        high, low = _split(W)
        b = v.to(tl.bfloat16)
        Z = tl.sum(tl.dot(b, high) + tl.dot(b, low), 0)
    else:
        Z = tl.sum(tl.dot(v.to(tl.float32), W, input_precision="tf32x3"), 0)
    if CENTER:
        Z -= tl.sum(tl.sum(W * tl.load(center + J, mask=J < p, other=0.0)[:, :, None], 1), 0)[None, :]
    return Z


@jit
def _times_slices(spread, v, EXACT: tl.constexpr):
    """spread·v, (S, KP, BP)."""
    if EXACT:
        high, low = _split(spread)
        b = v.to(tl.bfloat16)
        G = tl.dot(high, b) + tl.dot(low, b)
    else:
        G = tl.dot(spread, v.to(tl.float32), input_precision="tf32x3")
    return G


@jit
def rows_kernel(
    V, X, U, center, scale,  # the data (n, p), model and direction (K, PX), intercepts in column p; the transform
    T, A, a, b,  # what φ knows of each row
    table, C, F,  # residuals (n, K), what each row counts (n,), losses (n,)
    rows_of, notes, factor,  # rows drawn (steps, m); see `Steps.notes`; what C is multiplied by in each step
    stamps, tag,  # when each row was drawn last (n,), and now
    parts, sums,  # Σ c d vᵀ (NP, K, PX) and Σ c d (NP, KP) of each program's rows
    m, p, PX, tiles, NP,
    K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr, EXACT: tl.constexpr, INTERCEPT: tl.constexpr,
    CENTER: tl.constexpr, SCALE: tl.constexpr, DRAWN: tl.constexpr, TABLE: tl.constexpr,
    BM: tl.constexpr, BP: tl.constexpr, S: tl.constexpr, AGAIN: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """One program's share of Σ cᵢ Aᵢᵀ dᵢ, over rows that were DRAWN or over all m of them.

    TABLE "subtract": d = ∇φ(z) − table; "write": table ← d = ∇φ(z), F ← φ(z); "read": d = table, without predictions;
    "curve": d = ∇²φ(z)u. Rows are read twice, the second time from the cache. With S > 1 the columns lie in S slices
    of BP, one or more for each warp, so that no warp waits for another's: for few rows at a time. AGAIN: a program has
    several tiles of rows, and its sums begin at 0 in memory.
    """
    pid = tl.program_id(0)
    k = tl.arange(0, KP)
    flat = tl.arange(0, BP)
    slices = tl.arange(0, S)[:, None] * BP + flat[None, :]
    for tile in range(pid, tiles, NP):
        i = tile * BM + tl.arange(0, BM)
        inside = i < m
        if DRAWN:
            step = tl.load(notes)
            rows = tl.load(rows_of + step.to(tl.int64) * m + i, mask=inside, other=0).to(tl.int64)
            c = tl.load(C + rows, mask=inside, other=0.0) * tl.load(factor + step)
        else:
            rows = i.to(tl.int64)
            c = tl.load(C + rows, mask=inside, other=0.0)
        if TABLE != "write":
            inside = inside & (c != 0)
        if TABLE == "subtract":  # of a row that is drawn twice, one is told that it is the first
            now = tl.load(tag)
            new = tl.atomic_xchg(stamps + rows, tl.zeros((BM,), tl.int32) + now, mask=inside) != now
            tl.atomic_add(notes + 1, tl.sum((inside & new).to(tl.int32), 0))
            tl.atomic_add(notes + 2, tl.sum(inside.to(tl.int32), 0))
        cell = table + rows[:, None] * K + k[None, :]
        known = inside[:, None] & (k < K)[None, :]
        if TABLE == "read" or TABLE == "subtract":
            d = tl.load(cell, mask=known, other=0.0)
        if TABLE != "read":
            z = tl.zeros((BM, KP), tl.float32)
            u = tl.zeros((BM, KP), tl.float32)
            if S == 1:
                off = tl.zeros((KP,), tl.float32)
                u_off = tl.zeros((KP,), tl.float32)
                for first in tl.range(0, p, BP, num_stages=STAGES):
                    J = first + flat
                    v = tl.load(V + rows[:, None] * p + J[None, :], mask=inside[:, None] & (J < p)[None, :], other=0)
                    z, off = _predict(z, off, v, J, X, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
                    if TABLE == "curve":
                        u, u_off = _predict(u, u_off, v, J, U, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
                z -= off[None, :]
                u -= u_off[None, :]
            else:
                for first in range(0, p, S * BP):
                    J = first + slices
                    there = inside[None, :, None] & (J < p)[:, None, :]
                    v = tl.load(V + rows[None, :, None] * p + J[:, None, :], mask=there, other=0)
                    z += _predict_slices(v, J, X, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
                    if TABLE == "curve":
                        u += _predict_slices(v, J, U, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
            if INTERCEPT:
                z += tl.load(X + k * PX + p, mask=k < K, other=0.0)[None, :]
                u += tl.load(U + k * PX + p, mask=k < K, other=0.0)[None, :]
            if TABLE == "curve":
                d = bend(z, u, rows, inside, T, A, a, b, K, KP, PHI)
            else:
                f, r = phi(z, rows, inside, T, A, a, b, K, KP, PHI)
                if TABLE == "subtract":
                    d = r - d
                else:
                    d = r
                    tl.store(cell, d, mask=known)
                    tl.store(F + rows, f, mask=inside)
        d = tl.where((c != 0)[:, None] & inside[:, None], d * c[:, None], 0.0)
        total = tl.sum(d, 0)
        if AGAIN:
            total += tl.load(sums + pid * KP + k)
        tl.store(sums + pid * KP + k, total)
        d = tl.trans(d)
        if S == 1:
            high, low = _split(d)
            for first in tl.range(0, p, BP, num_stages=STAGES):
                J = first + flat
                v = tl.load(V + rows[:, None] * p + J[None, :], mask=inside[:, None] & (J < p)[None, :], other=0)
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
        else:
            spread = tl.broadcast_to(d[None, :, :], (S, KP, BM))
            for first in range(0, p, S * BP):
                J = first + slices
                there = inside[None, :, None] & (J < p)[:, None, :]
                v = tl.load(V + rows[None, :, None] * p + J[:, None, :], mask=there, other=0)
                G = _times_slices(spread, v, EXACT)
                to = parts + (pid * K + k[None, :, None]) * PX + J[:, None, :]
                here = (k < K)[None, :, None] & (J < p)[:, None, :]
                if AGAIN:
                    G += tl.load(to, mask=here, other=0.0)
                tl.store(to, G, mask=here)
