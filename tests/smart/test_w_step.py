"""What a w-step notes about (w, x): measures that stay finite on an exact fit, and when w lies in r1 for good."""

from __future__ import annotations

import numpy as np
import pytest

from trimlearn import Problem
from trimlearn.engines import LocalEngine
from trimlearn.losses import LeastSquares
from trimlearn.smart import svrg
from trimlearn.smart.method import Reweighed, State
from trimlearn.smart.w_step import end_continuation, least, note, reweigh
from trimlearn.weights import CappedSimplex

V = np.arange(1.0, 7.0)[:, None]


def begun(t: np.ndarray) -> tuple[LocalEngine, State]:
    problem = Problem(LeastSquares(V, t), CappedSimplex(4.0))
    engine = LocalEngine(problem)
    return engine, svrg(b=2, finish=False).bind(problem, 0).init(engine, np.ones(1))


def test_w_lies_in_r1_once_the_continuation_has_come_to_its_end() -> None:
    engine, state = begun(V[:, 0] + 1)
    state.since, engine.r1 = None, engine.problem.r1.at_h(5.0)
    end_continuation(engine, state)
    assert state.since is None
    engine.r1, state.k = engine.problem.r1, 7
    end_continuation(engine, state)
    assert state.since == 7


def test_on_an_exact_fit_stationarity_is_still_a_number() -> None:
    engine, state = begun(V[:, 0] + 1)
    record = note(engine, state, Reweighed(0.0, 0.0, 0.0), residual=0.0, fall=0.0)
    assert record.objective == 0.0 and least(state) > 0
    assert record.stationarity_w == 0.0 and record.decrease == 0.0 and record.stationarity_x == 0.0


def test_a_fit_counts_as_exact_where_its_residuals_are_rounding_and_not_where_their_squares_are() -> None:
    _, state = begun(V[:, 0] + 1)
    state.initial_objective = 1.0
    assert least(state) < 1e-12**2


def test_a_gradient_as_small_as_rounding_makes_it_is_zero() -> None:
    """Against the very first residual, where the first at the target h is rounding itself and F is 0."""
    engine, state = begun(V[:, 0] + 1)
    state.initial_residual, state.first_residual, state.since = 100.0, 1e-13, 0
    record = note(engine, state, Reweighed(0.0, 0.0, 0.0), residual=1e-13)
    assert record.stationarity_x == pytest.approx(1e-15 / np.finfo(float).eps ** 0.5)


@pytest.mark.parametrize("s", [None, np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])], ids=["", "weighted"])
def test_the_residual_of_w_is_that_of_the_paper(s: np.ndarray | None) -> None:
    """‖w⁺ − prox_{τ r1}(w⁺ − τ/S · f)‖/τ in the norm of the sample weights."""
    problem = Problem(LeastSquares(V, np.zeros(6)), CappedSimplex(4.0), None, s)
    c = np.ones(6) if s is None else s
    w, f, tau = np.full(6, 4.0 / c.sum()), problem.loss.values(np.ones(1)), 0.3
    new, found = reweigh(problem, problem.r1, w, f, tau)
    again = problem.r1.prox(new - tau / c.sum() * f, problem.s)
    assert found.residual == pytest.approx(np.sqrt(np.sum(c * (new - again) ** 2)) / tau)
    assert found.residual > 0 and problem.r1.contain(new, problem.s)
