"""Trimmed estimators of rows without a target, used the way scikit-learn's outlier detectors are."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trimlearn.estimators.base import Trimmed


class Detector(Trimmed):
    """Signs as in scikit-learn: +1 and positive for inliers, −1 and negative for outliers.

    It is no `sklearn.base.OutlierMixin`: of such a one ``contamination`` is the share of rows flagged, whatever they
    are like; here it is the share trimmed, of which those that the fit explains come back.
    """

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X."""

    @abstractmethod
    def outlier_score(self, X: Any) -> np.ndarray:
        """How far out each row of X is; larger is worse."""

    def decision_function(self, X: Any) -> np.ndarray:
        """How far inside ``threshold_`` rows are: negative for outliers, the more so the further out they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, judged as new ones.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``threshold_`` − `outlier_score`.
        """
        score = self.outlier_score(X)  # which also says that the model is not fitted, if so
        return np.asarray(self.threshold_ - score)

    def predict(self, X: Any) -> NDArray[np.int_]:
        """+1 for inliers, −1 for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, judged as new ones.

        Returns
        -------
        ndarray of shape (n_samples,)
            The sign of `decision_function`, +1 for 0.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int_]:
        """Fit, and +1 for the rows of X that count in the fit (``inlier_mask_``), −1 for the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for scikit-learn's pipelines.

        Returns
        -------
        ndarray of shape (n_samples,)
            By the verdict of the fit, not as new rows.
        """
        return np.where(self.fit(X).inlier_mask_, 1, -1)


@dataclass(frozen=True)
class FeatureRows:
    """Validated training data without a target: rows X (n, p) and their sample weights s."""

    X: Any
    s: np.ndarray

    @property
    def S(self) -> float:
        return float(self.s.sum())
