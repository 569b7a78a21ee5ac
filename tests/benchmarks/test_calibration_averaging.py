"""The table that the constants of the mean of all fits were looked at in."""

from __future__ import annotations

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.averaging import TRIED, cell


def test_everything_tried_is_in_the_table() -> None:
    assert {row["tried"] for row in stored("averaging")["summary"]} == set(TRIED)


@pytest.mark.parametrize(("tried", "law", "kind"), [("as it is", "normal", "leverage"), ("no odds", "normal", "none")])
def test_cells_are_found_again(tried: str, law: str, kind: str) -> None:
    key = {"tried": tried, "law": law, "kind": kind, "n": 20, "p": 2, "seed": 3}
    (row,) = (row for row in stored("averaging")["rows"] if key.items() <= row.items())
    stood = {name: row[name] for name in ("ours", "least", "flagged", "found")}
    assert cell(tried, law, kind, 20, 2, 3) == pytest.approx(stood, rel=1e-3)
