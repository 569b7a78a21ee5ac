"""What a newcomer hands in that cannot be right: each error names the argument and what helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

from trimlearn import (
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedGraphicalLasso,
    TrimmedGraphicalLassoCV,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    TrimmedPCA,
    open_dataset,
)
from trimlearn.estimators import streamed
from trimlearn.estimators.linear.model import lies_elsewhere
from trimlearn.estimators.on_dask import OnDask

X = np.random.default_rng(0).normal(size=(40, 2))
NUMBERS = X @ [1.0, -1.0]
LABELS = np.where(NUMBERS > 0, "yes", "no").astype(object)
FRAME = pd.DataFrame({"age": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue")})
ON_NUMBERS = [TrimmedLinearRegression(random_state=0), TrimmedGLM("huber", random_state=0)]
ON_LABELS = [
    TrimmedLogisticRegression(random_state=0),
    TrimmedEstimator(LogisticRegression(), random_state=0),
]
ALONE = [TrimmedPCA(1, random_state=0), TrimmedCovariance(random_state=0), TrimmedGraphicalLasso(random_state=0)]


def name(model: Any) -> str:
    return type(model).__name__


@pytest.mark.parametrize("model", [*ON_NUMBERS, ON_LABELS[0], *ALONE], ids=name)
def test_text_in_x_is_named_with_its_columns(model: Any) -> None:
    y = LABELS if model is ON_LABELS[0] else NUMBERS
    dates = FRAME.assign(colour=pd.date_range("2024-01-01", periods=40))
    for frame in (FRAME, FRAME.astype({"colour": "category"}), dates):
        with pytest.raises(ValueError, match=rf"in the columns \['colour'\], and {name(model)} takes .*OneHotEncoder"):
            model.fit(frame, y)
    with pytest.raises(ValueError, match=r"X holds text \(could not convert.*\), and"):
        model.fit(FRAME.to_numpy(), y)


@pytest.mark.parametrize("model", [ON_NUMBERS[0], *ALONE], ids=name)
def test_dates_alone_are_no_numbers(model: Any) -> None:
    dates = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40)})
    with pytest.raises(ValueError, match=r"dates in the columns \['day'\]"):
        model.fit(dates, NUMBERS)
    with pytest.raises(ValueError, match=r"X holds text \(datetime\), and"):
        model.fit(dates.to_numpy(), NUMBERS)


@pytest.mark.parametrize("model", [TrimmedGraphicalLasso(0.1, random_state=0), TrimmedGraphicalLassoCV(random_state=0)])
@pytest.mark.parametrize("others", [np.repeat(X[1:2], 3, axis=0), X[1:6]], ids=["one other row", "others"])
def test_most_rows_are_copies_of_one(model: Any, others: np.ndarray) -> None:
    rows = np.concatenate([np.repeat(X[:1], 15, axis=0), others])
    with pytest.warns(UserWarning, match=r"features \[0, 1\] of X do not vary among the rows that agree"):
        model.fit(rows)
    np.testing.assert_array_equal(model.inlier_mask_, np.arange(len(rows)) < 15)
    assert np.all(np.isfinite(model.outlier_scores_))


@pytest.mark.filterwarnings("ignore:.*lie exactly in a subspace")
def test_rows_infinitely_far_from_copies_of_one_have_scores() -> None:
    rows = np.repeat(np.random.default_rng(3).normal(size=(2, 3)), [15, 3], axis=0)
    scores = TrimmedPCA(1, random_state=0).fit(rows).score_samples(rows)
    assert scores[:15].min() > scores[15:].max()


@pytest.mark.parametrize("model", ON_NUMBERS, ids=name)
def test_labels_are_no_numbers(model: Any) -> None:
    with pytest.raises(ValueError, match=f"y holds text, and {name(model)} predicts numbers"):
        model.fit(X, LABELS)
    holes = NUMBERS.astype(object)
    holes[3] = None
    with pytest.raises(ValueError, match="Input y contains NaN"):
        model.fit(X, holes)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("model", ON_LABELS, ids=name)
def test_missing_labels_are_counted(model: Any, missing: Any) -> None:
    y = LABELS.copy()
    y[[3, 5]] = missing
    with pytest.raises(ValueError, match="y holds 2 missing labels, the first in row 3: drop those rows"):
        model.fit(X, y)


@pytest.mark.parametrize("model", ON_LABELS, ids=name)
def test_one_class(model: Any) -> None:
    with pytest.raises(ValueError, match="y holds one class only, yes; a classifier needs two at least"):
        model.fit(X, np.full(40, "yes"))


def test_no_rows() -> None:
    with pytest.raises(ValueError, match="no rows"):
        TrimmedEstimator(Ridge()).fit(X[:0], NUMBERS[:0])


# -- where the data lie -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [X, X.tolist(), tuple(X), [], FRAME, sp.csr_array(X)], ids=lambda given: type(given).__name__
)
def test_what_is_in_memory_does_not_lie_elsewhere(given: Any) -> None:
    assert not lies_elsewhere(given, NUMBERS)


@pytest.mark.parametrize(
    ("given", "y"),
    [
        ("rows.csv", "price"),
        (Path("rows.parquet"), 2),
        (["one.csv", "two.csv"], "price"),
        (X, "price"),
        (open_dataset(X, NUMBERS), None),
    ],
    ids=["path", "path object", "paths", "a target by name", "dataset"],
)
def test_files_and_datasets_lie_elsewhere(given: Any, y: Any) -> None:
    assert lies_elsewhere(given, y)


def test_rows_on_a_cluster_and_large_arrays_lie_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    da = pytest.importorskip("dask.array")
    assert lies_elsewhere(da.from_array(X), da.from_array(NUMBERS))
    assert lies_elsewhere(OnDask(open_dataset(X, NUMBERS), None), None)
    monkeypatch.setattr(streamed, "STREAMED", X.size - 1)
    assert lies_elsewhere(X, NUMBERS)


def test_dates_as_a_target_are_refused() -> None:
    """NumPy takes them for numbers, of nanoseconds."""
    X = np.arange(20.0)[:, None]
    days = np.datetime64("2026-01-01") + np.arange(20)
    for model in (TrimmedGLM(), TrimmedLinearRegression(), TrimmedEstimator(Ridge())):
        for y in (days, days - days[0]):
            with pytest.raises(ValueError, match="y holds dates or times"):
                model.fit(X, y)


def test_text_as_the_target_of_a_wrapped_regressor_is_named() -> None:
    with pytest.raises(ValueError, match="y holds text"):
        TrimmedEstimator(Ridge()).fit(np.arange(6.0)[:, None], np.array(list("ababab")))


def test_relative_weights_are_not_warned_of_where_only_their_ratios_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    y, s = rng.poisson(5.0, size=40), np.full(40, 1 / 40)
    with catch_warnings():
        simplefilter("error")
        light = TrimmedGLM(random_state=0).fit(X, y, sample_weight=s)
    np.testing.assert_allclose(light.coef_, TrimmedGLM(random_state=0).fit(X, y).coef_, atol=1e-8)
