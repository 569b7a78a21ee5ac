"""Distances whose tail may be heavier than that of normal rows: what is a tail, and what is contamination.

The distance d of a good row from a location and scatter of ν dimensions follows d² = σ²νF(ν, m): m = ∞ is χ, normal
rows; smaller m are rows of an elliptical t law with m degrees of freedom, whose tail goes on and on. Bad rows that lie
apart form a second hump of log d. `judge_distances` compares the four models (m = ∞ or not, a hump or not) by their
likelihood; a hump counts only where the density has a valley before it, because any tail can be fitted by two humps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any, Final, final

import numpy as np
from scipy.special import betaln, chdtrc, chdtri, fdtrc, fdtri, gammaln, ndtri

from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.scale import BEYOND_COUNT, BEYOND_USUAL, EXPECTED, TINY, Chi, judge
from trimlearn.robust.verdict import Verdict

__all__ = ["JudgedDistances", "TailLaw", "judge_distances"]

FREEDOMS: Final = (inf, 30.0, 15.0, 8.0, 5.0, 3.0, 2.0, 1.0)
BINS: Final = 400
CUTS: Final = 60
STEPS: Final = 12
LEAST_SPREAD: Final = 0.05
POWER: Final = 4.0
VALLEY: Final = 0.7
HUMP: Final = 3.0
TAIL: Final = 4.0
STEEP: Final = 3.0
MOSTLY: Final = 0.3
SURE: Final = 1e-15
LOG_2PI: Final = log(2 * np.pi)


@final
@dataclass(frozen=True)
class TailLaw:
    """The law of a good row's d/σ: T² = kF(k, m); m = ∞ is χ_k.

    >>> round(float(TailLaw(2.0).survival(3.0)), 4), round(float(TailLaw(2.0, 5.0).survival(3.0)), 4)
    (0.0111, 0.0592)
    """

    k: float
    m: float = inf

    def survival(self, t: Any) -> Any:
        """P(T > t), elementwise."""
        x = np.square(np.minimum(t, 1e150))
        return chdtrc(self.k, x) if self.m == inf else fdtrc(self.k, self.m, x / self.k)

    def upper(self, beyond: float) -> float:
        """The t with P(T > t) = beyond."""
        if beyond <= 0:
            return inf
        if self.m == inf:
            return sqrt(chdtri(self.k, beyond))
        return sqrt(self.k * float(fdtri(self.k, self.m, 1.0 - max(beyond, SURE))))

    def log_density(self, y: np.ndarray) -> np.ndarray:
        """Of y = log T."""
        a, x = 0.5 * self.k, np.exp(2.0 * np.minimum(y, 300.0))
        if self.m == inf:
            return np.asarray(log(2.0) - a * log(2.0) + 2.0 * a * y - 0.5 * x - gammaln(a))
        b = 0.5 * self.m
        return np.asarray(log(2.0) + 2.0 * a * y - a * log(self.m) - (a + b) * np.log1p(x / self.m) - betaln(a, b))


@final
@dataclass(frozen=True)
class JudgedDistances:
    """The verdict on distances, the law of the good ones, and the share of bad rows were that law normal."""

    verdict: Verdict
    law: TailLaw
    normal_contamination: float
    apart: bool  # whether bad rows lie apart
    weights: np.ndarray  # what rows count in a fit: 1, less where only a heavy tail explains them, 0 where nothing does


def judge_distances(d, h, s, k, floor=0.0, cost=0.0, bulk=False):
    normal = judge(d, h, 1, s, Chi(k), floor=floor)
    y, c = _binned(np.maximum(np.abs(d), max(floor, TINY)), s)
    law, scale, apart = _best_law(y, c, h, k, cost, normal.contamination)
    if law.m == inf and (apart or bulk):
        return JudgedDistances(normal, law, normal.contamination, apart, normal.inliers.astype(np.float64))
    scale = max(scale, floor, TINY)
    t = np.abs(d) / scale
    cutoff = _cutoff(t, s, law)
    within = float(s[t <= law.upper(BEYOND_COUNT)].sum()) / (float(s.sum()) * (1 - BEYOND_COUNT))
    verdict = Verdict(scale, cutoff, t <= cutoff, max(0.0, 1.0 - within))
    weights = verdict.inliers.astype(np.float64)
    if law.m < inf:
        far = np.maximum(np.abs(d) / (normal.cutoff * normal.scale), 1.0)
        weights = weights / far**POWER
    return JudgedDistances(verdict, law, normal.contamination, apart, weights)


def spread_freedom(distances2: np.ndarray, s: np.ndarray, share: float) -> float:
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


def _binned(d, s):
    """log d of bins of rows in increasing order, finer at the far end, and their weights."""
    order = np.argsort(d, kind="stable")
    y, c = np.log(d[order]), s[order].astype(np.float64)
    keep = c > 0
    y, c = y[keep], c[keep]
    if len(y) <= BINS:
        return y, c
    share = np.cumsum(c) / c.sum()
    edges = np.concatenate([np.linspace(0, 0.8, BINS // 2, endpoint=False), 1 - 0.2 * np.linspace(1, 0, BINS // 2) ** 2])
    bins = np.searchsorted(edges, share - 0.5 * c / c.sum(), side="right")
    _, index = np.unique(bins, return_inverse=True)
    mass = np.bincount(index, c)
    return np.bincount(index, c * y) / mass, mass


def _best_law(y, c, h, k, cost=0.0, contamination=0.0):
    n = float(c.sum())
    explained = max(MOSTLY * contamination * n, 0.0)
    weight = np.cumsum(c)
    last = np.flatnonzero(weight >= min(h, n) - 1e-9)
    # a cut after bin i: bins up to i are good
    inner = last[:-1]
    if len(inner) > CUTS:
        gaps = np.diff(y)[inner]
        inner = np.unique(np.concatenate([inner[np.argsort(gaps)[-CUTS // 2:]], inner[np.linspace(0, len(inner) - 1, CUTS // 2).astype(int)]]))
    cuts = np.append(inner, len(y) - 1)
    good = (np.arange(len(y)) <= cuts[:, None]) * c
    bad = c - good
    g, b = good.sum(1), bad.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mu = np.where(b > 0, bad @ y / b, 0.0)
        spread = np.sqrt(np.maximum(np.where(b > 0, (bad * (y - mu[:, None]) ** 2).sum(1) / b, 0.0), LEAST_SPREAD**2))
        hump = np.where(b > 0, b * np.log(b / n) - b * (0.5 * LOG_2PI + np.log(spread)) - 0.5 * (bad * (y - mu[:, None]) ** 2).sum(1) / spread**2, 0.0)
    hump += g * np.log(g / n) - np.where(b > 0, 0.5 * (HUMP + cost) * log(n), 0.0)
    best = (-inf, None, 0.0, False)
    top = y[cuts]
    ref = np.array([y[np.searchsorted(weight, 0.5 * gi)] for gi in g])
    sigma2 = (good * np.exp(2 * (y - ref[:, None]).clip(-50, 50))).sum(1) / g / k
    table = {}
    for m in FREEDOMS:
        law = TailLaw(k, m)
        if m < inf:
            for _ in range(STEPS):
                z = np.exp(2 * (y - ref[:, None]).clip(-50, 50)) / sigma2[:, None]
                w = (k + m) / (m + z)
                sigma2 = sigma2 * ((good * w * z).sum(1) / g / k)
        ly = y - ref[:, None] - 0.5 * np.log(sigma2)[:, None]
        fit = (good * law.log_density(ly.clip(-300, 300))).sum(1) + hump - (np.where(b > explained, 0.5, 0.5 * TAIL) * log(n) + STEEP / m if m < inf else 0.0)
        for j in np.argsort(-fit):
            if fit[j] <= best[0]:
                break
            sc = float(np.exp(ref[j]) * sqrt(sigma2[j]))
            if b[j] == 0 or _valley(law, log(sc), mu[j], spread[j], b[j] / n):
                best = (float(fit[j]), law, sc, bool(b[j] > 0))
                break
    return best[1:]


def _valley(law, centre, mu, spread, share):
    """Whether the density of log d has a valley between the good rows and the hump."""
    low = centre + log(law.upper(0.6))
    if mu <= low:
        return False
    y = np.linspace(low, mu, 60)
    f = (1 - share) * np.exp(law.log_density(y - centre)) + share * np.exp(-0.5 * ((y - mu) / spread) ** 2) / (spread * sqrt(2 * np.pi))
    at = int(np.argmin(f))
    return f[at] < VALLEY * min(f[: at + 1].max(), f[at:].max())


def _cutoff(t, s, law):
    usual, n = law.upper(BEYOND_USUAL), float(s.sum())
    order = np.argsort(t, kind="stable")
    t, c = t[order], s[order]
    beyond = n - np.cumsum(c) + c
    tail = t > usual
    excess = float(np.max(beyond[tail] - n * law.survival(t[tail]), initial=0.0))
    kept = t[~tail | (beyond > excess + EXPECTED)]
    last = float(kept[-1]) if kept.size else 0.0
    return max(usual, last) if kept.size < t.size else max(last, usual, law.upper(EXPECTED / n))
