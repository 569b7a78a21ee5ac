"""From a trimmed flat to a verdict on every row: which are explained, how many are bad, and the flat of the inliers.

The squared distance of an inlier is Σ λⱼ χ²₁ over the dimensions left out, nearly σ²χ²_ν with ν = (Σλ)²/Σλ²
(Satterthwaite 1946): so distance/σ follows `trimlearn.robust.scale.Chi` (ν), and `judge` applies. Where rows differ
in scale (heavy tails, sparse counts) their distances spread more than that, and ν is what their spread says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan, sqrt
from typing import Any, Final, final

import numpy as np

from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.scale import Chi, rounding_floor
from trimlearn.robust.scatter.chance import beyond_chance, leading_scores
from trimlearn.robust.scatter.tails import TailLaw, judge_distances, shown_freedom
from trimlearn.robust.subspace.concentrate import TrimmedFlat
from trimlearn.robust.subspace.flat import Flat
from trimlearn.robust.subspace.search import FlatSearch
from trimlearn.robust.subspace.within import far_within
from trimlearn.robust.verdict import Verdict, readmit

__all__ = ["JudgedFlat", "fit_and_judge"]

# Of fitting again and judging, a limit on time: in `benchmarks.calibration subspace` half of the fits need 1 or 2 and
# the slowest 5.
ROUNDS: Final = 4
# Of all rows, that may be denied a say in where the flat lies: a third may be one of three equal groups, and 48 % of
# the stamps are far out, without which these are ranked with an AUROC of 0.73 and not 0.87 (`benchmarks peers`).
FEW: Final = 1.0 / 3.0
MOST: Final = 0.75  # of the rows are kept where nothing lies apart: ROBPCA's and covMcd's usual α, in R
# How much less far, in units of their spread, rows may seem for having been fitted to: a cut-off for 2.5 % of clean
# rows then flags 1.7 to 1.9 % (`benchmarks.calibration subspace`).
FLATTERY: Final = 0.1
PAIRS: Final = 500  # rows whose residuals are compared to find ν, a limit on time: their p·PAIRS² products
PAIRED: Final = 4_000_000  # entries of these rows, a limit on memory: 32 MB


@final
@dataclass(frozen=True)
class JudgedFlat:
    """The trimmed fit that kept h, and what came of it: the final flat and weights, and the squared distances judged.

    Those of rows that the flat was fitted to are, in small data, distances to a flat fitted without them.
    """

    raw: TrimmedFlat
    h: float
    flat: Flat
    w: np.ndarray
    distances2: np.ndarray
    law: TailLaw
    verdict: Verdict
    exact: bool  # whether the rows kept lie on the flat, up to rounding errors
    weights: np.ndarray  # what rows count in the next fit
    apart: bool  # whether bad rows lie apart from all others
    normal_contamination: float  # the share of bad rows, were the good ones normal
    far_within: np.ndarray  # the rows near to the flat that lie far from the others within it


def fit_and_judge(search: FlatSearch, k: int, h: float | None, reweight: bool, start: Flat | None) -> JudgedFlat:
    """The trimmed flat of dimension k; h = None: the most robust one first, and then as much as stands out.

    A few rows far out within the flat may be the reason for an axis of it: one that explains little of the others may
    as well be turned to them, and no distance from the flat shows it. Where the others alone lead to a flat that such
    rows are far from, that is the one; where not, the rows are near to it, wherever they are.
    """
    found = _fit_and_judge(search, k, h, reweight, start)
    far = found.far_within if h is not None else far_within(search, found.flat, found.verdict.inliers)
    if not 0 < float(search.s @ far) <= FEW * search.S:
        return replace(found, far_within=far)
    others = _fit_and_judge(search.without(far), k, None, reweight, None)
    again = _fit_and_judge(search, k, None, reweight, others.flat)
    if np.all(again.verdict.inliers[far]):
        return replace(found, far_within=far)
    return replace(again, far_within=far_within(search, again.flat, again.verdict.inliers))


def _fit_and_judge(search: FlatSearch, k: int, h: float | None, reweight: bool, start: Flat | None) -> JudgedFlat:
    """By distances from the flat alone."""
    kept = min(search.S, 0.5 * (search.S + k + 1)) if h is None else h
    raw = search.fit(k, kept) if start is None else search.refine([start], kept)
    found = _judged(search, raw, kept, raw)
    if h is None and kept < MOST * search.S and not found.apart:
        raw = search.fit(k, MOST * search.S) if search.small else search.refine([found.flat], MOST * search.S)
        found = _judged(search, raw, MOST * search.S, raw)
    if reweight and (h is None or h < search.S):
        found = _readmitted(search, found)
        return _beyond_chance(search, found) if h is None else found
    if h is None:
        share = found.verdict.contamination
        kept = max(search.S * (1.0 - share), found.h)
        raw = search.refine([found.flat], kept)
        found = _judged(search, raw, kept, raw)
        return replace(found, verdict=replace(found.verdict, contamination=share))
    return found


def _beyond_chance(search: FlatSearch, found: JudgedFlat) -> JudgedFlat:
    """The same where it was not chance that set rows apart: a flat through half of a few rows leaves others far from it
    in any case.

    Where chance may be the reason, all is judged again, beginning with all rows but those beyond chance. It is asked
    where so few rows were fitted to that these look nearer for it (see `FLATTERY`).
    """
    few = _flattered(search.s * found.w, found.flat) > FLATTERY * sqrt(2 / found.law.k)
    if not (search.small and few) or found.exact:
        return found
    A = search.inner.around(np.zeros(search.inner.p), slice(0, search.inner.n))
    A, last = leading_scores(A, search.s), search.S
    while True:
        off = ~found.verdict.inliers
        apart = beyond_chance(A, search.s, found.distances2, off)
        kept, weight = (~apart).astype(np.float64), float(search.s @ apart)
        if np.array_equal(apart, off) or not weight < last:
            return found
        flat = search.settle(search.s * kept, found.flat)
        fit = TrimmedFlat(flat, kept, search.points.distances2(flat), nan)
        found, last = _readmitted(search, _judged(search, found.raw, max(found.h, search.S - weight), fit)), weight


def _readmitted(search: FlatSearch, found: JudgedFlat) -> JudgedFlat:
    """Every row that the flat explains is readmitted and the flat fitted again, until nobody comes or goes."""

    def refit(rows: np.ndarray, last: JudgedFlat) -> JudgedFlat:
        w = last.weights
        flat = search.settle(search.s * w, last.flat)
        return _judged(search, last.raw, last.h, TrimmedFlat(flat, w, search.points.distances2(flat), nan))

    settled = np.array_equal(found.verdict.inliers, found.w)  # by the trimmed fit already
    found, _, _ = readmit(found, found.verdict, refit, lambda judged: judged.verdict, 0 if settled else ROUNDS)
    return replace(found, w=found.weights)


def _judged(search: FlatSearch, raw: TrimmedFlat, h: float, fit: TrimmedFlat) -> JudgedFlat:
    """Every row by its distance from a flat, the trimmed one or another."""
    c, distances2, freedom = search.s * fit.w, fit.distances2, _freedom(search, fit)
    if search.small and _flattered(c, fit.flat) > FLATTERY * sqrt(2 / freedom):
        distances2 = search.refitted(c, fit.flat, distances2)
    floor, share = _floor(search, fit.flat), h / search.S
    exact = weighted_quantile(distances2, search.s, share) <= floor**2
    if exact:  # how rounding errors spread says nothing
        law = Chi(_most_free(search, fit.flat))
    else:
        law = Chi(shown_freedom(distances2, search.s, share, freedom))
    cost = _cost(c, fit.flat, law.k, search.S) if search.small else 0.0
    judged = judge_distances(np.sqrt(distances2), h, search.s, law.k, floor, cost)
    found = judged.verdict, exact, judged.weights, judged.apart, judged.normal_contamination
    return JudgedFlat(raw, h, fit.flat, fit.w, distances2, judged.law, *found, np.zeros(len(search.s), dtype=bool))


def _cost(c: np.ndarray, flat: Flat, freedom: float, S: float) -> float:
    """How many parameters rows apart pay for besides their own: a flat of few dimensions left out, fitted to the part
    c of all rows, finds a part that it goes through nearly, and then the others seem to lie apart.

    Without it, 40 % of the rows were flagged in some samples of 20 clean rows in a plane.
    """
    missing = 1.0 - float(c.sum()) / S
    return float(2.0 * (flat.U.shape[1] + 1.0) / freedom * min(1.0, 4.0 * missing))


def _flattered(c: np.ndarray, flat: Flat) -> float:
    """By what share, nearly, the squared distances of rows weighted by c shrink because the flat was fitted to them."""
    return min(1.0, float(flat.U.shape[1] + 1) / float(c.sum()))


def _floor(search: FlatSearch, flat: Flat) -> float:
    """The scale below which distances are rounding errors, of X as it was given or of what is computed from it."""
    norms = np.sqrt(search.typical2(flat))
    dtype: Any = search.points.storage.like.dtype
    given: float = float(np.finfo(dtype).eps) * (float(np.median(norms)) + float(np.linalg.norm(flat.m)))
    return float(max(rounding_floor(norms), given))


def _most_free(search: FlatSearch, flat: Flat) -> int:
    """ν at most: the dimensions left out."""
    return max(1, int(search.points.p - flat.U.shape[1]))


def _freedom(search: FlatSearch, fit: TrimmedFlat) -> float:
    """ν = (tr R)²/tr R² of the covariance R of the residuals rᵢ of the rows kept.

    tr R² is the mean of (rᵢᵀrⱼ)² over pairs of different rows, less what comes of the flat having been fitted to them:
    residuals are errors times a projection of N − q dimensions, N rows and q = k + 1 fitted.
    """
    points, flat = search.points, fit.flat
    c = search.s * fit.w
    rows = np.flatnonzero(c > 0)
    most = max(10, min(PAIRS, PAIRED // points.p))
    if len(rows) > most:  # evenly by distance, so that the order of the rows does not matter
        by_distance = rows[np.argsort(fit.distances2[rows], kind="stable")]
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
