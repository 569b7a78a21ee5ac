"""A status is a certificate: CONVERGED means that F(w, ·) cannot fall, at any offset, scale, start and budget."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from trimlearn import (
    Problem,
    Solution,
    Status,
    TrimmedGLM,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    solve,
)
from trimlearn.engines import Engine, LocalEngine
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.losses import Huber, LeastSquares, Logistic, Poisson, Softmax, Subspace
from trimlearn.losses.base import Loss, PredictionLoss, weighted
from trimlearn.regularizers import L1, SCAD, Regularizer, Ridge, Stiefel, Zero
from trimlearn.smart import alternating, palm, prox_gradient, saga, sg, svrg
from trimlearn.smart.finish import decrease
from trimlearn.smart.inner import fista, lbfgs
from trimlearn.smart.inner.newton import newton, newton_decrease
from trimlearn.smart.method import Method, Record, State
from trimlearn.weights import AllOnes, CappedSimplex


def least(problem: Problem, found: Solution) -> float:
    """The least F(w, ·) that L-BFGS and Newton's steps find from x, w fixed; for smooth r2 and convex losses."""
    assert isinstance(problem.loss, PredictionLoss)
    c, shape = found.w / problem.n, problem.loss.x_shape

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        x = flat.reshape(shape)
        value, gradient = problem.loss.value_gradient(x, c)
        return value + problem.r2.value(x), (gradient + problem.r2.gradient(x)).ravel()

    engine = LocalEngine(problem)
    engine.set_weights(found.w)
    x, _ = newton(engine, found.x, *engine.value_gradient(found.x), 200)
    start = x.ravel()
    return min(minimize(objective, start, jac=True, method="L-BFGS-B").fun, objective(start)[0], found.objective)


# ---- the cases that were false ----


def test_a_solver_that_ran_out_of_passes_is_not_at_rest() -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(400, 3))
    y = (X @ [1, 2, -1] + rng.normal(size=400) > 0).astype(float)
    y[:40] = 1 - y[:40]
    problem = Problem(Logistic(X, y, intercept=True), CappedSimplex(360))
    best = solve(problem, max_passes=1000, tol=1e-9)
    assert best.status.converged
    for passes in range(5, 60):
        found = solve(problem, max_passes=passes)
        false = found.stationarity_x > 1e-4 or found.objective > 1.001 * best.objective
        assert not (found.status.converged and false), passes
    assert solve(problem, max_passes=100).status.converged  # and what is at rest is said to be


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e7])
@pytest.mark.parametrize("method", [svrg(), svrg(finish=False), svrg(step=1e-3), alternating()], ids=range(4))
def test_an_offset_does_not_look_like_convergence(offset: float, method: Method) -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2000, 8))
    t = Z @ rng.normal(size=8) + 0.5 * rng.normal(size=2000)
    t[:400] += 15
    problem = Problem(LeastSquares(Z + offset, t, intercept=True), CappedSimplex(1500.0))
    found = solve(problem, method)
    x = problem.loss.minimiser(found.w / 2000, problem.r2, found.x)
    if found.status.converged:
        assert found.objective <= 1.001 * problem.objective(found.w, x)
    assert found.status.converged == method.automatic


@pytest.mark.parametrize("step", [1e-3, 1e-8, 1e-12, 1e-15])
def test_nor_does_it_to_a_step_given_by_hand(step: float) -> None:
    """Plain Algorithm 1 on data with an offset: the residual falls ten thousandfold along one direction alone."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 4)) + 1e5
    t = Z[:, 0] - 1e5 + 0.1 * rng.normal(size=500)
    problem = Problem(LeastSquares(Z, t, intercept=True), CappedSimplex(400.0))
    found = solve(problem, svrg(step=step), max_passes=60)
    x = problem.loss.minimiser(found.w / 500, problem.r2, found.x)
    assert not found.status.converged or found.objective <= 1.001 * problem.objective(found.w, x)


@pytest.mark.parametrize("seed", range(6))
def test_diverged_is_never_overridden(seed: int) -> None:
    rng = np.random.default_rng(0)
    X = 3 * rng.standard_normal((500, 5))
    y = rng.poisson(np.exp(X @ np.ones(5) * 0.3))
    problem = Problem(Poisson(X, y, intercept=True), CappedSimplex(400.0), Ridge(1e-3))
    found = solve(problem, svrg(step=100.0), seed=seed, max_passes=20)
    assert found.status is Status.DIVERGED
    assert not found.status.converged


@pytest.mark.parametrize("inner", ["lbfgs", "proximal"])
def test_a_weaker_solver_that_gave_up_has_not_ended(inner: str) -> None:
    """Where first-order steps along a valley hardly fall any more, Newton's steps would."""
    rng = np.random.default_rng(165)
    Z = rng.standard_normal((60, 3))
    y = (Z @ rng.standard_normal(3) + 0.5 + rng.logistic(size=60) > 0).astype(float)
    problem = Problem(Logistic(Z + 1e3, y), AllOnes(), Ridge(1e-6))
    found = solve(problem, alternating(4, inner))
    assert not found.status.converged or found.objective <= 1.001 * least(problem, found)


class Fractions(Loss):
    """Losses Σⱼ tᵢⱼ/xⱼ − 1 + log(xⱼ/tᵢⱼ), infinite unless x > 0, with gradients that are finite all the same."""

    def __init__(self, t: np.ndarray, start: float) -> None:
        self.t, self.begin = t, start
        self.n, self.x_shape, self.like = len(t), t.shape[1:], np.zeros(0)

    def start(self) -> Any:
        return np.full(self.x_shape, self.begin)

    def values(self, x: Any, rows: Any = None) -> Any:
        t = self.t[slice(None) if rows is None else rows]
        return np.where(np.all(x > 0), np.sum(t / x - 1 + np.log(x / t), axis=1), inf)

    def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
        t = self.t[slice(None) if rows is None else rows]
        return weighted((x - t) / x**2, c).sum(axis=0)


@pytest.mark.parametrize(("spread", "ends"), [(0.3, True), (1.0, False)])
def test_steps_out_of_the_domain_are_no_end(spread: float, ends: bool) -> None:
    """L-BFGS, of more parameters than Newton's steps are for: a line search comes back, or is known to have failed."""
    rng = np.random.default_rng(2)
    t = np.exp(spread * rng.standard_normal(1001)) * rng.uniform(0.5, 1.5, (3, 1001))
    problem = Problem(Fractions(t, float(np.exp(spread * rng.standard_normal()))), AllOnes())
    with np.errstate(all="ignore"):
        found = solve(problem)
    best = problem.objective(np.ones(3), t.mean(axis=0))
    assert found.status.converged == ends
    assert found.objective <= (1.0001 if ends else 4) * best


# ---- random problems ----


@dataclass(frozen=True)
class Random:
    """A problem whose scales, offsets, correlation, size, penalty and start are drawn."""

    seed: int

    def problem(self) -> tuple[Problem, Any]:
        rng = np.random.default_rng(self.seed)
        n, p = int(rng.choice([12, 60, 300])), int(rng.choice([1, 3, 8]))
        V = rng.standard_normal((n, p)) + rng.choice([0.0, 3.0]) * rng.standard_normal((n, 1))
        V = V * 10.0 ** rng.uniform(-3, 3, p) * rng.choice([0, 1], p, p=[0.1, 0.9]) + rng.choice([0.0, 10.0, 1e4])
        z = (V - V.mean(axis=0)) / (V.std(axis=0) + 1e-12) @ rng.standard_normal(p)
        b = bool(rng.integers(2))
        losses: list[Loss] = [
            LeastSquares(V, z + rng.standard_normal(n) * 10.0 ** rng.integers(-3, 2), intercept=b),
            Huber(V, z + rng.standard_cauchy(n), intercept=b),
            Logistic(V, np.append([0, 1], (z + rng.logistic(size=n) > 0)[2:]), intercept=b),
            Softmax(V, np.append([0, 1, 2], rng.integers(0, 3, n - 3)), intercept=b),
            Poisson(V, rng.poisson(np.exp(np.clip(z, -4, 4))).astype(float), intercept=b),
        ]
        r2 = Ridge(10.0 ** rng.uniform(-6, 0))
        loss = losses[self.seed % len(losses)]
        x0 = None if rng.integers(2) else 10.0 ** rng.uniform(-6, 0) * rng.standard_normal(loss.x_shape)
        return Problem(loss, CappedSimplex(round(rng.uniform(0.6, 1.0) * n)), r2), x0


METHODS: dict[str, Method | None] = {
    "default": None,
    "svrg": svrg(),
    "alone": svrg(finish=False),
    "lbfgs": alternating(inner="lbfgs"),
    "proximal": alternating(inner="proximal"),
    "palm": palm(),
    "by hand": svrg(step=1e-3),
}


@pytest.mark.parametrize("seed", range(30))
def test_converged_means_that_F_cannot_fall(seed: int) -> None:
    """Every method on every problem, in turn with few, some and many passes: each has 10 problems for each of these."""
    problem, x0 = Random(seed).problem()
    for turn, (name, method) in enumerate(METHODS.items()):
        passes = (7, 40, 200)[(seed // 5 + turn) % 3]  # a loss comes back every 5 seeds: it meets all of them
        with np.errstate(all="ignore"):
            found = solve(problem, method, x0=x0, max_passes=passes, seed=seed)
            bound = least(problem, found) if found.status.converged else nan
        if found.status.converged:
            assert isfinite(found.objective), (name, passes)
            assert found.objective - bound <= 1e-3 * abs(bound) + 1e-12, (name, passes)


def test_most_small_problems_do_converge() -> None:
    """A certificate that is never given would be no false one either."""
    found = [solve(Random(seed).problem()[0], svrg(), max_passes=200).status.converged for seed in range(30)]
    assert np.mean(found) > 0.8


# ---- what it is made of ----


def begun(loss: Loss, r2: Regularizer, x: np.ndarray) -> tuple[LocalEngine, float, Any]:
    engine = LocalEngine(Problem(loss, AllOnes(), r2))
    value, gradient = engine.value_gradient(x)
    return engine, value + engine.problem.r2.value(x), gradient


V = np.random.default_rng(5).standard_normal((90, 3))
Y = (V @ [1.0, -1.0, 0.5] + np.random.default_rng(6).logistic(size=90) > 0).astype(float)


@pytest.mark.parametrize("scales", [np.ones(3), np.array([1e-6, 1.0, 1e6])], ids=["plain", "scaled"])
def test_the_decrease_of_newtons_model_is_scale_free(scales: np.ndarray) -> None:
    x = np.array([0.9, -0.8, 0.4]) / scales
    engine, F, gradient = begun(Logistic(V * scales, Y), Zero(), x)
    fall = newton_decrease(engine, x, F, gradient)
    best, _ = newton(engine, x, F, gradient, 50)
    assert fall == pytest.approx(F - engine.problem.objective(np.ones(90), best), rel=0.1)
    before = engine.passes
    newton_decrease(engine, x, F, gradient)
    assert engine.passes - before == 1


def test_inner_solvers_say_what_they_leave() -> None:
    engine, F, gradient = begun(Logistic(V, Y), Ridge(1e-3), np.zeros(3))
    _, left = newton(engine, np.zeros(3), F, gradient, 50)
    assert left <= 1e-12
    _, left = newton(engine, np.zeros(3), F, gradient, 1)
    assert left > 1e-3
    for few in (lbfgs(engine, np.zeros(3), F, gradient, 3), fista(engine, np.zeros(3), F, gradient, 1.0, 3)):
        assert isnan(few[1])  # a quarter of three iterations is none
    engine.max_passes = engine.passes + 2
    assert newton(engine, np.zeros(3), F, gradient, 50)[1] == inf


def test_a_hessian_that_overflows_promises_nothing() -> None:
    engine, F, gradient = begun(Huber(1e160 * V, Y), L1(1e-3), np.zeros(3))
    assert isfinite(F)
    assert np.all(np.isfinite(gradient))
    with np.errstate(over="ignore", invalid="ignore"):
        assert newton_decrease(engine, np.zeros(3), F, gradient) == inf


def test_a_trial_leaves_everything_as_it_is() -> None:
    seen: list[Any] = []
    problem = Problem(Logistic(V, Y, intercept=True), CappedSimplex(80), Ridge(1e-3))
    run, engine = svrg(finish=False).bind(problem, 0), LocalEngine(problem)
    state = run.init(engine, problem.loss.start())
    for _ in range(40):
        run.advance(engine, state)
        if state.record is not None:
            seen = [engine.weights + 0, engine.losses + 0, state.x + 0, state.y_mean + 0]
            assert decrease(engine, state, state.y_mean) == pytest.approx(decrease(engine, state, None), rel=1e-9)
            for before, after in zip(seen, (engine.weights, engine.losses, state.x, state.y_mean), strict=True):
                np.testing.assert_array_equal(before, after)
    assert seen


def test_trials_that_fail_take_a_quarter_of_the_passes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    trials: list[tuple[float, float]] = []

    def never(engine: Engine, state: State, gradient: Any) -> float:
        begin = engine.passes
        decrease(engine, state, gradient)
        trials.append((begin, engine.passes))
        return inf

    monkeypatch.setattr(import_module("trimlearn.solve"), "decrease", never)
    rng = np.random.default_rng(0)
    V = rng.normal(size=(60, 3))
    problem = Problem(Logistic(V, (V[:, 0] > 0).astype(float)), CappedSimplex(50), Ridge(0.1))
    found = solve(problem, prox_gradient(), tol=0.5, max_passes=40)  # a record for every pass
    assert found.status is Status.MAX_PASSES and len(trials) > 2
    for (begin, end), (later, _) in pairwise(trials):
        assert end > begin and later - end >= 3 * (end - begin)


def test_the_decrease_where_there_is_a_closed_form_or_no_convexity() -> None:
    A = np.random.default_rng(0).standard_normal((60, 5)) * [5, 4, 3, 2, 1]
    pca = solve(Problem(Subspace(A, 2), CappedSimplex(50), Stiefel()), svrg())
    assert pca.status.converged
    assert pca.decrease <= 1e-4
    exact = solve(Problem(LeastSquares(V, V @ [1.0, 2.0, 3.0]), CappedSimplex(80)), svrg())  # F = 0
    assert exact.status.converged
    folded = solve(Problem(Logistic(V, Y), CappedSimplex(80), SCAD(0.05)), svrg(), max_passes=300)
    assert not isnan(folded.decrease) or not folded.status.converged


@pytest.mark.parametrize("method", [None, svrg(), saga(), palm(), prox_gradient(), sg(step=1e-3)], ids=range(6))
def test_a_start_next_to_the_optimum_converges(method: Method | None) -> None:
    problem = Problem(Logistic(V, Y, intercept=True), CappedSimplex(80), Ridge(1e-2))
    best = solve(problem, tol=1e-9, max_passes=500)
    found = solve(problem, method, w0=best.w, x0=best.x, max_passes=50)
    assert found.objective <= best.objective * (1 + 1e-9)
    assert found.status.converged or found.stationarity_x > 1e-4


def test_many_parameters_and_few_passes_are_said() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 400)) + 3 * rng.standard_normal((4000, 1))
    problem = Problem(Logistic(X, (X[:, 0] > 0).astype(float)), CappedSimplex(3600), L1(1e-5))
    found = solve(problem, svrg(), max_passes=8)
    assert found.status is Status.UNFINISHED
    assert "parameters" in str(found.status)


# ---- what an estimator says of it ----


def ended(fall: float, n: int, status: Status = Status.UNFINISHED) -> LinearFit:
    """A fit whose F fell by this share in the last quarter of its passes."""
    history = [Record(0, 14.0, 1 + fall, 1.0, 0.0, 1.0, 1.0), Record(1, 20.0, 1.0, 1.0, 0.0, 1.0, 1.0)]
    return LinearFit(np.zeros(400), np.ones(n), 1.0, history, status)


@pytest.mark.parametrize(
    ("model", "n", "fall", "warned"),
    [
        (TrimmedGLM(), 10_000, 0.01, True),
        (TrimmedGLM(), 10_000, 1e-4, False),
        (TrimmedLinearRegression(penalty="l1"), 10_000, 0.01, True),
        (TrimmedLogisticRegression(), 10_000, 0.05, False),  # twenty passes are early on purpose
        (TrimmedLogisticRegression(), 10_000, 0.2, True),
        (TrimmedLogisticRegression(), 10_000, nan, True),
        (TrimmedLogisticRegression(max_passes=20), 10_000, 0.05, True),
        (TrimmedLogisticRegression(), 100, 0.05, True),
    ],
)
def test_no_warning_is_withheld(model: Any, n: int, fall: float, warned: bool) -> None:
    solver = model._solver(seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solver.warn_if_short(ended(fall, n))
        solver.warn_if_short(ended(1.0, n, Status.CONVERGED))
    assert [issubclass(warning.category, ConvergenceWarning) for warning in caught] == [True] * warned
