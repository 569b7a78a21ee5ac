"""model.json: readable, the same model when loaded, and refused in one line where it is none."""

from __future__ import annotations

import json
from dataclasses import replace

import made_up
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from trimlearn import cli, load
from trimlearn.checks.design import linear_design
from trimlearn.checks.model import Model, model_of_check, with_predictions
from trimlearn.checks.write import to_json
from trimlearn.cli.predict import _shown


def fitted(task: str, seed: int = 0) -> tuple[Model, pd.DataFrame]:
    """A model as a check would have it, and the table it was fitted to."""
    table = made_up.table()
    target = {"classification": "Fuel", "regression": "MPG", "count": "MPG"}[task]
    design = linear_design(table, table.frame, [target])
    X = design.transform(table.frame)
    if task == "classification":
        judged = made_up.fuel(table, {})
        fit = LogisticRegression().fit(X, (table.frame["Fuel"] == "Petrol").astype(int))
    else:
        judged = replace(made_up.number(table, 5, 40.0), task=task)
        fit = LinearRegression().fit(X, np.log(table.frame["MPG"]) if task == "count" else table.frame["MPG"])
    link = {"classification": "logit", "regression": "identity", "count": "log"}[task]
    judged = replace(judged, fits={"linear": fit, "design": design, "link": link})
    model = model_of_check(made_up.parts(judged, of=table))
    assert model is not None
    return model, table.written


@pytest.mark.parametrize("task", ["classification", "regression", "count"])
def test_a_model_is_the_same_after_it_was_written_and_read(task, tmp_path):
    model, table = fitted(task)
    path = tmp_path / "model.json"
    path.write_text(to_json(model.to_json()), encoding="utf-8")
    again = load(path)
    assert again.kinds == model.kinds and again.design == model.design and again.task == task
    assert list(again.predict(table)) == pytest.approx(list(model.predict(table))) if task != "classification" else (
        list(again.predict(table)) == list(model.predict(table))
    )  # fmt: skip
    fit_values = model.predict(table)
    assert len(fit_values) == made_up.N
    assert set(fit_values) <= {"Diesel", "Petrol"} if task == "classification" else np.all(np.abs(fit_values - 43) < 10)


def test_other_tables_may_lack_values_have_new_categories_and_more_columns():
    model, table = fitted("regression")
    other = table.iloc[:5].assign(more="x")
    other.loc[1, "Price"] = ""
    assert np.all(np.isfinite(model.predict(other)))
    other.loc[2, "Fuel"] = "Steam"
    with pytest.warns(UserWarning, match=r"1 of 5 rows has a Fuel that the model has not seen \('Steam'\)"):
        assert np.all(np.isfinite(model.predict(other)))
    assert len(model.predict(other.iloc[:1])) == 1
    other.loc[3, "Price"] = "see note"
    with pytest.warns(UserWarning, match=r"1 cell of Price \('see note'\) could not be read as a number"):
        assert np.all(np.isfinite(model.predict(other.iloc[3:])))


def test_numbers_far_from_all_that_the_model_has_seen_are_told(recwarn):
    model, table = fitted("regression")
    model.predict(table)
    assert not recwarn.list  # nothing is far from itself
    pence = table.iloc[:3].assign(Price="£50,000,000")
    with pytest.warns(UserWarning, match=r"3 of 3 rows have a Price far from all .*: is its unit the same\?"):
        model.predict(pence)


def test_a_table_without_the_columns_is_refused_by_their_names():
    model, table = fitted("regression")
    with pytest.raises(ValueError, match="lacks 'Price', which the model of MPG needs"):
        model.predict(table.drop(columns="Price"))


def test_predictions_stand_in_a_column_of_their_own():
    model, table = fitted("regression")
    table = table.assign(**{"predicted MPG": "mine"})
    out = with_predictions(model, model.read(table))
    assert list(out.columns[-2:]) == ["predicted MPG", "predicted MPG (2)"] and (out["predicted MPG"] == "mine").all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other"}, "is no model of trimlearn"),
        ({"format_number": 2}, "has format 2"),
        ({"coefficients": []}, "damaged"),
        ({"intercept": None}, "damaged"),
        ({"design": {}}, "damaged"),
        ({"link": "probit"}, "its link is 'probit'"),
        ({"link": "logit"}, "not for the task regression"),
        ({"task": "guess"}, "its task is 'guess'"),
        ({"task": "classification"}, "not for the task classification"),
        ({"classes": ["a", "b"]}, "2 different classes"),
        ({"classes": "ab"}, "no list of names"),
        ({"target": "Price"}, "its target 'Price' is among the columns"),
        ({"target": None}, "its target has no name"),
        ({"columns": []}, "its columns and its design"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(change, says, tmp_path):
    model, _ = fitted("regression")
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model.to_json() | change), encoding="utf-8")
    with pytest.raises(ValueError, match=says) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_model_of_labels_has_the_classes_of_its_coefficients(tmp_path):
    model, _ = fitted("classification")
    path = tmp_path / "model.json"
    for classes in ([], ["Diesel"], ["Diesel", "Diesel"], ["Diesel", "Petrol", "Steam"], [1, 2]):
        path.write_text(json.dumps(model.to_json() | {"classes": classes}), encoding="utf-8")
        with pytest.raises(ValueError, match="damaged: it"):
            load(path)
    swapped = model.to_json()
    swapped["coefficients"] = swapped["coefficients"][::-1]
    path.write_text(json.dumps(swapped), encoding="utf-8")
    with pytest.raises(ValueError, match="not those of its design"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"[]", b"\xff\xfe", b"{"])
def test_what_is_not_json_is_refused(content, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is no model"):
        load(path)


def test_predict_from_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, table = fitted("classification")
    (tmp_path / "model.json").write_text(to_json(model.to_json()), encoding="utf-8")
    table.to_csv("cars.csv", index=False)
    assert cli.main(["predict", "model.json", "cars.csv"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == list(model.predict(table))
    assert cli.main(["predict", "model.json", "cars.csv", "--out", "with.csv"]) == 0
    assert "60 predictions" in capsys.readouterr().out
    assert pd.read_csv("with.csv")["predicted Fuel"].tolist() == printed
    for argv, code, says in [
        (["model.json", "none.csv"], 2, "there is no file none.csv"),
        (["cars.csv", "cars.csv"], 3, "is no model"),
        (["model.json", "cars.csv", "--out", "."], 2, "must be a file"),
        (["model.json", "model.json"], 3, "model.json"),
    ]:
        assert cli.main(["predict", *argv]) == code
        said = capsys.readouterr()
        assert says in said.err and said.err.count("\n") == 1 and said.out == ""


@pytest.mark.filterwarnings("default")
def test_the_command_line_says_what_a_model_has_not_seen(tmp_path, capsys):
    model, table = fitted("regression")
    (tmp_path / "model.json").write_text(to_json(model.to_json()), encoding="utf-8")
    table.assign(Fuel="Steam").to_csv(tmp_path / "new.csv", index=False)
    assert cli.main(["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv")]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 60 and "60 of 60 rows have a Fuel that the model has not seen" in said.err


def test_predicted_numbers_are_printed_with_the_digits_that_count():
    values = (np.float64(30.663023556742345), 1e-9, "Diesel")
    assert [_shown(value) for value in values] == ["30.663", "1e-09", "Diesel"]
