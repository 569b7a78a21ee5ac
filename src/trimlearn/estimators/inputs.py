"""What users hand in, checked by scikit-learn, with errors that say what to do about text and missing labels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from trimlearn._utils.residence import on_host
from trimlearn._utils.validation import is_collection, is_missing, is_sparse
from trimlearn._utils.warn import warn

SHARE = 0.05  # of the number of rows: weights that sum to 1 sum to less from 20 rows on, and do not count rows
NO_NUMBERS = "could not convert string|could not be promoted|[Dd]ate[Tt]ime"  # of NumPy, and of pandas


def check_data(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """scikit-learn's `validate_data` for X, or X and y; of text it is said where it is, and what helps. ``y_numeric``
    makes y numbers of the type of X. CUDA tensors come to the host."""
    refuse_collections(estimator, X, *y)
    X, y = on_host(X), tuple(on_host(part) for part in y)
    try:
        if _dates(X):
            raise TypeError("datetime")
        found = validate_data(estimator, X, *y, **options)
        if not y and found.dtype.kind == "O":  # a category beside numbers slips through
            found = found.astype(np.float64)
    except (TypeError, ValueError) as error:
        if not re.search(NO_NUMBERS, str(error)):
            raise
        if y and options.get("y_numeric"):
            check_numbers(y[0], np.float64, type(estimator).__name__)
        columns = _text_columns(X)
        what = f"text, categories or dates in the columns {columns}" if columns else f"text ({error})"
        raise ValueError(
            f"X holds {what}, and {type(estimator).__name__} takes numbers. Encode or drop them: "
            "make_pipeline(make_column_transformer((OneHotEncoder(), columns), remainder='passthrough'), estimator)."
        ) from error
    if not options.get("y_numeric"):
        return found
    return found[0], check_numbers(found[1], found[0].dtype, type(estimator).__name__)


def refuse_collections(estimator: Any, *data: Any) -> None:
    """ValueError for collections of Dask's, which would be computed as a whole, in silence, to become arrays."""
    for value in data:
        if is_collection(value):
            raise ValueError(
                f"{type(estimator).__name__} takes arrays in memory here, got {type(value).__name__} of Dask: call "
                "compute() if it fits in memory. TrimmedLinearRegression and TrimmedLogisticRegression fit to Dask."
            )


def check_numbers(y: Any, dtype: Any, name: str) -> np.ndarray:
    """A target of finite numbers, one per row, for the estimator ``name``."""
    t = as_numbers(column_or_1d(on_host(y), warn=True), dtype, name)
    assert_all_finite(t, input_name="y")
    return t


def as_numbers(y: np.ndarray, dtype: Any, name: str) -> np.ndarray:
    """Targets as numbers, of any shape; dates, which NumPy takes for numbers, are none."""
    if y.dtype.kind in "mM":
        raise ValueError(
            f"y holds dates or times, and {name} predicts numbers: give their distance from one of them in a unit of "
            "your choice, as in (y - y.min()) / np.timedelta64(1, 'D')."
        )
    try:
        return np.asarray(y, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y holds text, and {name} predicts numbers ({error}). For labels use TrimmedLogisticRegression."
        ) from error


def check_labels_known(y: Any) -> None:
    """Labels that are missing (None, NaN) are said to be; only among objects can they hide."""
    y = np.asarray(on_host(y))
    if y.dtype != object or y.ndim == 0:
        return
    missing = [row for row, label in enumerate(y.tolist()) if is_missing(label)]
    if missing:
        raise ValueError(f"y holds {len(missing)} missing labels, the first in row {missing[0]}: drop those rows.")


def _text_columns(X: Any) -> list[str]:
    """The columns of a data frame that are not numbers."""
    if not hasattr(X, "columns"):
        return []
    return [str(name) for name, kind in zip(X.columns, X.dtypes, strict=True) if not _is_number(kind)]


def _dates(X: Any) -> bool:
    """Whether X, or a column of it, holds dates or times, which pass for numbers where there is nothing else."""
    kinds = getattr(X, "dtypes", []) if hasattr(X, "columns") else [getattr(X, "dtype", None)]
    return any(getattr(kind, "kind", None) in ("m", "M") for kind in kinds)


def _is_number(kind: Any) -> bool:
    return str(kind).lower().startswith(("int", "uint", "float", "bool"))


def filled_numbers(X: Any) -> Any:
    """X as a matrix of finite numbers, gaps filled with medians, empty columns with 0; None of anything else."""
    if is_sparse(X):
        return X.tocsr()
    A = np.asarray(X)
    if A.ndim != 2 or A.dtype.kind not in "biuf":
        return None
    A = np.where(np.isfinite(A), A, np.nan).astype(np.float64)
    return SimpleImputer(strategy="median", keep_empty_features=True).fit_transform(A) if np.isnan(A).any() else A


def check_counts(sample_weight: Any, X: Any, dtype: Any = np.float64, *, relative: bool = False) -> np.ndarray:
    """Sample weights that count rows; UserWarning where they cannot, because they sum to a share of the rows. relative:
    whether only their ratios matter."""
    s = _check_sample_weight(on_host(sample_weight), X, dtype=dtype, ensure_non_negative=True)
    total, rows = float(s.sum(dtype=np.float64)), int(np.count_nonzero(s))
    if not rows:
        raise ValueError("Sample weights must contain at least one non-zero number: nothing is left to fit.")
    if total < SHARE * rows and not relative:
        warn(
            f"sample_weight sums to {total:.3g} for {rows} rows, but 2 means the row twice: as so few rows, hardly any "
            f"can be told to be wrong. Multiply it by {rows / total:.3g} if it is relative.",
        )
    return np.asarray(s)


def places(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Each label's place among the sorted classes, −1 for one that is not there."""
    place = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[place] == y, place, -1)
