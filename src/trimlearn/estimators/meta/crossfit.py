"""Predictions for rows by models that were not fitted on them, for any scikit-learn estimator and any weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

__all__ = ["Folds", "Rows", "content_folds", "crossfit", "fit_weighted", "given_folds", "weight_argument"]

Folds = list[tuple[np.ndarray, np.ndarray]]  # (rows fitted, rows predicted)


@dataclass(frozen=True)
class Rows:
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


def fit_weighted(estimator: Any, rows: Rows, w: np.ndarray, seed: int) -> Any:
    """A clone fitted with weights s·w. Rows of weight 0 are left out, so that no step of a pipeline sees them."""
    weight = rows.s * w
    kept = np.flatnonzero(weight > 0)
    weight = weight[kept]
    argument = None if np.all(weight == 1) else weight_argument(estimator)
    weights = {} if argument is None else {argument: weight}
    return _seeded(clone(estimator), seed).fit(_safe_indexing(rows.X, kept), rows.y[kept], **weights)


def _seeded(estimator: Any, seed: int) -> Any:
    """Random states that were left open, fixed: a round must differ from the last by its weights alone."""
    names = (name for name, value in estimator.get_params().items() if value is None)
    return estimator.set_params(**{name: seed for name in names if name.split("__")[-1] == "random_state"})


def crossfit(
    estimator: Any, rows: Rows, w: np.ndarray, folds: Folds, predict: Callable[[Any, Any], np.ndarray], seed: int
) -> np.ndarray:
    """Predictions P for all rows, each by a model fitted with weights w on its fold's rows."""
    P: np.ndarray | None = None
    for fitted, predicted in folds:
        inside = np.zeros(len(w), dtype=bool)
        inside[fitted] = True
        model = fit_weighted(estimator, rows, spare_classes(np.where(inside, w, 0.0), rows, inside), seed)
        part = predict(model, _safe_indexing(rows.X, predicted))
        P = np.zeros((len(w), *part.shape[1:])) if P is None else P
        P[predicted] = part
    assert P is not None
    return P


def spare_classes(w: np.ndarray, rows: Rows, inside: np.ndarray | None = None) -> np.ndarray:
    """w, but a class of which nobody would be left is kept whole: a model that never saw it cannot judge it."""
    if rows.classes is None:
        return w
    present = rows.s > 0 if inside is None else inside & (rows.s > 0)
    left = np.bincount(rows.t[present], w[present], len(rows.classes))
    return np.where(present & (left[rows.t] == 0), 1.0, w)


def content_folds(rows: Rows, k: int, seed: int) -> Folds:
    """k folds that depend on what the rows contain, not on their order or repetition; each class is spread evenly.

    Equal rows share a fold. A class of fewer than k distinct rows is always fitted, and predicted by the first model.
    """
    there = np.flatnonzero(rows.s > 0)
    keys = _keys(rows, there, seed)
    group = np.zeros(len(there), dtype=np.int64) if rows.classes is None else rows.t[there]
    fold = np.full(len(rows.s), -1)
    begin = 0
    for g in np.unique(group):
        mine = group == g
        distinct, rank = np.unique(keys[mine], return_inverse=True)
        if len(distinct) >= k:
            fold[there[mine]] = (begin + rank) % k
            begin += len(distinct)
    if begin == 0:
        return in_sample(rows)
    rest = fold == -1  # among them rows that s = 0 removes
    return [
        (np.flatnonzero((fold != j) & (rows.s > 0)), np.flatnonzero((fold == j) | (rest & (j == 0)))) for j in range(k)
    ]


def in_sample(rows: Rows) -> Folds:
    """No folds: one model, fitted on and predicting all rows."""
    return [(np.flatnonzero(rows.s > 0), np.arange(len(rows.s)))]


def given_folds(rows: Rows, cv: Any, seed: int) -> Folds:
    """The folds of scikit-learn's ``cv`` argument; an integer gives `content_folds`, None `in_sample`."""
    if cv is None:
        return in_sample(rows)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv={cv} must be at least 2 folds, or None to judge rows by the model fitted on them.")
        return content_folds(rows, int(cv), seed)
    folds = list(check_cv(cv, rows.y, classifier=rows.classes is not None).split(rows.X, rows.y))
    times = np.bincount(np.concatenate([predicted for _, predicted in folds]), minlength=len(rows.s))
    if np.any(times != 1):
        raise ValueError("cv must predict every row exactly once, as KFold and GroupKFold do.")
    return folds


def _keys(rows: Rows, which: np.ndarray, seed: int) -> np.ndarray:
    """A number per row: equal for equal rows, else as good as random."""
    if issparse(rows.X):
        X: Any = rows.X
        X = X.sorted_indices()
        content = [_bytes(X.indices[a:b]) + _bytes(X.data[a:b]) for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
    else:
        content = [_bytes(row) for row in np.asarray(rows.X)]
    salt = str(seed).encode()[-16:]
    digests = (blake2b(content[i] + _bytes(rows.y[i]), digest_size=8, salt=salt).digest() for i in which)
    return np.fromiter((int.from_bytes(digest, "little") for digest in digests), dtype=np.uint64, count=len(which))


def _bytes(values: Any) -> bytes:
    """Numbers as float64, with one zero; anything else by how it prints."""
    a = np.asarray(values)
    return (a.astype(np.float64) + 0.0).tobytes() if a.dtype.kind in "biuf" else repr(a.tolist()).encode()
