# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, var-annotated"
"""The x-steps between two w-steps as one compiled loop, on all threads: Algorithm 1's, for D = ∅ or D = I and penalties
whose prox is a soft threshold and a division.

A step is two phases, and threads wait for one another after each: rows are read, in pieces, and numbers drawn for the
next step; then x moves, in blocks of its columns, while one thread looks up which rows those numbers stand for. Pieces
and blocks are fixed by the data, whoever takes them: the same bits on any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

from trimlearn.kernels import csr, dense
from trimlearn.kernels.machine import barrier, take
from trimlearn.kernels.rows import count, draw, uniforms
from trimlearn.kernels.stretch_data import (
    AGAIN,
    EVALUATED,
    IDLE,
    LIMIT,
    NEXT,
    OPEN,
    OVERFLOW,
    ROWS,
    SKIPPED,
    STEPS,
    W_NEXT,
)


def _part(V: Any, index: Any, W: Any, offset: Any, rows: Any, old: Any, c: Any, new: Any, G: Any, total: Any) -> None:
    raise NotImplementedError("compiled code only")


@overload(_part, jit_options={"fastmath": dense.FAST})
def _choose(V, index, W, offset, rows, old, c, new, G, total):
    return dense.rows_difference if isinstance(V, types.Array) else csr.rows_difference


@register_jitable
def _numbers(law, step, n, scratch, thread, threads):
    """This thread's share of the numbers of a step, and of the rows that they stand for."""
    if step == law.steps:
        return
    first = 0 if law.q >= 0 else 1  # u[0] says whether a w-step is next
    size = -(-(law.b + 1 - first) // threads)
    size += -size % 4  # numbers come in fours
    begin = min(first + thread * size, law.b + 1)
    end = min(begin + size, law.b + 1)
    if begin < end:
        uniforms(law.key, law.k + step, 0, begin - first, scratch.u[begin:end])
        draw(scratch.u[max(begin, 1) : end], n, law.cumulative, scratch.drawn[max(begin, 1) - 1 : end - 1])


@register_jitable
def _look_up(law, step, w, scratch):
    """The distinct rows of the step to come, or why there is none."""
    found = scratch.found
    if step == law.steps:
        found[NEXT] = LIMIT
    elif law.q >= 0 and scratch.u[0] < law.q:
        found[NEXT] = W_NEXT
    else:
        rows = scratch.rows[step % 2]
        found[ROWS], found[IDLE], found[AGAIN] = count(scratch.drawn, w, scratch.seen, rows, scratch.shares, law.renews)


@register_jitable
def _read(V, rows, table, law, scratch, step, offset, thread, threads):
    """The sums of this thread's pieces of a step: its own first, whose sums its cache holds; then those of threads that
    are held up."""
    m, again, pieces = scratch.found[ROWS], scratch.found[AGAIN], len(scratch.G) - 1
    size = -(-m // pieces)
    size += -size % dense.TILE
    index = scratch.rows[step % 2]
    parts = pieces + 1 if law.renews else pieces
    for turn in range(parts):
        piece = (thread * pieces // threads + turn) % parts
        if not take(scratch.claims, piece):
            continue
        begin, end = (min(m, piece * size), min(m, (piece + 1) * size)) if piece < pieces else (m, m + again)
        G, total = scratch.G[piece], scratch.totals[piece]
        G[:] = 0
        total[:] = 0
        _part(
            V, index[begin:end], scratch.W, offset, rows, table, scratch.shares[begin:end], scratch.new[begin:end],
            G, total,
        )  # fmt: skip


@register_jitable(fastmath=dense.FAST)
def _add_run(G, begin, end):
    """G[0, begin:end] ← its sum over all pieces but the last: three at a time, so that a sum is seldom put away."""
    total, piece = G[0, begin:end], 1
    while piece + 3 < len(G):
        a, b, c = G[piece, begin:end], G[piece + 1, begin:end], G[piece + 2, begin:end]
        for i in range(len(total)):
            total[i] += a[i] + b[i] + c[i]
        piece += 3
    while piece + 1 < len(G):
        a = G[piece, begin:end]
        for i in range(len(total)):
            total[i] += a[i]
        piece += 1


@register_jitable
def _add_up(G, block, columns, sparse):
    """G[0] ← the sum of all pieces but the last, in a block of so many columns."""
    flat = G.reshape(len(G), -1)
    p, K = (G.shape[1], G.shape[2]) if sparse else (G.shape[2], G.shape[1])
    begin, end = block * columns, min(p, (block + 1) * columns)
    if sparse:
        _add_run(flat, begin * K, end * K)
    else:
        for k in range(K):
            _add_run(flat, k * p + begin, k * p + end)


@register_jitable(fastmath=dense.FAST)
def _unfold(G, r, model, block, columns, sparse, out):
    """out ← Σ rᵢaᵢᵀ from G = Σ rᵢvᵢᵀ and r = Σ rᵢ, in one block. Returns how many rows of x that are."""
    p, K = len(model.center), model.x.shape[1]
    begin, end = block * columns, min(p, (block + 1) * columns)
    center, per_scale = model.center, model.per_scale
    if sparse and K > 1:  # in the order of memory
        for j in range(begin, end):
            for k in range(K):
                out[j - begin, k] = (G[j, k] - out.dtype.type(r[k]) * center[j]) * per_scale[j]
    else:
        for k in range(K):
            total = out.dtype.type(r[k])
            for j in range(begin, end):
                out[j - begin, k] = ((G[j, k] if sparse else G[k, j]) - total * center[j]) * per_scale[j]
    if end < p or len(model.x) == p:
        return end - begin
    for k in range(K):  # the intercept, in the last block
        out[p - begin, k] = r[k]
    return p + 1 - begin


@register_jitable(fastmath=dense.FAST)
def _estimate(law, model, scratch, n, block, sparse, main, rest):
    """main ← what x moves along, the mean of y included, in one block of columns, whose sums are ready; that mean is
    renewed with D = I. rest: room for what rows drawn again make of it. Returns how many rows of x these are."""
    G, totals, columns = scratch.G, scratch.totals, scratch.columns
    _add_up(G, block, columns, sparse)
    last = len(G) - 1
    rows = _unfold(G[0], totals[:last].sum(axis=0), model, block, columns, sparse, main)
    at = slice(block * columns, block * columns + rows)
    g, mean, check = main[:rows].reshape(-1), model.mean[at].reshape(-1), 0.0
    if law.renews:
        _unfold(G[last], totals[last], model, block, columns, sparse, rest)
        again, before, share = rest[:rows].reshape(-1), scratch.before[1][at].reshape(-1), g.dtype.type(law.b / n)
        before[:] = mean
        for i in range(len(g)):
            mean[i] += share * g[i]
            g[i] += again[i] + before[i]
    else:
        for i in range(len(g)):
            g[i] += mean[i]
    for i in range(len(g)):
        check += g[i]
    if not np.isfinite(check):
        scratch.found[OVERFLOW] = 1
    return rows


@register_jitable(fastmath=dense.FAST)
def _move(model, scratch, block, rows, g):
    """x ← prox(x + momentum·(x − previous) − γM⁻¹g), in float64, in one block of columns."""
    at = slice(block * scratch.columns, block * scratch.columns + rows)
    x, old, before, g = model.x[at].reshape(-1), model.previous[at].reshape(-1), scratch.before[0][at], g.reshape(-1)
    size, threshold, shrink = model.size[at].reshape(-1), model.threshold[at].reshape(-1), model.shrink[at].reshape(-1)
    before.reshape(-1)[:] = old
    momentum = x.dtype.type(model.momentum)
    for i in range(len(x)):
        here = x[i]
        u = np.float64(here + momentum * (here - old[i])) - size[i] * np.float64(g[i])
        u = u - min(max(u, -threshold[i]), threshold[i])
        old[i] = here
        x[i] = u * shrink[i]


@register_jitable(fastmath=dense.FAST)
def _fold(model, scratch, block, sparse):
    """W, and the part of the offset, in one block of columns, such that Z = V W + the sum of all such parts."""
    p, K = len(model.center), model.x.shape[1]
    W, offset = scratch.W, scratch.offsets[block]
    for k in range(K):
        offset[k] = model.x[p, k] if len(model.x) > p and block == len(scratch.offsets) - 1 else 0
    x, center, per_scale = model.x, model.center, model.per_scale
    begin, end = block * scratch.columns, min(p, (block + 1) * scratch.columns)
    if sparse and K > 1:  # in the order of memory
        for j in range(begin, end):
            for k in range(K):
                W[j, k] = x[j, k] * per_scale[j]
                offset[k] -= center[j] * W[j, k]
        return
    for k in range(K):
        total = offset.dtype.type(0)
        for j in range(begin, end):
            part = x[j, k] * per_scale[j]
            total += center[j] * part
            if sparse:
                W[j, k] = part
            else:
                W[k, j] = part
        offset[k] -= total


@register_jitable
def _renew(table, scratch, step, m, thread, threads):
    """yᵢ of this thread's share of the rows just read; what it was takes its place in ``new``."""
    rows, new = scratch.rows[step % 2], scratch.new
    for q in range(thread * m // threads, (thread + 1) * m // threads):
        for k in range(new.shape[1]):
            table[rows[q], k], new[q, k] = new[q, k], table[rows[q], k]


@register_jitable
def _take_back(law, model, scratch, table, step, m):
    """The step that made x or g infinite or NaN: it is left to who knows what to do."""
    model.x[:] = model.previous
    model.previous[:] = scratch.before[0]
    if law.renews:
        model.mean[:] = scratch.before[1]
        _renew(table, scratch, step, m, 0, 1)


@njit(nogil=True, cache=True, fastmath=dense.FAST)
def run(
    V: Any, rows: Any, table: Any, w: Any, law: Any, model: Any, scratch: Any, sparse: bool, thread: int, threads: int
) -> None:
    """x-steps from iteration law.k on. All threads run this."""
    found, n, blocks, K = scratch.found, len(w), len(scratch.offsets), table.shape[1]
    drawer = threads - 1
    offset = np.empty(K, scratch.W.dtype)
    room = (scratch.columns + 1, K)
    main, rest = np.empty(room, scratch.W.dtype), np.empty(room, scratch.W.dtype)
    _numbers(law, 0, n, scratch, thread, threads)
    for block in range(thread, blocks, threads):
        _fold(model, scratch, block, sparse)
    barrier(scratch.meeting, threads)
    if thread == drawer:
        _look_up(law, 0, w, scratch)
    barrier(scratch.meeting, threads)
    step = evaluated = skipped = 0
    ended = LIMIT if law.room <= 0 else found[NEXT]
    while ended == OPEN:
        m, idle = found[ROWS], found[IDLE]
        for k in range(K):
            offset[k] = 0
            for block in range(blocks):
                offset[k] += scratch.offsets[block, k]
        if thread == 0:
            scratch.blocks[:] = 0
        _numbers(law, step + 1, n, scratch, thread, threads)
        _read(V, rows, table, law, scratch, step, offset, thread, threads)
        barrier(scratch.meeting, threads)
        if thread == drawer:
            scratch.claims[:] = 0
            _look_up(law, step + 1, w, scratch)
        if law.renews:
            _renew(table, scratch, step, m, thread, threads)
        for turn in range(blocks):
            block = (thread * blocks // threads + turn) % blocks
            if take(scratch.blocks, block):
                size = _estimate(law, model, scratch, n, block, sparse, main, rest)
                _move(model, scratch, block, size, main[:size])
                _fold(model, scratch, block, sparse)
        barrier(scratch.meeting, threads)
        if found[OVERFLOW] != 0:
            if thread == 0:
                _take_back(law, model, scratch, table, step, m)
            break
        step += 1
        evaluated += m
        skipped += idle
        ended = LIMIT if evaluated >= law.room else found[NEXT]
    if thread == 0:
        found[STEPS], found[EVALUATED], found[SKIPPED] = step, evaluated, skipped
