"""Trimmed estimators of rows without a target, used the way scikit-learn's outlier detectors are."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed
from trimlearn.robust.scale import BEYOND_COUNT

__all__ = ["Detector", "FeatureRows", "warn_of_doubtful_rows", "warn_of_exact_subspace"]

DOUBT: Final = 0.1  # by which two estimates of the share of bad rows differ where it is said: what matters to users
FEW: Final = 40  # different rows below which no tail can be told: 3 % of samples of 20 or 30 clean rows have one
# The share of bad rows, and the ratio of the quartiles of their distances, from which they may be other groups. It is
# 1.1 for bad rows in one place, up to 1.7 for scattered ones, and more for tables of several groups: 4.6 for glass,
# 2.5 for Stamps, 2.6 for cardio (TrimmedCovariance; `benchmarks peers anomalies`).
GROUPS: Final = 0.25, 1.8
# Of all rows, that are copies of one among those kept. Of clean normal rows in 5 dimensions a tenth or more is called
# bad in none of 20 samples with 15 % copies, in 8 with 20 % and in 19 with 25 % (TrimmedCovariance, 60 and 200 rows):
# a crowd of that size is taken for the good rows.
CROWD: Final = 0.15


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


def warn_of_doubtful_rows(
    contamination: float, normal: float, scores: np.ndarray, off: np.ndarray, s: np.ndarray
) -> bool:
    """Say so where the share of bad rows depends on what the good ones are taken for: normal, or of a heavier tail;
    where so many rows are ``off``, by such different scores, that they may be groups of their own; where as many are
    off as are not, so that either may be the bad ones; where a third of them is off, as a group; or where the rows kept
    are copies of each other. Whether it was."""
    if len(np.unique(scores[s > 0])) < FEW:
        return False
    copies = _most_alike(scores, s * ~off) / float(s.sum())
    if copies > CROWD and contamination > DOUBT:
        warn(
            f"{copies:.0%} of the rows are copies of one row, and {contamination:.0%} of the rows are bad by their "
            "distance from such a crowd, which counts for as many rows as it has copies. Drop duplicates, or give "
            "contamination if you know.",
        )
        return True
    far = scores[off & (s > 0)]
    if normal - contamination > DOUBT:
        warn(
            f"the distances of the rows have a heavier tail than those of normal rows: {contamination:.0%} of the rows "
            f"are bad if that tail is their own, as contamination_ has it, and {normal:.0%} if the good rows are "
            "normal. The data do not tell which; give contamination if you know.",
        )
        return True
    if contamination > GROUPS[0] and _quartiles(far) > GROUPS[1]:
        warn(
            f"{contamination:.0%} of the rows lie apart, at very different distances: they may be other groups of "
            "rows, or a tail, rather than errors. The data do not tell which; give contamination if you know.",
        )
        return True
    total = float(s.sum())
    if _as_many(float(s @ off), total):
        warn(
            f"{contamination:.0%} of the rows lie apart, about as many as agree: which of the two groups is the good "
            "one, the data do not tell. Fit each by itself, or leave out the one that you know to be wrong.",
        )
        return True
    if _a_third(contamination * total, total):
        warn(
            f"{contamination:.0%} of the rows lie apart, at about the same distance: they look like a group of their "
            "own rather than errors. Fit each group by itself, or give contamination if you know.",
        )
        return True
    return False


def _as_many(off: float, total: float) -> bool:
    """Whether the smaller of two groups could as well have been the larger one: were they equally likely, their sizes
    would differ by √n, a standard deviation.

    >>> _as_many(47.0, 100.0), _as_many(40.0, 100.0)
    (True, False)
    """
    return abs(total - 2.0 * off) <= sqrt(total)


def _a_third(bad: float, total: float) -> bool:
    """Whether so many bad rows may be one of three equal groups: a third of all, but for a row and what an estimate
    subtracts for good ones; or more by a standard deviation of the size of a group to which every row belongs with
    probability 1/3. Fewer are as often errors.

    >>> _a_third(50.0, 150.0), _a_third(45.0, 150.0), _a_third(60.0, 150.0), _a_third(198.0, 600.0)
    (True, False, False, True)
    """
    return -1.0 - BEYOND_COUNT * total <= bad - total / 3.0 <= sqrt(2.0 * total) / 3.0


def _most_alike(scores: np.ndarray, s: np.ndarray) -> float:
    """How many of the rows, which count s times, have the commonest score: copies of a row have one score."""
    _, index = np.unique(scores, return_inverse=True)
    return float(np.bincount(index, s).max())


def warn_of_exact_subspace(contamination: float, k: int) -> None:
    """Say so where rows are called bad only because most of the others lie in a subspace exactly."""
    if contamination > DOUBT:
        warn(
            f"{1 - contamination:.0%} of the rows lie exactly in a subspace of {k} dimensions, and the others count as "
            "bad. A feature of few values, such as 0 and 1, does that: leave it out, or give contamination.",
        )


def _quartiles(scores: np.ndarray) -> float:
    """The upper quartile over the lower one; 1 where there are none."""
    low, high = np.quantile(scores, [0.25, 0.75], method="lower") if len(scores) else (1.0, 1.0)  # also of infinities
    return float(high / low) if 0 < low < high else 1.0
