# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg, var-annotated"
"""The x-steps between two w-steps as one compiled loop, on all threads: Algorithm 1's, for D = ∅ and penalties whose
prox is a soft threshold and a division."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable

from trimlearn.kernels import csr, dense
from trimlearn.kernels.machine import LINE, atomic_add, barrier
from trimlearn.kernels.rows import count, draw, uniforms

__all__ = ["Law", "MovingPoint", "StretchRoom", "run"]

OPEN, W_NEXT, LIMIT, OVERFLOW = 0, 1, 2, 3  # why a stretch ends
ENDED, NEXT = 0, 1  # places in StretchRoom.found: where that is said, and the same of the step to come
STEPS, EVALUATED, SKIPPED = 2, 3, 4  # steps taken, rows evaluated, draws of weight 0
ROWS, IDLE = 5, 6  # of the batch drawn last: its rows, and its draws of weight 0


class Law(NamedTuple):
    """What is drawn, and when to stop."""

    key: Any  # the seed, two uint64
    k: int  # the iteration to begin with
    q: float  # the chance of a w-step, drawn first in every iteration; negative: nothing is drawn for that
    b: int  # rows in a batch
    steps: int  # at most
    room: float  # rows that may still be evaluated: no step after those
    cumulative: Any  # sums of sample weights, of length 0 without


class MovingPoint(NamedTuple):
    """x and what moves it, all (p, K) or (p + 1, K) with an intercept; x and previous are written in place."""

    x: Any
    previous: Any
    mean: Any  # of y
    size: Any  # γ·M⁻¹, float64
    threshold: Any  # of the prox, float64
    shrink: Any  # that it multiplies by then, float64
    momentum: float
    center: Any  # p numbers
    per_scale: Any  # 1/scale


class StretchRoom(NamedTuple):
    """Room to work in, shared by the threads."""

    u: Any  # b + 1 float64
    drawn: Any  # b int64
    rows: Any  # b int64
    shares: Any  # b
    seen: Any  # n int32, all 0
    new: Any  # (b, K)
    W: Any
    offset: Any  # K
    G: Any  # (pieces, …)
    totals: Any  # (pieces, K) float64
    g: Any  # the shape of x
    found: Any  # int64: see ENDED to IDLE above
    meeting: Any  # see `trimlearn.kernels.machine.barrier`
    claims: Any  # an int64 for each piece, a cache line apart: 0 until a thread takes it


def _part(V: Any, index: Any, W: Any, offset: Any, rows: Any, old: Any, c: Any, new: Any, G: Any, total: Any) -> None:
    raise NotImplementedError("compiled code only")


@overload(_part, jit_options={"fastmath": dense.FAST})
def _choose(V, index, W, offset, rows, old, c, new, G, total):
    return dense.rows_difference if isinstance(V, types.Array) else csr.rows_difference


@register_jitable
def _draw(law, step, w, scratch):
    """The rows of the step to come, or why there is none."""
    found = scratch.found
    if step == law.steps:
        found[NEXT] = LIMIT
        return
    coin = law.q >= 0
    u = scratch.u if coin else scratch.u[1:]
    uniforms(law.key, law.k + step, 0, 0, u)
    if coin and u[0] < law.q:
        found[NEXT] = W_NEXT
        return
    draw(scratch.u[1:], len(w), law.cumulative, scratch.drawn)
    found[ROWS], found[IDLE] = count(scratch.drawn, w, scratch.seen, scratch.rows, scratch.shares)


@register_jitable(fastmath=dense.FAST)
def _fold(model, W, offset, sparse):
    """W and offset such that Z = V W + offset."""
    p, K = len(model.center), model.x.shape[1]
    for k in range(K):
        offset[k] = model.x[p, k] if len(model.x) > p else 0
    for j in range(p):  # as x lies in memory
        for k in range(K):
            part = model.x[j, k] * model.per_scale[j]
            offset[k] -= model.center[j] * part
            if sparse:
                W[j, k] = part
            else:
                W[k, j] = part


@register_jitable(fastmath=dense.FAST)
def _add_up(G, totals, thread, threads):
    """G[0] ← Σ G, of this thread's share of the entries; totals likewise, by the first."""
    flat = G.reshape(len(G), -1)
    size = -(-flat.shape[1] // threads)
    begin, end = thread * size, min((thread + 1) * size, flat.shape[1])
    for piece in range(1, len(G)):
        for i in range(begin, end):
            flat[0, i] += flat[piece, i]
        if thread == 0:
            for k in range(totals.shape[1]):
                totals[0, k] += totals[piece, k]


@register_jitable(fastmath=dense.FAST)
def _estimate(model, G, totals, g, sparse):
    """g ← what x moves along, the mean of y included; False where that is not finite."""
    p, K = len(model.center), model.x.shape[1]
    r = totals.astype(g.dtype)
    for j in range(p):
        for k in range(K):
            g[j, k] = ((G[j, k] if sparse else G[k, j]) - r[k] * model.center[j]) * model.per_scale[j]
    if len(model.x) > p:
        g[p] = r
    flat, mean, check = g.reshape(-1), model.mean.reshape(-1), 0.0
    for i in range(len(flat)):
        flat[i] += mean[i]
        check += flat[i]
    return np.isfinite(check)


@register_jitable(fastmath=dense.FAST)
def _move(model, g):
    """x ← prox(x + momentum·(x − previous) − γM⁻¹g), in float64."""
    x, old, size, g = model.x.reshape(-1), model.previous.reshape(-1), model.size.reshape(-1), g.reshape(-1)
    threshold, shrink = model.threshold.reshape(-1), model.shrink.reshape(-1)
    momentum = model.x.dtype.type(model.momentum)
    for i in range(len(x)):
        here = x[i]
        u = np.float64(here + momentum * (here - old[i])) - size[i] * np.float64(g[i])
        u = u - min(max(u, -threshold[i]), threshold[i])
        old[i] = here
        x[i] = u * shrink[i]


@register_jitable
def _advance(law, model, scratch, sparse):
    """x after the step under way, whose sums are ready. One that is not finite is left to who knows what to do."""
    found = scratch.found
    if not _estimate(model, scratch.G[0], scratch.totals[0], scratch.g, sparse):
        found[ENDED] = OVERFLOW
        return
    _move(model, scratch.g)
    _fold(model, scratch.W, scratch.offset, sparse)
    found[STEPS] += 1


@register_jitable
def _settle(law, found, pending):
    """Count the rows of the step that has been taken, and see whether another one follows."""
    if found[ENDED] == OPEN:
        found[EVALUATED] += pending[0]
        found[SKIPPED] += pending[1]
        found[ENDED] = LIMIT if found[EVALUATED] >= law.room else found[NEXT]


@njit(nogil=True, cache=True, fastmath=dense.FAST)
def run(
    V: Any, rows: Any, table: Any, w: Any, law: Any, model: Any, scratch: Any, sparse: bool, thread: int, threads: int
) -> None:
    """x-steps from iteration law.k on. All threads run this and read rows; the first moves x while another draws."""
    found, pieces = scratch.found, len(scratch.G)
    drawer = 1 if threads > 1 else 0
    if thread == 0:
        _draw(law, 0, w, scratch)
        _fold(model, scratch.W, scratch.offset, sparse)
        found[ENDED] = LIMIT if law.room <= 0 else found[NEXT]
    step = 0
    while True:
        barrier(scratch.meeting, threads)
        if found[ENDED] != OPEN:
            return
        m, idle = found[ROWS], found[IDLE]
        size = -(-m // pieces)
        size += -size % dense.TILE
        for turn in range(pieces):  # its own first, whose sums its cache holds; then those of threads that are held up
            piece = (thread * pieces // threads + turn) % pieces
            if atomic_add(scratch.claims, piece * LINE, 1) != 0:
                continue
            begin, end = min(m, piece * size), min(m, (piece + 1) * size)
            G, total = scratch.G[piece], scratch.totals[piece]
            G[:] = 0
            total[:] = 0
            _part(
                V, scratch.rows[begin:end], scratch.W, scratch.offset, rows, table, scratch.shares[begin:end],
                scratch.new[begin:end], G, total,
            )  # fmt: skip
        barrier(scratch.meeting, threads)
        _add_up(scratch.G, scratch.totals, thread, threads)
        barrier(scratch.meeting, threads)
        step += 1
        if thread == drawer:
            _draw(law, step, w, scratch)
        if thread == 0:
            scratch.claims[:] = 0
            _advance(law, model, scratch, sparse)
        barrier(scratch.meeting, threads)
        if thread == 0:
            _settle(law, found, (m, idle))
