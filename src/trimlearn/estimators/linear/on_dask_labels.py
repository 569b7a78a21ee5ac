"""Logistic regression of rows on a cluster: by a sample of them, then by all."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from trimlearn._utils.validation import check_choice, check_positive
from trimlearn.engines.cluster.rows import Placed, ShardRows
from trimlearn.estimators.inputs import places
from trimlearn.estimators.linear.many_labels import check_sampled, fit_many_labels
from trimlearn.estimators.linear.on_dask_label_fits import DaskLabelFits
from trimlearn.estimators.on_dask import by_sample, placed_rows
from trimlearn.estimators.streamed import refuse_choice

__all__ = ["fit_logistic_on_dask"]

SEVERAL_KINDS = "y holds labels of several kinds, text and numbers: write all of them as text."
MANY_LABELS = 1000  # different labels from which on they are taken for numbers: more classes than a softmax is for


def fit_logistic_on_dask(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit ``model`` to rows on a cluster: as `fit_logistic_stream` does, but that each worker holds its rows."""
    refuse_choice(model)
    check_positive(model.C, "C")
    if model.penalty is not None:
        check_choice(model.penalty, ("l2", "l1", "elasticnet"), "penalty")
    if model.balanced_trimming:
        raise ValueError(
            "rows on a cluster are trimmed whatever their class: give balanced_trimming=False, or fit the model to a "
            "sample of the rows."
        )
    with placed_rows(X, y, sample_weight) as placed:
        model.classes_, counts = _classes(placed)
        if model.class_weight is not None:
            placed = placed.mapped(_with_class_weights, model.classes_, _class_weights(model, counts))
        found = by_sample(model, X, placed, class_weight=None)  # which the rows have
        if found is not None:
            check_sampled(found.known, model.classes_)
            fit_many_labels(DaskLabelFits(model, found), found.h)


def _classes(placed: Placed) -> tuple[np.ndarray, np.ndarray]:
    """The labels of all rows, and how many have each; ValueError where there is one, or where they are numbers."""
    found = placed.gathered(_labels)
    if len({isinstance(labels[0], str) for labels, _ in found}) > 1:
        raise ValueError(SEVERAL_KINDS)
    classes, place = np.unique(np.concatenate([labels for labels, _ in found]), return_inverse=True)
    counts = np.bincount(place.ravel(), np.concatenate([counts for _, counts in found]), len(classes))
    if classes.dtype.kind == "f" and len(classes) > min(MANY_LABELS, placed.n**0.5 + 1):
        raise ValueError("y holds numbers, not labels: use TrimmedLinearRegression, or round them first.")
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {classes[0]}; a classifier needs two at least.")
    return classes, counts


def _labels(block: ShardRows) -> tuple[np.ndarray, np.ndarray]:
    try:
        return np.unique(block.t, return_counts=True)
    except TypeError as error:  # they have no order
        raise ValueError(SEVERAL_KINDS) from error


def _class_weights(model: Any, counts: np.ndarray) -> np.ndarray:
    """What a row of each class counts, as scikit-learn has it."""
    if isinstance(model.class_weight, str) and model.class_weight == "balanced":
        return np.asarray(counts.sum() / (len(counts) * counts))
    return np.asarray(compute_sample_weight(model.class_weight, model.classes_), dtype=np.float64)


def _with_class_weights(block: ShardRows, classes: np.ndarray, weights: np.ndarray) -> ShardRows:
    return block.weighed(weights[places(block.t, classes)])
