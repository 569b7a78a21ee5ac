# mypy: ignore-errors
"""The first kernel of a step over few rows, which waits for memory rather than for arithmetic.

The columns of a tile lie in S slices of BP, one or more for each warp, so that no warp waits for another's. Rows are
read twice, the second time from the cache.
"""

from __future__ import annotations

from trimlearn.engines.cuda.kernels.language import jit, tl
from trimlearn.engines.cuda.kernels.tile import chosen, count_draws, differences, remembered, split


@jit
def _slices(V, rows, inside, alive, J, p):
    """Columns J (S, BP) of the rows, (S, BM, BP). What is read does not wait for the weights that mask it."""
    v = tl.load(V + rows[None, :, None] * p + J[:, None, :], mask=inside[None, :, None] & (J < p)[:, None, :], other=0)
    return tl.where(alive[None, :, None], v, tl.zeros_like(v))


@jit
def _predicted(
    v, J, X, center, scale, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr,
):  # fmt: skip
    """What the columns J of v add to the predictions (BM, KP)."""
    k = tl.arange(0, KP)
    W = tl.load(X + k[None, None, :] * PX + J[:, :, None], mask=(J < p)[:, :, None] & (k < K)[None, None, :], other=0.0)
    if SCALE:
        W = W / tl.load(scale + J, mask=J < p, other=1.0)[:, :, None]
    if EXACT:
        high, low = split(W)
        b = v.to(tl.bfloat16)
        Z = tl.sum(tl.dot(b, high) + tl.dot(b, low), 0)
    else:
        Z = tl.sum(tl.dot(v.to(tl.float32), W, input_precision="tf32x3"), 0)
    if CENTER:
        Z -= tl.sum(tl.sum(W * tl.load(center + J, mask=J < p, other=0.0)[:, :, None], 1), 0)[None, :]
    return Z


@jit
def _add(
    d, v, J, parts, pid, p, PX,
    K: tl.constexpr, KP: tl.constexpr, EXACT: tl.constexpr, AGAIN: tl.constexpr,
    BM: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """A program's sums ← Σ dᵢvᵢᵀ, or with AGAIN added to."""
    k = tl.arange(0, KP)
    spread = tl.broadcast_to(d[None, :, :], (S, KP, BM))
    if EXACT:
        high, low = split(spread)
        b = v.to(tl.bfloat16)
        G = tl.dot(high, b) + tl.dot(low, b)
    else:
        G = tl.dot(spread, v.to(tl.float32), input_precision="tf32x3")
    to = parts + (pid * K + k[None, :, None]) * PX + J[:, None, :]
    here = (k < K)[None, :, None] & (J < p)[:, None, :]
    if AGAIN:
        G += tl.load(to, mask=here, other=0.0)
    tl.store(to, G, mask=here)


@jit
def few_kernel(
    X, U, center, scale,  # model and direction (K, PX), intercepts in column p; the transform of the columns
    V, T, A, a, b, table, C, F, rows_of, notes, factor, stamps, tag, parts, sums, m, p, PX,
    tiles, NP,
    K: tl.constexpr, KP: tl.constexpr, PHI: tl.constexpr, EXACT: tl.constexpr, DRAWN: tl.constexpr, TABLE: tl.constexpr,
    INTERCEPT: tl.constexpr, CENTER: tl.constexpr, SCALE: tl.constexpr,
    BM: tl.constexpr, BP: tl.constexpr, S: tl.constexpr, AGAIN: tl.constexpr,
):  # fmt: skip
    """One program's share of Σ cᵢ Aᵢᵀ dᵢ; the other arguments are those of `trimlearn.engines.cuda.kernels.sweep`."""
    pid = tl.program_id(0)
    k = tl.arange(0, KP)
    columns = tl.arange(0, S)[:, None] * BP + tl.arange(0, BP)[None, :]
    for tile in range(pid, tiles, NP):
        rows, inside, c = chosen(tile * BM, m, C, rows_of, notes, factor, m, DRAWN, BM)
        alive = inside
        if TABLE != "write":
            alive = inside & (c != 0)
        z = tl.zeros((BM, KP), tl.float32)
        u = tl.zeros((BM, KP), tl.float32)
        old = z
        if TABLE == "read" or TABLE == "subtract":
            old = remembered(table, rows, alive, K, KP)
        if TABLE != "read":
            for first in range(0, p, S * BP):
                J = first + columns
                v = _slices(V, rows, inside, alive, J, p)
                z += _predicted(v, J, X, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
                if TABLE == "curve":
                    u += _predicted(v, J, U, center, scale, p, PX, K, KP, EXACT, CENTER, SCALE)
        if INTERCEPT:
            z += tl.load(X + k * PX + p, mask=k < K, other=0.0)[None, :]
            u += tl.load(U + k * PX + p, mask=k < K, other=0.0)[None, :]
        d = old
        if TABLE != "read":
            d = differences(z, u, old, rows, alive, T, A, a, b, table, F, K, KP, PHI, TABLE)
        d = tl.where((c != 0)[:, None] & inside[:, None], d * c[:, None], 0.0)
        total = tl.sum(d, 0)
        if AGAIN:
            total += tl.load(sums + pid * KP + k)
        tl.store(sums + pid * KP + k, total)
        d = tl.trans(d)
        for first in range(0, p, S * BP):
            J = first + columns
            v = _slices(V, rows, inside, alive, J, p)
            _add(d, v, J, parts, pid, p, PX, K, KP, EXACT, AGAIN, BM, S)
        if TABLE == "subtract":
            count_draws(rows, alive, notes, stamps, tag, BM)
