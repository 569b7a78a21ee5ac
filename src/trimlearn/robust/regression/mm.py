"""MM-estimation from a trimmed start: weights that fall smoothly with the residual, and reach 0.

V. J. Yohai (1987), High breakdown-point and high efficiency robust estimates for regression, Ann. Statist. 15.
M. Koller and W. A. Stahel (2011), Sharpening Wald-type inference in robust regression for small samples, CSDA 55.

ψ of an MM-estimate: its shape, how wide it is, and by how much a fit with it varies.

V. J. Yohai (1987), High breakdown-point and high efficiency robust estimates for regression, Ann. Statist. 15.
M. Koller and W. A. Stahel (2011), Sharpening Wald-type inference in robust regression for small samples, CSDA 55.
L. A. Jaeckel (1971), Some flexible estimates of location, Ann. Math. Statist. 42.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import log, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from trimlearn.losses.exact import solve_regular
from trimlearn.robust.regression.one_law import groups, looks_skewed, one_group
from trimlearn.robust.scale import TINY, judge_at
from trimlearn.robust.verdict import Verdict

# b, c and s of the "linear quadratic quadratic" ψ of Koller and Stahel (2011), whose efficiency for normal errors is 95
# %: ψ' is 1 up to c, then falls to 1 − s until b + c, and from there rises to 0.
BEND, LINEAR, SLOPE = 1.4734061, 0.9822707, 1.5
LAST = (2 * LINEAR + 2 * BEND - BEND * SLOPE) / (SLOPE - 1)  # over which it rises: such that ψ ends at 0
# ψ is stretched by these. 1 is 95 % efficient, and used where rows are off that a normal law does not explain; 1.6 is
# 99.5 % efficient, for rows in which nothing speaks against it (python -m benchmarks.calibration mm).
FIRM, EASY = 1.0, 1.6
STEP = 0.05  # between those that are in between: the moments of each are found once, and so small a step changes 0.5 %
# Narrower ones, tried where errors have heavy or skewed tails: for normal errors the last is 66 % efficient.
NARROWER = (1.0, 0.7, 0.5)
# Standard errors by which the variance that one of them promises has to be smaller: the rule by which Breiman,
# Friedman, Olshen and Stone (1984, section 3.4.3) keep the simpler of two models. With 0, clean normal rows would cost
# 7 % more (python -m benchmarks.calibration mm).
ERRORS = 1.0
ENOUGH = 10.0  # rows that count for each coefficient: of fewer, residuals do not tell a variance (customary)
PSI_SETTLED = 1e-6  # σ by which it moves in the last one: no variance is told so precisely
LEAST = 0.2  # of the mean of ψ': what Laplace errors have is 0.6; where it is less, half of the rows are nearly flagged


@final
@dataclass(frozen=True)
class Lqq:
    """ψ(t) = k ψ₁(t/k), ψ₁ linear up to c and 0 from a + b + c on; w(t) = ψ(t)/t.

    >>> Lqq().weight(np.array([0.0, 0.5, 3.0, 8.0])).round(2)
    array([1.  , 1.  , 0.36, 0.  ])
    """

    k: float = FIRM

    @property
    def end(self) -> float:
        """Where ψ reaches 0: 7.9 for k = 1."""
        return self.k * (LINEAR + BEND + LAST)

    def value(self, t: Vector) -> Vector:
        """ψ(t)."""
        return self.weight(t) * np.where(np.isfinite(t), t, 0.0)

    def slope(self, t: Vector) -> Vector:
        """ψ'(t)."""
        beyond = np.abs(t) / self.k - LINEAR
        rising = (SLOPE - 1) * ((beyond - BEND) / LAST - 1)
        return np.where(beyond <= BEND, 1 - SLOPE / BEND * np.maximum(beyond, 0.0), np.minimum(rising, 0.0))

    def weight(self, t: Vector) -> Vector:
        """ψ(t)/t, from 1 down to 0."""
        u = np.minimum(np.abs(t) / self.k, LINEAR + BEND + LAST)
        beyond, late = np.maximum(u - LINEAR, 0.0), np.maximum(u - LINEAR - BEND, 0.0)
        early = np.minimum(beyond, BEND)
        psi = np.minimum(u, LINEAR) + early * (1 - SLOPE / (2 * BEND) * early)
        psi += (SLOPE - 1) * late * (late / (2 * LAST) - 1)
        return np.clip(np.divide(psi, u, out=np.ones_like(u), where=u > LINEAR), 0.0, 1.0)

    @property
    def consistency(self) -> float:
        """κ = E[w(T) T²]/E[w(T)] of a normal T."""
        return _moments(self.k)[0]

    @property
    def efficiency(self) -> float:
        """(E ψ')²/E ψ² of a normal T: what least squares needs of the rows, for the same variance."""
        return _moments(self.k)[1]


@cache
def _moments(k: float) -> tuple[float, float]:
    t = np.linspace(0.0, 10.0, 20_001)  # beyond, nothing is left of a normal law
    psi, mass = Lqq(k), -np.diff(ndtr(-t))
    t = (t[1:] + t[:-1]) / 2
    w, value, slope = psi.weight(t), psi.value(t), psi.slope(t)
    return float(mass @ (w * t**2) / (mass @ w)), float(2 * (mass @ slope) ** 2 / (mass @ value**2))


def eased(ratio: float, most: float) -> float:
    """The k of ψ for rows whose scale exceeds that of the rows explained by the factor ``ratio``, of which clean rows
    reach ``most``: the nearer to that, the more speaks against a normal law.

    >>> [round(eased(ratio, most=1.5), 2) for ratio in (0.9, 1.0, 1.25, 1.5, 2.0)]
    [1.6, 1.6, 1.3, 1.0, 1.0]
    """
    k = EASY + (FIRM - EASY) * min(max(ratio - 1, 0.0) / (most - 1), 1.0)
    return round(k / STEP) * STEP


def narrowed(r: Vector, c: Vector, rank: int, verdict: Verdict, psi: Lqq, refit: Callable[[Lqq], Vector]) -> Lqq:
    """The ψ under which x varies least, by its own residuals (Jaeckel 1971): for heavy and skewed tails a narrower one.

    refit: the residuals with another ψ. Where errors are skewed, a narrower one moves the intercept to where they are
    dense, and slopes are told by the rows there.
    """
    on = verdict.inliers
    if c @ np.where(on, Lqq(NARROWER[-1]).weight(r / verdict.scale), 0.0) <= ENOUGH * rank:
        return psi
    least, pull = _promised(r / verdict.scale, c, rank, on, psi)
    if least <= 0:  # half of the errors are 0
        return psi
    for other in map(Lqq, NARROWER):
        if other.k < psi.k:
            found, its = _promised(refit(other) / verdict.scale, c, rank, on, other)
            error = sqrt(float(c @ (its - pull) ** 2)) / float(c[on].sum())
            if log(found / least) < -ERRORS * error:
                psi, least, pull = other, found, its
    return psi


def centred(r: Vector, c: Vector, verdict: Verdict, psi: Lqq) -> Vector:
    """r − m with Σ cᵢ ψ((rᵢ − m)/σ) = 0 over the inliers, m the nearest from 0: the residuals of
    a fit whose slopes stay as they are.

    >>> verdict = Verdict(1.0, 3.0, np.array([True, True, True]), 0.0)
    >>> centred(np.array([0.5, 1.0, 1.5]), np.ones(3), verdict, Lqq()).round(3)
    array([-0.5,  0. ,  0.5])
    """
    r = np.where(verdict.inliers, r, 0.0)
    for _ in range(STEPS):
        w = c * np.where(verdict.inliers, psi.weight(r / verdict.scale), 0.0)
        step = float(w @ r) / float(w.sum())
        r = r - step
        if abs(step) <= PSI_SETTLED * verdict.scale:
            break
    return r


def noise_and_bread(r: Vector, c: Vector, rank: int, w: Vector, scale: float, psi: Lqq) -> tuple[float, float]:
    """noise and bread, by

        cov(x) = σ² V (Σ aᵢaᵢᵀ)⁻¹,   V as `_variance` has it,

    where Σ aᵢaᵢᵀ over the rows that count is AᵀCWA over the mean weight: bad leverage points that count little must not
    make it large.
    """
    on = w > 0
    V, slope = _variance(r / scale, c, rank, on, psi)
    mean = float(c @ w) / float(c[on].sum())
    return scale * sqrt(V * mean), mean / slope


def _variance(t: Vector, c: Vector, rank: int, on: NDArray[np.bool_], psi: Lqq) -> tuple[float, float]:
    """V = K² a/b² and b/K. With a = Σ ψ²/(m − q) and b = mean ψ' over the m rows that are ``on``, of scores t,
    K = 1 + q/m var(ψ')/b² (Huber 1981, section 7.6)."""
    c = np.where(on, c, 0.0)
    m, q = float(c.sum()), rank
    value, slope = psi.value(t), psi.slope(t)
    b = max(float(c @ slope) / m, LEAST)
    K = 1 + q / m * float(c @ (slope - b) ** 2) / m / b**2
    return K**2 * float(c @ value**2) / max(m - q, 1.0) / b**2, b / K


def _promised(t: Vector, c: Vector, rank: int, on: NDArray[np.bool_], psi: Lqq) -> tuple[float, Vector]:
    """The variance of x; and what each row adds to the logarithm of mean ψ²/(mean ψ')², times their number: for its
    standard error."""
    count = np.where(on, c, 0.0)
    m, square, slope = float(count.sum()), psi.value(t) ** 2, psi.slope(t)
    b = max(float(count @ slope) / m, LEAST)
    pull = np.where(on, square * m / float(count @ square) - 2 * slope / b, 0.0)
    return _variance(t, c, rank, on, psi)[0], pull


Vector = NDArray[np.float64]

# Of 200 clean normal samples of 20 rows one in a hundred reaches the factor of `chance`; what half or twice of either
# changes is less than chance (python -m benchmarks.calibration mm).
FEW, MANY = 25.0, 700.0
# Logarithm of the likelihood by which two groups, the rows explained and the others, must beat one normal law to be
# believed: "very strong evidence" is 5 (Kass and Raftery 1995). But which rows are explained was chosen, and of few
# rows chance chooses well: hence 100/n more. With 20/n twice as many clean rows are flagged (python -m
# benchmarks.calibration mm).
APART, CHOSEN = 5.0, 100.0
A_FIFTH = 0.2  # of the rows: more are flagged in clean samples of 20 rows only where a fit to half of them is exact
FEW_ROWS = 2_000  # up to which a skewed law is asked for: of more, `judge_at` sees how the tail goes on
ROUNDS = 3  # of fitting, measuring and judging: a limit on time. In the third, as a rule nothing changes
STEPS = 100  # of fitting with renewed weights, a limit on time: they gain a digit every one to three
# Share of σ by which predictions move in a step that is the last, in up to LARGE numbers and in more: the error of the
# fit is √(q/n) σ, and each step takes time. ROUGH: for a fit of which only the scale is asked.
SETTLED, LARGE, SETTLED_LARGE, ROUGH = 1e-8, 100_000, 1e-5, 1e-3
RIDGE = 1e-12  # of the trace of a Gram matrix: so small a ridge is rounding, and its inverse is finite
RANK = 1e-10  # of the longest: shorter directions of columns of length 1 are rounding (as in inference.precision)


@final
class WeightedRows:
    """Rows A (n, q) with targets t and counts c, in orthonormal coordinates: least squares for many weights."""

    def __init__(self, A: np.ndarray, t: Vector, c: Vector) -> None:
        root = A * np.sqrt(c)[:, None]
        unit = np.linalg.norm(root, axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        R = np.linalg.qr(root / unit, mode="r")
        _, d, Vt = np.linalg.svd(R, full_matrices=False)
        real = d > RANK * d.max(initial=0.0)
        self.back = Vt[real].T / d[real] / unit[:, None]
        self.A, self.t, self.c, self.Q = A, t, c, A @ self.back
        self.rank = int(np.count_nonzero(real))

    def residuals(self, x: Vector) -> Vector:
        return np.asarray(self.t - self.A @ x)

    def step(self, w: Vector, r: Vector) -> tuple[Vector, Vector]:
        """The change of x, and of predictions, that makes Σ cᵢwᵢ(rᵢ − Aᵢδ)² least."""
        root = np.sqrt(self.c * w)
        Q = self.Q * root[:, None]
        u = solve_regular(Q.T @ Q, Q.T @ (root * np.where(w > 0, r, 0.0)))
        return self.back @ u, self.Q @ u


def grams(W: Vector, Q: Vector) -> Vector:
    """Σ wᵢqᵢqᵢᵀ of every row of W, with a ridge that is rounding."""
    q = Q.shape[1]
    G = (W @ (Q[:, :, None] * Q[:, None, :]).reshape(len(Q), q * q)).reshape(-1, q, q)
    return np.asarray(G + RIDGE * np.trace(G, axis1=1, axis2=2)[:, None, None] * np.eye(q))


@final
@dataclass(frozen=True)
class SmoothFit:
    """The fit x, the weights w it has, and what they say.

    verdict: scale, cut-off, who is not flagged, and the share of bad rows. noise, bread: cov(x) is noise² (AᵀCWA)⁻¹,
    and AᵀCWA in units of Newton's matrix; see `noise_and_bread`. spared: rows that would be flagged, but that a
    skewed law explains. scatter: of a mean of several fits, how far these lie from it (fits, q), so that scatterᵀ
    scatter is what they add to the covariance of x. wrong: the probability of each row that it is wrong, where known.
    """

    x: Vector
    w: Vector
    verdict: Verdict
    noise: float
    bread: float
    spared: NDArray[np.bool_]
    scatter: Vector | None = None
    wrong: Vector | None = None


def chance(n: float, q: int, share: float) -> float:
    """The factor by which the scale of all n rows seldom exceeds that of the rows explained, in clean normal data, if a
    ``share`` of them is flagged then: the more are left out, the more easily. q: how many coefficients there are.

    >>> [round(chance(n, 3, share=0.1), 2) for n in (20, 50, 200, 2000)], round(chance(20, 3, share=0.3), 2)
    ([2.25, 1.5, 1.12, 1.01], 5.82)
    """
    return 1 + FEW / n + (MANY / max(n - 2 * q, 1) ** 2 if share > A_FIFTH else 0.0)


def mm_estimate(
    rows: WeightedRows, raw: tuple[Vector, Verdict], sharp: tuple[Vector, Verdict], trusted: bool = False
) -> SmoothFit | None:
    """The MM-estimate of rows, from a trimmed fit ``raw`` and from least squares on what that explains, ``sharp``.

    From the trimmed fit all rows are fitted with ψ; the scale is found again, since the one of half of the rows is
    vague; and rows are judged by both. In small samples that is the better start: which rows the trimmed fit does not
    explain is chance then. But rows at 3 to 6 σ hide behind a scale that they made. So where two groups, the rows
    explained and the others, are much likelier than one (`_evidence`), where the scale of all rows exceeds that of the
    rows explained by more than clean rows let expect (`chance`), or where the trimmed fit is ``trusted``, the start is
    the other; but a row that is then flagged on one side, where one skewed law explains all rows, is weighted instead
    (`looks_skewed`). None: there is nothing to fit smoothly, since residuals vanish or the rows that count do not
    determine x.

    x solves Σ cᵢ ψ(rᵢ/σ) aᵢ = 0 over the rows that are not flagged. Those that are have weight 0.
    """
    psi = Lqq(FIRM)
    x, verdict = raw
    every = np.ones(len(rows.t), dtype=bool)
    if min(verdict.scale, sharp[1].scale) <= TINY:
        return None
    for _ in range(2):
        x, _ = _solved(rows, x, verdict.scale, every, psi, ROUGH)
        verdict = judged(rows.residuals(x), rows.c, rows.rank, verdict.scale, every, psi)
    ratio, most = verdict.scale / sharp[1].scale, _chance_of(rows, verdict, sharp[1])
    told = _evidence(rows, (x, verdict), sharp) > APART + CHOSEN / float(rows.c.sum())
    firm = trusted or told or ratio > most
    if firm:
        x, verdict = sharp
    psi = Lqq(FIRM if firm else eased(ratio, most))
    settled = SETTLED if rows.A.size <= LARGE else SETTLED_LARGE
    for _ in range(ROUNDS):
        before = verdict.inliers
        x, _ = _solved(rows, x, verdict.scale, before, psi, max(settled, ROUGH**2))
        verdict = judged(rows.residuals(x), rows.c, rows.rank, verdict.scale, before, psi)
        if verdict.scale <= TINY:
            return None
        if np.array_equal(verdict.inliers, before):
            break
    flagged = ~verdict.inliers
    if firm and not trusted:
        verdict = _of_skewed(rows.residuals(x), rows.c, verdict, psi.end)
    psi = narrowed(rows.residuals(x), rows.c, rows.rank, verdict, psi, partial(_refitted, rows, x, verdict))
    verdict = replace(verdict, cutoff=min(verdict.cutoff, psi.end))
    x, w = _solved(rows, x, verdict.scale, verdict.inliers, psi, settled)
    if rows.c @ w <= rows.rank:
        return None
    noise, bread = noise_and_bread(rows.residuals(x), rows.c, rows.rank, w, verdict.scale, psi)
    return SmoothFit(x, w, verdict, noise, bread, flagged & verdict.inliers)


def _chance_of(rows: WeightedRows, every: Verdict, sharp: Verdict) -> float:
    """`chance`, the share being that of the rows that one of the two keeps: the others tell nothing of which of them is
    right."""
    n, kept = float(rows.c.sum()), every.inliers | sharp.inliers
    left = float(rows.c[kept].sum())
    share = float(rows.c[kept & ~sharp.inliers].sum()) / left
    return chance(n, rows.rank, 0.0) + chance(left, rows.rank, share) - chance(left, rows.rank, 0.0)


def _evidence(rows: WeightedRows, every: tuple[Vector, Verdict], sharp: tuple[Vector, Verdict]) -> float:
    """The logarithm of the likelihood of two groups, those that ``sharp`` keeps and the others, less that of one normal
    law around the fit to ``every`` row. Rows that both leave out tell nothing of which of them is right."""
    (x, verdict), (y, by_sharp) = every, sharp
    kept = verdict.inliers | by_sharp.inliers
    off, c = ~by_sharp.inliers[kept], rows.c[kept]
    if not off.any():
        return 0.0
    one, two = rows.residuals(x)[kept], rows.residuals(y)[kept]
    return groups(two, c, by_sharp.scale, off) - one_group(one, c, rows.rank)


def _of_skewed(r: Vector, c: Vector, verdict: Verdict, end: float) -> Verdict:
    """The verdict; or, where one skewed law explains all rows, that they are its tail up to the end of ψ. Of many rows
    the tail itself tells, see `judge_at`."""
    if len(r) > FEW_ROWS or not looks_skewed(r / verdict.scale, ~verdict.inliers):
        return verdict
    inliers = np.abs(r) <= end * verdict.scale
    return replace(verdict, inliers=inliers, cutoff=end, contamination=float(c[~inliers].sum() / c.sum()))


def _solved(
    rows: WeightedRows, x: Vector, scale: float, on: NDArray[np.bool_], psi: Lqq, settled: float
) -> tuple[Vector, Vector]:
    """Σ cᵢ ψ(rᵢ/σ) aᵢ = 0 over the rows ``on``, by least squares with renewed weights from x; and the weights."""
    r = rows.residuals(x)
    for _ in range(STEPS):
        w = np.where(on, psi.weight(r / scale), 0.0)
        dx, dz = rows.step(w, r)
        x, r = x + dx, r - dz
        if np.abs(dz).max(initial=0.0) <= settled * scale:
            break
    return x, w


def _refitted(rows: WeightedRows, x: Vector, verdict: Verdict, psi: Lqq) -> Vector:
    """The residuals of the fit with another ψ, roughly."""
    return rows.residuals(_solved(rows, x, verdict.scale, verdict.inliers, psi, ROUGH)[0])


def judged(r: Vector, c: Vector, rank: int, scale: float, on: NDArray[np.bool_], psi: Lqq) -> Verdict:
    """σ with Σ cᵢwᵢ(rᵢ²/σ² − κ) = 0 over the rows ``on``, less a degree of freedom for each coefficient; and what all
    rows look like in its units. r, c: residuals, and how often each counts; rank: how many coefficients there are."""
    for _ in range(STEPS):
        w = c * np.where(on, psi.weight(r / scale), 0.0)
        freedom = float(w.sum()) - rank
        if freedom <= 0:
            break
        before, scale = scale, max(TINY, sqrt(float(w @ np.where(on, r, 0.0) ** 2) / freedom / psi.consistency))
        if abs(scale - before) <= SETTLED * scale:
            break
    return judge_at(r, scale, c, tails=True, strict=psi.k > FIRM, most=psi.end)
