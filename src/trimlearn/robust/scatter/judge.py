"""What robust distances tell: which rows are inliers, how many rows are bad, and by what the covariance is off.

With mean and covariance of m clean normal rows, d² of one of these rows is a beta variable and d² of another row an F
variable (Wilks 1962); χ²_p is their limit for large m, and far from it where m is a few times p: taking it for the
truth flags a fifth of 50 clean rows in 5 dimensions. So distances are first moved to the quantiles of χ_p.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, chdtrc, chdtri, fdtrc, fdtri, ndtr

from trimlearn.robust.scale import Chi, judge, p_values
from trimlearn.robust.scatter.mcd import Fit, mcd
from trimlearn.robust.verdict import Verdict

__all__ = ["Jury", "judge_by_shape", "left_out", "p_values_by_shape", "scores_inside", "scores_outside"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MANY = 500  # rows per feature from which χ²_p is the law: it is off by 1/500 there
LEAST = 1e-300  # of a tail probability: χ of it is 37 for one feature, and no score needs to be larger


def scores_outside(d2: Floats, m: float, p: int) -> Floats:
    """Squared distances of rows that were not among the m fitted ones, as values of χ_p (not squared).

    >>> scores_outside(np.array([9.21]), 1e9, 2).round(2), scores_outside(np.array([9.21]), 12, 2).round(2)
    (array([3.03]), array([2.39]))
    """
    return np.sqrt(chdtri(p, np.maximum(fdtrc(p, m - p, d2 * m * (m - p) / ((m * m - 1.0) * p)), LEAST)))


def scores_inside(d2: Floats, m: float, p: int) -> Floats:
    """The same for rows that were among the m."""
    share = np.clip(d2 * m / (m - 1.0) ** 2, 0.0, 1.0)
    return np.sqrt(chdtri(p, np.maximum(betaincc(0.5 * p, 0.5 * (m - p - 1.0), share), LEAST)))


def left_out(fit: Fit, d2: Floats, m: float) -> Floats:
    """d² of rows among the m fitted ones, each from a fit without it: what makes them comparable with other rows.

    Without row i, K loses γuuᵀ, γ = (1 − ρ)c/(m − 1), u = aᵢ − μ (but for the divisor), and u grows by m/(m − 1).
    """
    m = max(m, 2.0)
    leverage = np.minimum((1.0 - fit.shape.rho) * fit.shape.c / (m - 1.0) * d2, 1.0 - 1.0 / m)
    return np.asarray(d2 * (m / (m - 1.0)) ** 2 / (1.0 - leverage))


class Jury:
    """Judges rows by their distances d² from a fit; ``quantile`` fixes the cut-off, None adapts it to the data."""

    def __init__(self, s: Floats, quantile: float | None, seed: int) -> None:
        self.s, self.quantile, self.seed = s, quantile, seed

    def raw(self, fit: Fit, d2: Floats, h: float) -> Verdict:
        """By a trimmed fit to h. Its own rows were chosen for being near: they only set the scale of the others."""
        if not _regular(fit, h):
            return self._by_shape(fit, d2, h)[0]
        law, inside = Chi(fit.rank), fit.w > 0
        first = judge(np.sqrt(d2), h, 1, self.s, law)
        d2 = d2 / first.scale**2
        scores = np.sqrt(d2)
        if h < MANY * fit.rank:
            scores[~inside] = scores_outside(d2[~inside], h, fit.rank)
        return self._cut(scores, h, law)

    def final(self, fit: Fit, d2: Floats, h: float) -> Verdict:
        """By the moments of all rows with w > 0, divided by their number less one."""
        m = float(self.s @ fit.w)
        if not _regular(fit, m):
            return self._by_shape(fit, d2, h)[0]
        return self._cut(self._quantiles(fit, d2, m), max(h, m), Chi(fit.rank))

    def p_values(self, fit: Fit, d2: Floats, h: float, verdict: Verdict) -> Floats:
        """What `final` judged by: P(an inlier is as far out). Where d² has no known law, its shape is one's guide."""
        m = float(self.s @ fit.w)
        if not _regular(fit, m):
            verdict, reach = self._by_shape(fit, d2, h)
            return p_values_by_shape(self._unseen(fit, d2), verdict, reach)
        return p_values(self._quantiles(fit, d2, m) / verdict.scale, Chi(fit.rank))

    def _quantiles(self, fit: Fit, d2: Floats, m: float) -> Floats:
        """Distances moved to the quantiles of χ, by the law of rows that were fitted to or not."""
        inside, scores = fit.w > 0, np.sqrt(d2)
        if m < MANY * fit.rank:
            scores[inside] = scores_inside(d2[inside], m, fit.rank)
            scores[~inside] = scores_outside(d2[~inside], m, fit.rank)
        return scores

    def _cut(self, scores: Floats, h: float, law: Chi) -> Verdict:
        verdict = judge(scores, h, 1, self.s, law)
        if self.quantile is None:
            return verdict
        cutoff = law.upper(1.0 - self.quantile)
        return replace(verdict, cutoff=cutoff, inliers=scores <= cutoff * verdict.scale)

    def _by_shape(self, fit: Fit, d2: Floats, h: float) -> tuple[Verdict, float]:
        return judge_by_shape(self._unseen(fit, d2), h, self.s, self.seed, self.quantile)

    def _unseen(self, fit: Fit, d2: Floats) -> Floats:
        return np.where(fit.w > 0, left_out(fit, d2, float(self.s @ fit.w)), d2)

    def reach(self, fit: Fit, d2: Floats, h: float, verdict: Verdict) -> float:
        """The largest d² at which an unseen row is still an inlier, once the covariance has been multiplied by σ²."""
        m, k = float(self.s @ fit.w), fit.rank
        if not _regular(fit, m):
            return self._by_shape(fit, d2, h)[1]
        beyond = max(float(chdtrc(k, (verdict.cutoff * verdict.scale) ** 2)), 1e-15)
        return float(fdtri(k, m - k, 1.0 - beyond)) * (m * m - 1.0) * k / (m * (m - k)) / verdict.scale**2


def judge_by_shape(
    d2: Floats, h: float, s: Floats, seed: int, quantile: float | None = None
) -> tuple[Verdict, float]:
    """Rows by distances without a known law (few rows, a shrunk covariance), and the largest d² of an inlier.

    d^⅔ is nearly normal (Wilson and Hilferty 1931): its upper side is cut off.
    """
    u = np.cbrt(d2)
    centre = float(mcd(u[:, None], s, h, starts=100, seed=seed).location[0])
    verdict = judge(np.abs(u - centre), h, 1, s)
    cutoff = verdict.cutoff if quantile is None else Chi().upper(2.0 * (1.0 - quantile))
    reach = centre + cutoff * verdict.scale
    return replace(verdict, cutoff=cutoff, inliers=u <= reach), reach**3


def p_values_by_shape(d2: Floats, verdict: Verdict, reach: float) -> Floats:
    """P(an inlier is as far out), given what `judge_by_shape` found: of the normal d^⅔, the upper side."""
    return np.asarray(ndtr(-((np.cbrt(d2) - np.cbrt(reach)) / verdict.scale + verdict.cutoff)))


def _regular(fit: Fit, m: float) -> bool:
    """Whether d² has a known law: nothing was shrunk, and there are rows to spare."""
    return fit.shape.rho == 0.0 and 0 < fit.rank < m - 2.0
