"""How labels are mistaken: a calibrated label-noise model around the predictions of several classifiers.

Predictions z⁽¹⁾ … z⁽ᵐ⁾ are log-probabilities of the classes, made by models for rows they were not fitted on. They are
calibrated, added, and confronted with the labels ỹ in the model

    P(ỹ = j | x) = Σₖ pₖ(x) T[k, j],      p = softmax(Σ βᵢz⁽ⁱ⁾ + b),

T[k, j] the share of rows of class k that are labelled j (Bootkrajang and Kabán 2012; Patrini et al. 2017). The share of
wrong labels is Σₖ πₖ(1 − T[k, k]), and Bayes' rule gives each row's probability of being one of them.
`trimlearn.robust.labels.noise_level` finds β, b and T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, to_numpy
from trimlearn._utils.residence import sent
from trimlearn.robust.labels.noise_em import Floats, Labels, log_sum, row_centred, softmax

Predictions = Sequence[Any]  # of arrays (n, K)

# Share of wrong labels that follow no pattern: what a score falls back on where T has no error to explain it. Ten times
# as many or as few change the verdict on 3 of 1,000 wrong labels (python -m benchmarks.calibration labels).
BACKGROUND = 1e-3


@dataclass(frozen=True)
class LabelNoise:
    """T[k, j] = P(labelled j | of class k), the calibration p = softmax(Σ βᵢz⁽ⁱ⁾ + b), and the share of wrong labels.

    >>> from scipy.special import expit
    >>> noise = LabelNoise(np.array([[0.8, 0.2], [0.0, 1.0]]), np.ones(1), np.zeros(2), epsilon=0.1)
    >>> z = np.array([[4.0, 0.0], [4.0, 0.0]])  # both look like class 0
    >>> expit(noise.score([z], np.array([0, 1]))).round(2)
    array([0.  , 0.92])
    """

    T: Floats
    temperatures: Floats  # β: below 1 where a prediction is too sure of itself
    bias: Floats
    epsilon: float
    floor: float = 0.0  # of a probability: n rows say nothing about less than 1/n, shared by K classes (Perks 1947)

    @property
    def bounded(self) -> Floats:
        """T, no error quite impossible."""
        return np.asarray((1 - BACKGROUND) * self.T + BACKGROUND / len(self.T))

    @property
    def as_it_is(self) -> LabelNoise:
        """The same for predictions of one model that is as sure of itself as it is."""
        return replace(self, temperatures=np.ones(1), bias=np.zeros(len(self.T)))

    def log_probabilities(self, predictions: Predictions) -> Floats:
        """log p, calibrated: of the classes before labels went wrong."""
        return to_numpy(self._log_p(predictions))

    def doubt(self, predictions: Predictions) -> Floats:
        """1 − max p: how often the class of such a row is not the most likely one."""
        return np.asarray(1 - np.exp(self.log_probabilities(predictions).max(axis=1)))

    def score(self, predictions: Predictions, labels: Labels) -> Floats:
        """log P(label wrong | x, label) − log P(label right | x, label): larger is worse, 0 is undecided."""
        right, others = self._joint(predictions, labels)
        return to_numpy(log_sum(others) - right)

    def log_likelihood(self, predictions: Predictions, labels: Labels) -> Floats:
        """log P(label | x) of every row."""
        right, others = self._joint(predictions, labels)
        return to_numpy(namespace(right).logaddexp(right, log_sum(others)))

    def classes(self, predictions: Predictions, labels: Labels) -> Floats:
        """P(class | x, label), (n, K): what the labels should have been."""
        right, joint = self._joint(predictions, labels)
        joint[index_like(np.arange(len(labels)), joint), index_like(labels, joint)] = right
        return to_numpy(softmax(joint))

    def suggest(self, predictions: Predictions, labels: Labels) -> Labels:
        """The label itself where it is more likely right than wrong, else the most likely of the others."""
        right, others = self._joint(predictions, labels)
        wrong = to_numpy(log_sum(others) > right)
        return np.where(wrong, to_numpy(namespace(others).argmax(others, axis=1)), labels)

    def _log_p(self, predictions: Predictions) -> Array:
        """`log_probabilities`, where a fit takes place."""
        there = [row_centred(sent(prediction)) for prediction in predictions]
        z: Any = sum(float(beta) * prediction for beta, prediction in zip(self.temperatures, there, strict=True))
        a = z + asarray_like(self.bias, z)
        log_p = a - log_sum(a)[:, None]
        least = asarray_like(np.log(max(self.floor, 1e-300)), a)
        return namespace(a).logaddexp(log_p + float(np.log1p(-self.floor * len(self.T))), least)

    def _joint(self, predictions: Predictions, labels: Labels) -> tuple[Array, Array]:
        """log P(class k, label | x): for the label's own class (n,), and for all others (n, K), it being −inf there."""
        log_p = self._log_p(predictions)
        rows, at = index_like(np.arange(len(labels)), log_p), index_like(labels, log_p)
        joint = log_p + namespace(log_p).take(asarray_like(np.log(self.bounded).T, log_p), at, axis=0)
        right = joint[rows, at] + 0.0  # a copy
        joint[rows, at] = -np.inf
        return right, joint


def two_columns(z: Any) -> Floats:
    """Predictions (n, K) as they are; those of a binary model, (n, 1), as the log-odds (0, z) of both classes."""
    z = np.asarray(z, dtype=np.float64)
    return np.column_stack([np.zeros(len(z)), z[:, 0]]) if z.shape[1] == 1 else z
