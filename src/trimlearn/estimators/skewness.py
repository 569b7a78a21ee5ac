"""Whether rows are called bad only because features are skewed: the same fit where their bulk is about normal."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from sklearn.base import clone

from trimlearn._utils.validation import is_sparse
from trimlearn._utils.warn import warn
from trimlearn.estimators.detector import Detector
from trimlearn.estimators.doubtful_rows import ASKED, DOUBT, called_bad
from trimlearn.robust.cells.transform import ColumnTransform

__all__ = ["warn_of_skewed_features"]

ROWS: Final = 1_000  # that features are transformed by, and fitted to again, a limit on time
COLUMNS: Final = 100  # features up to which that is tried, a limit on time
RIGHT: Final = 0.5  # of them, that transformed features may leave bad where it is said: most of them may be right then
DISTINCT: Final = 0.5  # of the values of a feature, at least, that it is transformed: one of few values has no shape


def warn_of_skewed_features(model: Detector, X: Any, s: np.ndarray) -> bool:
    """UserWarning where so many fewer rows are bad if features are first made symmetric, that these may be right.

    By the same fit to features transformed as `trimlearn.robust.cells.transform` does it, each as the rows kept say:
    where these are normal nothing is transformed, and nothing is fitted. Whether it was said.
    """
    bad = called_bad(model.contamination_, np.asarray(model.weights_) <= 0, s)
    if bad <= ASKED or is_sparse(X) or X.shape[1] > COLUMNS:
        return False
    rows = np.flatnonzero(s > 0)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), ROWS)).astype(np.int64)]
    A, good = np.array(X[rows], dtype=np.float64), np.asarray(model.weights_)[rows] > 0
    skewed = False
    for j, x in enumerate(A[good].T):
        if len(np.unique(x)) > max(2.0, DISTINCT * len(x)):
            curve = ColumnTransform.of(x)
            skewed = skewed or curve.power != 1.0
            A[:, j] = curve.into(A[:, j]) if curve.power != 1.0 else A[:, j]
    if not skewed:
        return False
    again = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is told is one sentence
        again.fit(A, sample_weight=s[rows])
    left = called_bad(again.contamination_, np.asarray(again.weights_) <= 0, s[rows])
    if left > max(RIGHT * bad, bad - DOUBT):
        return False
    warn(
        f"{bad:.0%} of the rows are bad if the good ones are normal as they are, and "
        f"{left:.0%} if powers or logarithms of the features are: a skewed tail is no error. The "
        "data do not tell which; transform skewed features, or give contamination if you know.",
    )
    return True
