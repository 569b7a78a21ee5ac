"""How far out rows lie in their features, and how much likelier that makes them to be wrong.

Dummies of categories, and other columns of few values, have no scatter in a minimum covariance determinant: half of the
rows are alike there, and the others are as good as infinitely far. Distances are those of the other columns (Hubert and
Rousseeuw 1997, Robust regression with both continuous and binary regressors, J. Statist. Plann. Inference 57). Of
columns that determine each other as many are taken as are independent: the distances are the same for any choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from trimlearn.robust.regression.mm import WeightedRows, grams
from trimlearn.robust.scale import Chi
from trimlearn.robust.scatter.fit import ScatterFit
from trimlearn.robust.scatter.judge import DistanceJudge
from trimlearn.robust.scatter.mcd import default_h, mcd

__all__ = ["FAR", "FeatureOdds", "feature_odds", "measured", "odds_of"]

Floats = NDArray[np.float64]
Shape = TypeVar("Shape")

FAR = 0.025  # share of clean rows beyond the distance of a leverage point (Rousseeuw and van Zomeren 1990)
ROWS_PER_COLUMN = 5  # of which a robust covariance is made, at least: the advice of Rousseeuw and van Zomeren (1990)
# Of the rows, that may share one value of a column. With 0.3, 5 % of clean rows are called far at most, and up to half
# of them with 0.35: see python -m benchmarks.calibration ties.
ALIKE = 0.3
# Median deviations, to which cells are drawn in before a covariance is found: far out they stay, and their squares, at
# most 10¹² of the others', do not hide these by rounding.
WILD = 1e6
STARTS = 50  # at random, besides the deterministic ones: a limit on time, where only the size of odds is asked
SURE = 3.0  # the logarithm of the odds that features alone may give: a row that fits well is not called wrong by them


def measured(
    X: Floats, s: Floats | None, scatter: Callable[[Floats], tuple[Shape, Floats, int]]
) -> tuple[NDArray[np.intp], Shape] | None:
    """The columns of X that have a scatter, and what ``scatter`` finds for them: a shape, its covariance and the rank
    of that; None where there are too few rows, or no column has one. s: how often each row counts."""
    columns = np.array([j for j in range(X.shape[1]) if _most_alike(X[:, j], s) <= ALIKE], dtype=np.intp)
    while len(columns) and len(X) >= ROWS_PER_COLUMN * len(columns):
        shape, covariance, rank = scatter(_drawn_in(X[:, columns]))
        if rank == len(columns):
            return columns, shape
        columns = columns[_independent(covariance, rank)]
    return None


@final
@dataclass(frozen=True)
class FeatureOdds:
    """How much likelier its features make each row to be wrong, see `odds_of`.

    overall: by its distance from most rows. Q, limit: orthonormal columns that span the features and a constant, and
    the distance of a leverage point; None where none is known.
    """

    overall: Floats
    Q: Floats | None = None
    limit: float = 1.0

    def beside(self, right: Floats) -> Floats:
        """The odds (B, n) if rows are ``right`` so often (B, n): the larger of those overall, and of those by the
        distances from the right rows, among which no cluster of wrong ones hides."""
        if self.Q is None:
            return np.broadcast_to(self.overall, right.shape)
        reach = np.einsum("bnj,nj->bn", self.Q @ np.linalg.inv(grams(right, self.Q)), self.Q)
        squares = np.maximum(right.sum(axis=1, keepdims=True) * reach - 1.0, 0.0)
        return np.maximum(self.overall, odds_of(np.sqrt(squares), self.limit))


def feature_odds(X: Floats, s: Floats, seed: int | None) -> FeatureOdds:
    """Those of each row of X, rows counting s times. seed: None where it is not asked how far they lie from most rows.

    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> X[:4] += 20.0
    >>> feature_odds(X, np.ones(40), seed=0).overall[[0, 1, 2, 3, 30]]
    array([3., 3., 3., 3., 0.])
    """

    def scatter(A: Floats) -> tuple[ScatterFit | None, Floats, int]:
        if seed is None:
            covariance = np.atleast_2d(np.cov(A.T, aweights=s))
            return None, covariance, int(np.linalg.matrix_rank(covariance, hermitian=True))
        h = default_h(float(s.sum()), A.shape[1])
        judge, raw = DistanceJudge(A, s, None), mcd(A, s, h, starts=STARTS, seed=seed)
        trimmed = judge.trimmed(raw, h)
        sharp = judge.fitted(trimmed.model.refitted(A, s, trimmed.cut.weights, False), h)
        return sharp.model, raw.covariance, raw.rank

    found = measured(X, s, scatter)
    if found is None:
        return FeatureOdds(np.zeros(len(X)))
    columns, shape = found
    limit = Chi(len(columns)).upper(FAR)
    overall = np.zeros(len(X)) if shape is None else odds_of(np.sqrt(shape.squared_distances(X[:, columns])), limit)
    spanned = np.column_stack([np.ones(len(X)), _drawn_in(X[:, columns])])
    return FeatureOdds(overall, WeightedRows(spanned, s, s).Q, limit)


def odds_of(distance: Floats, limit: float) -> Floats:
    """The logarithm of the factor by which features at this robust ``distance`` make it likelier that a row is wrong.

    Features of right rows fall off beyond the ``limit`` as a t law with two degrees of freedom does, the heaviest tail
    for which a mean exists, and those of wrong rows as a law without a scale: the ratio of both grows as the square.

    >>> odds_of(np.array([1.0, 6.0, 1e9]), limit=3.0).round(2)
    array([0.  , 1.39, 3.  ])
    """
    return np.asarray(np.clip(2 * np.log(np.maximum(distance, 1e-300) / limit), 0.0, SURE))


def _most_alike(column: Floats, s: Floats | None) -> float:
    """The share of the rows that have the commonest value."""
    _, place = np.unique(column, return_inverse=True)
    mass = np.bincount(place, s)
    return float(mass.max() / mass.sum())


def _drawn_in(X: Floats) -> Floats:
    middle = np.median(X, axis=0)
    reach = WILD * np.median(np.abs(X - middle), axis=0)
    return np.asarray(np.clip(X, middle - reach, middle + reach))


def _independent(S: Floats, rank: int) -> NDArray[np.intp]:
    """As many columns as there are directions in which S varies, that span these directions best."""
    scale = np.sqrt(np.diag(S))
    scale = np.where(scale > 0, scale, 1.0)
    V = np.linalg.eigh(S / np.outer(scale, scale))[1]
    return np.sort(qr(V[:, len(S) - rank :].T, pivoting=True, mode="r")[1][:rank])
