"""Least trimmed squares and its sparse relatives."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, Self

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import check_choice, check_magnitude, is_sparse
from trimlearn.estimators.linear.doubt import warn_of_doubt, warn_of_exact_fit, warn_of_no_trimming
from trimlearn.estimators.linear.examples import Distinct, Examples
from trimlearn.estimators.linear.explain import Outcome, fitted_model, parting, publish
from trimlearn.estimators.linear.laws import NORMAL_ERRORS
from trimlearn.estimators.linear.model import LinearRegressor
from trimlearn.estimators.linear.on_dask_linear import fit_linear_on_dask
from trimlearn.estimators.linear.problems import LinearFit, Solver, make_penalty
from trimlearn.estimators.linear.sparse import fit_sparse, is_selective
from trimlearn.estimators.linear.streamed_regression import fit_linear_stream
from trimlearn.inference.families import family
from trimlearn.inference.fitted import Fitted
from trimlearn.losses import LeastSquares
from trimlearn.losses.exact import COLUMNS
from trimlearn.losses.linear import Linear
from trimlearn.problem import Problem
from trimlearn.progress import stage
from trimlearn.robust.regression.averaging import average_of_fits, between, likelier
from trimlearn.robust.regression.chance import are_few, looks_by_chance
from trimlearn.robust.regression.features import feature_odds
from trimlearn.robust.regression.lts import least_median_of_squares, least_trimmed_squares
from trimlearn.robust.regression.mm import SmoothFit, WeightedRows, mm_estimate
from trimlearn.robust.scale import judge, rounding_floor
from trimlearn.robust.verdict import Verdict, readmit, rounds_for
from trimlearn.smart import alternating
from trimlearn.smart.method import SMALL, Method, concentration_records
from trimlearn.solution import Status
from trimlearn.weights import AllOnes, CappedSimplex

NORMAL = family("normal")  # the law of errors
EXACT_PASSES = 300  # a limit on time: exact concentration steps end by themselves, as a rule after ten or twenty
# All fits are averaged of FEWEST to FEW rows a coefficient, up to n q² = WORK, both limits on time: a fifth of a
# second. Of twice as many there is an MM-estimate; in between both count, so that no row more or less makes a
# difference. Of fewer rows the mean errs by up to twice as much as least squares in clean data (python -m
# benchmarks.calibration averaging).
FEWEST, FEW, WORK = 2, 700, 20_000
WRITTEN_OUT = 20_000_000  # entries up to which a sparse X is written out to look for a start: 160 MB


class TrimmedLinearRegression(LinearRegressor):
    """Linear regression that fits the rows it can explain: least trimmed squares, with or without a penalty.

    It solves

        min over x, w of  Σ wᵢ ½(yᵢ − ⟨vᵢ, x⟩ − x₀)² + penalty(x),   0 ≤ wᵢ ≤ 1,  Σ wᵢ = h,

    then, with ``reweight``, least squares on the rows whose residual is not too large for the robust scale found.

    Parameters
    ----------
    contamination : float, int or "auto"
        The share, or number, of rows to trim; h is the rest. "auto": as many as there can be, just over half of the
        rows being kept, and then the share of residuals that no normal law explains.
    penalty : {"l2", "l1", "elasticnet", "scad", "mcp", "l0"} or None
        As scikit-learn's Ridge, Lasso and ElasticNet have it, on the rows kept. "l1" is sparse least trimmed squares
        (Alfons, Croux and Gelper 2013).
    alpha : float
        The strength of the penalty.
    l1_ratio : float
        The share of L1 in penalty="elasticnet".
    criterion : {"lts", "lms"}
        "lms": least median of squares, the h-th smallest squared residual (Rousseeuw 1984). No penalty.
    fit_intercept : bool
        Whether the model has an intercept; no penalty is laid on it.
    reweight : bool
        False: ``coef_`` is the trimmed fit itself, less efficient on clean data.
    efficiency : {"average", "mm", "reweight"}
        How rows are readmitted. "average": the mean of all fits that few rows allow, each weighted by its evidence
        (Bayesian model averaging); of many rows, and where a contamination is given, as "mm". "mm": MM-estimation,
        with weights that fall smoothly with the residual, from the trimmed start and a scale found again (Yohai 1987;
        Koller and Stahel 2011); rows that are flagged have weight 0. "reweight": all rows that are not flagged count in
        full. Models with a penalty are always fitted in this way.
    method : Method, optional
        How to solve, one of `trimlearn.smart`. None: concentration steps from many starts where X is small.
    max_passes : float, optional
        Passes over the data at most. None: as many as the size of the data allows. Concentration steps end by
        themselves, so that neither this nor ``tol`` is asked where X is small and there is no penalty.
    tol : float, optional
        As in `trimlearn.solve`. None: from 10⁻⁹, where passes cost nothing, to 10⁻³ on large data.
    random_state : int, RandomState or None
        Seed of starts and draws. Give an integer to get the same result again where these matter: with a method, a
        penalty that selects columns, or more than 10⁶ numbers.
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
        The robust standard deviation of the errors; that of the trimmed fit.
    outlier_scores_ : ndarray of shape (n,)
        |residual|/scale_, larger is worse.
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
    Rousseeuw and Van Driessen (2006), Computing LTS regression for large data sets, Data Mining and Knowledge
    Discovery 12. Aravkin and Davis (2020), Trimmed statistical estimation via variance reduction, Mathematics of
    Operations Research 45.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegression
    >>> X = np.arange(20.0)[:, None]
    >>> y = 3 * X[:, 0] + 1 + 0.1 * np.sin(np.arange(20))
    >>> y[[2, 7, 11]] += 100
    >>> model = TrimmedLinearRegression(random_state=0).fit(X, y)
    >>> model.coef_.round(2), np.flatnonzero(~model.inlier_mask_)
    (array([3.]), array([ 2,  7, 11]))
    """

    _fit_on_dask = fit_linear_on_dask
    _fit_stream = fit_linear_stream
    _noise: float | None  # of an MM-estimate, see `Fitted`
    _bread: float
    _scatter: np.ndarray | None
    _law = NORMAL_ERRORS
    _chooses_alpha = False

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
        efficiency: str = "average",
        method: Method | None = None,
        max_passes: float | None = None,
        tol: float | None = None,
        random_state: Any = None,
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
        self.efficiency = efficiency
        self.method = method
        self.max_passes = max_passes
        self.tol = tol
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    # -- the fit ------------------------------------------------------------------------------------------------------

    def _fit(self, data: Examples, h: float | None, warm: bool) -> Self:
        """A trimmed fit, a judgement of all rows by it, a fit to those it explains."""
        self._check(data)
        self._training, self._covariance = data, None
        self._noise, self._bread, self._scatter = None, 1.0, None
        if self.penalty is not None and is_selective(self, data):
            fit_sparse(self, data, h, warm)
            return self
        distinct = Distinct.of(data)
        rows, floor = distinct.rows, rounding_floor(distinct.rows.t)
        # A small problem is searched in one way, whatever the seed: which fits are averaged must not be chance.
        chance = self.method is not None or rows.n * self._parameters > SMALL
        solver = self._solver(self._seed() if chance else 0, exact=floor**2)
        half = min(rows.S, (rows.S + self._parameters + 1) // 2)
        keep = half if h is None else h

        def judged(x: Array, h: float = keep) -> Verdict:
            r = self._residuals(rows, x)
            tails = self.efficiency != "reweight" and self.penalty is None
            return judge(r, h, self._parameters, rows.s, intercept=self.fit_intercept, floor=floor, tails=tails)

        def refit(weights: np.ndarray, x: Array) -> Array:
            s = weights if rows.s is None else weights * rows.s
            return solver.refit(self._problem(replace(rows, s=s.astype(rows.X.dtype))), x)

        resumes = warm and self._x.shape == (self._parameters,)
        kept, raw = keep, self._trimmed(rows, keep, self._x if resumes else None, solver)
        ended = h is not None and not self.reweight  # the trimmed fit is the final one
        verdict = judged(raw.x, half if ended else keep)
        averaged = self._averaged(rows) if h is None and self.reweight and verdict.scale > floor else 0.0
        by_chance = h is None and not averaged and self._found_by_chance(rows, half, verdict, solver.seed)
        if by_chance:
            verdict = replace(verdict, inliers=np.ones(rows.n, dtype=bool), contamination=0.0)
        if h is None and not self.reweight:
            kept = rows.S * (1 - verdict.contamination)
            raw = self._trimmed(rows, kept, raw.x, solver)
        x, weights, smooth = raw.x, raw.w, None
        mean = self._average(rows, raw, solver.seed) if averaged else None
        if self.reweight and averaged < 1:
            # The MM-estimate begins at the mean with which it is mixed, lest each explain other rows.
            start, by_start = (raw.x, verdict) if mean is None else (mean.x, mean.verdict)
            asked = mean is None and h is None and verdict.scale > floor
            other = self._likelier(rows, raw, verdict.scale) if asked else None
            if other is not None:
                start, by_start = other, judged(other)
            x, inliers, explained = readmit(start, by_start, refit, judged, rounds_for(by_start))
            weights = inliers.astype(rows.X.dtype)
            trusted = h is not None or are_few(rows.n, self._parameters)  # and not by chance
            if not by_chance:
                smooth = self._smooth(rows, (start, by_start), (x, explained), floor, trusted)
            if smooth is not None:
                smooth = replace(smooth, x=refit(smooth.w, x).astype(np.float64))
        if mean is not None:
            smooth = mean if smooth is None else between(self._weighted(rows), mean, smooth, averaged)
        if smooth is not None:
            x, weights = (part.astype(rows.X.dtype) for part in (smooth.x, smooth.w))
            self._noise, self._bread, self._scatter = smooth.noise, smooth.bread, smooth.scatter

        final = smooth.verdict if smooth is not None else verdict if ended else judged(x, half)
        share = (0.0 if by_chance else final.contamination) if h is None else 1 - h / rows.S
        before, after = self._residuals(rows, raw.x), self._residuals(rows, x)
        threshold = parting(np.abs(after) / final.scale, weights, final.cutoff) if self.reweight else final.cutoff
        parts = self._parts(raw.x), self._parts(x)
        wrong = None if smooth is None else smooth.wrong
        told = None if wrong is None else (averaged, wrong)
        found = Outcome(raw, kept, before, weights, after, final.scale, threshold, share, *parts, told)
        publish(self, NORMAL, data, distinct, found)
        if final.scale <= floor:
            warn_of_exact_fit(weights)
            if h is None:
                warn_of_no_trimming(rows, half, self._parameters, exact=True)
        elif h is None:
            doubted = weights if smooth is None else np.where(smooth.spared, 0.0, weights)
            doubtful, names = replace(final, cutoff=threshold), getattr(self, "feature_names_in_", None)
            is_smooth = smooth is not None  # of a penalised fit least squares always has other slopes
            warn_of_doubt(rows, half, self._parameters, after, doubted, doubtful, wrong, names, smooth=is_smooth)
        return self

    def _without_penalty(self, rows: Examples) -> TrimmedLinearRegression:
        """The fit without a penalty to these rows, and what it says of them."""
        plain = TrimmedLinearRegression(fit_intercept=self.fit_intercept, random_state=self._seed())
        plain.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_  # by which a warning calls them
        return plain._fit(rows, None, warm=False)

    def _check(self, data: Examples) -> None:
        check_magnitude(data.X, "X")
        check_magnitude(data.t, "y")
        check_choice(self.criterion, ("lts", "lms"), "criterion")
        check_choice(self.efficiency, ("average", "mm", "reweight"), "efficiency")
        if self.criterion == "lms" and self.penalty is not None:
            raise ValueError("criterion='lms' takes no penalty; use criterion='lts'.")

    def _solver(self, seed: int, exact: float = -inf) -> Solver:
        """Where the inner problem has a closed form, concentration steps are exact, and few."""
        closed = self.penalty in (None, "l2") and self.n_features_in_ < COLUMNS
        method = alternating() if self.method is None and closed else self.method
        most = inf if method is None else EXACT_PASSES
        return Solver(type(self).__name__, method, self.max_passes, self.tol, seed, most=most, exact=exact)

    def _problem(self, rows: Examples, h: float | None = None) -> Problem:
        """The trimmed problem that keeps h; None: all rows as they are weighted."""
        r1 = AllOnes() if h is None else CappedSimplex(h)
        kept = rows.S if h is None else h
        r2 = None
        if self.penalty is not None:  # Ridge's alpha stands beside a sum, the others' beside a mean
            scale = (1 if self.penalty == "l2" else kept) / rows.S
            r2 = make_penalty(self.penalty, *self._strength, scale)
        return Problem(LeastSquares(rows.X, rows.t, intercept=self.fit_intercept), r1, r2, rows.s)

    def _trimmed(self, rows: Examples, h: float, x0: Array | None, solver: Solver) -> LinearFit:
        """The trimmed fit that keeps h, from x0 or from many starts."""
        if self.criterion == "lms":
            found = least_median_of_squares(*self._written_out(rows), h, rows.s, seed=solver.seed)
            return LinearFit(found.coef, found.w, found.objective, [], Status.CONVERGED, found.basins)
        starts: list[str | Array] = ["continuation"]
        if x0 is not None:
            starts = [x0]
        elif self.method is None and not (is_sparse(rows.X) and rows.n * self._parameters > WRITTEN_OUT):
            stage("least trimmed squares from many starts")
            found = least_trimmed_squares(*self._written_out(rows), h, rows.s, seed=solver.seed)
            if self.penalty is None:  # where it ends, nothing is left to solve
                F, (x, w) = found.objective / (2 * rows.S), (a.astype(rows.X.dtype) for a in (found.coef, found.w))
                return LinearFit(x, w, F, concentration_records([F], h), Status.CONVERGED, found.basins)
            starts = [found.coef, "continuation"]
        return solver.trimmed(self._problem(rows, h), h, starts)

    def _averaged(self, rows: Examples) -> float:
        """How much the mean of all fits counts beside the MM-estimate: alone in few rows, nothing in twice as many."""
        n, q = rows.n, self._parameters
        if self.efficiency != "average" or self.penalty is not None or min(n, rows.S) < FEWEST * q:
            return 0.0
        return float(np.clip(2 - max(n / (FEW * q), n * q**2 / WORK), 0.0, 1.0))

    def _average(self, rows: Examples, raw: LinearFit, seed: int) -> SmoothFit:
        """The mean of all fits that the rows allow.

        No σ is less than that of the half that is fitted best; and rows count as many times as distinct ones on
        average, since a row that is there again tells nothing new."""
        stage("the mean of all fits that the rows allow")
        fit = self._weighted(rows, rows.n / rows.S)
        least = float(np.sqrt(np.average(self._residuals(rows, raw.x) ** 2, weights=fit.c * raw.w)))
        odds = feature_odds(np.asarray(rows.X, np.float64), fit.c, seed)
        x, basins = np.asarray(raw.x, np.float64), raw.basins
        if basins is None:
            half = (rows.S + self._parameters + 1) // 2
            basins = least_trimmed_squares(*self._written_out(rows), half, rows.s, seed=seed).basins
        return average_of_fits(fit, x, basins, odds, least, intercept=self.fit_intercept)

    def _likelier(self, rows: Examples, raw: LinearFit, floor: float) -> np.ndarray | None:
        """Another fit that the search met, if right rows and wrong ones are far likelier there; else None."""
        if raw.basins is None or len(raw.basins) == 1:
            return None
        return likelier(self._weighted(rows, rows.n / rows.S), np.asarray(raw.x, np.float64), raw.basins, floor)

    def _weighted(self, rows: Examples, times: float = 1.0) -> WeightedRows:
        """The rows in the coordinates of smooth fits, each as often as it is there, and so many times that."""
        c = np.full(rows.n, times) if rows.s is None else times * rows.s.astype(np.float64)
        return WeightedRows(*self._written_out(rows), c)

    def _smooth(
        self, rows: Examples, raw: tuple[Array, Verdict], hard: tuple[Array, Verdict], floor: float, trusted: bool
    ) -> SmoothFit | None:
        """The MM-estimate; None where it is not asked for, where nothing is left to be fitted, or X is too large."""
        n, q = rows.n, self._parameters
        if self.efficiency == "reweight" or self.penalty is not None or rows.S <= q + 1 or hard[1].scale <= floor:
            return None
        if q > COLUMNS or (n * q > WRITTEN_OUT and (is_sparse(rows.X) or self.method is not None)):
            return None
        stage("weights that fall smoothly with the residual")
        (x, by_raw), (y, by_hard) = raw, hard
        starts = (np.asarray(x, np.float64), by_raw), (np.asarray(y, np.float64), by_hard)
        return mm_estimate(self._weighted(rows), *starts, trusted)

    def _found_by_chance(self, rows: Examples, half: float, verdict: Verdict, seed: int) -> bool:
        """Whether rows were left out that a fit to so few rows leaves out of clean ones as well."""
        if verdict.inliers.all() or self.penalty is not None or not are_few(rows.n, self._parameters):
            return False
        return looks_by_chance(*self._written_out(rows), half, rows.s, verdict.scale, seed)

    @property
    def _strength(self) -> tuple[float, float]:
        """alpha and l1_ratio of the penalty."""
        return self.alpha, self.l1_ratio

    @property
    def _parameters(self) -> int:
        return int(self.n_features_in_ + self.fit_intercept)

    def _parts(self, x: Array) -> tuple[np.ndarray, float]:
        return (np.asarray(x[:-1]), float(x[-1])) if self.fit_intercept else (np.asarray(x), 0.0)

    def _residuals(self, rows: Examples, x: Array) -> np.ndarray:
        coef, intercept = self._parts(x)
        return np.asarray(rows.t - (rows.X @ coef + intercept), dtype=np.float64)

    def _written_out(self, rows: Examples) -> tuple[np.ndarray, np.ndarray]:
        """The rows, the intercept's column last, and the target, in float64."""
        return Linear(rows.X, intercept=self.fit_intercept).design(slice(None)), rows.t.astype(np.float64)

    # -- what is known about each row, and about the coefficients -----------------------------------------------------

    def _fitted(self, X: Any, y: Any) -> Fitted:
        data, ridge = self._remembered(X, y), float(self._strength[0])
        known = fitted_model(self, data, "normal", self.coef_, self.intercept_, ridge=ridge, scale=self.scale_)
        scatter = self._scatter
        if scatter is not None and self.fit_intercept:
            scatter = np.roll(scatter, 1, axis=1)  # inference has the intercept first
        innocence = 1 - self.outlier_probability_
        return replace(known, noise=self._noise, bread=self._bread, scatter=scatter, innocence=innocence)
