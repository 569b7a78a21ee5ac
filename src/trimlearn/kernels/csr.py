# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, call-arg"
"""The fused steps over the rows of a CSR matrix. W and G are p × K: the K numbers of a column lie together."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64
from numba.extending import register_jitable

from trimlearn.kernels.dense import LINE
from trimlearn.kernels.machine import prefetch
from trimlearn.kernels.phi import phi
from trimlearn.kernels.vectors import WIDEST, add_outer, add_product

IN_ORDER = {"contract", "nsz"}  # no gathers of eight entries of W at a time: slower than one by one, twice
MOST = 256  # rows at a time, whatever W takes: their predictions are held
AHEAD = 2  # rows that are asked for before they are needed


@register_jitable(fastmath=IN_ORDER)
def _predict(data, indices, begin, end, W, offset, z, q):
    """z[q] ← offset + Σ v W[j] over the entries of a row."""
    K = W.shape[1]
    for k in range(K):
        z[q, k] = offset[k]
    if K > 1:
        for k in range(0, K, WIDEST):
            add_product(data, indices, begin, end, W, k, min(WIDEST, K - k), z, q)
        return
    fours = end - (end - begin) % 4  # four at a time, else each would wait for the sum so far
    zero = z.dtype.type(0)
    za, zb, zc, zd = z[q, 0], zero, zero, zero
    for at in range(begin, fours, 4):
        za += data[at] * W[uint64(indices[at]), 0]
        zb += data[at + 1] * W[uint64(indices[at + 1]), 0]
        zc += data[at + 2] * W[uint64(indices[at + 2]), 0]
        zd += data[at + 3] * W[uint64(indices[at + 3]), 0]
    za = (za + zb) + (zc + zd)
    for at in range(fours, end):
        za += data[at] * W[uint64(indices[at]), 0]
    z[q, 0] = za


@register_jitable(fastmath=IN_ORDER)
def _add(data, indices, begin, end, r, q, G):
    K = G.shape[1]
    for k in range(0, K, WIDEST):
        add_outer(data, indices, begin, end, r, q, k, min(WIDEST, K - k), G)


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
    sums = np.zeros(K)  # of this thread alone: total may share its cache line with other threads'
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
                sums[k] += r[q, k]
            _add(data, indices, indptr[i], indptr[i + 1], r, q, G)
    total += sums


@register_jitable(fastmath=IN_ORDER)
def rows_evaluate(V, first, W, offset, rows, c, f, r, G, total):
    """As `trimlearn.kernels.dense.rows_evaluate`."""
    data, indices, indptr = V
    K, m, tile = W.shape[1], len(f), _tile(data, indptr, W)
    z, part = np.empty((tile, K), W.dtype), np.empty((1, K), W.dtype)
    sums = np.zeros(K)  # of this thread alone: total may share its cache line with other threads'
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
                    sums[k] += part[0, k]
                _add(data, indices, indptr[i], indptr[i + 1], part, 0, G)
    total += sums


difference = njit(nogil=True, cache=True, fastmath=IN_ORDER)(rows_difference)
evaluate = njit(nogil=True, cache=True, fastmath=IN_ORDER)(rows_evaluate)
