"""A path of penalties, cross-validated on rows of which some are wrong.

A score that trims the residuals of each penalty by themselves rewards a penalty for rows that it gives up. Here a row
is good or bad once, for all penalties: the mean of squares is over the good rows of a fold. Who is good is settled
together with the penalty, in rounds: each fits the whole path to the good rows of the other folds, takes the penalty
that predicts the good rows of each fold best, and judges every row by the residuals under that penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from trimlearn._utils.threads import jobs
from trimlearn.robust.regression.elastic_net import Floats, elastic_net
from trimlearn.robust.regression.sparse import HonestFit, Mask, Rows

__all__ = ["PathFit", "PenaltyPath", "alpha_grid"]

Split = tuple[Mask, Mask]  # the rows to fit, and those to predict


@final
@dataclass(frozen=True)
class PathFit:
    """What cross-validation on rows weighted c gives: the honest fit of the best penalty, its ``alpha`` and
    ``l1_ratio``, and the errors (ratios, alphas, splits) of all of them."""

    honest: HonestFit
    alpha: float
    l1_ratio: float
    mse: Floats


@final
@dataclass(frozen=True)
class PenaltyPath:
    """Elastic nets of every l1_ratio, each with its alphas from the largest to the least."""

    rows: Rows
    splits: Sequence[Split]
    l1_ratios: Sequence[float]
    alphas: Sequence[Floats]
    n_jobs: Any = None

    def __call__(self, c: Floats, x0: Floats | None = None) -> HonestFit:
        return self.validate(c).honest

    def validate(self, c: Floats) -> PathFit:
        """Cross-validation on rows weighted c."""
        splits = [(train, test) for train, test in self.splits if np.any(c[train]) and np.any(c[test])]
        work = [(ratio, split) for ratio in range(len(self.l1_ratios)) for split in splits]
        found = jobs(partial(self._errors, c), work, self.n_jobs)
        errors = np.reshape(found, (len(self.l1_ratios), len(splits), -1, self.rows.n))  # NaN where not predicted
        tested = [c * test for _, test in splits]
        squares = [(np.nan_to_num(errors[:, k]) ** 2) @ weight / weight.sum() for k, weight in enumerate(tested)]
        mse = np.stack(squares, axis=-1) if splits else np.zeros((*errors.shape[:1], len(self.alphas[0]), 1))
        mean = np.average(mse, axis=-1, weights=[weight.sum() for weight in tested] or None)
        ratio, alpha = (int(best) for best in np.unravel_index(int(np.argmin(mean)), mean.shape))
        x = self._path(ratio, c)[alpha]
        r = self.rows.residuals(x)
        for k, weight in enumerate(tested):
            r = np.where(weight > 0, errors[ratio, k, alpha], r)
        strength = float(self.alphas[ratio][alpha]), float(self.l1_ratios[ratio])
        return PathFit(HonestFit(x, c, r), *strength, mse)

    def _errors(self, c: Floats, ratio: int, split: Split) -> Floats:
        """The residuals (alphas, n) of the rows that one split predicts, NaN elsewhere."""
        train, test = split
        rows, path = self.rows, self._path(ratio, np.where(train, c, 0.0))
        r = np.full((len(path), rows.n), np.nan)
        coef, constant = (path[:, :-1], path[:, -1:]) if rows.intercept else (path, 0.0)
        r[:, test] = rows.t[test] - (coef @ rows.X[test].T + constant)
        return r

    def _path(self, ratio: int, c: Floats) -> Floats:
        rows = self.rows
        found, _ = elastic_net(
            rows.X, rows.t, c, self.alphas[ratio], float(self.l1_ratios[ratio]), intercept=rows.intercept
        )
        return found


def alpha_grid(rows: Rows, c: Floats, l1_ratio: float, number: int, eps: float) -> Floats:
    """``number`` alphas from the least that sets every coefficient to zero, down to eps times that; as scikit-learn's.

    >>> rows = Rows(np.array([[-1.0], [1.0]]), np.array([0.0, 4.0]), np.ones(2), True)
    >>> alpha_grid(rows, rows.s, 1.0, 3, eps=0.01)
    array([2.  , 0.2 , 0.02])
    """
    c = c / c.sum()
    X, t = (rows.X - c @ rows.X, rows.t - c @ rows.t) if rows.intercept else (rows.X, rows.t)
    largest = float(np.max(np.abs((c * t) @ X))) / l1_ratio
    least = float(np.finfo(np.float64).resolution)
    return np.geomspace(largest, eps * largest, number) if largest > least else np.full(number, least)
