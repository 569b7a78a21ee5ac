"""A sparse precision matrix of the rows that agree, its penalty chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import log, pi
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.estimators.covariance.graphical_lasso import TrimmedGraphicalLasso, location_and_covariance
from trimlearn.estimators.detector import FeatureRows
from trimlearn.estimators.penalty_choice import Split, check_grid, distinct_splits
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.scatter.graphical_lasso import graphical_lasso
from trimlearn.robust.scatter.units import RobustUnits

__all__ = ["TrimmedGraphicalLassoCV"]

Floats = NDArray[np.float64]

LEAST: Final = 1e-2  # the least alpha over the largest: scikit-learn's GraphicalLassoCV
PILOT: Final = 0.1  # of the largest alpha, by which rows are judged before one is chosen: the middle of the path
CLIP: Final = 2.0  # robust standard deviations: of a normal law 5 % are beyond
FLOOR: Final = 1e-12  # of a variance, relative to that of all rows: below, a fold has a constant column


class TrimmedGraphicalLassoCV(TrimmedGraphicalLasso):
    """Trimmed graphical lasso whose penalty is chosen by cross-validation that bad rows do not mislead.

    `TrimmedGraphicalLasso` as GraphicalLassoCV is to GraphicalLasso. Rows are judged by a fit of middling penalty; the
    penalty chosen gives the good rows of each fold the largest likelihood under the fit to the good rows of the others.

    Parameters
    ----------
    alphas : int or array-like, default=4
        The penalties to choose from, or how many there are on the grid, which is refined.
    n_refinements : int, default=4
        How many times the grid is refined around the best; not used where alphas are given.
    cv : int, splitter, iterable or None, default=None
        Folds, as in scikit-learn; None: five. Folds of a number depend on the contents of rows, not on their order.
    contamination : "auto", float in [0, 1) or int, default="auto"
        Share or number of bad rows; "auto" starts from the h of the highest breakdown and estimates it.
    reweight : bool, default=True
        Whether to readmit what the trimmed fit explains.
    tol : float, default=1e-4
        Bound on the duality gap, as in sklearn.covariance.GraphicalLasso.
    max_iter : int, default=1000
        Steps of the graphical lasso at most.
    assume_centered : bool, default=False
        Whether the location is known to be 0.
    random_state : int, RandomState instance or None, default=None
        For the random starts. Give an int for the same result in every call.
    verbose : bool or int, default=0
        Show on stderr what the fit is doing.

    Attributes
    ----------
    alpha_ : float
        The penalty chosen.
    cv_results_ : dict of ndarray
        ``alphas``, and for each the ``split{k}_test_score``, ``mean_test_score`` and ``std_test_score``: the mean
        log-likelihood of the good rows held out.
    precision_ : ndarray of shape (n_features, n_features)
        Θ, with exact zeros; with it all that `TrimmedGraphicalLasso` has.

    See Also
    --------
    TrimmedGraphicalLasso : The same for a given penalty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> X[:20, :2] += [[6.0, -6.0]]
    >>> model = TrimmedGraphicalLassoCV(random_state=0).fit(X)
    >>> bool(model.inlier_mask_[:20].any()), 0 < model.alpha_ < 1
    (False, True)
    """

    def __init__(
        self,
        alphas: Any = 4,
        *,
        n_refinements: int = 4,
        cv: Any = None,
        contamination: float | int | str = "auto",
        reweight: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        assume_centered: bool = False,
        random_state: Any = None,
        verbose: bool | int = 0,
    ) -> None:
        self.alphas = alphas
        self.n_refinements = n_refinements
        self.cv = cv
        self.contamination = contamination
        self.reweight = reweight
        self.tol = tol
        self.max_iter = max_iter
        self.assume_centered = assume_centered
        self.random_state = random_state
        self.verbose = verbose

    @property
    def alpha(self) -> float:  # type: ignore[override]
        """The penalty chosen."""
        return float(self.alpha_)

    def _fit(self, data: FeatureRows, h: float | None, warm: bool) -> Self:
        """The penalty, unless there is one already (``warm``), and the fit under it."""
        if warm:
            return super()._fit(data, h, warm)
        kept, s, where = distinct_rows(data.X, data.s)
        rows = FeatureRows(data.X[kept], s)
        splits = distinct_splits(self.cv, data.X, None, where, len(s))
        self.alpha_ = PILOT * _largest(_tame_covariance(rows, self.assume_centered))
        with warnings.catch_warnings():  # what is to be said is said of the last fit
            warnings.simplefilter("ignore", UserWarning)
            super()._fit(data, h, warm=False)
        self.cv_results_ = self._validated(rows.X, s * self.weights_[kept], splits)
        best = int(np.argmax(self.cv_results_["mean_test_score"]))
        self.alpha_ = float(self.cv_results_["alphas"][best])
        return super()._fit(data, h, warm=False)

    def _validated(self, X: Floats, c: Floats, splits: Sequence[Split]) -> dict[str, Floats]:
        """Likelihoods of the rows weighted c on a grid of alphas, which is refined around the best of them."""
        path = _LikelihoodPath(X, c, splits, self.assume_centered, self.tol, self.max_iter)
        largest = _largest(_covariance(X, c, self.assume_centered)[1])
        alphas = check_grid(self.alphas, "alphas", lambda count: np.geomspace(largest, LEAST * largest, count))
        scores = path(alphas)
        number = int(self.alphas) if np.ndim(self.alphas) == 0 else 0
        for _ in range(self.n_refinements if number > 1 else 0):
            best = int(np.argmax(scores.mean(axis=1)))
            above, below = alphas[max(best - 1, 0)], alphas[min(best + 1, len(alphas) - 1)]
            between = np.geomspace(above, below, number + 2)[1:-1]
            new = np.setdiff1d(between, alphas)[::-1]
            alphas, scores = np.append(alphas, new), np.vstack([scores, path(new)])
            order = np.argsort(-alphas)
            alphas, scores = alphas[order], scores[order]
        results = {"alphas": alphas} | {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
        return results | {"mean_test_score": scores.mean(axis=1), "std_test_score": scores.std(axis=1)}


@final
class _LikelihoodPath:
    """The mean log-likelihood of the rows held out in each split, for alphas from the largest to the least."""

    def __init__(self, X: Floats, c: Floats, splits: Sequence[Split], centred: bool, tol: float, max_iter: int) -> None:
        self._centred, self._limits = centred, (tol, max_iter)
        parts = [(np.where(train, c, 0.0), np.where(test, c, 0.0)) for train, test in splits]
        parts = [(train, test) for train, test in parts if np.count_nonzero(train) > 1 and test.any()]
        self._folds = [self._moments(X, train, test) for train, test in parts or [(c, c)]]

    def _moments(self, X: Floats, train: Floats, test: Floats) -> tuple[Floats, Floats]:
        """The covariance of the rows to fit, and of those to predict about the same location."""
        location, S = _covariance(X, train, self._centred)
        D = X[test > 0] - location
        return S, D.T @ (D * test[test > 0][:, None]) / test.sum()

    def __call__(self, alphas: Floats) -> Floats:
        """(alphas, splits)."""
        return np.array([self._scores(alphas, *fold) for fold in self._folds]).T.reshape(len(alphas), -1)

    def _scores(self, alphas: Floats, S: Floats, held_out: Floats) -> list[float]:
        scores = []
        for alpha in alphas:
            theta, _ = graphical_lasso(S, float(alpha), *self._limits)
            fit = float(np.linalg.slogdet(theta)[1]) - float(np.sum(held_out * theta))
            scores.append(0.5 * (fit - len(S) * log(2.0 * pi)))
        return scores


def _covariance(X: Floats, c: Floats, centred: bool) -> tuple[Floats, Floats]:
    """Location and covariance of rows weighted c; no variance is nearly 0, also where these are copies of one."""
    location, S = location_and_covariance(X, c, centred)
    diagonal = np.diag(S)
    np.fill_diagonal(S, np.maximum(diagonal, FLOOR * max(float(diagonal.max()), FLOOR * float(X.var(axis=0).max()))))
    return location, S


def _tame_covariance(rows: FeatureRows, centred: bool) -> Floats:
    """Of entries that are clipped: what bad rows cannot spoil before it is known which they are."""
    units = RobustUnits.of(rows.X, rows.s, centred)
    S = _covariance(np.clip(units.into(rows.X), -CLIP, CLIP), rows.s, centred)[1]
    return np.asarray(S * np.outer(units.scale, units.scale))


def _largest(S: Floats) -> float:
    """The least alpha under which all features are independent: the largest covariance; of a single feature, its
    variance."""
    off = np.abs(S - np.diag(np.diag(S)))
    return float(off.max()) or float(np.diag(S).max()) or 1.0
