"""The calibration of appeals: the table can be had again, and its shares are those that the comments tell."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.appeals import MODELS, _misfit, appeals
from trimlearn.estimators.meta.appeal import MORE, SURE


def test_a_cell_can_be_had_again() -> None:
    row = next(row for row in stored("appeals")["rows"] if row["kind"] == "step" and row["model"] == "neighbours")
    X, y = _misfit(np.random.default_rng([row["seed"], row["n"]]), row["n"], "step")
    found = appeals(X, y, MODELS["neighbours"])
    assert found == pytest.approx({name: row[name] for name in ("share", "errors", "grows")}, rel=1e-4)


@pytest.mark.parametrize(
    ("what", "n", "heard"), [("wrong", 200, 0), ("wrong", 60, 9), ("misfit", 200, 88), ("misfit", 60, 73)]
)
def test_wrong_numbers_and_misfit_are_told_apart(what: str, n: int, heard: int) -> None:
    rows = [row for row in stored("appeals")["rows"] if row["what"] == what and row["n"] == n]
    assert round(100 * np.mean([row["share"] > MORE and row["errors"] > SURE for row in rows])) == heard
