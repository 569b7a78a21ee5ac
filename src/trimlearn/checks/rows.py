"""Rows that are unlike all others as a whole."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimlearn.checks.findings import OddRow, RowFindings
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["odd_rows"]

FEWEST = 20  # rows; of fewer, none can be told to be odd
EACH = 5  # rows for every column: fewer do not fix a covariance


def odd_rows(
    table: Table, mended: pd.DataFrame, *, pinned: dict[int, bool] | None = None, seed: int = 0
) -> RowFindings:
    """Rows judged by the covariance of the numeric columns."""
    pinned = pinned or {}
    names = table.of_kind("number")
    n = len(mended)
    X = mended[names].to_numpy(dtype=np.float64) if names else np.zeros((n, 0))
    if X.shape[1] < 2 or n < max(FEWEST, EACH * X.shape[1]):
        return RowFindings((), np.full(n, np.nan), np.inf, 0.0, ("Rows were not judged as a whole: too few.",))
    X = np.where(np.isfinite(X), X, np.nanmedian(X, axis=0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit: Any = TrimmedCovariance(random_state=seed).fit(X)
    flagged: NDArray[np.bool_] = ~fit.inlier_mask_
    odd = tuple(
        OddRow(int(i), float(fit.outlier_scores_[i]), float(fit.outlier_probability_[i]), ())
        for i in np.flatnonzero(flagged)
        if pinned.get(int(i)) is not False
    )
    caveats = tuple(str(w.message) for w in caught)
    return RowFindings(
        odd, fit.outlier_scores_, float(fit.threshold_), fit.contamination_, caveats, {"covariance": fit}
    )
