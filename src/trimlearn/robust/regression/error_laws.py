"""What the errors of a regression may be: laws of the right rows and of the wrong ones, in units of the scale σ.

A right error r follows f((r/σ)/side)/σ: a normal law or Student's, the two sides of which may differ in width. A wrong
one follows a law of no particular scale, ∝ 1/|r| beyond a few σ (Jeffreys' prior of a scale), or a group of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, gammaln

__all__ = ["LAWS", "NARROWEST", "ErrorLaws", "all_laws", "log_wild"]

Floats = NDArray[np.float64]

NORMAL = 1e8  # degrees of freedom that stand for infinitely many: its logarithms differ by 10⁻⁸ there
HEAVY = 4.0  # degrees of freedom of heavy tails, as Lange, Little and Taylor (1989) advise
# By what the wider side of a skewed law is wider than both on average, and the narrower one narrower. With the first
# alone, squared errors of slopes are 0.19 of least squares' under 200 exponential errors, with both 0.04 (python -m
# benchmarks.calibration averaging).
SKEWS = (2.0, 4.0)
TINY = 1e-6  # σ, below which the density of a wrong error is constant to twelve digits
# σ, between which the logarithm of a wrong error's scale is evenly spread: beyond, a row is wrong by any law. Up to
# 1,000, the four rows of stackloss would be kept; little else changes (python -m benchmarks.calibration averaging).
NARROWEST, WIDEST = 3.0, 100.0


@final
@dataclass(frozen=True)
class ErrorLaws:
    """B laws, an entry of each array for one: how heavy its tails are, the width of its upper side over that of both
    sides, whether wrong rows are a group of their own, and the logarithm of the prior probability of the law.

    >>> LAWS.log_right(np.zeros((12, 1)))[:2, 0].round(3)
    array([-0.919, -0.919])
    """

    freedom: Floats
    skew: Floats
    grouped: NDArray[np.bool_]
    log_prior: Floats

    def take(self, which: NDArray[np.intp]) -> ErrorLaws:
        return ErrorLaws(self.freedom[which], self.skew[which], self.grouped[which], self.log_prior[which])

    def log_right(self, t: Floats) -> Floats:
        """log f of the scores t (B, n) of right rows."""
        nu, k = self.freedom[:, None], self.skew[:, None]
        top = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * pi) + np.log(2 / (k + 1 / k))
        return np.asarray(top - (nu + 1) / 2 * np.log1p((t / self.side(t)) ** 2 / nu))

    def weight(self, t: Floats) -> Floats:
        """−f'(t)/(t f(t)): how much a right row of score t counts in a weighted least-squares fit."""
        nu, side = self.freedom[:, None], self.side(t)
        return np.asarray((nu + 1) / (nu + (t / side) ** 2) / side**2)

    @property
    def variance(self) -> Floats:
        """Of a fit by the law, in units of σ²/Σ weights: the inverse of Student's information, whose mean weight is
        1, (ν + 3)/(ν + 1)."""
        return (self.freedom + 3) / (self.freedom + 1)

    def side(self, t: Floats) -> Floats:
        """The width of the side on which the scores t (B, n) lie, in units of σ."""
        k = self.skew[:, None]
        return np.where(t > 0, k, 1 / k)


def log_wild(t: Floats) -> Floats:
    """The logarithm of the density of a wrong error: normal with a scale κ spread evenly in log κ,
    erf(|t|/√2κ₀)/(2|t| log(κ₁/κ₀)). From κ₁ on it is not cut, so that no row is impossible.

    >>> log_wild(np.array([0.0, 10.0, 1e6])).round(2)
    array([ -3.27,  -4.25, -15.76])
    """
    u = np.maximum(np.abs(t), TINY)
    return np.asarray(np.log(erf(u / (sqrt(2) * NARROWEST))) - np.log(2 * u) - log(log(WIDEST / NARROWEST)))


def all_laws(skews: tuple[float, ...] = SKEWS) -> ErrorLaws:
    """Normal, heavy and skewed errors, wrong rows as a group or not: the simplest law has two thirds of the prior."""
    skewed = [(HEAVY, k, 1 / (12 * len(skews))) for skew in skews for k in (skew, 1 / skew)]
    shapes = [(NORMAL, 1.0, 8 / 12), (HEAVY, 1.0, 2 / 12), *skewed]
    laws = [(nu, k, group, log(share / 2)) for nu, k, share in shapes for group in (False, True)]
    nu, k, grouped, prior = zip(*laws, strict=True)
    return ErrorLaws(np.array(nu), np.array(k), np.array(grouped), np.array(prior))


LAWS = all_laws()
