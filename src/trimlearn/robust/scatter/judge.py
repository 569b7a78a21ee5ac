"""What robust distances tell: which rows are inliers, how many rows are bad, and by what the covariance is off.

With mean and covariance of m clean normal rows, d² of one of these rows is a beta variable and d² of another row an F
variable (Wilks 1962); χ²_p is their limit for large m, and far from it where m is a few times p: taking it for the
truth flags a fifth of 50 clean rows in 5 dimensions. So distances are first moved to the quantiles of χ_p.

That holds for m rows drawn at random. Where the m were chosen for being near, those left out are further away than
that, clean or not (Hardin and Rocke 2005): whether that is why they lie apart, `trimlearn.robust.scatter.chance` says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final, Generic, TypeVar, final

import numpy as np
from scipy.special import betaincc, chdtrc, chdtri, fdtrc, fdtri

from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.scale import Chi, judge
from trimlearn.robust.scatter.factors import consistency, small_sample_scatter
from trimlearn.robust.scatter.fit import ScatterFit
from trimlearn.robust.scatter.steps import FLOOR
from trimlearn.robust.scatter.tails import JudgedDistances, TailLaw, judge_distances, shown_freedom
from trimlearn.robust.verdict import Verdict

__all__ = [
    "DistanceJudge",
    "JudgedScatter",
    "UnseenRows",
    "effective_freedom",
    "judge_by_shape",
    "left_out",
    "rows_to_spare",
    "scores_inside",
    "scores_outside",
    "unseen_freedom",
]

Model = TypeVar("Model")

PAIRS: Final = 500  # rows whose products tell ν, a limit on time: PAIRS² of them
MANY: Final = 500  # rows per feature from which χ²_p is the law: its mean is off by (p + 1)/m, 1/500 for many features
LEAST: Final = 1e-300  # of a tail probability: χ of it is 37 for one feature, and no score needs to be larger
SURE: Final = 1e-15  # a tail probability whose complement still differs from 1: below it F quantiles are infinite


@final
@dataclass(frozen=True)
class JudgedScatter(Generic[Model]):
    """A location and scatter, the verdict on all rows by it, and what that says in terms of d² from it."""

    model: Model
    verdict: Verdict
    reach: float  # the largest d² at which an unseen row is still an inlier
    p_values: np.ndarray  # P(an inlier is as far out), for every row
    cut: JudgedDistances  # the law of the good rows' distances, whether others lie apart, and what rows count next


def scores_outside(d2: np.ndarray, m: float, p: float) -> np.ndarray:
    """Squared distances of rows that were not among the m fitted ones, as values of χ_p (not squared).

    >>> scores_outside(np.array([9.21]), 1e9, 2).round(2), scores_outside(np.array([9.21]), 12, 2).round(2)
    (array([3.03]), array([2.39]))
    """
    return np.sqrt(chdtri(p, np.maximum(fdtrc(p, m - p, d2 * m * (m - p) / ((m * m - 1.0) * p)), LEAST)))


def scores_inside(d2: np.ndarray, m: float, p: int) -> np.ndarray:
    """The same for rows that were among the m."""
    share = np.clip(d2 * m / (m - 1.0) ** 2, 0.0, 1.0)
    return np.sqrt(chdtri(p, np.maximum(betaincc(0.5 * p, 0.5 * (m - p - 1.0), share), LEAST)))


def left_out(fit: ScatterFit, d2: np.ndarray, m: float) -> np.ndarray:
    """d² of rows among the m fitted ones, each from a fit without it: what makes them comparable with other rows.

    Without row i, K loses γuuᵀ, γ = (1 − ρ)c/(m − 1), u = aᵢ − μ (but for the divisor), and u grows by m/(m − 1).
    """
    m = max(m, 2.0)
    leverage = np.minimum((1.0 - fit.shrinkage.rho) * fit.shrinkage.c / (m - 1.0) * d2, 1.0 - FLOOR)
    return np.asarray(d2 * (m / (m - 1.0)) ** 2 / (1.0 - leverage))


def unseen_freedom(fit: ScatterFit, A: np.ndarray, s: np.ndarray) -> float:
    """ν of d² ~ σ²χ²_ν, nearly, of rows from fits without them: (E uᵀΘu)²/E (uᵀΘv)² of rows u ≠ v (Satterthwaite 1946).

    u and v are two of the rows fitted to; Θ and the centre are those of a fit without both. In the metric of K, G is
    the 2 × 2 Gram matrix of the two. With t = 1/(m − 2), C = I + t11ᵀ and r = (1 − ρ)c/m, K loses rUCUᵀ, and the
    centre moves, so that uᵀΘv is the entry off the diagonal of C(G⁻¹ − rC)⁻¹C.

    Fitted rows themselves say nothing of the kind: K makes them look alike in all directions.
    """
    rows, c, _ = distinct_rows(A, s * fit.w)
    m, d2 = max(float(c.sum()), 3.0), fit.squared_distances(A[rows])
    if len(rows) > PAIRS:  # evenly by distance, so that the order of the rows does not matter
        at = np.argsort(d2, kind="stable")[np.linspace(0, len(rows) - 1, PAIRS).round().astype(np.int64)]
        rows, c, d2 = rows[at], c[at], d2[at]
    U = fit.whitened(A[rows])
    r, t, a, b, e = (1.0 - fit.shrinkage.rho) * fit.shrinkage.c / m, 1.0 / (m - 2.0), d2[:, None], d2, U @ U.T
    det = a * b - e * e  # of G
    trace, product = a + b - 2.0 * r * (1.0 + t) * det, -e - r * t * det  # of det·(G⁻¹ − rC)
    left = 1.0 - r * ((1.0 + t) * (a + b) + 2.0 * t * e) + r * r * (1.0 + 2.0 * t) * det  # det (I − rCG)
    across = ((1.0 + t) * t * trace - ((1.0 + t) ** 2 + t * t) * product) / np.maximum(left, FLOOR)
    np.fill_diagonal(across, 0.0)
    square = float(c @ across**2 @ c) / (float(c.sum()) ** 2 - float(c @ c) or 1.0)
    mean, p = float(c @ left_out(fit, d2, m)) / float(c.sum()), float(fit.moments.mu.shape[1])
    return p if square * p <= mean**2 else max(1.0, mean**2 / square)


@final
@dataclass(frozen=True)
class DistanceJudge:
    """Judges the rows A, which count s times, by their distances from a fit.

    ``quantile`` of the distances of clean rows fixes the cut-off; None adapts it to the data.
    """

    A: np.ndarray
    s: np.ndarray
    quantile: float | None

    def trimmed(self, fit: ScatterFit, h: float) -> JudgedScatter[ScatterFit]:
        """By a trimmed fit to h, whose covariance becomes what normal data would have had untrimmed.

        The rows kept were chosen for being near: they only set the scale of the others.
        """
        d2 = fit.squared_distances(self.A)
        if not _regular(fit, h):
            judged = self._by_shape(fit, d2, h)
            factor = _consistent(fit, h, float(self.s.sum()), judged.verdict.contamination)
            return replace(judged, model=fit.scaled(factor), reach=judged.reach / factor)
        law, outside = Chi(fit.rank), fit.w == 0
        near = d2 / judge(np.sqrt(d2), h, 1, self.s, law).scale ** 2
        scores = np.sqrt(near)
        if h < MANY * fit.rank:
            scores[outside] = scores_outside(near[outside], h, fit.rank)
        cut = self._cut(scores, h, law)
        verdict = cut.verdict
        factor = _consistent(fit, h, float(self.s.sum()), verdict.contamination)
        final = fit.scaled(factor)
        scores = self._quantiles(final, final.squared_distances(self.A))
        reach, p = _unmapped(verdict.cutoff, float(self.s @ fit.w), fit.rank), cut.law.survival(scores)
        return JudgedScatter(final, verdict, reach, p, cut)

    def fitted(self, fit: ScatterFit, h: float) -> JudgedScatter[ScatterFit]:
        """By the moments of all rows with w > 0, divided by their number less one; then these are rescaled."""
        m, d2 = float(self.s @ fit.w), fit.squared_distances(self.A)
        if not _regular(fit, m):
            return self._by_shape(fit, d2, h)
        scores = self._quantiles(fit, d2)
        cut = self._cut(scores, max(h, m), Chi(fit.rank))
        verdict = cut.verdict
        factor = verdict.scale**2 if cut.law.m == inf else 1.0  # where a tail explains rows, hardly any are missing
        reach = _unmapped(verdict.cutoff * verdict.scale, m, fit.rank) / factor
        p = cut.law.survival(scores / verdict.scale)
        return JudgedScatter(fit.scaled(factor), verdict, reach, p, cut)

    def _quantiles(self, fit: ScatterFit, d2: np.ndarray) -> np.ndarray:
        """Distances moved to the quantiles of χ, by the law of rows that were fitted to or not."""
        m, inside, scores = float(self.s @ fit.w), fit.w == 1.0, np.asarray(np.sqrt(d2))
        if m < MANY * fit.rank:
            scores[inside] = scores_inside(d2[inside], m, fit.rank)
            scores[~inside] = scores_outside(d2[~inside], m, fit.rank)
        return scores

    def _cut(self, scores: np.ndarray, h: float, law: Chi) -> JudgedDistances:
        if self.quantile is None:
            return judge_distances(scores, h, self.s, law.k, bulk=True)
        return _fixed(scores, judge(scores, h, 1, self.s, law), law, self.quantile)

    def _by_shape(self, fit: ScatterFit, d2: np.ndarray, h: float) -> JudgedScatter[ScatterFit]:
        """By distances from a fit without the row itself, whose law is not known."""
        unseen = np.where(fit.w > 0, left_out(fit, d2, float(self.s @ fit.w)), d2)
        freedom = shown_freedom(unseen, self.s, h / float(self.s.sum()), unseen_freedom(fit, self.A, self.s))
        return judge_by_shape(fit, unseen, h, self.s, freedom, self.quantile)


def judge_by_shape(
    model: Model,
    d2: np.ndarray,
    h: float,
    s: np.ndarray,
    freedom: float,
    quantile: float | None = None,
) -> JudgedScatter[Model]:
    """Rows by distances d² from a model of which only the shape of their law is known, σ²χ² with so much ``freedom``
    (few rows, a shrunk covariance, a sparse precision), from `effective_freedom`."""
    distances, law = np.sqrt(d2), Chi(freedom)
    judged = judge_distances(distances, h, s, freedom)
    verdict = judged.verdict
    if quantile is not None:
        judged = _fixed(distances, judge(distances, h, 1, s, law), law, quantile)
        verdict = judged.verdict
    reach = (verdict.cutoff * verdict.scale) ** 2
    with np.errstate(over="ignore"):  # of rows off an exact fit, whose scale is next to nothing
        p = judged.law.survival(distances / verdict.scale)
    return JudgedScatter(model, verdict, reach, p, judged)


@final
@dataclass(frozen=True)
class UnseenRows:
    """Squared distances of the n rows, which count s times, each from a fit to m clean rows without it, or to fewer:
    ``inside`` says which are among the m.

    They follow σ²νF(ν, μ), ν the ``freedom`` and μ what the fit has to ``spare``: m − p were nothing regularised.
    """

    d2: np.ndarray
    s: np.ndarray
    inside: np.ndarray
    m: float
    freedom: float
    spare: float  # of the fits without a row of the m
    folds: int  # in which these were left out

    def judge(self, model: Model, h: float) -> JudgedScatter[Model]:
        """Who is bad."""
        spare, k = self.spare + self.m / self.folds, self.freedom
        unit = judge(np.sqrt(self.d2), h, 1, self.s, Chi(k)).scale ** 2
        if spare >= MANY * k or not unit:  # most rows are copies of one, from which the others are infinitely far
            return judge_by_shape(model, self.d2, h, self.s, k)
        near, drawn = self.d2 / unit, k + spare
        scores = np.where(self.inside, scores_outside(near, k + self.spare, k), scores_outside(near, drawn, k))
        judged = judge_by_shape(model, scores**2, h, self.s, k)
        return replace(judged, reach=unit * _unmapped(sqrt(judged.reach), drawn, k))


def rows_to_spare(unseen: float, seen: float, m: float) -> float:
    """μ of σ²νF(ν, μ), the law of a row's d² from a fit to m other rows, from the sums of d² of rows from fits without
    them and with them.

    For p features and nothing regularised μ = m − p, and the former is (m + 1)/(m − p − 2) times the latter. A
    regularised precision hangs less on single rows: the ratio is smaller, and the law as that of fewer features.

    >>> rows_to_spare(22.0, 4.0, 10.0), rows_to_spare(4.0, 4.0, 10.0)
    (4.0, 13.0)
    """
    return 2.0 + (m + 1.0) * min(seen / unseen, 1.0) if unseen > 0 else m


def effective_freedom(precision: np.ndarray, S: np.ndarray, m: float) -> float:
    """ν of d² = xᵀΘx ~ σ²χ²_ν, nearly, for normal x of the covariance S that m rows showed (Satterthwaite 1946).

    ν = (tr ΘΣ)²/tr (ΘΣ)², and tr (ΘS)² exceeds tr (ΘΣ)² by (tr ΘΣ)²/m.
    """
    M = precision @ S
    trace, square = float(np.trace(M)), float(np.sum(M * M.T))
    p = float(len(S))
    square -= trace**2 / m
    return p if square * p <= trace**2 else max(1.0, trace**2 / square)


def _fixed(scores: np.ndarray, verdict: Verdict, law: Chi, quantile: float) -> JudgedDistances:
    """The verdict with a cut-off at a quantile of the law of clean rows."""
    cutoff = law.upper(1.0 - quantile)
    verdict = replace(verdict, cutoff=cutoff, inliers=scores <= cutoff * verdict.scale)
    weights = verdict.inliers.astype(np.float64)
    return JudgedDistances(verdict, TailLaw(law.k), verdict.contamination, True, weights)


def _unmapped(score: float, m: float, k: float) -> float:
    """The d² of a row that was not among the m fitted ones whose value of χ_k is ``score``."""
    beyond = max(float(chdtrc(k, score**2)), SURE)
    return float(fdtri(k, m - k, 1.0 - beyond)) * (m * m - 1.0) * k / (m * (m - k))


def _consistent(fit: ScatterFit, h: float, total: float, contamination: float) -> float:
    """By what the covariance of h rows is to be multiplied to be that of normal data untrimmed, bad rows being so many;
    a shrunk one holds its factor already."""
    if fit.shrinkage.rho:
        return 1.0
    clean, p = max(h, total * (1.0 - contamination)), fit.moments.mu.shape[1]
    return consistency(h / clean, p) * small_sample_scatter(h, clean, p)


def _regular(fit: ScatterFit, m: float) -> bool:
    """Whether d² has a known law: nothing was shrunk, and there are rows to spare."""
    return fit.shrinkage.rho == 0.0 and 0 < fit.rank < m - 2.0
