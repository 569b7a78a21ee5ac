# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
"""The fused steps over dense rows: predict, residual, and their part of the gradient while the rows are in cache.

W and G are K × p, so that inner loops run along a row of V. Rows are taken in fours, so that each number of W and G
that is loaded serves four of them. V may hold integers: they are converted where they are used. Sums may be rearranged
for the processor's vectors (``reassoc``), but NaN and infinity are what they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from trimlearn.kernels.phi import phi

__all__ = ["difference", "evaluate"]

FAST = {"reassoc", "contract", "nsz"}  # what vectors need; not nnan or ninf: a loss may overflow
TILE = 4  # rows at a time: eight registers of partial sums, half of those that AVX2 has


@register_jitable(fastmath=FAST)
def _predict_four(V, a, b, c, d, W, offset, z):
    for k in range(W.shape[0]):
        za = zb = zc = zd = offset[k]
        for j in range(W.shape[1]):
            w = W[k, j]
            za += V[a, j] * w
            zb += V[b, j] * w
            zc += V[c, j] * w
            zd += V[d, j] * w
        z[0, k], z[1, k], z[2, k], z[3, k] = za, zb, zc, zd


@register_jitable(fastmath=FAST)
def _predict_one(V, i, W, offset, z):
    for k in range(W.shape[0]):
        total = offset[k]
        for j in range(W.shape[1]):
            total += V[i, j] * W[k, j]
        z[k] = total


@register_jitable(fastmath=FAST)
def _add_four(V, a, b, c, d, r, G):
    for k in range(G.shape[0]):
        ra, rb, rc, rd = r[0, k], r[1, k], r[2, k], r[3, k]
        for j in range(G.shape[1]):
            G[k, j] += ra * V[a, j] + rb * V[b, j] + rc * V[c, j] + rd * V[d, j]


@register_jitable(fastmath=FAST)
def _add_one(V, i, r, G):
    for k in range(G.shape[0]):
        part = r[k]
        for j in range(G.shape[1]):
            G[k, j] += part * V[i, j]


@njit(nogil=True, cache=True, fastmath=FAST)
def difference(
    V: Any, index: Any, W: Any, offset: Any, rows: Any, old: Any, c: Any, new: Any, G: Any, total: Any
) -> None:
    """G += Σ c (∇φᵢ(zᵢ) − oldᵢ) vᵢᵀ and total += Σ c (∇φᵢ(zᵢ) − oldᵢ) over the rows ``index``; new ← ∇φᵢ(zᵢ)."""
    K, m = W.shape[0], len(index)
    z, r = np.empty((TILE, K), W.dtype), np.empty((TILE, K), W.dtype)
    for start in range(0, m, TILE):
        size = min(TILE, m - start)
        if size == TILE:
            a, b, d, e = index[start], index[start + 1], index[start + 2], index[start + 3]
            _predict_four(V, a, b, d, e, W, offset, z)
        else:
            for q in range(size):
                _predict_one(V, index[start + q], W, offset, z[q])
        for q in range(size):
            i, share = index[start + q], c[start + q]
            phi(z[q], i, rows, r[q])
            for k in range(K):
                new[start + q, k] = r[q, k]
                r[q, k] = (r[q, k] - old[i, k]) * share
                total[k] += r[q, k]
        if size == TILE:
            _add_four(V, a, b, d, e, r, G)
        else:
            for q in range(size):
                _add_one(V, index[start + q], r[q], G)


@njit(nogil=True, cache=True, fastmath=FAST)
def evaluate(V: Any, first: int, W: Any, offset: Any, rows: Any, c: Any, f: Any, r: Any, G: Any, total: Any) -> None:
    """f ← φᵢ(zᵢ) and r ← ∇φᵢ(zᵢ) of the len(f) rows from ``first`` on; G += Σ cᵢ∇φᵢ(zᵢ)vᵢᵀ, total += Σ cᵢ∇φᵢ(zᵢ).

    A row with cᵢ = 0 adds nothing, whatever its residual is.
    """
    K, m = W.shape[0], len(f)
    z, part = np.empty((TILE, K), W.dtype), np.empty((TILE, K), W.dtype)
    for start in range(0, m, TILE):
        size, i = min(TILE, m - start), first + start
        if size == TILE:
            _predict_four(V, i, i + 1, i + 2, i + 3, W, offset, z)
        else:
            for q in range(size):
                _predict_one(V, i + q, W, offset, z[q])
        for q in range(size):
            f[start + q] = phi(z[q], i + q, rows, r[start + q])
            share = c[start + q]
            for k in range(K):
                part[q, k] = r[start + q, k] * share if share != 0 else 0.0
                total[k] += part[q, k]
        if size == TILE:
            _add_four(V, i, i + 1, i + 2, i + 3, part, G)
        else:
            for q in range(size):
                _add_one(V, i + q, part[q], G)
