"""The files of a check: all of them or none, and what each holds."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import made_up
import numpy as np
import pandas as pd
import pytest

from trimlearn.checks.document import abridged, document, plain_values
from trimlearn.checks.findings import DuplicateRows, WrongCell
from trimlearn.checks.found import Check
from trimlearn.checks.suspects import find_suspects

ASKED = {"table": None, "target": "Fuel", "categorical": (), "number": ("Price",), "id": "Name", "seed": 3}
ASKED |= dict.fromkeys(("task", "labels", "features", "decisions"))


def made(parts=None, dropped=frozenset()) -> Check:
    table = made_up.table()
    parts = parts or made_up.parts(
        made_up.fuel(table, {7: 0.93, 20: 0.6, 9: 0.8}),
        (made_up.PRICE, WrongCell(9, "MPG", 42.5, 44.0, 4.0, 0.7)),
        duplicates=(DuplicateRows((40, 42), "exact"),),
        of=table,
    )
    suspects = find_suspects(parts)
    return Check(document(parts, suspects, seed=3, decisions=None), parts, suspects, ASKED, dropped)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check") / "new" / "folder"
    return made().write(folder)


def lines(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def test_every_file_is_there_and_nothing_else(written):
    folder = written["report.html"].parent
    assert sorted(path.name for path in folder.iterdir()) == sorted(written)
    assert set(written) >= {"report.html", "flagged.csv", "clean.csv", "results.json", "repeat.py"}


def test_flagged_rows_have_their_place_kind_probability_suggestion_verdicts_and_cells(written):
    rows = lines(written["flagged.csv"])
    assert [row["row"] for row in rows] == ["9", "7", "3", "20", "42"]
    label = rows[1]
    assert (label["line"], label["id"], label["kind"]) == ("9", "car <7>", "wrong label")
    assert (label["probability"], label["suggested value"], label["Fuel"]) == ("0.93", "Diesel", "Petrol")
    assert (label["linear model"], label["boosting model"]) == ("wrong", "wrong")
    assert rows[3]["boosting model"] == "right"
    price = rows[2]
    assert price["wrong cells"] == "Price: £2,125,000 → 21,250 (100 times too large)" and price["Price"] == "£2,125,000"
    assert price["suggested value"] == "21,250" and price["linear model"] == ""
    assert rows[4]["kind"] == "duplicate" and rows[4]["probability"] == ""


def test_columns_of_the_table_that_are_called_like_ours_keep_their_names(tmp_path):
    table = made_up.table()
    table = replace(
        table,
        frame=table.frame.rename(columns={"MPG": "kind"}),
        written=table.written.rename(columns={"MPG": "kind"}),
        columns=(*table.columns[:3], replace(table.columns[3], name="kind")),
    )
    check = made(made_up.parts(made_up.fuel(table, {7: 0.9}), of=table))
    (row,) = lines(check.write(tmp_path)["flagged.csv"])
    assert row["check: kind"] == "wrong label" and row["kind"] == "40.5"


def test_the_clean_table_lacks_wrong_rows_and_wrong_cells_and_keeps_copies(written):
    rows = lines(written["clean.csv"])
    names = [row["Name"] for row in rows]
    assert len(rows) == made_up.N - 3 and not {"car <7>", "car <9>", "car <20>"} & set(names)
    assert rows[names.index("car <3>")]["Price"] == "" and rows[names.index("car <4>")]["Price"] == "£20,400"
    assert {"car <40>", "car <42>"} <= set(names)


def test_rows_that_a_person_dropped_are_not_clean(tmp_path):
    files = made(dropped=frozenset({50})).write(tmp_path)
    assert "car <50>" not in {row["Name"] for row in lines(files["clean.csv"])}


def test_results_are_json_and_say_what_the_contract_asks_for(written):
    results = json.loads(written["results.json"].read_text(encoding="utf-8"))
    assert results["format"] == "trimlearn-check/1" and results["seed"] == 3
    assert results["source"] == {
        "name": "cars.csv", "rows": 60, "columns": 4, "fingerprint": made_up.table().fingerprint, "first_line": 2
    }  # fmt: skip
    assert results["target"] == {"name": "Fuel", "task": "classification", "classes": ["Diesel", "Petrol"]}
    assert results["counts"] == {
        "suspects": 5, "wrong_rows": 4, "targets": 3, "doubtful": 0, "cells": 2, "cell_rows": 2, "odd_rows": 0,
        "duplicates": 1,
        "contradictory": 0,
        "same_id": 0, "agreed": 2
    }  # fmt: skip
    first = results["suspects"][0]
    assert first["kinds"] == ["target", "cell"] and first["values"][0] == "car <9>" and len(first["neighbours"]) == 3
    assert results["columns"][2]["wrong_cells"] == 1 and results["columns"][2]["examples"][0] == "£20,000"
    assert len(abridged(results)["suspects"]) == 5 and "values" not in abridged(results)["suspects"][0]


def test_only_the_first_suspects_carry_all_their_cells(monkeypatch):
    monkeypatch.setattr("trimlearn.checks.document.SHOWN", 2)
    suspects = made().results["suspects"]
    assert [suspect["values"] is None for suspect in suspects] == [False, False, True, True, True]
    assert suspects[2]["neighbours"] == [] and suspects[2]["cells"]


def test_numbers_that_json_has_not_are_none():
    assert plain_values({"a": [np.float64("nan"), np.int64(3), (1.5, float("inf"))], 2: np.array([True])}) == {
        "a": [None, 3, [1.5, None]], "2": [True]
    }  # fmt: skip


@pytest.mark.parametrize("failing", ["flagged.csv", "repeat.py"])
def test_a_full_disk_leaves_the_files_of_an_earlier_check_as_they_were(tmp_path, monkeypatch, failing):
    before = {name: path.read_bytes() for name, path in made().write(tmp_path).items()}
    opened = Path.open

    def full(path, *args, **kwargs):
        if failing in path.name and args[:1] != ("r",):
            raise OSError(28, "No space left on device")
        return opened(path, *args, **kwargs)

    def full_csv(frame, path):
        raise OSError(28, "No space left on device")

    if failing.endswith(".csv"):
        monkeypatch.setattr("trimlearn.checks.write.write_csv", full_csv)
    else:
        monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space"):
        made(dropped=frozenset({50})).write(tmp_path)
    with pytest.raises(OSError, match="No space"):
        made().write(tmp_path / "never" / "made")
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_table_of_suspects_and_what_a_notebook_shows():
    check = made()
    assert check.table.columns == ("row", "id", "kind", "probability", "score", "why")
    assert check.table["row"].tolist() == [9, 7, 3, 20, 42] and np.isnan(check.table["probability"][-1])
    html = check._repr_html_()
    assert "car &lt;9&gt;" in html and "car <9>" not in html and "look wrong" in html
    assert repr(check) == check.summary() and "car <9>" in check.summary() and "93 %" in check.summary()
    assert made(made_up.parts()).table.columns and "Nothing looks wrong" in made(made_up.parts()).summary()


def test_the_page_goes_into_a_file_or_comes_back(tmp_path):
    check = made()
    assert check.to_html(tmp_path / "page.html") is None
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == check.to_html()


def test_the_script_says_what_was_asked_for_and_runs(tmp_path):
    script = made().write(tmp_path)["repeat.py"]
    text = script.read_text(encoding="utf-8")
    for option in ("target='Fuel'", "number=['Price']", "id='Name'", "seed=3"):
        assert option in text
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "name the file" in done.stderr
    pd.DataFrame({"x": np.sin(np.arange(40.0))}).to_csv(tmp_path / "t.csv", index=False)
    asked = {**ASKED, "table": tmp_path / "t.csv", "target": None, "number": (), "id": None}
    own = Check(made(made_up.parts()).results, made_up.parts(), [], asked)
    done = subprocess.run(
        [sys.executable, own.write(tmp_path / "own")["repeat.py"], tmp_path / "t.csv", tmp_path / "again"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "rows" in done.stdout and (tmp_path / "again" / "report.html").exists()
