"""What a linear classifier says about rows, seen or unseen, once it and a noise model of labels are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from trimlearn._utils.arrays import Array
from trimlearn._utils.residence import on_host
from trimlearn._utils.warn import warn
from trimlearn.estimators.inputs import places
from trimlearn.estimators.label_assessment import LabelAssessment
from trimlearn.estimators.linear.examples import Distinct, Examples, check_features
from trimlearn.estimators.linear.explain import fitted_model
from trimlearn.estimators.linear.model import LinearModel
from trimlearn.estimators.on_dask import is_on_dask, lazily
from trimlearn.estimators.streamed import by_blocks, opened, targets_of
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.infer import InferenceMixin
from trimlearn.inference.table import Findings, TopFeatures, logit_parts
from trimlearn.robust.labels.column_bounds import ColumnBounds
from trimlearn.robust.labels.crossfit import JudgedLabels
from trimlearn.robust.labels.noise import two_columns
from trimlearn.robust.labels.verdict import LabelVerdict


class LinearClassifier(InferenceMixin, ClassifierMixin, LinearModel):  # type: ignore[misc]
    """Predictions, and judgements of labels, by ``coef_``, ``intercept_`` and the noise that a fit has found."""

    C: float
    fit_intercept: bool
    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    _judged: JudgedLabels
    _bounds: ColumnBounds

    def decision_function(self, X: Any) -> np.ndarray:
        """Predictions z: (n,) for two classes, (n, K) for more."""
        check_is_fitted(self, "coef_")
        width = None if len(self.coef_) == 1 else len(self.coef_)
        return self._by_rows(X, self._decided, "decision_function", self.coef_.dtype, width)

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of every row of X."""
        check_is_fitted(self, "coef_")
        return self._by_rows(X, self._most_likely, "predict", self.classes_.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of right predictions; X may be a dataset with its target, or a path, y then naming the target's
        column."""
        if (stream := opened(X, y, sample_weight)) is not None:
            X, y = stream, targets_of(self, stream)
        return float(super().score(X, y, sample_weight))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(class), (n, K)."""
        check_is_fitted(self, "coef_")
        return self._by_rows(X, self._log_p, "predict_log_proba", self.coef_.dtype, len(self.classes_))

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class), (n, K)."""
        check_is_fitted(self, "coef_")
        K = len(self.classes_)
        return self._by_rows(X, lambda rows: np.exp(self._log_p(rows)), "predict_proba", self.coef_.dtype, K)

    def outlier_score(self, X: Any, y: Any = None) -> np.ndarray:
        """The log-odds that a label is wrong, for rows seen or unseen. Larger is worse, 0 undecided."""
        if is_on_dask(X):
            return lazily(self, X, "outlier_score", np.float64, y=y)
        if (stream := opened(X, y)) is not None:
            return by_blocks(self, stream, lambda rows, t: self._scores(Examples(rows, self._codes(t))))
        X = check_features(self, X)
        return self._scores(Examples(X, self._codes(np.asarray(column_or_1d(on_host(y), warn=True)))))

    # -- what is known about each row, and about the coefficients -----------------------------------------------------

    def _codes(self, y: np.ndarray) -> np.ndarray:
        codes = places(y, self.classes_)
        if np.any(codes < 0):
            raise ValueError(f"y holds labels that were not seen in fit: {np.unique(y[codes < 0])[:5].tolist()}.")
        return codes

    def _parts(self, x: Array) -> tuple[np.ndarray, np.ndarray]:
        """coef and intercept in scikit-learn's shapes."""
        x = np.asarray(x)
        x = x[:, None] if x.ndim == 1 else x
        return (x[:-1].T, x[-1]) if self.fit_intercept else (x.T, np.zeros(x.shape[1], x.dtype))

    def _linear(self, X: Any) -> np.ndarray:
        """Predictions (n, K) for rows that were checked, K = 2 included."""
        return np.asarray(two_columns(X @ self.coef_.T + self.intercept_))

    def _decided(self, X: Any) -> np.ndarray:
        z = np.asarray(X @ self.coef_.T + self.intercept_)
        return z[:, 0] if len(self.classes_) == 2 else z

    def _most_likely(self, X: Any) -> np.ndarray:
        z = self._decided(X)
        best = z > 0 if z.ndim == 1 else z.argmax(axis=1)
        return np.asarray(self.classes_[best.astype(np.intp)])

    def _log_p(self, X: Any) -> np.ndarray:
        return np.asarray(log_softmax(self._linear(X), axis=1))

    def _verdict_on(self, data: Examples) -> LabelVerdict:
        """On rows that were not fitted: by the final model, as sure of itself as it is, and the noise found."""
        return LabelVerdict(self._judged.verdict.noise.as_it_is, [self._linear(data.X)], data.t, np.ones(data.n))

    def _scores(self, data: Examples) -> np.ndarray:
        return self._verdict_on(data).scores

    def _findings(self, data: Examples, scores: np.ndarray, off: np.ndarray) -> Findings:
        given = data.t
        if data is not vars(self).get("_training"):
            assessment = LabelAssessment.of(self._verdict_on(data))
        else:
            distinct = Distinct.of(data)
            both = (LabelAssessment.of(on) for on in (self._judged.verdict, self._verdict_on(distinct.gone)))
            assessment = LabelAssessment(*distinct.spread(*zip(*(vars(found).values() for found in both), strict=True)))
        P = self._linear(data.X)
        others = np.where(np.arange(P.shape[1]) == given[:, None], -np.inf, P)
        rival = np.where(assessment.suggested == given, others.argmax(axis=1), assessment.suggested)
        center = np.asarray(data.X.mean(axis=0), dtype=np.float64).ravel()
        top = TopFeatures(data.X, lambda A, rows: logit_parts(A, self.coef_, center, given[rows], rival[rows]))
        return assessment.findings(given, self.classes_, off, self._bounds.rows_beyond(data.X), top)

    def _fitted(self, X: Any, y: Any) -> Fitted:
        data, ridge = self._remembered(X, y), 1 / self.C
        if len(self.classes_) > 2:
            classes = list(self.classes_)
            return fitted_model(self, data, "multinomial", self.coef_, self.intercept_, ridge=ridge, classes=classes)
        return fitted_model(self, data, "binomial", self.coef_[0], self.intercept_[0], ridge=ridge)


def warn_of_lost_classes(classes: np.ndarray, there: np.ndarray, kept: np.ndarray, advice: str) -> None:
    """Of classes whose rows have a weight, but none in the trimmed fit; both weights are given class by class."""
    lost = classes[(there > 0) & (kept == 0)]
    if len(lost):
        names = ", ".join(map(str, lost[:5]))
        warn(f"the trimmed fit keeps no row of {names}: more is trimmed than such a class has. {advice}")
