"""Fits to rows of which some are wrong: modes of a likelihood, found by EM, and the evidence for each.

    Π [(1 − πᵢ) f(rᵢ/σ)/σ + πᵢ g(rᵢ)]^cᵢ,      r = t − Ax,

of right rows with a law f and wrong ones with a law g, see `error_laws`. The evidence is Laplace's approximation
(Tierney and Kadane 1986, JASA 81) of the integral over x, log σ and the share π of wrong rows, flat in x and log σ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from trimlearn.robust.regression.error_laws import LAWS, NARROWEST, ErrorLaws, log_wild
from trimlearn.robust.regression.features import FeatureOdds
from trimlearn.robust.regression.mm import WeightedRows, grams

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
# from them, it is taken for one that is: what lies within 2 σ of each must not overlap. With 0.1, 10 % of 200
# uniform errors pass for a group, instead of none (python -m benchmarks.calibration averaging).
APART = 2.0
THINNEST = 0.5  # σ of that group, at least, in that of the others: equal wrong rows would have none
HALF = 0.6744897501960817  # median of a half-normal law
STEPS, EARLY = 200, 12  # of EM, a limit on time; and those after which fits that have met are taken for one
# The logarithm of the evidence by which those of them that are given up then lie behind. Of 48 samples of 25 to 2,000
# rows no mode that counted in the end was more than 21 behind; with 1,000 no error is less, and 2,000 rows take five
# times as long (python -m benchmarks.calibration averaging).
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

    def begun(self, residuals: Floats, laws: ErrorLaws = LAWS) -> Modes:
        """From the residuals (B, n) of each start, with every one of the laws."""
        which = np.repeat(np.arange(len(laws.skew)), len(residuals))
        r = np.tile(residuals, (len(laws.skew), 1))
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
        begun = Modes(laws.take(which), nothing, scale, share, mean, spread, r, r, odds, scale)
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
        t, wrong, group = r / scale, np.empty_like(r), modes.laws.grouped
        mean, spread = modes.mean[group, None], modes.spread[group, None]
        wrong[group] = _log_normal((r[group] - mean) / spread) - np.log(spread)
        wrong[~group] = log_wild(t[~group]) - np.log(scale[~group])
        right = modes.laws.log_right(t) - np.log(scale) - np.logaddexp(0.0, odds)
        both = np.logaddexp(right, wrong - np.logaddexp(0.0, -odds))
        probability = np.exp(right - both)
        weight = probability * modes.laws.weight(t)
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
