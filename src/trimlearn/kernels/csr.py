# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg"
"""The fused steps over the rows of a CSR matrix. W and G are p × K: the K numbers of a column lie together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64
from numba.extending import register_jitable

from trimlearn.kernels.dense import LINE
from trimlearn.kernels.machine import prefetch
from trimlearn.kernels.phi import phi

__all__ = ["difference", "evaluate"]

IN_ORDER = {"contract", "nsz"}  # no gathers of eight entries of W at a time: slower than one by one, twice
MOST = 256  # rows at a time, whatever W takes: their predictions are held
AHEAD = 2  # rows that are asked for before they are needed


@register_jitable(fastmath=IN_ORDER)
def _predict(data, indices, begin, end, W, offset, z, q):
    """z[q] ← offset + Σ v W[j] over the entries of a row; four at a time, else each would wait for the sum so far."""
    K = W.shape[1]
    fours = end - (end - begin) % 4
    for k in range(K):
        z[q, k] = offset[k]
    if K == 1:
        zero = z.dtype.type(0)
        za, zb, zc, zd = z[q, 0], zero, zero, zero
        for at in range(begin, fours, 4):
            za += data[at] * W[uint64(indices[at]), 0]
            zb += data[at + 1] * W[uint64(indices[at + 1]), 0]
            zc += data[at + 2] * W[uint64(indices[at + 2]), 0]
            zd += data[at + 3] * W[uint64(indices[at + 3]), 0]
        z[q, 0] = (za + zb) + (zc + zd)
    else:
        for at in range(begin, fours, 4):
            a, b, c, d = uint64(indices[at]), uint64(indices[at + 1]), uint64(indices[at + 2]), uint64(indices[at + 3])
            va, vb, vc, vd = data[at], data[at + 1], data[at + 2], data[at + 3]
            for k in range(K):
                z[q, k] += va * W[a, k] + vb * W[b, k] + vc * W[c, k] + vd * W[d, k]
    for at in range(fours, end):
        j, v = uint64(indices[at]), data[at]
        for k in range(K):
            z[q, k] += v * W[j, k]


@register_jitable(fastmath=IN_ORDER)
def _add(data, indices, begin, end, r, q, G):
    K = G.shape[1]
    if K == 1:
        part = r[q, 0]
        for at in range(begin, end):
            G[uint64(indices[at]), 0] += data[at] * part
        return
    for at in range(begin, end):
        j, v = uint64(indices[at]), data[at]
        for k in range(K):
            G[j, k] += v * r[q, k]


@register_jitable
def _tile(data, indptr, W):
    """Rows at a time: as much of V as of W, so that W and G, where a cache does not hold both, seldom change places."""
    entries = max(1, len(data) // max(1, len(indptr) - 1))
    return min(max(1, W.size // entries), MOST)


@register_jitable
def _ask_for(data, indices, indptr, i, table):
    """Row i, and what the table says of it, into the cache."""
    prefetch(table, (i, 0))
    for at in range(indptr[i], indptr[i + 1], max(1, LINE // data.itemsize)):
        prefetch(data, at)
    for at in range(indptr[i], indptr[i + 1], max(1, LINE // indices.itemsize)):
        prefetch(indices, at)


@register_jitable(fastmath=IN_ORDER)
def rows_difference(V, index, W, offset, rows, old, c, new, G, total):
    """As `trimlearn.kernels.dense.rows_difference`; V is (data, indices, indptr)."""
    data, indices, indptr = V
    K, m, tile = W.shape[1], len(index), _tile(data, indptr, W)
    z, r = np.empty((tile, K), W.dtype), np.empty((tile, K), W.dtype)
    for start in range(0, m, tile):
        size = min(tile, m - start)
        for q in range(size):
            i = index[start + q]
            if start + q + AHEAD < m:
                _ask_for(data, indices, indptr, index[start + q + AHEAD], old)
            _predict(data, indices, indptr[i], indptr[i + 1], W, offset, z, q)
        for q in range(size):
            i, share = index[start + q], c[start + q]
            phi(z, q, i, rows, r, q)
            for k in range(K):
                new[start + q, k] = r[q, k]
                r[q, k] = (r[q, k] - old[i, k]) * share
                total[k] += r[q, k]
            _add(data, indices, indptr[i], indptr[i + 1], r, q, G)


@register_jitable(fastmath=IN_ORDER)
def rows_evaluate(V, first, W, offset, rows, c, f, r, G, total):
    """As `trimlearn.kernels.dense.rows_evaluate`."""
    data, indices, indptr = V
    K, m, tile = W.shape[1], len(f), _tile(data, indptr, W)
    z, part = np.empty((tile, K), W.dtype), np.empty((1, K), W.dtype)
    for start in range(0, m, tile):
        size = min(tile, m - start)
        for q in range(size):
            i = first + start + q
            _predict(data, indices, indptr[i], indptr[i + 1], W, offset, z, q)
        for q in range(size):
            i, share = first + start + q, c[start + q]
            f[start + q] = phi(z, q, i, rows, r, start + q)
            if share != 0:
                for k in range(K):
                    part[0, k] = r[start + q, k] * share
                    total[k] += part[0, k]
                _add(data, indices, indptr[i], indptr[i + 1], part, 0, G)


@njit(nogil=True, cache=True, fastmath=IN_ORDER)
def difference(
    V: Any, index: Any, W: Any, offset: Any, rows: Any, old: Any, c: Any, new: Any, G: Any, total: Any
) -> None:
    """`rows_difference`, compiled for itself."""
    rows_difference(V, index, W, offset, rows, old, c, new, G, total)


@njit(nogil=True, cache=True, fastmath=IN_ORDER)
def evaluate(V: Any, first: int, W: Any, offset: Any, rows: Any, c: Any, f: Any, r: Any, G: Any, total: Any) -> None:
    """`rows_evaluate`, compiled for itself."""
    rows_evaluate(V, first, W, offset, rows, c, f, r, G, total)
