"""What trimmed estimators of location and covariance share: the data, and what a fit says about rows, seen or not."""

from __future__ import annotations

from abc import abstractmethod
from math import log, pi
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.intact import intact
from trimlearn._utils.threads import team
from trimlearn.estimators.base import Table, check_counts, row_names
from trimlearn.estimators.detector import Detector
from trimlearn.estimators.inputs import check_data
from trimlearn.inference.table import Findings, TopFeatures, distance_parts, plain_kinds
from trimlearn.robust.scale import Chi, p_values

__all__ = ["Floats", "TrimmedScatter"]

Floats = NDArray[np.float64]

HUGE = 1e140  # times itself still in range
LARGE = 1 << 20  # entries of X beyond which products are


class TrimmedScatter(Detector):
    """Location and covariance of the rows that agree; every row, seen or not, has a distance from them."""

    assume_centered: bool
    location_: Floats
    covariance_: Floats

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the rows of X (n, p); sample_weight: 2 is the row twice, 0 its removal. y is ignored."""
        with intact(self):
            data = self._validate(X, y, sample_weight, reset=True)
            self._row_names = row_names(X)
            with team(data.X.size < LARGE):  # matrices too small for BLAS's threads, which only wait for each other
                return self._refit(data, self.contamination, warm=False)

    @abstractmethod
    def _squared_distances(self, X: Floats) -> Floats:
        """d² of validated rows."""

    @abstractmethod
    def _log_det(self) -> float:
        """log det of the covariance that distances are measured with."""

    @abstractmethod
    def get_precision(self) -> Floats:
        """The inverse of the covariance that distances are measured with."""

    def mahalanobis(self, X: Any) -> Floats:
        """Squared robust distances of the rows of X."""
        check_is_fitted(self, "weights_")
        return self._squared_distances(check_data(self, X, reset=False, dtype=np.float64))

    def score_samples(self, X: Any) -> Floats:
        """Minus the squared distances: larger is more normal."""
        return -self.mahalanobis(X)

    def outlier_score(self, X: Any) -> Floats:
        """Robust distances, not squared: larger is worse."""
        return np.sqrt(self.mahalanobis(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows of X under the normal model."""
        d2 = self.mahalanobis(X)
        return -0.5 * (float(np.mean(d2)) + self._log_det() + len(self.location_) * log(2.0 * pi))

    @property
    def support_(self) -> NDArray[np.bool_]:
        """``inlier_mask_``, by the name it has in scikit-learn's MinCovDet."""
        return self.inlier_mask_

    def _scores(self, data: Table) -> Floats:
        return np.sqrt(self._squared_distances(data.X))

    def _findings(self, data: Table, scores: Floats, off: NDArray[np.bool_]) -> Findings:
        precision, center = self.get_precision(), self.location_
        top = TopFeatures(data.X, lambda A, _: distance_parts(A, center, precision))
        return Findings(scores, p_values(scores, Chi(data.X.shape[1])), plain_kinds(off), top=top)

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Table:
        X = check_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=2)
        largest = np.abs(X).max()
        if largest > 0 and not 1 / HUGE < largest < HUGE:
            raise ValueError(f"X holds numbers of up to {largest:.0e}, whose squares are out of range: rescale it.")
        return Table(X, check_counts(sample_weight, X))
