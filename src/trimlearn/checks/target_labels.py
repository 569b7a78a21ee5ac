"""Which labels are wrong, by the averaged opinions of models that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import expit, logit, softmax
from scipy.stats import beta

from trimlearn._utils.arrays import Array
from trimlearn.checks.findings import DOUBTFUL, RIGHT_ANYWAY, Flags, Floats
from trimlearn.robust.labels.noise import SURE, LabelNoise, noise_levels
from trimlearn.robust.labels.verdict import MATERIAL, LabelVerdict, label_verdict

__all__ = ["LabelJudgement", "judge_labels", "level_weights"]

LEAST = 1e-12  # of a probability, and of its distance to 1: their log-odds are finite
FITTED = 5_000  # rows from which the noise is estimated, a limit on time: a share of 10 % is known to half a point
# The rest as measured by `python -m benchmarks.calibration levels`, on tables with 0 to 20 % of wrong labels.
# Before the labels are seen: the odds that all are right, and the beta law of the share of wrong ones, of mode 10 %.
CLEAN, PRIOR = 0.3, (2.0, 10.0)
# The same odds where classes are clear but for the labels that disagree, as `label_verdict` says. With 0.15 three wrong
# labels of 60 are missed between classes 9 σ apart, and 1 % of the right labels of TopGear's Fuel are flagged, not 4 %.
PROVEN = 0.05
PRICE = 0.5  # times log n: what an entry of a pattern costs (Schwarz 1978); with half of it, overlap counts as errors
# Of the log-odds: models have learnt part of the errors. Of 25 tables, real and made up, of 60 to 4,000 rows: at 4 % of
# wrong labels, of those given 0.27, 0.49, 0.70 and 0.88 a share of 0.17, 0.41, 0.69 and 0.88 is wrong; at 10 %, of
# 0.29, 0.49, 0.70 and 0.88 it is 0.22, 0.49, 0.75 and 0.93; at 25 % it is more than is said: of 0.28, 0.49 and 0.70 it
# is 0.44, 0.61 and 0.86. With 0.5, at 4 %, of 0.28, 0.50 and 0.68 it is 0.15, 0.37 and 0.56.
LEARNT = 0.4
NEGLIGIBLE = 1e-4  # a weight that moves no probability by more than this


@final
@dataclass(frozen=True)
class LabelJudgement:
    """One entry per row.

    Parameters
    ----------
    score, probability : ndarray
        Log-odds that the label is wrong, and its probability.
    suggested : ndarray of int
        The most likely class given label and features; of a doubted label, the most likely other one.
    contamination : float
        The share of wrong labels: the mean probability.
    noise_matrix : ndarray
        [k, j] = P(labelled j | of class k).
    caveats : tuple of str
        What the user must be told.
    """

    score: Floats
    probability: Floats
    suggested: Array
    contamination: float
    noise_matrix: Floats
    caveats: tuple[str, ...] = ()

    @property
    def flagged(self) -> Flags:
        """More likely wrong than right."""
        return np.asarray(self.probability > 0.5)


def judge_labels(opinions: list[Floats], y: Array) -> LabelJudgement:
    """Judge labels by log-probabilities (n, K) of several models.

    The opinions count alike, or each as far as it explains the labels. Few rows do not tell which is better: the first
    finds more where one model has learnt the errors, the second where one model knows more than the others. So the
    probabilities are the means of both.
    """
    tried = [_weigh(opinions, y)]
    if 1 < len(opinions) and len(y) <= SURE:
        tried.append(_weigh([np.asarray(np.mean(opinions, axis=0))], y))

    def mean(name: str) -> Floats:
        return np.asarray(sum(getattr(each, name) for each in tried) / len(tried), dtype=np.float64)

    score = _log_odds(mean("wrong")) + LEARNT
    likely = mean("probability")
    probability = (1 - RIGHT_ANYWAY) * np.where(likely > 0, expit(_log_odds(likely) + LEARNT), 0.0)
    level, T = float(probability.mean()), mean("T")
    caveats = _caveats(tried[0].verdict) if all(each.verdict.clean for each in tried) else ()
    return LabelJudgement(score, probability, _suggested(mean("classes"), y, probability), level, T, caveats)


def _log_odds(p: Floats) -> Floats:
    return np.asarray(logit(np.clip(p, LEAST, 1 - LEAST)), dtype=np.float64)


def _suggested(classes: Floats, y: Array, probability: Floats) -> Array:
    """The most likely class; of a label that is doubted, the most likely other one."""
    others = classes.copy()
    others[np.arange(len(y)), y] = -1.0
    return np.where(probability >= DOUBTFUL, others.argmax(axis=1), classes.argmax(axis=1))


@final
@dataclass(frozen=True)
class _Weighed:
    """Labels judged by some predictions, at all levels of noise that the labels allow.

    The level is not known, and sharper classes with more noise explain labels about as well as blurred ones with less.
    So each level counts for its posterior probability (Bayes' rule, with the prior of `PRIOR`), errors at random and
    errors of a pattern likewise, a pattern for less by what its entries cost (`PRICE`). With few rows that is the
    prior, with many what they say.
    """

    predictions: list[Floats]
    y: Array
    verdict: LabelVerdict
    levels: tuple[LabelNoise, ...]  # the first one without noise
    weights: Floats

    @property
    def sure(self) -> float:
        """The probability that any label is wrong; that all are right is less likely where classes are clear."""
        if self.verdict.chance:
            return 0.0
        less = 1.0 if self.verdict.clean else PROVEN * (1 - CLEAN) / (CLEAN * (1 - PROVEN))
        right = less * float(self.weights[0])
        return 1 - right / (right + float(self.weights[1:].sum())) if right > 0 else 1.0

    def _mean(self, values: list[Floats]) -> Floats:
        """Over the levels, if any label is wrong."""
        if self.weights[1:].sum() <= 0:
            return values[0]
        return np.asarray(np.average(values[1:], axis=0, weights=self.weights[1:]), dtype=np.float64)

    @cached_property
    def wrong(self) -> Floats:
        """P(wrong), if any label is."""
        return self._mean([np.asarray(expit(noise.score(self.predictions, self.y))) for noise in self.levels])

    @property
    def probability(self) -> Floats:
        return self.sure * self.wrong

    @property
    def classes(self) -> Floats:
        """P(class | features, label)."""
        return self._mean([noise.classes(self.predictions, self.y) for noise in self.levels])

    @property
    def T(self) -> Floats:
        """P(label | class)."""
        T = self._mean([noise.T for noise in self.levels])
        off = np.where(np.eye(len(T), dtype=bool), 0.0, self.sure * T)
        return np.asarray(off + np.diag(1 - off.sum(axis=1)))


def _weigh(predictions: list[Floats], y: Array) -> _Weighed:
    rows = np.arange(len(y))
    if len(y) > FITTED:
        rows = np.sort(np.random.default_rng(0).choice(len(y), FITTED, replace=False))
        if len(np.unique(y[rows])) < predictions[0].shape[1]:  # a class is rare
            rows = np.arange(len(y))
    some, labels = [P[rows] for P in predictions], y[rows]
    found = noise_levels(some, labels)
    weights = level_weights(found, len(rows))
    kept = np.flatnonzero((weights > NEGLIGIBLE) | (np.arange(len(weights)) == 0))
    levels = tuple(found[k][0] for k in kept)
    return _Weighed(predictions, y, label_verdict(some, labels, np.ones(len(rows))), levels, weights[kept])


def level_weights(found: list[tuple[LabelNoise, float, bool]], n: int) -> Floats:
    """The posterior probability of each level of `noise_levels`, of n rows; no noise is the first.

    >>> from trimlearn.robust.labels.noise import LabelNoise
    >>> levels = [LabelNoise(np.eye(2), np.ones(1), np.zeros(2), e) for e in (0.0, 0.1, 0.2)]
    >>> level_weights([(levels[0], -9.0, True), (levels[1], 0.0, True), (levels[2], -2.0, True)], 100).round(2)
    array([0.  , 0.91, 0.09])
    """
    K = len(found[0][0].T)
    entries = max(K * (K - 1) - 1, 1)
    logs = np.full(len(found), -np.inf)
    for random in (True, False):
        mine = [k for k, level in enumerate(found) if level[2] is random]
        if not mine:
            continue
        e = np.array([found[k][0].epsilon for k in mine])
        width = np.gradient(e) if len(e) > 1 else np.ones(1)
        price = 0.0 if random else PRICE * np.log(n) * entries
        for k, level, step in zip(mine, e, width, strict=True):
            if level > 0 and step > 0:
                logs[k] = found[k][1] - price + np.log((1 - CLEAN) / 2 * beta.pdf(level, *PRIOR) * step)
    logs[0] = found[0][1] + np.log(CLEAN)
    return np.asarray(softmax(logs), dtype=np.float64)


def _caveats(verdict: LabelVerdict) -> tuple[str, ...]:
    """What stays open."""
    if verdict.chance:
        return ("The other columns explain the labels no better than chance does: nobody can tell which are wrong.",)
    if verdict.undecided >= MATERIAL:
        return (
            f"Up to {verdict.undecided:.0%} of the labels may be wrong, but classes that overlap would explain them as "
            "well, so that the probabilities are low.",
        )
    return ()
