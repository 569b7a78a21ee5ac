"""Images read in any form, and the matches between them."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from photos import camera, cv2, look, photo, through
from trimlearn.geometry.homography.transfer import transform
from trimlearn.geometry.mosaic import images as images_module
from trimlearn.geometry.mosaic import matches as matches_module
from trimlearn.geometry.mosaic.images import read_image
from trimlearn.geometry.mosaic.matches import Features, Matches, detect, match, match_images
from trimlearn.geometry.panorama.pairs import match_pairs

SIZE = (400, 300)


@pytest.fixture(scope="module")
def pair() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two photos of a camera that turned and rolled, and the true homography."""
    one, other = look(0), look(18, 4, 12)
    K = camera(400.0, SIZE)
    return photo(one, 400.0, SIZE), photo(other, 400.0, SIZE), K @ other @ one.T @ np.linalg.inv(K)


def test_matches_are_right_unique_and_scored(pair: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    one, other, H = pair
    found = match_images(one, other)
    error = np.linalg.norm(through(H, found.src) - found.dst, axis=1)
    assert len(found.src) > 150
    assert np.mean(error < 2) > 0.95
    assert np.median(error) < 0.3
    for points in (found.src, found.dst):
        assert len(np.unique(points, axis=0)) == len(points)
    assert np.all(found.scores >= 1 - matches_module.RATIO) and np.all(found.scores <= 1)
    assert np.median(found.scores[error < 2]) > np.max(found.scores[error > 5], initial=0) / 2


def test_a_stricter_ratio_keeps_the_better_matches(pair: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    features = detect(pair[0]), detect(pair[1])
    loose, strict = match(*features, ratio=0.9), match(*features, ratio=0.6)
    assert len(strict.src) < len(loose.src)
    kept = {tuple(row) for row in np.hstack(strict[:2])}
    assert kept == {tuple(row) for row in np.hstack(loose[:2])[loose.scores >= 0.4]}


def test_blocks_of_rows_do_not_change_the_matches(
    pair: tuple[np.ndarray, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = match_images(*pair[:2])
    monkeypatch.setattr(matches_module, "BLOCK", 5000)
    for a, b in zip(whole, match_images(*pair[:2]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_points_have_no_bias(pair: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """The same picture upside down: a detector that is a quarter pixel off is half a pixel off here."""
    image = pair[0]
    found = match_images(image, np.ascontiguousarray(image[::-1, ::-1]))
    shift = found.src + found.dst - (np.array(SIZE) - 1)
    assert np.all(np.abs(np.median(shift, axis=0)) < 0.02)


def test_large_photos_are_detected_small_in_full_size_pixels(
    pair: tuple[np.ndarray, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pair[0]
    large = cv2.resize(image, None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC)
    monkeypatch.setattr(matches_module, "DETECTION_PIXELS", 1.3 * SIZE[0] * SIZE[1])
    found = match_images(image, large)
    assert detect(large).size == (3 * SIZE[0], 3 * SIZE[1])
    shift = (found.src + 0.5) * 3 - 0.5 - found.dst
    near = np.all(np.abs(shift) < 4, axis=1)
    assert np.mean(near) > 0.95
    assert np.all(np.abs(np.median(shift[near], axis=0)) < 0.1)  # half a pixel of either size would be 0.5 or more


def test_at_most_so_many_features(pair: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    few = detect(pair[0], max_features=50)
    assert 40 <= len(few) <= 51
    assert few.descriptors.shape == (len(few), 128)
    np.testing.assert_allclose(np.linalg.norm(few.descriptors, axis=1), 1, atol=1e-5)


def test_features_of_one_corner_do_not_compete() -> None:
    rng = np.random.default_rng(0)
    good, other = np.abs(rng.standard_normal((2, 128))).astype(np.float32)
    twin = good + 0.05 * other
    unit = [v / np.linalg.norm(v) for v in (good, twin, other)]
    one = Features(np.array([[50.0, 50.0], [90.0, 90.0]]), np.stack([unit[0], unit[2]]), (200, 200))
    for place, found in ((52.0, 2), (150.0, 1)):  # the twin shows the same corner, or another one
        points = np.array([[60.0, 60.0], [place, 60.0], [10.0, 150.0]])
        rival = match(one, Features(points, np.stack([unit[1], unit[1], unit[2]]), (200, 200)), ratio=0.8)
        assert len(rival.src) == found
    near = Features(np.array([[60.0, 60.0], [61.0, 60.0]]), np.stack([unit[0], unit[2]]), (200, 200))
    assert len(match(one, near, ratio=0.9).src) == 2  # nothing elsewhere: the second nearest


def test_what_is_blank_has_no_matches(pair: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    blank = np.full((90, 120, 3), 77, np.uint8)
    for found in (match_images(blank, blank), match_images(blank, pair[0]), match_images(pair[0], blank)):
        assert [a.shape for a in found] == [(0, 2), (0, 2), (0,)]
    one = Features(np.zeros((1, 2)), np.ones((1, 128), np.float32) / np.sqrt(128), (9, 9))
    assert isinstance(match(one, one), Matches) and len(match(one, one).src) == 0


def test_nothing_is_found_where_an_image_is_transparent(pair: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    alpha = np.full(pair[0].shape[:2], 255, np.uint8)
    alpha[:, 150:] = 0
    points = detect(np.dstack([pair[0], alpha])).points
    assert len(points) > 50
    assert points[:, 0].max() < 147


@pytest.mark.parametrize(
    ("sequence", "k", "least", "share"),
    [
        ("graf", 2, 1700, 0.92),
        ("graf", 3, 1100, 0.65),
        ("graf", 4, 400, 0.47),
        ("boat", 2, 2700, 0.95),
        ("boat", 5, 600, 0.77),
    ],
)
def test_oxford(data_home: Path, sequence: str, k: int, least: int, share: float) -> None:
    folder = data_home / "oxford_affine" / sequence
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    found = match_images(folder / "img1.png", folder / f"img{k}.png")
    H = np.loadtxt(folder / f"H1to{k}p.txt")
    right = np.linalg.norm(through(H, found.src) - found.dst, axis=1) < 3
    assert len(right) > least
    assert np.mean(right) > share


def test_every_form_of_an_image_is_the_same_image(tmp_path: Path) -> None:
    rgb = photo(look(30))
    deep = rgb.astype(np.uint16) * 257
    for form in (
        deep,
        rgb / 255.0,
        (rgb / 255.0).astype(np.float32),
        np.dstack([rgb, rgb[:, :, :1]]),
        rgb[:, ::-1][:, ::-1],
    ):
        np.testing.assert_array_equal(read_image(form), rgb)
    grey = rgb[:, :, 0]
    for form in (grey, grey[:, :, None], grey.astype(np.uint16) * 257):
        np.testing.assert_array_equal(read_image(form), np.dstack([grey] * 3))
    for name, pixels in (("a.png", rgb), ("deep.png", deep), ("deep.tif", deep), ("grün.png", rgb)):
        cv2.imencode(Path(name).suffix, pixels[:, :, ::-1])[1].tofile(tmp_path / name)
        np.testing.assert_array_equal(read_image(tmp_path / name), rgb)
        np.testing.assert_array_equal(read_image(str(tmp_path / name)), rgb)
    rgba = np.dstack([rgb, np.where(grey > 128, 255, 0).astype(np.uint8)])
    cv2.imwrite(str(tmp_path / "alpha.png"), cv2.cvtColor(rgba, cv2.COLOR_RGBA2BGRA))
    np.testing.assert_array_equal(read_image(tmp_path / "alpha.png", alpha=True), rgba)
    np.testing.assert_array_equal(read_image(tmp_path / "alpha.png"), rgb)
    assert read_image(np.dstack([rgb, np.full_like(grey, 255)]), alpha=True).shape[2] == 3


@pytest.mark.parametrize(("orientation", "turn"), [(1, 0), (3, 2), (6, -1), (8, 1)])
def test_exif_orientation(tmp_path: Path, orientation: int, turn: int) -> None:
    stored = photo(look(0))
    raw = cv2.imencode(".jpg", stored[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()
    tiff = b"II*\x00" + struct.pack("<IHHHII", 8, 1, 0x0112, 3, 1, orientation) + bytes(4)
    exif = b"Exif\x00\x00" + tiff
    (tmp_path / "turned.jpg").write_bytes(raw[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + raw[2:])
    upright = np.rot90(read_image(_written(tmp_path / "plain.jpg", raw)), turn)
    np.testing.assert_array_equal(read_image(tmp_path / "turned.jpg"), upright)


def _written(path: Path, raw: bytes) -> Path:
    path.write_bytes(raw)
    return path


def test_files_that_are_no_images(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jpg does not exist"):
        match_images(tmp_path / "nowhere.jpg", np.zeros((40, 40), np.uint8))
    raw = cv2.imencode(".png", photo(look(0)))[1].tobytes()
    for name, content in (("text.jpg", b"not a picture"), ("empty.png", b"")):
        with pytest.raises(ValueError, match=rf"{name} is not an image that can be read"):
            detect(_written(tmp_path / name, content))
    with pytest.raises(ValueError, match=r"cut\.png is damaged: its 60 bytes end before the picture does"):
        detect(_written(tmp_path / "cut.png", raw[:60]))
    assert capfd.readouterr().err == ""  # decoders print what they think of it
    with pytest.raises(ValueError, match="cannot be read as an image"):
        detect(tmp_path)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((31, 400), np.uint8), "400 × 31 pixels; an image needs at least 32"),
        (np.zeros((0, 400, 3), np.uint8), "400 × 0 pixels"),
        (np.zeros(400, np.uint8), "got an array of shape"),
        (np.zeros((40, 40, 2), np.uint8), "got an array of shape"),
        (np.zeros((40, 40), np.int64), "got int64"),
        (np.full((40, 40), 200.0), "floats from 200 to 200"),
        (np.full((40, 40), np.nan), "holds NaN; give every pixel a number in"),
    ],
)
def test_arrays_that_are_no_images(image: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        match_images(image, photo(look(0)))


@pytest.mark.parametrize(
    "bad", [{"ratio": 0.0}, {"ratio": 1.5}, {"ratio": True}, {"max_features": 0}, {"max_features": 1.5}]
)
def test_bad_options(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        match_images(photo(look(0)), photo(look(9)), **bad)  # type: ignore[arg-type]


def test_without_opencv_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=r'pip install "trimlearn\[vision\]"'):
        images_module.opencv()


def test_large_photographs_are_matched_on_fewer_pixels_to_a_part_of_one() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 90), dtype=np.uint8)
    scene = np.kron(noise, np.ones((24, 24), np.uint8))  # two of 1440 × 1440 pixels, twice as many as are looked at
    (pair,) = match_pairs([scene[:, :1440], scene[:, 720:]]).pairs
    corners = np.array([[0.0, 0.0], [1439.0, 0.0], [1439.0, 1439.0], [0.0, 1439.0]])
    assert np.abs(transform(pair.homography, corners) - (corners - [720.0, 0.0])).max() < 0.5
