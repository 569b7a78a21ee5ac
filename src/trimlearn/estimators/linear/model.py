"""What linear models share: a fit to rows wherever they lie, and what a regression says about rows, seen or unseen."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import is_collection
from trimlearn.estimators import streamed
from trimlearn.estimators.base import Trimmed
from trimlearn.estimators.inputs import check_numbers
from trimlearn.estimators.linear.examples import Examples, check_examples, check_features
from trimlearn.estimators.linear.explain import regression_findings
from trimlearn.estimators.linear.laws import RegressionLaw
from trimlearn.estimators.on_dask import OnDask, is_on_dask, lazily
from trimlearn.estimators.streamed import by_blocks, opened, read_whole, set_column_names, targets_of
from trimlearn.inference.infer import IntervalMixin
from trimlearn.inference.table import Findings
from trimlearn.smart.method import Record
from trimlearn.streams import Dataset


class LinearModel(Trimmed):
    """A model that is fitted to rows wherever they lie: in memory, in files, or on the workers of a cluster."""

    warm_start: bool
    _takes_dask = True
    _x: Array  # of the trimmed fit

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None, resume: bool = True
    ) -> Self:
        """Fit to X (n, p), dense or CSR, and y (n,); sample_weight: 2 is the row twice, 0 its removal.

        X may be a dataset (`trimlearn.open_dataset`), or a path, y then being the name of the target's column: see
        docs/scale.md. X and y may be Dask collections, or X files on a cluster (`trimlearn.on_dask`): see docs/dask.md.
        checkpoint, resume: as in `trimlearn.solve`; the same call goes on where a fit was interrupted.
        """
        with self._fitting(X, y, sample_weight, checkpoint=checkpoint, resume=resume):
            if lies_elsewhere(X, y):
                data = self._from_elsewhere(X, y, sample_weight)
            else:
                data = self._validate(X, y, sample_weight, reset=True)
            if data is None:
                return self
            self._fit(data, self._h(self.contamination, data.S), warm=self.warm_start and hasattr(self, "_x"))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _from_elsewhere(self, X: Any, y: Any, sample_weight: Any) -> Examples | None:
        """Training data that `lies_elsewhere`, where they are few enough to be read as a whole. To any others the model
        is fitted where they lie; None says so."""
        if is_on_dask(X):
            self._fit_on_dask(X, y, sample_weight)
            return None
        stream = opened(X, y, sample_weight, fit_of=self)
        if stream is None:
            return self._validate(X, y, sample_weight, reset=True)
        whole = read_whole(stream, labels=is_classifier(self))
        if whole is None:
            self._fit_stream(stream, self._h(self.contamination, stream.n))
            return None
        data = self._validate(*whole, sample_weight, reset=True)
        set_column_names(self, stream)
        return data

    @abstractmethod
    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Examples:
        """The data as `_fit` wants them."""

    @abstractmethod
    def _fit_on_dask(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit to rows on a cluster."""

    @abstractmethod
    def _fit_stream(self, data: Dataset, h: float | None) -> None:
        """Fit to a dataset that is larger than memory, keeping h; None: find out."""

    @abstractmethod
    def _parts(self, x: Array) -> tuple[Any, Any]:
        """coef and intercept of the model x."""

    def _set_fits(self, x: Array, objective: float, history: list[Record], raw: Any, final: Any) -> None:
        """Set what is known of the trimmed fit x, and coef and intercept of it (``raw``) and of the final fit."""
        self._x, self.objective_, self.history_ = x, objective, history
        self.n_iter_ = max(1, len(history) - 1)
        (self.raw_coef_, self.raw_intercept_), (self.coef_, self.intercept_) = raw, final

    def _by_rows(
        self, X: Any, answer: Callable[[Any], np.ndarray], name: str, dtype: Any, width: int | None = None
    ) -> np.ndarray:
        """answer(rows) for all rows of X, wherever they lie. On a cluster each worker calls the method ``name``, which
        gives ``width`` numbers of this dtype a row; None: one."""
        if is_on_dask(X):
            return lazily(self, X, name, dtype, width)
        if isinstance(X, Dataset):
            return by_blocks(self, X, lambda rows, _: answer(rows))
        return answer(check_features(self, X))


class LinearRegressor(IntervalMixin, RegressorMixin, LinearModel):  # type: ignore[misc]
    """Predictions, and judgements of targets, by ``coef_``, ``intercept_`` and the scale that a fit has found."""

    fit_intercept: bool
    coef_: np.ndarray
    intercept_: float
    scale_: float
    _relative_weights = False  # whether only the ratios of sample weights matter

    def predict(self, X: Any) -> np.ndarray:
        """The mean of y for every row of X, which may be a dataset, or Dask's."""
        check_is_fitted(self, "coef_")
        return self._by_rows(X, self._means, "predict", self.coef_.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² of the predictions; X may be a dataset with its target, or a path, y then naming the target's column."""
        if (stream := opened(X, y, sample_weight)) is not None:
            X, y = stream, targets_of(self, stream)
        return float(super().score(X, y, sample_weight))

    def outlier_score(self, X: Any, y: Any = None) -> np.ndarray:
        """|residual|/scale_ for rows seen or unseen: by how many standard deviations they are off. Larger is worse.

        Where the model is of a family, residuals are those of the deviance.
        """
        if is_on_dask(X):
            return lazily(self, X, "outlier_score", self.coef_.dtype, y=y)
        if (stream := opened(X, y)) is not None:
            return by_blocks(self, stream, lambda rows, t: self._scores(Examples(rows, t)))
        X = check_features(self, X)
        kind = np.result_type(X.dtype, self.coef_.dtype)
        return self._scores(Examples(X, check_numbers(np.asarray(y), kind, type(self).__name__)))

    @property
    @abstractmethod
    def _law(self) -> RegressionLaw:
        """How y spreads about what is predicted."""

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Examples:
        return check_examples(self, X, y, sample_weight, reset=reset, y_numeric=True, relative=self._relative_weights)

    def _means(self, X: Any) -> np.ndarray:
        """The means of rows that were checked."""
        return np.asarray(self._law.family.mean(X @ self.coef_ + self.intercept_))

    def _scores(self, data: Examples) -> np.ndarray:
        return np.asarray(np.abs(self._law.residuals(data.t, data.X @ self.coef_ + self.intercept_)) / self.scale_)

    def _findings(self, data: Examples, scores: np.ndarray, off: np.ndarray) -> Findings:
        return regression_findings(self, self._law.family, data, scores, off)


def lies_elsewhere(X: Any, y: Any) -> bool:
    """Whether X and y are more than arrays in memory: files, a table and the name of its target, rows on a cluster, or
    an array that is so large that it may be streamed."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    named = isinstance(first, (str, os.PathLike)) or isinstance(y, str) or hasattr(X, "files")
    large = isinstance(X, np.ndarray) and X.size > streamed.STREAMED
    return named or large or isinstance(X, (Dataset, OnDask)) or is_collection(X)
