"""The table that says how hard the search for least trimmed squares has to try."""

from __future__ import annotations

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.lts import KINDS, TRIED, objective


@pytest.mark.parametrize("kind", KINDS)
def test_objectives_are_found_again(kind: str) -> None:
    key = {"kind": kind, "n": 40, "p": 3, "seed": 0}
    (row,) = (row for row in stored("lts")["rows"] if key.items() <= row.items())
    assert objective(**key) == pytest.approx(row["F"], rel=1e-5)


def test_every_constant_was_tried_below_and_above_its_value() -> None:
    tried = {row["constant"] for row in stored("lts")["summary"]}
    assert tried == {"none", *TRIED}


def test_what_the_comment_on_the_constants_says() -> None:
    found = {(row["constant"], str(row["value"])): row["found"] for row in stored("lts")["summary"]}
    usual = found.pop(("none", "as it is"))
    fewer = [found.pop(key) for key in (("ENDS", "1"), ("FOLLOWED", "3"), ("MOST", "50"))]
    assert usual == 37 and fewer == [35, 35, 35]
    assert all(abs(other - usual) <= 1 for other in found.values())
