"""Linear regression under a penalty that selects columns, or with too few rows to do without one.

Here not every column counts as a parameter: rows are judged by models that have not seen them, as
`trimlearn.robust.regression.sparse` says. Where columns are few, the fit without a penalty is asked as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.special import stdtr
from sklearn.exceptions import ConvergenceWarning

from trimlearn._utils.validation import is_sparse
from trimlearn._utils.warn import warn
from trimlearn.estimators.linear.doubt import (
    MISTAKEN,
    doubt_of_errors,
    doubt_of_mark,
    warn_of_chance,
    warn_of_exact_fit,
)
from trimlearn.estimators.linear.examples import Distinct, Examples
from trimlearn.estimators.linear.explain import parting
from trimlearn.estimators.linear.problems import SELECTING, LinearFit, Solver, make_penalty
from trimlearn.inference.probability import row_probabilities
from trimlearn.losses.exact import COLUMNS
from trimlearn.progress import stage
from trimlearn.robust.regression.chance import are_few
from trimlearn.robust.regression.elastic_net import EXACT, ROUGH, Floats, elastic_net
from trimlearn.robust.regression.set_apart import without_chance
from trimlearn.robust.regression.sparse import (
    HonestFit,
    Mask,
    Penalised,
    Rows,
    Settled,
    best_explained,
    best_rows,
    explain_by_penalty,
    fold_numbers,
    honest,
    settle,
    starts,
)
from trimlearn.robust.scale import judge, raw_scale, rounding_floor
from trimlearn.smart.method import concentration_records
from trimlearn.solution import Status

if TYPE_CHECKING:
    from trimlearn.estimators.linear.linear import TrimmedLinearRegression

WRITTEN_OUT = 20_000_000  # entries up to which a sparse X is written out, a limit on memory: 160 MB
ENOUGH = 10  # rows: of fewer nobody expects to be told which are wrong


def is_selective(model: TrimmedLinearRegression, data: Examples) -> bool:
    """Whether a fit of this model to these data is made here."""
    few = model.penalty == "l2" and are_few(data.n, model._parameters)
    small = not is_sparse(data.X) or data.X.shape[0] * data.X.shape[1] <= WRITTEN_OUT
    return small and (few or model.penalty in SELECTING)


def rows_of(model: TrimmedLinearRegression, data: Examples) -> Rows:
    """The data written out in float64."""
    X = data.X.toarray() if is_sparse(data.X) else data.X
    s = np.ones(data.n) if data.s is None else data.s
    return Rows(
        np.asarray(X, dtype=np.float64), data.t.astype(np.float64), s.astype(np.float64), bool(model.fit_intercept)
    )


def half(rows: Rows) -> float:
    """The fewest rows that can be the majority."""
    return min(rows.S, (rows.S + 1 + rows.intercept) // 2)


def fit_without_penalty(model: TrimmedLinearRegression, rows: Rows) -> TrimmedLinearRegression | None:
    """The model of these rows without a penalty, which fits leverage points less well than one that may choose
    among columns; None where columns are too many."""
    q = rows.X.shape[1] + rows.intercept
    if are_few(rows.n, q) or q > COLUMNS:
        return None
    return model._without_penalty(Examples(rows.X, rows.t, None if np.all(rows.s == 1) else rows.s))


@final
@dataclass(frozen=True)
class Net:
    """Elastic nets, Lasso and Ridge among them. per_sum: whether alpha stands beside a sum, as Ridge's does."""

    alpha: float
    l1_ratio: float
    per_sum: bool = False
    tol: float = ROUGH

    def fit(self, rows: Rows, c: Floats, x0: Floats | None) -> Floats:
        return self.solve(rows, c, x0)[0]

    def solve(self, rows: Rows, c: Floats, x0: Floats | None) -> tuple[Floats, bool]:
        """The fit, and whether it is within the tolerance."""
        alpha = self.alpha / (float(c.sum()) if self.per_sum else 1.0)
        X, t = rows.X, rows.t
        found, solved = elastic_net(X, t, c, alpha, self.l1_ratio, intercept=rows.intercept, x0=x0, tol=self.tol)
        return found[0], solved

    def for_rows(self, rows: Rows) -> Penalised:
        """Without a penalty on the intercept that these rows have."""
        return _Coefficients(self, rows.intercept)

    def value(self, x: Floats, h: float) -> float:
        penalty = self.l1_ratio * np.abs(x).sum() + (1 - self.l1_ratio) * float(x @ x) / 2
        return float(self.alpha * penalty / (h if self.per_sum else 1.0))


@final
@dataclass(frozen=True)
class _Coefficients:
    """A penalty of the coefficients alone, the intercept being left out."""

    penalised: Penalised
    intercept: bool

    def fit(self, rows: Rows, c: Floats, x0: Floats | None) -> Floats:
        return self.penalised.fit(rows, c, x0)

    def value(self, x: Floats, h: float) -> float:
        return self.penalised.value(x[:-1] if self.intercept else x, h)


@final
@dataclass(frozen=True)
class _Solved:
    """Any penalty: what `solve` finds from where it is told to begin, else the better of two, from zero and from the
    convex fit that selects as it does. Where columns are many, a model may pass through all rows by large coefficients,
    which under SCAD and MCP cost no more than small ones: solves from zero end there."""

    model: TrimmedLinearRegression
    solver: Solver

    def fit(self, rows: Rows, c: Floats, x0: Floats | None) -> Floats:
        problem = self.model._problem(Examples(rows.X, rows.t, c))
        zero, net = np.zeros(rows.X.shape[1] + rows.intercept), penalty_net(self.model)
        begins = [zero, net.fit(rows, c, None)] if x0 is None else [x0]
        ends = [np.asarray(self.solver.refit(problem, x), dtype=np.float64) for x in begins]
        return min(ends, key=partial(problem.objective, np.ones(rows.n)))

    def value(self, x: Floats, h: float) -> float:
        alpha, l1_ratio = self.model._strength
        return float(make_penalty(str(self.model.penalty), alpha, l1_ratio, 1.0).value(x))


def penalty_net(model: TrimmedLinearRegression) -> Net:
    """The elastic net that is the model's penalty, or that selects as it does: SCAD and MCP are L1 of the same strength
    near zero, and L0 cuts coefficients at √(2α), where L1 cuts them at α."""
    alpha, l1_ratio = model._strength
    make_penalty(str(model.penalty), alpha, l1_ratio, 1.0)  # which says what is wrong with them
    ratio = {"l2": 0.0, "elasticnet": l1_ratio}.get(str(model.penalty), 1.0)
    return Net(sqrt(2 * alpha) if model.penalty == "l0" else float(alpha), ratio, model.penalty == "l2")


def fit_sparse(model: TrimmedLinearRegression, data: Examples, h: float | None, warm: bool) -> None:
    """Fit the model: rows that can be explained, the fit to them, and what that says about all rows."""
    distinct = Distinct.of(data)
    rows, floor = rows_of(model, distinct.rows), rounding_floor(distinct.rows.t)
    fit = _SparseFit(model, rows, model._solver(model._seed(), exact=floor**2), floor)
    known = getattr(model, "_explained", None) if warm else None
    start = None if known is None or len(known) != rows.n else known
    settled, raw, mass = fit.automatic(start) if h is None else fit.given(h, model._x if start is not None else None)
    if model.reweight:
        x, weights = fit.exact(settled.fit.c, settled.fit.x), (settled.fit.c > 0).astype(np.float64)
    else:
        x, weights = raw.x, raw.w
        settled = replace(settled, fit=fit.honest(rows.s * raw.w, raw.x))
    final = settled.verdict
    if h is not None or not model.reweight:
        final = judge(settled.fit.r, half(rows), 0, rows.s, intercept=rows.intercept, floor=floor)
    if not model._chooses_alpha:
        _warn_of_too_many(_parameters(model, rows, x, rows.s * weights), weights)

    dtype = data.X.dtype
    parts = model._parts(raw.x.astype(dtype)), model._parts(x.astype(dtype))
    model._set_fits(raw.x, raw.objective, raw.history, *parts)
    model._explained = settled.fit.c > 0
    model.contamination_ = settled.verdict.contamination if h is None else 1 - h / rows.S
    model.raw_scale_ = raw_scale(rows.residuals(raw.x), mass, 0, rows.s, intercept=rows.intercept)
    model.scale_ = final.scale
    scores, unseen = np.abs(rows.residuals(x)) / final.scale, model._scores(distinct.gone)
    model.threshold_ = parting(scores, weights, final.cutoff) if model.reweight else final.cutoff
    freedom = max(1.0, float(rows.s @ weights) - 1)  # models that have not seen a row spend nothing of its residual
    unlikely = [2.0 * stdtr(freedom, -score) for score in (np.abs(settled.fit.r) / final.scale, unseen)]
    model.outlier_scores_, model.weights_, model.raw_weights_, p_values = distinct.spread(
        (scores, unseen),
        (weights.astype(dtype), unseen <= model.threshold_),
        (raw.w.astype(dtype), 0.0),
        (unlikely[0], unlikely[1]),
    )
    model.outlier_probability_ = row_probabilities(p_values, data.s)
    if final.scale <= floor:
        warn_of_exact_fit(weights)


@final
@dataclass(frozen=True)
class _SparseFit:
    """One fit of a model to rows; floor: the smallest σ to believe in."""

    model: TrimmedLinearRegression
    rows: Rows
    solver: Solver
    floor: float

    @property
    def net(self) -> Penalised:
        return penalty_net(self.model).for_rows(self.rows)

    @property
    def own(self) -> Penalised:
        """Fits under the penalty itself."""
        convex = self.model.penalty in ("l2", "l1", "elasticnet")
        return self.net if convex else _Coefficients(_Solved(self.model, self.solver), self.rows.intercept)

    @property
    def descends(self) -> bool:
        """Whether the last fits are made by coordinate descent too, and not as the user says."""
        said = self.model.method is not None or self.model.max_passes is not None
        return not said and self.model.penalty in ("l2", "l1", "elasticnet")

    def honest(self, c: Floats, x0: Floats | None) -> HonestFit:
        return honest(self.rows, self.own, fold_numbers(self.rows.n))(c, x0)

    def automatic(self, start: np.ndarray | None) -> tuple[Settled, LinearFit, float]:
        """The rows that are explained; the trimmed fit that keeps as many as are good, and how many these are."""
        h, plain = half(self.rows), fit_without_penalty(self.model, self.rows)
        settled = self._explained(h) if start is None else self._settle(self.rows.s * start, h)
        if plain is not None:  # which tells its own doubts
            settled = self._surer(settled, plain.inlier_mask_)
        elif settled.disputed is not None:
            warn_of_dispute(settled)
        elif settled.verdict.scale > self.floor:
            self._warn_of_errors(settled)
        mass = max(h, self.rows.S * (1 - settled.verdict.contamination))
        return settled, self._trimmed(settled.fit.x, mass), mass

    def given(self, h: float, x0: Floats | None) -> tuple[Settled, LinearFit, float]:
        """The trimmed fit that keeps h, and the rows that it explains."""
        raw = self._trimmed(self._start(h) if x0 is None else x0, h)
        return self._settle(self.rows.s * raw.w, h), raw, h

    def _start(self, h: float) -> Floats:
        """The model to begin with. Where columns are as many as the rows that are kept, some fit passes through any of
        these, and the objective does not tell which are right: then the model of the rows that are explained."""
        if self.rows.X.shape[1] >= h:
            return self._explained(h).fit.x
        stage("sparse least trimmed squares from several starts")
        ends = [explain_by_penalty(self.rows, self.net, x, h) for x in starts(self.rows, self.net, h)]
        return min(ends, key=lambda end: end[1][-1])[0]

    def _explained(self, h: float) -> Settled:
        """The rows that are explained, h of them at least, found from several starts."""
        stage("sparse least trimmed squares from several starts")
        fitter = partial(honest, penalised=self.net, fold=fold_numbers(self.rows.n))
        settled = best_rows(self.rows, self.net, fitter, h, seed=self.solver.seed, floor=self.floor)
        convex = self.model.penalty in ("l2", "l1", "elasticnet")
        return settled if convex else replace(self._settle(settled.fit.c, h), disputed=settled.disputed)

    def _surer(self, settled: Settled, others: Mask) -> Settled:
        """The rows that are explained, where columns are few: these once rows that chance may have set apart count
        again, or ``others``, found without a penalty. Neither leaves out what chance might, so that the one that leaves
        out more has seen more; unless that is in doubt, and a matter of few rows."""
        rows, fit = self.rows, settled.fit
        used = round(_parameters(self.model, rows, fit.x, fit.c))

        def refit(on: Mask, x: Floats) -> Floats:
            return self.own.fit(rows, rows.s * on, x)

        x, on, doubt = without_chance(fit.x, fit.c > 0, rows.s, used, rows.residuals, refit)
        few = rows.S - rows.s @ on <= max(1.0, MISTAKEN * rows.S)
        if rows.s @ others <= rows.s @ on or (doubt and few):
            on, doubt = others, False
        if doubt:
            warn_of_chance(~on)
        if not np.array_equal(on, fit.c > 0):
            fit = self.honest(rows.s * on, x)
        verdict = judge(fit.r, float(fit.c.sum()), 0, rows.s, intercept=rows.intercept, floor=self.floor)
        return replace(settled, fit=fit, verdict=verdict)

    def _warn_of_errors(self, settled: Settled) -> None:
        """UserWarning where the rows flagged may be right, as the fit without a penalty has it, which warns by itself.
        Only columns in use are asked: the others are too many."""
        r, t, flagged = settled.fit.r, self.rows.t, settled.fit.c <= 0
        X = self.rows.X[:, settled.fit.x[: self.rows.X.shape[1]] != 0]
        doubt = doubt_of_mark(t, flagged) or doubt_of_errors(X, t, t - r, r / settled.verdict.scale, flagged)
        if doubt is not None:
            warn(doubt)

    def _settle(self, c: Floats, h: float) -> Settled:
        settled = settle(self.rows, self.honest, c, h, self.floor)
        assert settled is not None  # nothing was seen before
        return settled

    def exact(self, c: Floats, x0: Floats) -> Floats:
        """The model of rows weighted c, as closely as it can be found."""
        if not self.descends:
            problem = self.model._problem(Examples(self.rows.X, self.rows.t, c))
            return np.asarray(self.solver.refit(problem, x0), dtype=np.float64)
        x, solved = replace(penalty_net(self.model), tol=EXACT).solve(self.rows, c, x0)
        if not solved:
            _warn_of_short(self.solver.name)
        return x

    def _trimmed(self, start: Floats, h: float) -> LinearFit:
        """The trimmed fit that keeps h, from this model."""
        rows = self.rows
        if not self.descends:
            s = None if np.all(rows.s == 1) else rows.s
            return self.solver.trimmed(self.model._problem(Examples(rows.X, rows.t, s), h), h, [start])
        exact = replace(penalty_net(self.model), tol=EXACT).for_rows(rows)
        x, history = explain_by_penalty(rows, exact, start, h)
        share = h / rows.S  # F is a mean over all rows
        records = concentration_records([share * value for value in history], h)
        return LinearFit(x, best_explained(rows, x, h), share * history[-1], records, Status.CONVERGED)


def _parameters(model: TrimmedLinearRegression, rows: Rows, x: Floats, c: Floats) -> float:
    """How many parameters the fit uses: its nonzero coefficients (Zou, Hastie and Tibshirani 2007); where the penalty
    has an L2 part, the trace of the smoother on their columns."""
    coef = x[:-1] if rows.intercept else x
    net = penalty_net(model)
    l2 = net.alpha * (1 - net.l1_ratio) * (1.0 if net.per_sum else float(c.sum()))
    if not l2:
        return float(np.count_nonzero(coef) + rows.intercept)
    A = rows.X[c > 0][:, coef != 0]
    A = (A - np.average(A, axis=0, weights=c[c > 0]) if rows.intercept else A) * np.sqrt(c[c > 0])[:, None]
    d2 = np.linalg.svd(A, compute_uv=False) ** 2
    return float(np.sum(d2 / (d2 + l2)) + rows.intercept)


def _warn_of_too_many(used: float, weights: np.ndarray) -> None:
    """UserWarning where the fit has as many parameters as rows."""
    rows = int(np.count_nonzero(weights))
    if used >= rows >= ENOUGH:
        warn(
            f"the fit uses {used:.0f} parameters for {rows} rows and passes through nearly all of them: it may predict "
            "badly, and only gross errors stand out. Raise alpha, or let TrimmedLinearRegressionCV choose it.",
        )


def warn_of_dispute(settled: Settled) -> None:
    """UserWarning where other rows are explained as well by another fit."""
    if settled.disputed is None:
        return
    kept, rows = settled.fit.c > 0, int(settled.disputed.sum())
    taken = int(np.count_nonzero(settled.disputed & kept))
    warn(
        f"{rows} rows are explained by one fit and wrong by another, which predicts the other rows about as well: "
        f"{taken} of them were kept. Rows far out in many columns do that where rows are few; look at them, or give "
        "contamination if you know.",
    )


def _warn_of_short(name: str) -> None:
    warn(f"{name} stopped short: bring the columns to one scale, or raise alpha.", ConvergenceWarning)
