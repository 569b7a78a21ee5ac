"""Robust distances among the features of a regression, from the columns that can have one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.sparse import issparse

from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.inference.table import distance_parts
from trimlearn.robust.regression.features import FAR, measured
from trimlearn.robust.scale import Chi


@final
@dataclass(frozen=True)
class Distances:
    """Robust distances by the ``columns`` of X that have a scatter, of which ``shape`` is the robust covariance."""

    columns: np.ndarray
    shape: TrimmedCovariance

    @property
    def limit(self) -> float:
        """The distance of a leverage point."""
        return Chi(len(self.columns)).upper(FAR)

    def of(self, X: np.ndarray) -> np.ndarray:
        """The distance of each row of X, which has all columns."""
        return np.asarray(np.sqrt(self.shape.mahalanobis(X[:, self.columns])))

    def parts(self, A: np.ndarray) -> np.ndarray:
        """What each column adds to the squared distances of the rows A; 0 for one that has no scatter."""
        parts = np.zeros(A.shape)
        parts[:, self.columns] = distance_parts(A[:, self.columns], self.shape.location_, self.shape.get_precision())
        return parts


def feature_distances(X: Any, s: np.ndarray | None, seed: Any) -> Distances | None:
    """Those of the rows of X, each counted s times; None where there are none: in sparse or few data, or where no
    column has a scatter.

    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> X = np.column_stack([X, X.sum(axis=1), np.arange(50) % 3 == 0])  # a sum and a dummy
    >>> found = feature_distances(X, None, seed=0)
    >>> len(found.columns), 3 in found.columns
    (2, False)
    """
    if issparse(X):
        return None

    def scatter(A: np.ndarray) -> tuple[TrimmedCovariance, np.ndarray, int]:
        with warnings.catch_warnings():  # that it is singular is no fault of the regression
            warnings.simplefilter("ignore", UserWarning)
            shape = TrimmedCovariance(random_state=seed).fit(A, sample_weight=s)
        return shape, shape.raw_covariance_, shape._raw.rank

    found = measured(np.asarray(X), s, scatter)
    return None if found is None else Distances(*found)
