"""ψ of an MM-estimate: its shape, how wide it is, and by how much a fit with it varies.

V. J. Yohai (1987), High breakdown-point and high efficiency robust estimates for regression, Ann. Statist. 15.
M. Koller and W. A. Stahel (2011), Sharpening Wald-type inference in robust regression for small samples, CSDA 55.
L. A. Jaeckel (1971), Some flexible estimates of location, Ann. Math. Statist. 42.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from trimlearn.robust.verdict import Verdict

__all__ = ["EASY", "FIRM", "Lqq", "centred", "eased", "narrowed", "spread"]

Vector = NDArray[np.float64]

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
STEPS = 100  # of a location with renewed weights, a limit on time
SETTLED = 1e-6  # σ by which it moves in the last one: no variance is told so precisely
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
        if abs(step) <= SETTLED * verdict.scale:
            break
    return r


def spread(r: Vector, c: Vector, rank: int, w: Vector, scale: float, psi: Lqq) -> tuple[float, float]:
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
