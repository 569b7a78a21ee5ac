"""The homography experiment on a slice: river's figures, one Oxford pair, a few scenes of made-up matches."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pytest

from paper import homography
from paper.outcome import Outcome, write_outcome, write_page
from paper.page import write_docs_page
from paper.rivals import RIVALS, opencv_homography
from trimlearn.datasets.locate import find_folder
from trimlearn.geometry.homography.synthetic import corner_error, random_scene


@pytest.fixture(scope="module")
def found(data_home: Path) -> Outcome:
    if find_folder("vlfeat", data_home, holding="river1.jpg") is None or not (data_home / "oxford_affine").is_dir():
        pytest.skip("the photographs of vlfeat and oxford_affine are not there: set TRIMLEARN_DATA")
    return homography.run(homography.QUICK, data_home)


def test_a_tenth_of_the_matches_is_kept(found: Outcome) -> None:
    river = found.results["river"]
    assert river["kept"] == ceil(0.1 * river["matches"]) > 50
    near = river["near"]
    # the printed loss fixes the scale twice; four matches are too few; all inliers are best
    ways = ("printed loss, a tenth kept", "algebraic loss, a tenth kept, DLT on the four best", "trimlearn")
    printed, four, mine = (near[name][1] for name in ways)
    assert printed < 0.1 * four < four < mine
    assert mine > 0.8 * river["matches"]


def test_a_known_homography_is_met_as_well_as_by_magsac(found: Outcome) -> None:
    (pair,) = found.results["oxford"]
    assert pair["trimlearn"] <= pair["MAGSAC++"] + 0.5
    assert pair["trimlearn"] < 1.0


def test_random_matches_are_seen_through(found: Outcome) -> None:
    for name in ("trimlearn", "trimlearn, guided by scores"):
        assert found.results["random_matches"]["0.8"][name]["solved"] == 1.0


def test_the_page_of_the_docs_has_every_table_and_picture(found: Outcome, tmp_path: Path) -> None:
    out, docs = tmp_path / "out", tmp_path / "docs"
    out.mkdir()
    write_outcome(out, found)
    write_page(out, found)
    page = write_docs_page(out, docs).read_text(encoding="utf-8")
    for table in found.tables:
        assert table.title in page
    for picture in found.pictures:
        (shown,) = [path for path in (docs / "img" / "paper").iterdir() if path.stem == f"homography_{picture.name}"]
        assert f"(img/paper/{shown.name})" in page
        assert shown.stat().st_size < 1_000_000


@pytest.mark.parametrize("rival", RIVALS)
def test_rivals_solve_an_easy_scene(rival: str) -> None:
    pytest.importorskip("cv2", reason="OpenCV is not installed: pip install trimlearn[vision]")
    scene = random_scene(np.random.default_rng(3), contamination=0.3)
    H = opencv_homography(scene.src, scene.dst, rival)
    assert H is not None
    assert corner_error(H, scene.H) < 3


def test_nothing_found_is_none_and_counts_as_unsolved() -> None:
    src, dst = np.random.default_rng(0).uniform(0, 900, (2, 60, 2))
    assert homography._mine(src, dst) is None
    assert homography._error(None, np.eye(3), (10, 10)) is None
