# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg"
"""The fused steps over dense rows: predict, residual, and their part of the gradient while the rows are in cache.

W and G are K × p, so that inner loops run along a row of V. Four rows and two numbers of a prediction are taken at a
time, so that each number loaded serves several products. V may hold integers: they are converted where they are used.
Sums may be rearranged for the processor's vectors (``reassoc``), but NaN and infinity are what they are.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import register_jitable

from trimlearn.kernels.machine import prefetch
from trimlearn.kernels.phi import phi

FAST = {"reassoc", "contract", "nsz"}  # what vectors need; not nnan or ninf: a loss may overflow
TILE = 4  # rows at a time, by two of W: eight sums, half of the registers that AVX2 has
AHEAD = 3 * TILE  # rows that are asked for before they are needed: a row is a new page, 0.2 µs away
LINE = 64  # bytes of a cache line


@register_jitable(fastmath=FAST)
def _predict(V, a, b, c, d, W, offset, z):
    K, p = W.shape
    for k in range(0, K - 1, 2):
        za = zb = zc = zd = offset[k]
        ya = yb = yc = yd = offset[k + 1]
        for j in range(p):
            w, u = W[k, j], W[k + 1, j]
            va, vb, vc, vd = V[a, j], V[b, j], V[c, j], V[d, j]
            za += va * w
            ya += va * u
            zb += vb * w
            yb += vb * u
            zc += vc * w
            yc += vc * u
            zd += vd * w
            yd += vd * u
        z[0, k], z[1, k], z[2, k], z[3, k] = za, zb, zc, zd
        z[0, k + 1], z[1, k + 1], z[2, k + 1], z[3, k + 1] = ya, yb, yc, yd
    for k in range(K - K % 2, K):
        za = zb = zc = zd = offset[k]
        for j in range(p):
            w = W[k, j]
            za += V[a, j] * w
            zb += V[b, j] * w
            zc += V[c, j] * w
            zd += V[d, j] * w
        z[0, k], z[1, k], z[2, k], z[3, k] = za, zb, zc, zd


@register_jitable(fastmath=FAST)
def _add(V, a, b, c, d, r, G):
    K, p = G.shape
    for k in range(0, K - 1, 2):
        ra, rb, rc, rd = r[0, k], r[1, k], r[2, k], r[3, k]
        sa, sb, sc, sd = r[0, k + 1], r[1, k + 1], r[2, k + 1], r[3, k + 1]
        for j in range(p):
            va, vb, vc, vd = V[a, j], V[b, j], V[c, j], V[d, j]
            G[k, j] += ra * va + rb * vb + rc * vc + rd * vd
            G[k + 1, j] += sa * va + sb * vb + sc * vc + sd * vd
    for k in range(K - K % 2, K):
        ra, rb, rc, rd = r[0, k], r[1, k], r[2, k], r[3, k]
        for j in range(p):
            G[k, j] += ra * V[a, j] + rb * V[b, j] + rc * V[c, j] + rd * V[d, j]


@register_jitable
def _ask_for(V, index, begin, end, table):
    """The rows index[begin:end], and what the table says of them, into the cache."""
    step = max(1, LINE // V.itemsize)
    for q in range(begin, min(end, len(index))):
        i = index[q]
        prefetch(table, (i, 0))
        for j in range(0, V.shape[1], step):
            prefetch(V, (i, j))


@register_jitable(fastmath=FAST)
def rows_difference(V, index, W, offset, rows, old, c, new, G, total):
    """G += Σ c (∇φᵢ(zᵢ) − oldᵢ) vᵢᵀ and total += Σ c (∇φᵢ(zᵢ) − oldᵢ) over the rows ``index``; new ← ∇φᵢ(zᵢ)."""
    K, m = W.shape[0], len(index)
    z, r = np.empty((TILE, K), W.dtype), np.empty((TILE, K), W.dtype)
    sums = np.zeros(K)  # of this thread alone: total may share its cache line with other threads'
    _ask_for(V, index, 0, AHEAD, old)
    for start in range(0, m, TILE):
        size = min(TILE, m - start)
        _ask_for(V, index, start + AHEAD, start + AHEAD + TILE, old)
        a, last = index[start], start + size - 1  # the last row stands in for those that a tile lacks
        b, d, e = index[min(start + 1, last)], index[min(start + 2, last)], index[last]
        _predict(V, a, b, d, e, W, offset, z)
        if size < TILE:
            r[size:] = 0
        for q in range(size):
            i, share = index[start + q], c[start + q]
            phi(z, q, i, rows, r, q)
            for k in range(K):
                new[start + q, k] = r[q, k]
                r[q, k] = (r[q, k] - old[i, k]) * share
                sums[k] += r[q, k]
        _add(V, a, b, d, e, r, G)
    total += sums


@register_jitable(fastmath=FAST)
def rows_evaluate(V, first, W, offset, rows, c, f, r, G, total):
    """f ← φᵢ(zᵢ) and r ← ∇φᵢ(zᵢ) of the len(f) rows from ``first`` on; G += Σ cᵢ∇φᵢ(zᵢ)vᵢᵀ, total += Σ cᵢ∇φᵢ(zᵢ).

    A row with cᵢ = 0 adds nothing, whatever its residual is.
    """
    K, m = W.shape[0], len(f)
    z, part = np.empty((TILE, K), W.dtype), np.empty((TILE, K), W.dtype)
    sums = np.zeros(K)  # of this thread alone: total may share its cache line with other threads'
    for start in range(0, m, TILE):
        size, i = min(TILE, m - start), first + start
        last = i + size - 1
        b, d, e = min(i + 1, last), min(i + 2, last), last
        _predict(V, i, b, d, e, W, offset, z)
        if size < TILE:
            part[size:] = 0
        for q in range(size):
            f[start + q] = phi(z, q, i + q, rows, r, start + q)
            share = c[start + q]
            for k in range(K):
                part[q, k] = r[start + q, k] * share if share != 0 else 0.0
                sums[k] += part[q, k]
        _add(V, i, b, d, e, part, G)
    total += sums


difference = njit(nogil=True, cache=True, fastmath=FAST)(rows_difference)
evaluate = njit(nogil=True, cache=True, fastmath=FAST)(rows_evaluate)
