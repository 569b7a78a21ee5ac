"""Which labels are wrong, by the averaged opinions of models that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import comb, expit, logit, softmax
from scipy.stats import beta

from trimlearn._utils.arrays import Array, Floats
from trimlearn.checks.findings import DOUBTFUL, RIGHT_ANYWAY
from trimlearn.checks.target_task import TargetJudgement
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.noise_level import SURE, NoiseLevel, noise_levels
from trimlearn.robust.labels.proof import allowed_errors
from trimlearn.robust.labels.verdict import MATERIAL, LabelVerdict, label_verdict

LEAST = 1e-12  # of a probability, and of its distance to 1: their log-odds are finite
FITTED = 5_000  # rows from which the noise is estimated, a limit on time: a share of 10 % is known to half a point
# The rest as measured by `python -m benchmarks.calibration levels`, on tables with 0 to 20 % of wrong labels.
# Before the labels are seen: the odds that all are right, and the beta law of the share of wrong ones, of mode 10 %.
CLEAN, PRIOR = 0.65, (2.0, 10.0)
# The same odds where classes are clear but for the labels that disagree, as `label_verdict` says. With 0.2, of 4 % that
# are wrong between clear classes, fewer are found.
PROVEN = 0.05
# And the mean of the exponential law of how often a class is not the most likely one at its row: classes that people
# tell apart are mostly clear. Without it, and with CLEAN = 0.3, of the wrong labels of 14 tables with 25 % of them 48 %
# are found, with it 56 %; with 0.05 and CLEAN = 0.8 58 %, but at 4 % of those given 0.28 only 0.12 are wrong.
DOUBT = 0.07
# Times log n: what a free number of a pattern costs (Schwarz 1978), beside which entries it has of all there are
# (Rissanen 1978). Half of it takes overlap for errors; priced as if all entries were free, a pattern was never found.
PRICE = 0.5
# Of the log-odds, as a whole and times the share of wrong labels: models have learnt part of the errors, more where
# there are more. Of 14 tables, real and made up, of 150 to 900 rows (said, wrong): at 4 % .28 .17, .48 .40, .70 .89; at
# 10 % .28 .27, .49 .53, .71 .79; at 25 % .29 .33, .50 .70, .70 .88. With 0.4 and 0: .29 .37, .49 .75, .70 .90 at 25 %;
# with 0.1 and 4 twice as many right labels of tables of 100 rows are flagged.
LEARNT = (0.25, 1.75)
NEGLIGIBLE = 1e-4  # a weight that moves no probability by more than this


def judge_target_labels(opinions: list[Floats], y: Array) -> TargetJudgement:
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

    likely = mean("probability")
    learnt = LEARNT[0] + LEARNT[1] * float(likely.mean())
    score = _log_odds(mean("wrong")) + learnt
    probability = (1 - RIGHT_ANYWAY) * np.where(likely > 0, expit(_log_odds(likely) + learnt), 0.0)
    level, T = float(probability.mean()), mean("T")
    open_ = all(each.verdict.clean or each.verdict.undecided >= MATERIAL for each in tried)
    caveats = _caveats(tried[0].verdict) if open_ else ()
    return TargetJudgement(score, probability, level, _suggested(mean("classes"), y, probability), T, caveats)


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
    verdict = label_verdict(some, labels, np.ones(len(rows)))
    found = noise_levels(some, labels, None if verdict.overlap is None else allowed_errors(verdict.overlap))
    weights = level_weights(found, len(rows))
    kept = np.flatnonzero((weights > NEGLIGIBLE) | (np.arange(len(weights)) == 0))
    levels = tuple(found[k].noise for k in kept)
    return _Weighed(predictions, y, verdict, levels, weights[kept])


def level_weights(found: list[NoiseLevel], n: int) -> Floats:
    """The posterior probability of each level of `noise_levels`, of n rows; no noise is the first.

    >>> from trimlearn.robust.labels.noise import LabelNoise
    >>> noises = [LabelNoise(np.eye(2), np.ones(1), np.zeros(2), e) for e in (0.0, 0.1, 0.2)]
    >>> found = [NoiseLevel(noise, log, 0.1) for noise, log in zip(noises, (-9.0, 0.0, -2.0), strict=True)]
    >>> level_weights(found, 100).round(2)
    array([0.  , 0.91, 0.09])
    """
    logs = np.full(len(found), -np.inf)
    for random in (True, False):
        mine = [k for k, level in enumerate(found) if level.at_random is random]
        e = np.array([found[k].noise.epsilon for k in mine])
        width = np.gradient(e) if len(e) > 1 else np.ones(len(e))
        for k, level, step in zip(mine, e, width, strict=True):
            if level > 0 and step > 0:
                logs[k] = np.log((1 - CLEAN) / 2 * beta.pdf(level, *PRIOR) * step)
    logs[0] = np.log(CLEAN)
    logs += [level.log_posterior - level.doubt / DOUBT - _price(level, n) for level in found]
    return np.asarray(softmax(logs), dtype=np.float64)


def _price(level: NoiseLevel, n: int) -> float:
    """What the freedom of a pattern costs: its size, and which entries of T it has among all that there are."""
    if level.at_random:
        return 0.0
    K = len(level.noise.T)
    return float(PRICE * np.log(n) * max(level.rates + level.entries - 1, 1) + np.log(comb(K * (K - 1), level.entries)))


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
