"""In which units features are compared by a distance from a subspace."""

from __future__ import annotations

from typing import Final

import numpy as np

from trimlearn._utils.threads import total
from trimlearn._utils.validation import is_sparse
from trimlearn.losses.exact import COLUMNS
from trimlearn.robust.order import weighted_medians
from trimlearn.robust.scatter.units import EQUAL, MAD
from trimlearn.robust.subspace.flat import Points
from trimlearn.robust.subspace.search import ENTRIES
from trimlearn.robust.subspace.span import sample

__all__ = ["SCALES", "feature_scales"]

SCALES: Final = "auto", "mad", "std"  # what users may ask for, beside None
# How many times the largest scale is the smallest where features have units of their own. Of the fourteen tables of
# `benchmarks peers anomalies` six lie below 5 and eight above 11: these have several units, or counts and shares.
UNLIKE: Final = 10.0


def feature_scales(points: Points, s: np.ndarray, asked: str | None, seed: int) -> np.ndarray | None:
    """What each feature is divided by; None where features are taken as they are.

    "mad": the median absolute deviation from the median, made consistent for normal features; the standard deviation
    where more than half of the values are equal (a rare event, a flag), and 1 for a constant. "std": the standard
    deviation. "auto": "mad" where features seem to have units of their own: their scales differ more than `UNLIKE`
    times, and they are fewer than the rows (else they are the channels of a spectrum), dense, and not very many.
    """
    n, p = points.n, points.p
    if asked is None or (asked == "auto" and (p >= n or p > COLUMNS or is_sparse(points.storage.V))):
        return None
    if asked == "std":
        return _positive(_deviations(points, s))
    rows, times = (np.arange(n), s) if n * p <= ENTRIES else sample(n, p, 0, s, seed)
    A, times = points.around(np.zeros(p), rows[times > 0]), times[times > 0]
    away = np.abs(A - weighted_medians(A, times))
    scale = MAD * weighted_medians(away, times)
    flat = scale <= EQUAL * away.max(axis=0, initial=0.0)
    varied = scale[~flat]
    if asked == "auto" and (varied.size < 2 or varied.max() <= UNLIKE * varied.min()):
        return None
    return _positive(np.where(flat, _deviations(points, s), scale))


def _deviations(points: Points, s: np.ndarray) -> np.ndarray:
    """The standard deviation of every feature; 0 where that is the rounding of a constant."""
    share, center = s / s.sum(), points.mean(s)

    def squares(rows: slice) -> np.ndarray:
        return np.asarray(share[rows] @ np.square(points.around(center, rows)))

    with np.errstate(over="ignore"):
        found = np.sqrt(total(squares, points.pieces(), np.zeros(points.p)))
    return np.where(found > EQUAL * np.abs(center), found, 0.0)


def _positive(scale: np.ndarray) -> np.ndarray:
    return np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
