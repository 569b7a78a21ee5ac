"""Fits to rows of which some are wrong: modes of a likelihood, found by EM, and the evidence for each.

    Π [(1 − πᵢ) f(rᵢ/σ)/σ + πᵢ g(rᵢ)]^cᵢ,      r = t − Ax,

of right rows with a law f and wrong ones with a law g, see below. The evidence is Laplace's approximation (Tierney
and Kadane 1986, JASA 81) of the integral over x, log σ and the share π of wrong rows, flat in x and log σ.

What the errors of a regression may be: laws of the right rows and of the wrong ones, in units of the scale σ.

A right error r follows f((r/σ)/side)/σ: a normal law or Student's, the two sides of which may differ in width. A wrong
one follows a law of no particular scale, ∝ 1/|r| beyond a few σ (Jeffreys' prior of a scale), or a group of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, erf, gammaln

from trimlearn.robust.regression.features import FeatureOdds
from trimlearn.robust.regression.mm import WeightedRows, grams

NORMAL = 1e8  # degrees of freedom that stand for infinitely many: its logarithms differ by 10⁻⁸ there
HEAVY = 4.0  # degrees of freedom of heavy tails, as Lange, Little and Taylor (1989) advise
# By what the wider side of a skewed law is wider than both on average, and the narrower one narrower. With the first
# alone, 9 % of 200 exponential errors pass for wrong rows; with both 1 % (python -m benchmarks.calibration averaging).
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


def _all_laws() -> ErrorLaws:
    """Normal, heavy and skewed errors, wrong rows as a group or not: the simplest law has two thirds of the prior."""
    skewed = [(HEAVY, k, 1 / 24) for skew in SKEWS for k in (skew, 1 / skew)]
    shapes = [(NORMAL, 1.0, 16 / 24), (HEAVY, 1.0, 4 / 24), *skewed]
    laws = [(nu, k, group, log(share / 2)) for nu, k, share in shapes for group in (False, True)]
    nu, k, grouped, prior = zip(*laws, strict=True)
    return ErrorLaws(np.array(nu), np.array(k), np.array(grouped), np.array(prior))


LAWS = _all_laws()


Floats = NDArray[np.float64]

# Beta prior of the share of wrong rows, whose mean is 1/10: routine data hold 1 to 10 % of gross errors (Hampel,
# Ronchetti, Rousseeuw and Stahel 1986, section 1.2c). Others: python -m benchmarks.calibration averaging.
WRONG, RIGHT = 1.0, 9.0
MOST = 0.5  # share of wrong rows: of more, nobody could tell which they are
USUAL = 2.5  # σ beyond which a row is taken for wrong at first, as in `judge`
# σ over which the mean, and times over which the scale of a group of wrong rows is spread: one farther out is wrong for
# certain.
REACH = 30.0
# Where a group is neither NARROWEST times as wide as right rows on that side, nor APART times the widths of both away
# from them, it is taken for one that is: right rows are as near, of uniform errors for example (customary: two groups
# are told from each other where what lies within 2 σ of each does not overlap).
APART = 2.0
THINNEST = 0.5  # σ of that group, at least, in that of the others: equal wrong rows would have none
HALF = 0.6744897501960817  # median of a half-normal law
STEPS, EARLY = 200, 12  # of EM, a limit on time; and those after which fits that have met are taken for one
# The logarithm of the evidence by which those of them that are given up then lie behind: of 48 samples of 25 to 2,000
# rows, clean or bad, no mode that counted in the end was more than 21 behind (python -m benchmarks.calibration averaging).
BEHIND = 40.0
SETTLED, SAME = 1e-5, 1e-2  # σ by which the last step moves a fit; and by which fits differ that are one
LEAST, FEWEST = 1e-4, 1e-12  # share, and number, of wrong rows: so that logarithms and means are finite


@final
@dataclass(frozen=True)
class Modes:
    """B modes, one a law and a start: coefficients u of orthonormal columns, σ, the share of wrong rows, mean and scale
    of a group of these, how likely each row is right (B, n), the weight with which it counts, and the odds by its
    features."""

    laws: ErrorLaws
    u: Floats
    scale: Floats
    share: Floats
    mean: Floats
    spread: Floats
    right: Floats
    weight: Floats
    odds: Floats
    log_likelihood: Floats

    def take(self, which: NDArray[np.intp]) -> Modes:
        return Modes(self.laws.take(which), *(getattr(self, name)[which] for name in ARRAYS))


ARRAYS = ("u", "scale", "share", "mean", "spread", "right", "weight", "odds", "log_likelihood")


@final
@dataclass(frozen=True)
class Likelihood:
    """The likelihood of the rows, the columns of which are orthonormal. t: targets, less a fit nearby, so that no
    digits are lost; floor: the least σ."""

    rows: WeightedRows
    t: Floats
    odds: FeatureOdds
    floor: float

    def begun(self, residuals: Floats) -> Modes:
        """From the residuals (B, n) of each start, with every law."""
        which = np.repeat(np.arange(len(LAWS.skew)), len(residuals))
        r = np.tile(residuals, (len(LAWS.skew), 1))
        scale = np.maximum(_median(np.abs(r), self.rows.c) / HALF, self.floor)
        wrong = np.abs(r) > USUAL * scale[:, None]
        off = wrong * self.rows.c
        count = np.maximum(off.sum(axis=1), 1.0)
        mean = np.sum(off * r, axis=1) / count
        spread = np.sqrt(np.sum(off * (r - mean[:, None]) ** 2, axis=1) / count)
        share = np.full(len(r), WRONG / (WRONG + RIGHT))
        nothing = np.zeros((len(r), self.rows.rank))
        spread = np.maximum(spread, THINNEST * scale)
        odds = self.odds.beside(~wrong * self.rows.c)
        begun = Modes(LAWS.take(which), nothing, scale, share, mean, spread, r, r, odds, scale)
        return self._expected(begun, r)

    def settled(self, modes: Modes) -> Modes:
        """Where EM ends, each end once."""
        for k in range(STEPS):
            before, modes = modes.u, self._expected(*self._fitted(modes))
            if k == EARLY:
                modes = self._in_the_running(_distinct(modes))
            elif np.abs(modes.u - before).max() <= SETTLED * modes.scale.min():
                break
        return _distinct(modes)

    def _in_the_running(self, modes: Modes) -> Modes:
        """Those that are not far behind, and the odds of features by the rows that each calls right."""
        modes = replace(modes, odds=self.odds.beside(modes.right * self.rows.c))
        found = self.evidence(modes)
        return modes.take(np.flatnonzero(found >= found.max() - BEHIND))

    def _fitted(self, modes: Modes) -> tuple[Modes, Floats]:
        """The coefficients, scales and shares that are most likely, if rows are right as they are said to be."""
        c, Q, t = self.rows.c, self.rows.Q, self.t
        W = modes.weight * c
        u = np.linalg.solve(grams(W, Q), ((W * t) @ Q)[:, :, None])[:, :, 0]
        r = t - u @ Q.T
        n, right = float(c.sum()), modes.right @ c
        freedom = np.maximum(right - self.rows.rank, 1.0)
        scale = np.maximum(np.sqrt(np.sum(W * r**2, axis=1) / freedom), self.floor)
        share = np.clip((n - right + WRONG - 1) / (n + WRONG + RIGHT - 2), LEAST, MOST)
        wrong = (1 - modes.right) * c
        count = np.maximum(wrong.sum(axis=1), FEWEST)
        mean = np.sum(wrong * r, axis=1) / count
        spread = np.sqrt(np.sum(wrong * (r - mean[:, None]) ** 2, axis=1) / count)
        spread = np.maximum(spread, THINNEST * scale)
        last = modes.right, modes.weight, modes.odds, modes.log_likelihood
        return Modes(modes.laws, u, scale, share, mean, spread, *last), r

    def _expected(self, modes: Modes, r: Floats) -> Modes:
        """How likely each row is right, given residuals r."""
        scale = modes.scale[:, None]
        odds = np.log(modes.share / (1 - modes.share))[:, None] + modes.odds
        group = _log_normal((r - modes.mean[:, None]) / modes.spread[:, None]) - np.log(modes.spread)[:, None]
        wrong = np.where(modes.laws.grouped[:, None], group, log_wild(r / scale) - np.log(scale))
        right = modes.laws.log_right(r / scale) - np.log(scale) - np.logaddexp(0.0, odds)
        both = np.logaddexp(right, wrong - np.logaddexp(0.0, -odds))
        probability = np.exp(right - both)
        weight = probability * modes.laws.weight(r / scale)
        state = modes.u, modes.scale, modes.share, modes.mean, modes.spread
        return Modes(modes.laws, *state, probability, weight, modes.odds, both @ self.rows.c)

    def evidence(self, modes: Modes) -> Floats:
        """The logarithm of the integral of likelihood and prior around each mode. That of the share is exact, were it
        certain which rows are wrong; no direction of x is known less than by one row (Kass and Wasserman 1995); right
        rows are the majority, wherever there is one."""
        c, q, n = self.rows.c, self.rows.rank, float(self.rows.c.sum())
        right = modes.right @ c
        G = grams(modes.weight * c, self.rows.Q) + np.eye(q) / n
        x = q * np.log(modes.scale) - 0.5 * np.linalg.slogdet(G)[1] + q / 2 * log(2 * pi)
        sigma = 0.5 * np.log(pi / np.maximum(right - q, 1.0))
        bad = n - right
        known = bad * np.log(modes.share) + right * np.log1p(-modes.share)
        share = betaln(WRONG + bad, RIGHT + right) - betaln(WRONG, RIGHT) - known
        wrong = np.maximum(bad, 0.5)
        mean = np.log(modes.spread / (REACH * modes.scale)) + 0.5 * np.log(2 * pi / wrong)
        spread = 0.5 * np.log(pi / wrong) - log(log(REACH))
        width = modes.scale * modes.laws.side(modes.mean[:, None])[:, 0]
        apart = np.maximum(modes.spread / (NARROWEST * width), np.abs(modes.mean) / (APART * (width + modes.spread)))
        near = bad * np.log(np.minimum(apart, 1.0))
        group = np.where(modes.laws.grouped, mean + spread + near, 0.0)
        found = modes.log_likelihood + modes.laws.log_prior + x + sigma + share + group
        return np.where(right >= n * MOST, found, -np.inf) if np.any(right >= n * MOST) else found


def _distinct(modes: Modes) -> Modes:
    """Each mode once: of those of one law whose coefficients and scales agree, the likeliest."""
    modes = modes.take(np.argsort(-modes.log_likelihood, kind="stable"))
    law = np.column_stack([modes.laws.freedom, modes.laws.skew, modes.laws.grouped])
    where = np.column_stack([modes.u, modes.scale])
    apart = np.abs(where[:, None] - where).max(axis=2) > SAME * np.minimum(modes.scale[:, None], modes.scale)
    again = ~apart & np.all(law[:, None] == law, axis=2)
    return modes.take(np.flatnonzero(~np.tril(again, -1).any(axis=1)))


def _median(a: Floats, c: Floats) -> Floats:
    """Of each row of a, whose columns count c times each."""
    order = np.argsort(a, axis=1)
    reached = np.cumsum(c[order], axis=1) >= c.sum() / 2
    return np.asarray(np.take_along_axis(a, order, axis=1)[np.arange(len(a)), reached.argmax(axis=1)])


def _log_normal(t: Floats) -> Floats:
    return np.asarray(-0.5 * t**2 - 0.5 * log(2 * pi))
