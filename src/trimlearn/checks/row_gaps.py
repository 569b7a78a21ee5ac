"""Gaps in a matrix of numbers, filled with what the other numbers of their row suggest."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, rankdata

from trimlearn._utils.arrays import Floats, Ints

__all__ = ["filled"]

SWEEPS = 8  # over the columns: for one gap in a row the first is exact, and neighbouring gaps settle in a few
FLOOR = 0.001  # the least eigenvalue of a matrix of correlations: taken from pairs of columns, it may be negative


def filled(Z: Floats, rows: Ints) -> Floats:
    """A matrix of columns with centre 0 and spread 1, NaN replaced by what the row suggests.

    The middle of the column in its place would make a row odd where columns hang together: 0 beside two large numbers.
    Correlations are those of normal scores of ranks, each from the ``rows`` in which both are known: wild cells count
    little.

    >>> z = np.random.default_rng(0).standard_normal(200)
    >>> Z = np.column_stack([z, 2.0 * z])
    >>> Z[0] = [3.0, np.nan]
    >>> filled(Z, np.arange(200))[0].round(1).tolist()
    [3.0, 3.0]
    """
    gaps = np.isnan(Z)
    out = np.where(gaps, 0.0, Z)
    if not gaps.any():
        return out
    P = np.linalg.inv(_correlations(Z[rows]))
    for _ in range(SWEEPS):
        for j in np.flatnonzero(gaps.any(axis=0)):
            there = gaps[:, j]
            out[there, j] -= out[there] @ P[:, j] / P[j, j]
    return out


def _correlations(Z: Floats) -> Floats:
    known = ~np.isnan(Z)
    scores = np.zeros(Z.shape)
    for j, there in enumerate(known.T):
        count = int(there.sum())
        scores[there, j] = norm.ppf(rankdata(Z[there, j]) / (count + 1.0))
    both = known.astype(np.float64)
    S = scores.T @ scores / np.maximum(both.T @ both, 1.0)
    spread = np.sqrt(np.maximum(np.diag(S), FLOOR))
    values, vectors = np.linalg.eigh(S / np.outer(spread, spread))
    return np.asarray((vectors * np.maximum(values, FLOOR)) @ vectors.T)
