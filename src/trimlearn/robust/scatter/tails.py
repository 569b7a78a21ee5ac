"""Distances whose tail may be heavier than that of normal rows: what is a tail, and what is contamination.

The distance d of a good row from a location and scatter of k dimensions follows d² = σ²kF(k, m): m = ∞ is χ, normal
rows; smaller m are rows of an elliptical t law with m degrees of freedom, whose tail goes on and on. Bad rows that lie
apart from them are a second hump of log d. `judge_distances` compares the models (each m, with or without a hump) by
their likelihood, less what their parameters cost. A hump counts only where the density has a valley before it, since
any tail can be fitted by two humps. `python -m benchmarks.calibration tails` measures what is taken for what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, chdtrc, chdtri, fdtrc, fdtri, gammaln, ndtri

from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.scale import BEYOND_COUNT, BEYOND_USUAL, EXPECTED, HUGE, TINY, Chi, judge
from trimlearn.robust.verdict import Verdict

__all__ = [
    "JudgedDistances",
    "TailLaw",
    "judge_distances",
    "shown_freedom",
    "spread_freedom",
]

Vector = NDArray[np.float64]

FREEDOMS: Final = (inf, 15.0, 8.0, 5.0, 3.0, 2.0, 1.0)  # m tried: each law is near its neighbours, and 15 near χ
BINS: Final = 400  # of log d at most, a limit on time
CUTS: Final = 60  # places at most where a hump may begin, a limit on time
STEPS: Final = 12  # of EM for σ, a limit on time: each m begins where the last one ended
SPREAD: Final = 0.3  # of log d in a hump, of one row added in thought: a hump of one row has no spread of its own
# What a model pays, in halves of log n as in Schwarz (1978): a hump has three parameters, a tail one; but few rows far
# out are as likely a tail as a hump, and a tail would hide them, so that it pays four. Of 50 rows in 3 dimensions with
# 5 at 6 σ, TrimmedCovariance finds all with four, 66 % with two (means of ten samples; `benchmarks.calibration tails`).
HUMP, TAIL = 3.0, 4.0
STEEP: Final = 3.0  # besides, 3/m: the longer a tail, the more it hides. A choice, not measured apart from the others
# Of the rows that the normal law calls bad, the share that lies apart where a tail of the others costs two halves only:
# it hides nobody then. Tablets of two weights, 20 of 90 apart, are told by it (`docs/pca.md`), for which it was chosen.
MOSTLY: Final = 0.3
VALLEY: Final = 0.7  # of the lower of the two tops of a density: what lies higher is no valley but a shoulder
WANE: Final = 4.0  # the power of the distance by which rows that only a tail explains count less, see `judge_distances`
SURE: Final = 1e-15  # a tail probability whose complement still differs from 1: below it F quantiles are infinite
# ν by the covariance over ν by the nearest half of the distances, beyond which rows differ in scale: 45 % of bad rows
# explain 2.7, and 40 % explain 2.1 (`benchmarks.calibration subspace`).
UNEQUAL: Final = 3.0
BOUND: Final = 150.0  # of log d/σ: sums of the squares of such distances are in range


@final
@dataclass(frozen=True)
class TailLaw:
    """The law of a good row's d/σ: T² = kF(k, m); m = ∞ is χ_k.

    >>> round(float(TailLaw(2.0).survival(3.0)), 4), round(float(TailLaw(2.0, 5.0).survival(3.0)), 4)
    (0.0111, 0.0762)
    """

    k: float
    m: float = inf

    def survival(self, t: Any) -> Any:
        """P(T > t), elementwise."""
        x = np.square(np.minimum(t, 1e150))  # whose square is finite, and its tail 0
        return chdtrc(self.k, x) if self.m == inf else fdtrc(self.k, self.m, x / self.k)

    def upper(self, beyond: float) -> float:
        """The t with P(T > t) = beyond; inf for 0 or less."""
        if beyond <= 0:
            return inf
        if self.m == inf:
            return sqrt(chdtri(self.k, beyond))
        return sqrt(self.k * float(fdtri(self.k, self.m, 1.0 - max(beyond, SURE))))

    def log_density(self, y: Vector) -> Vector:
        """Of y = log T."""
        a, y = 0.5 * self.k, np.clip(y, -BOUND, BOUND)
        x = np.exp(2.0 * y)
        if self.m == inf:
            return np.asarray((1.0 - a) * log(2.0) + 2.0 * a * y - 0.5 * x - gammaln(a))
        b = 0.5 * self.m
        return np.asarray(log(2.0) + 2.0 * a * y - a * log(self.m) - (a + b) * np.log1p(x / self.m) - betaln(a, b))


@final
@dataclass(frozen=True)
class JudgedDistances:
    """The verdict on distances, the law of the good ones, and what it would be were that law normal."""

    verdict: Verdict
    law: TailLaw
    normal_contamination: float
    apart: bool  # whether bad rows lie apart from all others
    weights: Vector  # what rows count in a fit: 1, less where only a tail explains them, 0 where nothing does


def judge_distances(
    d: Vector, h: float, s: Vector, k: float, floor: float = 0.0, cost: float = 0.0, bulk: bool = False
) -> JudgedDistances:
    """Who is bad by the distances d from a fit that trusted h of the rows, which count s times.

    k: the dimensions. floor: the smallest σ to believe in. cost: parameters that a hump pays for besides its own,
    where the fit to the h rows was flattered and the others seem apart. bulk: whether σ is always told by the nearest
    rows (`trimlearn.robust.scale.judge`); else, where nothing lies apart and no tail is heavy, by all of them.

    Rows beyond the normal law's cut-off c that a tail explains have the weight (c/d)⁴ in the next fit: they are not
    bad, but the shape of the others is known better without them.

    >>> rng = np.random.default_rng(0)
    >>> d = np.sqrt(rng.chisquare(3, 200) / rng.chisquare(4, 200) * 4)  # an elliptical t law
    >>> judged = judge_distances(d, 102.0, np.ones(200), 3.0)
    >>> judged.law.m < 9, round(judged.verdict.contamination, 2), round(judged.normal_contamination, 2)
    (True, 0.01, 0.04)
    """
    normal = judge(d, h, 1, s, Chi(k), floor=floor)
    y, c = _binned(np.clip(np.abs(d), max(floor, TINY), HUGE), s)
    law, scale, end = _Models.of(y, c, h).best(k, HUMP + cost, MOSTLY * normal.contamination * float(c.sum()))
    apart = end < inf
    if law.m == inf and (apart or bulk):
        weights = normal.inliers.astype(np.float64)
        return JudgedDistances(normal, law, normal.contamination, apart, weights)
    scale = max(scale, floor, TINY)
    t = np.abs(d) / scale
    cutoff = min(_cutoff(t, s, law), end / scale)
    good = float(s[t <= law.upper(BEYOND_COUNT)].sum()) / (float(s.sum()) * (1 - BEYOND_COUNT))
    beyond = float(s[np.abs(d) > end].sum()) / float(s.sum())
    verdict = Verdict(scale, cutoff, t <= cutoff, max(beyond, 1.0 - good))
    weights = verdict.inliers.astype(np.float64)
    if law.m < inf:
        weights /= np.maximum(np.abs(d) / (normal.cutoff * normal.scale), 1.0) ** WANE
    return JudgedDistances(verdict, law, normal.contamination, apart, weights)


def spread_freedom(distances2: Vector, s: Vector, share: float) -> float:
    """k as the nearest rows' distances themselves tell it, were no row bad: a lower bound, nearly.

    The cube root of σ²χ²_k is nearly normal with variance/mean² = 2/(9k) (Wilson and Hilferty 1931), here from two
    quantiles up to ``share`` of the rows.
    """
    roots = np.cbrt(distances2)
    low, high = weighted_quantile(roots, s, share / 5), weighted_quantile(roots, s, share)
    steps = ndtri(share / 5), ndtri(share)
    deviation = (high - low) / (steps[1] - steps[0])
    mean = high - steps[1] * deviation
    return max(1.0, 2.0 / 9.0 * float(mean / deviation) ** 2) if deviation > 0 else inf


def shown_freedom(distances2: Vector, s: Vector, share: float, k: float) -> float:
    """k as a covariance tells it, unless the distances of the nearest ``share`` of the rows spread so much more that
    rows differ in scale (heavy tails, categories, sparse counts): then as these tell it."""
    spread = spread_freedom(distances2, s, min(0.5, share))
    return spread if spread < k / UNEQUAL else k


def _binned(d: Vector, s: Vector) -> tuple[Vector, Vector]:
    """log d of the rows, or of bins of them that are finer far out, in increasing order; and their weights.

    No bin reaches across one of the widest gaps: it would fill a valley.
    """
    distinct, index = np.unique(d[s > 0], return_inverse=True)
    y, c = np.log(distinct), np.bincount(index, s[s > 0]).astype(np.float64)
    if len(y) <= BINS:
        return y, c
    share = (np.cumsum(c) - 0.5 * c) / c.sum()
    inner, outer = np.linspace(0, 0.8, BINS // 2, endpoint=False), 1 - 0.2 * np.linspace(1, 0, BINS // 2) ** 2
    after_gap = np.zeros(len(y), dtype=np.int64)
    after_gap[1 + np.argsort(np.diff(y), kind="stable")[-CUTS:]] = 1
    bins = np.searchsorted(np.append(inner, outer), share, side="right") + np.cumsum(after_gap)
    _, index = np.unique(bins, return_inverse=True)
    mass = np.bincount(index, c).astype(np.float64)
    return np.bincount(index, c * y) / mass, mass


@final
@dataclass(frozen=True)
class _Models:
    """Splits of y = log d into good rows and a hump of bad ones beyond, one split a row of ``good``; the last: none."""

    y: Vector
    good: Vector  # (splits, bins): the weights of the good
    bad: Vector  # (splits,): the weight of the hump, its mean, and its spread
    mean: Vector
    spread: Vector
    hump: Vector  # the log-likelihood of the hump, and of who is in it

    @classmethod
    def of(cls, y: Vector, c: Vector, h: float) -> _Models:
        n = float(c.sum())
        inner = np.flatnonzero(np.cumsum(c) >= min(h, n) * (1 - 1e-12))[:-1]  # the last bins that may be good
        if len(inner) > CUTS:  # those before the widest gaps, and some of all others
            wide = inner[np.argsort(np.diff(y)[inner], kind="stable")[-CUTS // 2 :]]
            inner = np.unique(np.append(wide, inner[np.linspace(0, len(inner) - 1, CUTS // 2).astype(np.int64)]))
        good = (np.arange(len(y)) <= np.append(inner, len(y) - 1)[:, None]) * c
        out = c - good
        bad = out.sum(axis=1)
        some = np.maximum(bad, TINY)
        mean = out @ y / some
        square = np.sum(out * (y - mean[:, None]) ** 2, axis=1)
        spread = np.sqrt((square + SPREAD**2) / (bad + 1.0))
        hump = bad * (np.log(some / n) - 0.5 * log(2 * np.pi) - np.log(spread)) - 0.5 * square / spread**2
        return cls(y, good, bad, mean, spread, hump + (n - bad) * np.log((n - bad) / n))

    def best(self, k: float, hump_cost: float, most: float) -> tuple[TailLaw, float, float]:
        """The law of the good rows, their σ, and where a hump begins (inf: nowhere), in the most likely model for its
        cost.

        most: the weight of a hump beside which a tail is cheap.
        """
        bad, n = self.bad, float(self.good[-1].sum())
        best, value = (TailLaw(k), 1.0, inf), -inf
        for law, centres, fit in self.fits(k):
            fit -= np.where(bad > 0, 0.5 * hump_cost, 0.0) * log(n)
            if law.m < inf:
                fit -= np.where((bad > 0) & (bad > most), 1.0, 0.5 * TAIL) * log(n) + STEEP / law.m
            for j in np.argsort(-fit, kind="stable"):
                if not fit[j] > value:
                    break
                centre = float(centres[j])
                if bad[j] == 0 or self._valley(int(j), law, centre, n):
                    best, value = (law, float(np.exp(centre)), self._end(int(j))), float(fit[j])
                    break
        return best

    def fits(self, k: float) -> Iterator[tuple[TailLaw, Vector, Vector]]:
        """Every law of the good rows, with log σ and the log-likelihood of each split by it."""
        y, good = self.y, self.good
        count = good.sum(axis=1)
        middle = np.array([y[np.searchsorted(np.cumsum(row), 0.5 * row.sum())] for row in good])
        squares = np.exp(2.0 * np.clip(y - middle[:, None], -BOUND, BOUND))
        variance = np.sum(good * squares, axis=1) / count / k
        for m in FREEDOMS:
            law = TailLaw(k, m)
            for _ in range(STEPS if m < inf else 0):
                z = squares / variance[:, None]
                variance = variance * np.sum(good * z * (k + m) / (m + z), axis=1) / count / k
            centres = middle + 0.5 * np.log(variance)
            yield law, centres, np.sum(good * law.log_density(y - centres[:, None]), axis=1) + self.hump

    def _end(self, j: int) -> float:
        """The distance half-way between the last good bin and the first of the hump."""
        last = int(np.flatnonzero(self.good[j])[-1])
        return float(np.exp(0.5 * (self.y[last] + self.y[last + 1]))) if last + 1 < len(self.y) else inf

    def _valley(self, j: int, law: TailLaw, centre: float, n: float) -> bool:
        """Whether the density of log d has a valley between the middle of the good rows and the hump."""
        low, mean, spread, share = centre + log(law.upper(0.6)), self.mean[j], self.spread[j], self.bad[j] / n
        if mean <= low:
            return False
        y = np.linspace(low, mean, 60)  # finer than any spread
        hump = np.exp(-0.5 * ((y - mean) / spread) ** 2) / (spread * sqrt(2 * np.pi))
        f = (1 - share) * np.exp(law.log_density(y - centre)) + share * hump
        at = int(np.argmin(f))
        return bool(f[at] < VALLEY * min(f[: at + 1].max(), f[at:].max()))


def _cutoff(t: Vector, s: Vector, law: TailLaw) -> float:
    """The largest d/σ that is not flagged, after Gervini and Yohai (2002), as in `trimlearn.robust.scale.judge`."""
    usual, n = law.upper(BEYOND_USUAL), float(s.sum())
    order = np.argsort(t, kind="stable")
    t, c = t[order], s[order]
    first = np.searchsorted(t, t)  # equal ones together
    beyond = n - np.append(0.0, np.cumsum(c))[first]
    tail = t > usual
    excess = float(np.max(beyond[tail] - n * law.survival(t[tail]), initial=0.0))
    kept = t[~tail | (beyond > excess + EXPECTED)]
    last = float(kept[-1]) if kept.size else 0.0
    return max(usual, last) if kept.size < t.size else max(last, usual, law.upper(EXPECTED / n))
