"""Defaults that need no tuning: curvature probes, step rules, metrics, momentum, and runs that never diverge."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from trimlearn import Problem, Solution, Status, smart, solve
from trimlearn._utils.arrays import to_numpy
from trimlearn.engines import LocalEngine
from trimlearn.losses import (
    Gamma,
    Homography,
    Huber,
    LeastSquares,
    Logistic,
    Loss,
    Poisson,
    SmoothL1,
    Softmax,
    StudentT,
    Subspace,
)
from trimlearn.regularizers import (
    L0,
    L1,
    MCP,
    SCAD,
    Box,
    ElasticNet,
    GroupL2,
    NonNegative,
    Rank,
    Regularizer,
    Ridge,
    Simplex,
    Sphere,
    Stiefel,
    Zero,
)
from trimlearn.smart import alternating, page, palm, prox_gradient, sg, variable_projection
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.draws import Stream
from trimlearn.smart.method import Method, State
from trimlearn.smart.metrics import LBFGS, Diagonal, Euclidean, Metric
from trimlearn.smart.steps import Auto, Decaying, Fixed, Probe, check_step_size, probe_size
from trimlearn.weights import AllOnes, CappedSimplex

# Algorithm 1 by itself: what finishes it has its own tests.
svrg, saga = partial(smart.svrg, finish=False), partial(smart.saga, finish=False)

RNG = np.random.default_rng(21)
N, P = 300, 4
V = np.where(RNG.random((N, P)) < 0.3, 0.0, RNG.standard_normal((N, P)))
BETA = np.array([1.0, -2.0, 0.0, 0.5])
ETA = V @ BETA
T = ETA + 0.5 * RNG.standard_normal(N)
T[:45] += 10
LABELS = (ETA + RNG.logistic(size=N) > 0).astype(float)
CLASSES = np.digitize(ETA, [-1, 1])
COUNTS = RNG.poisson(np.exp(0.5 * ETA)).astype(float)
AMOUNTS = RNG.gamma(2.0, np.exp(0.5 * ETA))
SRC = RNG.standard_normal((N, 2))
DST = SRC @ np.array([[0.9, 0.1], [-0.1, 1.0]]) + 0.2
DST[:40] += 3


def risen(found: Solution) -> float:
    """The largest rise of the objective from one record to the next once h is at its target, relative."""
    values = found.trace("objective")[found.trace("h") == found.history[-1].h]
    return max([(b - a) / abs(a) for a, b in pairwise(values)], default=0.0)


# ---- large problems, as they come ----


def large(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n·p > 10⁶, so that the default is SMART-SVRG; and scales from 10⁻⁴ to 10⁴."""
    rng = np.random.default_rng(seed)
    n, p = 8000, 130
    Z = rng.standard_normal((n, p))
    return Z, 3 * rng.standard_normal(p) / np.sqrt(p), 10 ** rng.uniform(-4, 4, p)


@pytest.mark.parametrize("kind", ["least squares", "logistic", "l1"])
def test_badly_scaled_features_are_no_obstacle(kind: str) -> None:
    Z, beta, scales = large()
    n = len(Z)
    rng = np.random.default_rng(1)
    t = Z @ beta + 0.5 * rng.standard_normal(n)
    t[:1200] += 10
    labels = (Z @ beta + rng.logistic(size=n) > 0).astype(float)
    make: Callable[[np.ndarray, np.ndarray], Problem] = {
        "least squares": lambda V, s: Problem(LeastSquares(V, t), CappedSimplex(6400)),
        "logistic": lambda V, s: Problem(Logistic(V, labels), CappedSimplex(6400), Ridge(1e-2 * s**2)),
        "l1": lambda V, s: Problem(LeastSquares(V, t), CappedSimplex(6400), L1(1e-2 * s)),
    }[kind]
    scaled = solve(make(Z * scales, scales), max_passes=200)
    assert scaled.status is Status.CONVERGED
    standard = make(Z, np.ones_like(scales))
    optimum = solve(standard, alternating(), w0=scaled.w, x0=scaled.x * scales, tol=1e-6, max_passes=500)
    assert scaled.objective <= optimum.objective * (1 + 1e-3)
    np.testing.assert_allclose(scaled.x * scales, optimum.x, atol=0.02)
    if kind != "logistic":
        assert not np.any(scaled.w[:1200])


def test_poisson_with_large_counts() -> None:
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((10_000, 101))
    eta = 6 + Z @ (0.1 * rng.standard_normal(101))
    counts = rng.poisson(np.exp(eta)).astype(float)
    assert counts.max() > 1e4
    problem = Problem(Poisson(Z, counts, intercept=True), AllOnes(), Ridge(1e-3))
    found = solve(problem)
    assert found.status is Status.CONVERGED
    expected = PoissonRegressor(alpha=1e-3, solver="newton-cholesky", tol=1e-8).fit(Z, counts)
    optimum = problem.objective(found.w, np.append(expected.coef_, expected.intercept_))
    assert found.objective == pytest.approx(optimum, rel=1e-4)
    np.testing.assert_allclose(found.x[:-1], expected.coef_, atol=5e-3)
    counts[:1000] *= 20
    trimmed = solve(Problem(Poisson(Z, counts, intercept=True), CappedSimplex(8500), Ridge(1e-3)))
    assert trimmed.status is Status.CONVERGED
    assert not np.any(trimmed.w[:1000])


def test_pca_of_many_rows_finds_the_leading_eigenvectors() -> None:
    rng = np.random.default_rng(3)
    n, p = 20_000, 30
    A = (rng.standard_normal((n, p)) * np.linspace(3, 1, p)) @ np.linalg.qr(rng.standard_normal((p, p)))[0]
    values, vectors = eigh(A.T @ A / n)
    problem = Problem(Subspace(A, 2), AllOnes(), Stiefel())
    for x0 in (None, rng.standard_normal((p, 2))):
        found = solve(problem, svrg(), x0=x0, tol=1e-5)
        assert found.objective == pytest.approx(values[:-2].sum() / 2, rel=1e-6)
        assert np.linalg.norm(vectors[:, -2:].T @ found.x) == pytest.approx(np.sqrt(2), abs=1e-3)
        np.testing.assert_allclose(found.x.T @ found.x, np.eye(2), atol=1e-10)
    A[:2000] = 5 * rng.standard_normal((2000, p))
    trimmed = Problem(Subspace(A, 2), CappedSimplex(17_000), Stiefel())
    assert solve(trimmed, svrg()).objective == pytest.approx(solve(trimmed, alternating()).objective, rel=1e-4)


NONCONVEX: dict[str, Regularizer] = {
    "l0": L0(0.01),
    "l0 ball": L0(k=4),
    "scad": SCAD(0.1),
    "mcp": MCP(0.1),
    "sphere": Sphere(4.0),
}


@pytest.mark.parametrize("r2", NONCONVEX.values(), ids=NONCONVEX)
@pytest.mark.parametrize("method", [svrg, palm])
def test_nonconvex_r2(r2: Regularizer, method: Callable[[], Method]) -> None:
    rng = np.random.default_rng(4)
    n, p = 3000, 30
    W, beta = rng.standard_normal((n, p)), np.append([3.0, -2.0, 1.5, 1.0], np.zeros(p - 4))
    t = W @ beta + 0.5 * rng.standard_normal(n)
    t[:450] += 10
    problem = Problem(LeastSquares(W, t), CappedSimplex(2400), r2)
    found = solve(problem, method())
    assert found.status is Status.CONVERGED
    assert risen(found) <= 1e-12
    assert not np.any(found.w[:450])
    np.testing.assert_allclose(found.x, beta, atol=0.1)
    if not isinstance(r2, Sphere):
        np.testing.assert_array_equal(found.x[4:], 0)


# ---- everything runs ----

Make = Callable[[Any], Problem]
h = 240
PROBLEMS: dict[str, Make] = {
    "least squares": lambda V: Problem(LeastSquares(V, T), CappedSimplex(h), Ridge(1e-2)),
    "outputs": lambda V: Problem(LeastSquares(V, np.column_stack([T, ETA])), CappedSimplex(h), Rank(1)),
    "huber": lambda V: Problem(Huber(V, T), CappedSimplex(h), L1(1e-2)),
    "student": lambda V: Problem(StudentT(V, T), CappedSimplex(h), Zero()),
    "smooth l1": lambda V: Problem(SmoothL1(V, T, eps=0.1), CappedSimplex(h), Box(-1.0, 1.0)),
    "logistic": lambda V: Problem(Logistic(V, LABELS, intercept=True), CappedSimplex(h), Ridge(1e-2)),
    "softmax": lambda V: Problem(Softmax(V, CLASSES), CappedSimplex(h), ElasticNet(1e-2)),
    "poisson": lambda V: Problem(Poisson(V, COUNTS, intercept=True), CappedSimplex(h), L1(1e-2)),
    "gamma": lambda V: Problem(Gamma(V, AMOUNTS), CappedSimplex(h), GroupL2(1e-2, groups=[0, 0, 1, 1])),
    "simplex": lambda V: Problem(LeastSquares(V, T), CappedSimplex(h), Simplex()),
    "nonnegative": lambda V: Problem(LeastSquares(V, T), CappedSimplex(h), NonNegative()),
    "pca": lambda V: Problem(Subspace(V, 2), CappedSimplex(h), Stiefel()),
    "homography": lambda V: Problem(Homography(SRC.astype(V.dtype), DST), CappedSimplex(h), Sphere()),
    "printed": lambda V: Problem(Homography(SRC.astype(V.dtype), DST, form="printed"), CappedSimplex(h), Sphere()),
}
METHODS: dict[str, Callable[[], Method]] = {
    "svrg": svrg,
    "saga": saga,
    "palm": palm,
    "page": page,
    "sg": sg,
    "alternating": alternating,
    "prox_gradient": prox_gradient,
    "variable_projection": variable_projection,
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_loss_runs_under_every_method(name: str, method: Callable[[], Method]) -> None:
    problem = PROBLEMS[name](V.astype(np.float32))
    found = solve(problem, method(), max_passes=8)
    start = problem.objective(problem.r1.start(N), problem.r2.feasible(problem.loss.start()))
    assert found.objective <= start * (1 + 1e-6)
    assert found.x.dtype == found.w.dtype == found.losses.dtype == np.float32
    assert found.x.shape == problem.loss.x_shape
    assert problem.r1.contain(found.w)
    assert found.objective == pytest.approx(problem.objective(found.w, found.x), rel=1e-5)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in ("homography", "printed")])
def test_so_it_does_on_torch_and_csr(name: str) -> None:
    torch = pytest.importorskip("torch")
    expected = solve(PROBLEMS[name](V), svrg(), max_passes=6)
    for data in (torch.asarray(V), sp.csr_array(V)):
        found = solve(PROBLEMS[name](data), svrg(), max_passes=6)
        assert type(found.x) is (torch.Tensor if isinstance(data, torch.Tensor) else np.ndarray)
        assert str(found.x.dtype).endswith("float64")
        np.testing.assert_allclose(to_numpy(found.x), expected.x, atol=1e-6)
        np.testing.assert_allclose(to_numpy(found.w), expected.w, atol=1e-6)


# ---- never diverges ----

FAR: dict[str, Callable[[], Loss]] = {
    "least squares": lambda: LeastSquares(V, T),
    "huber": lambda: Huber(V, T),
    "student": lambda: StudentT(V, T),
    "smooth l1": lambda: SmoothL1(V, T),
    "logistic": lambda: Logistic(V, LABELS),
    "softmax": lambda: Softmax(V, CLASSES),
    "poisson": lambda: Poisson(V, COUNTS),
    "gamma": lambda: Gamma(V, AMOUNTS),
}


@pytest.mark.parametrize("method", [svrg, page, palm, lambda: svrg(metric="lbfgs"), alternating])
@pytest.mark.parametrize("name", FAR)
def test_a_start_far_away_does_not_end_farther_away(name: str, method: Callable[[], Method]) -> None:
    problem = Problem(FAR[name](), CappedSimplex(h), Ridge(1e-3))
    for far in (10.0, -1e6):
        found = solve(problem, method(), x0=np.full(problem.loss.x_shape, far), max_passes=15)
        assert np.all(np.isfinite(found.x))
        assert np.all(np.isfinite(found.trace("objective")))
        assert found.objective <= found.history[0].objective
        assert problem.r1.contain(found.w)
        assert risen(found) <= 1e-12


@pytest.mark.parametrize("far", [40.0, 1e3])
@pytest.mark.parametrize("r2", [Ridge(1e-2), L1(1e-2), Box(-2000.0, 2000.0)], ids=["ridge", "l1", "box"])
@pytest.mark.parametrize("method", [svrg, palm, lambda: svrg(metric="euclidean")], ids=["svrg", "palm", "euclidean"])
def test_a_flat_loss_is_not_taken_for_stationary(method: Callable[[], Method], r2: Regularizer, far: float) -> None:
    """Where a logistic loss saturates it has a gradient and no curvature: γ is huge, and a residual over γ tiny."""
    rng = np.random.default_rng(6)
    W = rng.choice([-1.0, 1.0], (N, 5))  # an odd number of them: their sum is never 0
    labels = (W @ np.array([1.0, -1.0, 1.0, 0.5, 0.0]) + rng.logistic(size=N) > 0).astype(float)
    x0 = np.full(5, far)
    found = solve(Problem(Logistic(W, labels), AllOnes(), r2), method(), x0=x0, max_passes=60)

    def residual(x: np.ndarray) -> float:
        gradient = W.T @ (0.5 + 0.5 * np.tanh(W @ x / 2) - labels) / N
        return float(np.linalg.norm(x - r2.prox(x - gradient, 1.0)[0]))

    assert found.status is not Status.CONVERGED or residual(found.x) <= 1e-2 * residual(x0)


def test_counts_beyond_all_measure_raise_no_error() -> None:
    """Exponentials of 1000: the curvature is 10^150 and the step as small."""
    rng = np.random.default_rng(7)
    W = rng.standard_normal((2000, 6))
    problem = Problem(Poisson(W, rng.poisson(np.exp(W[:, 0])).astype(float)), CappedSimplex(1600), Ridge(1e-3))
    for method in (svrg(), palm(), alternating()):
        found = solve(problem, method, x0=np.full(6, 1e3), max_passes=20)
        assert found.objective <= found.history[0].objective


@pytest.mark.parametrize("name", ["least squares", "huber", "student", "logistic"])
def test_a_start_not_so_far_away_finds_the_same_optimum(name: str) -> None:
    problem = Problem(FAR[name](), AllOnes(), Ridge(1e-3))
    best = solve(problem, alternating(), tol=1e-8, max_passes=1000)
    for seed in range(4):
        x0 = 5 * np.random.default_rng(seed).standard_normal(P)
        found = solve(problem, svrg(), x0=x0, seed=seed)
        assert found.status is Status.CONVERGED
        assert found.objective == pytest.approx(best.objective, rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_every_seed_trims_the_outliers(seed: int) -> None:
    found = solve(Problem(LeastSquares(V, T), CappedSimplex(h)), svrg(), seed=seed, max_passes=200)
    assert found.status is Status.CONVERGED
    assert not np.any(found.w[:45])
    np.testing.assert_allclose(found.x, BETA, atol=0.2)


def test_a_step_taken_back_is_recorded_and_leaves_nothing_behind() -> None:
    """The record of a restore shows the point it went back to, with a shorter step, and is no end of a run."""
    problem = Problem(Logistic(V, LABELS), AllOnes(), Ridge(1e-4))
    found = solve(problem, svrg(momentum=0.99), max_passes=150, tol=0.0)
    restored = [i for i, record in enumerate(found.history) if record.restored]
    assert restored
    kept = [record for record in found.history if not record.restored]
    assert all(b.objective <= a.objective * (1 + 1e-12) for a, b in pairwise(kept))
    for i in restored:
        before = next(record for record in reversed(found.history[:i]) if not record.restored)
        assert found.history[i].objective == pytest.approx(before.objective, rel=1e-12)
        assert found.history[i].gamma < found.history[i - 1].gamma
    assert solve(problem, svrg(momentum=0.99), tol=1e9, max_passes=50).status is Status.CONVERGED


# ---- metrics and momentum ----


@pytest.mark.parametrize("metric", ["euclidean", "diagonal", "lbfgs"])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_every_metric_and_momentum_reaches_the_same_optimum(metric: str, momentum: float) -> None:
    problem = Problem(Logistic(V, LABELS, intercept=True), AllOnes(), Ridge(1e-2))
    expected = LogisticRegression(C=1 / (N * 1e-2), tol=1e-10, max_iter=500).fit(V, LABELS)
    found = solve(problem, svrg(metric=metric, momentum=momentum), tol=1e-6, max_passes=500)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.x, np.append(expected.coef_, expected.intercept_), atol=1e-4)


def correlated() -> Problem:
    """Features whose covariance has eigenvalues from 1 to 10⁻³, off the axes: a diagonal metric does not help."""
    rng = np.random.default_rng(5)
    Q = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    W = rng.standard_normal((3000, 20)) @ (Q * np.geomspace(1, 0.03, 20)) @ Q.T
    return Problem(LeastSquares(W, W @ rng.standard_normal(20) + rng.standard_normal(3000)), AllOnes())


def test_momentum_and_lbfgs_pay_where_features_are_correlated() -> None:
    problem = correlated()
    passes = {}
    for name, method in {
        "plain": svrg(metric="euclidean", momentum=0.0),
        "momentum": svrg(metric="euclidean", momentum=0.9),
        "lbfgs": svrg(metric="lbfgs", momentum=0.0),
    }.items():
        passes[name] = solve(problem, method, max_passes=1000).passes
    assert passes["momentum"] < 0.7 * passes["plain"]
    assert passes["lbfgs"] < passes["plain"]


def test_what_none_means() -> None:
    """auto takes what is exact for r2; any other step is plain Algorithm 1."""
    for r2, metric, momentum in [
        (Zero(), Diagonal, 0.9),
        (Ridge(1.0), Diagonal, 0.9),
        (L1(1.0), Diagonal, 0.9),
        (NonNegative(), Diagonal, 0.9),
        (L0(1.0), Diagonal, 0.0),
        (Sphere(), Euclidean, 0.0),
        (Simplex(), Euclidean, 0.9),
    ]:
        run = svrg().bind(Problem(LeastSquares(V, T), AllOnes(), r2), 0)
        assert isinstance(run.metric, metric)
        assert run.momentum == momentum
        plain = svrg(step=0.1).bind(Problem(LeastSquares(V, T), AllOnes(), r2), 0)
        assert isinstance(plain.metric, Euclidean)
        assert plain.momentum == 0.0


# ---- probes ----


def probing(loss: Loss, x: np.ndarray, metric: Metric) -> tuple[Probe, State, Any, Callable[[np.ndarray], np.ndarray]]:
    """A probe at (w, x) of a trimmed problem, M⁻¹, and the Hessian over the rows that the probe looks at."""
    problem = Problem(loss, CappedSimplex(h))
    engine = LocalEngine(problem)
    w = problem.r1.minimise(loss.values(x))
    engine.set_weights(w)
    engine.evaluate(x)
    state = State(x=x, anchor=x, y_mean=engine.mean_duals(), w_steps=1)
    metric.learn(engine, state, 0.0)
    probe = Probe(engine, state, metric, engine.draws(3, 0, Stream.PROBE), 0.0, inf, state.y_mean)

    def hessian(at: np.ndarray) -> np.ndarray:
        return loss.hessian(at, np.bincount(rows := probe.rows.rows(N), minlength=N) * w / len(rows))

    return probe, state, np.diag(state.metric.inverse) if metric == Diagonal() else np.eye(P), hessian


def test_probe_size() -> None:
    assert [probe_size(n) for n in (1000, 8000, 60_000, 10**6)] == [100, 400, 1533, 10_000]
    assert all(n ** (2 / 3) - 1e-9 <= probe_size(n) <= n for n in range(1, 300))


@pytest.mark.parametrize("metric", [Euclidean(), Diagonal()], ids=["euclidean", "diagonal"])
@pytest.mark.parametrize("name", ["least squares", "logistic", "poisson", "gamma"])
def test_largest_is_the_largest_eigenvalue_in_the_metric(name: str, metric: Metric) -> None:
    probe, state, inverse, hessian = probing(FAR[name](), 0.3 * BETA, metric)
    L, concave = probe.largest()
    root = np.sqrt(inverse)
    expected = np.linalg.eigvalsh(root @ hessian(state.x) @ root)[-1]
    assert L == pytest.approx(expected, rel=0.1)
    assert L <= expected * (1 + 1e-9)
    assert not concave
    for _ in range(10):  # it goes on where it ended
        L, _ = probe.largest()
    assert L == pytest.approx(expected, rel=1e-3)


def test_the_noise_adds_a_share_of_the_trace() -> None:
    traces = []
    for seed in range(100):
        problem = Problem(LeastSquares(V, T), AllOnes())
        engine = LocalEngine(problem)
        x = np.zeros(P)
        engine.evaluate(x)
        levels = []
        for noise in (0.0, 1.0):
            state, draws = State(x=x), engine.draws(seed, 0, Stream.PROBE)
            levels.append(Probe(engine, state, Euclidean(), draws, noise, inf, engine.mean_duals()).largest()[0])
        traces.append(levels[1] - levels[0])
    assert np.mean(traces) == pytest.approx(np.trace(V.T @ V) / N, rel=0.2)


def test_a_concave_loss_is_recognised() -> None:
    A = RNG.standard_normal((N, 5))
    problem = Problem(Subspace(A, 2), CappedSimplex(h), Stiefel())
    engine = LocalEngine(problem)
    state = State(x=problem.loss.start())
    L, concave = Probe(engine, state, Euclidean(), engine.draws(0, 0, Stream.PROBE), 0.0, inf, None).largest()
    assert concave
    assert L > 0


@pytest.mark.parametrize("metric", [Euclidean(), Diagonal()], ids=["euclidean", "diagonal"])
@pytest.mark.parametrize("gamma", [1e-3, 0.1, 2.0])
def test_ahead_is_the_curvature_along_the_step_where_it_ends(metric: Metric, gamma: float) -> None:
    probe, state, inverse, hessian = probing(Poisson(V, COUNTS), 0.3 * BETA, metric)
    direction = inverse @ state.y_mean
    found = probe.ahead(gamma)
    curvature = direction @ hessian(state.x - gamma * direction) @ direction
    assert found == pytest.approx(curvature / (state.y_mean @ direction), rel=1e-8)


@pytest.mark.parametrize("gamma", [1e-250, 1e-170, 1e150])
def test_ahead_survives_any_step(gamma: float) -> None:
    probe, *_ = probing(Poisson(V, COUNTS), 0.3 * BETA, Euclidean())
    with np.errstate(over="ignore", invalid="ignore"):
        assert not np.isnan(probe.ahead(gamma)) or gamma > 1


def test_nothing_to_measure() -> None:
    """Weights of 0, features of 0: a step is found all the same."""
    problem = Problem(LeastSquares(np.zeros((N, 2)), T), CappedSimplex(h))
    for method in (svrg(), saga(), palm(), svrg(metric="euclidean"), svrg(metric="lbfgs"), sg(), None):
        found = solve(problem, method)
        np.testing.assert_array_equal(found.x, 0)
        assert found.status is Status.CONVERGED


# ---- step rules ----


class Stub:
    """A probe of known curvature."""

    def __init__(self, L: float, concave: bool = False, ahead: Callable[[float], float] = lambda gamma: 0.0) -> None:
        self.L, self.concave, self.ahead = L, concave, ahead

    def largest(self) -> tuple[float, bool]:
        return self.L, self.concave

    def reach(self) -> float:
        return inf


def at_w_step(rule: Any, state: State, probe: Stub) -> float:
    gamma: float = rule.at_w_step(state, probe)
    return gamma


def test_auto_takes_one_over_L() -> None:
    state = State(x=np.zeros(2), w_steps=1)
    assert at_w_step(Auto(), state, Stub(4.0)) == 0.25
    state.w_steps = 2
    assert at_w_step(Auto(), state, Stub(8.0)) == 0.125
    assert Auto().guards and not Fixed(0.1).guards and not Decaying().guards


def test_auto_backs_off_and_recovers() -> None:
    rule, state = Auto(), State(x=np.zeros(2), w_steps=5, gamma=0.25)
    rule.back_off(state, overflow=False)
    assert (state.scale, state.gamma) == (0.5, 0.125)
    rule.back_off(state, overflow=True)
    assert (state.scale, state.gamma) == pytest.approx((0.05, 0.0125))
    gammas = [at_w_step(rule, state, Stub(4.0)) for _ in range(60)]
    assert gammas[0] == pytest.approx(0.05 * rule.recovery / 4)
    assert np.all(np.diff(gammas) >= 0)
    assert gammas[-1] == 0.25


def test_a_step_taken_back_at_once_recovers_from_the_second_w_step_on() -> None:
    rule = Auto()
    for w_steps, factor in ((1, 1.0), (2, rule.recovery)):
        state = State(x=np.zeros(2), w_steps=w_steps, scale=0.5)
        assert at_w_step(rule, state, Stub(4.0)) == pytest.approx(0.5 * factor / 4)


def test_auto_grows_where_the_loss_is_concave() -> None:
    rule, state = Auto(), State(x=np.zeros(2), w_steps=5)
    gammas = [at_w_step(rule, state, Stub(1.0, concave=True)) for _ in range(30)]
    assert gammas[0] == 2.0
    assert gammas[-1] == rule.concave
    assert at_w_step(rule, state, Stub(1.0)) == 1.0  # back in a valley: not more than 1/L


def test_auto_shortens_a_step_that_ends_where_it_is_steep() -> None:
    rule, state = Auto(), State(x=np.zeros(2), w_steps=1)
    steep = Stub(1.0, ahead=lambda gamma: np.exp(10 * gamma))
    gamma = at_w_step(rule, state, steep)
    assert gamma < 1.0
    assert steep.ahead(gamma) <= 4 / gamma
    assert not steep.ahead(4 * gamma) <= 4 / (4 * gamma)


@pytest.mark.parametrize(("ahead", "gamma"), [(3.9, 1.0), (4.1, 0.25), (15.9, 0.25), (16.1, 0.0625)])
def test_a_step_is_quartered_while_the_curvature_ahead_exceeds_four_over_gamma(ahead: float, gamma: float) -> None:
    for rule in (Auto(), Decaying()):
        state = State(x=np.zeros(2), w_steps=1)
        assert at_w_step(rule, state, Stub(1.0, ahead=lambda _: ahead)) == gamma


@pytest.mark.parametrize("L", [0.0, nan, inf])
def test_without_curvature_the_last_step_is_kept(L: float) -> None:
    for rule in (Auto(), Decaying()):
        assert at_w_step(rule, State(x=np.zeros(2)), Stub(L)) == 1.0
    assert at_w_step(Auto(), State(x=np.zeros(2), gamma=0.3), Stub(L)) == 0.3


def test_decaying_halves() -> None:
    rule, state = Decaying(0.8, half=5.0), State(x=np.zeros(2))
    state.gamma = at_w_step(rule, state, Stub(123.0))
    assert state.gamma == 0.8
    assert rule.at_x_step(state, 0.0) == 0.8
    assert rule.at_x_step(state, 5.0) == pytest.approx(0.4)
    assert rule.at_x_step(state, 45.0) == pytest.approx(0.08)
    found = solve(Problem(LeastSquares(V, T), CappedSimplex(h)), sg(step=rule), max_passes=40, tol=0.0)
    gammas = found.trace("gamma")
    assert gammas[0] == 0.8
    assert np.all(np.diff(gammas) <= 0)
    assert gammas[-1] < 0.15


def test_fixed_is_fixed() -> None:
    found = solve(Problem(LeastSquares(V, T), CappedSimplex(h)), svrg(step=0.05), max_passes=20, tol=0.0)
    assert set(found.trace("gamma")) == {0.05}


@pytest.mark.parametrize("bad", [0, -1.0, nan, inf, True, "fast", None, [1.0, 2.0]])
def test_a_step_is_a_positive_number(bad: Any) -> None:
    with pytest.raises(ValueError, match="step must be"):
        check_step_size(bad)


def test_lbfgs_forgets_what_was_taken_back() -> None:
    state = State(x=np.zeros(2))
    state.metric.pairs = np.ones((1, 2, 2))
    LBFGS().forget(state)
    g = np.array([1.0, 2.0])
    np.testing.assert_array_equal(LBFGS().apply(state, g), g)


def test_reach_bounds_a_step_where_the_loss_has_saturated_and_nowhere_else() -> None:
    """4f/‖g‖² ≥ 2/L wherever 0 ≤ f is L-smooth; far out, where a logistic loss is flat, it is far below 1/curvature."""
    rng = np.random.default_rng(8)
    W = rng.choice([-1.0, 1.0], (200, 3))  # an odd number of them: their sum is never 0
    problem = Problem(Logistic(W, rng.random(200) < 0.5), AllOnes())
    L = 0.25 * np.linalg.eigvalsh(W.T @ W / 200)[-1]
    for far, saturated in ((0.0, False), (1.0, False), (40.0, True)):
        engine, x = LocalEngine(problem), np.full(3, far)
        value = engine.evaluate(x)
        state = State(x=x, y_mean=engine.mean_duals(), gamma=1.0)
        probe = Probe(engine, state, Euclidean(), engine.draws(0, 0), 0.0, value, state.y_mean)
        assert probe.reach() == pytest.approx(4 * value / np.sum(state.y_mean**2), rel=1e-12)
        assert probe.reach() >= 2 / L
        largest = probe.largest()[0]
        assert (probe.reach() < 1e-3 / max(largest, 1e-300)) == saturated


def test_stationarity_does_not_depend_on_units() -> None:
    """In the diagonal metric the norm is the metric's own: a feature in millimetres counts as one in kilometres."""
    rng = np.random.default_rng(0)
    X, units = rng.standard_normal((200, 3)), np.array([1e-6, 1.0, 1e6])
    t = X @ [1.0, -1.0, 0.5] + rng.standard_normal(200)
    problems = [Problem(Huber(A, t), CappedSimplex(150)) for A in (X, X * units)]
    found = [solve(problem, smart.svrg(finish=False), start=None, max_passes=10) for problem in problems]
    one, other = (solution.trace("stationarity_x") for solution in found)
    assert one[-1] < 0.5
    np.testing.assert_allclose(one, other, rtol=1e-4)


def test_the_size_of_a_probe() -> None:
    """⌈n^(2/3)⌉ rows, but 100 where there are as many: fewer say too little about curvature."""
    assert [probe_size(n) for n in (1, 50, 200, 1000, 1001, 60_000)] == [1, 50, 100, 100, 101, 1533]


def test_no_step_is_longer_than_what_the_loss_is_worth() -> None:
    """Where a logistic loss has saturated it is as flat as where a huge step would end: only its height says that the
    valley lies between."""
    t = (np.arange(40) % 4 == 0).astype(float)
    problem = Problem(Logistic(np.ones((40, 1)), t), AllOnes())
    x = np.array([30.0])
    found = solve(problem, smart.prox_svrg(finish=False), x0=x, max_passes=300)
    value, gradient = problem.loss.value_gradient(x, np.full(40, 1 / 40))
    assert found.history[0].gamma == pytest.approx(4 * value / (gradient @ gradient))
    assert found.x.item() == pytest.approx(-np.log(3), rel=1e-2)


@pytest.mark.parametrize(("x", "factor"), [(50.0, 0.5), (1e200, 0.1)])
def test_a_w_step_that_overflows_shortens_the_step_by_more_than_a_rise(x: float, factor: float) -> None:
    problem = Problem(LeastSquares(np.ones((30, 1)), np.arange(30.0)), CappedSimplex(20))
    engine, run = LocalEngine(problem), smart.svrg(finish=False).bind(problem, 0)
    assert isinstance(run, Algorithm1)
    state = run.init(engine, np.zeros(1))
    gamma, state.x, state.moved = state.gamma, np.array([x]), True
    with np.errstate(over="ignore"):
        run.w_step(engine, state)
    assert state.record is not None and state.record.restored
    assert (state.x.item(), state.scale, state.gamma) == (0.0, factor, factor * gamma)
