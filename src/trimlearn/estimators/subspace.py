"""What a subspace of the rows that agree says about rows, seen or not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.validation import check_magnitude
from trimlearn.estimators.detector import Detector, FeatureRows
from trimlearn.estimators.inputs import check_counts, check_data
from trimlearn.inference.table import Findings, TopFeatures, leverage_kinds
from trimlearn.robust.cells.parts import reconstruction_cells
from trimlearn.robust.scale import Chi
from trimlearn.robust.scatter.tails import TailLaw
from trimlearn.robust.subspace.components import log_likelihoods, mahalanobis
from trimlearn.robust.subspace.flat import Flat, Points
from trimlearn.robust.subspace.span import HUGE

__all__ = ["TrimmedSubspace"]

FAR: Final = 0.025  # the share of normal rows that are called far out within the subspace, as in Hubert et al. (2005)


class TrimmedSubspace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Detector):  # type: ignore[misc]
    """A subspace near the rows that agree; every row, seen or not, has coordinates in it and a distance from it."""

    components_: np.ndarray
    mean_: np.ndarray
    feature_scales_: np.ndarray
    explained_variance_: np.ndarray
    noise_variance_: float
    n_components_: int
    scale_: float
    _flat: Flat  # by which rows are trimmed
    _law: TailLaw
    _exact: bool

    def transform(self, X: Any) -> np.ndarray:
        """The rows' coordinates along the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            Of (X − ``mean_``)/``feature_scales_``.
        """
        X = self._checked(X)
        scores = self._points(X).scores(self._components_flat())
        return scores.astype(X.dtype if X.dtype == np.float32 else np.float64, copy=False)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The rows that have given coordinates, in the space of the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            Coordinates along the components.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            On the subspace.
        """
        check_is_fitted(self)
        X = check_array(X, input_name="X", dtype=[np.float64, np.float32])
        return np.asarray(X @ self.components_ * self.feature_scales_.astype(X.dtype) + self.mean_)

    def orthogonal_distance(self, X: Any) -> np.ndarray:
        """How far rows are from the subspace by which rows are trimmed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            ‖(I − UUᵀ)(aᵢ − m)‖ of the scaled features, U of ``n_trimming_components_`` columns.
        """
        return np.asarray(np.sqrt(self._points(self._checked(X)).distances2(self._flat)))

    def outlier_score(self, X: Any) -> np.ndarray:
        """`orthogonal_distance` in units of ``scale_``: larger is worse.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Above ``threshold_`` is an outlier. Rounding errors, on an exact fit, count as 0.
        """
        return self._in_units(self.orthogonal_distance(X))

    def _in_units(self, distances: np.ndarray) -> np.ndarray:
        scores = distances / self.scale_
        return np.asarray(np.where(self._exact & (scores < 1), 0.0, scores))

    def score_distance(self, X: Any) -> np.ndarray:
        """How far out rows are within the subspace.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            √Σ zⱼ²/λⱼ of the coordinates z along the components, λ their variances.
        """
        return self._score_distance(self._checked(X))

    def _score_distance(self, X: Any) -> np.ndarray:
        return mahalanobis(self._points(X).scores(self._components_flat()), self.explained_variance_)

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-likelihood of each row under the inliers' normal model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            As scikit-learn's PCA has it: larger is more normal.
        """
        z, d2 = self._points(self._checked(X)).both(self._components_flat())
        likely = log_likelihoods(z, d2, self.explained_variance_, self.noise_variance_, self.n_features_in_)
        return likely - float(np.log(self.feature_scales_).sum())  # a density in the units of the data

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of rows under the inliers' normal model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for scikit-learn's searches.

        Returns
        -------
        float
            The mean of `score_samples`.
        """
        return float(np.mean(self.score_samples(X)))

    def _scores(self, data: FeatureRows) -> np.ndarray:
        return self._in_units(np.sqrt(self._points(data.X).distances2(self._flat)))

    def _findings(self, data: FeatureRows, scores: np.ndarray, off: np.ndarray) -> Findings:
        """Kinds are those of the outlier map: "orthogonal outlier", "bad leverage", "good leverage" or "regular"."""
        distances, flat, units = self._score_distance(data.X), self._flat, self.feature_scales_
        far = distances > Chi(self.n_components_).upper(FAR)
        kinds = leverage_kinds(off, far, "orthogonal outlier")
        top = TopFeatures(data.X, lambda A, _: reconstruction_cells(np.clip(A / units, -HUGE, HUGE), flat.m, flat.U.T))
        return Findings(scores, self._law.survival(scores), kinds, distance=distances, top=top)

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> FeatureRows:
        X = self._check_X(X, reset=reset, least=1 + reset)
        check_magnitude(X, "X")
        return FeatureRows(X, check_counts(sample_weight, X))

    def _check_X(self, X: Any, reset: bool, least: int = 1) -> Any:
        found = check_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_min_samples=least, copy=False
        )
        return found.astype(np.float32) if found.dtype == np.float16 else found  # whose squares end at 256

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._check_X(X, reset=False)

    def _points(self, X: Any) -> Points:
        """The rows in the units in which they are compared."""
        return Points(X, None if np.all(self.feature_scales_ == 1.0) else self.feature_scales_)

    def _components_flat(self) -> Flat:
        return Flat(self.components_.T.astype(np.float64), self.mean_.astype(np.float64) / self.feature_scales_)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
