"""What estimators that choose a penalty by cross-validation share: the grid of strengths, and the folds."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from trimlearn.robust.regression.sparse import FOLDS

Floats = NDArray[np.float64]
Split = tuple[NDArray[np.bool_], NDArray[np.bool_]]  # the rows to fit, and those to predict


def check_grid(values: Any, name: str, grid: Callable[[int], Any]) -> Floats:
    """Strengths from the largest to the least: as given, or the ``grid`` of so many.

    >>> check_grid([1.0, 3.0], "alphas", np.zeros)
    array([3., 1.])
    """
    if isinstance(values, Integral) and not isinstance(values, bool):
        if values < 1:
            raise ValueError(f"{name} must be at least 1, got {values!r}.")
        return np.asarray(grid(int(values)))
    found = _as_floats(values)
    if found.ndim != 1 or not found.size or not np.all(np.isfinite(found) & (found >= 0)):
        raise ValueError(f"{name} must be a whole number or a list of finite numbers >= 0, got {values!r}.")
    return np.sort(found)[::-1]


def _as_floats(values: Any) -> Floats:
    """Numbers, or NaN for what is none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full(1, np.nan)


def check_ratios(values: Any, name: str) -> list[float]:
    """Shares of L1, one or several.

    >>> check_ratios(0.5, "l1_ratio")
    [0.5]
    """
    ratios = np.atleast_1d(_as_floats(values))
    if ratios.ndim != 1 or not ratios.size or not np.all((ratios >= 0) & (ratios <= 1)):
        raise ValueError(f"{name} must be a number from 0 to 1 or a list of such, got {values!r}.")
    return [float(ratio) for ratio in ratios]


def distinct_splits(
    cv: Any, X: Any, t: Any, where: NDArray[np.int64] | None, n: int, classifier: bool = False, times: int = 1
) -> list[Split]:
    """What is fitted and what is predicted in each split of the n distinct rows, as masks.

    where: the place of each row of X among them, −1 for one that is gone; None: they are the rows of X. The splits of a
    number of folds depend on the contents of rows alone; elsewhere a row is where its first copy is. times: in how many
    orders the rows are put into folds where cv is None.

    >>> train, test = distinct_splits(2, None, None, None, 3)[0]
    >>> train, test
    (array([False,  True, False]), array([ True, False,  True]))
    """
    folds, times = (FOLDS, times) if cv is None else (cv, 1)
    if isinstance(folds, Integral) and not isinstance(folds, bool):
        if folds < 2:
            raise ValueError(f"cv must be at least 2, got {cv!r}.")
        number, again = max(2, min(int(folds), n)), range(1, times)
        orders = [np.arange(n), *(np.random.Generator(np.random.Philox(key=k)).permutation(n) for k in again)]
        return [(order % number != k, order % number == k) for order in orders for k in range(min(number, n))]
    first = np.arange(n)
    if where is not None:
        place, row = np.unique(where, return_index=True)
        first = row[place >= 0]
    splits = check_cv(cv, t, classifier=classifier).split(X, t)
    masks = [(np.isin(first, train), np.isin(first, test)) for train, test in splits]
    return [(train & ~test, test) for train, test in masks if np.any(train & ~test) and np.any(test)]
