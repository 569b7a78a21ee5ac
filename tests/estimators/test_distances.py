"""Robust distances in a regression's table: from the columns that can have one, and what is said of each row."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from benchmarks.calibration import stored
from benchmarks.calibration.ties import far
from trimlearn import TrimmedGLM, TrimmedLinearRegression
from trimlearn.estimators.linear.distances import feature_distances
from trimlearn.plots import plot_outlier_map
from trimlearn.robust.regression.features import ALIKE

N = 200


def normal(n: int = N, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


OTHERS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "one-hot": lambda rng: np.eye(4)[rng.integers(0, 4, N)],
    "two levels, half each": lambda rng: np.eye(2)[np.arange(N) % 2],
    "a rare level": lambda rng: np.eye(2)[(np.arange(N) == 7).astype(int)],
    "three ordinal values": lambda rng: rng.integers(0, 3, (N, 1)).astype(float),
    "rare counts": lambda rng: rng.poisson(0.5, (N, 1)).astype(float),
    "mostly zero": lambda rng: np.where(rng.random((N, 2)) < 0.6, 0.0, rng.standard_normal((N, 2))),
    "constant": lambda rng: np.full((N, 1), 3.0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_columns_that_have_no_distance_are_left_out(name: str) -> None:
    X = normal()
    plain = feature_distances(X, None, seed=0)
    mixed = feature_distances(np.hstack([OTHERS[name](np.random.default_rng(1)), X]), None, seed=0)
    assert plain is not None and mixed is not None
    assert mixed.columns.tolist() == (plain.columns + OTHERS[name](np.random.default_rng(1)).shape[1]).tolist()
    np.testing.assert_array_equal(mixed.of(np.hstack([OTHERS[name](np.random.default_rng(1)), X])), plain.of(X))


@pytest.mark.parametrize(
    "column",
    [
        lambda rng: rng.poisson(5, N),
        lambda rng: rng.integers(1, 8, N),
        lambda rng: np.round(10 * rng.standard_normal(N)),
        lambda rng: rng.integers(1900, 2020, N),
    ],
    ids=["counts", "ratings from 1 to 7", "rounded", "years"],
)
def test_integers_of_many_values_have_a_distance(column: Callable[[np.random.Generator], np.ndarray]) -> None:
    X = np.column_stack([normal(), column(np.random.default_rng(2))])
    found = feature_distances(X, None, seed=0)
    assert found is not None and found.columns.tolist() == [0, 1, 2, 3]
    assert np.mean(found.of(X) > found.limit) < 0.1
    X[5, 3] += 1e3
    again = feature_distances(X, None, seed=0)
    assert again is not None and again.of(X)[5] > 20


def test_columns_that_determine_each_other_are_taken_once() -> None:
    X = normal()
    total = np.column_stack([X, X.sum(axis=1), 1e6 - 1e3 * X[:, 0], X[:, 1]])
    found = feature_distances(total, None, seed=0)
    plain = feature_distances(X, None, seed=0)
    assert found is not None and plain is not None and len(found.columns) == 3
    np.testing.assert_allclose(found.of(total), plain.of(X), rtol=1e-6)
    parts = found.parts(total[:5])
    np.testing.assert_allclose(parts.sum(axis=1), found.of(total[:5]) ** 2)
    assert not np.delete(parts, found.columns, axis=1).any()


@pytest.mark.parametrize("size", [1e3, 1e9, 1e15, -1e80])
def test_one_wild_cell_is_far_and_costs_the_others_nothing(size: float) -> None:
    X = normal()
    X[3, 2] = size
    wild, without = feature_distances(X, None, seed=0), feature_distances(np.delete(X, 3, axis=0), None, seed=0)
    assert wild is not None and without is not None and wild.columns.tolist() == [0, 1, 2]
    others = np.delete(wild.of(X), 3)
    assert wild.of(X)[3] > 100 and np.max(np.abs(others - without.of(np.delete(X, 3, axis=0)))) < 0.3


def test_weights_count_rows() -> None:
    X, s = normal(60, 2), np.random.default_rng(3).integers(0, 3, 60).astype(float)
    weighted = feature_distances(X, s, seed=0)
    repeated = feature_distances(np.repeat(X, s.astype(int), axis=0), None, seed=0)
    assert weighted is not None and repeated is not None
    np.testing.assert_allclose(weighted.of(X), repeated.of(X), rtol=1e-6)
    tied = np.column_stack([X, np.arange(60.0)])
    heavy = np.ones(60)
    heavy[4] = 30  # the row 30 times: a third of the rows have its values
    assert feature_distances(tied, heavy, seed=0) is None


@pytest.mark.parametrize("X", [csr_array(normal()), normal(10, 3), np.eye(3)[np.arange(N) % 3]])
def test_where_there_are_no_distances(X: object) -> None:
    assert feature_distances(X, None, seed=0) is None


def dummies() -> tuple[pd.DataFrame, np.ndarray]:
    """Row 0 a vertical outlier above, 1 one below, 2 a good leverage point, 3 a bad one; and a factor of six levels."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(normal(N, 2, seed=5), columns=["age", "income"])
    frame.loc[[2, 3], "age"] = 15.0
    factor = pd.get_dummies(pd.Series(rng.choice(list("abcdef"), N)), dtype=float, drop_first=True)
    y = frame.to_numpy() @ [1.0, 2.0] + factor.to_numpy() @ np.arange(5.0) + 0.1 * rng.standard_normal(N)
    y[[0, 1, 3]] += [20, -20, 20]
    return pd.concat([frame, factor], axis=1), y


@pytest.mark.parametrize("model", [TrimmedLinearRegression(random_state=0), TrimmedGLM("huber", random_state=0)])
def test_kinds_with_dummies_among_the_features(model: TrimmedLinearRegression | TrimmedGLM) -> None:
    X, y = dummies()
    table = model.fit(X, y).outlier_table()
    found = {row["row"]: row for row in table}
    kinds = [found[i]["kind"] for i in range(4)]
    assert kinds == ["vertical outlier", "vertical outlier", "good leverage", "bad leverage"]
    assert np.max(table["distance"]) < 30 and np.sum(table["distance"] > 5) == 2
    assert found[0]["features"] == f"y is {found[0]['score']:.3g} sigma too high"
    assert found[1]["features"] == f"y is {found[1]['score']:.3g} sigma too low"
    assert found[2]["features"].startswith("age ") and found[3]["features"].startswith("age ")
    far_line = plot_outlier_map(model).lines[0].get_xdata()[0]
    assert far_line == pytest.approx(2.716, abs=1e-3)  # of two columns, not of seven


def test_without_distances_an_outlier_is_only_that() -> None:
    """Whether it is a leverage point is not known, and not said."""
    X = np.eye(4)[np.arange(N) % 4][:, 1:]
    y = X @ [1.0, 2.0, 3.0] + 0.1 * np.random.default_rng(6).standard_normal(N)
    y[0] += 9
    model = TrimmedLinearRegression(random_state=0).fit(X, y)
    table = model.outlier_table()
    assert table[0]["kind"] == "outlier" and set(table["kind"]) == {"outlier", "regular"}
    assert table[0]["features"].startswith("y is ") and "distance" not in table
    assert set(table["features"][~table["outlier"]]) == {""}
    with pytest.raises(ValueError, match="all categories"):
        plot_outlier_map(model)


# -- what the comment on ALIKE says ------------------------------------------------------------------------------------


def test_the_table_of_ties_is_found_again() -> None:
    key = {"rest": "normal", "share": 0.3, "n": 100, "tied": 1, "seed": 0}
    (row,) = (row for row in stored("ties")["rows"] if key.items() <= row.items())
    assert far(**key) == pytest.approx(row["far"], abs=1e-6)


def test_what_the_comment_on_the_constant_says() -> None:
    summary = stored("ties")["summary"]
    mean, worst = ({(row["rest"], row["share"]): row[figure] for row in summary} for figure in ("far", "worst"))
    assert max(value for (_, share), value in mean.items() if share <= ALIKE) < 0.05
    assert max(value for (_, share), value in worst.items() if share <= ALIKE) < 0.1
    assert worst["normal", 0.35] == 0.5


# -- where nothing can be trimmed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [TrimmedLinearRegression, lambda: TrimmedGLM("huber")])
def test_too_few_rows_to_trim_any_is_said(make: Callable[[], TrimmedLinearRegression]) -> None:
    rng = np.random.default_rng(0)
    y = rng.standard_normal(20)
    for p, silent in ((18, False), (30, False), (17, True)):
        model, X = make(), rng.standard_normal((20, p))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model.fit(X, y)
        assert any("nothing is trimmed" in str(warning.message) for warning in said) is not silent
    model = make().set_params(contamination=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert model.fit(rng.standard_normal((20, 17)), y).weights_.min() == 0  # as asked for: nothing to be said
