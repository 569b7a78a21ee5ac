"""A lens that bends lines: taken out, put back, found, and left alone where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from cameras import SIZE, Ring, bent, ring
from trimlearn.geometry.panorama.estimator import TrimmedPanorama
from trimlearn.geometry.panorama.lens import bend, magnification, straight

HALF = np.array(400.0)


@pytest.mark.parametrize("kappa", [-0.3, -0.05, 0.0, 0.1])
def test_a_lens_put_back_is_the_photograph(kappa: float) -> None:
    points = np.random.default_rng(0).uniform(-280, 280, (50, 2))
    flat = straight(points, np.array(kappa), HALF)
    assert np.allclose(bend(flat, np.array(kappa), HALF), points, atol=1e-9)
    assert np.all(np.linalg.norm(flat, axis=1) >= np.linalg.norm(points, axis=1)) == (kappa <= 0)
    h = 1e-4
    right, below = (straight(points + step, np.array(kappa), HALF) - flat for step in ([h, 0], [0, h]))
    areas = np.abs(right[:, 0] * below[:, 1] - right[:, 1] * below[:, 0]) / h**2
    assert np.allclose(magnification(points, np.array(kappa), HALF) ** 2, areas, rtol=1e-3)


def test_what_no_point_of_the_image_is_shown_at() -> None:
    assert np.isnan(bend(np.array([[900.0, 0.0]]), np.array(0.2), HALF)).all()
    assert np.isfinite(bend(np.array([[9e9, 0.0]]), np.array(-0.2), HALF)).all()


def fitted(scene: Ring, **options: object) -> TrimmedPanorama:
    return TrimmedPanorama(**options).fit(scene.correspondences, scene.sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("barrel", "closed"), [(0.04, False), (0.04, True), (-0.03, False), (0.15, False)])
def test_the_lens_is_found_and_with_it_the_focal_length(barrel: float, closed: bool) -> None:
    scene = ring(m=12 if closed else 5, barrel=barrel, closed=closed)
    panorama = fitted(scene)
    assert panorama.distortion_.shape == scene.focals.shape
    assert np.all(panorama.distortion_ == panorama.distortion_[0])  # one camera
    assert panorama.distortion_[0] == pytest.approx(-barrel, abs=0.01 + 0.2 * abs(barrel))
    assert panorama.focals_ == pytest.approx(scene.focals, rel=0.04)
    assert not panorama.doubts_
    points = np.random.default_rng(1).uniform((340, 60), (600, 420), (40, 2))
    there = scene.homography(0, 1) @ np.column_stack([points, np.ones(40)]).T
    true = bent((there[:2] / there[2]).T, barrel)
    assert np.abs(panorama.transfer(0, 1, bent(points, barrel)) - true).max() < 1.5
    again = panorama.outlier_score(scene.correspondences)
    assert np.allclose(again, panorama.outlier_scores_, atol=1e-6)


def test_without_the_lens_an_open_chain_takes_the_wrong_focal_length() -> None:
    scene = ring(m=5, barrel=0.04, closed=False)
    assert np.abs(fitted(scene, distortion=0).focals_ / 600 - 1).max() > 0.1
    assert np.abs(fitted(scene).focals_ / 600 - 1).max() < 0.04
    given = fitted(scene, distortion=-0.04)
    assert np.all(given.distortion_ == -0.04)
    assert given.focals_ == pytest.approx(scene.focals, rel=0.04)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("m", [2, 5])
def test_no_lens_is_seen_where_there_is_none(m: int, seed: int) -> None:
    assert not fitted(ring(m=m, closed=False, noise=1.0, seed=seed)).distortion_.any()


def test_homographies_have_no_lens() -> None:
    scene = ring(m=3, barrel=0.04, closed=False)
    panorama = fitted(scene, model="homography")
    assert not panorama.distortion_.any()
    points = np.array([[400.0, 200.0]])
    u = panorama.pair_homography(0, 1) @ [400.0, 200.0, 1.0]
    assert np.allclose(panorama.transfer(0, 1, points), u[:2] / u[2])


def test_rethreshold_keeps_the_lens() -> None:
    scene = ring(m=5, barrel=0.04, closed=False)
    panorama = fitted(scene)
    before = panorama.distortion_.copy()
    assert np.array_equal(panorama.rethreshold(0.45).distortion_, before)


def test_a_zoomed_photograph_has_a_lens_of_its_own() -> None:
    scene = ring(m=6, barrel=0.05, closed=False)
    kept = [c for c in scene.correspondences if c[:2] != (4, 5)]
    centre = (np.array(SIZE) - 1) / 2
    i, j, src, dst = scene.correspondences[4]
    far = (dst - centre) * 1.6 + centre  # image 5 zoomed in: its corners are not bent by the same share
    inside = np.all((far >= 0) & (far <= np.array(SIZE) - 1), axis=1)
    panorama = TrimmedPanorama().fit([*kept, (i, j, src[inside], far[inside])], scene.sizes)
    assert np.all(panorama.distortion_[:5] == panorama.distortion_[0])
    assert panorama.distortion_[0] == pytest.approx(-0.05, abs=0.015)
    assert panorama.focals_[5] / panorama.focals_[0] == pytest.approx(1.6, rel=0.05)


@pytest.mark.parametrize("bad", ["barrel", None, True, -0.9, 3, np.nan])
def test_a_lens_that_is_none(bad: object) -> None:
    scene = ring(m=2, closed=False)
    with pytest.raises(ValueError, match="distortion must be"):
        fitted(scene, distortion=bad)
