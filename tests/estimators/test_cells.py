"""CellwiseOutliers on tables of many kinds."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from trimlearn import CellwiseOutliers, TrimmedCovariance, TrimmedPCA


def table(n: int = 150, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, 4))


def cars(seed: int = 0) -> pd.DataFrame:
    """A table as they are: sizes over decades, counts, text, gaps, names."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(sigma=0.5, size=200)
    noise = rng.lognormal(sigma=0.08, size=(200, 3))
    frame = pd.DataFrame(
        {
            "maker": rng.choice(["Fiat", "Ford"], 200),
            "price": 20_000 * size**1.5 * noise[:, 0],
            "weight": 1500 * size**0.5 * noise[:, 1],
            "power": np.rint(100 * size * noise[:, 2]).astype(int),
            "doors": rng.choice([3, 5], 200),
            "wheels": 4,
        },
        index=[f"car {i}" for i in range(200)],
    )
    frame.loc["car 9", "price"] *= 10
    frame.loc["car 30", "weight"] *= -1
    frame.loc["car 50", "power"] *= 100
    frame.loc["car 77", "price"] = np.nan
    return frame


@parametrize_with_checks([CellwiseOutliers()])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # some of its tables have a row or two
        check(estimator)


def test_wrong_cells_are_found_with_what_was_expected_there() -> None:
    truth = cars()
    model = CellwiseOutliers().fit(truth)
    found = {(row["name"], row["column"]) for row in model.table()}
    wrong = {("car 9", "price"): 0.1, ("car 30", "weight"): -1.0, ("car 50", "power"): 0.01}
    assert wrong.keys() <= found and len(found) <= 8
    for (row, column), factor in wrong.items():
        assert model.expected_.loc[row, column] == pytest.approx(truth.loc[row, column] * factor, rel=0.3)
    assert set(model.left_out_) == {"maker", "doors", "wheels"}
    assert not model.cell_mask_[:, [0, 4, 5]].any() and model.cell_mask_.shape == truth.shape


def test_tables_come_back_as_they_went_in() -> None:
    frame = cars()
    before = frame.copy()
    model = CellwiseOutliers().fit(frame)
    pd.testing.assert_frame_equal(frame, before)
    imputed = model.imputed_
    assert list(imputed.columns) == list(frame.columns) and imputed.index.equals(frame.index)
    assert imputed["power"].dtype == frame["power"].dtype and imputed["price"].notna().all()
    same = ~model.cell_mask_ & frame.notna().to_numpy()
    assert np.all((imputed == frame).to_numpy()[same])
    pd.testing.assert_frame_equal(model.transform(frame), imputed)
    np.testing.assert_array_equal(model.predict(frame), model.cell_mask_)
    np.testing.assert_allclose(model.score_cells(frame), model.cell_scores_)
    np.testing.assert_array_equal(model.cell_mask_, np.abs(model.cell_scores_) > model.threshold_)


def test_new_rows_are_judged_by_what_was_learnt() -> None:
    model = CellwiseOutliers().fit(cars())
    new = cars(seed=1)
    assert model.predict(new)[9, 1] and model.predict(new).mean() < 0.02
    assert model.table(new)[0]["name"] in {"car 9", "car 30", "car 50"}
    assert np.array_equal(model.predict(new.iloc[[9]])[0], model.predict(new)[9])


def test_money_in_text_is_read() -> None:
    frame = cars()
    plain = CellwiseOutliers().fit(frame)
    frame["price"] = [x if pd.isna(x) else f"£{x:,.2f}" for x in frame["price"]]
    model = CellwiseOutliers().fit(frame)
    assert np.count_nonzero(model.cell_mask_ != plain.cell_mask_) <= 1  # pence are rounded
    assert "price" not in model.left_out_


@pytest.mark.parametrize("n", [15, 40, 150, 1000])
def test_clean_tables_are_left_alone(n: int) -> None:
    share = np.mean([CellwiseOutliers().fit(table(n, seed)).cell_mask_.mean() for seed in range(5)])
    assert share <= 0.015


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_wrong_cells_among_normal_ones(share: float) -> None:
    for seed in range(3):
        X = table(300, seed)
        wrong = np.random.default_rng(seed).random(X.shape) < share
        truth, X = X.copy(), np.where(wrong, 8.0, X)
        model = CellwiseOutliers().fit(X)
        assert model.cell_mask_[wrong].mean() > 0.97
        assert model.cell_mask_[~wrong].mean() < 0.01
        assert np.median(np.abs(model.imputed_ - truth)[wrong]) < 0.6


def test_units_and_offsets_do_not_matter() -> None:
    X = table()
    X[3, 1] = 30.0
    mask = CellwiseOutliers().fit(X).cell_mask_
    assert mask[3, 1]
    for other in (X + 1e6, X * 1e-9, X * 1e12, -X):
        again = CellwiseOutliers().fit(other).cell_mask_
        assert again[3, 1] and np.count_nonzero(again != mask) <= 1  # rounding may move a cell at the cut-off


def test_missing_infinite_constant_and_common_cells() -> None:
    X = table()
    X[3, 1] = 30.0
    X[5, 0] = np.inf
    X[::7, 2] = np.nan
    X = np.column_stack([X, np.full(len(X), 7.0), np.where(np.arange(len(X)) % 3 == 0, np.exp(3 * X[:, 3]), 0.0)])
    X = np.column_stack([X, np.full(len(X), np.nan)])
    model = CellwiseOutliers().fit(X)
    assert model.cell_mask_[3, 1] and model.cell_mask_[5, 0] and model.cell_scores_[5, 0] == np.inf
    assert model.left_out_ == {"x4": "constant", "x6": "no values"}
    assert not model.cell_mask_[X[:, 5] == 0, 5].any() and model.cell_mask_[:, 5].mean() < 0.05
    assert np.isfinite(model.imputed_[:, :6]).all() and not model.cell_mask_[np.isnan(X)].any()


def test_more_columns_than_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 60)) + 0.3 * rng.normal(size=(40, 60))
    assert CellwiseOutliers().fit(X).cell_mask_.mean() < 0.01
    X[4, 7] += 20
    assert CellwiseOutliers().fit(X).cell_mask_[4, 7]


def test_a_table_that_cannot_be_judged_says_so() -> None:
    with pytest.warns(UserWarning, match="no column of X could be judged: x0: 3 different values only"):
        model = CellwiseOutliers().fit(table(3))
    assert not model.cell_mask_.any() and len(model.table()) == 0


def test_parameters() -> None:
    X = table()
    few, many = CellwiseOutliers(cutoff=0.9999).fit(X), CellwiseOutliers(cutoff=0.95).fit(X)
    assert few.cell_mask_.sum() < many.cell_mask_.sum()
    assert many.cell_mask_.mean() == pytest.approx(0.05, abs=0.03)
    skewed = np.exp(3 * X)
    with pytest.warns(ConvergenceWarning, match="had not settled"):
        assert CellwiseOutliers(transform_columns=False).fit(skewed).cell_mask_.mean() > 0.05
    with pytest.raises(ValueError, match="cutoff must be"):
        CellwiseOutliers(cutoff=2.0).fit(X)
    with pytest.raises(TypeError, match="toarray"):
        from scipy.sparse import csr_array

        CellwiseOutliers().fit(csr_array(X))


def test_it_pickles_and_clones() -> None:
    model = CellwiseOutliers(cutoff=0.999).fit(cars())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.cell_mask_, model.cell_mask_)
    assert clone(model).get_params() == model.get_params()


def test_odd_rows_score_high() -> None:
    X = np.hstack([table(seed=1), table(seed=2)])
    X[3] = 4.0 * np.random.default_rng(0).normal(size=8)
    model = CellwiseOutliers().fit(X)
    assert 3 in np.argsort(-model.row_scores_)[:3]
    assert abs(np.median(model.row_scores_)) < 0.5


@pytest.mark.parametrize("kind", [TrimmedCovariance, TrimmedPCA])
def test_outlier_tables_name_the_wrong_cell(kind: Any) -> None:
    X = table()
    X[3, 1] += 15.0
    model = TrimmedPCA(1, random_state=0) if kind is TrimmedPCA else kind(random_state=0)
    row = model.fit(X).outlier_table()[0]
    assert row["row"] == 3 and row["features"].startswith("x1 100%")


@pytest.mark.parametrize("kind", ["Float64", "Int64", "float32", "int64"])
def test_frames_of_any_kind_of_number_keep_it(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 1)) + 0.3 * rng.standard_normal((60, 3))
    frame = pd.DataFrame((100 * x).round(), columns=list("abc")).astype(kind)
    frame.loc[3, "b"] = 5_000
    if kind[0].isupper():
        frame.loc[7, "a"] = pd.NA
    model = CellwiseOutliers().fit(frame)
    assert model.cell_mask_[3, 1] and [str(k) for k in model.imputed_.dtypes] == [kind] * 3
    assert not model.imputed_.isna().any().any() and abs(model.imputed_.loc[3, "b"]) < 1_000


def test_a_series_and_numbers_out_of_range_are_refused() -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises(ValueError, match="to_frame"):
        CellwiseOutliers().fit(pd.Series(X[:, 0]))
    with pytest.raises(ValueError, match="out of range"):
        CellwiseOutliers().fit(1e200 * X)


def test_neither_order_nor_units_decide_about_a_cell_at_the_border() -> None:
    X = np.random.default_rng([99, 1]).standard_normal((200, 5))
    X[3, 2] = np.nan
    order = np.random.default_rng(1).permutation(len(X))
    mask = CellwiseOutliers().fit(X).cell_mask_
    assert mask.any()
    np.testing.assert_array_equal(CellwiseOutliers().fit(X[order]).cell_mask_, mask[order])
    np.testing.assert_array_equal(CellwiseOutliers().fit(1000.0 * X).cell_mask_, mask)
