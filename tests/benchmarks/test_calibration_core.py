"""The constants of the solvers are those that the stored measurements speak for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import benchmarks
from benchmarks.calibration import classes, finishing, hessians
from trimlearn.losses.softmax import FEW_CLASSES
from trimlearn.smart import finish
from trimlearn.smart.method import FEW, SOME


def stored(name: str) -> Any:
    return json.loads((Path(benchmarks.__file__).parent / "calibration" / "results" / f"{name}.json").read_text())


def test_columns_are_compared_one_by_one_where_that_is_faster() -> None:
    ratios = {int(K): ratio for K, ratio in stored("classes")["ratios"].items()}
    assert set(ratios) == set(classes.CLASSES)
    assert all((ratio > 1) == (K <= FEW_CLASSES) for K, ratio in ratios.items())


def test_hessians_are_written_out_where_they_are_affordable() -> None:
    rows = stored("hessians")["rows"]
    assert set(map(int, rows)) == set(hessians.PARAMETERS)
    assert rows[str(FEW)]["hessian / pass"] < 30
    assert rows[str(SOME)]["factors, s"] < 0.1


def test_when_to_finish_hardly_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    table = stored("finishing")
    for name, values in finishing.VALUES.items():
        rows = table[name]
        assert set(rows) == {f"{value:g}" for value in values}
        assert rows[f"{getattr(finish, name):g}"]["objective"] == 1.0
        assert all(abs(row["objective"] - 1) < 0.01 for row in rows.values())
    monkeypatch.setattr(finishing, "VALUES", {"SHARE": (finish.SHARE,)})
    found = finishing.run()["SHARE"]["0.5"]
    assert found["passes"] == pytest.approx(table["SHARE"]["0.5"]["passes"], rel=0.05)
    assert found["converged"] == table["SHARE"]["0.5"]["converged"]
