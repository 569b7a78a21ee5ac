"""What robust distances tell: which rows are inliers, how many rows are bad, and by what the covariance is off.

With mean and covariance of m clean normal rows, d² of one of these rows is a beta variable and d² of another row an F
variable (Wilks 1962); χ²_p is their limit for large m, and far from it where m is a few times p: taking it for the
truth flags a fifth of 50 clean rows in 5 dimensions. So distances are first moved to the quantiles of χ_p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar, final

import numpy as np
from scipy.special import betaincc, chdtrc, chdtri, fdtrc, fdtri, ndtr

from trimlearn.robust.scale import Chi, judge, p_values
from trimlearn.robust.scatter.factors import consistency, small_sample
from trimlearn.robust.scatter.fit import ScatterFit
from trimlearn.robust.scatter.mcd import mcd
from trimlearn.robust.verdict import Verdict

__all__ = ["DistanceJudge", "JudgedScatter", "judge_by_shape", "left_out", "scores_inside", "scores_outside"]

Model = TypeVar("Model")

MANY: Final = 500  # rows per feature from which χ²_p is the law: its mean is off by (p + 1)/m, 1/500 for many features
LEAST: Final = 1e-300  # of a tail probability: χ of it is 37 for one feature, and no score needs to be larger
SURE: Final = 1e-15  # a tail probability whose complement still differs from 1: below it F quantiles are infinite
STARTS: Final = 100  # for the middle of d^⅔; 10 find what 500 find (`benchmarks.calibration scatter`)


@final
@dataclass(frozen=True)
class JudgedScatter(Generic[Model]):
    """A location and scatter, the verdict on all rows by it, and what that says in terms of d² from it."""

    model: Model
    verdict: Verdict
    reach: float  # the largest d² at which an unseen row is still an inlier
    p_values: np.ndarray  # P(an inlier is as far out), for every row


def scores_outside(d2: np.ndarray, m: float, p: int) -> np.ndarray:
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
    leverage = np.minimum((1.0 - fit.shrinkage.rho) * fit.shrinkage.c / (m - 1.0) * d2, 1.0 - 1.0 / m)
    return np.asarray(d2 * (m / (m - 1.0)) ** 2 / (1.0 - leverage))


@final
@dataclass(frozen=True)
class DistanceJudge:
    """Judges the rows A, which count s times, by their distances from a fit.

    ``quantile`` of the distances of clean rows fixes the cut-off; None adapts it to the data.
    """

    A: np.ndarray
    s: np.ndarray
    quantile: float | None
    seed: int

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
        verdict = self._cut(scores, h, law)
        factor = _consistent(fit, h, float(self.s.sum()), verdict.contamination)
        final = fit.scaled(factor)
        scores = self._quantiles(final, final.squared_distances(self.A))
        return JudgedScatter(final, verdict, self._reach(final, verdict.cutoff), p_values(scores, law))

    def fitted(self, fit: ScatterFit, h: float) -> JudgedScatter[ScatterFit]:
        """By the moments of all rows with w > 0, divided by their number less one; then these are rescaled."""
        m, d2 = float(self.s @ fit.w), fit.squared_distances(self.A)
        if not _regular(fit, m):
            return self._by_shape(fit, d2, h)
        scores, law = self._quantiles(fit, d2), Chi(fit.rank)
        verdict = self._cut(scores, max(h, m), law)
        reach = self._reach(fit, verdict.cutoff * verdict.scale) / verdict.scale**2
        return JudgedScatter(fit.scaled(verdict.scale**2), verdict, reach, p_values(scores / verdict.scale, law))

    def _quantiles(self, fit: ScatterFit, d2: np.ndarray) -> np.ndarray:
        """Distances moved to the quantiles of χ, by the law of rows that were fitted to or not."""
        m, inside, scores = float(self.s @ fit.w), fit.w > 0, np.asarray(np.sqrt(d2))
        if m < MANY * fit.rank:
            scores[inside] = scores_inside(d2[inside], m, fit.rank)
            scores[~inside] = scores_outside(d2[~inside], m, fit.rank)
        return scores

    def _cut(self, scores: np.ndarray, h: float, law: Chi) -> Verdict:
        verdict = judge(scores, h, 1, self.s, law)
        if self.quantile is None:
            return verdict
        cutoff = law.upper(1.0 - self.quantile)
        return replace(verdict, cutoff=cutoff, inliers=scores <= cutoff * verdict.scale)

    def _by_shape(self, fit: ScatterFit, d2: np.ndarray, h: float) -> JudgedScatter[ScatterFit]:
        """By distances from a fit without the row itself, whose law is not known."""
        unseen = np.where(fit.w > 0, left_out(fit, d2, float(self.s @ fit.w)), d2)
        return judge_by_shape(fit, unseen, h, self.s, self.seed, self.quantile)

    def _reach(self, fit: ScatterFit, cutoff: float) -> float:
        """The d² of a row that was not fitted to whose value of χ is ``cutoff``."""
        m, k = float(self.s @ fit.w), fit.rank
        beyond = max(float(chdtrc(k, cutoff**2)), SURE)
        return float(fdtri(k, m - k, 1.0 - beyond)) * (m * m - 1.0) * k / (m * (m - k))


def judge_by_shape(
    model: Model, d2: np.ndarray, h: float, s: np.ndarray, seed: int, quantile: float | None = None
) -> JudgedScatter[Model]:
    """Rows by distances d² from a model without a known law (few rows, a shrunk covariance).

    d^⅔ is nearly normal (Wilson and Hilferty 1931): its upper side is cut off.
    """
    u = np.cbrt(d2)
    centre = float(mcd(u[:, None], s, h, starts=STARTS, seed=seed).location[0])
    verdict = judge(np.abs(u - centre), h, 1, s)
    cutoff = verdict.cutoff if quantile is None else Chi().upper(2.0 * (1.0 - quantile))
    reach = centre + cutoff * verdict.scale
    verdict = replace(verdict, cutoff=cutoff, inliers=u <= reach)
    return JudgedScatter(model, verdict, reach**3, np.asarray(ndtr(-(u - centre) / verdict.scale)))


def _consistent(fit: ScatterFit, h: float, total: float, contamination: float) -> float:
    """By what the covariance of h rows is to be multiplied to be that of normal data untrimmed, bad rows being so many;
    a shrunk one holds its factor already."""
    if fit.shrinkage.rho:
        return 1.0
    clean, p = max(h, total * (1.0 - contamination)), fit.moments.mu.shape[1]
    return consistency(h / clean, p) * small_sample(h, clean, p)


def _regular(fit: ScatterFit, m: float) -> bool:
    """Whether d² has a known law: nothing was shrunk, and there are rows to spare."""
    return fit.shrinkage.rho == 0.0 and 0 < fit.rank < m - 2.0
