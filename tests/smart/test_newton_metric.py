"""The metrics at a single w-step, and Newton's for models with few parameters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trimlearn import Problem, solve
from trimlearn.losses import LeastSquares
from trimlearn.regularizers import L1, Ridge, Zero
from trimlearn.smart import svrg
from trimlearn.smart.method import State
from trimlearn.smart.metrics import Diagonal, NewtonMetric
from trimlearn.weights import AllOnes, CappedSimplex


def test_the_newton_metric_does_not_care_for_units() -> None:
    rng = np.random.default_rng(7)
    V = rng.standard_normal((400, 4))
    V[:, 1] = V[:, 0] + 1e-2 * V[:, 1]  # columns that nearly agree
    t = V @ [1.0, -2.0, 3.0, 0.5] + 0.01 * rng.standard_normal(400)
    t[:80] += 30.0
    scales = np.array([1e-4, 1.0, 1e3, 1e5])
    method = svrg(metric=NewtonMetric(), momentum=0.0)
    plain, scaled = (
        solve(Problem(LeastSquares(V * s, t), CappedSimplex(320)), method, max_passes=200, tol=1e-7)
        for s in (np.ones(4), scales)
    )
    assert plain.status.converged
    assert np.allclose(scaled.x * scales, plain.x, rtol=1e-6)
    assert np.allclose(plain.x, np.linalg.lstsq(V[80:], t[80:], rcond=None)[0], atol=1e-5)


def test_the_newton_metric_leaves_alone_what_does_not_show() -> None:
    V = np.random.default_rng(8).standard_normal((300, 3))
    V[:, 2] = 0.0
    problem = Problem(LeastSquares(V, V @ [1.0, 2.0, 0.0]), AllOnes())
    method = svrg(metric=NewtonMetric(), momentum=0.0, finish=False)
    found = solve(problem, method, x0=np.array([0.0, 0.0, 7.0]), tol=1e-10)
    assert np.allclose(found.x, [1.0, 2.0, 7.0], atol=1e-6)


def test_the_newton_metric_counts_a_ridge_and_refuses_what_is_not_smooth() -> None:
    rng = np.random.default_rng(9)
    V = rng.standard_normal((200, 3))
    t = V @ [1.0, 2.0, 3.0]
    found = solve(
        Problem(LeastSquares(V, t), AllOnes(), Ridge(0.5)), svrg(metric=NewtonMetric(), momentum=0.0), tol=1e-10
    )
    assert np.allclose(found.x, np.linalg.solve(V.T @ V / 200 + 0.5 * np.eye(3), V.T @ t / 200), atol=1e-6)
    with pytest.raises(ValueError, match="smooth"):
        solve(Problem(LeastSquares(V, t), AllOnes(), L1(0.1)), svrg(metric=NewtonMetric()))


def test_the_newton_metric_takes_a_curvature_that_rounding_makes_for_none() -> None:
    H = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])
    engine: Any = SimpleNamespace(problem=SimpleNamespace(r2=Zero()), hessian=lambda x: H)
    state = State(x=np.zeros(2))
    NewtonMetric().learn(engine, state, 0.0)
    np.testing.assert_allclose(NewtonMetric().apply(state, np.array([3.0, 1.0])), [1.0, 1.0], atol=1e-9)


def test_the_diagonal_metric_bounds_moments_that_overflow() -> None:
    """A column of huge entries moves by next to nothing, and the others as ever."""
    moments = np.array([1.0, 4.0, np.inf])
    engine: Any = SimpleNamespace(column_moments=lambda: (1.0, moments, moments))
    state = State(x=np.zeros(3), w_steps=1)
    with np.errstate(invalid="ignore"):  # as `solve` does
        Diagonal().learn(engine, state, 0.0)
    inverse = state.metric.inverse
    assert np.all(np.isfinite(inverse)) and inverse[0] == 4.0 * inverse[1] > 1e100 * inverse[2] > 0
