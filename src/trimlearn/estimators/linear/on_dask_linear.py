"""Linear regression of rows on a cluster: by a sample of them, then by all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.residuals import EXACT, edge, residuals, tally, weighted_moments
from trimlearn.engines.cluster.rows import Placed
from trimlearn.engines.shard import Shard
from trimlearn.estimators.linear.many_rows import FinalFit, TrimmedRegression, fit_many_rows, standards
from trimlearn.estimators.linear.on_dask_regression import fit_sparse_on_dask, solved_from
from trimlearn.estimators.linear.problems import SELECTING
from trimlearn.estimators.on_dask import by_sample, placed_rows
from trimlearn.estimators.streamed import refuse_choice
from trimlearn.losses import LeastSquares
from trimlearn.losses.exact import COLUMNS
from trimlearn.progress import stage
from trimlearn.regularizers import Ridge
from trimlearn.robust.regression.streamed_rows import StandardisedRows
from trimlearn.robust.scale import rounding_floor
from trimlearn.smart import alternating
from trimlearn.weights import CappedSimplex

PASSES = 300.0  # a limit on time, as in TrimmedLinearRegression: concentration steps end by themselves
TOL = 1e-9  # the same: their last digits are free


@final
@dataclass(frozen=True, eq=False)
class ClusterRows(StandardisedRows):
    """Rows on a cluster, standardised: what stands for residuals is the coefficients u that they belong to."""

    engine: DaskEngine
    center: np.ndarray
    scale: np.ndarray
    intercept: bool
    penalty: np.ndarray
    floor: float

    @property
    def mass(self) -> float:
        return self.engine.problem.S

    def x(self, u: np.ndarray) -> np.ndarray:
        """u in the dtype of the rows."""
        return u.astype(self.engine.problem.loss.like.dtype)

    def residuals(self, u: np.ndarray) -> np.ndarray:
        return u

    def summary(self, r: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
        values, counts = remembered("residuals", lambda: self._tally(r))
        far = 1e30 * unit
        return np.clip(values, -far, far), counts

    def _tally(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (found,) = self.engine.ask(tally, self.x(u), self.n <= EXACT)
        return found.values, found.counts

    def edge(self, value: float, unit: float) -> float:
        return edge(value, self.n <= EXACT)

    def flagged(self, r: np.ndarray, cut: float) -> int:
        values, counts = self.summary(r, cut)
        return int(counts[np.abs(values) > cut].sum())

    def residuals_and_slope(
        self, u: np.ndarray, weigh: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        return u, self.slope(weigh, u, u)

    def slope(self, weigh: Callable[[np.ndarray], np.ndarray], r: np.ndarray, u: np.ndarray) -> np.ndarray:
        return self._moments(weigh, u)[1]

    def curvature(self, weigh: Callable[[np.ndarray], np.ndarray], r: np.ndarray) -> np.ndarray:
        return self._moments(weigh, r)[0]

    def _moments(self, weigh: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        H, g = remembered("moments", lambda: self.engine.ask(weighted_moments, self.x(u), weigh)[:2])
        return H + np.diag(self.penalty), g - self.penalty * u


def fit_linear_on_dask(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit ``model`` to rows on a cluster: as `fit_linear_stream` does, but that each worker holds its rows."""
    refuse_choice(model)
    if model.criterion != "lts":
        raise ValueError("rows on a cluster are fitted by criterion='lts'; fit other models to a sample of them.")
    with placed_rows(X, y, sample_weight) as placed:
        if placed.p >= COLUMNS and model.penalty not in SELECTING:
            raise ValueError(
                f"X has {placed.p} columns; on a cluster linear regression takes up to {COLUMNS - 1}, or more with a "
                "penalty that selects some, such as 'l1'."
            )
        found = by_sample(model, X, placed)
        if found is None:
            return
        floor = rounding_floor(np.asarray(found.sample.t, np.float64))
        if model.penalty in SELECTING:
            fit_sparse_on_dask(model, placed, found.known, found.h, floor, found.seed)
            return
        rows = _rows(model, placed, found.sample.V, floor)
        trimmed, publish = partial(_trimmed, model, rows, found.seed), partial(_publish, model, rows)
        fit_many_rows(model, rows, found.known, found.h, trimmed, publish)


def _rows(model: Any, placed: Placed, V: Any, floor: float) -> ClusterRows:
    """The rows, standardised by a sample V of them."""
    center, scale, penalty = standards(model, V)
    loss = LossOf(LeastSquares, {"intercept": bool(model.fit_intercept), "center": center, "scale": scale})
    r2 = Ridge(penalty[: placed.p] / placed.mass) if model.penalty == "l2" else None
    engine = DaskEngine(placed, loss, CappedSimplex(placed.mass), r2, centred=False)
    return ClusterRows(engine, center, scale, bool(model.fit_intercept), penalty, floor)


def _trimmed(model: Any, rows: ClusterRows, seed: int, u: np.ndarray, h: float) -> TrimmedRegression:
    """Least trimmed squares of all rows, from u."""
    engine = rows.engine
    stage(f"least trimmed squares, keeping {h:.0f} of {rows.mass:.0f} rows")
    engine.problem.r1 = CappedSimplex(h)
    exact = rows.floor**2  # below, all that moves is rounding
    method = model.method or alternating()
    fit = solved_from(
        model=model,
        engine=engine,
        method=method,
        x0=rows.x(u),
        seed=seed,
        passes=PASSES,
        tol=TOL,
        exact=exact,
    )
    u = fit.x.astype(np.float64)
    return TrimmedRegression(u, u, fit.objective, fit.history, fit.w)


def _publish(model: Any, rows: ClusterRows, last: FinalFit) -> None:
    """What is known of every row, in the order of the rows."""
    collect, at = rows.engine.collect, {"x": rows.x(last.u), "scale": model.scale_}
    model.outlier_scores_ = collect(partial(_scores, **at))
    model.outlier_probability_ = collect(partial(_chances, **at, last=last))
    if model.reweight:
        model.weights_ = collect(partial(_weights, **at, last=last))


def _scores(shard: Shard, x: np.ndarray, scale: float) -> np.ndarray:
    return np.asarray(np.abs(residuals(shard, x)) / scale).astype(x.dtype)


def _chances(shard: Shard, x: np.ndarray, scale: float, last: FinalFit) -> np.ndarray:
    return last.chances(_scores(shard, x, scale)).astype(x.dtype)


def _weights(shard: Shard, x: np.ndarray, scale: float, last: FinalFit) -> np.ndarray:
    w, s = last.weights(_scores(shard, x, scale)), shard.engine.problem.s
    return np.asarray(w if s is None else np.where(s > 0, w, 0.0), dtype=x.dtype)
