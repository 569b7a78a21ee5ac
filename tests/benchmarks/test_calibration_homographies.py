"""The table that says how long samples of homographies are drawn, which start is enough, and what is a rival."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.calibration import stored
from benchmarks.calibration.homographies import KINDS, TRIED, outcome
from benchmarks.calibration.homographies import SEEDS as SCENES
from trimlearn.geometry.homography.search import MEAGRE


def figures(constant: str, value: Any) -> dict[str, dict[str, Any]]:
    """The rows of the table with this value of a constant, by the kind of scene."""
    rows = stored("homographies")["summary"]
    return {row["kind"]: row for row in rows if row["constant"] == constant and str(row["value"]) == str(value)}


USUAL = figures("none", "as it is")


@pytest.mark.parametrize("kind", ["easy", "two fifths", "quarter"])
def test_the_table_is_what_its_script_gives(kind: str) -> None:
    found = [outcome(kind, seed) for seed in SCENES]
    for name in ("right", "refused", "alike", "told"):
        assert sum(row[name] for row in found) == USUAL[kind][name]
    assert sum(row["work"] for row in found) / len(found) == pytest.approx(USUAL[kind]["work"], rel=0.05)


def test_every_constant_was_tried_below_and_above_its_value() -> None:
    tried = {row["constant"] for row in stored("homographies")["summary"]}
    assert tried == {"none", *TRIED} and set(USUAL) == set(KINDS)


def test_every_easy_scene_is_right_whatever_the_constants() -> None:
    for row in stored("homographies")["summary"]:
        if row["kind"] in ("easy", "bent", "two fifths", "quarter", "random"):
            assert row["right"] == len(SCENES)
    assert all(row["alike"] == len(SCENES) for row in USUAL.values())


def test_one_plain_start_saves_most_of_the_work_and_a_smaller_share_would_save_no_more() -> None:
    never, more, less = (figures("PLAIN", value) for value in (2.0, 0.5, 0.1))
    assert never["easy"]["work"] > 3 * USUAL["easy"]["work"] and never["bent"]["work"] > 3 * USUAL["bent"]["work"]
    assert more["random"]["work"] > 2 * USUAL["random"]["work"]
    assert less["random"]["work"] > 0.9 * USUAL["random"]["work"]


def test_few_matches_are_searched_longer_since_seeds_would_differ() -> None:
    assert figures("REPEATED", 1)["strip"]["alike"] < USUAL["strip"]["alike"]
    assert figures("REPEATED", 30)["strip"]["right"] == USUAL["strip"]["right"]
    wrong = stored("homographies")["ExtremeZoom"]
    assert wrong[f"MEAGRE {MEAGRE}"] == 0 and min(wrong["MEAGRE 0"], wrong["MEAGRE 8"]) > 0


def test_a_rival_has_half_as_many_matches_as_there_are_inliers() -> None:
    assert USUAL["two fifths"]["told"] == len(SCENES) and USUAL["quarter"]["told"] == 0
    assert USUAL["random"]["told"] == USUAL["bent"]["told"] == USUAL["clusters"]["told"] == 0
    assert figures("RIVAL", 0.3)["quarter"]["told"] > 0 == figures("RIVAL", 0.8)["two fifths"]["told"]
    assert all(figures("ROUGH", value)["two fifths"]["told"] == len(SCENES) for value in (0.25, 1.0))
    assert figures("QUARTER", 32)["two fifths"]["told"] < len(SCENES)
