"""The calibration of explanations: every law is in the table, a cell can be had again, and what is told is right."""

from __future__ import annotations

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.explanations import LAWS, SEEDS, SHAPES, cell

TAILS = "heavy tail", "skewed tail", "otherwise told"


def _told(law: str, least: int = 0) -> list[str]:
    """What the samples of a law in which many rows are called bad are told to be."""
    rows = [row for row in stored("explanations")["rows"] if row["law"] == law and row["n"] >= least]
    return [row["told"] for row in rows if row["told"] != "few are bad"]


def test_the_table_is_whole_and_its_cells_can_be_had_again() -> None:
    rows = stored("explanations")["rows"]
    assert len(rows) == len(LAWS) * len(SHAPES) * len(SEEDS)
    for row in (rows[0], rows[len(SHAPES) * len(SEEDS)]):
        assert cell(row["law"], row["n"], row["p"], row["seed"]) == row["told"]


@pytest.mark.parametrize("law", ["log-normal", "exponential"])
def test_a_skewed_tail_is_told(law: str) -> None:
    told = _told(law)
    assert sum(what in TAILS for what in told) >= 0.9 * len(told)


@pytest.mark.parametrize("law", ["30 % together", "three equal groups"])
def test_groups_are_told(law: str) -> None:
    told = _told(law, 60)
    assert sum(what == "groups" for what in told) >= 0.9 * len(told)


@pytest.mark.parametrize("law", [law for law in LAWS if "elsewhere" in law or "wide" in law or law == "10 % together"])
def test_errors_pass_for_errors(law: str) -> None:
    told = _told(law, 60)
    assert sum(what == "no word" for what in told) >= 0.9 * len(told)


def test_of_normal_rows_no_word_is_said() -> None:
    assert set(_told("normal")) <= {"no word"}
