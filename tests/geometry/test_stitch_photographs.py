"""Photographs as they are: of different sizes, depths and exposures, grey beside colour, bent by a lens, cut off."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from photos import camera, cv2, look, paint, photo
from trimlearn.cli import main
from trimlearn.geometry import stitch
from trimlearn.geometry.mosaic.exposure import apply_gain
from trimlearn.geometry.mosaic.images import read_image
from trimlearn.geometry.mosaic.mosaic import Mosaic

SIZE = (260, 200)


@pytest.fixture(scope="module")
def two() -> list[np.ndarray]:
    return [photo(look(a)) for a in (0, 15)]


def seen(mosaic: Mosaic, i: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """The mosaic through the homography of image i."""
    assert mosaic.homographies is not None
    return cv2.warpPerspective(
        mosaic.image, mosaic.homographies[i], size, flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    ).astype(float)


# -- resolution -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angles", [(0, 15), (0, 15, 30)])
def test_the_finer_photograph_decides_the_resolution(angles: tuple[int, ...]) -> None:
    fine = photo(look(15), 780.0, (780, 600))
    mosaic = stitch([fine if a == 15 else photo(look(a)) for a in angles])
    assert mosaic.homographies is not None
    middle = np.array([[389.5, 299.5, 1], [390.5, 299.5, 1]]) @ mosaic.homographies[1].T
    step = np.diff(middle[:, :2] / middle[:, 2:], axis=0)[0]
    assert 0.9 < np.hypot(*step) < 1.35  # a pixel of it is one of the mosaic, or more off the middle
    assert np.abs(seen(mosaic, 1, (780, 600)) - fine)[100:-100, 200:-200].mean() < 5


def test_a_limit_on_pixels_is_said(two: list[np.ndarray]) -> None:
    with pytest.warns(UserWarning, match=r"coarser than the finest photograph. Raise max_pixels"):
        stitch([two[0], photo(look(15), 780.0, (780, 600))], max_pixels=2e5)


# -- surfaces ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "angles", "surface"),
    [
        (SIZE, ((0, 0), (40, 0)), "cylinder"),
        (SIZE[::-1], ((0, -20), (0, 20)), "sphere"),
        (SIZE, ((0, 0), (8, 0)), "plane"),
    ],
)
def test_two_photographs_are_no_keystone(size: tuple[int, int], angles: tuple, surface: str) -> None:
    images = [photo(look(*a), 190.0, size) for a in angles]
    mosaic = stitch(images)
    assert mosaic.surface == surface
    assert mosaic.border < 0.25
    assert mosaic.image.shape[0] * mosaic.image.shape[1] < 2 * size[0] * size[1]
    assert stitch(images, projection="sphere").surface == "sphere"
    with pytest.raises(ValueError, match="projection must be"):
        stitch(images, projection="globe")


def test_a_wall_seen_from_aside_stays_flat() -> None:
    wall = photo(look(0), 400.0, (600, 400))
    corners = np.float32([[0, 0], [599, 0], [599, 399], [0, 399]])
    aside = np.float32([[60, 40], [500, 0], [520, 399], [30, 300]])
    other = cv2.warpPerspective(wall, cv2.getPerspectiveTransform(corners, aside), (600, 400))[60:300, 100:500]
    mosaic = stitch([wall, other])
    assert mosaic.surface == "plane"


# -- depth ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blend", ["multiband", "feather", "none"])
def test_sixteen_bits_in_sixteen_bits_out(two: list[np.ndarray], tmp_path: Path, blend: str) -> None:
    noise = np.random.default_rng(0).integers(0, 257, (200, 260, 1))
    deep = [(image.astype(np.uint16) * 256 + noise).astype(np.uint16) for image in two]
    mosaic = stitch(deep, blend=blend)
    assert mosaic.image.dtype == np.uint16
    assert len(np.unique(mosaic.image)) > 5000
    assert np.abs(seen(mosaic, 0) - deep[0]).mean() < 4 * 256
    for name, dtype in (("a.png", np.uint16), ("a.tif", np.uint16), ("a.jpg", np.uint8), ("a.webp", np.uint8)):
        mosaic.save(tmp_path / name)
        written = cv2.imread(str(tmp_path / name), cv2.IMREAD_UNCHANGED)
        assert written.dtype == dtype
        if name == "a.png":
            assert np.array_equal(written[:, :, 2::-1], mosaic.image)


def test_the_deepest_photograph_decides(two: list[np.ndarray], tmp_path: Path) -> None:
    file = tmp_path / "tief, 16 bit.tif"
    file.write_bytes(cv2.imencode(".tif", two[1][:, :, ::-1].astype(np.uint16) * 257)[1].tobytes())
    mixed, plain = stitch([two[0], file]), stitch(two)
    assert (mixed.image.dtype, plain.image.dtype) == (np.uint16, np.uint8)
    assert np.abs(seen(mixed, 0) / 257 - seen(plain, 0)).mean() < 3
    assert stitch([image / 255.0 for image in two]).image.dtype == np.uint16


def test_sixteen_bits_with_alpha(two: list[np.ndarray]) -> None:
    alpha = np.full((200, 260, 1), 65535, np.uint16)
    alpha[:, :60] = 0
    mosaic = stitch([np.dstack([two[0].astype(np.uint16) * 257, alpha]), two[1]])
    assert mosaic.homographies is not None
    x, y, z = mosaic.homographies[0] @ [20.0, 100.0, 1.0]
    outside = not (0 <= round(x / z) < mosaic.mask.shape[1])
    assert outside or not mosaic.mask[round(y / z), round(x / z)]


# -- damaged files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("progressive", [0, 1])
def test_a_jpeg_that_was_cut_off_is_named(two: list[np.ndarray], tmp_path: Path, progressive: int) -> None:
    raw = cv2.imencode(".jpg", two[0], [cv2.IMWRITE_JPEG_PROGRESSIVE, progressive])[1].tobytes()
    whole, cut, padded = (tmp_path / name for name in ("whole.jpg", "cut.jpg", "padded.jpg"))
    whole.write_bytes(raw + b"\0" * 100)  # cameras write things behind the end
    assert read_image(whole).shape == (200, 260, 3)
    for share in (0.5, 0.9, 0.999):
        cut.write_bytes(raw[: int(share * len(raw))])
        with pytest.raises(ValueError, match=r"cut\.jpg is (damaged|not an image that can be read)"):
            stitch([cut, two[1]])
    padded.write_bytes(raw[: int(0.8 * len(raw))] + b"\0" * (len(raw) // 5))  # a download that never ended
    with pytest.raises(ValueError, match=r"padded\.jpg is (damaged|not an image that can be read)"):
        stitch([padded, two[1]])


def test_a_png_that_was_cut_off_is_named(two: list[np.ndarray], tmp_path: Path) -> None:
    raw = cv2.imencode(".png", two[0])[1].tobytes()
    (tmp_path / "cut.png").write_bytes(raw[: int(0.7 * len(raw))])
    with pytest.raises(ValueError, match=r"cut\.png is (damaged|not an image that can be read)"):
        read_image(tmp_path / "cut.png")


# -- exposure ---------------------------------------------------------------------------------------------------------


def test_grey_beside_colour_is_not_tinted() -> None:
    left, right = (photo(look(a), 260.0, (400, 260)) for a in (0, 25))
    warm = np.clip(left * [1.2, 1.0, 0.7], 0, 255).astype(np.uint8)
    grey = np.repeat(cv2.cvtColor(right, cv2.COLOR_RGB2GRAY)[:, :, None], 3, axis=2)
    mosaic = stitch([warm, grey], surface="plane")
    there = seen(mosaic, 1, (400, 260))[20:-20, 300:380]  # beyond the other
    assert np.abs(there - there.mean(axis=2, keepdims=True)).max() <= 2
    here = seen(mosaic, 0, (400, 260))[20:-20, 20:100]
    assert np.abs(here.mean(axis=(0, 1)) / warm[20:-20, 20:100].mean(axis=(0, 1)) - 1).max() < 0.06


def test_an_overexposed_photograph_does_not_bleach_the_other() -> None:
    left, right = (photo(look(a), 260.0, (400, 260)) for a in (0, 25))
    over = np.clip(right * 1.9, 0, 255).astype(np.uint8)
    mosaic = stitch([left, over], surface="plane")
    good = seen(mosaic, 0, (400, 260))
    assert good[20:-20, 20:300].mean() == pytest.approx(left[20:-20, 20:300].mean(), rel=0.03)
    alone = seen(mosaic, 1, (400, 260))[20:-20, 300:380]
    assert alone.mean() < 0.8 * over[20:-20, 300:380].mean()


def test_white_stays_white_where_a_photograph_is_overexposed() -> None:
    row = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    darker = apply_gain(row, np.full(3, 0.5), overexposed=True)[0, :, 0].astype(int)
    assert darker[255] == 255 and darker[100] == 50
    assert np.all(np.diff(darker) >= 0)
    assert np.diff(darker).max() <= 6  # no edge
    assert np.array_equal(apply_gain(row, np.full(3, 0.5))[0, :, 0], np.rint(np.arange(256) * 0.5))
    brighter = apply_gain(row, np.full(3, 1.2), overexposed=True)
    assert np.array_equal(brighter, apply_gain(row, np.full(3, 1.2)))


# -- the lens ---------------------------------------------------------------------------------------------------------


def bent_photo(yaw: float, kappa: float, focal: float = 260.0, size: tuple[int, int] = (320, 240)) -> np.ndarray:
    """What a camera with a lens sees."""
    x, y = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    centre = (np.array(size) - 1) / 2
    p = np.stack([x, y], axis=-1) - centre
    u = p / (1 + kappa * np.sum(p**2, axis=-1, keepdims=True) / (np.hypot(*size) / 2) ** 2)
    rays = np.concatenate([u + centre, np.ones((*u.shape[:2], 1))], axis=-1)
    rays = rays @ np.linalg.inv(camera(focal, size)).T @ look(yaw)
    return paint(np.arctan2(rays[..., 0], rays[..., 2]), np.arctan2(rays[..., 1], np.hypot(rays[..., 0], rays[..., 2])))


def test_a_lens_is_taken_out_of_the_mosaic() -> None:
    images = [bent_photo(a, -0.12) for a in (-50, -25, 0, 25, 50)]
    mosaic = stitch(images)
    assert mosaic.surface == "cylinder"
    assert mosaic.distortion == pytest.approx([-0.12] * 5, abs=0.02)
    focal = float(np.max(mosaic.panorama.focals_))
    assert focal == pytest.approx(260, rel=0.04)
    h, w = mosaic.image.shape[:2]
    best = np.inf
    for dx in np.arange(-4, 5):
        for dy in np.arange(-4, 5):
            x, y = np.meshgrid((np.arange(w) - w / 2 + dx) / focal, (np.arange(h) - h / 2 + dy) / focal)
            truth = paint(x, np.arctan(y))
            inside = slice(h // 2 - 50, h // 2 + 50), slice(w // 2 - 150, w // 2 + 150)
            best = min(best, float(np.abs(mosaic.image[inside].astype(float) - truth[inside]).mean()))
    assert best < 12


# -- the command ------------------------------------------------------------------------------------------------------


def test_a_crop_is_offered_where_borders_are_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for k, image in enumerate((photo(look(0)), photo(look(12, 12)))):
        files.append(str(tmp_path / f"photo {k}, ü.png"))
        Path(files[-1]).write_bytes(cv2.imencode(".png", image[:, :, ::-1])[1].tobytes())
    out = str(tmp_path / "out.png")
    assert not main(["stitch", *files, "--out", out, "--projection", "plane"])
    said = capsys.readouterr().out
    assert "--crop" in said
    results = json.loads((tmp_path / "out.results.json").read_text())
    assert results["border"] > 0.1
    assert results["distortion"] == [0.0, 0.0]
    assert not main(["stitch", *files, "--out", out, "--crop"])
    assert "--crop" not in capsys.readouterr().out
    assert json.loads((tmp_path / "out.results.json").read_text())["border"] == 0


def test_photographs_in_any_order_with_strangers_among_them() -> None:
    rng = np.random.default_rng(0)
    right = [photo(look(18 * k, 3 * rng.standard_normal(), 2 * rng.standard_normal())) for k in range(8)]
    strangers = [
        np.full((100, 100, 3), 128, np.uint8),
        rng.integers(0, 255, (200, 300, 3), dtype=np.uint8),
        photo(look(250)),
    ]
    both = [*right, *strangers]
    order = rng.permutation(len(both))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mosaic = stitch([both[k] for k in order])
    assert sorted(order[list(mosaic.left_out)]) == [8, 9, 10]
    assert len(said) == 1 and "left out" in str(said[0].message)
