"""A regression's fit to rows of any origin, and what was found as the attributes of the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.estimators.linear.data import Distinct, Examples
from trimlearn.estimators.linear.explain import p_values
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.estimators.streamed import column_names, opened, read_whole
from trimlearn.inference.families import Family
from trimlearn.inference.probability import row_probabilities
from trimlearn.robust.scale import raw_scale
from trimlearn.robust.verdict import Verdict

__all__ = ["Outcome", "fit_any", "publish", "rounds_for"]

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `judge` says


@final
@dataclass(frozen=True)
class Outcome:
    """What the fit to the distinct rows found.

    raw: the trimmed fit, which keeps the weight ``kept`` and leaves the residuals ``raw_residuals``. x: the final
    model, of rows weighted ``weights``, which leaves ``residuals``, of this scale; beyond ``threshold`` times it, a row
    is not explained.
    """

    raw: LinearFit
    kept: float
    raw_residuals: np.ndarray
    x: Array
    weights: np.ndarray
    residuals: np.ndarray
    scale: float
    threshold: float
    contamination: float


def fit_any(model: Any, X: Any, y: Any, sample_weight: Any, by_stream: Callable[..., Any]) -> None:
    """Fit to arrays; or to a dataset, read as a whole where it is small enough, else by ``by_stream``."""
    stream = opened(X, y, sample_weight, fit_of=model)
    if stream is not None:
        whole = read_whole(stream)
        if whole is None:
            by_stream(model, stream, model._h(model.contamination, stream.n))
            return
        X, y = whole
    data = model._validate(X, y, sample_weight, reset=True)
    if stream is not None:
        column_names(model, stream)
    model._fit(data, model._h(model.contamination, data.S), warm=model.warm_start and "_x" in vars(model))


def rounds_for(verdict: Verdict) -> int:
    """How often rows are judged and fitted again: where all are explained, none is left out again."""
    return 1 if verdict.inliers.all() else ROUNDS


def publish(model: Any, law: Family, data: Examples, distinct: Distinct, found: Outcome) -> None:
    """Set the attributes that all regressions have. data: the rows as given, of which some may be gone."""
    raw, rows = found.raw, distinct.rows
    model._x, model.objective_, model.history_ = raw.x, raw.objective, raw.history
    model.n_iter_ = max(1, len(raw.history) - 1)
    model.raw_coef_, model.raw_intercept_ = model._parts(raw.x)
    model.coef_, model.intercept_ = model._parts(found.x)
    model.contamination_ = found.contamination
    # As R's ltsReg has it, for which all that was trimmed is clean.
    coefficients, intercept = len(raw.x), model.fit_intercept
    model.raw_scale_ = raw_scale(found.raw_residuals, found.kept, coefficients, rows.s, intercept=intercept)
    model.scale_, model.threshold_ = found.scale, found.threshold
    unseen = model._scores(distinct.gone) if distinct.gone.n else np.empty(0)
    model.outlier_scores_, model.weights_, model.raw_weights_ = distinct.spread(
        (np.abs(found.residuals) / found.scale, unseen), (found.weights, unseen <= found.threshold), (raw.w, 0.0)
    )
    model.outlier_probability_ = row_probabilities(p_values(model, law, data), data.s)
