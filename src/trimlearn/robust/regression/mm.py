"""MM-estimation from a trimmed start: weights that fall smoothly with the residual, and reach 0.

V. J. Yohai (1987), High breakdown-point and high efficiency robust estimates for regression, Ann. Statist. 15.
M. Koller and W. A. Stahel (2011), Sharpening Wald-type inference in robust regression for small samples, CSDA 55.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from trimlearn.losses.newton_system import solve_regular
from trimlearn.robust.regression.groups import one_group, two_groups
from trimlearn.robust.regression.psi import FIRM, Lqq, eased, narrowed, spread
from trimlearn.robust.regression.skewness import looks_skewed
from trimlearn.robust.scale import TINY, judge_at
from trimlearn.robust.verdict import Verdict

__all__ = ["ROUGH", "SETTLED_LARGE", "SmoothFit", "WeightedRows", "chance", "judged", "mm_estimate"]

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


@final
@dataclass(frozen=True)
class SmoothFit:
    """The fit x, the weights w it has, and what they say.

    verdict: scale, cut-off, who is not flagged, and the share of bad rows. noise, bread: cov(x) is noise² (AᵀCWA)⁻¹,
    and AᵀCWA in units of Newton's matrix; see `spread`. spared: rows that would be flagged, but that a skewed law
    explains. scatter: of a mean of several fits, how far these lie from it (fits, q), so that scatterᵀ scatter is what
    they add to the covariance of x. wrong: the probability of each row that it is wrong, where that is known.
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
    noise, bread = spread(rows.residuals(x), rows.c, rows.rank, w, verdict.scale, psi)
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
    return two_groups(two, c, off, by_sharp.scale) - one_group(one, c, rows.rank)


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
