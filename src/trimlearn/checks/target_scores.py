"""How well the models predict targets of rows that they have not seen, plain and trimmed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from trimlearn._utils.arrays import Array, Flags, Floats
from trimlearn.checks.findings import ModelScore, Task
from trimlearn.checks.target_linear import LinearFits, new_plain

__all__ = ["linear_predictions", "model_scores"]

FOLDS = 5  # of cross-validation, as is usual; fewer where a class has fewer rows


def linear_predictions(X: Floats, y: Array, task: Task, fits: LinearFits, seed: int) -> tuple[Array, Array]:
    """What the plain and the trimmed linear model predict for ``fits.rows``, each fitted on the other folds.

    In the folds the trimmed model is the plain one fitted with the trimmed one's weights: its last step.
    """
    rows = fits.rows
    X, y, n = X[rows], y[rows], len(rows)
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    found = []
    for w in (np.ones(n), np.asarray(fits.trimmed.weights_, dtype=np.float64)):
        predicted = np.zeros(n, dtype=y.dtype)
        for k in range(FOLDS):
            inside = (fold != k) & (w > 0)
            if len(np.unique(y[inside])) < 2:  # a class that is always the answer
                predicted[fold == k] = y[inside][0]
                continue
            model: Any = new_plain(task).fit(X[inside], y[inside], sample_weight=w[inside])
            predicted[fold == k] = model.predict(X[fold == k])
        found.append(predicted)
    return found[0], found[1]


def model_scores(
    y: Array,
    task: Task,
    good: Flags,
    linear_rows: Array,
    linear: tuple[Array, Array],
    boosting_rows: Array,
    boosting: tuple[Array, Array],
) -> tuple[ModelScore, ...]:
    """Of both models, plain and trimmed, on the ``good`` ones of the rows each was asked about.

    y and all predictions are in the units of the table.
    """
    found: list[ModelScore] = []
    fits: tuple[Literal["plain", "trimmed"], ...] = ("plain", "trimmed")
    for model, rows, predictions in (("linear", linear_rows, linear), ("boosting", boosting_rows, boosting)):
        on = good[rows]
        for fit, predicted in zip(fits, predictions, strict=True):
            if task == "classification":
                share = float(np.mean(predicted[on] == y[rows][on]))
                found.append(ModelScore(model, fit, "share of labels predicted", share, "higher"))
            else:
                error = float(np.median(np.abs(predicted[on] - y[rows][on])))
                found.append(ModelScore(model, fit, "median absolute error", error, "lower"))
    return tuple(found)
