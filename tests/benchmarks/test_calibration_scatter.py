"""Cheap parts of what the constants of robust/scatter and robust/subspace were judged by give what is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.calibration import scatter, subspace
from trimlearn.estimators.covariance import covariance, trimming
from trimlearn.robust.scatter import steps, tails
from trimlearn.robust.subspace import judge

RESULTS = Path(scatter.__file__).parent / "results"


def stored(name: str, table: str) -> dict[str, Any]:
    """The table whose title begins so."""
    tables = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return next(value for title, value in tables.items() if title.startswith(table))


def test_concentration_steps_end_long_before_the_limit() -> None:
    most = stored("scatter", "most concentration steps")
    assert scatter.steps_taken(100, 2, 100) == most["n=100, p=2"]
    assert max(most.values()) < steps.STEPS / 4


def test_rounds_of_readmission_that_end_do_so_within_the_limit() -> None:
    for row in stored("scatter", "rounds of readmission").values():
        assert row["most"] <= trimming.ROUNDS and row["endless"] <= 0.1


def test_what_is_doubted_is_found_and_clean_tables_are_not_doubted() -> None:
    for row in stored("scatter", "found of bad rows").values():
        chosen = row[str(trimming.DOUBTED)]
        assert chosen["found"] >= max(value["found"] for value in row.values()) - 0.05
        assert chosen["flagged"] < 0.03
    for row in stored("scatter", "tables in which bad rows are proven").values():
        assert row[f"{covariance.SLACK:g}"][0] <= 0.01


def test_what_spread_and_flattery_mean() -> None:
    spread = stored("subspace", "ν over ν by the nearest half")
    for bad in (0.0, 0.45):
        for freedom in (2.0, 100.0):
            expected = spread[f"{bad:.0%}"][f"ν={freedom:g}"]
            assert subspace.spread_with(bad, freedom) == pytest.approx(expected, abs=2e-3)
            assert expected < tails.UNEQUAL
    flagged = stored("subspace", "share beyond the quantile 0.975")
    assert subspace.flagged_when_flattered(20.0, judge.FLATTERY) == pytest.approx(flagged["ν=20"], abs=1e-5)


def test_power_steps_settle() -> None:
    off = stored("subspace", "sine off after power steps")
    assert subspace.off_after(5, 0) < 1e-5 and off["5"] < 1e-5 < off["2"]
