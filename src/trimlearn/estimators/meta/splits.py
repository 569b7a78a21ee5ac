"""Which rows are fitted and which predicted by each of a few models, so that every row is predicted once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from trimlearn.estimators.meta.crossfit import EncodedExamples, Splits
from trimlearn.robust.distinct import content_folds, content_hashes

__all__ = ["content_splits", "given_splits"]


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
