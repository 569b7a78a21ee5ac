"""Which numbers are wrong: two groups of residuals, from models that have not seen their rows.

A right number y differs from its prediction by an error whose size may depend on the prediction and the other
columns. In units of that size errors follow a Student law whose degrees of freedom and two scales, above and below,
are told by the data: heavy and lopsided tails are no contamination. A wrong number has nothing to do with its row: it
follows a wide law around the median of all numbers, less what is near the prediction, since a number that might as
well be right is not called wrong. Of these,

    Σ log [(1 − π) f(rᵢ) + π g(yᵢ)]

is maximised over π, the share of wrong numbers, and the scales of f. P(wrong) = π g/(π g + (1 − π) f) is Bayes' rule,
and so is the mean over what the data leave open: the degrees of freedom, and whether any number is wrong (`GAIN`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, gammaln, softmax

from trimlearn._utils.arrays import Floats
from trimlearn.checks.error_sizes import TINY, error_sizes, telling_rows
from trimlearn.checks.findings import RIGHT_ANYWAY
from trimlearn.checks.spread import NORMAL_MAD, median_and_deviation
from trimlearn.checks.target_task import TargetJudgement
from trimlearn.robust.scale import rounding_floor

# Degrees of freedom that are tried, above and below: from tails without variance to normal ones, or one long tail and
# one short, which must pay for itself as well. With tails of 1.5 one number a thousand times too far out was right.
EVEN, LOPSIDED = (2.5, 4.0, 7.0, 15.0, 60.0), ((2.5, 60.0), (60.0, 2.5))
DEGREES = (*((degrees, degrees) for degrees in EVEN), *LOPSIDED)
UNKNOWN = (2.5, 2.5)  # the degrees where most numbers are the same: tails without variance, as no law is known
GAIN = 2.0  # of log-likelihood by which wrong numbers must pay for themselves: a test at 5 % with one parameter (Wilks)
# How many σ of errors from its prediction a wrong number is as good as right: all but 3 of 1,000 right ones are nearer
NEAR = 3.0
# Where predictions err by the first share of what a constant does, or less, wrong numbers stand out; from the second on
# they hardly do, and tails would be taken for them: on numbers that nothing predicts, a tenth was flagged without this.
TELLS, SEEN = (0.5, 0.75), 0.5
PAIRS = 2_000  # of a prediction and another row's number, from which the share of such numbers is known to a point
WIDE = (1.0, 1.2)  # degrees of freedom and robust σ of a wrong number's law: tails beyond those of any right one
ALIKE = 0.3  # standard deviation of the log of the ratio of the scales above and below, a prior: mild skewness
FIRST = -3.0  # log-odds of π at the start: 5 %
BOUNDS = (-8.0, 0.0)  # of these log-odds: from 3 in 10,000 to a half, beyond which right and wrong change places
FITTED = 5_000  # rows to which the law is fitted, a limit on time: a share of 10 % is known to half a point from them
# GAIN where most numbers are one and the same, and no law is known of the others: odds of 1 in 20,000
ANYWHERE = 10.0
FEW = 10  # rows that deviate: of fewer no law of errors is known
EXACT = "Nearly all targets are exactly what the other columns say: which of the few others are wrong, nobody can tell."
ALL_THE_SAME = "Nearly all targets are the same number: which of the few others are wrong, nobody can tell."
USELESS = 0.9  # of the error of a constant: a model that does no better has learnt nothing that helps
AS_WELL = 1.25  # times the error of all together, up to which a line predicts as well (a choice)


def expected_by_all(y: Floats, opinions: list[Floats]) -> Floats:
    """What the models expect together: the median of their predictions.

    The second opinion is the line's. Trees cannot go on beyond the rows they have seen, a line can: where it predicts
    as well as all together, each number has the nearer one of the two, for what one of them explains is not wrong.

    >>> expected_by_all(np.array([0.0, 9.0]), [np.array([0.1, 5.0]), np.array([0.1, 9.0]), np.array([0.0, 5.0])])
    array([0.1, 9. ])
    """
    middle = np.median(opinions, axis=0)
    if len(opinions) < 2:
        return np.asarray(middle)
    line = opinions[1]
    if np.median(np.abs(y - line)) > AS_WELL * np.median(np.abs(y - middle)):
        return np.asarray(middle)
    return np.where(np.abs(y - line) < np.abs(y - middle), line, middle)


def judge_target_numbers(
    y: Floats, predicted: Floats, seed: int = 0, X: Floats | None = None, rounding: Floats | float = 0.0
) -> TargetJudgement:
    """Judge numbers by predictions of models that have not seen them. X: features that may tell the size of errors.

    rounding: half of what lies between two numbers that may be written. A grade is a whole number, so that the next one
    is as right where models say 2.5, however often they are right to a hair elsewhere.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=200)
    >>> y = truth + 0.2 * rng.standard_normal(200)
    >>> y[:20] += 5
    >>> found = judge_target_numbers(y, truth)
    >>> round(found.contamination, 1), bool(found.flagged[:20].all()), int(found.flagged[20:].sum()) <= 2
    (0.1, True, True)
    """
    size = error_sizes(predicted, y - predicted, rounding_floor(y), X, seed)
    telling = telling_rows(y - predicted, rounding_floor(y))
    rounding = np.where(telling.all(), rounding, 0.0)  # where models know most numbers exactly, the next one is wrong
    size = np.maximum(size, rounding)
    r = (y - predicted) / size
    narrowest = NORMAL_MAD * float(np.median(rounding / size))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(telling))[:FITTED]
    if len(rows) < FEW:
        said = ALL_THE_SAME if np.median(np.abs(y - np.median(y))) == 0 else EXACT
        return TargetJudgement(np.abs(r), np.zeros(len(y)), 0.0, predicted, caveats=(said,))
    there, here = rng.choice(rows, PAIRS), rng.integers(len(y), size=PAIRS)
    useless = float(np.median(np.abs(y - predicted)) / max(np.median(np.abs(y - np.median(y))), TINY))
    least = SEEN * float(np.interp(useless, TELLS, (0.0, 1.0)))
    seen = max(least, TINY, float(_visible((y[there] - predicted[here]) / size[here]).mean()))
    with np.errstate(divide="ignore"):  # a residual of 0
        wrong = _wide(y) + np.log(size) + np.log(_visible(r)) - np.log(seen)  # the density in units of r
    if telling.all():
        groups = _two_groups(r[rows], wrong[rows], DEGREES, GAIN, narrowest)
    else:  # those that are not the same may lie anywhere, and all on one side
        groups = _two_groups(r[rows] * rng.choice([-1.0, 1.0], len(rows)), wrong[rows], (UNKNOWN,), ANYWHERE)
    probability = np.sum([group.weight * group.probability(r, wrong) for group in groups], axis=0)
    share = float(telling.mean() * sum(group.weight * expit(group.log_odds) for group in groups))
    likely = max(groups, key=lambda group: group.weight)
    score = np.abs(r) / likely.law.typical
    probability = (1 - RIGHT_ANYWAY) * np.clip(probability, 0.0, 1.0)  # weights sum to 1 but for rounding
    return TargetJudgement(score, probability, share, predicted, caveats=_caveats(y, predicted))


def _caveats(y: Floats, predicted: Floats) -> tuple[str, ...]:
    """Where nothing was learnt."""
    if np.median(np.abs(y - predicted)) < USELESS * np.median(np.abs(y - np.median(y))):
        return ()
    return (
        "The other columns tell next to nothing about the target: only wrong values far from all others are found.",
    )


def _visible(r: Floats) -> Floats:
    """How much of wrong numbers at these residuals is told from right ones."""
    return np.asarray(-np.expm1(-0.5 * (r / (NORMAL_MAD * NEAR)) ** 2))


@final
@dataclass(frozen=True)
class _Law:
    """Student's law with a scale and degrees of freedom above 0, and others below."""

    above: float
    below: float
    degrees: tuple[float, float]

    @property
    def typical(self) -> float:
        return float(np.sqrt(self.above * self.below))

    def log_density(self, r: Floats) -> Floats:
        peaks = [float(_student(np.zeros(1), degrees)[0]) for degrees in self.degrees]
        area = (self.above / np.exp(peaks[0]) + self.below / np.exp(peaks[1])) / 2  # of both halves, of height 1
        up = _student(r / self.above, self.degrees[0]) - peaks[0]
        down = _student(r / self.below, self.degrees[1]) - peaks[1]
        return np.asarray(np.where(r > 0, up, down) - np.log(area))


@final
@dataclass(frozen=True)
class _Groups:
    """Right and wrong numbers, and the weight of these two among others: their posterior probability."""

    law: _Law
    log_odds: float  # of being wrong; −inf where nobody is
    weight: float

    def probability(self, r: Floats, wrong: Floats) -> Floats:
        return np.asarray(expit(self.log_odds + wrong - self.law.log_density(r)))


def _two_groups(
    r: Floats, wrong: Floats, laws: tuple[tuple[float, float], ...], gain: float, narrowest: float = 0.0
) -> list[_Groups]:
    """For each number of degrees of freedom one with wrong numbers and one without; no scale below ``narrowest``."""
    least = float(np.log(max(narrowest, TINY)))
    start = max(float(np.log(max(NORMAL_MAD * np.median(np.abs(r)), TINY))), least)
    near, tried = [(max(start - 2, least), start + 2)] * 2, []
    for degrees in laws:
        for bounds, first, price in ((near, [start, start], 0.0), ([*near, BOUNDS], [start, start, FIRST], gain)):
            found = minimize(_cost, first, (r, wrong, degrees), method="L-BFGS-B", bounds=bounds)
            law = _Law(float(np.exp(found.x[0])), float(np.exp(found.x[1])), degrees)
            likelihood = -float(found.fun) - price - (GAIN if degrees[0] != degrees[1] else 0.0)
            tried.append((law, float(found.x[2]) if price else -np.inf, likelihood))
    weights = softmax([likelihood for _, _, likelihood in tried])
    return [_Groups(law, odds, float(weight)) for (law, odds, _), weight in zip(tried, weights, strict=True)]


def _cost(parameters: Floats, r: Floats, wrong: Floats, degrees: tuple[float, float]) -> float:
    above, below = parameters[:2]
    prior = ((above - below) / ALIKE) ** 2 / 2
    right = _Law(float(np.exp(above)), float(np.exp(below)), degrees).log_density(r)
    if len(parameters) == 2:
        return float(prior - right.sum())
    odds = parameters[2]
    return float(prior - (np.logaddexp(right, odds + wrong) - np.logaddexp(0.0, odds)).sum())


def _student(t: Floats, degrees: float) -> Floats:
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - np.log(degrees * np.pi) / 2
    return np.asarray(constant - (degrees + 1) / 2 * np.log1p(t * t / degrees))


def _wide(y: Floats) -> Floats:
    """The log-density of a wrong number."""
    degrees, width = WIDE
    centre, spread = median_and_deviation(y)
    return np.asarray(_student((y - centre) / (width * spread), degrees) - np.log(width * spread))
