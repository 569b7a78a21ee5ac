"""Predictions of any scikit-learn model confronted with y: a loss per example, and a judgement of all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from trimlearn.estimators.label_assessment import LabelAssessment
from trimlearn.estimators.linear.laws import half_of
from trimlearn.inference.table import Findings, plain_kinds, residual_words
from trimlearn.robust.labels.boosted import BoostedOpinion
from trimlearn.robust.labels.noise import LabelNoise, two_columns
from trimlearn.robust.labels.noise_em import Floats, Labels
from trimlearn.robust.labels.verdict import LabelVerdict, label_verdict
from trimlearn.robust.scale import Chi, judge, p_values, rounding_floor

Loss = Callable[[np.ndarray, np.ndarray], Any]  # (y, predictions) -> f, one per row
InlierModel = float | LabelNoise  # what scores are measured by: the scale of residuals, or a model of wrong labels

LOWEST = float(np.log(1e-12))  # log-probabilities end here, the losses of a forest that says 0: far beyond 1/n of any n
BELIEVED = float(np.log(1e-6))  # and are taken no more seriously than this when labels are judged: see flexible.LEAST


@dataclass(frozen=True)
class Judgement:
    """What the predictions say about the rows: which ones they explain, and the share of bad ones."""

    inliers: np.ndarray
    contamination: float
    threshold: float  # rows whose score is larger are not explained
    inlier_model: InlierModel
    labels: LabelVerdict | None = None  # where y holds labels
    common: bool = False  # whether only rows of one value are explained, so that the others cannot be judged

    @property
    def all_labels_right(self) -> bool:
        """Whether labels were judged, and all of them taken to be right."""
        return self.labels is not None and self.labels.clean


class TargetKind(ABC):
    """One kind of y. t is y as this kind wants it; P the predictions, one row per example."""

    @abstractmethod
    def predict(self, model: Any, X: Any) -> np.ndarray:
        """P, by a fitted model."""

    @abstractmethod
    def losses(self, P: np.ndarray, t: np.ndarray) -> np.ndarray:
        """f, one per row."""

    def signed_residuals(self, P: np.ndarray, t: np.ndarray) -> np.ndarray | None:
        """y − prediction, where that is one number per row and what is judged; else None."""
        return None

    @abstractmethod
    def robust_h(self, t: np.ndarray, s: np.ndarray) -> float:
        """What to keep of the total weight Σs while nothing is known about the contamination."""

    @abstractmethod
    def judge(self, P: np.ndarray, t: np.ndarray, s: np.ndarray, h: float) -> Judgement:
        """All rows, by predictions for rows that their models have not seen; h as kept by the trimmed fit."""

    @abstractmethod
    def score(self, P: np.ndarray, t: np.ndarray, inlier_model: InlierModel) -> np.ndarray:
        """How bad each row is; larger is worse."""

    @abstractmethod
    def findings(self, P: np.ndarray, t: np.ndarray, inlier_model: InlierModel, off: np.ndarray) -> Findings:
        """What there is to say about each row; ``off``: which of them the model does not explain."""


@final
@dataclass(frozen=True)
class NumericTarget(TargetKind):
    """Regression: f = ½‖y − prediction‖², or the loss given. √(2f), the deviance residual, is judged by its scale."""

    loss: Loss | None

    def predict(self, model: Any, X: Any) -> np.ndarray:
        return np.asarray(model.predict(X), dtype=np.float64)

    def losses(self, P: np.ndarray, t: np.ndarray) -> np.ndarray:
        if self.loss is None:
            r = np.asarray(t, dtype=np.float64).reshape(P.shape) - P
            return np.asarray(0.5 * np.sum(r.reshape(len(r), -1) ** 2, axis=1))
        f = np.asarray(self.loss(t, P), dtype=np.float64)
        if f.shape != (len(P),) or not np.all(f >= 0):
            raise ValueError("loss(y, prediction) must give one number >= 0 per row.")
        return f

    def signed_residuals(self, P: np.ndarray, t: np.ndarray) -> np.ndarray | None:
        return np.asarray(t, dtype=np.float64).reshape(P.shape) - P if P.ndim == 1 and self.loss is None else None

    def robust_h(self, t: np.ndarray, s: np.ndarray) -> float:
        """Half of the rows; and where more than half have one value, as zeros among counts or amounts, half of the
        others as well: a constant explains those alone perfectly, and all others would seem wrong."""
        S, others = float(s.sum()), float(s @ _not_commonest(t, s))
        return min(S, (half_of(S, others, 0) if others < S / 2 else S // 2) + 1)

    def judge(self, P: np.ndarray, t: np.ndarray, s: np.ndarray, h: float) -> Judgement:
        signed = self.signed_residuals(P, t)
        r = self._residual(P, t) if signed is None else signed
        floor = 0.0 if signed is None else rounding_floor(np.ravel(t), s)
        found = judge(r, h, s=s, law=self._law(P, t, s), floor=floor, tails=signed is not None)
        if signed is None:  # the law of those explained
            found = judge(r, h, s=s, law=self._law(P, t, s * found.inliers))
        inliers, others = found.inliers & (s > 0), s * _not_commonest(t, s)
        if others.sum() < s.sum() / 2 and others @ inliers < others.sum() / 2:
            farthest = float(np.abs(r[s > 0]).max()) / found.scale
            return Judgement(s > 0, 0.0, max(found.cutoff, farthest), found.scale, common=True)
        return Judgement(inliers, found.contamination, found.cutoff, found.scale)

    def score(self, P: np.ndarray, t: np.ndarray, inlier_model: InlierModel) -> np.ndarray:
        return np.asarray(self._residual(P, t) / inlier_model)

    def findings(self, P: np.ndarray, t: np.ndarray, inlier_model: InlierModel, off: np.ndarray) -> Findings:
        score, r = self.score(P, t, inlier_model), self.signed_residuals(P, t)
        words = None if r is None else residual_words(r, score, off)
        law = self._law(P, t, (~off).astype(np.float64))
        return Findings(score, p_values(score, law), plain_kinds(off), words=words)

    def _residual(self, P: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(2 * self.losses(P, t)))

    def _law(self, P: np.ndarray, t: np.ndarray, c: np.ndarray) -> Chi:
        """The law of a residual of several numbers, of rows that count c times: its square is a sum of as many
        variables χ²₁, of unlike sizes where units differ or errors go together, and about a multiple of χ² with as many
        degrees of freedom as have its mean and variance (Satterthwaite 1946)."""
        if P.ndim == 1 or self.loss is not None or not c.any():
            return Chi()
        r = (np.asarray(t, dtype=np.float64).reshape(P.shape) - P) * np.sqrt(c)[:, None]
        widths = np.linalg.svd(r, compute_uv=False)
        sizes = np.square(widths / widths[0]) if widths[0] > 0 else np.ones(1)
        return Chi(float(sizes.sum() ** 2 / np.square(sizes).sum()))


@final
@dataclass(frozen=True)
class LabelTarget(TargetKind):
    """Classification: P = log-probabilities of the ``classes``, t the labels' numbers, f = −log p of the label.

    The judgement adds what ``flexible`` models predict for the training rows (robust/labels/verdict.py), and where many
    labels are in doubt, what boosting does; ``cells`` are rows that agree in the columns of few values. A label that no
    row was fitted with is number −1.
    """

    loss: Loss | None
    classes: np.ndarray
    flexible: list[Floats] = field(default_factory=list)
    boosted: BoostedOpinion | None = None
    cells: Labels | None = None

    def predict(self, model: Any, X: Any) -> np.ndarray:
        z = self._log_odds(model, X)
        log_p = np.full((len(z), len(self.classes)), LOWEST)
        log_p[:, np.searchsorted(self.classes, model.classes_)] = z - logsumexp(z, axis=1, keepdims=True)
        return np.asarray(np.maximum(log_p, LOWEST))

    def _log_odds(self, model: Any, X: Any) -> np.ndarray:
        if hasattr(model, "predict_proba"):  # scikit-learn's own convention for what a classifier can do
            return np.asarray(np.log(np.maximum(np.asarray(model.predict_proba(X), dtype=np.float64), 1e-300)))
        if hasattr(model, "decision_function"):
            z = np.asarray(model.decision_function(X), dtype=np.float64)
            return np.asarray(two_columns(z.reshape(len(z), -1)))
        raise ValueError(
            f"{type(model).__name__} has neither predict_proba nor decision_function, so that it cannot say how well "
            "it explains a label: wrap it in sklearn.calibration.CalibratedClassifierCV."
        )

    def losses(self, P: np.ndarray, t: np.ndarray) -> np.ndarray:
        if self.loss is not None:
            return np.asarray(self.loss(self.classes[t], np.exp(P)), dtype=np.float64)
        return np.where(t >= 0, -P[np.arange(len(P)), t], np.inf)

    def robust_h(self, t: np.ndarray, s: np.ndarray) -> float:
        # The noise model wants predictions that are right more often than the labels, not trimmed ones.
        return float(s.sum())

    def judge(self, P: np.ndarray, t: np.ndarray, s: np.ndarray, h: float) -> Judgement:
        predictions, labels = [np.maximum(P, BELIEVED), *self.flexible], np.maximum(t, 0)
        verdict = label_verdict(predictions, labels, s, cells=self.cells)
        if self.boosted is not None and (more := self.boosted.asked_about(verdict)):
            again = label_verdict([*predictions, *more], labels, s, cells=self.cells)
            verdict = again if again.may_replace(verdict) else verdict
        noise, share = verdict.noise, h / float(s.sum())
        cut = verdict.cut(share if share < 1 else None)
        alone = replace(noise, temperatures=np.array([noise.temperatures.sum()]))  # without the flexible models
        return Judgement((verdict.scores <= cut) & (s > 0), noise.epsilon, cut, alone, verdict)

    def score(self, P: np.ndarray, t: np.ndarray, inlier_model: InlierModel) -> np.ndarray:
        assert isinstance(inlier_model, LabelNoise)
        return np.where(t >= 0, inlier_model.score([np.maximum(P, BELIEVED)], np.maximum(t, 0)), np.inf)

    def findings(self, P: np.ndarray, t: np.ndarray, inlier_model: InlierModel, off: np.ndarray) -> Findings:
        assert isinstance(inlier_model, LabelNoise)
        verdict = LabelVerdict(inlier_model, [np.maximum(P, BELIEVED)], t, np.ones(len(t)))
        return LabelAssessment.of(verdict).findings(t, self.classes, off)


def _not_commonest(t: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Which rows have another target than the commonest, the rows being weighed by s.

    >>> _not_commonest(np.array([0.0, 3.0, 0.0]), np.array([1.0, 1.0, 1.0]))
    array([False,  True, False])
    """
    values = np.unique(t, axis=None if t.ndim == 1 else 0, return_inverse=True)[1].ravel()
    return np.asarray(values != np.bincount(values, s).argmax())
