"""Trimmed generalised linear models, and regression with the classical robust losses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.warn import warn
from trimlearn.estimators.linear.doubt import (
    warn_of_chance,
    warn_of_exact_fit,
    warn_of_long_tail,
    warn_of_no_trimming,
    warn_of_separation,
    warn_of_zeros,
)
from trimlearn.estimators.linear.examples import Distinct, Examples
from trimlearn.estimators.linear.explain import Outcome, fitted_model, publish
from trimlearn.estimators.linear.laws import RegressionLaw, are_labels, verdict_on_labels
from trimlearn.estimators.linear.model import LinearRegressor
from trimlearn.estimators.linear.on_dask_regression import fit_glm_on_dask
from trimlearn.estimators.linear.problems import LinearFit, Solver, make_penalty
from trimlearn.estimators.linear.streamed_regression import fit_glm_stream
from trimlearn.inference.fitted import Fitted
from trimlearn.losses import Logistic
from trimlearn.losses.linear import Linear
from trimlearn.problem import Problem
from trimlearn.progress import stage
from trimlearn.robust.labels.crossfit import JudgedLabels, judge_labels
from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.regression.set_apart import without_chance
from trimlearn.robust.scale import judge, rounding_floor
from trimlearn.robust.verdict import Verdict, readmit, rounds_for
from trimlearn.smart.method import SMALL, Method
from trimlearn.weights import AllOnes, CappedSimplex

TINY = 1e-150  # a scale whose square is still a positive number


class TrimmedGLM(LinearRegressor):
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

    _fit_on_dask = fit_glm_on_dask
    _fit_stream = fit_glm_stream
    _relative_weights = True
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._law.is_family
        return tags

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _fit(self, data: Examples, h: float | None, warm: bool) -> Self:
        """A trimmed fit, a judgement of all rows by it, a fit to those it explains."""
        law, q = self._law, self.n_features_in_ + self.fit_intercept
        law.check(data)
        law.check_both_labels(data)
        self._training, self._covariance = data, None
        distinct = Distinct.of(data)
        rows, solver = distinct.rows, self._solver(self._seed())
        starts, unit = self._starts(rows, solver.seed)
        self._unit, self._start = unit, starts[0]
        labels = self._judged_labels(rows, solver.seed)
        evidence = law.evidence(rows)
        worth = evidence.S / rows.S
        half, floor = min(law.half(evidence, q, labels) / worth, rows.S), law.floor(rows.t)
        keep, few = half if h is None else h, h is None and evidence.S <= q + 1

        def residuals(x: Array) -> np.ndarray:
            coef, intercept = self._parts(x)
            return law.residuals(rows.t, np.asarray(rows.X @ coef + intercept)).astype(np.float64)

        def judged(x: Array, h: float | None = h) -> Verdict:
            if labels is not None:
                return verdict_on_labels(labels, np.abs(residuals(x)), None if h is None else h / rows.S)
            kept = half if h is None else h
            found = judge(residuals(x), kept * worth, q, evidence.s, intercept=self.fit_intercept, floor=floor)
            return replace(found, inliers=np.ones(rows.n, dtype=bool), contamination=0.0) if few else found

        def refit(inliers: np.ndarray, x: Array) -> Array:
            return solver.refit(self._problem(rows.weighed(inliers), unit), x)

        def trimmed(kept: float, starts: list[str | Array]) -> LinearFit:
            return solver.trimmed(self._problem(rows, unit, kept), kept, starts)

        resumes = warm and self._x.shape == (q,)
        raw = trimmed(keep, [self._x] if resumes else starts)
        verdict = judged(raw.x)
        if h is None and not self.reweight:
            keep = rows.S * (1 - verdict.contamination)
            raw = trimmed(keep, [raw.x])
        x, weights = raw.x, raw.w
        if self.reweight:
            x, inliers, _ = readmit(raw.x, verdict, refit, judged, rounds_for(verdict))
            if h is None and labels is None:
                size = law.size(rows.t)
                x, inliers, doubt = without_chance(x, inliers, evidence.s, q, residuals, refit, size=size)
                if doubt:
                    warn_of_chance(~distinct.given(inliers))
            weights = inliers.astype(rows.X.dtype)

        final = judged(x, None)
        share = 1 - h / rows.S if h is not None else (final if self.reweight else verdict).contamination
        before, after = residuals(raw.x), residuals(x)
        parts = self._parts(raw.x), self._parts(x)
        cutoff = max(final.cutoff, float(np.abs(after[weights > 0]).max() / final.scale)) if h is None else final.cutoff
        found = Outcome(raw, keep, before, weights, after, final.scale, cutoff, share, *parts)
        publish(self, law.family, data, distinct, found)
        exact = law.family.dispersed and final.scale <= floor
        if exact:
            warn_of_exact_fit(weights)
        if few:
            warn_of_no_trimming(rows, half, q, exact=exact, worth=evidence.S)
        if h is None and labels is None and law.is_family and not exact:
            if self.loss == "poisson" and self.penalty is None:  # which makes means alike, and zeros fewer
                z, counts = np.asarray(rows.X @ self.coef_ + self.intercept_), weights > 0
                known = np.ones(rows.n) if evidence.s is None else evidence.s
                warn_of_zeros(rows.t[counts], law.family.mean(z[counts]), known[counts])
            warn_of_long_tail(distinct.given(after / final.scale), distinct.given(weights <= 0))
        if labels is not None and self.penalty is None:
            warn_of_separation(rows.t, np.asarray(rows.X @ self.coef_ + self.intercept_), weights > 0)
        return self

    def _solver(self, seed: int) -> Solver:
        return Solver(type(self).__name__, self.method, self.max_passes, self.tol, seed)

    def _problem(self, rows: Examples, unit: float, h: float | None = None) -> Problem:
        """The trimmed problem that keeps h; None: all rows as they are weighted. unit: of the residuals."""
        r1 = AllOnes() if h is None else CappedSimplex(h)
        r2 = None
        if self.penalty is not None:
            r2 = make_penalty(self.penalty, self.alpha, self.l1_ratio, 1.0 if h is None else h / rows.S)
        return Problem(self._law.make(rows, unit, self.fit_intercept), r1, r2, rows.s)

    def _starts(self, rows: Examples, seed: int) -> tuple[list[str | Array], float]:
        """Where to start; and the unit of residuals, the robust scale of least trimmed squares, for a robust loss."""
        q = self.n_features_in_ + self.fit_intercept
        if self._law.is_family:
            small = rows.n * q <= SMALL and self.method is None
            return ["continuation", "concentration"] if small else ["continuation"], 1.0
        stage("least trimmed squares from many starts")
        A = Linear(rows.X, intercept=self.fit_intercept).design(slice(None))
        t, half = rows.t.astype(np.float64), min(rows.S, (rows.S + q + 1) // 2)
        x = least_trimmed_squares(A, t, half, rows.s, seed=seed).coef
        unit = judge(t - A @ x, half, q, rows.s, floor=rounding_floor(rows.t)).scale
        return [x, "continuation"], unit if unit > TINY else 1.0  # an exact fit: any will do

    def _judged_labels(self, rows: Examples, seed: int) -> JudgedLabels | None:
        """Labels 0 and 1 have no residuals to judge them by: models that have not seen them do."""
        if self.loss != "binomial" or not are_labels(rows.t):
            return None
        stage("labels judged out of sample")
        judged = judge_labels(Logistic(rows.X, rows.t, intercept=self.fit_intercept), rows.s, seed=seed)
        if judged.verdict.warning:
            warn(judged.verdict.warning)
        return judged

    @property
    def _law(self) -> RegressionLaw:
        return RegressionLaw(self.loss, self.shape)

    def _parts(self, x: Array) -> tuple[np.ndarray, float]:
        return (np.asarray(x[:-1]), float(x[-1])) if self.fit_intercept else (np.asarray(x), 0.0)

    # -- what is known about each row, and about the coefficients -----------------------------------------------------

    def _fitted(self, X: Any, y: Any) -> Fitted:
        if not self._law.is_family:
            raise ValueError(f"loss={self.loss!r} is no likelihood: no standard errors; use TrimmedLinearRegression.")
        data = self._remembered(X, y)
        kept = self.weights_ if data.s is None else self.weights_ * data.s
        ridge = self.alpha * float(kept.sum(dtype=np.float64))  # alpha stands beside a mean
        return fitted_model(self, data, self.loss, self.coef_, self.intercept_, ridge=ridge)
