"""What residuals tell once a trimmed fit is there: their scale σ, who is an inlier, and what share of the rows is bad.

An inlier's score |r|/σ follows a law, `Chi`: half-normal for residuals, χ with k degrees of freedom for distances.
Sample weights s count rows: s = 2 is the row twice, s = 0 its removal. The order of rows does not matter.

By what the scale of least trimmed squares is off in small samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtr, chdtrc, chdtri, log_ndtr, ndtr

from trimlearn.robust.verdict import Verdict
from trimlearn.weights.simplex import ROUNDING

# Pison, Van Aelst & Willems (2002): on clean normal data of n rows and p slopes the scale of least trimmed squares is
# too small by 1 − exp(a)/n^b; (a, b) for α = 0.500 and 0.875, by intercept.
NO_SLOPE = ((0.262024211897096, 0.604756680630497), (-0.351584646688712, 1.01646567502486))
ONE_SLOPE = {  # from the same table
    True: ((0.630869217886906, 0.650789250442946), (0.565065391014791, 1.03044199012509)),
    False: ((-0.0181777452315321, 0.697629772271099), (-0.310122738776431, 1.06241615923172)),
}
# For p > 1 the same curve goes through 1 + η/p^κ at n = 3p² and at n = 5p²: (η, κ) at each.
MORE_SLOPES = {
    True: (
        ((-0.746945886714663, 0.56264937192689), (-0.535478048924724, 0.543323462033445)),
        ((-0.458580153984614, 1.12236071104403), (-0.267178168108996, 1.1022478781154)),
    ),
    False: (
        ((-0.487338281979106, 0.405511279418594), (-0.340762058011, 0.37972360544988)),
        ((-0.251778730491252, 0.883966931611758), (-0.146660023184295, 0.86292940340761)),
    ),
}


def small_sample(n: float, p: float, h: float, intercept: bool = True) -> float:
    """By what the raw scale of least trimmed squares is to be multiplied in small samples; p counts the intercept.

    The constants are those of G. Pison, S. Van Aelst and G. Willems, Small sample corrections for LTS and MCD, Metrika
    55 (2002), as R's robustbase (LTScnp2) gives them, digit for digit. They are about α = (h − p − 1)/(n − p − 1),
    which is 0.5 where breakdown is largest, and is taken as 0.5 below. At most 10: the curves would change sign where
    p is near n.

    >>> round(small_sample(21, 4, h=13), 4)
    1.8842
    """
    slopes = round(p) - intercept
    if slopes <= 0:
        curves: Sequence[tuple[float, float]] = NO_SLOPE
    elif slopes == 1:
        curves = ONE_SLOPE[intercept]
    else:
        curves = [curve_through(slopes, (3, 5), points) for points in MORE_SLOPES[intercept]]
    half, most = (1 - exp(a) / n**b for a, b in curves)
    alpha = (h - p - 1) / (n - p - 1) if n > p + 1 else 0.5
    bias = max(0.1, float(np.interp(alpha, [0.5, 0.875, 1.0], [half, most, 1.0])))
    return 1 / (sqrt(bias) if slopes <= 0 else bias)  # without slopes they are about the variance


def curve_through(p: int, sizes: tuple[float, float], points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(a, b) of the curve 1 − exp(a)/n^b through 1 − |η|/p^κ at n = p² times each of two sizes; points: (η, κ) there.

    >>> a, b = curve_through(2, (3, 5), [(-0.75, 0.56), (-0.54, 0.54)])
    >>> round(exp(a) / 12**b, 4), round(0.75 / 2**0.56, 4)
    (0.5087, 0.5087)
    """
    first, second = (log(abs(eta) / p**kappa) for eta, kappa in points)
    b = (first - second) / log(sizes[1] / sizes[0])
    return first + b * log(sizes[0] * p**2), b


Vector = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Chi:
    """The law of an inlier's score T = |r|/σ: T² ~ χ²_k. k = 1, the default, is the half-normal.

    Tails are given as shares beyond, P(T > t), so that they stay exact far out.

    >>> law = Chi()
    >>> round(law.upper(0.5), 4), round(law.second_moment(law.upper(0.5)), 4)
    (0.6745, 0.1427)
    """

    k: float = 1.0

    def survival(self, t: Any) -> Any:
        """P(T > t), elementwise."""
        return chdtrc(self.k, np.square(np.minimum(t, 1e150)))  # whose square is finite, and its tail 0

    def upper(self, beyond: float) -> float:
        """The t with P(T > t) = beyond; inf for 0 or less."""
        return sqrt(chdtri(self.k, beyond)) if beyond > 0 else inf

    def second_moment(self, cut: float) -> float:
        """E[T² | T ≤ cut] = k P(χ²_{k+2} ≤ cut²) / P(χ²_k ≤ cut²).

        For k = 1 that is 1 − 2qφ(q)/(2Φ(q) − 1), q = cut: the inverse square of the consistency factor of least
        trimmed squares (Croux & Rousseeuw 1992). In general it is k over that of minimum covariance determinants.
        """
        return self.k if cut == inf else float(self.k * chdtr(self.k + 2, cut**2) / chdtr(self.k, cut**2))


# The cut-offs, in σ of a normal error, are kept as the share of clean rows beyond: so they hold for every law. What
# each of them decides was simulated over (n, p, level) by `python -m benchmarks.calibration scale`.
BEYOND_START = float(Chi().survival(2.0))  # of 1.5, 2, 2.5 and 3 the least bias of σ, half that of the next
# At 2, σ is half as biased where 45 % of the rows are bad, but twice as many clean rows are flagged where n = 20; at
# 2.6 σ is twice as biased.
BEYOND_SCALE = float(Chi().survival(2.3))
BEYOND_USUAL = float(Chi().survival(2.5))  # customary (Rousseeuw and Leroy 1987); σ hardly depends on it
BEYOND_COUNT = float(Chi().survival(3.0))  # the contamination is least biased of 2, 2.5, 3, 3.5 and 4
# A row is flagged only where fewer clean rows than this are expected at its score or beyond. With 1.6, twice as many
# clean rows are flagged at n = 200; with 0.1, twice as many bad ones are kept.
EXPECTED = 0.4
# The same where rows are not only kept or left out but weighted as well; and by how many standard deviations of their
# number the rows at a score or beyond have to exceed what is expected. With 0 for the latter, twice as many
# clean rows are flagged (python -m benchmarks.calibration mm).
CLEAR, SPREAD = 0.15, 1.5
# How a tail goes on is told from the rows at these many σ on one side: between the first two, and the next two.
BODY = (0.5, 1.5, 2.5)
# The ratio of these counts is 0.25 for normal errors, and 0.37 and 0.5 for Laplace's and exponential ones in units of
# the scale that `judge` gives them. From the first value on, a tail may go on at that rate; from the second on it does.
RATIOS = (0.25, 0.35)
PRIOR = 20.0  # normal rows added in thought: of few rows, two more at 2σ are chance
DOUBT = 0.5  # standard errors by which a ratio is taken for less
FAR = 1e6  # σ: a limit on t, beyond which no law has rows, so that logarithms stay finite
MOST = 0.9  # of the ratio: a tail that does not fall off has no sum
ROUNDS = 100  # at most, against cycles: both iterations end much earlier, once no row crosses their cut-off any more
TINY, HUGE = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


def judge(
    r: ArrayLike,
    h: float,
    p: float = 0,
    s: ArrayLike | None = None,
    law: Chi = Chi(),  # noqa: B008 - frozen
    *,
    intercept: bool = True,
    floor: float = 0.0,
    tails: bool = False,
) -> Verdict:
    """Scale, cut-off, inliers and contamination from the residuals of a fit that trusted h of the rows.

    r: residuals, or distances; NaN counts as inf. h: the weight kept by the fit, Σs at most. p: coefficients fitted,
    the intercept among them. floor: the smallest σ to believe in, see `rounding_floor`; rows on an exact fit are then
    inliers and all others outliers. tails: whether r has signs, and tails that fall off no faster than the body lets
    expect are clean, see `_tail_rows`.

    1. *Start.* The h smallest residuals are a share h/(n(1 − ε)) of the clean ones. ε is unknown: it and σ are found
       together, from below, with 1 − ε = (share of rows within 2σ)/P(T ≤ 2). Assuming ε = 0, as `raw_scale` must,
       makes σ twice too large at ε = 0.45, and hides outliers at 5σ. Whatever ε, σ lies between the root mean square
       of the h smallest residuals and `raw_scale`: a minority can neither make it explode nor vanish.
    2. *Scale.* σ² ← (Σ r² over rows within 2.3σ)/(their number − p)/E[T² | T ≤ 2.3], until no row crosses. After a
       refit it is unbiased within 5 % from n = 50 on with up to 30 % of bad rows at 6σ, without a further factor for
       reweighted scales. With 45 % of them and n = 10 p, a quarter to a third is kept, and σ is 0.6 to 0.8 too large.
    3. *Cut-off*, after Gervini & Yohai (2002): among rows beyond 2.5σ, as many as exceed what the law explains. On
       clean data the share flagged tends to 0 with n, so that a refit is as good as least squares.
    4. *Contamination*: 1 − (share of rows within 3σ)/P(T ≤ 3), at least 0. Further in, clean rows blur it in small
       samples; further out, bad rows at 5σ are missed.

    After a refit to the inliers, judge the new residuals in the same way; two rounds are enough.

    References: D. Gervini and V. J. Yohai, A class of robust and fully efficient regression estimators, Ann. Statist.
    30 (2002). C. Croux and P. J. Rousseeuw, A class of high-breakdown scale estimators based on subranges (1992).
    P. J. Rousseeuw and A. M. Leroy, Robust regression and outlier detection (1987).

    >>> r = np.append(np.random.default_rng(0).normal(size=70), np.full(30, 8.0))
    >>> verdict = judge(r, h=51, p=1)
    >>> round(verdict.scale, 2), round(verdict.contamination, 2), int(verdict.inliers.sum())
    (1.03, 0.3, 70)
    """
    rows = _SortedResiduals.of(r, s)
    if not 0 < h <= rows.total * (1 + ROUNDING):
        raise ValueError(f"h = {h:g} must be positive and at most {rows.total:g}, the total weight of the rows.")
    h = min(h, rows.total)
    least = sqrt(rows.smallest(h) / law.k)
    scale = _fixed_point(rows, _start(rows, h, p, law, intercept), least, p, law)
    return judge_at(r, min(max(scale, floor, TINY), HUGE), s, law, tails=tails, rows=rows)


def judge_at(
    r: ArrayLike,
    scale: float,
    s: ArrayLike | None = None,
    law: Chi = Chi(),  # noqa: B008 - frozen
    *,
    tails: bool = False,
    strict: bool = False,
    most: float = inf,
    rows: _SortedResiduals | None = None,
) -> Verdict:
    """The same for a scale that is known: steps 3 and 4 of `judge`.

    strict: whether to flag no row that chance may have put there. most: the largest cut-off.

    >>> judge_at(np.array([-0.3, 0.4, 1.0, -1.2, 30.0]), scale=1.0).inliers
    array([ True,  True,  True,  True, False])
    """
    rows = _SortedResiduals.of(r, s) if rows is None else rows
    n, far = rows.total, law.upper(BEYOND_COUNT)
    t = _scores(rows.r, scale)
    tail = t > law.upper(BEYOND_USUAL)
    wanted = np.append(t[tail], far)
    expected = _tail_rows(r, s, scale, wanted) if tails else n * law.survival(wanted)
    allowed = expected[:-1] + (SPREAD * np.sqrt(expected[:-1]) if strict else 0.0)
    cutoff = min(most, _cutoff(rows, t, tail, allowed, law, CLEAR if strict else EXPECTED))
    bad = n - rows.within(far * scale)[0] - expected[-1]
    return Verdict(scale, cutoff, _scores(r, scale) <= cutoff, max(0.0, float(bad / max(n - expected[-1], 1.0))))


def raw_scale(
    r: ArrayLike,
    h: float,
    p: float = 0,
    s: ArrayLike | None = None,
    law: Chi = Chi(),  # noqa: B008 - frozen
    *,
    intercept: bool = True,
) -> float:
    """The scale of least trimmed squares: c √(mean of the h smallest r²), consistent for clean normal residuals.

    c is the small-sample factor of Pison, Van Aelst and Willems over √E[T² | T ≤ q], P(T ≤ q) = h/n.

    >>> r = np.random.default_rng(0).normal(size=100_000)
    >>> round(raw_scale(r, h=50_000), 2)
    1.0
    """
    rows = _SortedResiduals.of(r, s)
    return _consistent(rows, h, p, law, intercept, good=1.0)


def p_values(scores: ArrayLike, law: Chi = Chi()) -> Vector:  # noqa: B008 - frozen
    """P(T > score): the share of inliers that look worse. Scores are |r|/σ.

    >>> p_values([0.0, 1.96, 40.0]).round(3)
    array([1.  , 0.05, 0.  ])
    """
    return np.asarray(law.survival(np.asarray(scores, dtype=np.float64)))


def rounding_floor(y: ArrayLike, s: ArrayLike | None = None) -> float:
    """The σ below which residuals of ``y`` are rounding errors: 2¹² eps × the median of the nonzero |y|.

    A median, since a single wild target must not pass for the size of all; of the nonzero, since all but a few may
    be 0. eps is that of the dtype of ``y``.

    >>> rounding_floor(np.array([0.0, 0.0, -1.0, 1.0, 1e30])) == 2.0**-40
    True
    """
    y = np.asarray(y)
    eps = float(np.finfo(y.dtype if y.dtype.kind == "f" else np.float64).eps)
    rows = _SortedResiduals.of(y, np.where(y == 0, 0.0, 1.0 if s is None else s))
    return 2.0**12 * eps * rows.quantile(0.5) if rows.total else 0.0


@final
@dataclass(frozen=True)
class _SortedResiduals:
    """The distinct |r| in increasing order; the weight, and Σ s r², of the rows up to each of them."""

    r: Vector
    weight: Vector
    energy: Vector

    @classmethod
    def of(cls, r: ArrayLike, s: ArrayLike | None) -> _SortedResiduals:
        a = np.abs(np.asarray(r, dtype=np.float64))
        if a.ndim != 1 or not a.size:
            raise ValueError(f"residuals must be a vector of at least one entry, got shape {a.shape}.")
        weight = None if s is None else np.asarray(s, dtype=np.float64)
        distinct, mass = _distinct(np.where(np.isnan(a), inf, a), weight)
        with np.errstate(over="ignore"):  # outliers beyond 1e154 have energy inf, which is only summed beyond them
            return cls(distinct, np.cumsum(mass), np.cumsum(mass * distinct**2))

    @property
    def total(self) -> float:
        """n, or Σs."""
        return float(self.weight[-1]) if self.weight.size else 0.0

    def within(self, cut: float) -> tuple[float, float]:
        """Weight and Σ s r² of the rows with |r| ≤ cut."""
        last = int(np.searchsorted(self.r, cut, side="right")) - 1
        return (float(self.weight[last]), float(self.energy[last])) if last >= 0 else (0.0, 0.0)

    def smallest(self, h: float) -> float:
        """The mean r² of the h smallest, the last of which may be there in part."""
        last = self._reach(h)
        full, energy = (float(self.weight[last - 1]), float(self.energy[last - 1])) if last else (0.0, 0.0)
        return (energy + (h - full) * float(self.r[last]) * float(self.r[last])) / h if h > full else energy / h

    def quantile(self, share: float) -> float:
        return float(self.r[self._reach(share * self.total)])

    def _reach(self, h: float) -> int:
        """The first distinct value up to which the weight is h or more."""
        return min(int(np.searchsorted(self.weight, h - ROUNDING * self.total)), self.r.size - 1)


def _distinct(a: Vector, s: Vector | None) -> tuple[Vector, Vector]:
    """The distinct values of a that have a weight, in increasing order, and the weight of each."""
    if s is None:
        a = np.sort(a)
    else:
        order = np.argsort(a[s > 0], kind="stable")
        a, s = a[s > 0][order], s[s > 0][order]
    first = np.flatnonzero(np.append(True, a[1:] != a[:-1])[: a.size])
    return a[first], np.diff(first, append=a.size).astype(np.float64) if s is None else np.add.reduceat(s, first)


def _scores(r: ArrayLike, scale: float) -> Vector:
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(np.asarray(r, dtype=np.float64)) / scale)


def _consistent(rows: _SortedResiduals, h: float, p: float, law: Chi, intercept: bool, good: float) -> float:
    """σ from the h smallest residuals, if a share ``good`` of all rows is clean."""
    moment = law.second_moment(law.upper(1 - h / rows.total / good))
    factor = small_sample(rows.total, p, h, intercept) if law.k == 1 and p else 1.0
    return factor * sqrt(rows.smallest(h) / moment)


def _start(rows: _SortedResiduals, h: float, p: float, law: Chi, intercept: bool) -> float:
    """σ and the good share 1 − ε together, from the smallest 1 − ε = h/n upwards.

    Small samples get an allowance, one standard deviation of the share and p/2n: the h rows that a fit was optimised
    for look too good, the others too bad.
    """
    n, cut, inside = rows.total, law.upper(BEYOND_START), 1 - BEYOND_START
    allowance = sqrt(BEYOND_START / n) + p / (2 * n)
    good, scale = h / n, 0.0
    for _ in range(ROUNDS):
        before, scale = scale, _consistent(rows, h, p, law, intercept, good)
        if scale == before:
            break
        good = min(1.0, max(h / n, rows.within(cut * scale)[0] / (n * inside) + allowance))
    return scale


def _fixed_point(rows: _SortedResiduals, scale: float, least: float, p: float, law: Chi) -> float:
    """The σ that is the consistent scale of the rows within the cut-off it sets itself; ``least`` bounds it below."""
    cut = law.upper(BEYOND_SCALE)
    moment, before = law.second_moment(cut), -1.0
    for _ in range(ROUNDS):
        weight, energy = rows.within(cut * scale)
        if weight == before or not weight:
            break
        before = weight
        freedom = weight - p if weight > p else weight  # with p rows or fewer the fit is exact, and σ its rounding
        scale = max(least, sqrt(energy / freedom / moment))
    return scale


def _cutoff(
    rows: _SortedResiduals, t: Vector, tail: NDArray[np.bool_], expected: Vector, law: Chi, clear: float
) -> float:
    """The largest of the scores t that is not flagged: with the excess, max (rows ≥ t) − rows expected there, flagged,
    both of the scores in the ``tail``.

    Where nothing is flagged, the score at which a single row would have been.
    """
    usual = law.upper(BEYOND_USUAL)
    beyond = rows.total - np.concatenate([[0.0], rows.weight[:-1]])  # at t or further out
    excess = float(np.max(beyond[tail] - expected, initial=0.0))
    kept = t[~tail | (beyond > excess + clear)]
    last = float(kept[-1]) if kept.size else 0.0
    return max(usual, last) if kept.size < t.size else max(last, usual, law.upper(clear / rows.total))


def _counted(u: Vector, edges: Vector, c: Vector) -> Vector:
    """The weight c of the rows between two edges each, as `numpy.histogram` has it: the last edge is inside."""
    beyond = [float(c @ (u >= edge)) for edge in edges[:-1]] + [float(c @ (u > edges[-1]))]
    return -np.diff(beyond)


def _tail_rows(r: ArrayLike, s: ArrayLike | None, scale: float, t: Vector) -> Vector:
    """How many rows of either side are expected beyond t, if tails go on as they begin.

    A skewed or heavy tail is not contamination. Of n₁ and n₂ rows between 0.5 and 1.5 and between 1.5 and 2.5 σ,
    d = n₂/n₁, a geometric tail has n₂ d/(1 − d) d^(t − 2.5) rows beyond t; exponential and Laplace errors have exactly
    those. Bad rows from 3 σ on do not enter d, and come on top. Where d is that of a normal law so is the tail; in
    between its logarithm is a mixture.
    """
    u = np.nan_to_num(np.asarray(r, dtype=np.float64) / scale, nan=inf, posinf=inf, neginf=-inf)
    t = np.minimum(t, FAR)
    c = np.ones(u.shape) if s is None else np.asarray(s, dtype=np.float64)
    edges, body = np.array(BODY), np.diff(ndtr(BODY))
    n, expected = float(c.sum()), np.zeros(t.shape)
    normal = np.log(n) + log_ndtr(-t)
    for side in (u, -u):
        counts = _counted(side, edges, c)
        first, second = counts + PRIOR * body
        d = float(np.clip(second / first * (1 - DOUBT * sqrt(1 / first + 1 / second)), RATIOS[0], MOST))
        geometric = np.log(max(counts[1], TINY) * d / (1 - d)) + (t - BODY[-1]) * np.log(d)
        share = min((d - RATIOS[0]) / (RATIOS[1] - RATIOS[0]), 1.0)
        expected += np.exp(normal + share * np.maximum(geometric - normal, 0.0))
    return expected
