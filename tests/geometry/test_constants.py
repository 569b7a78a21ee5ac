"""Constants of geometry beside the tables that they were read from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.calibration import panoramas
from trimlearn.geometry.homography.refine import CUT, FREEDOM
from trimlearn.geometry.mosaic.matches import RATIO
from trimlearn.geometry.panorama.consistency import TOLERANCE
from trimlearn.geometry.panorama.doubts import MISFIT
from trimlearn.geometry.panorama.overlaps import QUICK, WINDOW
from trimlearn.geometry.panorama.pairs import LOOSE
from trimlearn.geometry.panorama.scene import STRAIN

RESULTS = Path(panoramas.__file__).parent / "results"


def stored(name: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return table


def test_errors_of_right_pairs_are_well_within_what_is_allowed() -> None:
    table = stored("panoramas").values()
    error, ratio = (max(row[name] for row in table) for name in ("error of a right pair", "by its own"))
    assert error < LOOSE and 2 * error < MISFIT and 3 * error < TOLERANCE and 2 * ratio < STRAIN
    assert min(row["wrong"] for row in table) > 100 * TOLERANCE


def test_the_table_is_what_its_script_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panoramas, "SEEDS", range(1))
    found, table = panoramas._row(0.04), stored("panoramas")["barrel 0.04"]
    for name in ("own error", "error of a right pair", "by its own"):  # the largest of three seeds
        assert 0.5 * table[name] < found[name] <= table[name] + 1e-4


def test_more_features_give_more_matches_as_good() -> None:
    table = stored("features")
    usual, ours = table["contrast 0.04, edge 10"], table["contrast 0.02, edge 20"]
    assert ours["right"] > 1.2 * usual["right"] and ours["share"] > usual["share"] - 0.02


def test_on_every_pair_there_are_as_many_matches_as_opencv_gives_and_more_of_them_are_right() -> None:
    table = stored("features")
    ours, theirs = table[f"ratio {RATIO}"]["pairs"], table["OpenCV"]["pairs"]
    for pair, (found, right) in ours.items():
        assert found >= theirs[pair][0] and right >= theirs[pair][1]
        assert right / found >= theirs[pair][1] / theirs[pair][0]
    assert table["rivals at the same corner"]["right"] < table[f"ratio {RATIO}"]["right"]
    assert table["8000 features"]["right"] < 0.95 * table[f"ratio {RATIO}"]["right"]


def test_heavy_tails_are_what_detectors_have() -> None:
    table = stored("warps")
    error = {(row["freedom"], row["cut"]): row["error"] for row in table["summary"]}
    assert error[FREEDOM, CUT] < 1.1 * min(error.values())
    assert error[FREEDOM, CUT] < 0.9 * error[1e6, CUT] and error[FREEDOM, CUT] < 0.8 * table["MAGSAC"]


def test_places_found_again_are_more_precise_than_features_of_all_pixels() -> None:
    table = {row["setting"]: row for row in stored("overlaps")["summary"]}
    ours, usual = table[f"quick {QUICK}, window {WINDOW}"], table["features of all pixels"]
    assert ours["pairs"] == usual["pairs"] and ours["error"] < 0.5 * usual["error"] and ours["worst"] < usual["worst"]
    assert ours["seconds"] < 0.6 * usual["seconds"]
    assert ours["error"] < table[f"quick {QUICK}, window 11"]["error"]
