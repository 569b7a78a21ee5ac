"""Alternating minimisation against FAST-LTS, FAST-TLE and sparse LTS as their papers print them; its inner solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import lsq_linear, minimize, nnls

from trimlearn import Problem, Status, solve
from trimlearn._utils.arrays import to_numpy
from trimlearn.engines import LocalEngine
from trimlearn.losses import Gamma, Huber, LeastSquares, Logistic, Loss, Poisson, SmoothL1, Softmax, StudentT, Subspace
from trimlearn.losses.newton_system import DenseSystem
from trimlearn.regularizers import (
    L0,
    L1,
    MCP,
    SCAD,
    Box,
    ElasticNet,
    GroupL2,
    NonNegative,
    Regularizer,
    Ridge,
    Simplex,
    Sphere,
    Stiefel,
    Zero,
)
from trimlearn.smart import alternating
from trimlearn.smart.inner import fista, lbfgs, newton_decrease
from trimlearn.smart.inner.newton import _split, newton
from trimlearn.smart.metrics import first_step
from trimlearn.weights import AllOnes, CappedSimplex

N, P = 90, 4
RNG = np.random.default_rng(12)
V = RNG.standard_normal((N, P))
BETA = np.array([1.0, -2.0, 0.0, 0.5])
T = V @ BETA + 0.5 * RNG.standard_normal(N)
T[:15] += 10
LABELS = (V @ BETA + RNG.logistic(size=N) > 0).astype(float)
COUNTS = RNG.poisson(np.exp(0.5 * V @ BETA)).astype(float)
AMOUNTS = RNG.gamma(2.0, np.exp(0.3 * V @ BETA))
H = 70

LOSSES: dict[str, Callable[[], Loss]] = {
    "least squares": lambda: LeastSquares(V, T),
    "huber": lambda: Huber(V, T),
    "student": lambda: StudentT(V, T),
    "smooth l1": lambda: SmoothL1(V, T, eps=0.1),
    "logistic": lambda: Logistic(V, LABELS),
    "softmax": lambda: Softmax(V, LABELS.astype(int)),
    "poisson": lambda: Poisson(V, COUNTS),
    "gamma": lambda: Gamma(V, AMOUNTS),
}
CONVEX: dict[str, Regularizer] = {
    "zero": Zero(),
    "ridge": Ridge(0.05),
    "l1": L1(0.05),
    "elastic net": ElasticNet(0.1, 0.4),
    "box": Box(-0.5, 0.7),
    "nonnegative": NonNegative(),
}
Inner = Callable[[LocalEngine, Any, float, Any, int], Any]
INNERS: dict[str, Inner] = {
    "newton": lambda *known: newton(*known)[0],
    "lbfgs": lambda *known: lbfgs(*known)[0],
    "accelerated": lambda engine, x, f, g, n: fista(engine, x, f, g, 1.0, n)[0],
}


def begin(loss: Loss, r2: Regularizer, w: np.ndarray | None = None, x: Any = None) -> tuple[Any, ...]:
    """An engine, a point, and the mean loss and its gradient there."""
    problem = Problem(loss, CappedSimplex(H) if w is not None else AllOnes(), r2)
    engine = LocalEngine(problem)
    if w is not None:
        engine.set_weights(w)
    x = problem.r2.feasible(loss.start() if x is None else x)
    return engine, x, *engine.value_gradient(x)


def F(engine: LocalEngine, x: Any) -> float:
    return engine.problem.objective(engine.weights, x)


def subgradient_gap(engine: LocalEngine, x: np.ndarray) -> float:
    """‖x − prox(x − ∇)‖: zero at a minimiser of a convex problem."""
    _, gradient = engine.value_gradient(x)
    return float(np.max(np.abs(x - engine.problem.r2.prox(x - gradient, 1.0)[0])))


# ---- the older systems ----


def fast_lts(x: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
    """C-steps: the h smallest squared residuals, and the least-squares fit to them."""
    while True:
        kept = np.argsort((T - V @ x) ** 2, kind="stable")[:H]
        yield float(np.sum((T - V @ x)[kept] ** 2)) / (2 * N), x
        x = np.linalg.lstsq(V[kept], T[kept], rcond=None)[0]


def test_least_squares_is_fast_lts() -> None:
    x0 = np.zeros(P)
    found = solve(Problem(LeastSquares(V, T), CappedSimplex(H)), alternating(), x0=x0, tol=0.0, max_passes=30)
    assert len(found.history) >= 8
    for record, (value, _) in zip(found.history, fast_lts(x0), strict=False):
        assert record.objective == pytest.approx(value, rel=1e-10)


def test_trimmed_pca_is_alternating_eigenvectors() -> None:
    A = RNG.standard_normal((N, 6)) * np.arange(1, 7)
    A[:10] *= 5
    problem = Problem(Subspace(A, 2), CappedSimplex(H), Stiefel())
    found = solve(problem, alternating(), start=None, tol=0.0, max_passes=12)
    U, w = problem.loss.start(), np.full(N, H / N)
    for i, record in enumerate(found.history):
        f = 0.5 * (np.sum(A * A, axis=1) - np.sum((A @ U) ** 2, axis=1))
        if i:
            w = np.zeros(N)
            w[np.argsort(f)[:H]] = 1.0
        assert record.objective == pytest.approx(float(np.mean(w * f)), rel=1e-9)
        U = eigh(A.T @ (A * w[:, None]))[1][:, -2:]


@pytest.mark.parametrize("inner", ["newton", "lbfgs"])
@pytest.mark.parametrize("name", ["logistic", "poisson", "gamma", "softmax"])
def test_a_glm_is_fast_tle(name: str, inner: str) -> None:
    """The h best-explained rows, and the maximum likelihood of these, in turn: each round as scipy finds it."""
    loss = LOSSES[name]()
    problem = Problem(loss, CappedSimplex(H), Ridge(0.05))
    start = loss.start()
    method = alternating(iterations=100, inner=inner)
    found = solve(problem, method, x0=start, tol=1e-9, max_passes=2000)
    x = start
    for record in found.history[:4]:
        w = problem.r1.minimise(loss.values(x))
        assert record.objective == pytest.approx(problem.objective(w, x), rel=1e-6)

        def objective(flat: np.ndarray, w: np.ndarray = w) -> tuple[float, np.ndarray]:
            point = flat.reshape(start.shape)
            f, g = loss.value_gradient(point, w / N)
            return f + 0.025 * float(np.sum(point**2)), (g + 0.05 * point).ravel()

        exact = minimize(objective, x.ravel(), jac=True, method="BFGS", options={"gtol": 1e-10})
        x = exact.x.reshape(start.shape)


def test_least_squares_with_l1_is_sparse_lts() -> None:
    """Alfons, Croux and Gelper: at the end the lasso's optimality conditions hold on the h best rows."""
    alpha = 0.05
    for inner in ("newton", "proximal"):
        problem = Problem(LeastSquares(V, T), CappedSimplex(H), L1(alpha))
        found = solve(problem, alternating(200, inner), tol=1e-6, max_passes=3000)
        kept = found.w == 1
        assert set(np.argsort(found.losses)[:H]) == set(np.flatnonzero(kept))
        gradient = V[kept].T @ (V[kept] @ found.x - T[kept]) / N
        active = found.x != 0
        np.testing.assert_allclose(gradient[active], -alpha * np.sign(found.x[active]), atol=1e-6)
        assert np.all(np.abs(gradient[~active]) <= alpha + 1e-6)
        assert not np.all(active)


@pytest.mark.parametrize("inner", ["newton", "lbfgs", "proximal"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_objective_never_rises_once_h_is_reached(name: str, inner: str) -> None:
    problem = Problem(LOSSES[name](), CappedSimplex(H), Ridge(0.01))
    found = solve(problem, alternating(inner=inner), max_passes=150)
    values = found.trace("objective")[found.trace("h") == H]
    assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1]))
    assert found.passes <= 151
    if inner != "proximal":  # of slow convergence
        assert found.status is Status.CONVERGED


def test_what_is_left_for_other_weights_is_no_certificate() -> None:
    """x is the best for the w that it was fitted to. Where the w-step after it has changed w, nothing is known."""
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((60, 2)), np.append(rng.standard_normal(40), 20 + rng.standard_normal(20))
    found = solve(Problem(LeastSquares(X, t), CappedSimplex(35)), alternating(), start=None, tol=0.0, max_passes=20)
    _, *rounds, _ = found.history
    changed = np.array([record.stationarity_w > 0 for record in rounds])
    assert 0 < changed.sum() < len(rounds)
    np.testing.assert_array_equal(np.isnan([record.decrease for record in rounds]), changed)


@pytest.mark.parametrize("iterations", [1, 3])
def test_few_inner_iterations_reach_the_same_kind_of_point(iterations: int) -> None:
    problem = Problem(Logistic(V, LABELS), CappedSimplex(H), Ridge(0.05))
    found = solve(problem, alternating(iterations, "lbfgs"), max_passes=400)
    assert found.status is Status.CONVERGED
    kept = problem.r1.minimise(problem.loss.values(found.x))
    np.testing.assert_array_equal(found.w, kept)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (alternating(0), "iterations must be"),
        (alternating(-1), "iterations must be"),
        (alternating(2.5), "iterations must be"),  # type: ignore[arg-type]
        (alternating(True), "iterations must be"),
        (alternating(inner="bfgs"), "inner must be"),
        (alternating(inner="lbfgs"), "inner='lbfgs' needs a smooth r2"),
    ],
    ids=str,
)
def test_what_cannot_be_right_is_refused(method: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(Problem(LeastSquares(V, T), CappedSimplex(H), L1(0.1)), method)


# ---- the inner solvers ----


CASES = [
    (name, r2, inner)
    for inner in INNERS
    for name in (LOSSES if inner == "newton" else ("least squares", "logistic", "poisson"))
    for r2 in (CONVEX if inner != "lbfgs" else ("zero", "ridge"))
]


@pytest.mark.parametrize(("name", "r2", "inner"), CASES)
def test_an_inner_solver_minimises(name: str, r2: str, inner: str) -> None:
    engine, x0, f, g = begin(LOSSES[name](), CONVEX[r2])
    x = INNERS[inner](engine, x0, f, g, 200)
    assert F(engine, x) <= F(engine, x0)
    many = name == "softmax" and not CONVEX[r2].smooth  # minimisers, along which a step is free
    assert subgradient_gap(engine, x) < (1e-4 if many else 1e-5 if inner == "accelerated" else 1e-6)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("least squares", "softmax")])
@pytest.mark.parametrize("r2", ["ridge", "l1"])
def test_newton_takes_few_steps(name: str, r2: str) -> None:
    robust = name in ("huber", "student", "smooth l1")  # there its Hessian is that of a parabola above: linear rate
    engine, x0, f, g = begin(LOSSES[name](), CONVEX[r2])
    before = engine.passes
    x, _ = newton(engine, x0, f, g, 100)
    assert subgradient_gap(engine, x) < 1e-6
    assert engine.passes - before <= (150 if robust else 30)


@pytest.mark.parametrize("inner", ["newton", "accelerated"])
def test_nonnegative_least_squares(inner: str) -> None:
    w = np.append(np.zeros(N - H), np.ones(H))
    engine, x0, f, g = begin(LeastSquares(V, T), NonNegative(), w)
    x = INNERS[inner](engine, x0, f, g, 300)
    np.testing.assert_allclose(x, nnls(V[-H:], T[-H:])[0], atol=1e-6)


@pytest.mark.parametrize("inner", ["newton", "accelerated"])
def test_least_squares_in_a_box(inner: str) -> None:
    engine, x0, f, g = begin(LeastSquares(V, T), Box(-0.5, 0.7))
    x = INNERS[inner](engine, x0, f, g, 300)
    np.testing.assert_allclose(x, lsq_linear(V, T, (-0.5, 0.7), tol=1e-12).x, atol=5e-6)


NONCONVEX: dict[str, Regularizer] = {
    "l0": L0(0.05),
    "l0 ball": L0(k=2),
    "scad": SCAD(0.2),
    "mcp": MCP(0.2),
    "sphere": Sphere(2.0),
}
COUPLED: dict[str, Regularizer] = {"simplex": Simplex(), "groups": GroupL2(0.1, groups=[0, 0, 1, 1])}


@pytest.mark.parametrize("inner", ["newton", "accelerated"])
@pytest.mark.parametrize("r2", {**NONCONVEX, **COUPLED}.values(), ids={**NONCONVEX, **COUPLED})
@pytest.mark.parametrize("name", ["least squares", "logistic", "huber"])
def test_any_other_r2_decreases_and_stays_inside(name: str, r2: Regularizer, inner: str) -> None:
    engine, x0, f, g = begin(LOSSES[name](), r2)
    x = INNERS[inner](engine, x0, f, g, 50)
    assert np.isfinite(F(engine, x))
    assert F(engine, x) <= F(engine, x0) * (1 + 1e-11)
    again = INNERS[inner](engine, x, *engine.value_gradient(x), 50)
    assert F(engine, again) <= F(engine, x) * (1 + 1e-11)


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("name", ["poisson", "gamma", "logistic", "student"])
@pytest.mark.parametrize("far", [20.0, -50.0])
def test_an_inner_solver_comes_back_from_far_away(name: str, inner: str, far: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        engine, x0, f, g = begin(LOSSES[name](), Ridge(0.05), x=np.full(P, far))
        x = INNERS[inner](engine, x0, f, g, 200)
        assert np.all(np.isfinite(x))
        assert F(engine, x) < F(engine, x0)


@pytest.mark.parametrize("inner", INNERS)
def test_an_inner_solver_counts_and_keeps_within_its_passes(inner: str) -> None:
    for limit in (4, 9, 15):
        engine, x0, f, g = begin(Logistic(V, LABELS), Ridge(1e-6))
        engine.max_passes = limit
        x = INNERS[inner](engine, x0, f, g, 1000)
        assert engine.passes <= limit + 1
        assert F(engine, x) < F(engine, x0) or engine.passes_left < 2


def test_newton_starts_nothing_it_cannot_finish() -> None:
    """With no passes left not even a Hessian is computed."""
    engine, x0, f, g = begin(Logistic(V, LABELS), Ridge(1e-6))
    engine.max_passes = engine.passes + 1
    before = engine.passes
    x, left = newton(engine, x0, f, g, 20)
    np.testing.assert_array_equal(x, x0)
    assert left == np.inf
    assert engine.passes == before


@pytest.mark.parametrize("inner", INNERS)
def test_rows_of_weight_0_do_not_matter(inner: str) -> None:
    w = np.append(np.zeros(N - H), np.ones(H))
    targets = np.where(w > 0, COUNTS, 1e6)
    engine, x0, f, g = begin(Poisson(V, targets), Ridge(0.05), w)
    x = INNERS[inner](engine, x0, f, g, 300)
    other, x0, f, g = begin(Poisson(V, COUNTS), Ridge(0.05), w)
    np.testing.assert_allclose(x, INNERS[inner](other, x0, f, g, 300), atol=1e-6)


@pytest.mark.parametrize("inner", ["newton", "lbfgs"])
def test_features_of_different_scales(inner: str) -> None:
    scales = np.array([1e-3, 1.0, 1e2, 1e4])
    engine, x0, f, g = begin(Logistic(V * scales, LABELS), Zero())
    x = INNERS[inner](engine, x0, f, g, 1000)
    plain, x0, f, g = begin(Logistic(V, LABELS), Zero())
    expected, _ = newton(plain, x0, f, g, 100)
    np.testing.assert_allclose(x * scales, expected, rtol=1e-6 if inner == "newton" else 0.05)


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("kind", ["float32", "torch"])
def test_arrays_follow_the_data(inner: str, kind: str) -> None:
    data: Any = V.astype(np.float32)
    if kind == "torch":
        data = pytest.importorskip("torch").asarray(data)
    engine, x0, f, g = begin(Logistic(data, LABELS), Ridge(0.05))
    x = INNERS[inner](engine, x0, f, g, 50)
    assert type(x) is type(x0)
    assert x.dtype == data.dtype
    exact, x0, f, g = begin(Logistic(V, LABELS), Ridge(0.05))
    np.testing.assert_allclose(to_numpy(x), newton(exact, x0, f, g, 100)[0], atol=2e-3)


@pytest.mark.parametrize("r2", [L1(0.05), Ridge(0.05)], ids=["l1", "ridge"])
def test_newton_knows_rounding_from_a_rise(r2: Regularizer) -> None:
    """From a minimiser: one Hessian and one trial, whether F then falls or rises in its last digit."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        W = rng.standard_normal((N, P))
        engine, x0, f, g = begin(Logistic(W, (W[:, 0] + rng.logistic(size=N) > 0).astype(float)), r2)
        x, _ = newton(engine, x0, f, g, 100)
        f, g = engine.value_gradient(x)
        before = engine.passes
        again, _ = newton(engine, x, f, g, 100)
        assert engine.passes - before <= 4
        np.testing.assert_allclose(again, x, atol=1e-7)


@pytest.mark.parametrize("r2", [Ridge(0.05), L1(0.02)], ids=["ridge", "l1"])
def test_proximal_gradients_reach_a_small_tolerance(r2: Regularizer) -> None:
    """Where F no longer changes in floating point its gradient still does: the line search must not give up first."""
    found = solve(Problem(Logistic(V, LABELS), AllOnes(), r2), alternating(inner="proximal"), tol=1e-8, max_passes=1000)
    assert found.status is Status.CONVERGED


@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_not_cut_where_values_differ_by_rounding_alone(seed: int) -> None:
    """Next to the minimum of a large F its values are noise: gradients must tell whether 1/γ bounds the curvature."""
    rng = np.random.default_rng(seed)
    W, t = rng.standard_normal((60, 3)), 1e6 * rng.standard_normal(60)
    L = np.linalg.eigvalsh(W.T @ W / 60)[-1]
    engine = LocalEngine(Problem(LeastSquares(W, t), AllOnes(), L1(1e-3)))
    x = np.linalg.lstsq(W, t, rcond=None)[0] * (1 + 1e-12)
    _, _, gamma = fista(engine, x, *engine.value_gradient(x), 1 / L, 20)
    assert gamma >= 0.25 / L


def test_a_step_that_is_too_short_grows() -> None:
    engine, x, f, g = begin(LeastSquares(V, T), L1(1e-3))
    L = np.linalg.eigvalsh(V.T @ V / N)[-1]
    assert fista(engine, x, f, g, 1e-3 / L, 20)[2] >= 0.25 / L


def test_the_first_step_is_1_over_the_curvature_in_the_metric() -> None:
    Q = np.linalg.qr(V)[0] * np.array([1e-3, 1.0, 1e2, 1e4])
    engine, x, *_ = begin(LeastSquares(Q, T), Zero())
    engine.evaluate(x)
    assert first_step(engine, x, N / np.sum(Q * Q, axis=0)) == pytest.approx(1.0)  # M is the Hessian


class Waves(Loss):
    """Losses Σⱼ 1 − cos(xⱼ − tᵢⱼ), which are concave half of the way."""

    def __init__(self, t: np.ndarray) -> None:
        self.t, self.n, self.x_shape, self.like = t, len(t), t.shape[1:], np.zeros(0)

    def values(self, x: Any, rows: Any = None) -> Any:
        return np.sum(1 - np.cos(x - self.t[slice(None) if rows is None else rows]), axis=1)

    def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
        return c @ np.sin(x - self.t[slice(None) if rows is None else rows])

    def lipschitz(self) -> Any:
        return np.ones(self.n)


@pytest.mark.parametrize("r2", [Zero(), Ridge(1e-3)], ids=["zero", "ridge"])
@pytest.mark.parametrize("target", [[2.5], [2.5, 0.5], [2.5, -2.8, 0.1]], ids=len)
def test_newton_is_not_content_where_the_loss_is_concave(target: list[float], r2: Regularizer) -> None:
    """A Hessian that is negative has no minimum to offer: it is no sign that there is nothing left to gain."""
    problem = Problem(Waves(np.tile(target, (10, 1))), AllOnes(), r2)
    engine, x = LocalEngine(problem), np.zeros(len(target))
    engine.evaluate(x)
    f, g = engine.value_gradient(x)
    assert newton_decrease(engine, x, f, g) == inf
    x, left = newton(engine, x, f, g, 100)
    assert left <= 1e-12
    assert np.all(np.cos(x - target) > 0.99)  # at a minimum, if not at the nearest
    found = solve(problem, max_passes=1000)
    assert found.status is Status.CONVERGED
    assert np.all(np.cos(found.x - target) > 0.99)


class Saddle(Loss):
    """Twice the loss 3/2 + (x₁² + x₂²)/2 + 2x₁x₂ + (x₁⁴ + x₂⁴)/4, whose Hessian at 0 has 1 on its diagonal and an
    eigenvalue of −1; least, 1, at ±(1, −1)."""

    n, x_shape, like = 2, (2,), np.zeros(0)

    def values(self, x: Any, rows: Any = None) -> Any:
        return np.full(2 if rows is None else len(rows), 1.5 + 2 * x[0] * x[1] + np.sum(x**2 / 2 + x**4 / 4))

    def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
        return np.sum(c) * (x + 2 * x[::-1] + x**3)


def test_a_model_that_promises_a_rise_says_nothing() -> None:
    problem, x = Problem(Saddle(), AllOnes()), np.array([0.1, -0.12])
    engine = LocalEngine(problem)
    f, g = engine.value_gradient(x)
    assert newton_decrease(engine, x, f, g) == inf
    x, left = newton(engine, x, f, g, 100)
    assert left <= 1e-9 and abs(engine.value_gradient(x)[0] - 1) < 1e-9
    found = solve(problem, x0=np.array([0.1, -0.12]))
    assert found.status is Status.CONVERGED and found.objective < 1.001


def test_backtracking_stays_within_the_passes() -> None:
    engine, x0, f, g = begin(LeastSquares(V * 1e5, T), L1(1e-3))
    engine.max_passes = 6
    fista(engine, x0, f, g, 1.0, 20)  # 1/L is 34 halvings away
    assert engine.passes <= 7


def test_accelerated_never_rises() -> None:
    engine, x, *_ = begin(Logistic(V * [1, 3, 10, 30], LABELS), L1(0.01))
    values, gamma = [inf], 1.0
    for _ in range(30):
        x, _, gamma = fista(engine, x, *engine.value_gradient(x), gamma, 4)
        values.append(F(engine, x))
    assert np.all(np.diff(values[1:]) <= 1e-12)


def test_a_model_is_not_solved_to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Newton step that is far from the end needs three digits: 21,000 proxes made a fit of 10 rows take 4 seconds."""
    proxes: list[int] = []
    real = Regularizer.step

    def counting(self: Any, *arguments: Any) -> Any:
        proxes.append(1)
        return real(self, *arguments)

    monkeypatch.setattr(Regularizer, "step", counting)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 2))
    y = rng.poisson(np.exp(X @ [0.5, -0.5] + 1)).astype(float)
    solve(Problem(Poisson(X, y, intercept=True), CappedSimplex(6), L1(0.5)), start="concentration", tol=1e-9)
    assert 100 < len(proxes) < 10_000


def test_admm_goes_on_where_it_was_when_rho_is_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dual variable is in units of 1/ρ: left as it is when ρ changes, ADMM takes 70 steps here in place of 40."""
    rng = np.random.default_rng(0)
    steps: list[int] = []
    A, r2 = rng.standard_normal((30, 6)), GroupL2(1.0, groups=[0, 0, 0, 1, 1, 1])
    H, g, x = DenseSystem(A.T @ A), A.T @ rng.standard_normal(30), rng.standard_normal(6)
    prox = GroupL2.prox
    monkeypatch.setattr(GroupL2, "prox", lambda *given: (steps.append(1), prox(*given))[1])
    u = _split(H, g, x, r2)
    assert len(steps) <= 50
    step = 1 / np.linalg.eigvalsh(H.matrix())[-1]
    np.testing.assert_allclose(prox(r2, u - step * (g + H.times(u - x)), step)[0], u, rtol=1e-9)
