"""Which labels are wrong, by the averaged opinions of models that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import expit

from trimlearn._utils.arrays import Array
from trimlearn.checks.findings import Flags, Floats
from trimlearn.robust.labels.noise import LabelNoise, estimate_noise
from trimlearn.robust.labels.verdict import MATERIAL, LabelVerdict, label_verdict

__all__ = ["LabelJudgement", "judge_labels"]

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
        The most likely class given label and features.
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
    """Judge labels by the mean of log-probabilities (n, K).

    Whether any label is wrong is decided as in `trimlearn.label_errors`; where it stays open, probabilities are lower
    by how likely it is (Bayes' rule, both at even odds before). The level is the most likely one, not the largest that
    agrees: predictions averaged over models and folds have learnt little noise, and with the largest the probabilities
    are too high (python -m benchmarks dirty).
    """
    z = np.asarray(np.mean(opinions, axis=0), dtype=np.float64)
    verdict = label_verdict([z], y, np.ones(len(y)))
    noise: LabelNoise = estimate_noise([z], y, largest=False)
    score, P = noise.score([z], y), noise.classes([z], y)
    sure = 1.0
    if verdict.clean:
        gain = float(np.sum(noise.log_likelihood([z], y) - verdict.log_likelihood))
        sure = 0.0 if verdict.chance else float(expit(gain - GAIN))
    off = ~np.eye(len(noise.T), dtype=bool)
    T = np.where(off, sure * noise.T, 1 - sure * np.where(off, noise.T, 0).sum(axis=1, keepdims=True))
    return LabelJudgement(score, sure * expit(score), P.argmax(axis=1), sure * noise.epsilon, T, _caveats(verdict))


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
