"""Linear regression of rows on a cluster: by a sample of them, then by all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from scipy.special import stdtr

from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.residuals import EXACT, edge, moments, residuals, tally
from trimlearn.engines.cluster.rows import Placed
from trimlearn.engines.shard import Shard
from trimlearn.estimators.linear.doubts import warn_of_exact_fit
from trimlearn.estimators.linear.on_dask_sparse import fit_sparse_on_dask
from trimlearn.estimators.linear.penalties import SELECTING
from trimlearn.estimators.linear.problems import LinearFit, Solver
from trimlearn.estimators.linear.streamed import FinalFit, final_fit, judged_rows
from trimlearn.estimators.on_dask import by_sample, placed_rows
from trimlearn.estimators.streamed import refuse_choice
from trimlearn.inference.probability import row_probabilities
from trimlearn.losses import LeastSquares
from trimlearn.losses.exact import COLUMNS
from trimlearn.progress import stage
from trimlearn.regularizers import Ridge
from trimlearn.robust.regression.psi import Lqq
from trimlearn.robust.regression.streamed_rows import StandardisedRows
from trimlearn.robust.scale import raw_scale, rounding_floor
from trimlearn.smart import alternating
from trimlearn.solve import solve
from trimlearn.weights import CappedSimplex

__all__ = ["fit_linear_on_dask"]

PASSES = 300.0  # a limit on time, as in TrimmedLinearRegression: concentration steps end by themselves
TOL = 1e-9  # the same: their last digits are free
TINY = 1e-300  # stands for a scale of 0: the smallest power of ten whose inverse is finite, and some room


@final
@dataclass(frozen=True, eq=False)
class ClusterRows(StandardisedRows):
    """Rows on a cluster, standardised, as `trimlearn.robust.regression.streamed_rows.RowsElsewhere`: what stands for
    residuals is the coefficients u that they belong to."""

    engine: DaskEngine
    center: np.ndarray
    scale: np.ndarray
    intercept: bool
    penalty: np.ndarray
    floor: float

    @property
    def n(self) -> int:
        return round(self.engine.problem.S)

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
        return self.moments(weigh, r, u)[1]

    def curvature(self, weigh: Callable[[np.ndarray], np.ndarray], r: np.ndarray) -> np.ndarray:
        return self.moments(weigh, r, r)[0]

    def moments(
        self, weigh: Callable[[np.ndarray], np.ndarray], r: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        H, g = remembered("moments", lambda: self.engine.ask(moments, self.x(u), weigh)[:2])
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
        else:
            _fit(model, _rows(model, placed, found.sample.V, floor), found.known, found.h, found.seed)


def _rows(model: Any, placed: Placed, V: Any, floor: float) -> ClusterRows:
    """The rows, standardised by a sample V of them."""
    A = np.asarray(V.toarray() if hasattr(V, "toarray") else V, dtype=np.float64)
    center = np.median(A, axis=0) if model.fit_intercept else np.zeros(placed.p)
    scale = np.sqrt(np.mean((A - center) ** 2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    penalty = np.zeros(placed.p + bool(model.fit_intercept))
    if model.penalty == "l2":
        penalty[: placed.p] = model.alpha / scale**2
    loss = LossOf(LeastSquares, {"intercept": bool(model.fit_intercept), "center": center, "scale": scale})
    r2 = Ridge(penalty[: placed.p] / placed.mass) if model.penalty == "l2" else None
    engine = DaskEngine(placed, loss, CappedSimplex(placed.mass), r2, centred=False)
    return ClusterRows(engine, center, scale, bool(model.fit_intercept), penalty, floor)


def _fit(model: Any, rows: ClusterRows, known: Any, h: float | None, seed: int) -> None:
    unit, n = max(known.scale_, rows.floor, TINY), rows.engine.problem.S
    keep = float((rows.n + rows.q + 1) // 2) if h is None else h
    solver = _Trimming(model, rows, seed)
    raw = solver.trimmed(rows.standardised(known.raw_coef_, known.raw_intercept_), keep)
    u = raw.x.astype(np.float64)
    if h is None and not model.reweight:
        keep = n * (1 - judged_rows(model, rows, u, keep, unit).contamination)
        raw = solver.trimmed(u, keep)
        u = raw.x.astype(np.float64)
    model._covariance, model._noise, model._bread = None, None, 1.0
    model._x = rows.plain(u)
    model.raw_coef_, model.raw_intercept_ = model._parts(model._x)
    model.objective_, model.history_ = raw.objective, raw.history
    model.n_iter_, model.raw_weights_ = max(1, len(raw.history) - 1), raw.w
    values, counts = rows.summary(u, unit)
    model.raw_scale_ = raw_scale(values, keep, rows.q, counts, intercept=model.fit_intercept)
    last = final_fit(model, rows, (u, u), keep, h, unit)
    model.coef_, model.intercept_ = model._parts(rows.plain(last.u))
    model.scale_, model.threshold_ = last.verdict.scale, last.verdict.cutoff
    model.contamination_ = last.verdict.contamination if h is None else 1 - h / n
    _keep_rows(model, rows, last)


@final
@dataclass(frozen=True)
class _Trimming:
    """Least trimmed squares of all rows, from a start."""

    model: Any
    rows: ClusterRows
    seed: int

    def trimmed(self, u: np.ndarray, h: float) -> LinearFit:
        engine, model = self.rows.engine, self.model
        stage(f"least trimmed squares, keeping {h:.0f} of {engine.problem.S:.0f} rows")
        engine.problem.r1 = CappedSimplex(h)
        passes = PASSES if model.max_passes is None else model.max_passes
        tol, method = TOL if model.tol is None else model.tol, model.method or alternating()
        exact = self.rows.floor**2  # below, all that moves is rounding
        found = solve(
            engine.problem,
            method,
            x0=self.rows.x(u),
            engine=engine,
            max_passes=passes,
            tol=tol,
            seed=self.seed,
            callback=lambda record: record.objective <= exact,
        )
        fit = LinearFit(found.x, found.w, found.objective, found.history, found.status)
        name = type(model).__name__
        Solver(name, method, model.max_passes, model.tol, self.seed, exact=exact).warn_if_short(fit)
        return fit


def _keep_rows(model: Any, rows: ClusterRows, last: FinalFit) -> None:
    """What is known of every row, in the order of the rows."""
    values, counts = rows.summary(last.u, model.scale_)
    values = np.abs(values) / model.scale_
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    freedom = max(1.0, float(counts[values <= model.threshold_].sum()) - model._parameters)
    chance = row_probabilities(np.minimum(1.0, 2.0 * stdtr(freedom, -values)), counts)
    engine, x = rows.engine, rows.x(last.u)
    model.outlier_scores_ = engine.collect(partial(_scores, x=x, scale=model.scale_))
    model.outlier_probability_ = engine.collect(partial(_chances, x=x, scale=model.scale_, t=values, chance=chance))
    model.weights_ = model.raw_weights_
    if model.reweight:
        model.weights_ = engine.collect(partial(_weights, x=x, scale=model.scale_, most=model.threshold_, psi=last.psi))
    if model.scale_ <= rows.floor:
        warn_of_exact_fit(np.asarray(model.weights_))


def _scores(shard: Shard, x: np.ndarray, scale: float) -> np.ndarray:
    return np.asarray(np.abs(residuals(shard, x)) / scale).astype(x.dtype)


def _chances(shard: Shard, x: np.ndarray, scale: float, t: np.ndarray, chance: np.ndarray) -> np.ndarray:
    return np.asarray(np.interp(_scores(shard, x, scale), t, chance), dtype=x.dtype)


def _weights(shard: Shard, x: np.ndarray, scale: float, most: float, psi: Lqq | None) -> np.ndarray:
    t, s = _scores(shard, x, scale), shard.engine.problem.s
    w = np.where(t <= most, 1.0 if psi is None else psi.weight(t), 0.0)
    return np.asarray(w if s is None else np.where(s > 0, w, 0.0), dtype=x.dtype)
