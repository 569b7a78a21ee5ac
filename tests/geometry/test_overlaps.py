"""The overlaps of a mosaic: matched on few pixels, found again on more."""

from __future__ import annotations

import numpy as np
import pytest

from photos import camera, look, photo
from trimlearn.geometry.homography.search import SampleSearch
from trimlearn.geometry.homography.synthetic import corner_error
from trimlearn.geometry.panorama import overlaps
from trimlearn.geometry.panorama.overlaps import QUICK, find_overlaps
from trimlearn.geometry.panorama.pairs import match_pairs

SIZE = (640, 480)  # more pixels than features are looked for in first
FEATURES = 8000


def turned(angle: float, focal: float = 500.0, light: float = 1.0) -> np.ndarray:
    return np.rint(light * photo(look(angle), focal, SIZE)).astype(np.uint8)


@pytest.mark.parametrize(("focal", "light"), [(500.0, 1.0), (500.0, 0.6), (800.0, 1.0), (330.0, 1.0)])
def test_places_found_again_are_at_least_as_precise(focal: float, light: float) -> None:
    images = [turned(0), turned(12, focal, light)]
    true = camera(focal, SIZE) @ look(12) @ np.linalg.inv(camera(500.0, SIZE))
    pairs, usual = find_overlaps(images, ["one", "other"], FEATURES, 0), match_pairs(images)
    error, by_features = (corner_error(found.pairs[0].homography, true, SIZE) for found in (pairs, usual))
    assert pairs.sizes == usual.sizes == (SIZE, SIZE)
    assert error < 0.1
    assert error < max(by_features, 0.05)


def test_images_that_hang_together_by_little_are_matched_on_more_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [turned(0), turned(12), np.zeros((480, 640, 3), np.uint8)]
    usual = match_pairs(images, names=list("abc"))
    assert find_overlaps(images, list("abc"), FEATURES, 0) == usual  # the third hangs together with none
    monkeypatch.setattr(overlaps, "PLENTY", 10**6)
    assert find_overlaps(images[:2], list("ab"), FEATURES, 0).pairs == usual.pairs


def test_small_images_are_matched_as_they_are() -> None:
    images = [photo(look(angle)) for angle in (0, 15)]
    assert images[0].shape[0] * images[0].shape[1] <= QUICK
    assert find_overlaps(images, ["one", "other"], FEATURES, 0) == match_pairs(images, names=["one", "other"])


def test_what_is_not_found_again_stays_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [turned(0), turned(12)]
    monkeypatch.setattr(overlaps, "MOVED", 0.0)
    (still,) = find_overlaps(images, ["one", "other"], FEATURES, 0).pairs
    monkeypatch.undo()
    (moved,) = find_overlaps(images, ["one", "other"], FEATURES, 0).pairs
    assert len(still) == len(moved)
    apart = np.linalg.norm(still.dst - moved.dst, axis=1) + np.linalg.norm(still.src - moved.src, axis=1)
    assert 0.02 < np.median(apart[moved.inliers]) < 1.0
    assert not apart[~still.inliers].any()


def test_places_found_again_are_fitted_from_where_they_were_found_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """No samples are drawn a second time: where a lens bends lines their luck would decide."""
    searched: list[int] = []
    run = SampleSearch.run
    monkeypatch.setattr(SampleSearch, "run", lambda self, *rest: searched.append(len(self.pairs)) or run(self, *rest))
    (pair,) = find_overlaps([turned(0), turned(12)], ["one", "other"], FEATURES, 0).pairs
    assert searched == [len(pair)]
