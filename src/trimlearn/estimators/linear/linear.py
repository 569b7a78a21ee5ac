"""Least trimmed squares and its sparse relatives."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.estimators.linear.penalties import make_penalty
from trimlearn.estimators.linear.predictor import Data, Fit
from trimlearn.estimators.linear.regressor import TrimmedRegressor
from trimlearn.inference.families import Family, family
from trimlearn.losses import LeastSquares
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.exact import COLUMNS
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.robust.regression.lts import least_median_of_squares, least_trimmed_squares
from trimlearn.robust.scale import judge, rounding_floor
from trimlearn.robust.verdict import Verdict
from trimlearn.smart import alternating
from trimlearn.smart.method import Method
from trimlearn.solution import Status
from trimlearn.weights import AllOnes

EXACT_PASSES = 300  # of concentration steps that are exact
FEW_ROWS = 3  # per coefficient: below, clean data may look contaminated
CLEAN_SETS = 9  # of simulated data, none of which may look as bad
SIMULATED = 10_000  # entries of the design up to which they are

__all__ = ["TrimmedLinearRegression"]


class TrimmedLinearRegression(TrimmedRegressor):
    """Linear regression that fits the rows it can explain: least trimmed squares, with or without a penalty,

        min over x, w of  Σ wᵢ ½(yᵢ − ⟨vᵢ, x⟩ − x₀)² + penalty(x),   0 ≤ wᵢ ≤ 1,  Σ wᵢ = h,

    then, with ``reweight``, least squares on the rows whose residual is not too large for the robust scale found.

    Parameters
    ----------
    contamination : float, int or "auto"
        The share, or number, of rows to trim; h is the rest. "auto": as many as there can be, just over half of the
        rows being kept, and then the share of residuals that no normal law explains.
    penalty : {None, "l2", "l1", "elasticnet", "scad", "mcp", "l0"}
        With ``alpha`` and ``l1_ratio`` as scikit-learn's Ridge, Lasso and ElasticNet have them, on the rows kept.
        "l1" is sparse least trimmed squares (Alfons, Croux and Gelper 2013).
    criterion : {"lts", "lms"}
        "lms": least median of squares, the h-th smallest squared residual (Rousseeuw 1984). No penalty.
    fit_intercept : bool
    reweight : bool
        False: `coef_` is the trimmed fit itself, less efficient on clean data.
    method : Method, optional
        How to solve, one of `trimlearn.smart`. None: concentration steps from many starts where X is small.
    max_passes, tol, random_state, warm_start
        As in `trimlearn.solve`. None: as close as the size of the data allows, from tol = 10⁻⁹ where passes cost
        nothing to 10⁻³ within as many as prediction gains from. warm_start begins where the last fit ended.
    verbose : bool or int
        Show on stderr what the fit is doing.

    Attributes
    ----------
    coef_, intercept_ : the final fit; raw_coef_, raw_intercept_ : the trimmed one
    weights_, raw_weights_ : (n,), how much each row counts in either
    inlier_mask_ : (n,), weights_ > 0
    contamination_ : float, the share of bad rows
    scale_ : float, the robust standard deviation of the errors; raw_scale_ : of the trimmed fit
    outlier_scores_ : (n,), |residual|/scale_
    objective_ : float, the trimmed objective F at the raw fit
    history_, n_iter_ : its records, and how many there are

    References
    ----------
    Rousseeuw and Van Driessen (2006), Data Mining and Knowledge Discovery 12. Aravkin and Davis (2020), Mathematics of
    Operations Research 45.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegression
    >>> X = np.arange(20.0)[:, None]
    >>> y = 3 * X[:, 0] + 1 + 0.1 * np.sin(np.arange(20))
    >>> y[[2, 7, 11]] += 100
    >>> model = TrimmedLinearRegression().fit(X, y)
    >>> model.coef_.round(2), np.flatnonzero(~model.inlier_mask_)
    (array([3.]), array([ 2,  7, 11]))
    """

    criteria: ClassVar[tuple[str, ...]] = ("lts", "lms")

    def __init__(
        self,
        contamination: float | int | str = "auto",
        *,
        penalty: str | None = None,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        criterion: str = "lts",
        fit_intercept: bool = True,
        reweight: bool = True,
        method: Method | None = None,
        max_passes: float | None = None,
        tol: float | None = None,
        random_state: Any = 0,
        warm_start: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        self.contamination = contamination
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.criterion = criterion
        self.fit_intercept = fit_intercept
        self.reweight = reweight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _begin(self, data: Data) -> None:
        if self.criterion not in self.criteria:
            raise ValueError(f"criterion must be 'lts' or 'lms', got {self.criterion!r}.")
        if self.criterion == "lms" and self.penalty is not None:
            raise ValueError("criterion='lms' takes no penalty; use criterion='lts'.")

    def _loss(self, data: Data) -> PredictionLoss:
        return LeastSquares(data.X, data.t, intercept=self.fit_intercept)

    def _r2(self, kept: float, S: float) -> Regularizer:
        if self.penalty == "l2":  # Ridge's alpha stands beside a sum, the others' beside a mean
            return make_penalty("l2", self.alpha, self.l1_ratio, 1 / S)
        return super()._r2(kept, S)

    @property
    def _family(self) -> Family:
        return family("normal")

    def _ridge(self, data: Data) -> float:
        return float(self.alpha)

    def _residuals(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.asarray(t - z)

    def _least_scale(self, t: np.ndarray) -> float:
        return rounding_floor(t)

    def _method(self) -> Method | None:
        """Where the inner problem has a closed form, concentration steps are exact, and few."""
        exact = self.penalty in (None, "l2") and self.n_features_in_ < COLUMNS
        return alternating() if self.method is None and exact else self.method

    def _limits(self, problem: Problem) -> tuple[float, float]:
        passes, tol = super()._limits(problem)
        return min(passes, EXACT_PASSES) if self.max_passes is None and self._method() is not None else passes, tol

    def _warn(self, fit: Fit) -> None:
        if fit.objective > self._least_scale(self._training.t) ** 2:  # else it is exact, and what moves is rounding
            super()._warn(fit)

    def _starts(self, data: Data, h: float) -> list[str | Array]:
        if self.method is not None or self._too_large(data):
            return ["continuation"]
        x = self._lts(data, data.t, h)
        return [x] if self.penalty is None else [x, "continuation"]

    def _by_chance(self, data: Data, verdict: Verdict) -> bool:
        """With few rows per coefficient, half of them can be fitted far too well, and the others look wrong.

        Then the scale of all residuals of least squares must exceed the robust one by more than it ever does in clean
        data on the same design, simulated.
        """
        n, q = data.n, self._parameters
        if self.penalty is not None or verdict.inliers.all() or not q < n < FEW_ROWS * q or n * q > SIMULATED:
            return False
        A, h, draw = self._design(data), self._robust_h(data), np.random.Generator(np.random.Philox(key=self._seed()))
        seen = _least_squares_scale(A, data.t.astype(np.float64), data.s) / verdict.scale
        return seen <= max(_excess(A, draw.standard_normal(n), h, data.s) for _ in range(CLEAN_SETS))

    def _untrimmed(self, data: Data, weights: np.ndarray, x0: Array) -> Fit:
        s = weights if data.s is None else weights * data.s
        kept = float(s.sum(dtype=np.float64))
        r2 = self._r2(kept, kept)
        problem = Problem(self._loss(data), AllOnes(), r2, s)
        x = problem.loss.minimiser(s / kept, problem.r2, x0)
        if x is None:
            return super()._untrimmed(data, weights, x0)
        return Fit(x, weights, problem.objective(np.ones(data.n), x), [], Status.CONVERGED)

    def _trimmed(self, data: Data, h: float, x0: Array | None) -> Fit:
        if self.criterion == "lts":
            return super()._trimmed(data, h, x0)
        t = data.t.astype(np.float64)
        found = least_median_of_squares(self._design(data), t, h, data.s, seed=self._seed())
        return Fit(found.coef, found.w, found.objective, [], Status.CONVERGED)


def _excess(A: np.ndarray, t: np.ndarray, h: float, s: np.ndarray | None) -> float:
    """The scale of the residuals of least squares, in units of the robust one."""
    r = t - A @ least_trimmed_squares(A, t, h, s).coef
    return _least_squares_scale(A, t, s) / judge(r, h, A.shape[1], s).scale


def _least_squares_scale(A: np.ndarray, t: np.ndarray, s: np.ndarray | None) -> float:
    c = np.ones(len(t)) if s is None else s
    root = np.sqrt(c)
    r = t - A @ np.linalg.lstsq(A * root[:, None], t * root, rcond=None)[0]
    return float(np.sqrt((c @ r**2) / max(c.sum() - A.shape[1], 1.0)))
