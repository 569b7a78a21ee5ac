"""Linear regression under a penalty that selects columns, of rows on a cluster.

In memory rows are judged by models that have not seen them, as `trimlearn.robust.regression.sparse` says, because a fit
to few rows passes too near to those it was made for. There are many more rows than columns here, of which a model that
has seen them says the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from trimlearn.engines.cluster.losses import LossOf
from trimlearn.engines.cluster.rows import Placed
from trimlearn.estimators.linear.many_regression import publish_regression
from trimlearn.estimators.linear.on_dask_glm import DaskRegression
from trimlearn.inference.families import Family, family
from trimlearn.losses import LeastSquares

__all__ = ["fit_sparse_on_dask"]


@final
@dataclass(frozen=True)
class NormalErrors:
    """Errors about a linear model."""

    @property
    def family(self) -> Family:
        return family("normal")

    def residuals(self, t: np.ndarray, z: np.ndarray) -> np.ndarray:
        """t − z."""
        return np.asarray(t - z)


def fit_sparse_on_dask(model: Any, placed: Placed, known: Any, h: float | None, floor: float, seed: int) -> None:
    """Fit the model as `trimlearn.estimators.linear.sparse.fit_sparse` does, from the fit to a sample."""
    loss = LossOf(LeastSquares, {"intercept": bool(model.fit_intercept)})
    rows = DaskRegression(model, placed, NormalErrors(), loss, 0, floor, seed)
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
    model._noise, model._bread = None, 1.0
    if not model.reweight:
        publish_regression(rows, raw, keep, raw.x, rows.judged(raw.x, half), share, None)
        return
    publish_regression(rows, raw, keep, x, rows.judged(x, half), share, kept)
