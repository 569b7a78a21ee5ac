"""``trimlearn check`` and ``predict``: what they print and write, exit codes, and every bad input in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trimlearn import cli
from trimlearn.checks.findings import TargetFindings


def judged(table, mended, target, *, task=None, pinned=None, corrected=None, seed=0, progress=None):
    """A target judged in no time: numbers far from the median are wrong, and labels that occur once."""
    column, n = table.frame[target], len(table.frame)
    if column.dtype.kind == "f":
        middle = column.median()
        wrong = ((column - middle).abs() > 10).to_numpy().copy()
        suggested = np.full(n, middle)
    else:
        counts = column.map(column.value_counts())
        wrong, suggested = (counts == 1).to_numpy().copy(), np.full(n, column.mode()[0], dtype=object)
    for row, said in (pinned or {}).items():
        wrong[row] = said
    share = float(wrong.mean())
    task = "regression" if column.dtype.kind == "f" else "classification"
    classes = () if task == "regression" else tuple(sorted(column.dropna().unique()))
    return TargetFindings(target, task, classes, 0.9 * wrong, wrong, 5.0 * wrong, suggested, wrong, wrong, share)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("trimlearn.checks.parts.judge_target", judged)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to be in, with a table of which one price is wild."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3)) @ np.array([[1, 0.9, 0.8], [0, 0.4, 0.1], [0, 0, 0.4]])
    table = pd.DataFrame(np.round(100 + 5 * x, 2), columns=["a", "b", "c"]).assign(y=np.round(x[:, 0], 2))
    table.loc[17, "y"] = 500.0
    table.to_csv("cars.csv", index=False)
    return tmp_path


def run(capsys, *argv):
    try:
        code = cli.main(list(map(str, argv)))
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.usefixtures("quick")
def test_a_check_prints_the_headline_the_suspects_and_where_the_report_is(folder, capsys):
    code, out, err = run(capsys, "check", "cars.csv", "--target", "y")
    assert (code, err) == (0, "")
    assert "of 80 values of y looks wrong." in out and "y is 500.0; rows like it have about" in out
    assert out.splitlines()[-1] == f"Report: {Path('cars-check') / 'report.html'}"
    assert {"report.html", "flagged.csv", "clean.csv", "results.json", "repeat.py"} <= {
        path.name for path in Path("cars-check").iterdir()
    }


@pytest.mark.usefixtures("quick")
def test_quiet_prints_nothing_and_json_only_the_findings(folder, capsys):
    assert run(capsys, "check", "cars.csv", "--target", "y", "--quiet", "--out", "new/out") == (0, "", "")
    code, out, err = run(capsys, "check", "cars.csv", "--target", "y", "--json", "--out", "new/out")
    found = json.loads(out)
    assert (code, err) == (0, "") and found["counts"]["targets"] == 1 and found["suspects"][0]["line"] == 19
    assert "charts" not in found and Path(found["files"]["results.json"]).exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("limit", "code"), [("0.1", 0), ("0", 1), ("0.5%", 1)])
def test_more_wrong_rows_than_allowed_is_exit_code_1(folder, capsys, limit, code):
    assert run(capsys, "check", "cars.csv", "--target", "y", "--quiet", "--fail-above", limit)[0] == code
    assert Path("cars-check/report.html").exists()


@pytest.mark.usefixtures("quick")
def test_columns_are_told_with_commas_or_one_by_one(folder, capsys):
    options = ["--categorical", "a, b", "--drop", "c", "--number", "y", "--seed", "4"]
    assert run(capsys, "check", "cars.csv", *options, "--quiet")[0] == 0
    results = json.loads(Path("cars-check/results.json").read_text(encoding="utf-8"))
    kinds = {column["name"]: column["kind"] for column in results["columns"]}
    assert kinds["a"] == kinds["b"] == "category" and "c" not in kinds and results["seed"] == 4
    assert "drop=['c']" in Path("cars-check/repeat.py").read_text(encoding="utf-8")


@pytest.mark.usefixtures("quick")
def test_decisions_are_honoured_and_said(folder, capsys):
    run(capsys, "check", "cars.csv", "--target", "y", "--quiet")
    mark = json.loads(Path("cars-check/results.json").read_text(encoding="utf-8"))["source"]["fingerprint"]
    Path("d.csv").write_text(f"fingerprint,row,what,column,value\n{mark},17,relabel,y,0.5\n", encoding="utf-8")
    code, out, _ = run(capsys, "check", "cars.csv", "--target", "y", "--decisions", "d.csv")
    assert code == 0 and "You decided: 1 relabelled." in out and "Before your decisions" in out
    results = json.loads(Path("cars-check/results.json").read_text(encoding="utf-8"))
    assert results["decisions"]["count"] == 1 and results["counts"]["targets"] == 0
    Path("d.csv").write_text("fingerprint,row,what,column,value\nother,17,keep,,\n", encoding="utf-8")
    code, out, err = run(capsys, "check", "cars.csv", "--target", "y", "--decisions", "d.csv")
    assert (code, out) == (2, "") and "another table" in err and err.count("\n") == 1


BAD = {
    "empty.csv": (b"", 3, "empty"),
    "header.csv": (b"a,b,c\n", 3, "no rows"),
    "one.csv": (b"a,b,c\n1,2,3\n", 3, "1 row"),
    "binary.csv": (bytes(range(256)) * 20, 3, "binary.csv"),
    "broken.parquet": (b"PAR1 nothing", 3, "broken.parquet"),
    "broken.xlsx": (b"PK\x03\x04 nothing", 3, "broken.xlsx"),
    "broken.npz": (b"nothing", 3, "broken.npz"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_table_is_one_line_and_nothing_is_written(folder, capsys, name):
    content, code, says = BAD[name]
    Path(name).write_bytes(content)
    before = sorted(folder.iterdir())
    got, out, err = run(capsys, "check", name)
    assert (got, out) == (code, "") and says in err and err.count("\n") == 1 and "Traceback" not in err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["nowhere.csv"], 2, "nowhere.csv"),
        (["."], 2, "is a folder"),
        (["cars.csv", "--target", "Y"], 2, 'did you mean "y"?'),
        (["cars.csv", "--drop", "aa"], 2, "there is no column"),
        (["cars.csv", "--id", "aa"], 2, "there is no column"),
        (["cars.csv", "--targett", "y"], 2, "did you mean --target?"),
        (["cars.csv", "--task", "guess"], 2, "invalid choice"),
        (["cars.csv", "--fail-above", "7"], 2, "between 0 and 1"),
        (["cars.csv", "--fail-above", "x"], 2, "--fail-above"),
        (["cars.csv", "--labels", "cars.csv"], 2, "is for a folder of images"),
        (["cars.csv", "--features", "cars.csv"], 2, "--labels"),
        (["cars.csv", "--decisions", "none.csv"], 2, "there is no file none.csv"),
        (["cars.csv", "--out", "cars.csv"], 2, "must be a folder"),
        (["cars.csv", "--out", "cars.csv/deeper"], 2, "cars.csv"),
        (["cars.csv", "--target", "y", "--drop", "y"], 2, "target"),
        (["cars.csv", "--target", "y", "--id", "y"], 2, "target"),
    ],
)
def test_a_command_line_that_cannot_be_right_is_one_line(folder, capsys, argv, code, says):
    before = sorted(folder.iterdir())
    got, out, err = run(capsys, "check", *argv)
    assert (got, out) == (code, "") and says in err and err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(("cell", "says"), [("1", "one value"), ("", "is empty")])
def test_a_target_from_which_nothing_can_be_learnt_is_one_line(folder, capsys, cell, says):
    pd.read_csv("cars.csv").assign(same=cell).to_csv("same.csv", index=False)
    code, out, err = run(capsys, "check", "same.csv", "--target", "same")
    assert (code, out) == (3, "") and says in err and err.count("\n") == 1


@pytest.mark.usefixtures("quick")
def test_a_folder_in_which_nothing_may_be_written_is_refused_before_the_work(folder, capsys, monkeypatch):
    monkeypatch.setattr("os.access", lambda *args, **kwargs: False)
    code, out, err = run(capsys, "check", "cars.csv", "--out", "out")
    assert (code, out) == (2, "") and "nothing may be written" in err


@pytest.mark.usefixtures("quick")
def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(folder, capsys, monkeypatch):
    def full(frame, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("trimlearn.checks.write.write_csv", full)
    code, out, err = run(capsys, "check", "cars.csv", "--target", "y")
    assert (
        (code, out) == (2, "")
        and "cars-check: No space left on device; no file was written" in err
        and err.count("\n") == 1
    )
    assert sorted(path.name for path in folder.iterdir()) == ["cars.csv"]


def test_a_mistake_of_ours_is_one_line_and_a_traceback_only_where_it_is_asked_for(folder, capsys, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("a bug")

    monkeypatch.setattr("trimlearn.checks.parts.find_cells", fail)
    code, out, err = run(capsys, "check", "cars.csv")
    assert (code, out) == (3, "") and "a bug" in err and "--debug" in err and err.count("\n") == 1
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main(["check", "cars.csv", "--debug"])


def test_version_and_completion(capsys):
    assert run(capsys, "--version") == (0, f"trimlearn {cli.__version__}\n", "")
    pytest.importorskip("shtab", reason="shtab is not installed: pip install trimlearn[cli]")
    for shell in ("bash", "zsh", "tcsh"):
        code, out, err = run(capsys, "--print-completion", shell)
        assert (code, err) == (0, "") and "check" in out and "target" in out


def test_completion_without_shtab_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    code, out, err = run(capsys, "--print-completion", "bash")
    assert (code, out) == (2, "") and "pip install trimlearn[cli]" in err


def test_help_has_examples_and_exit_codes(capsys):
    code, out, _ = run(capsys, "check", "--help")
    assert code == 0 and "--decisions decisions.csv" in out and "exit codes" in out
