"""Bundle adjustment: derivatives, the target with a tenth of the observations wrong, gauges, thin points, files."""

from __future__ import annotations

import bz2
import gzip
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimlearn import Checkpoint, Problem, solve
from trimlearn.geometry import ReprojectionLoss, read_bal
from trimlearn.geometry.bundle_data import BundleScene, made_up_scene
from trimlearn.geometry.panorama.rotations import rotation_and_jacobian
from trimlearn.losses import check_loss
from trimlearn.losses.relocate import relocated
from trimlearn.smart import alternating
from trimlearn.solution import Solution
from trimlearn.weights import AllOnes, CappedSimplex

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_12_bundle_adjustment.py"


def without_the_wrong(scene: BundleScene) -> ReprojectionLoss:
    loss, right = scene.loss, ~scene.wrong
    camera, point = (seen.block[right] for seen in loss.sees)
    return ReprojectionLoss(camera, point, loss.seen[right], loss.cameras, loss.points)


def trimmed(scene: BundleScene, **options: Any) -> Solution:
    return solve(Problem(scene.loss, CappedSimplex(scene.loss.n - int(scene.wrong.sum()))), **options)


def ratio(scene: BundleScene, fit: Solution) -> float:
    """The median error on right observations over that of least squares on them alone."""
    clean = without_the_wrong(scene)
    best = solve(Problem(clean, AllOnes()))
    assert best.status.converged
    return float(np.sqrt(np.median(clean.values(fit.x)) / np.median(clean.values(best.x))))


def test_derivatives_and_lengths() -> None:
    loss = made_up_scene(cameras=4, points=15, visible=0.8).loss
    check_loss(loss)
    x = loss.start()
    given, found = (jacobian(loss.blocks(x)) for jacobian in (loss.jacobian, super(type(loss), loss).jacobian))
    for a, b in zip(given, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * np.abs(a).max())
    np.testing.assert_allclose(np.linalg.norm(loss.predict(x) - loss.seen, axis=1), np.sqrt(2 * loss.values(x)))
    assert np.all(np.isinf(loss.lipschitz()))


@pytest.mark.parametrize(
    ("settings", "seeds"),
    [
        ({}, 3),
        ({"cameras": 8, "points": 200, "visible": 0.4}, 3),
        ({"cameras": 20, "points": 800, "visible": 0.3}, 2),
        ({"noise": 2.0}, 2),
        ({"arc": 5.0, "cameras": 16}, 1),
        ({"off": 3.0}, 2),
        ({"wrong": 0.3}, 1),
    ],
    ids=[
        "default",
        "few cameras",
        "many points",
        "noise",
        "almost all around",
        "bad start",
        "three tenths",
    ],
)
def test_a_tenth_of_the_observations_replaced(settings: dict[str, Any], seeds: int) -> None:
    """The target: at most 1.1 of least squares on the right ones alone, and converged."""
    for seed in range(seeds):
        scene = made_up_scene(seed=seed, **settings)
        fit = trimmed(scene)
        assert fit.status.converged, fit
        assert ratio(scene, fit) <= 1.1
        assert np.mean(fit.w[scene.wrong] == 0) > 0.95


def test_few_views_of_each_point() -> None:
    """A third of the points is seen twice. Where both views are wrong, the point explains the one that is kept, unless
    it lies where the lens shows nothing: then lens and point creep along a valley, and the status says so."""
    fits = []
    for seed in range(10):
        scene = made_up_scene(visible=0.2, seed=seed)
        fit = trimmed(scene)
        fits.append(fit.status.converged)
        assert ratio(scene, fit) <= 1.1
        assert np.mean(fit.w[scene.wrong] == 0) > 0.95
    assert np.mean(fits) >= 0.8


def test_a_point_that_a_wrong_view_dragged_away_is_brought_back() -> None:
    """No change of w or x alone leads back: plain alternating minimisation stays in the local minimum."""
    scene = made_up_scene(visible=0.2, seed=103)
    stuck, found = trimmed(scene, method=alternating(2)), trimmed(scene)
    assert stuck.status.converged and found.status.converged
    assert found.objective < 0.2 * stuck.objective
    assert ratio(scene, stuck) > 1.1 > ratio(scene, found)
    x, evaluated = relocated(scene.loss, stuck.x, stuck.losses, stuck.w)
    cameras, points = scene.loss.split(x - stuck.x)
    assert np.all(cameras == 0) and 0 < np.mean(np.any(points != 0, axis=1)) < 0.5
    assert 0 < evaluated < 20 * scene.loss.n
    assert found.passes <= 100 + 20 + evaluated / scene.loss.n * 5


@pytest.mark.parametrize("stop", [2, 3])
def test_a_run_stopped_after_a_look_elsewhere_is_where_it_was(stop: int) -> None:
    scene = made_up_scene(cameras=4, points=30)
    found = trimmed(scene, callback=lambda record: record.k >= stop)
    np.testing.assert_array_equal(found.losses, scene.loss.values(found.x))
    kept = CappedSimplex(scene.loss.n - int(scene.wrong.sum()))
    assert found.objective == Problem(scene.loss, kept).objective(found.w, found.x)


def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    scene = made_up_scene(visible=0.2, seed=103)
    whole = trimmed(scene)
    for last in (2, 4, 1000):
        saved = Checkpoint(tmp_path / "run.npz", every=0)
        again = trimmed(scene, callback=lambda record, last=last: record.k >= last, checkpoint=saved)
    np.testing.assert_array_equal(again.w, whole.w)
    np.testing.assert_array_equal(again.x, whole.x)
    assert again.passes == whole.passes


def test_nothing_wrong_nothing_lost() -> None:
    scene = made_up_scene(wrong=0.0)
    plain = solve(Problem(scene.loss, AllOnes()))
    assert plain.status.converged
    assert ratio(scene, plain) == pytest.approx(1.0)
    some = solve(Problem(scene.loss, CappedSimplex(0.95 * scene.loss.n)))
    assert some.status.converged and ratio(scene, some) < 1.02


def test_the_scene_may_be_moved_turned_and_scaled() -> None:
    """The fit has the same errors: gauges do not slow it down, and the steps stay where the scene is."""
    scene = made_up_scene()
    cameras, points = scene.loss.cameras, scene.loss.points
    turn = rotation_and_jacobian(np.array([[0.3, -0.2, 0.5]]))[0][0]
    moved = 5.0 * points @ turn.T + [10.0, -20.0, 30.0]
    from scipy.spatial.transform import Rotation

    R = rotation_and_jacobian(cameras[:, :3])[0] @ turn.T
    t = 5.0 * cameras[:, 3:6] - np.einsum("mab,b->ma", R, np.array([10.0, -20.0, 30.0]))
    placed = np.column_stack([Rotation.from_matrix(R).as_rotvec(), t, cameras[:, 6:]])
    camera, point = (seen.block for seen in scene.loss.sees)
    other = ReprojectionLoss(camera, point, scene.loss.seen, placed, moved)
    np.testing.assert_allclose(other.values(other.start()), scene.loss.values(scene.loss.start()), rtol=1e-6)
    here, there = trimmed(scene), trimmed(scene._replace(loss=other))
    assert there.status.converged
    np.testing.assert_allclose(there.objective, here.objective, rtol=1e-6)
    np.testing.assert_array_equal(there.w, here.w)
    assert np.abs(other.split(there.x)[1] - moved).max() < 5.0, "points stay near where they began"


def test_points_left_in_one_view_stay_finite_and_are_counted() -> None:
    scene = made_up_scene(visible=0.15)
    fit = trimmed(scene)
    cameras, points = scene.loss.times_seen(fit.w)
    assert fit.status.converged and np.all(np.isfinite(fit.x))
    assert np.sum(points < 2) > 0 and cameras.sum() == points.sum() == np.sum(fit.w > 0)
    assert ratio(scene, fit) <= 1.1


def test_a_row_order_changes_nothing() -> None:
    scene = made_up_scene(cameras=6, points=100)
    order = np.random.default_rng(0).permutation(scene.loss.n)
    camera, point = (seen.block[order] for seen in scene.loss.sees)
    mixed = ReprojectionLoss(camera, point, scene.loss.seen[order], scene.loss.cameras, scene.loss.points)
    here, there = trimmed(scene), trimmed(BundleScene(mixed, scene.wrong[order], scene.truth))
    np.testing.assert_array_equal(here.w[order], there.w)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seen": np.zeros((3, 3))}, r"seen must have shape \(count, 2\), got \(3, 3\)"),
        ({"cameras": np.zeros((2, 6))}, r"cameras must have shape \(count, 9\)"),
        ({"points": np.full((1, 3), np.nan)}, "points must be finite"),
        ({"camera": [0, 1, 2]}, "camera must be from 0 to 1, got 0 to 2"),
        ({"point": [0.0, 0.0, 0.0]}, "point must be 3 integers, one per observation, got float64"),
        ({"point": [0, 0]}, "point must be 3 integers"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], sentence: str) -> None:
    good = {"camera": [0, 1, 1], "point": [0, 0, 0], "seen": np.zeros((3, 2))}
    good |= {"cameras": np.ones((2, 9)), "points": np.ones((1, 3))}
    with pytest.raises(ValueError, match=sentence):
        ReprojectionLoss(**(good | change))


# -- files ------------------------------------------------------------------------------------------------------------


def written(loss: ReprojectionLoss) -> str:
    """The loss as a BAL file has it."""
    rows = zip(loss.sees[0].block, loss.sees[1].block, loss.seen.tolist(), strict=True)
    lines = [f"{len(loss.cameras)} {len(loss.points)} {loss.n}", *(f"{c} {p}     {u:e} {v:e}" for c, p, (u, v) in rows)]
    return "\n".join([*lines, *map(repr, map(float, loss.start())), ""])


def test_a_file_of_bundle_adjustment_in_the_large(tmp_path: Path) -> None:
    loss = made_up_scene(cameras=3, points=20).loss
    text = written(loss).encode()
    (tmp_path / "a.txt").write_bytes(text)
    (tmp_path / "b.txt.bz2").write_bytes(bz2.compress(text))
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(text))
    for name in ("a.txt", "b.txt.bz2", "c.txt.gz"):
        found = read_bal(tmp_path / name)
        np.testing.assert_array_equal(found.start(), loss.start())
        np.testing.assert_allclose(found.values(found.start()), loss.values(loss.start()), rtol=1e-4)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not a BAL problem, or is cut off.*it holds 0"),
        ("1 1 1  0 0 50 0  0 0 0", "1 cameras, 1 points and 1 observations make 19 numbers, it holds 10"),
        ("hello", "must hold numbers only"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "odd.txt").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        read_bal(tmp_path / "odd.txt")


def test_the_example_reads_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib").use("Agg")
    from matplotlib import pyplot

    (tmp_path / "problem.txt").write_text(written(made_up_scene(cameras=6, points=60, wrong=0.0).loss))
    monkeypatch.setattr(sys, "argv", ["plot_12", "--bal", str(tmp_path / "problem.txt")])
    names = runpy.run_path(str(EXAMPLE), run_name="__main__")
    pyplot.close("all")
    said = capsys.readouterr().out
    assert "6 cameras, 60 points" in said and "of the wrong observations were trimmed" in said
    assert names["trimmed"].status.converged
