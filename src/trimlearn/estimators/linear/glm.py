"""Trimmed generalised linear models, and regression with the classical robust losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_choice, check_magnitude, check_positive
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed
from trimlearn.estimators.inputs import check_numbers
from trimlearn.estimators.linear.data import Distinct, Examples, check_examples, check_features
from trimlearn.estimators.linear.doubts import warn_of_exact_fit, warn_of_no_trimming
from trimlearn.estimators.linear.explain import (
    fitted_model,
    p_values,
    regression_findings,
)
from trimlearn.estimators.linear.penalties import make_penalty
from trimlearn.estimators.linear.problems import Solver
from trimlearn.estimators.linear.streamed_glm import fit_glm_stream
from trimlearn.estimators.streamed import by_blocks, column_names, opened, read_whole
from trimlearn.inference.families import Family, family
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.infer import IntervalMixin
from trimlearn.inference.probability import row_probabilities
from trimlearn.inference.table import Findings
from trimlearn.losses import Gamma, Huber, LeastSquares, Logistic, Poisson, SmoothL1, StudentT
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.linear import Layer
from trimlearn.problem import Problem
from trimlearn.progress import stage
from trimlearn.robust.labels.crossfit import Judged, judge_labels
from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.scale import judge, raw_scale, rounding_floor
from trimlearn.robust.verdict import Verdict, readmit
from trimlearn.smart.method import Method
from trimlearn.smart.sizes import SMALL
from trimlearn.streams import Dataset
from trimlearn.weights import AllOnes, CappedSimplex

__all__ = ["TrimmedGLM"]

FAMILIES: dict[str, Callable[..., PredictionLoss]] = {"poisson": Poisson, "gamma": Gamma, "binomial": Logistic}
# What y may be: the support of each law.
RANGES = {"poisson": (0.0, inf, "counts >= 0"), "gamma": (0.0, inf, "amounts > 0"), "binomial": (0.0, 1.0, "0 to 1")}
# The robust losses, and what ``shape`` is by default: 95 % efficient where errors are normal (Holland and Welsch 1977);
# the degrees of freedom that Lange, Little and Taylor (1989) advise; a tip that is narrow beside the scale.
SHAPES = {"huber": 1.345, "student_t": 4.0, "l1": 0.01}
USUAL = 2.5  # the score above which a label is called an outlier where none of the training data was: as in `judge`
ROUNDING = 1e-9  # a score that is less by this share is the same but for rounding
ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says
TINY = 1e-150  # a scale whose square is still a positive number


class TrimmedGLM(IntervalMixin, RegressorMixin, Trimmed):  # type: ignore[misc]
    """A generalised linear model, or a regression with a robust loss, that fits the rows it can explain.

    It solves

        min over x, w of  1/n Σ wᵢ fᵢ(x) + penalty(x),   0 ≤ wᵢ ≤ 1,  Σ wᵢ = h,

    where fᵢ is half the unit deviance of yᵢ (FAST-TLE, Neykov and Müller 2003), or a classical robust loss of the
    residual; then, with ``reweight``, the same fit to all rows whose deviance residual is not too large.

    Parameters
    ----------
    loss : {"poisson", "gamma", "binomial", "huber", "student_t", "l1"}
        The first three are families, with links log, log and logit; y of "binomial" are labels 0, 1 or proportions.
        The others are losses of y − z, in units of a robust scale of the errors found by least trimmed squares.
    contamination : float, int or "auto"
        The share, or number, of rows to trim. "auto": as many as there can be, and then the share of residuals that
        the family does not explain. 0 with a robust loss is the classical M-estimator.
    shape : float, optional
        Of "huber": where the loss turns linear (1.345). Of "student_t": degrees of freedom (4). Of "l1": half-width of
        the rounded tip (0.01).
    penalty : {"l2", "l1", "elasticnet", "scad", "mcp", "l0"} or None
        As in `TrimmedLinearRegression`.
    alpha : float
        The strength of the penalty, beside the mean loss as in scikit-learn's PoissonRegressor.
    l1_ratio : float
        The share of L1 in penalty="elasticnet".
    fit_intercept : bool
        Whether the model has an intercept; no penalty is laid on it.
    reweight : bool
        False: ``coef_`` is the trimmed fit itself, less efficient on clean data.
    method : Method, optional
        How to solve, one of `trimlearn.smart`. None: as `trimlearn.solve` sees fit.
    max_passes : float, optional
        Passes over the data at most. None: as many as the size of the data allows.
    tol : float, optional
        As in `trimlearn.solve`. None: from 10⁻⁹, where passes cost nothing, to 10⁻³ on large data.
    random_state : int, RandomState or None
        Seed of starts and draws. Give an integer to get the same result again where these matter.
    warm_start : bool
        Whether to begin where the last fit ended.
    verbose : bool or int
        Whether to show on stderr what the fit is doing.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (p,) and float
        The final fit.
    raw_coef_, raw_intercept_ : ndarray of shape (p,) and float
        The trimmed fit.
    weights_, raw_weights_ : ndarray of shape (n,)
        How much each row counts in the final fit, and in the trimmed one.
    inlier_mask_ : ndarray of shape (n,)
        Which rows count: ``weights_ > 0``.
    contamination_ : float
        The estimated share of bad rows.
    scale_, raw_scale_ : float
        The robust scale of the deviance residuals, at least 1 where the family knows it to be 1; that of the trimmed
        fit.
    outlier_scores_ : ndarray of shape (n,)
        |deviance residual|/scale_, larger is worse.
    outlier_probability_ : ndarray of shape (n,)
        The probability that a row is wrong.
    threshold_ : float
        The score beyond which a row is not explained.
    objective_ : float
        The trimmed objective F at the trimmed fit.
    history_ : list of Record
        One record per w-step of the trimmed fit.
    n_iter_ : int
        How many steps that are, at least 1.

    References
    ----------
    Neykov and Müller (2003), Breakdown point and computation of trimmed likelihood estimators in generalized linear
    models, Developments in Robust Statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedGLM
    >>> x = np.linspace(0, 2, 40)
    >>> y = np.round(np.exp(1 + x))
    >>> y[[3, 9]] = 200
    >>> model = TrimmedGLM("poisson", random_state=0).fit(x[:, None], y)
    >>> model.coef_.round(1), np.flatnonzero(~model.inlier_mask_)
    (array([1.]), array([3, 9]))
    """

    _x: Array  # of the trimmed fit
    _unit: float  # of the residuals of a robust loss

    def __init__(
        self,
        loss: str = "poisson",
        contamination: float | int | str = "auto",
        *,
        shape: float | None = None,
        penalty: str | None = None,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        reweight: bool = True,
        method: Method | None = None,
        max_passes: float | None = None,
        tol: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        self.loss = loss
        self.contamination = contamination
        self.shape = shape
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.reweight = reweight
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to X (n, p), dense or CSR, and y (n,); sample_weight: 2 is the row twice, 0 its removal.

        X may be a dataset (`trimlearn.open_dataset`), or a path, y then being the name of the target's column: see
        docs/scale.md.
        """
        with self._fitting(X):
            stream = opened(X, y, sample_weight, fit_of=self)
            if stream is not None:
                whole = read_whole(stream)
                if whole is None:
                    fit_glm_stream(self, stream, self._h(self.contamination, stream.n))
                    return self
                X, y = whole
            data = self._validate(X, y, sample_weight, reset=True)
            if stream is not None:
                column_names(self, stream)
            return self._fit(data, self._h(self.contamination, data.S), warm=self.warm_start and hasattr(self, "_x"))

    def predict(self, X: Any) -> np.ndarray:
        """The mean of y for every row of X, which may be a dataset."""
        if isinstance(X, Dataset):
            return by_blocks(self, X, lambda rows, _: self._family.mean(rows @ self.coef_ + self.intercept_))
        return np.asarray(self._family.mean(check_features(self, X) @ self.coef_ + self.intercept_))

    def outlier_score(self, X: Any, y: Any = None) -> np.ndarray:
        """|deviance residual|/scale_ for rows seen or unseen: by how many standard deviations they are off. Larger is
        worse."""
        if (stream := opened(X, y)) is not None:
            return by_blocks(self, stream, lambda rows, t: self._scores(Examples(rows, t)))
        z = np.asarray(check_features(self, X) @ self.coef_ + self.intercept_)
        t = check_numbers(np.asarray(y), z.dtype, type(self).__name__)
        return np.asarray(np.abs(self._residuals(t, z)) / self.scale_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = self.loss in FAMILIES
        return tags

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Examples:
        return check_examples(self, X, y, sample_weight, reset=reset, y_numeric=True)

    def _fit(self, data: Examples, h: float | None, warm: bool) -> Self:
        """A trimmed fit, a judgement of all rows by it, a fit to those it explains."""
        self._check(data)
        self._training, self._covariance = data, None
        distinct = Distinct.of(data)
        rows, q = distinct.rows, self.n_features_in_ + self.fit_intercept
        solver = self._solver(self._seed())
        starts, unit = self._starts(rows, solver.seed)
        self._unit = unit
        labels = self._judged_labels(rows, solver.seed)
        half, floor = self._half(rows, labels), self._floor(rows.t)

        def residuals(x: Array) -> np.ndarray:
            coef, intercept = self._parts(x)
            return self._residuals(rows.t, np.asarray(rows.X @ coef + intercept)).astype(np.float64)

        def judged(x: Array, h: float | None = h) -> Verdict:
            if labels is not None:
                return _verdict_on_labels(labels, np.abs(residuals(x)), None if h is None else h / rows.S)
            kept = half if h is None else h
            return judge(residuals(x), kept, q, rows.s, intercept=self.fit_intercept, floor=floor)

        def refit(inliers: np.ndarray, x: Array) -> Array:
            s = inliers.astype(rows.X.dtype) if rows.s is None else inliers * rows.s
            return solver.refit(self._problem(replace(rows, s=s), unit), x)

        resumes = warm and self._x.shape == (q,)
        kept = half if h is None else h
        raw = solver.trimmed(self._problem(rows, unit, kept), kept, [self._x] if resumes else starts)
        verdict = judged(raw.x)
        if h is None and not self.reweight:
            kept = rows.S * (1 - verdict.contamination)
            raw = solver.trimmed(self._problem(rows, unit, kept), kept, [raw.x])
        x, weights = raw.x, raw.w
        if self.reweight:
            rounds = 1 if verdict.inliers.all() else ROUNDS  # where all rows are explained, none is left out again
            x, inliers, _ = readmit(raw.x, verdict, refit, judged, rounds)
            weights = inliers.astype(rows.X.dtype)

        final = judged(x, None)
        self._x, self.objective_, self.history_ = raw.x, raw.objective, raw.history
        self.n_iter_ = max(1, len(raw.history) - 1)
        self.raw_coef_, self.raw_intercept_ = self._parts(raw.x)
        self.coef_, self.intercept_ = self._parts(x)
        self.contamination_ = verdict.contamination if h is None else 1 - h / rows.S
        self.raw_scale_ = raw_scale(residuals(raw.x), kept, q, rows.s, intercept=self.fit_intercept)
        self.scale_, self.threshold_ = final.scale, final.cutoff
        scores = np.abs(residuals(x)) / final.scale
        unseen = self._scores(distinct.gone) if distinct.gone.n else np.empty(0)
        self.outlier_scores_, self.weights_, self.raw_weights_ = distinct.spread(
            (scores, unseen), (weights, unseen <= final.cutoff), (raw.w, 0.0)
        )
        self.outlier_probability_ = row_probabilities(p_values(self, self._family, data), data.s)
        if self._family.dispersed and final.scale <= floor:
            warn_of_exact_fit(weights)
        if h is None and labels is None:
            warn_of_no_trimming(rows, half, q, exact=self._family.dispersed and final.scale <= floor)
        return self

    def _check(self, data: Examples) -> None:
        """Check the parameters, and what they ask of the data."""
        check_magnitude(data.X, "X")
        check_choice(self.loss, (*FAMILIES, *SHAPES), "loss")
        if self.loss not in FAMILIES:
            check_magnitude(data.t, "y")
            check_positive(self._shape, "shape")
            return
        low, high, words = RANGES[self.loss]
        bad = (data.t <= low) if self.loss == "gamma" else (data.t < low) | (data.t > high)
        if bad.any():
            raise ValueError(f"Some value(s) of y are out of the valid range of loss={self.loss!r}: {words}.")

    def _solver(self, seed: int) -> Solver:
        return Solver(type(self).__name__, self.method, self.max_passes, self.tol, seed)

    def _problem(self, rows: Examples, unit: float, h: float | None = None) -> Problem:
        """The trimmed problem that keeps h; None: all rows as they are weighted. unit: of the residuals."""
        r1 = AllOnes() if h is None else CappedSimplex(h)
        r2 = None
        if self.penalty is not None:
            r2 = make_penalty(self.penalty, self.alpha, self.l1_ratio, 1.0 if h is None else h / rows.S)
        return Problem(self._loss(rows, unit), r1, r2, rows.s)

    def _loss(self, rows: Examples, unit: float) -> PredictionLoss:
        X, t, layer = rows.X, rows.t, Layer(intercept=self.fit_intercept)
        if self.loss in FAMILIES:
            return FAMILIES[self.loss](X, t, **layer)
        if self.loss == "huber":
            return Huber(X, t, delta=self._shape * unit, **layer)
        if self.loss == "student_t":
            return StudentT(X, t, nu=self._shape, sigma=unit, **layer)
        return SmoothL1(X, t, eps=self._shape * unit, **layer)

    def _starts(self, rows: Examples, seed: int) -> tuple[list[str | Array], float]:
        """Where to start; and the unit of residuals, the robust scale of least trimmed squares, for a robust loss."""
        q = self.n_features_in_ + self.fit_intercept
        if self.loss in FAMILIES:
            small = rows.n * q <= SMALL and self.method is None
            return ["continuation", "concentration"] if small else ["continuation"], 1.0
        stage("least trimmed squares from many starts")
        A = LeastSquares(rows.X, rows.t, intercept=self.fit_intercept).linear.design(np.arange(rows.n))
        t, half = rows.t.astype(np.float64), min(rows.S, (rows.S + q + 1) // 2)
        x = least_trimmed_squares(A, t, half, rows.s, seed=seed).coef
        unit = judge(t - A @ x, half, q, rows.s, floor=rounding_floor(rows.t)).scale
        return [x, "continuation"], unit if unit > TINY else 1.0  # an exact fit: any will do

    def _half(self, rows: Examples, labels: Judged | None) -> float:
        """Half of the rows, and of counts half of those that are not 0: a fit to rows that are all 0 explains them
        perfectly, by a mean of 0. Of labels, as many as are right."""
        half = float(min(rows.S, (rows.S + self.n_features_in_ + self.fit_intercept + 1) // 2))
        if labels is not None:
            return max(half, rows.S * (1 - labels.verdict.noise.epsilon))
        if self.loss != "poisson":
            return half
        s = np.ones(rows.n) if rows.s is None else rows.s
        return max(half, rows.S - float(s[rows.t > 0].sum()) // 2)

    def _judged_labels(self, rows: Examples, seed: int) -> Judged | None:
        """Labels 0 and 1 have no residuals to judge them by: models that have not seen them do."""
        if self.loss != "binomial" or not _are_labels(rows.t):
            return None
        stage("labels judged out of sample")
        judged = judge_labels(Logistic(rows.X, rows.t, intercept=self.fit_intercept), rows.s, seed=seed)
        if judged.verdict.warning:
            warn(judged.verdict.warning)
        return judged

    # -- the law of the residuals -------------------------------------------------------------------------------------

    @property
    def _family(self) -> Family:
        return family(self.loss if self.loss in FAMILIES else "normal")

    @property
    def _shape(self) -> float:
        return SHAPES[self.loss] if self.shape is None else self.shape

    def _parts(self, x: Array) -> tuple[np.ndarray, float]:
        """coef and intercept."""
        return (np.asarray(x[:-1]), float(x[-1])) if self.fit_intercept else (np.asarray(x), 0.0)

    def _residuals(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Residuals, signed, that are about normal where the model holds: of a family, those of the deviance."""
        if self.loss not in FAMILIES:
            return np.asarray(t - z)
        f, slope = self._family.evaluate(z.astype(np.float64), t.astype(np.float64))
        return np.asarray(-np.sign(slope) * np.sqrt(2 * np.maximum(f, 0)))

    def _floor(self, t: np.ndarray) -> float:
        """What the scale of the residuals cannot be below. Counts and labels have a spread that is known; proportions
        come from unknown numbers of trials."""
        if self.loss not in FAMILIES:
            return rounding_floor(t)
        known = not self._family.dispersed and (self.loss != "binomial" or _are_labels(t))
        return 1.0 if known else rounding_floor(np.ones(1))

    # -- what is known about each row, and about the coefficients -----------------------------------------------------

    def _scores(self, data: Examples) -> np.ndarray:
        return np.asarray(np.abs(self._residuals(data.t, data.X @ self.coef_ + self.intercept_)) / self.scale_)

    def _findings(self, data: Examples, scores: np.ndarray, off: np.ndarray) -> Findings:
        return regression_findings(self, self._family, data, scores, off)

    def _fitted(self, X: Any, y: Any) -> Fitted:
        if self.loss not in FAMILIES:
            raise ValueError(f"loss={self.loss!r} is no likelihood: no standard errors; use TrimmedLinearRegression.")
        data = self._remembered(X, y)
        kept = self.weights_ if data.s is None else self.weights_ * data.s
        ridge = self.alpha * float(kept.sum(dtype=np.float64))  # alpha stands beside a mean
        return fitted_model(self, data, self.loss, self.coef_, self.intercept_, ridge=ridge)


def _are_labels(t: np.ndarray) -> bool:
    return bool(np.all((t == 0) | (t == 1)))


def _verdict_on_labels(labels: Judged, scores: np.ndarray, share: float | None) -> Verdict:
    """By models that have not seen the labels. The cut-off is that of the scores, for rows to come."""
    inliers = labels.verdict.keep(share) > 0
    cutoff = max(USUAL, float(scores.max())) if inliers.all() else float(scores[~inliers].min()) * (1 - ROUNDING)
    return Verdict(1.0, cutoff, inliers, labels.verdict.noise.epsilon)
