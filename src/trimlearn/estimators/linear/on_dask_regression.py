"""Regressions of rows on a cluster that have no closed form: families, robust losses, penalties that select columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.engines.cluster.losses import LossOf, loss_of
from trimlearn.engines.cluster.residuals import EXACT, Tally, edge, tally_of
from trimlearn.engines.cluster.rows import Placed, ShardRows
from trimlearn.estimators.linear.examples import Examples
from trimlearn.estimators.linear.laws import NORMAL_ERRORS, RegressionLaw
from trimlearn.estimators.linear.many_regression import (
    ExplainedRows,
    RegressionRows,
    explained_weights,
    fit_regression,
    publish_regression,
    refuse_labels,
)
from trimlearn.estimators.linear.problems import LinearFit, Solver, make_penalty
from trimlearn.estimators.on_dask import SampledFit, by_sample, placed_rows
from trimlearn.estimators.streamed import refuse_choice
from trimlearn.losses import LeastSquares
from trimlearn.progress import stage
from trimlearn.regularizers import Regularizer
from trimlearn.robust.regression.streamed_rows import Summary
from trimlearn.smart import alternating, svrg
from trimlearn.smart.method import FEW, Method
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

ENOUGH = 20.0  # passes for a model of many parameters: what TrimmedLogisticRegression takes for large arrays
PASSES, TOL = 200.0, 1e-7  # limits on time where Newton's steps converge quadratically: ten or twenty passes are made


def solved_on_dask(
    model: Any, placed: Placed, loss: LossOf, r1: WeightSet, r2: Regularizer | None, x: Array, seed: int
) -> LinearFit:
    """The fit of this loss to the rows, with weights in r1 and the penalty r2, from x. Warns where it stopped short."""
    engine = DaskEngine(placed, loss, r1, r2)
    few = x.size <= FEW
    method = model.method or (alternating(inner="newton") if few else svrg(b=engine.batch_size()))
    x0 = engine.given.carried(np.asarray(x, engine.problem.loss.like.dtype), engine.problem)
    fit = solved_from(model, engine, method, x0, seed, *((PASSES, TOL) if few else (ENOUGH, 1e-3)))
    engine.close()
    return replace(fit, x=engine.problem.carried(fit.x, engine.given))


def solved_from(
    model: Any,
    engine: DaskEngine,
    method: Method,
    x0: Array,
    seed: int,
    passes: float,
    tol: float,
    exact: float = -inf,
) -> LinearFit:
    """The solution of the engine's problem from x0, with passes and tol where the model leaves them open. exact: a
    value of F up to which the fit is exact. Warns where it stopped short."""
    found = solve(
        engine.problem,
        method,
        x0=x0,
        engine=engine,
        max_passes=passes if model.max_passes is None else model.max_passes,
        tol=tol if model.tol is None else model.tol,
        seed=seed,
        callback=lambda record: record.objective <= exact,
    )
    fit = LinearFit(found.x, found.w, found.objective, found.history, found.status)
    Solver(type(model).__name__, method, model.max_passes, model.tol, seed, exact=exact).warn_if_short(fit)
    return fit


def fit_glm_on_dask(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit ``model`` to rows on a cluster: as `fit_glm_stream` does, but that each worker holds its rows."""
    refuse_choice(model)
    with placed_rows(X, y, sample_weight) as placed:
        found = by_sample(model, X, placed)
        if found is not None:
            refuse_labels(model, np.asarray(found.sample.t))
            fit_regression(*_rows(model, found), found.h)


def _rows(model: Any, found: SampledFit) -> tuple[DaskRegression, Any, list[Array]]:
    """All rows, their law, and where to start. The unit of a robust loss is the scale of least trimmed squares, from
    those of the sample, and these are a start too: as for arrays."""
    placed, known, law = found.placed, found.known, model._law
    q, options = placed.p + bool(model.fit_intercept), {"intercept": bool(model.fit_intercept)}
    about = q, law.floor(np.asarray(found.sample.t)), found.seed
    starts, model._unit = [known._x], known._unit
    if not law.is_family:
        squares = DaskRegression(model, placed, law, LossOf(LeastSquares, options), *about, penalised=False)
        starts.append(squares.trimmed(known._start, squares.half).x)
        unit = squares.judged(starts[-1], squares.half).scale
        model._unit = unit if unit > squares.floor else 1.0  # an exact fit: any will do
    some = Examples(np.zeros((1, placed.p)), np.ones(1))
    loss = loss_of(law.make(some, model._unit, model.fit_intercept))
    return DaskRegression(model, placed, law, LossOf(loss.kind, {**loss.options, **options}), *about), law, starts


@final
class DaskRegression(RegressionRows):
    """Rows on the workers of a cluster. penalised: whether the model's penalty is laid on its coefficients."""

    def __init__(
        self,
        model: Any,
        placed: Placed,
        law: RegressionLaw,
        loss: LossOf,
        q: int,
        floor: float,
        seed: int,
        penalised: bool = True,
    ) -> None:
        super().__init__(model, law, placed.mass, q, floor, unit=1.0)
        self.placed, self.loss, self.seed = placed, loss, seed
        self.penalised, self.exact = penalised and model.penalty is not None, placed.n <= EXACT

    def trimmed(self, x: Array, h: float) -> LinearFit:
        stage(f"trimmed fit, keeping {h:.0f} of {self.mass:.0f} rows")
        return self._solved(self.placed, CappedSimplex(h), h / self.mass, x)

    def refitted(self, x: Array, kept: ExplainedRows) -> Array:
        rows = self.placed.mapped(_explained, kept)
        stage(f"fit to the {rows.mass:.0f} rows explained")
        return self._solved(rows, AllOnes(), 1.0, x).x

    def total(self, task: Callable[..., float], *args: Any) -> float:
        (found,) = remembered(task.__name__, lambda: (np.array(sum(self.placed.gathered(task, *args))),))
        return float(found)

    def column(self, task: Callable[..., np.ndarray], *args: Any) -> Any:
        return self.placed.column(np.float64, task, *args)

    def tally(self, unit: float, task: Callable[..., np.ndarray], *args: Any) -> Summary:
        def answer() -> Summary:
            found, *more = self.placed.gathered(_tallied, task, self.exact, *args)
            for other in more:
                found = found + other
            return found.values, found.counts

        values, counts = remembered(task.__name__, answer)
        return values, counts

    def edge(self, value: float, unit: float) -> float:
        return edge(value, self.exact)

    def _solved(self, placed: Placed, r1: WeightSet, scale: float, x: Array) -> LinearFit:
        model = self.model
        r2 = make_penalty(model.penalty, model.alpha, model.l1_ratio, scale) if self.penalised else None
        return solved_on_dask(model, placed, self.loss, r1, r2, x, self.seed)


def _explained(block: ShardRows, kept: ExplainedRows) -> ShardRows:
    """The same rows, of which those that are not explained count for nothing."""
    return block.weighed(explained_weights(block, kept))


def _tallied(block: ShardRows, task: Callable[..., np.ndarray], exact: bool, *args: Any) -> Tally:
    return tally_of(task(block, *args), block.s, exact)


def fit_sparse_on_dask(model: Any, placed: Placed, known: Any, h: float | None, floor: float, seed: int) -> None:
    """Fit the model as `trimlearn.estimators.linear.sparse.fit_sparse` does, from the fit to a sample.

    In memory rows are judged by models that have not seen them, as `trimlearn.robust.regression.sparse` says, because a
    fit to few rows passes too near to those it was made for. There are many more rows than columns here, of which a
    model that has seen them says the same.
    """
    loss = LossOf(LeastSquares, {"intercept": bool(model.fit_intercept)})
    rows = DaskRegression(model, placed, NORMAL_ERRORS, loss, 0, floor, seed)
    half = float(min(placed.mass, (placed.mass + 1 + bool(model.fit_intercept)) // 2))
    if h is None:  # the rows that are explained, then the trimmed fit that keeps as many as are good
        x = np.append(known.coef_, known.intercept_) if model.fit_intercept else known.coef_
        x, verdict, kept = rows.explained(x, rows.judged(x, half), half)
        keep = max(half, placed.mass * (1 - verdict.contamination))
        raw = rows.trimmed(x, keep)
    else:
        keep, raw = h, rows.trimmed(known._x, h)
        x, verdict, kept = rows.explained(raw.x, rows.judged(raw.x, h), h)
    share = verdict.contamination if h is None else 1 - h / placed.mass
    model._noise, model._bread, model._scatter = None, 1.0, None
    if not model.reweight:
        publish_regression(rows, raw, keep, raw.x, rows.judged(raw.x, half), share, None)
        return
    publish_regression(rows, raw, keep, x, rows.judged(x, half), share, kept)
