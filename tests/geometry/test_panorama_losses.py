"""The losses of a panorama, their derivatives, and rotations."""

from __future__ import annotations

import numpy as np
import pytest

from cameras import ring
from trimlearn.geometry.homography.points import PointPairs
from trimlearn.geometry.homography.transfer import squared_transfer
from trimlearn.geometry.panorama.losses import Correspondences, HomographyLoss, RotationLoss, TransferLoss
from trimlearn.geometry.panorama.rotations import (
    cross_matrix,
    nearest_rotation,
    rotation_and_jacobian,
    rotation_between,
    straighten,
)

CENTRE = np.array([319.5, 239.5])


def losses(m: int = 5, n: int = 60, spread: float = 0.6, seed: int = 0) -> list[TransferLoss]:
    """Both models with matches that are far off, some of them beside and behind the cameras."""
    rng = np.random.default_rng(seed)
    i = rng.integers(0, m, n)
    j = (i + rng.integers(1, m, n)) % m
    matches = Correspondences(i, j, rng.uniform(-300, 300, (n, 2)), rng.uniform(-300, 300, (n, 2)), m)
    turns = rotation_and_jacobian(spread * rng.standard_normal((m, 3)))[0]
    bent = np.eye(3) + 0.1 * rng.standard_normal((m, 3, 3)) * [[1, 1, 100], [1, 1, 100], [0.03, 0.03, 1]]
    return [RotationLoss(matches, turns, rng.uniform(400, 800, m)), HomographyLoss(matches, bent, 300.0)]


def exact(m: int = 4) -> tuple[RotationLoss, np.ndarray]:
    """A loss around the true cameras, and the rows of their matches, which are exact."""
    scene = ring(m=m, closed=False, wrong=0.0, noise=0.0, matches=30)
    i, j, src, dst = zip(*scene.correspondences, strict=True)
    pair = np.repeat(np.arange(len(i)), [len(p) for p in src])
    points = (np.concatenate(src) - CENTRE, np.concatenate(dst) - CENTRE)
    matches = Correspondences(np.array(i)[pair], np.array(j)[pair], *points, m)
    return RotationLoss(matches, scene.rotations, scene.focals), pair


BOTH = pytest.mark.parametrize("which", [0, 1], ids=["rotation", "homography"])


@BOTH
def test_the_gradient_is_that_of_finite_differences(which: int) -> None:
    loss, rng = losses()[which], np.random.default_rng(1)
    x, c = 0.1 * rng.standard_normal(loss.x_shape), rng.uniform(size=loss.n)
    found, h = np.zeros(loss.x_shape), 1e-6
    for at in np.ndindex(*loss.x_shape):
        step = np.zeros(loss.x_shape)
        step[at] = h
        found[at] = c @ (loss.values(x + step) - loss.values(x - step)) / (2 * h)
    gradient = loss.gradient(x, c)
    assert np.abs(gradient - found).max() < 1e-6 * np.abs(gradient).max()
    assert any(way.behind.any() for way in loss._ways(loss.maps(x), None))  # or the test sees half of the formula


@BOTH
def test_value_and_gradient_together_and_by_rows(which: int) -> None:
    loss, rng = losses()[which], np.random.default_rng(2)
    x, c = 0.1 * rng.standard_normal(loss.x_shape), rng.uniform(size=loss.n)
    value, gradient = loss.value_gradient(x, c)
    assert value == pytest.approx(c @ loss.values(x), rel=1e-12)
    assert np.allclose(gradient, loss.gradient(x, c), rtol=1e-12)
    rows = np.array([3, 3, 17])
    assert np.array_equal(loss.values(x, rows), loss.values(x)[rows])
    share = np.zeros(loss.n)
    share[3], share[17] = 0.3, 0.5
    assert np.allclose(loss.gradient(x, np.array([0.1, 0.2, 0.5]), rows), loss.gradient(x, share), rtol=1e-10)


@BOTH
def test_a_match_of_weight_zero_adds_nothing(which: int) -> None:
    loss = losses()[which]
    matches = loss.matches
    src = matches.src.copy()
    src[7] = np.nan
    spoilt: TransferLoss
    broken = Correspondences(matches.i, matches.j, src, matches.dst, matches.images)
    if isinstance(loss, RotationLoss):
        spoilt = RotationLoss(broken, loss.rotations, loss.focals)
    else:
        assert isinstance(loss, HomographyLoss)
        spoilt = HomographyLoss(broken, loss.homographies, 300.0)
    x, c = np.zeros(loss.x_shape), np.ones(loss.n)
    c[7] = 0.0
    assert np.allclose(spoilt.gradient(x, c), loss.gradient(x, c), rtol=1e-12)
    assert np.allclose(spoilt.hessian(x, c), loss.hessian(x, c), rtol=1e-12)
    assert spoilt.value_gradient(x, c)[0] == pytest.approx(loss.value_gradient(x, c)[0])


@BOTH
def test_hessian_products_and_matrix_agree_and_are_never_negative(which: int) -> None:
    loss, rng = losses()[which], np.random.default_rng(3)
    x, u, c = 0.1 * rng.standard_normal(loss.x_shape), rng.standard_normal(loss.x_shape), rng.uniform(size=loss.n)
    H = loss.hessian(x, c)
    assert np.allclose(H @ u.ravel(), loss.hessp(x, u, c).ravel(), rtol=1e-9, atol=1e-9 * np.abs(H).max())
    assert np.linalg.eigvalsh(H)[0] > -1e-9 * np.abs(H).max()


def test_where_matches_are_exact_the_hessian_is_the_true_one() -> None:
    loss, _ = exact()
    c, x, h = np.ones(loss.n), np.zeros(loss.x_shape), 1e-5
    assert loss.values(x).max() < 1e-15
    u = np.random.default_rng(4).standard_normal(loss.x_shape)
    true = (loss.gradient(x + h * u, c) - loss.gradient(x - h * u, c)) / (2 * h)
    assert np.abs(loss.hessp(x, u, c) - true).max() < 1e-6 * np.abs(true).max()


def test_turning_the_world_changes_nothing() -> None:
    loss, *_ = losses()
    assert isinstance(loss, RotationLoss)
    turn = rotation_and_jacobian(np.array([[0.3, -0.8, 0.5]]))[0][0]
    x = 0.1 * np.random.default_rng(5).standard_normal(loss.x_shape)
    other = RotationLoss(loss.matches, loss.rotations @ turn, loss.focals)
    assert np.allclose(loss.values(x), other.values(x), rtol=1e-9)
    values = np.linalg.eigvalsh(exact()[0].hessian(np.zeros((4, 4)), np.ones(90)))
    assert np.all(values[:3] < 1e-9 * values[-1])
    assert values[3] > 1e-6 * values[-1]


def test_a_homography_of_the_common_plane_changes_nothing() -> None:
    loss = losses(spread=0.1)[1]
    assert isinstance(loss, HomographyLoss)
    G = np.array([[1.1, 0.1, 20.0], [-0.05, 0.9, -10.0], [1e-4, -2e-4, 1.0]])
    other = HomographyLoss(loss.matches, G @ loss.homographies, 300.0)
    x = np.zeros(loss.x_shape)
    assert np.allclose(loss.values(x), other.values(x), rtol=1e-9)


def test_errors_are_symmetric_transfer_errors_in_pixels() -> None:
    scene = ring(m=2, closed=False, wrong=0.0, noise=2.0)
    i, j, src, dst = scene.correspondences[0]
    ones = np.ones(len(src), int)
    there = Correspondences(0 * ones, ones, src - CENTRE, dst - CENTRE, 2)
    back = Correspondences(ones, 0 * ones, dst - CENTRE, src - CENTRE, 2)
    found, swapped = (
        RotationLoss(matches, scene.rotations, scene.focals).values(np.zeros((2, 4))) for matches in (there, back)
    )
    assert np.allclose(found, squared_transfer(scene.homography(i, j), PointPairs(src, dst)), rtol=1e-9)
    assert np.allclose(found, swapped, rtol=1e-12)


def test_a_point_behind_the_camera_is_far_off_and_farther_the_more_it_is_behind() -> None:
    angles = np.radians([80.0, 100.0, 140.0, 180.0])
    values = []
    for angle in angles:
        turn = rotation_and_jacobian(np.array([[0.0, 0.0, 0.0], [0.0, angle, 0.0]]))[0]
        match = Correspondences(np.array([0]), np.array([1]), np.zeros((1, 2)), np.zeros((1, 2)), 2)
        values.append(float(RotationLoss(match, turn, np.array([500.0, 500.0])).values(np.zeros((2, 4)))[0]))
    assert values == sorted(values)
    assert values[0] > 500.0**2
    assert np.isfinite(values[-1])


def test_cameras_follow_x() -> None:
    loss, _ = exact()
    x = np.zeros(loss.x_shape)
    x[1] = [0.0, 0.2, 0.0, np.log(1.5)]
    R, f = loss.cameras(x)
    assert f[1] == pytest.approx(1.5 * loss.focals[1])
    assert np.allclose(R[1], rotation_and_jacobian(np.array([[0.0, 0.2, 0.0]]))[0][0] @ loss.rotations[1])
    assert np.array_equal(R[0], loss.rotations[0])
    assert np.all(np.isinf(loss.lipschitz()))


# -- rotations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-5, 1e-3, 1.0, 3.1])
def test_the_jacobian_of_a_rotation_vector(size: float) -> None:
    v = size * np.array([[0.36, 0.48, 0.8]])
    R, J = rotation_and_jacobian(v)
    assert np.allclose(R[0] @ R[0].T, np.eye(3), atol=1e-12)
    h = 1e-6
    for k in range(3):
        step = np.zeros((1, 3))
        step[0, k] = h
        slope = (rotation_and_jacobian(v + step)[0] - rotation_and_jacobian(v - step)[0])[0] / (2 * h)
        assert np.allclose(slope, cross_matrix(J[0, :, k]) @ R[0], atol=1e-8)


def test_nearest_and_best_rotations() -> None:
    rng = np.random.default_rng(6)
    R = rotation_and_jacobian(rng.standard_normal((7, 3)))[0]
    assert np.allclose(nearest_rotation(3.0 * R), R)
    assert np.allclose(np.linalg.det(nearest_rotation(rng.standard_normal((50, 3, 3)))), 1.0)  # never a reflection
    a = rng.standard_normal((20, 3))
    assert np.allclose(rotation_between(a, a @ R[0].T), R[0])


def test_straightening_levels_a_tilted_ring() -> None:
    scene = ring(m=8, step=45.0, tilt=0.0)
    tilted = scene.rotations @ rotation_and_jacobian(np.array([[0.5, 0.1, -0.3]]))[0][0]
    level = straighten(tilted)
    assert np.allclose(level[:, 1], [0.0, 1.0, 0.0])  # every camera's y axis is the world's
    assert np.allclose(level @ level[0].T, tilted @ tilted[0].T)  # and nothing else has changed
    one = straighten(tilted[:1])
    assert np.allclose(one[0], np.eye(3), atol=1e-9)
    down = rotation_and_jacobian(np.array([[-np.pi / 2, 0.0, 0.0]]))[0]
    assert np.allclose(np.linalg.det(straighten(down)), 1.0)


def held(yaw: float, pitch: float = 0.0, roll: float = 0.0) -> np.ndarray:
    """A camera turned right, up, and about its axis, by so many degrees."""
    turns = np.radians([[0, 0, roll], [pitch, 0, 0], [0, yaw, 0]])
    about, up, right = rotation_and_jacobian(turns)[0]
    return about @ up @ right


PAN = (-40, -20, 0, 20, 40)
HELD = {
    "pan": [(a, 0, 0) for a in PAN],
    "one of three on its side": [(-18, 0, 0), (0, 0, 90), (18, 0, 0)],
    "the first on its other side": [(-18, 0, -90), (0, 0, 0), (18, 0, 0)],
    "a narrow pan": [(-5, 0, 0), (0, 0, 90), (5, 0, 0)],
    "every second": [(a, 0, 90 * (i % 2)) for i, a in enumerate(PAN)],
    "half of them": [(a, 0, 90 * (i % 2)) for i, a in enumerate(PAN[:4])],
    "one upside down": [(a, 0, 180 * (i == 2)) for i, a in enumerate(PAN)],
    "a full turn, looking up": [(a, 30, 90 * (a % 120 == 0)) for a in range(0, 360, 30)],
    "a column": [(0, p, 0) for p in PAN],
    "a column with one on its side": [(0, p, 90 * (p == 20)) for p in PAN],
    "all directions": [(a, p, 90 * (p == a == 0)) for a in range(0, 360, 60) for p in (-45, 0, 45)],
}


@pytest.mark.parametrize("case", HELD)
def test_down_is_found_whichever_way_cameras_are_held(case: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        wobble = rotation_and_jacobian(np.radians(rng.standard_normal((len(HELD[case]), 3))))[0]
        true = wobble @ np.stack([held(*angles) for angles in HELD[case]])
        level = straighten(true @ nearest_rotation(rng.standard_normal((3, 3))))
        assert np.allclose(level @ level[0].T, true @ true[0].T)
        down = (true[0].T @ level[0])[:, 1]  # in the true world
        assert np.degrees(np.arccos(down[1])) < 12
