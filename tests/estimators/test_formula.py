"""Models by formula."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

from trimlearn import FormulaModel, TrimmedLogisticRegression, TrimmedPCA, from_formula

pytest.importorskip("formulaic", reason="formulaic is not installed: pip install 'trimlearn[formula]'")


def cars(gaps: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"weight": rng.uniform(1, 2, 80), "fuel": rng.choice(["diesel", "petrol", "gas"], 80)})
    table["mpg"] = 80 - 20 * table.weight + 5 * (table.fuel == "petrol") + rng.normal(size=80)
    table.loc[7, "mpg"] = 8.0
    if gaps:
        table.loc[[2, 5], "weight"] = np.nan
    return table


def test_names_predictions_and_tables_are_the_users() -> None:
    table = cars()
    model = from_formula("mpg ~ weight + C(fuel)", table)
    assert model.feature_names_in_.tolist() == ["weight", "C(fuel)[T.gas]", "C(fuel)[T.petrol]"]
    np.testing.assert_allclose(model.coef_, [-20, 0, 5], atol=2)
    assert model.predict(table.drop(columns="mpg")).shape == (80,)
    row = model.outlier_table()[0]
    assert row["row"] == 7 and "T." not in row["features"]
    assert "weight" in str(model.summary())


def test_rows_with_gaps_are_left_out_and_named() -> None:
    with pytest.warns(UserWarning, match="2 of 80 rows have missing values and are left out: rows 2, 5"):
        model = from_formula("mpg ~ weight + fuel", cars(gaps=True))
    assert model.outlier_table()[0]["row"] == 7 and len(model.rows_) == 78
    found = model.predict(cars(gaps=True))
    assert np.flatnonzero(np.isnan(found)).tolist() == [2, 5]


def test_transforms_interactions_and_no_intercept() -> None:
    table = cars()
    model = from_formula("np.log(mpg) ~ weight:fuel - 1", table, LinearRegression())
    assert model.intercept_ == 0 and len(model.coef_) == 3
    assert from_formula("mpg ~ weight", table, LinearRegression(fit_intercept=False)).intercept_ != 0


def test_new_rows_are_judged_as_new() -> None:
    table = cars()
    model = from_formula("mpg ~ weight + fuel", table)
    new = table.iloc[:10].copy()
    new.loc[3, "mpg"] = 500.0
    assert model.outlier_table(new)[0]["row"] == 3


def test_labels_and_rows_without_a_target() -> None:
    table = cars()
    table["kind"] = np.where(table.weight > 1.5, "heavy", "light")
    model = from_formula("kind ~ weight", table, TrimmedLogisticRegression(random_state=0))
    assert set(model.predict(table)) == {"heavy", "light"}
    pca = TrimmedPCA(1, contamination=0.05, random_state=0)  # "auto" warns: fuels are groups, which look like a tail
    assert from_formula("~ weight + mpg", table, pca).components_.shape == (1, 2)


def test_errors_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    table = cars()
    with pytest.raises(ValueError, match="no column length"):
        from_formula("mpg ~ length", table)
    with pytest.raises(TypeError, match="DataFrame"):
        from_formula("mpg ~ weight", table.to_numpy())
    with pytest.raises(ValueError, match="could not be read"):
        from_formula("mpg ~ (weight", table)
    with pytest.raises(ValueError, match=r"incorrectly used\. mpg ~ ~ weight$"):  # without the colours of a terminal
        from_formula("mpg ~ ~ weight", table)
    model = from_formula("mpg ~ weight + C(fuel)", table)
    with pytest.raises(ValueError, match="category that was not there"):
        model.predict(pd.DataFrame({"weight": [1.0], "fuel": ["steam"]}))
    with pytest.raises(AttributeError, match="not fitted"):
        FormulaModel("mpg ~ weight").coef_
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"trimlearn\[formula\]"):
        from_formula("mpg ~ weight", table)


# ---- what users do ----


def test_methods_that_take_rows_take_tables() -> None:
    table = cars()
    model = from_formula("mpg ~ weight + fuel", table)
    X = model._features(table)
    np.testing.assert_allclose(model.outlier_score(table), model.estimator_.outlier_score(X, table.mpg))
    assert model.score(table) == model.estimator_.score(X, table.mpg)
    table["dear"] = np.where(table.weight + 0.1 * np.sin(99 * table.weight) > 1.5, "yes", "no")
    labels = from_formula("dear ~ weight + fuel", table, TrimmedLogisticRegression(random_state=0))
    assert labels.predict_proba(table).shape == (80, 2) and labels.decision_function(table.iloc[:3]).shape == (3,)
    assert from_formula("~ weight + mpg", table, TrimmedPCA(1, contamination=0.05)).transform(table).shape == (80, 1)
    assert np.mean(cross_val_score(FormulaModel("mpg ~ weight + fuel"), table, cv=4)) > 0


def test_a_missing_category_has_no_prediction() -> None:
    table = cars()
    model = from_formula("mpg ~ weight + fuel", table)
    gap = table.astype({"fuel": object})
    gap.loc[3, "fuel"] = None
    assert np.flatnonzero(np.isnan(model.predict(gap))).tolist() == [3]
    with pytest.raises(ValueError, match="missing values in row 3: drop"):
        model.score(gap)


def test_a_category_that_no_row_had_is_refused_also_where_the_column_declares_it() -> None:
    table = cars().astype({"fuel": "category"})
    model = from_formula("mpg ~ weight + fuel", table[table.fuel != "gas"])
    with pytest.raises(ValueError, match="was not there when the model was fitted"):
        model.predict(table)


def test_all_other_columns_and_text_of_any_kind() -> None:
    table = cars().astype({"fuel": "string"})
    expected = from_formula("mpg ~ weight + fuel", cars()).coef_
    np.testing.assert_allclose(np.sort(from_formula("mpg ~ .", table).coef_), np.sort(expected))


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("mpg ~ 1", "no feature on its right side"),
        ("~ weight", "has no target"),
        ("mpg ~ weight | fuel", "use \\+ in place of"),
        ("mpg ~ log(weight - 1.5)", "infinite or undefined values in rows"),
        ("log(mpg - 40) ~ weight", "infinite or undefined values in rows"),
        ("mpg ~ weight + log(fuel)", "could not be worked out"),
    ],
)
def test_formulas_that_cannot_be_fitted_say_why(formula: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        from_formula(formula, cars())


@pytest.mark.parametrize("weights", [2.0, np.ones(79), np.ones(81)])
def test_weights_are_one_for_each_row(weights: object) -> None:
    with pytest.raises(ValueError, match="sample_weight must hold one number for each of the 80 rows"):
        from_formula("mpg ~ weight", cars(), sample_weight=weights)


def test_only_tables_are_taken() -> None:
    model = from_formula("mpg ~ weight + C(fuel)", cars())
    with pytest.raises(TypeError, match="must be a pandas DataFrame, got ndarray"):
        model.predict(np.ones((2, 1)))
    with pytest.raises(ValueError, match="the table has no rows"):
        from_formula("mpg ~ weight", cars().iloc[:0])
