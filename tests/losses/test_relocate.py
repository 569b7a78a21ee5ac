"""Blocks that fit the wrong ones of their examples: which are doubted, what is tried, and where they end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trimlearn.losses import BlockLoss, Sees, select
from trimlearn.losses.relocate import STEPS, relocated


class Bearings(BlockLoss):
    """Points of a plane, each seen from several sides: where it lies along a direction is one number."""

    def __init__(self, point: Any, angle: Any, seen: Any) -> None:
        self.directions, self.seen = np.column_stack([np.cos(angle), np.sin(angle)]), np.asarray(seen, float)
        super().__init__([(int(np.max(point)) + 1, 2)], [Sees(0, np.asarray(point))])

    def residuals(self, blocks: Any, rows: Any = None) -> Any:
        along = np.sum(select(self.directions, rows) * blocks[0], axis=1)
        return (along - select(self.seen, rows))[:, None]

    def jacobian(self, blocks: Any, rows: Any = None) -> Any:
        return [select(self.directions, rows)[:, None, :]]


def bearings(views: list[int], wrong: dict[int, float], noise: float = 0.0) -> tuple[Bearings, np.ndarray, np.ndarray]:
    """So many views of each point, some of them (by number) off; where they lie, and where all views drag them."""
    rng = np.random.default_rng(0)
    point = np.repeat(np.arange(len(views)), views)
    angle = np.concatenate([np.linspace(0.1, 2.9, count) for count in views])
    truth = rng.normal(size=(len(views), 2)) + 5.0
    seen = np.cos(angle) * truth[point, 0] + np.sin(angle) * truth[point, 1] + noise * rng.normal(size=len(point))
    for row, off in wrong.items():
        seen[row] += off
    loss = Bearings(point, angle, seen)
    D = loss.directions
    dragged = [np.linalg.lstsq(D[point == b], loss.seen[point == b], rcond=None)[0] for b in range(len(views))]
    return loss, truth.ravel(), np.concatenate(dragged)


def tried(subsets: list[tuple[int, int]]) -> int:
    """Residuals evaluated for so many subsets of so many examples each, before they are judged by all of them."""
    return sum((2 * STEPS + 1) * count * size for count, size in subsets)


def test_a_point_that_a_wrong_view_drags_goes_back_and_the_others_stay() -> None:
    loss, truth, x = bearings([5] * 4, {1: 8.0})
    f, w = loss.values(x), np.ones(20)
    w[4] = 0.0  # a right view was trimmed in its place
    found, evaluated = relocated(loss, x, f, w)
    np.testing.assert_allclose(found[:2], truth[:2], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(found[2:], x[2:])  # explained, and not tried
    assert evaluated == tried([(10, 2)]) + 10 * 5


def test_a_point_of_which_a_third_is_trimmed_is_tried_by_all_pairs_of_its_views() -> None:
    loss, _, x = bearings([3, 4, 1, 2], {})
    x[:2] += 0.1  # a third of its views cannot be told from the others by their losses
    w = np.array([1, 1, 0, 1, 1, 1, 0, 0, 0, 1.0])
    evaluated = relocated(loss, x, np.full(10, 0.01), w).evaluated
    # Of four views one is fewer than a third, one point has one view only, and of two views one alone may be right.
    assert evaluated == tried([(3, 2), (2, 1), (1, 2)]) + 3 * 3 + 3 * 2


def test_kept_views_that_fit_badly_by_chance_are_left_alone() -> None:
    loss, _, x = bearings([4, 4], {})
    f = np.where(np.arange(8) == 2, 5.0, 1.0)
    found, evaluated = relocated(loss, x, f, np.ones(8))
    assert evaluated == 0
    np.testing.assert_array_equal(found, x)


def test_where_a_kept_loss_is_infinite_nothing_is_known() -> None:
    loss, _, x = bearings([3], {1: 8.0})
    assert relocated(loss, x, np.array([np.inf, 1.0, 1.0]), np.array([1, 1, 0])).evaluated == 0


def test_views_that_are_no_number_are_those_that_fit_worst() -> None:
    loss, truth, x = bearings([5] * 4, {1: 8.0})
    loss.seen[4] = loss.directions[4] = np.nan
    f = np.where(np.arange(20) == 4, np.nan, loss.values(x))
    found, _ = relocated(loss, x, f, (np.arange(20) != 4).astype(float))
    np.testing.assert_allclose(found[:2], truth[:2], rtol=0, atol=1e-13)


def test_the_order_of_many_views_does_not_matter() -> None:
    """Of 66 pairs 25 are tried: by their losses, not by where they stand."""
    loss, _, x = bearings([12], {1: 8.0}, noise=0.1)
    w = (np.arange(12) < 7).astype(float)
    expected, _ = relocated(loss, x, loss.values(x), w)
    assert np.all(expected != x)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(12)
        moved = Bearings(np.zeros(12, int), np.linspace(0.1, 2.9, 12)[order], loss.seen[order])
        found, _ = relocated(moved, x, moved.values(x), w[order])
        np.testing.assert_allclose(found, expected, atol=1e-12)


class Levels(BlockLoss):
    """One number, measured through a curve; and another, seen once, whose loss may be as large as one likes."""

    def __init__(self, seen: Any, curve: Any) -> None:
        self.seen, self.curve = np.append(np.asarray(seen, float), 0.0), curve
        super().__init__([(2, 1)], [Sees(0, np.append(np.zeros(len(seen), int), 1))])

    def residuals(self, blocks: Any, rows: Any = None) -> Any:
        return self.curve(blocks[0] - select(self.seen, rows)[:, None])


def test_steps_that_rise_are_damped_until_they_fall() -> None:
    """Gauss and Newton's steps on the arc tangent run away from where it is flat."""
    loss = Levels([0.0, 0.0, 0.0, 2.0], np.arctan)
    x = np.array([2.0, 0.0])
    found, _ = relocated(loss, x, loss.values(x), np.array([1, 0, 0, 1, 1]))
    assert abs(found[0]) < 0.08


def test_places_are_judged_by_the_losses_there() -> None:
    """½r² and not r², capped at the largest kept loss; and one that is as good is no better."""
    for seen, at, limit, end in (([0.0, 0.8, -0.8], 0.6, 2.0, 0.0), ([-3.0, 1.0, 2.0], -1.0, 32.0, -1.0)):
        loss, x = Levels(seen, np.array), np.array([at, (2 * limit) ** 0.5])
        w = np.append(np.arange(len(seen)) < len(seen) - 1, 1)
        found, _ = relocated(loss, x, loss.values(x), w)
        assert found[0] == pytest.approx(end, abs=1e-12), seen


def test_a_loss_without_such_blocks_is_left_alone() -> None:
    loss = Levels([0.0, 1.0], np.array)
    loss.sees.append(loss.sees[0])
    assert relocated(loss, np.zeros(2), np.ones(3), np.array([1, 0, 1])).evaluated == 0


def test_a_residual_that_is_no_number_at_the_present_place_stops_nothing() -> None:
    def curve(u: np.ndarray) -> np.ndarray:
        return np.where(u > 5, np.nan, u)

    loss, x = Levels([0.0, 0.1, -6.0], curve), np.array([3.0, 0.0])
    found, _ = relocated(loss, x, loss.values(x), np.array([1, 1, 0, 1]))
    assert abs(found[0]) < 0.2
