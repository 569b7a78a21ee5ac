"""Newton's steps and their quadratic models, one number at a time: damping, rounding, and what ends them."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trimlearn.losses import DenseSystem
from trimlearn.regularizers import L1, GroupL2, Ridge, Zero
from trimlearn.smart.inner.newton import _proximal, _split, newton, newton_decrease


class OneNumber:
    """What Newton's steps ask of an engine, for the loss f of one number with the derivatives g and h."""

    def __init__(self, f: Any, g: Any, h: Any, r2: Any = None) -> None:
        self.f, self.g, self.h = f, g, h
        self.problem, self.passes_left = SimpleNamespace(r2=r2 or Zero()), 100.0
        self.counts, self.dampings, self.asked = SimpleNamespace(prox_r2=0), [0.0], 0

    def newton_system(self, x: np.ndarray) -> Any:
        noted = self.dampings

        class Noted(DenseSystem):  # type: ignore[misc]
            def plus(self, diagonal: Any) -> DenseSystem:
                noted.append(float(diagonal[0] / self.H[0, 0]) if self.H[0, 0] else float(diagonal[0]))
                return DenseSystem(self.H + np.diag(diagonal))

        return Noted(np.array([[self.h(x[0])]]))

    def value_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.asked += 1
        return self.f(x[0]), np.array([self.g(x[0])])

    def start(self, x: float) -> tuple[Any, np.ndarray, float, np.ndarray]:
        return self, np.array([x]), self.f(x), np.array([self.g(x)])


def test_damping_is_raised_a_hundredfold_and_lowered_tenfold() -> None:
    """Gauss and Newton's steps on the arc tangent run away from 2, and come home damped."""
    engine = OneNumber(
        lambda x: np.arctan(x) ** 2 / 2, lambda x: np.arctan(x) / (1 + x * x), lambda x: (1 + x * x) ** -2.0
    )
    x, _ = newton(*engine.start(2.0), 20)
    assert abs(x[0]) < 1e-8
    # Every model adds r2's curvature, which is none; those in between are the dampings.
    assert [d for d in engine.dampings if d][:6] == pytest.approx([1e-2, 1.0, 0.1, 1e-2, 1e-3, 1e-4])


def test_a_step_along_a_straight_line_does_not_depend_on_units() -> None:
    asked = []
    for unit in (1.0, 1e-9):
        engine = OneNumber(lambda x, unit=unit: abs(x) / unit, lambda x, unit=unit: np.sign(x) / unit, lambda x: 0.0)
        x, left = newton(*engine.start(unit), 3)
        assert abs(x[0]) < unit and left == np.inf
        asked.append(engine.asked)
    assert asked[0] == asked[1]


def ridges() -> list[tuple[OneNumber, float]]:
    """Parabolas under a ridge, and where their minima lie: values there differ by rounding alone."""
    found = []
    for a in 1e4 + np.random.default_rng(0).random(100):
        f, g = lambda x, a=a: 1.5 * (x - a) ** 2, lambda x, a=a: 3.0 * (x - a)
        found.append((OneNumber(f, g, lambda x: 3.0, Ridge(1.0)), 0.75 * a))
    return found


def test_what_rounding_makes_of_a_promise_is_still_one() -> None:
    for engine, best in ridges():
        _, x, F, g = engine.start(best * (1 + 1e-12))
        assert newton(engine, x, F, g, 1)[1] < 1e-5  # type: ignore[arg-type]
        assert newton_decrease(engine, x, F + engine.problem.r2.value(x), g) < 1e-5  # type: ignore[arg-type]


def test_where_values_differ_by_rounding_alone_the_model_knows_better() -> None:
    for engine, best in ridges():
        x, _ = newton(*engine.start(best * (1 + 1e-9)), 1)
        assert abs(x[0] - best) <= 1e-14 * best


def lasso(n: int = 12) -> tuple[DenseSystem, np.ndarray]:
    """A matrix of condition 100, and a gradient at 0."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return DenseSystem(Q @ np.diag(np.geomspace(0.1, 10, n)) @ Q.T), 3 * rng.standard_normal(n)


def test_a_model_is_solved_to_three_digits_and_to_all_where_less_would_drown_in_rounding() -> None:
    (H, g), x = lasso(), np.zeros(12)
    best = _proximal(H, g, x, L1(1.0), np.inf)
    off = H.H @ best + g  # minus the subgradient there
    np.testing.assert_allclose(off[best != 0], -np.sign(best[best != 0]), atol=1e-9)
    assert np.all(np.abs(off) <= 1 + 1e-9) and np.any(best == 0)
    error = np.linalg.norm(_proximal(H, g, x, L1(1.0), 0.0) - best) / np.linalg.norm(best)
    assert 1e-12 < error < 2e-3


@pytest.mark.parametrize(("solve", "r2"), [(_proximal, L1(1.0)), (_split, GroupL2(1.0, groups=["a", "a"]))])
def test_a_loss_without_curvature_leaves_all_to_r2(solve: Any, r2: Any) -> None:
    rounding = (0.0,) if solve is _proximal else ()
    found = solve(DenseSystem(np.zeros((2, 2))), np.array([0.5, -0.1]), np.array([3.0, 1.0]), r2, *rounding)
    np.testing.assert_array_equal(found, np.zeros(2))


@pytest.mark.parametrize("curvatures", [[0.0, 1.0, 2.0, 3.0], [1e-30, 1.0, 2.0, 3.0], [1e-4, 1.0, 10.0, 1e4]])
def test_r2_that_couples_coordinates_takes_few_steps_whatever_the_curvatures(
    curvatures: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, real = [], GroupL2.prox
    monkeypatch.setattr(GroupL2, "prox", lambda self, *given: taken.append(1) or real(self, *given))
    H, g = np.array(curvatures), np.array([0.1, -3.0, 2.0, -5.0])
    u = _split(DenseSystem(np.diag(H)), g, np.ones(4), GroupL2(1.0, groups=["a", "a", "b", "b"]))
    assert len(taken) < 300
    off = H * (u - 1.0) + g
    for group in (slice(0, 2), slice(2, 4)):
        np.testing.assert_allclose(off[group], -u[group] / np.linalg.norm(u[group]), atol=1e-6)


def test_the_better_of_two_ways_is_taken_where_the_first_does_not_come_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_module("trimlearn.smart.inner.newton"), "SUBPROBLEM", 9)
    H, g = np.array([1.0, 1.1, 1.2, 1.3]), np.array([0.1, -3.0, 2.0, -5.0])
    u = _split(DenseSystem(np.diag(H)), g, np.ones(4), GroupL2(1.0, groups=["a", "a", "b", "b"]))
    off = H * (u - 1.0) + g
    np.testing.assert_allclose(off[:2], -u[:2] / np.linalg.norm(u[:2]), atol=1e-4)
