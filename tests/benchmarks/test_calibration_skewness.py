"""The calibration of the test for skewed errors: every error law is in the table, and a cell can be run again."""

from __future__ import annotations

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.skewness import ERRORS, SEEDS, SIZES, cell
from trimlearn.robust.regression.one_law import EVIDENCE


def test_the_table_is_whole_and_its_cells_can_be_had_again() -> None:
    rows = stored("skewness")["rows"]
    assert len(rows) == len(ERRORS) * len(SIZES) * len(SEEDS)
    for errors in ("lognormal", "20 % at 5"):
        row = next(row for row in rows if row["errors"] == errors and row["difference"] is not None)
        found = cell(errors, row["n"], row["seed"])
        assert found == pytest.approx(row["difference"], rel=1e-5)  # tables keep six digits


@pytest.mark.parametrize("errors", ERRORS)
def test_the_evidence_parts_skewed_errors_from_bad_rows(errors: str) -> None:
    """From 100 rows on, at least nine in ten on the right side; the shares are those the comment tells."""
    found = [row["difference"] for row in stored("skewness")["rows"] if row["errors"] == errors and row["n"] >= 100]
    asked = [d for d in found if d is not None]
    skewed = sum(d > -EVIDENCE for d in asked) / len(asked)
    assert skewed <= 0.1 if "%" in errors else skewed >= 0.9
