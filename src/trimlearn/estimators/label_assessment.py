"""What a verdict on labels says about each row, in the form that users ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trimlearn.inference.table import Findings, TopFeatures, classifier_p_values, label_kinds
from trimlearn.robust.labels.verdict import LabelVerdict


@dataclass(frozen=True)
class LabelAssessment:
    """One entry per row: the log-odds and the probability that its label is wrong, how probable a right label is to
    look as odd, the number of the label suggested, and the probability of that one."""

    score: np.ndarray
    probability: np.ndarray
    p_value: np.ndarray
    suggested: np.ndarray
    confidence: np.ndarray

    @classmethod
    def of(cls, verdict: LabelVerdict) -> Self:
        """Of every row of the verdict."""
        P, suggested = verdict.classes, verdict.suggested
        likely = np.exp(verdict.noise.log_probabilities(verdict.predictions))
        p_values = classifier_p_values(likely, verdict.labels)
        return cls(verdict.scores, verdict.probability, p_values, suggested, P[np.arange(len(P)), suggested])

    def findings(
        self,
        given: np.ndarray,
        classes: np.ndarray,
        off: np.ndarray,
        extreme: np.ndarray | None = None,
        top: TopFeatures | None = None,
    ) -> Findings:
        """For a table: ``given`` the numbers of the labels, ``off`` the rows that are flagged, ``extreme`` those with
        an entry of X that measures nothing."""
        moved = self.suggested != given
        columns: dict[str, Any] = {"given": classes[given], "suggested": classes[self.suggested]}
        kind = label_kinds(off, moved, extreme)
        return Findings(self.score, self.p_value, kind, confidence=self.confidence, top=top, **columns)
