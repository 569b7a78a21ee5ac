"""stitch: from photographs to a mosaic."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from photos import camera, cv2, from_above, look, paint, photo, through, world
from trimlearn.geometry.mosaic import placement
from trimlearn.geometry.mosaic.layout import HorizonError
from trimlearn.geometry.mosaic.mosaic import Mosaic
from trimlearn.geometry.mosaic.stitch import stitch, stitch_files
from trimlearn.geometry.panorama.overlaps import PLENTY

SIZE, FOCAL = (260, 200), 260.0


@pytest.fixture(scope="module")
def three() -> list[np.ndarray]:
    return [photo(look(a)) for a in (0, 15, 30)]


def between(i: tuple[float, ...], j: tuple[float, ...]) -> np.ndarray:
    """The true homography from a photo to another."""
    K = camera(FOCAL, SIZE)
    return K @ look(*j) @ look(*i).T @ np.linalg.inv(K)


def corners() -> np.ndarray:
    w, h = SIZE
    return np.array([[0, 0], [w - 1, 0], [w - 1, h - 1], [0, h - 1], [w / 2, h / 2]])


def off(mosaic: Mosaic, i: int, j: int, H: np.ndarray) -> float:
    """How many pixels of the mosaic image i lies beside j, at the corners of i, at most."""
    assert mosaic.homographies is not None
    return float(
        np.abs(through(mosaic.homographies[i], corners()) - through(mosaic.homographies[j] @ H, corners())).max()
    )


def mismatch(mosaic: Mosaic, image: np.ndarray, i: int) -> float:
    """The mean difference between a photo and the mosaic seen through its homography."""
    assert mosaic.homographies is not None
    h, w = image.shape[:2]
    seen = cv2.warpPerspective(
        mosaic.image, mosaic.homographies[i], (w, h), flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    )
    return float(np.mean(np.abs(seen.astype(float) - image)))


def test_two_photos_on_a_plane(three: list[np.ndarray]) -> None:
    mosaic = stitch(three[:2])
    assert (mosaic.surface, mosaic.used, mosaic.left_out, mosaic.wraps) == ("plane", (0, 1), (), False)
    assert mosaic.panorama is None and mosaic.pairs is not None and len(mosaic.pairs) == 1
    assert mosaic.image.dtype == np.uint8 and mosaic.mask.dtype == bool and mosaic.image.shape[:2] == mosaic.mask.shape
    assert not mosaic.image[~mosaic.mask].any()
    assert off(mosaic, 0, 1, between((0,), (15,))) < 1.0
    assert mismatch(mosaic, three[0], 0) < 4 and mismatch(mosaic, three[1], 1) < 4


@pytest.mark.parametrize("blend", ["multiband", "feather", "none"])
def test_every_blend(three: list[np.ndarray], blend: str) -> None:
    mosaic = stitch(three, blend=blend)
    for i, image in enumerate(three):
        assert mismatch(mosaic, image, i) < 4


def test_the_order_does_not_matter(three: list[np.ndarray]) -> None:
    one, other = stitch(three), stitch([three[2], three[0], three[1]])
    np.testing.assert_array_equal(one.image, other.image)
    assert one.homographies is not None and other.homographies is not None
    np.testing.assert_array_equal(one.homographies, other.homographies[[1, 2, 0]])


def test_a_full_turn_closes() -> None:
    angles = list(range(0, 360, 36))
    images = [photo(look(a, 3 * np.sin(a), 2 * np.cos(a))) for a in angles]
    mosaic = stitch(images[::2] + images[1::2])
    assert mosaic.surface == "cylinder" and mosaic.wraps and mosaic.homographies is None
    assert mosaic.image.shape[1] == pytest.approx(2 * np.pi * FOCAL, rel=0.02)
    assert _best_turn(mosaic) < 6


def _best_turn(mosaic: Mosaic) -> float:
    """The mean difference from the world on a cylinder, over the turn and the height that fit best."""
    h, w = mosaic.image.shape[:2]
    scale = w / (2 * np.pi)
    x, y = np.meshgrid(np.arange(w) / scale, (np.arange(h) - h / 2) / scale)
    truth = paint(x, np.arctan(y))
    rows = slice(h // 2 - 40, h // 2 + 40)
    turns = [
        np.mean(np.abs(np.roll(mosaic.image, k, axis=1)[rows].astype(float) - truth[rows])) for k in range(0, w, 4)
    ]
    near = 4 * int(np.argmin(turns))
    best = np.inf
    for k in range(near - 4, near + 5):
        for dy in range(-8, 9):
            moved = np.roll(mosaic.image, (dy, k), axis=(0, 1))[rows].astype(float)
            best = min(best, float(np.mean(np.abs(moved - truth[rows]))))
    return best


def test_a_wide_view_is_drawn_on_a_cylinder_and_a_tall_one_on_a_sphere() -> None:
    wide = stitch([photo(look(a, 4, 3)) for a in (-40, -20, 0, 20, 40)])
    assert (wide.surface, wide.wraps) == ("cylinder", False)
    tall = stitch([photo(look(0, p)) for p in (-40, -20, 0, 20, 40)])
    assert (tall.surface, tall.wraps) == ("sphere", False)
    assert tall.image.shape[0] == pytest.approx(np.radians(80 + 42) * np.median(tall.panorama.focals_), rel=0.05)


@pytest.mark.parametrize("surface", ["plane", "cylinder", "sphere"])
def test_a_surface_by_name(three: list[np.ndarray], surface: str) -> None:
    mosaic = stitch(three, surface=surface)
    assert mosaic.surface == surface
    assert (mosaic.homographies is not None) == (surface == "plane")
    two = stitch(three[:2], surface=surface)
    assert (two.panorama is None) == (surface == "plane")


def test_a_camera_that_moves_along_a_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    tilts = ((0, 0), (12, -8), (-10, 9), (5, 14))
    images = [from_above(300 + 90 * i, 300 + 30 * (i % 2), tilt) for i, tilt in enumerate(tilts)]
    mosaic = stitch(images)
    assert mosaic.surface == "plane" and mosaic.panorama.model == "homography"
    for i, image in enumerate(images):
        assert mismatch(mosaic, image, i) < 8
    monkeypatch.setattr(placement, "POOR", 0.003)
    with pytest.warns(UserWarning, match=r"image \d and image \d are \d+ px off"):
        stitch(images, surface="cylinder")


def test_exposures_are_equalised(three: list[np.ndarray]) -> None:
    darker = [three[0], (three[2] * 0.7).astype(np.uint8)]
    equal, raw = stitch(darker), stitch(darker, equalise=False)
    assert equal.homographies is not None and raw.homographies is not None
    for mosaic, ratio in ((equal, 1.0), (raw, 0.7)):
        left, right = (through(mosaic.homographies[i], np.array([[x, 100.0]]))[0] for i, x in ((0, 20.0), (1, 240.0)))
        seen = [
            mosaic.image[round(y) - 15 : round(y) + 15, round(x) - 15 : round(x) + 15].mean() for x, y in (left, right)
        ]
        true = [image[85:115, round(x) - 15 : round(x) + 15].mean() for image, x in ((three[0], 20), (three[2], 240))]
        assert seen[1] / seen[0] == pytest.approx(ratio * true[1] / true[0], rel=0.04)


def test_photos_that_overlap_with_none_are_left_out_with_a_warning(three: list[np.ndarray]) -> None:
    with pytest.warns(UserWarning, match="left out: image 1 overlaps with none of the images in the mosaic"):
        mosaic = stitch([three[0], photo(look(150)), three[1]])
    assert (mosaic.used, mosaic.left_out) == ((0, 2), (1,))
    assert mosaic.homographies is not None
    assert np.isnan(mosaic.homographies[1]).all() and np.isfinite(mosaic.homographies[[0, 2]]).all()
    assert set(mosaic.order) == {0, 2}
    with pytest.warns(UserWarning, match="image 0, image 4 overlap"):
        group = stitch([photo(look(180)), *three, photo(look(195))])
    assert group.used == (1, 2, 3)


def test_no_overlap_is_an_error_and_nothing_is_written(three: list[np.ndarray], tmp_path: Path) -> None:
    for name, image in (("one.png", three[0]), ("other.png", photo(look(150)))):
        cv2.imwrite(str(tmp_path / name), image[:, :, ::-1])
    out = tmp_path / "out.jpg"
    with pytest.raises(
        ValueError, match=r"no two of the 2 images overlap.*(one|other)\.png and .*(one|other)\.png.* \d+ matches"
    ):
        stitch_files([tmp_path / "one.png", tmp_path / "other.png"], out)
    with pytest.raises(ValueError, match=r"overlap.* 0 matches"):
        stitch([three[0], np.full_like(three[0], 90)])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.png", "other.png"]


def test_files_in_a_file_out(three: list[np.ndarray], tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for path, image in zip(paths, three, strict=True):
        cv2.imwrite(str(path), image[:, :, ::-1])
    mosaic = stitch_files(paths, tmp_path / "out.png", crop=True)
    assert mosaic.mask.all()
    np.testing.assert_array_equal(cv2.imread(str(tmp_path / "out.png"))[:, :, ::-1], mosaic.image)
    np.testing.assert_array_equal(mosaic.image, stitch(three, crop=True).image)
    assert mismatch(stitch(three, crop=True), three[1], 1) < 25  # its homographies are to the cropped mosaic


def test_where_to_write_is_checked_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no picture format"):
        stitch_files(["does not exist.png"] * 2, tmp_path / "out.xyz")


@pytest.mark.parametrize(
    "images", [[], ["one.jpg"], "one.jpg", Path("one.jpg"), np.zeros((2, 64, 64), np.uint8), None, 7, iter(["one.jpg"])]
)
def test_fewer_than_two_images(images: object) -> None:
    with pytest.raises(ValueError, match="at least two images"):
        stitch(images)  # type: ignore[arg-type]


def test_a_bad_image_is_named(three: list[np.ndarray], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jpg does not exist"):
        stitch([three[0], tmp_path / "nowhere.jpg"])
    with pytest.raises(ValueError, match="image 1 has 20 × 20 pixels"):
        stitch([three[0], three[1][:20, :20]])


@pytest.mark.parametrize(("what", "called"), [(None, "None"), (7, "of type int"), ([1, 2], "of type list")])
def test_what_is_no_image_is_named(what: object, called: str, three: list[np.ndarray]) -> None:
    with pytest.raises(ValueError, match=f"images must hold paths or arrays of pixels.*image 1 is {called}"):
        stitch([three[0], what])  # type: ignore[list-item]


def test_two_planes_in_one_pair_are_told_with_the_names_of_the_images(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    coarse = np.random.default_rng(0).integers(0, 256, (60, 150), dtype=np.uint8)
    scene = cv2.resize(coarse, (900, 360), interpolation=cv2.INTER_CUBIC)
    parts = [scene[:, :500], np.vstack([scene[:180, 100:600], scene[180:, 220:720]])]
    files = [tmp_path / "left.png", tmp_path / "right.png"]
    for file, part in zip(files, parts, strict=True):
        cv2.imwrite(str(file), part)
    with pytest.warns(UserWarning, match=r"(left|right)\.png and .*(left|right)\.png: \d+ matches agree with another"):
        stitch(files)


@pytest.mark.parametrize(
    "bad",
    [
        {"surface": "torus"},
        {"blend": "poisson"},
        {"max_pixels": 0},
        {"max_pixels": 50},
        {"max_features": -1},
        {"equalise": "no"},
        {"crop": 1},
        {"progress": "yes"},
        {"random_state": -1},
        {"random_state": "x"},
    ],
)
def test_bad_options(three: list[np.ndarray], bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        stitch(three, **bad)  # type: ignore[arg-type]


def test_the_same_photo_twice(three: list[np.ndarray]) -> None:
    mosaic = stitch([three[0], three[0].copy()])
    assert mosaic.mask.all() and mosaic.image.shape == three[0].shape
    assert np.abs(mosaic.image.astype(int) - three[0]).max() <= 1
    assert len(stitch([three[0], three[0], three[1]]).used) == 3


def test_three_times_the_same_photo_is_that_photo(three: list[np.ndarray]) -> None:
    with pytest.warns(UserWarning, match="do not tell the focal length"):
        mosaic = stitch(iter([three[0], three[0].copy(), three[0].copy()]), random_state=np.random.default_rng(0))
    assert mosaic.mask.all() and mosaic.image.shape == three[0].shape
    assert np.abs(mosaic.image.astype(int) - three[0]).max() <= 1


def test_a_zoom_without_a_turn_does_not_tell_the_focal_length() -> None:
    with pytest.warns(UserWarning, match="do not tell the focal length"):
        mosaic = stitch([photo(look(0), f) for f in (260.0, 390.0, 585.0)])
    focals = dict(zip(mosaic.order, mosaic.panorama.focals_, strict=True))
    assert focals[1] / focals[0] == pytest.approx(1.5, rel=0.02) and focals[2] / focals[1] == pytest.approx(
        1.5, rel=0.02
    )


@pytest.mark.parametrize("turned", [(0,), (1,), (0, 2)])
@pytest.mark.parametrize("surface", ["auto", "sphere"])
def test_a_photo_on_its_side(three: list[np.ndarray], turned: tuple[int, ...], surface: str) -> None:
    mixed = [np.rot90(image).copy() if i in turned else image for i, image in enumerate(three)]
    mosaic, level = stitch(mixed, surface=surface), stitch(three, surface=surface)
    if turned == (0, 2):  # most are on their side, and so is the mosaic
        assert mosaic.image.shape[0] > mosaic.image.shape[1]
        return
    assert (mosaic.surface, mosaic.wraps) == (level.surface, False)
    assert mosaic.image.shape[:2] == pytest.approx(level.image.shape[:2], rel=0.02)
    shift = cv2.phaseCorrelate(*(_middle(picture.image) for picture in (mosaic, level)))
    assert np.hypot(*shift[0]) < 5 and shift[1] > 0.3


def _middle(image: np.ndarray) -> np.ndarray:
    """160 × 240 grey pixels around the centre."""
    y, x = (side // 2 for side in image.shape[:2])
    return cv2.cvtColor(image[y - 80 : y + 80, x - 120 : x + 120], cv2.COLOR_RGB2GRAY).astype(np.float32)


def test_auto_never_takes_a_surface_that_is_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [photo(look(0, p)) for p in range(-66, 67, 22)]
    monkeypatch.setattr(placement, "TALL", 10.0)  # so that a sphere is not the first choice
    for wide in (0.1, 10.0):  # a cylinder, a plane
        monkeypatch.setattr(placement, "WIDE", wide)
        assert stitch(images).surface == "sphere"
    with pytest.raises(HorizonError, match="horizon of the cylinder"):
        stitch(images, surface="cylinder")


@pytest.mark.parametrize("zoom", [2.0, 4.0])
def test_a_strong_zoom_is_no_horizon(zoom: float) -> None:
    """A part of a photo, four times as large, used to be drawn on a sphere: 16 times as many pixels were too many."""
    wide = world()[300:600, 600:1000]
    h, w = wide.shape[:2]
    H = np.array([[zoom, 0, (1 - zoom) * w / 2], [0, zoom, (1 - zoom) * h / 2], [0, 0, 1]])
    mosaic = stitch([wide, cv2.warpPerspective(wide, H, (w, h), flags=cv2.INTER_CUBIC)])
    assert mosaic.surface == "plane"
    assert mosaic.image.shape[:2] == pytest.approx((zoom * h, zoom * w), rel=0.02)
    assert mosaic.mask.mean() > 0.98


def test_photos_of_different_sizes_colours_and_zooms() -> None:
    grey = np.rint(photo(look(15), 300.0, (240, 300)) @ [0.3, 0.6, 0.1]).astype(np.uint8)
    mosaic = stitch([photo(look(0)), grey, photo(look(28), 390.0)])
    assert mosaic.used == (0, 1, 2)
    assert mosaic.panorama.focals_ == pytest.approx([(260, 300, 390)[i] for i in mosaic.order], rel=0.05)


def test_a_transparent_part_is_not_shown(three: list[np.ndarray]) -> None:
    alpha = np.full(SIZE[::-1], 255, np.uint8)
    alpha[:70, :90] = 0
    sign = three[0].copy()
    sign[:70, :90] = (255, 0, 255)
    mosaic = stitch([np.dstack([sign, alpha]), three[1]])
    assert not np.any(np.all(mosaic.image == (255, 0, 255), axis=2))
    assert mosaic.homographies is not None
    x, y = through(mosaic.homographies[0], np.array([[20.0, 20.0]]))[0]
    assert not mosaic.mask[round(y), round(x)]


def test_a_view_too_wide_for_a_plane() -> None:
    images = [photo(look(a), 110.0, (260, 150)) for a in (0, 75)]  # 100° each
    mosaic = stitch(images)
    assert mosaic.surface == "cylinder"
    with pytest.raises(HorizonError, match=r"image \d reaches the horizon of the plane.*surface='cylinder'"):
        stitch(images, surface="plane")


def test_a_mosaic_is_made_smaller_than_it_would_be_with_a_warning(three: list[np.ndarray]) -> None:
    with pytest.warns(UserWarning, match=r"would have \d+ × \d+ pixels, more than max_pixels"):
        small = stitch(three, max_pixels=30_000)
    full = stitch(three)
    assert 25_000 < small.mask.size <= 30_000
    resized = cv2.resize(full.image, small.image.shape[1::-1], interpolation=cv2.INTER_AREA)
    inside = cv2.erode(small.mask.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
    assert np.mean(np.abs(resized.astype(float) - small.image)[inside]) < 12


def test_progress_is_told(three: list[np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    stitch(three[:2], progress=True)
    said = capsys.readouterr()
    assert not said.out
    assert [line.split()[0] for line in said.err.splitlines()] == ["reading", "matching", "fitting", "blending"]


@pytest.mark.filterwarnings("ignore:.*second plane")  # of roofs, seen from two places, there are two
@pytest.mark.parametrize(("name", "width", "surface"), [("river", 2000, "cylinder"), ("roofs", 1000, "plane")])
def test_the_papers_pair_and_one_with_parallax(data_home: Path, name: str, width: int, surface: str) -> None:
    folder = data_home / "vlfeat"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    files = [folder / f"{name}1.jpg", folder / f"{name}2.jpg"]
    assert stitch(files).surface == surface  # the river pair is 113° wide
    mosaic = stitch(files, surface="plane")
    assert mosaic.pairs is not None and mosaic.pairs.pairs[0].inliers.sum() > 2 * PLENTY
    assert width < mosaic.image.shape[1] < 1.5 * width
    for i in (0, 1):
        assert mismatch(mosaic, cv2.imread(str(folder / f"{name}{i + 1}.jpg"))[:, :, ::-1], i) < 12


def test_a_part_of_the_denny_circle(data_home: Path) -> None:
    folder = data_home / "panorama" / "autostitch_denny"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mosaic = stitch([folder / f"denny{i:02d}.jpg" for i in (6, 3, 5, 4)], max_features=2000)
    assert (mosaic.surface, mosaic.wraps, mosaic.left_out) == ("cylinder", False, ())
    focal = np.median(mosaic.panorama.focals_)
    assert 600 < focal < 720  # the circle says 650; the lens bends lines, and is taken out
    assert all(-0.05 < kappa < -0.02 for kappa in mosaic.distortion)
    assert mosaic.image.shape[1] / focal == pytest.approx(np.radians(78 + 40), rel=0.15)


def test_an_empty_list_is_said_to_be_empty() -> None:
    with pytest.raises(ValueError, match=r"at least two images .* got 0 of them"):
        stitch([])
