"""The table that the constants which prove labels wrong were looked at in."""

from __future__ import annotations

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.label_proof import REPETITIONS, TRIED, accused, drawn


@pytest.mark.parametrize("constant", TRIED)
def test_the_value_of_a_constant_is_among_those_tried(constant: str) -> None:
    module, values = TRIED[constant]
    assert getattr(module, constant) in values
    tried = [row["value"] for row in stored("label_proof")["summary"] if row["constant"] == constant]
    assert tried == pytest.approx(list(values), rel=1e-5)  # stored with six digits


def test_a_world_is_found_again() -> None:
    module, _ = TRIED["PROVEN"]
    key = {"constant": "PROVEN", "value": module.PROVEN, "world": "slope 2.5"}
    (row,) = (row for row in stored("label_proof")["rows"] if key.items() <= row.items())
    again = [accused(*drawn("slope 2.5", seed)).any() for seed in range(REPETITIONS)]
    assert sum(again) / REPETITIONS == pytest.approx(row["accused"], abs=1e-4)
