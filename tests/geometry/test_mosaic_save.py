"""A mosaic written to a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from photos import cv2, look, photo
from trimlearn.geometry.mosaic.mosaic import Mosaic

SIZE = (260, 200)


@pytest.fixture
def mosaic() -> Mosaic:
    image = photo(look(0))
    mask = np.ones(SIZE[::-1], bool)
    mask[:20, :30] = False
    return Mosaic(image * mask[:, :, None], mask, "plane", None, (0, 1), ())


@pytest.mark.parametrize("name", ["a.png", "a.PNG", "a.tif", "a.jpg", "a.webp", "a.bmp", "a.ppm"])
def test_what_is_saved_can_be_read(mosaic: Mosaic, tmp_path: Path, name: str) -> None:
    path = mosaic.save(tmp_path / name)
    stored = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if path.suffix.lower() in (".png", ".tif", ".webp"):
        np.testing.assert_array_equal(stored[:, :, 3] > 0, mosaic.mask)
    lossy = 12 if path.suffix in (".jpg", ".webp") else 0
    shown = cv2.erode(mosaic.mask.astype(np.uint8), np.ones((17, 17), np.uint8)) > 0
    error = np.abs(stored[:, :, 2::-1].astype(int) - mosaic.image)[shown]
    assert np.mean(error) <= lossy / 4
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_quality_counts(mosaic: Mosaic, tmp_path: Path) -> None:
    sizes = [mosaic.save(tmp_path / "a.jpg", quality=q).stat().st_size for q in (30, 95)]
    assert 2 * sizes[0] < sizes[1]


def test_what_cannot_be_saved_is_said_and_leaves_nothing(mosaic: Mosaic, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no picture format is called '\.doc'"):
        mosaic.save(tmp_path / "a.doc")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        mosaic.save(tmp_path / "nowhere" / "a.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        mosaic.save(tmp_path / "folder.png")
    wide = Mosaic(np.zeros((1, 70_000, 3), np.uint8), np.ones((1, 70_000), bool), "plane", None, (0, 1), ())
    with pytest.raises(ValueError, match="70000 × 1 pixels do not fit this format"):
        wide.save(tmp_path / "a.jpg")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.png"]
