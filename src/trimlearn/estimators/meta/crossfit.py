"""Predictions for rows by models that were not fitted on them, for any scikit-learn estimator and any weights.

Which rows are fitted and which predicted by each of a few models is a split; every row is predicted once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from trimlearn._utils.threads import jobs
from trimlearn.estimators.meta.nets import seeded_net
from trimlearn.robust.distinct import content_folds, content_hashes

Splits = list[tuple[np.ndarray, np.ndarray]]  # (rows fitted, rows predicted)


@dataclass(frozen=True)
class EncodedExamples:
    """Training data: X and y as the estimator wants them, t = y as it is judged, s > 0 for the rows that are there."""

    X: Any
    y: np.ndarray
    t: np.ndarray
    s: np.ndarray
    classes: np.ndarray | None  # None: regression

    @cached_property
    def S(self) -> float:
        """Σs."""
        return float(self.s.sum())


def weight_argument(estimator: Any) -> str | None:
    """The argument of fit by which sample weights reach the model, a pipeline's last step; None if there is none.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_argument(Ridge()), weight_argument(make_pipeline(Ridge()))
    ('sample_weight', 'ridge__sample_weight')
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def fit_weighted(estimator: Any, rows: EncodedExamples, w: np.ndarray, seed: int) -> Any:
    """A clone fitted with weights s·w. Rows of weight 0 are left out, so that no step of a pipeline sees them."""
    weight = rows.s * w
    kept = np.flatnonzero(weight > 0)
    weight = weight[kept]
    argument = None if np.all(weight == 1) else weight_argument(estimator)
    weights = {} if argument is None else {argument: weight}
    with seeded_net(estimator, seed):
        return _seeded(clone(estimator), seed).fit(_safe_indexing(rows.X, kept), rows.y[kept], **weights)


def _seeded(estimator: Any, seed: int) -> Any:
    """Random states that were left open, fixed: a round must differ from the last by its weights alone."""
    names = (name for name, value in estimator.get_params().items() if value is None)
    return estimator.set_params(**{name: seed for name in names if name.split("__")[-1] == "random_state"})


def crossfit(
    estimator: Any,
    rows: EncodedExamples,
    w: np.ndarray,
    splits: Splits,
    predict: Callable[[Any, Any], np.ndarray],
    seed: int,
    n_jobs: Any = None,
) -> np.ndarray:
    """Predictions P for all rows, each by the model of its split, fitted with weights w."""
    parts = jobs(partial(_crossfit_one, estimator, rows, w, predict, seed), splits, n_jobs, processes=True)
    P = np.zeros((len(w), *parts[0].shape[1:]))
    for (_, predicted), part in zip(splits, parts, strict=True):
        P[predicted] = part
    return P


def _crossfit_one(
    estimator: Any,
    rows: EncodedExamples,
    w: np.ndarray,
    predict: Callable[[Any, Any], np.ndarray],
    seed: int,
    fitted: np.ndarray,
    predicted: np.ndarray,
) -> np.ndarray:
    """Predictions for the rows of one split that are not fitted."""
    inside = np.zeros(len(w), dtype=bool)
    inside[fitted] = True
    model = fit_weighted(estimator, rows, spare_classes(np.where(inside, w, 0.0), rows, inside), seed)
    return predict(model, _safe_indexing(rows.X, predicted))


def spare_classes(w: np.ndarray, rows: EncodedExamples, inside: np.ndarray | None = None) -> np.ndarray:
    """w, but a class of which nobody would be left is kept whole: a model that never saw it cannot judge it."""
    if rows.classes is None:
        return w
    present = rows.s > 0 if inside is None else inside & (rows.s > 0)
    left = np.bincount(rows.t[present], w[present], len(rows.classes))
    return np.where(present & (left[rows.t] == 0), 1.0, w)


def content_splits(rows: EncodedExamples, k: int, seed: int) -> Splits:
    """k splits that depend on what the rows contain, not on their order or repetition; each class is spread evenly.

    Equal rows share a fold. A class of fewer than k distinct rows is always fitted, and predicted by the first model.
    """
    group = np.zeros(len(rows.s), dtype=np.int64) if rows.classes is None else rows.t
    fold = content_folds(content_hashes(rows.X, rows.y, seed), group, rows.s, k, even=True)
    if np.all(fold < 0):
        return in_sample(rows)
    model = np.maximum(fold, 0)
    return [(np.flatnonzero((fold != j) & (rows.s > 0)), np.flatnonzero(model == j)) for j in range(k)]


def in_sample(rows: EncodedExamples) -> Splits:
    """No folds: one model, fitted on and predicting all rows."""
    return [(np.flatnonzero(rows.s > 0), np.arange(len(rows.s)))]


def given_splits(rows: EncodedExamples, cv: Any, seed: int) -> Splits:
    """The splits of scikit-learn's ``cv`` argument; an integer gives `content_splits`, None `in_sample`."""
    if cv is None:
        return in_sample(rows)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv={cv} must be at least 2 folds, or None to judge rows by the model fitted on them.")
        return content_splits(rows, int(cv), seed)
    splits: Splits = list(check_cv(cv, rows.y, classifier=rows.classes is not None).split(rows.X, rows.y))
    times = np.bincount(np.concatenate([predicted for _, predicted in splits]), minlength=len(rows.s))
    if np.any(times != 1):
        raise ValueError("cv must predict every row exactly once, as KFold and GroupKFold do.")
    return splits
