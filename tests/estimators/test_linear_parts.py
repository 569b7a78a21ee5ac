"""What the linear models are composed of: data, the solver, and how little they share by inheritance."""

from __future__ import annotations

from inspect import signature
from math import inf
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from trimlearn import TrimmedGLM, TrimmedLinearRegression, TrimmedLogisticRegression
from trimlearn.estimators.inputs import filled_numbers
from trimlearn.estimators.linear.examples import Distinct, Examples, check_examples
from trimlearn.estimators.linear.problems import PENALTIES, Solver, make_penalty
from trimlearn.losses import LeastSquares, Logistic
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex

MODELS = [TrimmedLinearRegression, TrimmedGLM, TrimmedLogisticRegression]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("model", MODELS)
def test_nobody_overrides_a_concrete_method(model: type) -> None:
    bases = [base for base in model.__mro__[1:] if base.__module__.startswith("trimlearn")]
    for base in bases:
        concrete = {name for name, value in vars(base).items() if callable(value) and not name.startswith("__")}
        assert not set(vars(model)) & (concrete - getattr(base, "__abstractmethods__", frozenset()))


@pytest.mark.parametrize("model", MODELS)
def test_parameters_come_in_one_order(model: type) -> None:
    parameters = signature(model).parameters
    order = [name for name in parameters if name != "loss"]  # which comes first, so that TrimmedGLM("poisson") is one
    assert order[0] == "contamination"
    assert parameters["random_state"].default is None
    assert order[-5:] == ["max_passes", "tol", "random_state", "warm_start", "verbose"]


def test_a_seed_makes_a_fit_reproducible(rng: np.random.Generator) -> None:
    X = rng.standard_normal((90, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.standard_normal(90)
    first, second = (TrimmedLinearRegression(random_state=7).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    unseeded = TrimmedLinearRegression().fit(X, y)
    np.testing.assert_allclose(unseeded.coef_, first.coef_, rtol=1e-6)


def test_distinct_rows_and_back(rng: np.random.Generator) -> None:
    X = rng.integers(0, 3, (40, 2)).astype(float)
    t, s = rng.integers(0, 2, 40).astype(float), rng.integers(0, 3, 40).astype(float)
    data = Examples(X, t, s)
    assert (data.n, data.S, data.large) == (40, s.sum(), False)
    distinct = Distinct.of(data)
    assert len(np.unique(np.column_stack([distinct.rows.X, distinct.rows.t]), axis=0)) == distinct.rows.n
    assert distinct.rows.S == data.S
    assert distinct.gone.n == np.count_nonzero(s == 0)
    targets, numbered = distinct.spread((distinct.rows.t, distinct.gone.t), (np.arange(distinct.rows.n), -1))
    np.testing.assert_array_equal(targets, t)
    np.testing.assert_array_equal(numbered < 0, s == 0)


def test_large_data_stay_as_they_are() -> None:
    X = sp.csr_array((2_000_000, 1))
    data = Examples(X, np.zeros(2_000_000))
    distinct = Distinct.of(data)
    assert data.large and distinct.rows is data and distinct.where is None and distinct.gone.n == 0
    (same,) = distinct.spread((data.t, 0.0))
    assert same is data.t


def test_small_sparse_data_are_written_out_and_numbers_follow_X() -> None:
    X = sp.csr_array(np.eye(4, dtype=np.float32))
    data = check_examples(TrimmedLinearRegression(), X, [1, 2, 3, 4], None, reset=True, y_numeric=True)
    assert isinstance(data.X, np.ndarray) and data.X.dtype == data.t.dtype == np.float32


def problem(n: int, p: int, loss: Any = LeastSquares, h: float | None = None) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return Problem(loss(X, (X[:, 0] > 0).astype(float)), AllOnes() if h is None else CappedSimplex(h), Ridge(0.1))


@pytest.mark.parametrize(
    ("solver", "n", "p", "limits"),
    [
        (Solver("", None, None, None, 0), 100, 5, (2000, 1e-9)),
        (Solver("", None, None, None, 0), 100, 400, (1000, 1e-5)),
        (Solver("", None, None, None, 0), 3000, 400, (200, 1e-3)),
        (Solver("", None, None, None, 0, enough=20), 3000, 400, (20, 1e-3)),
        (Solver("", None, None, None, 0, most=300), 100, 5, (300, 1e-9)),
        (Solver("", None, 7, 0.5, 0, most=3), 100, 5, (7, 0.5)),
    ],
)
def test_limits_follow_the_size_of_the_data(
    solver: Solver, n: int, p: int, limits: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watched(*given: Any, max_passes: float, tol: float, **options: Any) -> Any:
        seen.append((max_passes, tol))
        return solve(*given, max_passes=1, tol=1.0, **options)

    monkeypatch.setattr("trimlearn.estimators.linear.problems.solve", watched)
    solver._solve(problem(n, p), "continuation")
    assert seen == [limits]


@pytest.mark.parametrize("loss", [LeastSquares, Logistic])
def test_a_refit_is_the_minimum(loss: Any) -> None:
    given = problem(60, 3, loss)
    x = Solver("", None, None, None, 0).refit(given, given.loss.start())
    least = given.objective(np.ones(60), x)
    assert all(given.objective(np.ones(60), x + step) > least for step in 1e-3 * np.vstack([np.eye(3), -np.eye(3)]))


def test_the_best_start_wins() -> None:
    given = problem(60, 3, h=40.0)
    solver = Solver("", None, None, None, 0)
    starts = [np.zeros(3), np.full(3, 50.0)]
    both = solver.trimmed(given, 40.0, starts)
    assert both.objective == min(solver.trimmed(given, 40.0, [start]).objective for start in starts) < inf


@pytest.mark.parametrize("name", PENALTIES)
def test_penalties_are_scaled_as_a_whole(name: str) -> None:
    x = np.array([0.3, -2.0, 0.0, 1.0])
    whole, half = (make_penalty(name, 0.7, 0.4, scale).value(x) for scale in (1.0, 0.5))
    assert half == pytest.approx(whole / 2)


def test_gaps_are_filled_with_medians() -> None:
    X = np.array([[1.0, np.nan, np.inf], [3.0, np.nan, 2.0], [np.nan, np.nan, 4.0]])
    np.testing.assert_array_equal(filled_numbers(X), [[1.0, 0.0, 3.0], [3.0, 0.0, 2.0], [2.0, 0.0, 4.0]])
    assert filled_numbers(np.array([["a"]])) is None
