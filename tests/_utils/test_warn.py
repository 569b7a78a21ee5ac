"""Warnings point at the user's line, whatever lies between it and what is doubtful."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import trimlearn
from trimlearn import (
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedGraphicalLasso,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    TrimmedPCA,
    outlier_table,
)
from trimlearn._utils.warn import warn
from trimlearn.geometry import TrimmedHomography

pytestmark = pytest.mark.usefixtures("quick_fits")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NUMBERS = X @ [1.0, 2.0, -1.0] + RNG.normal(size=60)
LABELS = (NUMBERS > 0).astype(int)
MOST = 0.6  # "calls half of the examples wrong, or more": every estimator warns of it

CASES: list[tuple[Any, Any]] = [
    (TrimmedLinearRegression(MOST), NUMBERS),
    (TrimmedGLM("huber", MOST), NUMBERS),
    (TrimmedLogisticRegression(MOST), LABELS),
    (TrimmedPCA(1, contamination=MOST, random_state=0), None),
    (TrimmedCovariance(MOST, random_state=0), None),
    (TrimmedGraphicalLasso(0.1, contamination=MOST, random_state=0), None),
    (TrimmedEstimator(Ridge(), contamination=MOST), NUMBERS),
]
every = pytest.mark.parametrize(("model", "y"), CASES, ids=lambda value: type(value).__name__)


def strays(call: Callable[[], Any], words: str) -> list[tuple[str, int]]:
    """Where warnings in these words point to, other than to the line of the call, a lambda of this file.

    Where there is no such warning at all, that is a stray too.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [(one.filename, one.lineno) for one in caught if re.search(words, str(one.message))]
    line = __file__, inspect.getsourcelines(call)[1]
    return [place for place in found if place != line] if found else [("no warning", 0)]


@every
def test_fit(model: Any, y: Any) -> None:
    assert strays(lambda: model.fit(X, y), "half of the examples") == []


@every
def test_fit_in_a_pipeline_and_a_search(model: Any, y: Any) -> None:
    pipe = make_pipeline(StandardScaler(), clone(model))
    assert strays(lambda: pipe.fit(X, y), "half of the examples") == []
    if y is not None:
        grid = GridSearchCV(clone(model), {"random_state": [0]}, cv=2)
        assert strays(lambda: grid.fit(X, y), "half of the examples") == []


@every
def test_rethreshold(model: Any, y: Any) -> None:
    fitted = clone(model).set_params(contamination=0.1).fit(X, y)
    assert strays(lambda: fitted.rethreshold(MOST), "half of the examples") == []


WEIGHED = [case for case in CASES[:6] if not isinstance(case[0], TrimmedGLM)]  # for which only ratios of weights matter


@pytest.mark.parametrize(("model", "y"), WEIGHED, ids=lambda value: type(value).__name__)
def test_outlier_table(model: Any, y: Any) -> None:
    fitted = clone(model).set_params(contamination=0.1).fit(X, y)
    pipe = make_pipeline(StandardScaler(), clone(model).set_params(contamination=0.1)).fit(X, y)
    few = np.full(60, 1e-3)
    assert strays(lambda: fitted.outlier_table(X, y, sample_weight=few), "sample_weight sums to") == []
    assert strays(lambda: outlier_table(pipe, X, y, sample_weight=few), "sample_weight sums to") == []


def test_deep_inside_a_fit() -> None:
    short = TrimmedLinearRegression(0.1, penalty="l1", max_passes=1)
    assert strays(lambda: short.fit(X, NUMBERS), "stopped short") == []
    large = RNG.normal(size=(3000, 60))
    once = TrimmedPCA(10, contamination=0.3, max_iter=1, random_state=0)
    assert strays(lambda: once.fit(large), "stopped after") == []
    assert strays(lambda: TrimmedCovariance(random_state=0).fit(np.column_stack([X, X[:, 0]])), "singular") == []
    few = TrimmedLogisticRegression(0.45)
    assert strays(lambda: few.fit(X, (np.arange(60) < 5) ^ (X[:, 0] > 9)), "keeps no row of") == []
    points = RNG.uniform(0, 100, size=(30, 2))
    moved = points + RNG.normal(size=(30, 2))
    assert strays(lambda: TrimmedHomography(threshold=1e-9).fit(points, moved), "threshold=1e-09") == []


def test_from_the_users_function() -> None:
    def users() -> None:
        warn("doubtful", RuntimeWarning)

    with pytest.warns(RuntimeWarning, match="doubtful") as caught:
        users()
    assert caught[0].filename == __file__


def test_nothing_in_the_package_counts_frames_by_itself() -> None:
    package = Path(trimlearn.__file__).parent
    others = [file for file in package.rglob("*.py") if file.name != "warn.py"]
    assert [file.name for file in others if "warnings.warn(" in file.read_text(encoding="utf-8")] == []
