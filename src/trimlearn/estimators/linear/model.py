"""What linear models share: a fit to rows wherever they lie, and what a regression says about rows, seen or unseen."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin, is_classifier

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import is_collection
from trimlearn.estimators import streamed
from trimlearn.estimators.base import Trimmed
from trimlearn.estimators.inputs import check_numbers
from trimlearn.estimators.linear.examples import Examples, check_examples, check_features
from trimlearn.estimators.on_dask import OnDask, is_on_dask, lazily
from trimlearn.estimators.streamed import by_blocks, opened, read_whole, set_column_names
from trimlearn.inference.infer import IntervalMixin
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
            h = self._h(self.contamination, data.S)
            if not self._fit_many(data, h):
                self._fit(data, h, warm=self.warm_start and hasattr(self, "_x"))
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
    def _fit_many(self, data: Examples, h: float | None) -> bool:
        """Whether rows in memory were so many that the model was fitted to them in another way than by `_fit`."""

    @abstractmethod
    def _fit_on_dask(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit to rows on a cluster."""

    @abstractmethod
    def _fit_stream(self, data: Dataset, h: float | None) -> None:
        """Fit to a dataset that is larger than memory, keeping h; None: find out."""


class LinearRegressor(IntervalMixin, RegressorMixin, LinearModel):  # type: ignore[misc]
    """Predictions, and judgements of targets, by ``coef_``, ``intercept_`` and the scale that a fit has found."""

    coef_: np.ndarray
    intercept_: float

    def predict(self, X: Any) -> np.ndarray:
        """The mean of y for every row of X, which may be a dataset, or Dask's."""
        if is_on_dask(X):
            return lazily(self, X, "predict", self.coef_.dtype)
        if isinstance(X, Dataset):
            return by_blocks(self, X, lambda rows, _: self._means(rows))
        return self._means(check_features(self, X))

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

    @abstractmethod
    def _means(self, X: Any) -> np.ndarray:
        """The means of rows that were checked."""

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Examples:
        return check_examples(self, X, y, sample_weight, reset=reset, y_numeric=True)

    def _fit_many(self, data: Examples, h: float | None) -> bool:
        return False


def lies_elsewhere(X: Any, y: Any) -> bool:
    """Whether X and y are more than arrays in memory: files, a table and the name of its target, rows on a cluster, or
    an array that is so large that it may be streamed."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    named = isinstance(first, (str, os.PathLike)) or isinstance(y, str) or hasattr(X, "files")
    large = isinstance(X, np.ndarray) and X.size > streamed.STREAMED
    return named or large or isinstance(X, (Dataset, OnDask)) or is_collection(X)
