"""From a trimmed flat to a verdict on every row: which are explained, how many are bad, and the flat of the inliers.

The squared distance of an inlier is Σ λⱼ χ²₁ over the dimensions left out, nearly σ²χ²_ν with ν = (Σλ)²/Σλ²
(Satterthwaite 1946): so distance/σ follows `trimlearn.robust.scale.Chi` (ν), and `judge` applies. Where rows differ
in scale (heavy tails, sparse counts) their distances spread more than that, and ν is what their spread says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.scale import Chi, judge, rounding_floor
from trimlearn.robust.subspace.flat import Fit, Flat
from trimlearn.robust.subspace.search import Search
from trimlearn.robust.verdict import Verdict
from trimlearn.smart.method import Method

__all__ = ["Outcome", "fit_and_judge"]

ROUNDS = 4  # of refitting and judging
FLATTERY = 0.1  # how much less far, in units of their spread, rows may seem for having been fitted to
UNEQUAL = 3.0  # ν found is too large by this: rows differ in scale. Half of the rows being bad explains 2.2
PAIRS = 500  # rows whose residuals are compared to find ν


@final
@dataclass(frozen=True)
class Outcome:
    """The trimmed fit that kept h, and what came of it: the final flat and weights, and the squared distances judged.

    Those of rows that the flat was fitted to are, in small data, distances to a flat fitted without them.
    """

    raw: Fit
    h: float
    flat: Flat
    w: np.ndarray
    distances2: np.ndarray
    law: Chi
    verdict: Verdict
    exact: bool = False  # whether the rows kept lie on the flat, up to rounding errors


def fit_and_judge(
    search: Search, k: int, h: float | None, reweight: bool, start: Flat | None, max_iter: int, method: Method | None
) -> Outcome:
    """The trimmed flat of dimension k; h = None: the most robust one first, and then as much as stands out."""

    def fitted(h: float, flats: list[Flat]) -> Outcome:
        raw = search.refine(flats, h, max_iter, method) if flats else search.fit(k, h, max_iter, method)
        return _judged(search, Outcome(raw, h, raw.flat, raw.w, raw.distances2, Chi(), NOTHING))

    flats = [] if start is None else [start]
    found = fitted(min(search.S, 0.5 * (search.S + k + 1)) if h is None else h, flats)
    if reweight and found.h < search.S:
        return _reweighed(search, found)
    if h is None:
        kept = search.S * (1.0 - found.verdict.contamination)
        estimated = found.verdict
        found = fitted(max(kept, found.h), [found.flat])
        return replace(found, verdict=replace(found.verdict, contamination=estimated.contamination))
    return found


NOTHING = Verdict(1.0, inf, np.empty(0, dtype=bool), 0.0)


def _reweighed(search: Search, found: Outcome) -> Outcome:
    """Every row that the flat explains is readmitted and the flat fitted again, until nobody comes or goes."""
    for _ in range(ROUNDS):
        w = found.verdict.inliers.astype(np.float64)
        if np.array_equal(w, found.w):
            break
        flat = search.settle(search.s * w, found.flat)
        distances2 = search.points.distances2(flat)
        found = _judged(search, replace(found, flat=flat, w=w, distances2=distances2))
    return replace(found, w=found.verdict.inliers.astype(np.float64))


def _judged(search: Search, found: Outcome) -> Outcome:
    c, distances2, freedom = search.s * found.w, found.distances2, _freedom(search, found)
    if search.small and _flattered(c, found.flat) > FLATTERY * sqrt(2 / freedom):
        distances2 = search.refitted(c, found.flat, distances2)
    floor, share = _floor(search, found.flat), found.h / search.S
    exact = weighted_quantile(distances2, search.s, share) <= floor**2
    if exact:  # how rounding errors spread says nothing
        law = Chi(_most_free(search, found.flat))
    else:
        spread = _spread(distances2, search.s, min(0.5, share))
        law = Chi(spread if spread < freedom / UNEQUAL else freedom)
    verdict = judge(np.sqrt(distances2), found.h, 0, search.s, law, floor=floor)
    return replace(found, distances2=distances2, law=law, verdict=verdict, exact=exact)


def _flattered(c: np.ndarray, flat: Flat) -> float:
    """By what share, nearly, the squared distances of rows weighted by c shrink because the flat was fitted to them."""
    return min(1.0, float(flat.U.shape[1] + 1) / float(c.sum()))


def _spread(distances2: np.ndarray, s: np.ndarray, share: float) -> float:
    """ν as the nearest rows' distances themselves tell it, were no row bad: a lower bound, nearly.

    The cube root of σ²χ²_ν is nearly normal with variance/mean² = 2/(9ν) (Wilson and Hilferty 1931), here from two
    quantiles up to ``share`` of the rows.
    """
    roots = np.cbrt(distances2)
    low, high = weighted_quantile(roots, s, share / 5), weighted_quantile(roots, s, share)
    steps = ndtri(share / 5), ndtri(share)
    deviation = (high - low) / (steps[1] - steps[0])
    mean = high - steps[1] * deviation
    return max(1.0, 2.0 / 9.0 * float(mean / deviation) ** 2) if deviation > 0 else inf


def _floor(search: Search, flat: Flat) -> float:
    """The scale below which distances are rounding errors, of X as it was given or of what is computed from it."""
    norms = np.sqrt(search.typical2(flat))
    dtype: Any = search.points.storage.like.dtype
    given: float = float(np.finfo(dtype).eps) * (float(np.median(norms)) + float(np.linalg.norm(flat.m)))
    return float(max(rounding_floor(norms), given))


def _most_free(search: Search, flat: Flat) -> int:
    """ν at most: the dimensions left out."""
    return max(1, int(search.points.p - flat.U.shape[1]))


def _freedom(search: Search, found: Outcome) -> float:
    """ν = (tr R)²/tr R² of the covariance R of the residuals rᵢ of the rows kept.

    tr R² is the mean of (rᵢᵀrⱼ)² over pairs of different rows, less what comes of the flat having been fitted to them:
    residuals are errors times a projection of N − q dimensions, N rows and q = k + 1 fitted.
    """
    points, flat = search.points, found.flat
    c = search.s * found.w
    rows = np.flatnonzero(c > 0)
    most = max(10, min(PAIRS, 4_000_000 // points.p))
    if len(rows) > most:  # evenly by distance, so that the order of the rows does not matter
        by_distance = rows[np.argsort(found.distances2[rows], kind="stable")]
        rows = by_distance[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]
    R = points.around(flat.m, rows)
    R -= (R @ flat.U) @ flat.U.T
    R /= float(np.abs(R).max(initial=0.0)) or 1.0  # ν has no unit, and fourth powers are soon out of range
    c, squares = c[rows], np.square(R @ R.T)
    N, q = float(c.sum()), flat.U.shape[1] + 1.0
    most_free = _most_free(search, flat)
    if N <= q + 1:
        return float(most_free)
    trace = float(c @ np.einsum("ij,ij->i", R, R)) / (N - q)
    pairs = float(c @ squares @ c - c @ np.diag(squares)) / (N * (N - 1))
    trace2 = (pairs - trace**2 * q * (N - q) / (N**2 * (N - 1))) / (1 - q / N) ** 2
    return float(most_free) if trace2 * most_free <= trace**2 else max(1.0, trace**2 / trace2)
