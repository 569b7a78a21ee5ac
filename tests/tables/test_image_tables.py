"""Folders of images with their labels."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest

from trimlearn.tables import read_images

cv2 = pytest.importorskip("cv2")


def folder_of(path: Path, count: int = 12, side: int = 40, channels: int = 3) -> Path:
    rng = np.random.default_rng(0)
    folder = path / "photos"
    folder.mkdir()
    for i in range(count):
        shape = (side + i % 2, side, 3)[: channels if channels == 3 else 2]
        cv2.imwrite(str(folder / f"im{i:02d}.png"), rng.integers(0, 255, shape, dtype=np.uint8))
    return folder


def labels_of(path: Path, rows: list[str]) -> Path:
    path = path / "labels.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_images_and_labels(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    labels = labels_of(tmp_path, ["weight,kind,file", *(f"{i}.5,{i % 3},im{i:02d}.png" for i in range(12))])
    images = read_images(folder, labels)
    assert images.label == "kind" and list(images.table.frame) == ["file", "kind"]
    assert [column.kind for column in images.table.columns] == ["id", "category"]
    assert images.pixels.shape == (12, 28 * 28 * 3) and images.size == (28, 28, 3)
    assert 0 <= images.pixels.min() < images.pixels.max() <= 1
    (picture,) = images.thumbnails([3])
    raw = base64.b64decode(picture.removeprefix("data:image/png;base64,"))
    assert cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR).shape == (41, 40, 3)


def test_small_grey_images_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    folder.mkdir()
    for i in range(6):
        cv2.imwrite(str(folder / f"{i}.png"), np.full((8, 9), 40 * i, np.uint8))
    labels = labels_of(tmp_path, ["id,label", *(f"{i},{'ab'[i % 2]}" for i in range(6))])
    images = read_images(folder, labels)
    assert images.size == (8, 9, 1)
    np.testing.assert_allclose(images.pixels[2], 80 / 255, rtol=1e-6)


def test_images_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "im03.png").write_bytes(b"no image")
    labels = labels_of(
        tmp_path, ["file,label", *(f"photos/im{i:02d}.png,{'ab'[i % 2]}" for i in range(11)), "gone.png,a"]
    )
    images = read_images(folder, labels)
    assert len(images.pixels) == len(images.table.frame) == len(images.paths) == 10
    notes = " ".join(images.table.notes)
    assert "1 image could not be read and was left out: im03.png." in notes
    assert '1 of 12 images is not in the folder: "gone.png".' in notes
    assert "1 image has no label and was left out." in notes


def test_features_instead_of_pixels(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    labels = labels_of(tmp_path, ["file,label", *(f"im{i:02d},{'ab'[i % 2]}" for i in range(12))])
    np.save(tmp_path / "f.npy", np.arange(36).reshape(12, 3))
    images = read_images(folder, labels, tmp_path / "f.npy")
    assert images.pixels.shape == (12, 3) and images.size is None
    np.save(tmp_path / "f.npy", np.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"has shape \(5, 3\); there must be one row for each of the 12 rows"):
        read_images(folder, labels, tmp_path / "f.npy")


def test_what_is_no_folder_of_images(tmp_path: Path) -> None:
    labels = labels_of(tmp_path, ["file,label", "a.png,x", "b.png,y"])
    with pytest.raises(NotADirectoryError, match="does not exist"):
        read_images(tmp_path / "none", labels)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no images"):
        read_images(tmp_path / "empty", labels)
    folder = folder_of(tmp_path)
    with pytest.raises(ValueError, match="no column holds the names of the images"):
        read_images(folder, labels)
    with pytest.raises(ValueError, match="no column of labels"):
        read_images(folder, labels_of(tmp_path, ["file", "im00.png", "im01.png"]))
