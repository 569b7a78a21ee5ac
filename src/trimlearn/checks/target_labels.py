"""Which labels are wrong, by the averaged opinions of models that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import expit, logit

from trimlearn._utils.arrays import Array
from trimlearn.checks.findings import DOUBTFUL, Flags, Floats
from trimlearn.robust.labels.noise import SURE, LabelNoise, estimate_noise
from trimlearn.robust.labels.verdict import MATERIAL, LabelVerdict, label_verdict

__all__ = ["LabelJudgement", "judge_labels"]

LEAST = 1e-12  # of a probability, and of its distance to 1: their log-odds are finite
# Of labels that no model explains, those that are right all the same, of rows unlike their class: as with numbers.
RIGHT_ANYWAY = 0.07
FITTED = 20_000  # rows from which the noise is estimated, a limit on time: a share of 10 % is known to 0.2 points
GAIN = 2.0  # of log-likelihood by which noise must pay for itself: a test at 5 % with one parameter (Wilks 1938)


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
        The share of wrong labels.
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

    score = np.asarray(logit(np.clip(mean("wrong"), LEAST, 1 - LEAST)), dtype=np.float64)
    probability, level, T = (1 - RIGHT_ANYWAY) * mean("probability"), float(mean("level")), mean("T")
    caveats = _caveats(tried[0].verdict) if all(each.verdict.clean for each in tried) else ()
    return LabelJudgement(score, probability, _suggested(mean("classes"), y, probability), level, T, caveats)


def _suggested(classes: Floats, y: Array, probability: Floats) -> Array:
    """The most likely class; of a label that is doubted, the most likely other one."""
    others = classes.copy()
    others[np.arange(len(y)), y] = -1.0
    return np.where(probability >= DOUBTFUL, others.argmax(axis=1), classes.argmax(axis=1))


@final
@dataclass(frozen=True)
class _Weighed:
    """Labels judged by some predictions, at two levels of noise.

    Whether any label is wrong is decided as in `trimlearn.label_errors`; where it stays open, probabilities are lower
    by how likely it is (Bayes' rule, both at even odds before). The level is only known to lie between the most likely
    one and the largest that agrees with the labels, so that the probabilities are the means of those for both: the
    first alone finds too few wrong labels, the second calls too many so. Chosen on the tables it was tried on.
    """

    predictions: list[Floats]
    y: Array
    rows: Array  # that the noise was estimated from
    verdict: LabelVerdict
    noises: tuple[LabelNoise, LabelNoise]

    @cached_property
    def log_likelihood(self) -> float:
        some = [P[self.rows] for P in self.predictions]
        return float(np.sum(self.noises[0].log_likelihood(some, self.y[self.rows])))

    @cached_property
    def sure(self) -> float:
        """The probability that any label is wrong."""
        if self.verdict.chance:
            return 0.0
        return (
            float(expit(self.log_likelihood - self.verdict.log_likelihood.sum() - GAIN)) if self.verdict.clean else 1.0
        )

    @cached_property
    def wrong(self) -> Floats:
        """P(wrong), if any label is."""
        return np.asarray(np.mean([expit(noise.score(self.predictions, self.y)) for noise in self.noises], axis=0))

    @property
    def probability(self) -> Floats:
        return self.sure * self.wrong

    @property
    def level(self) -> float:
        return self.sure * float(np.mean([noise.epsilon for noise in self.noises]))

    @property
    def classes(self) -> Floats:
        """P(class | features, label)."""
        return np.asarray(np.mean([noise.classes(self.predictions, self.y) for noise in self.noises], axis=0))

    @property
    def T(self) -> Floats:
        """P(label | class)."""
        T = np.asarray((self.noises[0].T + self.noises[1].T) / 2)
        off = np.where(np.eye(len(T), dtype=bool), 0.0, self.sure * T)
        return np.asarray(off + np.diag(1 - off.sum(axis=1)))


def _weigh(predictions: list[Floats], y: Array) -> _Weighed:
    rows = np.arange(len(y))
    if len(y) > FITTED:
        rows = np.sort(np.random.default_rng(0).choice(len(y), FITTED, replace=False))
        if len(np.unique(y[rows])) < predictions[0].shape[1]:  # a class is rare
            rows = np.arange(len(y))
    some, labels = [P[rows] for P in predictions], y[rows]
    noises = estimate_noise(some, labels, largest=False), estimate_noise(some, labels)
    return _Weighed(predictions, y, rows, label_verdict(some, labels, np.ones(len(rows))), noises)


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
