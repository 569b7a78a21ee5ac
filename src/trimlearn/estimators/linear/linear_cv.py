"""Sparse least trimmed squares that chooses its penalty by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np

from trimlearn._utils.validation import check_choice
from trimlearn.estimators.linear.examples import Distinct, Examples
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.estimators.linear.sparse import Net, fit_without_penalty, half, is_selective, rows_of, warn_of_dispute
from trimlearn.estimators.penalty_choice import Split, check_grid, check_ratios, distinct_splits
from trimlearn.robust.regression.elastic_net import Floats
from trimlearn.robust.regression.sparse import Rows, best_rows, drawn_in
from trimlearn.robust.regression.sparse_path import PenaltyPath, alpha_grid
from trimlearn.robust.scale import rounding_floor

PILOT = 20, 1e-2  # penalties, and the least over the largest, by which rows are judged: a limit on time
# Errors of five folds hang on which rows share one: of few rows they are put into folds five times, until so many are
# held out (Roberts and Nowak 2014). What LassoCV gains by that, docs/sparse.md has; from 170 rows on it is nothing.
TIMES, HELD_OUT = 5, 500
RATIO = 1e-2  # of an l1_ratio below, the largest alpha of scikit-learn's grid says nothing: it grows without limit


class TrimmedLinearRegressionCV(TrimmedLinearRegression):
    """Sparse least trimmed squares whose penalty is chosen by cross-validation that wrong rows do not mislead.

    `TrimmedLinearRegression` with ``penalty`` "l1" or "elasticnet", as LassoCV and ElasticNetCV are to Lasso and
    ElasticNet. A penalty is scored by the mean squared error of held-out rows; of the good ones, which are the same for
    all penalties: who is good is settled together with the penalty, in rounds, by residuals of models that have not
    seen the row.

    Parameters
    ----------
    contamination : float, int or "auto"
        As in `TrimmedLinearRegression`. The penalty is chosen by the rows that "auto" calls good.
    penalty : {"l1", "elasticnet"}
        As scikit-learn's LassoCV and ElasticNetCV have it, on the rows kept.
    l1_ratio : float or list of float
        The share of L1 in penalty="elasticnet", or those to choose from.
    eps : float
        The least alpha of the path over the largest.
    n_alphas : int
        How many alphas there are on the path, for each l1_ratio.
    alphas : int, array-like or None
        The alphas to choose from, or how many there are; None: ``n_alphas`` of them.
    cv : int, splitter, iterable or None
        Folds, as in scikit-learn; None: five, and of fewer than 250 rows in up to five arrangements. Folds of a number
        depend on the contents of rows, not on their order.
    fit_intercept : bool
        Whether the model has an intercept; no penalty is laid on it.
    reweight : bool
        False: ``coef_`` is the trimmed fit itself, less efficient on clean data.
    n_jobs : int or None
        Threads that fit folds side by side; None: one.
    random_state : int, RandomState or None
        Seed of starts. Give an integer to get the same result again where these matter.
    verbose : bool or int
        Whether to show on stderr what the fit is doing.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        The penalty chosen.
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratio, n_alphas)
        The path, from the largest to the least.
    mse_path_ : ndarray of shape (n_alphas, n_folds) or (n_l1_ratio, n_alphas, n_folds)
        The mean squared error of the good rows of every fold.
    coef_, intercept_ : ndarray of shape (p,) and float
        The final fit; with it all that `TrimmedLinearRegression` has.

    See Also
    --------
    TrimmedLinearRegression : The same for a given penalty.

    References
    ----------
    Alfons, Croux and Gelper (2013), Sparse least trimmed squares regression for analyzing high-dimensional large data
    sets, Annals of Applied Statistics 7. Roberts and Nowak (2014), Stabilizing the lasso against cross-validation
    variability, Computational Statistics and Data Analysis 70, for several arrangements of folds.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 80))
    >>> y = 3 * X[:, 0] - 3 * X[:, 1] + rng.standard_normal(60)
    >>> y[:9] += 30
    >>> model = TrimmedLinearRegressionCV(random_state=0).fit(X, y)
    >>> int((~model.inlier_mask_[:9]).sum()), np.argsort(-np.abs(model.coef_))[:2]
    (9, array([0, 1]))
    """

    # What the plain estimator can be told, and this one decides.
    criterion = "lts"
    efficiency = "reweight"
    method = None
    max_passes = None
    tol = None
    warm_start = False
    _chooses_alpha = True

    def __init__(
        self,
        contamination: float | int | str = "auto",
        *,
        penalty: str = "l1",
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        n_alphas: int = 100,
        alphas: Any = None,
        cv: Any = None,
        fit_intercept: bool = True,
        reweight: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = 0,
    ) -> None:
        self.contamination = contamination
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.n_alphas = n_alphas
        self.alphas = alphas
        self.cv = cv
        self.fit_intercept = fit_intercept
        self.reweight = reweight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, data: Examples, h: float | None, warm: bool) -> Self:
        """The penalty, unless there is one already (``warm``), and the fit under it, begun with the good rows."""
        if not warm:
            self._choose(data)
        return super()._fit(data, h, warm=True)

    def _choose(self, data: Examples) -> None:
        """Settle who is good by a short path of penalties; then the penalty, by the path that was asked for."""
        check_choice(self.penalty, ("l1", "elasticnet"), "penalty")
        ratios = self._ratios()
        if not is_selective(self, data):
            raise ValueError("X is too large to be written out; choose alpha on a sample of its rows.")
        distinct = Distinct.of(data)
        rows, floor = rows_of(self, distinct.rows), rounding_floor(distinct.rows.t)
        splits = distinct_splits(self.cv, data.X, data.t, distinct.where, distinct.rows.n)
        good = self._good(rows, splits, ratios, floor)
        alphas = [self._grid(rows, good, ratio) for ratio in ratios]
        times = int(np.clip(HELD_OUT // np.count_nonzero(good), 1, TIMES))
        again = distinct_splits(self.cv, data.X, data.t, distinct.where, distinct.rows.n, times=times)
        found = PenaltyPath(rows, again, ratios, alphas, self.n_jobs).validate(good)
        self.alpha_, self.l1_ratio_ = found.alpha, found.l1_ratio
        single = len(ratios) == 1
        self.alphas_ = alphas[0] if single else np.array(alphas)
        self.mse_path_ = found.mse[0] if single else found.mse
        self._x, self._explained = found.honest.x, good > 0

    def _good(self, rows: Rows, splits: Sequence[Split], ratios: Sequence[float], floor: float) -> Floats:
        """The weights of the rows that the path explains. The search begins with the penalty that is best where wild
        entries are drawn in."""
        tame = drawn_in(rows)
        grid = [alpha_grid(tame, rows.s, max(ratio, RATIO), *PILOT) for ratio in ratios]
        first = PenaltyPath(tame, splits, ratios, grid, self.n_jobs).validate(rows.s)
        search = Net(first.alpha, first.l1_ratio).for_rows(rows)
        path = PenaltyPath(rows, splits, ratios, grid, self.n_jobs)

        def fitter(other: Rows) -> PenaltyPath:
            return replace(path, rows=other)

        settled = best_rows(rows, search, fitter, half(rows), seed=self._seed(), floor=floor)
        with warnings.catch_warnings():  # what is to be said is said of the last fit
            warnings.simplefilter("ignore", UserWarning)
            plain = fit_without_penalty(self, rows)
        if plain is not None:  # which leverage points that agree hide less from
            return np.asarray(min(settled.fit.c, rows.s * plain.inlier_mask_, key=np.sum))
        if self.contamination == "auto":
            warn_of_dispute(settled)
        return settled.fit.c

    def _grid(self, rows: Rows, c: Floats, ratio: float) -> Floats:
        number = self.n_alphas if self.alphas is None else self.alphas
        name = "n_alphas" if self.alphas is None else "alphas"
        return check_grid(number, name, lambda count: alpha_grid(rows, c, max(ratio, RATIO), count, self._eps()))

    def _eps(self) -> float:
        if not isinstance(self.eps, Real) or not 0 < self.eps < 1:
            raise ValueError(f"eps must be a number between 0 and 1, got {self.eps!r}.")
        return float(self.eps)

    def _ratios(self) -> list[float]:
        return [1.0] if self.penalty == "l1" else check_ratios(self.l1_ratio, "l1_ratio")

    @property
    def _strength(self) -> tuple[float, float]:
        return self.alpha_, self.l1_ratio_
