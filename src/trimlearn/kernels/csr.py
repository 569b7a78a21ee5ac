# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
"""The fused steps over the rows of a CSR matrix. W and G are p × K: the K numbers of a column lie together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from trimlearn.kernels.dense import FAST
from trimlearn.kernels.phi import phi

__all__ = ["difference", "evaluate"]


@register_jitable(fastmath=FAST)
def _predict(data, indices, begin, end, W, offset, z):
    K = W.shape[1]
    for k in range(K):
        z[k] = offset[k]
    for at in range(begin, end):
        j, v = indices[at], data[at]
        for k in range(K):
            z[k] += v * W[j, k]


@register_jitable(fastmath=FAST)
def _add(data, indices, begin, end, r, G):
    for at in range(begin, end):
        j, v = indices[at], data[at]
        for k in range(G.shape[1]):
            G[j, k] += v * r[k]


@njit(nogil=True, cache=True, fastmath=FAST)
def difference(
    data: Any, indices: Any, indptr: Any, index: Any, W: Any, offset: Any, rows: Any, old: Any, c: Any, new: Any,
    G: Any, total: Any,
) -> None:  # fmt: skip
    """As `trimlearn.kernels.dense.difference`."""
    K = W.shape[1]
    z, r = np.empty(K, W.dtype), np.empty(K, W.dtype)
    for q in range(len(index)):
        i, share = index[q], c[q]
        _predict(data, indices, indptr[i], indptr[i + 1], W, offset, z)
        phi(z, i, rows, r)
        for k in range(K):
            new[q, k] = r[k]
            r[k] = (r[k] - old[i, k]) * share
            total[k] += r[k]
        _add(data, indices, indptr[i], indptr[i + 1], r, G)


@njit(nogil=True, cache=True, fastmath=FAST)
def evaluate(
    data: Any, indices: Any, indptr: Any, first: int, W: Any, offset: Any, rows: Any, c: Any, f: Any, r: Any,
    G: Any, total: Any,
) -> None:  # fmt: skip
    """As `trimlearn.kernels.dense.evaluate`."""
    K = W.shape[1]
    z, part = np.empty(K, W.dtype), np.empty(K, W.dtype)
    for q in range(len(f)):
        i, share = first + q, c[q]
        _predict(data, indices, indptr[i], indptr[i + 1], W, offset, z)
        f[q] = phi(z, i, rows, r[q])
        if share != 0:
            for k in range(K):
                part[k] = r[q, k] * share
                total[k] += part[k]
            _add(data, indices, indptr[i], indptr[i + 1], part, G)
