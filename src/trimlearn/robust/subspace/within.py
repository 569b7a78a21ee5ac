"""Rows that lie far out within a flat, of which no distance from it tells."""

from __future__ import annotations

from math import sqrt
from typing import Final

import numpy as np

from trimlearn.robust.scatter.chance import PER_DIMENSION, beyond_chance, far_out
from trimlearn.robust.scatter.judge import DistanceJudge
from trimlearn.robust.scatter.mcd import default_h, mcd
from trimlearn.robust.subspace.flat import Flat
from trimlearn.robust.subspace.search import FlatSearch
from trimlearn.robust.subspace.span import HUGE

__all__ = ["far_within"]

ROWS: Final = 20_000  # by which far is told, a limit on time: a tenth of a second for five dimensions


def far_within(search: FlatSearch, flat: Flat, near: np.ndarray) -> np.ndarray:
    """Of the rows near the flat, those that lie far out in it: by their distances from the half of the rows of least
    covariance there, apart from all others, not by chance, and at such distances as errors that matter have."""
    far, rows = np.zeros(len(search.s), dtype=bool), np.flatnonzero(near & (search.s > 0))
    if flat.U.shape[1] == 0 or not rows.size:
        return far
    axes = max(1, int(search.s[rows].sum()) // PER_DIMENSION)  # the leading ones, as many as so many rows can tell of
    scores = np.clip(search.points.scores(flat)[rows, :axes], -HUGE, HUGE)
    by_first = np.argsort(scores[:, 0], kind="stable")  # so that the order of the rows does not matter
    some = by_first[np.linspace(0, len(rows) - 1, min(len(rows), ROWS)).astype(np.int64)]
    A, s = scores[some], search.s[rows[some]]
    h = default_h(float(s.sum()), A.shape[1])
    fit = mcd(A, s, h, starts=0, seed=search.seed)
    if fit.rank < A.shape[1]:  # half of the rows agree in a coordinate: there is no distance
        return far
    judged, d2 = DistanceJudge(A, s, None).trimmed(fit, h), fit.squared_distances(A)
    if not judged.cut.apart:
        return far
    off = beyond_chance(A, s, d2, ~judged.verdict.inliers)
    farthest, bad = float(d2[~off].max()), min(float(s @ off), judged.verdict.contamination * float(s.sum()))
    if bad > 1.0 and far_out(np.sqrt(d2), s, bad / float(s.sum()), sqrt(farthest)):
        far[rows] = fit.squared_distances(scores) > farthest
    return far
