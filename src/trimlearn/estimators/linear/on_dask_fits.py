"""The solves of a linear model over rows on a cluster: from an x that a sample gave, to the end or to a limit."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.rows import Placed
from trimlearn.estimators.linear.problems import LinearFit, Solver
from trimlearn.regularizers import Regularizer
from trimlearn.smart import alternating, svrg
from trimlearn.smart.method import Method
from trimlearn.smart.sizes import FEW
from trimlearn.solve import solve
from trimlearn.weights import WeightSet

__all__ = ["solved_from", "solved_on_dask"]

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
