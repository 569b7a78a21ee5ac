"""The table that the constants of the label-noise model were looked at in."""

from __future__ import annotations

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.labels import TRIED, cell


@pytest.mark.parametrize("constant", TRIED)
def test_the_value_of_a_constant_is_among_those_tried(constant: str) -> None:
    module, values = TRIED[constant]
    assert getattr(module, constant) in values
    assert {row["value"] for row in stored("labels")["summary"] if row["constant"] == constant} == set(values)


@pytest.mark.parametrize(("apart", "level"), [(2.0, 0.0), (5.0, 0.3)])
def test_cells_are_found_again(apart: float, level: float) -> None:
    key = {"constant": "FEW", "value": 0.03, "n": 200, "K": 2, "apart": apart, "level": level}
    (row,) = (row for row in stored("labels")["rows"] if key.items() <= row.items())
    again = cell(200, 2, apart, level, "FEW", 0.03)
    for figure in ("level_bias", "right_flagged", "wrong_kept"):
        assert again[figure] == pytest.approx(row[figure], abs=1e-4)
