"""What trimmed estimators of location and covariance share: the data, and what a fit says about rows, seen or not."""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any, Final, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.intact import intact
from trimlearn._utils.threads import team
from trimlearn.estimators.base import row_names
from trimlearn.estimators.covariance.trimming import TrimmedScatterFit
from trimlearn.estimators.detector import Detector, FeatureRows
from trimlearn.estimators.doubtful_rows import warn_of_another_explanation, warn_of_doubtful_rows
from trimlearn.estimators.inputs import check_counts, check_data
from trimlearn.inference.table import Findings, TopFeatures, plain_kinds
from trimlearn.robust.cells.parts import distance_cells
from trimlearn.robust.scale import Chi, p_values
from trimlearn.robust.scatter.fit import ScatterFit
from trimlearn.robust.scatter.graphical_lasso import SparseNormal
from trimlearn.smart.method import Record, concentration_records

__all__ = ["TrimmedScatter"]

HUGE: Final = 1e140  # the sum of the squares of 10²⁸ such numbers is in range
LARGE: Final = 1 << 20  # entries of X, 8 MB: a single thread reads fewer in less than a millisecond


class TrimmedScatter(Detector):
    """Location and covariance of the rows that agree; every row, seen or not, has a distance from them."""

    assume_centered: bool
    location_: np.ndarray
    covariance_: np.ndarray
    raw_weights_: np.ndarray
    history_: list[Record]
    _model: ScatterFit | SparseNormal  # of the features that distances are measured by
    _measured: np.ndarray | None = None  # the mask of these; None: all

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for scikit-learn's pipelines.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: 2 is the row twice, 0 its removal.

        Returns
        -------
        object
            The fitted estimator.
        """
        with intact(self):
            data = self._validate(X, y, sample_weight, reset=True)
            self._row_names = row_names(X)
            with team(data.X.size < LARGE):  # matrices too small for BLAS's threads, which only wait for each other
                return self._refit(data, self.contamination, warm=False)

    def get_precision(self) -> np.ndarray:
        """The inverse of the covariance of the features that distances are measured by; where that is singular, of the
        nearest regular one.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            What distances are measured with: 0 in the rows and columns of features that have no part in them.
        """
        check_is_fitted(self, "weights_")
        if self._measured is None:
            return self._model.precision
        precision = np.zeros((len(self._measured), len(self._measured)))
        precision[np.ix_(self._measured, self._measured)] = self._model.precision
        return precision

    def mahalanobis(self, X: Any) -> np.ndarray:
        """Squared robust distances of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Squared distances from ``location_``.
        """
        check_is_fitted(self, "weights_")
        return self._squared_distances(check_data(self, X, reset=False, dtype=np.float64))

    def _squared_distances(self, X: np.ndarray) -> np.ndarray:
        return self._model.squared_distances(X if self._measured is None else X[:, self._measured])

    def score_samples(self, X: Any) -> np.ndarray:
        """Score rows by minus their squared distances: larger is more normal.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Minus `mahalanobis`.
        """
        return -self.mahalanobis(X)

    def outlier_score(self, X: Any) -> np.ndarray:
        """Robust distances of rows, not squared: larger is worse.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from ``location_``; beyond ``threshold_`` is an outlier.
        """
        return np.asarray(np.sqrt(self.mahalanobis(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows under the normal model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for scikit-learn's searches.

        Returns
        -------
        float
            As that of sklearn.covariance.EmpiricalCovariance.
        """
        d2 = self.mahalanobis(X)
        return -0.5 * (float(np.mean(d2)) + self._model.log_det + self._dimensions * log(2.0 * pi))

    @property
    def _dimensions(self) -> int:
        """How many features distances are measured by."""
        return len(self.location_) if self._measured is None else int(self._measured.sum())

    @property
    def support_(self) -> np.ndarray:
        """``inlier_mask_``, by the name it has in scikit-learn's MinCovDet."""
        return self.inlier_mask_

    @property
    def raw_support_(self) -> np.ndarray:
        """Which rows count in the trimmed fit."""
        return np.asarray(self.raw_weights_ > 0)

    def _publish(self, data: FeatureRows, found: TrimmedScatterFit[Any], h: float | None) -> bool:
        """What was found, as attributes; h: the weight that was asked to be kept. Whether it is beyond doubt."""
        raw, trimmed, final = found.raw, found.trimmed.model, found.final
        self._training, self._raw, self._model = data, raw, final.model
        self.raw_weights_, self.raw_location_, self.raw_covariance_ = raw.w, *self._moments(data, trimmed)
        self.weights_, (self.location_, self.covariance_) = final.model.w, self._moments(data, final.model)
        self.dist_ = self._squared_distances(data.X)
        self.outlier_scores_, self.threshold_ = np.sqrt(self.dist_), sqrt(final.reach)
        self.contamination_ = final.verdict.contamination if h is None else 1.0 - h / data.S
        self.objective_ = raw.history[-1] if raw.history else inf
        self.history_, self.n_iter_ = concentration_records(raw.history, found.h), len(raw.history)
        singular = isinstance(final.model, ScatterFit) and final.model.rank < self._dimensions  # said already
        if h is not None or singular:
            return not singular
        rows = self.contamination_, self.outlier_scores_, self.outlier_scores_ > self.threshold_, data.s
        return not warn_of_doubtful_rows(*rows, final.cut.normal_contamination)

    def _doubt_errors(self, data: FeatureRows) -> None:
        """Say so where the rows called bad may be no errors, but a tail of all rows, or groups of rows."""
        A = data.X if self._measured is None else data.X[:, self._measured]
        rows = self.contamination_, self.outlier_scores_, self.weights_ <= 0, data.s
        warn_of_another_explanation(*rows, lambda at: A[at], A.shape[1])

    def _moments(self, data: FeatureRows, model: ScatterFit | SparseNormal) -> tuple[np.ndarray, np.ndarray]:
        """Location and covariance of the rows that the model keeps, of all features."""
        if self._measured is None or not isinstance(model, ScatterFit):
            return model.location, model.covariance
        every = model.extended(data.X, data.s, self.assume_centered)
        return every.location, every.covariance

    def _scores(self, data: FeatureRows) -> np.ndarray:
        return np.asarray(np.sqrt(self._squared_distances(data.X)))

    def _findings(self, data: FeatureRows, scores: np.ndarray, off: np.ndarray) -> Findings:
        precision, center = self.get_precision(), self.location_
        top = TopFeatures(data.X, lambda A, _: distance_cells(A, center, precision))
        return Findings(scores, p_values(scores, Chi(self._dimensions)), plain_kinds(off), top=top)

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> FeatureRows:
        X = check_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=2)
        largest = np.abs(X).max()
        if largest > 0 and not 1 / HUGE < largest < HUGE:
            raise ValueError(f"X holds numbers of up to {largest:.0e}, whose squares are out of range: rescale it.")
        return FeatureRows(X, check_counts(sample_weight, X))
