"""Which labels are wrong, by the averaged opinions of models that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import expit, logit

from trimlearn._utils.arrays import Array
from trimlearn.checks.findings import Flags, Floats
from trimlearn.robust.labels.noise import estimate_noise
from trimlearn.robust.labels.verdict import MATERIAL, LabelVerdict, label_verdict

__all__ = ["LabelJudgement", "judge_labels"]

LEAST = 1e-12  # of a probability, and of its distance to 1: their log-odds are finite
# Of labels that no model explains, those that are right all the same, of rows unlike their class: as with numbers.
RIGHT_ANYWAY = 0.07
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
    by how likely it is (Bayes' rule, both at even odds before). The level is only known to lie between the most likely
    one and the largest that agrees with the labels, so that the probabilities are the means of those for both: the
    first alone finds too few wrong labels, the second calls too many so (python -m benchmarks dirty).
    """
    z = np.asarray(np.mean(opinions, axis=0), dtype=np.float64)
    verdict = label_verdict([z], y, np.ones(len(y)))
    likely, largest = estimate_noise([z], y, largest=False), estimate_noise([z], y)
    gain = float(np.sum(likely.log_likelihood([z], y) - verdict.log_likelihood)) if verdict.clean else np.inf
    sure = 0.0 if verdict.chance else float(expit(gain - GAIN))
    wrong = np.mean([expit(noise.score([z], y)) for noise in (likely, largest)], axis=0)
    P = likely.classes([z], y) + largest.classes([z], y)
    off = np.where(np.eye(len(likely.T), dtype=bool), 0.0, sure * (likely.T + largest.T) / 2)
    T = off + np.diag(1 - off.sum(axis=1))
    level = sure * (likely.epsilon + largest.epsilon) / 2
    score = np.asarray(logit(np.clip(wrong, LEAST, 1 - LEAST)), dtype=np.float64)
    return LabelJudgement(score, sure * (1 - RIGHT_ANYWAY) * wrong, P.argmax(axis=1), level, T, _caveats(verdict))


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
