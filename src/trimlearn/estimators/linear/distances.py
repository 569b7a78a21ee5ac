"""Robust distances among the features of a regression, from the columns that can have one.

Dummies of categories, and other columns of few values, have no scatter in a minimum covariance determinant: half of the
rows are alike there, and the others are as good as infinitely far. Distances are those of the other columns (Hubert and
Rousseeuw 1997, Robust regression with both continuous and binary regressors, J. Statist. Plann. Inference 57). Of
columns that determine each other as many are taken as are independent: the distances are the same for any choice.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.linalg import qr
from scipy.sparse import issparse

from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.inference.table import distance_parts
from trimlearn.robust.scale import Chi

__all__ = ["Distances", "feature_distances"]

FAR = 0.025  # share of clean rows beyond the distance of a leverage point (Rousseeuw and van Zomeren 1990)
ROWS_PER_COLUMN = 5  # of which a robust covariance is made, at least: the advice of Rousseeuw and van Zomeren (1990)
# Of the rows, that may share one value of a column. With 0.3, 5 % of clean rows are called far at most, and up to half
# of them with 0.35: see python -m benchmarks.calibration ties.
ALIKE = 0.3
# Median deviations, to which cells are drawn in before a covariance is found: far out they stay, and their squares, at
# most 10¹² of the others', do not hide these by rounding.
WILD = 1e6


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
    X = np.asarray(X)
    columns = np.array([j for j in range(X.shape[1]) if _most_alike(X[:, j], s) <= ALIKE], dtype=np.intp)
    while len(columns) and len(X) >= ROWS_PER_COLUMN * len(columns):
        with warnings.catch_warnings():  # that it is singular is no fault of the regression
            warnings.simplefilter("ignore", UserWarning)
            shape = TrimmedCovariance(random_state=seed).fit(_drawn_in(X[:, columns]), sample_weight=s)
        rank = shape._raw.rank
        if rank == len(columns):
            return Distances(columns, shape)
        columns = columns[_independent(shape.raw_covariance_, rank)]
    return None


def _most_alike(column: np.ndarray, s: np.ndarray | None) -> float:
    """The share of the rows that have the commonest value."""
    _, place = np.unique(column, return_inverse=True)
    mass = np.bincount(place, s)
    return float(mass.max() / mass.sum())


def _drawn_in(X: np.ndarray) -> np.ndarray:
    middle = np.median(X, axis=0)
    reach = WILD * np.median(np.abs(X - middle), axis=0)
    return np.asarray(np.clip(X, middle - reach, middle + reach))


def _independent(S: np.ndarray, rank: int) -> np.ndarray:
    """As many columns as there are directions in which S varies, that span these directions best."""
    scale = np.sqrt(np.diag(S))
    scale = np.where(scale > 0, scale, 1.0)
    V = np.linalg.eigh(S / np.outer(scale, scale))[1]
    return np.sort(qr(V[:, len(S) - rank :].T, pivoting=True, mode="r")[1][:rank])
