"""Generalised linear models and robust losses of rows on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.checkpoint.fit import remembered
from trimlearn.engines.cluster.losses import LossOf, loss_of
from trimlearn.engines.cluster.rows import ShardRows
from trimlearn.estimators.linear.data import Examples
from trimlearn.estimators.linear.laws import RegressionLaw, are_labels
from trimlearn.estimators.linear.on_dask_regression import RegressionRows, publish_on_dask
from trimlearn.estimators.on_dask import SampledFit, by_sample, placed_rows
from trimlearn.estimators.streamed import refuse_choice
from trimlearn.losses import LeastSquares

__all__ = ["fit_glm_on_dask"]


def fit_glm_on_dask(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit ``model`` to rows on a cluster: as `fit_glm_stream` does, but that each worker holds its rows."""
    refuse_choice(model)
    with placed_rows(X, y, sample_weight) as placed:
        found = by_sample(model, X, placed)
        if found is None:
            return
        placed.gathered(_checked, model._law)
        if model.loss == "binomial" and are_labels(np.asarray(found.sample.t)):
            raise ValueError("labels 0 and 1 in large data are for TrimmedLogisticRegression.")
        model._covariance, model._unit = None, found.known._unit
        _fit(*_rows(model, found), found.h)


def _rows(model: Any, found: SampledFit) -> tuple[RegressionRows, list[Array]]:
    """All rows and their loss, and where to start. The unit of a robust one is the scale of least trimmed squares, from
    those of the sample, and these are a start too: as for arrays."""
    placed, sample, known, seed = found.placed, found.sample, found.known, found.seed
    law, q = model._law, placed.p + bool(model.fit_intercept)
    options = {"intercept": bool(model.fit_intercept)}
    floor, starts = law.floor(np.asarray(sample.t)), [known._x]
    if not law.is_family:
        squares = RegressionRows(model, placed, law, LossOf(LeastSquares, options), q, floor, seed, penalised=False)
        starts.append(squares.trimmed(known._start, squares.half).x)
        unit = squares.judged(starts[-1], squares.half).scale
        model._unit = unit if unit > floor else 1.0  # an exact fit: any will do
    some = Examples(np.zeros((1, placed.p)), np.ones(1))
    loss = loss_of(law.make(some, model._unit, model.fit_intercept))
    options = {**loss.options, **options}
    return RegressionRows(model, placed, law, LossOf(loss.kind, options), q, floor, seed), starts


def _fit(rows: RegressionRows, starts: list[Array], h: float | None) -> None:
    model, mass, half = rows.model, rows.placed.mass, _half(rows)
    keep = half if h is None else h
    raw = min((rows.trimmed(x, keep) for x in starts), key=lambda fit: fit.objective)
    verdict = rows.judged(raw.x, keep)
    share = verdict.contamination if h is None else 1 - h / mass
    if h is None and not model.reweight:
        keep = mass * (1 - verdict.contamination)
        raw = rows.trimmed(raw.x, keep)
    x, kept = raw.x, None
    if model.reweight:
        x, _, kept = rows.explained(raw.x, verdict, keep)
    publish_on_dask(rows, raw, keep, x, rows.judged(x, half), share, kept)


def _half(rows: RegressionRows) -> float:
    """What `RegressionLaw.half` says of arrays."""
    if rows.model.loss != "poisson":
        return rows.half
    (positive,) = remembered("positive", lambda: (np.array(sum(rows.placed.gathered(_positive))),))
    return max(rows.half, rows.placed.mass - float(positive) // 2)


def _positive(block: ShardRows) -> float:
    """How many rows do not count 0."""
    return float(np.sum((block.t > 0) if block.s is None else block.s[block.t > 0], dtype=np.float64))


def _checked(block: ShardRows, law: RegressionLaw) -> None:
    """ValueError where the law knows no such targets."""
    law.check(Examples(block.V, block.t))
