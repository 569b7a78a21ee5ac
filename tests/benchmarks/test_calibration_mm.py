"""The calibration of the MM-estimate: every constant tried is in the table, and a cell can be run again."""

from __future__ import annotations

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.mm import TRIED, cell


@pytest.mark.parametrize("constant", TRIED)
def test_the_table_holds_what_was_tried(constant: str) -> None:
    tried = {row["value"] for row in stored("mm")["summary"] if row["constant"] == constant}
    assert tried == set(TRIED[constant][1])


def test_a_cell_is_what_it_says() -> None:
    found = cell("normal", 50, 0.0, repetitions=5)
    assert 0.5 < found["error"] < 2 and 0 <= found["clean_flagged"] <= found["clean_flagged_99"] <= 1
