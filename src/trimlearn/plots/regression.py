"""What a picture needs to know of a regression: signed residuals, predictions, and distances of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn._utils.validation import is_sparse
from trimlearn.estimators.inputs import filled_numbers
from trimlearn.estimators.linear.distances import Distances, feature_distances
from trimlearn.plots.subject import Subject, nameless


def predictions(of: Subject) -> Floats:
    """What the model expects of each row."""
    with nameless():
        found = np.asarray(of.model.predict(of.data.X), dtype=np.float64)
    if found.ndim > 1:
        raise ValueError("a picture of residuals is for one target; fit them one at a time.")
    return found


def signed_scores(of: Subject, expected: Floats) -> Floats:
    """Residuals in units of their scale: scores with the sign of y − expected."""
    return np.asarray(np.sign(np.asarray(of.data.t, dtype=np.float64) - expected) * of.scores)


def dense(X: Any) -> Floats:
    """A matrix written out."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def robust_distances(of: Subject) -> tuple[Distances, Floats]:
    """Distances of the features by their robust covariance, and those of the rows drawn."""
    X = filled_numbers(of.data.X)
    if X is None:
        raise ValueError("X holds more than numbers, which have no distances: use plot_residuals or plot_scores.")
    found = feature_distances(X, of.data.s, of.model.random_state)
    if found is None:
        raise ValueError(
            "there are no robust distances of the features: X is sparse, has too few rows, or is all categories. Use "
            "plot_residuals or plot_scores."
        )
    return found, found.of(np.asarray(X))
