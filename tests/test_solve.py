"""The driver: what it returns, when it stops, what it records; and whether the answers are right."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import asdict
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet as SkElasticNet
from sklearn.linear_model import GammaRegressor, Lasso, LogisticRegression, PoissonRegressor
from sklearn.linear_model import Ridge as SkRidge

from trimlearn import Checkpoint, Problem, Solution, Status, solve
from trimlearn._utils.arrays import to_numpy
from trimlearn.engines import LocalEngine
from trimlearn.losses import Gamma, LeastSquares, Logistic, Loss, Poisson, Softmax, Subspace
from trimlearn.regularizers import L1, ElasticNet, Regularizer, Ridge, Stiefel, Zero
from trimlearn.smart import (
    alternating,
    page,
    palm,
    prox_gradient,
    prox_saga,
    prox_svrg,
    saga,
    sg,
    svrg,
    variable_projection,
)
from trimlearn.smart.method import Method, Record
from trimlearn.smart.steps import probe_size
from trimlearn.starts import Continuation
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

METHODS: dict[str, Callable[[], Method | None]] = {
    "default": lambda: None,
    "svrg": svrg,
    "svrg-lbfgs": lambda: svrg(metric="lbfgs"),
    "svrg-tau": lambda: svrg(tau=5e3),
    "svrg-theory": lambda: svrg(step="theory", tau="theory"),
    "saga": saga,
    "page": page,
    "palm": palm,
    "palm-coin": lambda: palm(cyclic=False),
    "variable_projection": variable_projection,
    "sg": sg,
    "prox_gradient": prox_gradient,
    "alternating": lambda: alternating(inner="lbfgs"),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def contaminated(n: int = 300, p: int = 4, seed: int = 0, outliers: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, p))
    t = V @ np.arange(1.0, p + 1) + 0.5 * rng.standard_normal(n)
    bad = int(outliers * n)
    t[:bad] += 8 + 4 * rng.random(bad)
    return V, t


V, T = contaminated()
N = len(T)
TRIMMED = Problem(LeastSquares(V, T, intercept=True), CappedSimplex(0.75 * N), Ridge(1e-3))
LOGISTIC = Problem(Logistic(V, T > 1), CappedSimplex(0.8 * N), Ridge(1e-2))


def plain(record: Record) -> dict[str, Any]:
    """A record without the clock."""
    return {name: value for name, value in asdict(record).items() if name != "seconds"}


def same(a: Solution, b: Solution) -> bool:
    """Bit for bit, the clock apart."""
    return (
        np.array_equal(to_numpy(a.x), to_numpy(b.x))
        and np.array_equal(to_numpy(a.w), to_numpy(b.w))
        and repr([*map(plain, a.history)]) == repr([*map(plain, b.history)])
        and a.counts == b.counts
        and a.status is b.status
    )


# ---- what comes back ----


@every_method
def test_a_solution_is_what_it_says(method: Callable[[], Method | None]) -> None:
    problem = LOGISTIC
    found = solve(problem, method(), max_passes=60, seed=3)
    last = found.history[-1]
    assert problem.r1.contain(found.w)
    assert found.objective == pytest.approx(problem.objective(found.w, found.x), rel=1e-12)
    assert (found.objective, found.stationarity_x, found.stationarity_w) == (
        last.objective,
        last.stationarity_x,
        last.stationarity_w,
    )
    np.testing.assert_allclose(found.losses, problem.loss.values(found.x), rtol=1e-12)
    assert found.passes == found.counts.gradients / N == last.passes
    assert found.seconds >= last.seconds >= 0
    assert found.status in Status
    assert found.status.value.endswith(".") and str(found.status) == found.status.value
    measures = found.stationarity_x, found.stationarity_w, found.decrease
    assert found.status.converged == all(measure <= 1e-4 for measure in measures)
    assert isinstance(found.x, np.ndarray) and found.x.dtype == np.float64


@every_method
def test_the_history_is_in_order(method: Callable[[], Method | None]) -> None:
    found = solve(LOGISTIC, method(), max_passes=60, seed=3)
    assert found.history[0].k == 0
    for name in ("k", "passes", "seconds"):
        assert np.all(np.diff(found.trace(name)) >= 0), name
    assert np.all(np.isfinite(found.trace("objective")))
    h = found.trace("h")
    assert h[0] == N
    assert h[-1] == LOGISTIC.r1.h
    assert np.all(np.diff(h) <= 0)
    assert len(set(h)) >= 4
    assert np.all(found.trace("gamma") > 0)


def test_trace_names_its_columns() -> None:
    found = solve(TRIMMED)
    np.testing.assert_array_equal(found.trace("objective"), [record.objective for record in found.history])
    with pytest.raises(ValueError, match="name must be one of k, passes, objective"):
        found.trace("loss")


@every_method
def test_the_same_seed_takes_the_same_steps(method: Callable[[], Method | None]) -> None:
    first, second = (solve(LOGISTIC, method(), max_passes=15, seed=np.int64(7)) for _ in range(2))
    assert same(first, second)


@pytest.mark.parametrize("method", [svrg, saga, page, sg])
def test_another_seed_takes_other_steps(method: Callable[[], Method]) -> None:
    assert not same(solve(LOGISTIC, method(), max_passes=15, seed=7), solve(LOGISTIC, method(), max_passes=15, seed=8))


def test_the_default_does_not_depend_on_the_seed() -> None:
    """Small problems are solved without random numbers: no step may depend on one, nor the schedule of h."""
    for problem in (TRIMMED, LOGISTIC):
        runs = [solve(problem, seed=seed) for seed in range(4)]
        for other in runs[1:]:
            np.testing.assert_array_equal(other.x, runs[0].x)
            np.testing.assert_array_equal(other.w, runs[0].w)
            np.testing.assert_array_equal(other.trace("h"), runs[0].trace("h"))


def test_large_problems_take_svrg_and_small_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    V = rng.standard_normal((2001, 500)).astype(np.float32)
    large = Problem(LeastSquares(V, V[:, 0]), CappedSimplex(1900))
    small = Problem(LeastSquares(V[:2000], V[:2000, 0]), CappedSimplex(1900))
    kw: dict[str, Any] = {"max_passes": 4, "tol": 0.0}
    assert same(solve(large, **kw), solve(large, svrg(), **kw))
    assert same(solve(small, **kw), solve(small, alternating(), **kw))


# ---- stopping ----


@every_method
def test_converged(method: Callable[[], Method | None]) -> None:
    slow = method in (METHODS["sg"], METHODS["prox_gradient"], METHODS["svrg-theory"])
    found = solve(LOGISTIC, method(), max_passes=400, tol=0.5 if slow else 1e-4)
    assert found.status is Status.CONVERGED
    assert found.status.converged
    assert found.passes < 400


@every_method
def test_max_passes(method: Callable[[], Method | None]) -> None:
    """One more pass at most, for the last evaluation, and a last probe of the curvature on n^(2/3) rows."""
    probe = 6 * probe_size(N) / N
    for max_passes in (0.5, 3, 4.5, 7, 12):
        found = solve(LOGISTIC, method(), max_passes=max_passes, tol=0.0)
        assert found.status is Status.MAX_PASSES
        assert found.passes <= max(max_passes, found.history[0].passes) + 1 + probe
        assert LOGISTIC.r1.contain(found.w), max_passes
        assert found.objective == pytest.approx(LOGISTIC.objective(found.w, found.x), rel=1e-12)
        assert found.history[-1].h == LOGISTIC.r1.h


@pytest.mark.parametrize("method", [svrg, page, palm, sg, alternating, prox_gradient])
def test_max_passes_to_within_one_where_n_is_large(method: Callable[[], Method]) -> None:
    V, t = contaminated(20_000, 3)
    problem = Problem(Logistic(V, t > 1), CappedSimplex(16_000), Ridge(1e-2))
    for max_passes in (2, 5.5):
        found = solve(problem, method(), max_passes=max_passes, tol=0.0)
        assert max_passes - 1.3 <= found.passes <= max_passes + 1.3
        assert problem.r1.contain(found.w)


@every_method
def test_a_callbacks_word_ends_the_run(method: Callable[[], Method | None]) -> None:
    for records in (1, 2, 5):
        seen: list[Record] = []

        def callback(record: Record, seen: list[Record] = seen, records: int = records) -> Any:
            seen.append(record)
            return "enough" if len(seen) == records else None

        found = solve(LOGISTIC, method(), callback=callback, tol=0.0)
        assert found.status is Status.CALLBACK
        assert len(seen) == records
        assert repr(found.history[:records]) == repr(seen)
        assert len(found.history) <= records + 1  # one more where w, still at another h, is brought to the target
        assert LOGISTIC.r1.contain(found.w)
        assert found.history[-1].h == LOGISTIC.r1.h
        assert found.objective == pytest.approx(LOGISTIC.objective(found.w, found.x), rel=1e-12)


@every_method
def test_max_seconds(method: Callable[[], Method | None]) -> None:
    found = solve(LOGISTIC, method(), max_seconds=1e-9, tol=0.0)
    assert found.status is Status.MAX_SECONDS
    assert found.passes < 12
    assert LOGISTIC.r1.contain(found.w)
    assert found.objective == pytest.approx(LOGISTIC.objective(found.w, found.x), rel=1e-12)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("step", [0.1, "auto"])
def test_a_method_that_would_take_no_x_step_is_refused(step: Any) -> None:
    """q = 1: w would be renewed at the same x again and again, at no pass, for ever. The paper asks for q' > 0 too."""
    with pytest.raises(ValueError, match="q must be"):
        solve(LOGISTIC, svrg(q=1.0, step=step), max_passes=5, tol=0.0)
    found = solve(LOGISTIC, svrg(q=0.99, step=step), max_passes=5, tol=0.0)
    assert found.status is Status.MAX_PASSES


def test_max_seconds_is_kept() -> None:
    found = solve(LOGISTIC, sg(), max_seconds=0.15, max_passes=1e9, tol=0.0)
    assert found.status is Status.MAX_SECONDS
    assert 0.15 <= found.seconds < 1.0


def test_a_callback_sees_every_record_in_order() -> None:
    seen: list[Record] = []
    found = solve(LOGISTIC, svrg(), callback=seen.append, max_passes=30)
    assert seen == found.history[: len(seen)]
    assert len(found.history) - len(seen) <= 1


def test_a_step_taken_back_at_the_very_end_leaves_w_in_r1() -> None:
    """The last w-step finds that F has risen, and h is still on its way down: x goes back, but w has to go on."""
    problem = Problem(Poisson(U, COUNTS, intercept=True), CappedSimplex(90), Ridge(1e-2))
    restored = 0
    for method in (svrg(), page()):
        for seed in range(3):
            for max_passes in (5.3, 6.6, 7.9, 9.2, 10.5):
                found = solve(problem, method, max_passes=max_passes, seed=seed, tol=0.0)
                assert problem.r1.contain(found.w), (method, seed, max_passes)
                assert found.objective == pytest.approx(problem.objective(found.w, found.x), rel=1e-12)
                restored += any(record.restored for record in found.history)
    assert restored > 3


def test_theorem_1s_output_lies_in_r1_after_a_continuation() -> None:
    for seed in range(6):
        found = solve(LOGISTIC, svrg(output="random"), max_passes=12, seed=seed)
        assert LOGISTIC.r1.contain(found.w), seed
        assert found.objective == pytest.approx(LOGISTIC.objective(found.w, found.x), rel=1e-12)


# ---- stationarity ----


@pytest.mark.parametrize("r2", [Ridge(0.05), L1(0.02)], ids=["ridge", "l1"])
@pytest.mark.parametrize("method", [svrg(step=0.5), saga(step=0.5), palm(step=0.5), alternating()], ids=str)
def test_stationarity_is_as_defined(method: Method, r2: Regularizer) -> None:
    problem = Problem(Logistic(V, T > 1), CappedSimplex(0.8 * N), r2)
    x0 = np.full(V.shape[1], 0.1)
    engine = LocalEngine(problem)
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    losses = lambda x: np.logaddexp(0, V @ x) - (T > 1) * (V @ x)  # noqa: E731

    def residual(w: np.ndarray, x: np.ndarray, s: float) -> float:
        g = V.T @ (w * (1 / (1 + np.exp(-V @ x)) - (T > 1))) / N
        step = np.sign(x - s * g) * np.maximum(abs(x - s * g) - 0.02 * s, 0) if isinstance(r2, L1) else None
        step = (x - s * g) / (1 + 0.05 * s) if step is None else step
        return float(np.linalg.norm(x - step) / s)

    def keep(record: Record) -> None:
        seen.append((to_numpy(engine.weights).copy(), record.gamma))

    found = solve(problem, method, x0=x0, engine=engine, callback=keep, max_passes=12, tol=0.0)
    if len(seen) < len(found.history):
        keep(found.history[-1])
    first = residual(seen[0][0], x0, seen[0][1])
    w, gamma = seen[-1]
    np.testing.assert_array_equal(w, found.w)
    assert found.stationarity_x == pytest.approx(residual(w, found.x, gamma) / first, rel=1e-8)
    f = losses(found.x)
    best = np.zeros(N)
    best[np.argsort(f)[: int(0.8 * N)]] = 1.0
    old = seen[-2][0]
    drop = np.mean((old - best) * f)
    F = [np.mean(weights * f) + r2.value(found.x) for weights in (old, w)]
    assert any(found.stationarity_w == pytest.approx(drop / value, rel=1e-8, abs=1e-15) for value in F)


# ---- right answers: scikit-learn as oracle ----

RNG = np.random.default_rng(11)
M = 120
U = RNG.standard_normal((M, 4))
ETA = U @ np.array([1.0, -2.0, 0.0, 0.5]) + 0.3
A = 0.05
REAL = ETA + RNG.standard_normal(M)
LABELS = (RNG.random(M) < 1 / (1 + np.exp(-ETA))).astype(float)
COUNTS = RNG.poisson(np.exp(0.5 * ETA)).astype(float)
AMOUNTS = RNG.gamma(2.0, np.exp(0.3 * ETA))
# Each: the loss, the targets, r2, and scikit-learn's estimator for the kept rows, of which there are M/share. F divides
# by n and not by the rows kept: scikit-learn's penalties of means are larger by n/h, those of sums are not.
ORACLES: dict[str, tuple[Callable[..., Loss], np.ndarray, Regularizer, Callable[[float], Any]]] = {
    "ridge": (LeastSquares, REAL, Ridge(A), lambda share: SkRidge(alpha=M * A)),
    "logistic": (Logistic, LABELS, Ridge(A), lambda share: LogisticRegression(C=1 / (M * A), tol=1e-10, max_iter=500)),
    "poisson": (
        Poisson,
        COUNTS,
        Ridge(A),
        lambda share: PoissonRegressor(alpha=A * share, tol=1e-10, solver="newton-cholesky"),
    ),
    "gamma": (
        Gamma,
        AMOUNTS,
        Ridge(A),
        lambda share: GammaRegressor(alpha=A * share, tol=1e-10, solver="newton-cholesky"),
    ),
    "lasso": (LeastSquares, REAL, L1(A), lambda share: Lasso(alpha=A * share, tol=1e-12)),
    "elastic net": (
        LeastSquares,
        REAL,
        ElasticNet(A, 0.3),
        lambda share: SkElasticNet(alpha=A * share, l1_ratio=0.3, tol=1e-12),
    ),
}
SOLVERS: dict[str, Method | None] = {"small": None, "svrg": svrg(), "saga": saga(), "page": page(), "palm": palm()}


@pytest.mark.parametrize(
    ("name", "solver", "trimmed"),
    [
        *[(name, "small", trimmed) for name in ORACLES for trimmed in (False, True)],
        *[(name, "svrg", True) for name in ORACLES],
        *[(name, solver, name == "lasso") for name in ("logistic", "lasso") for solver in ("saga", "page", "palm")],
    ],
)
def test_the_fit_is_scikit_learns_on_the_kept_rows(name: str, solver: str, trimmed: bool) -> None:
    loss, t, r2, estimator = ORACLES[name]
    r1 = CappedSimplex(100) if trimmed else AllOnes()
    found = solve(Problem(loss(U, t, intercept=True), r1, r2), SOLVERS[solver], tol=1e-7, max_passes=2000)
    assert found.status is Status.CONVERGED
    kept = found.w == 1
    assert np.sum(kept) == (100 if trimmed else M)
    expected = estimator(M / np.sum(kept)).fit(U[kept], t[kept])
    np.testing.assert_allclose(found.x, np.append(expected.coef_, expected.intercept_), atol=1e-5)
    assert np.max(found.losses[kept]) <= np.min(found.losses[~kept], initial=inf)


@pytest.mark.parametrize("method", [prox_saga(), prox_svrg(), prox_svrg(restart=50)], ids=["saga", "svrg", "restarts"])
def test_without_trimming_the_relatives_agree(method: Method) -> None:
    found = solve(Problem(Logistic(U, LABELS, intercept=True), AllOnes(), Ridge(A)), method, tol=1e-8, max_passes=2000)
    expected = LogisticRegression(C=1 / (M * A), tol=1e-10, max_iter=500).fit(U, LABELS)
    np.testing.assert_allclose(found.x, np.append(expected.coef_, expected.intercept_), atol=2e-6)


def test_softmax_is_scikit_learns() -> None:
    labels = np.digitize(ETA + RNG.standard_normal(M), [-1, 1])
    found = solve(Problem(Softmax(U, labels, intercept=True), AllOnes(), Ridge(A)), tol=1e-8)
    expected = LogisticRegression(C=1 / (M * A), tol=1e-10, max_iter=500).fit(U, labels)
    np.testing.assert_allclose(found.x[:-1], expected.coef_.T, atol=2e-6)
    np.testing.assert_allclose(
        found.x[-1] - found.x[-1].mean(), expected.intercept_ - expected.intercept_.mean(), atol=2e-6
    )


# ---- small problems ----


@pytest.mark.parametrize("name", ORACLES)
def test_the_order_of_the_rows_does_not_matter(name: str) -> None:
    loss, t, r2, _ = ORACLES[name]
    order = np.random.default_rng(1).permutation(M)
    first = solve(Problem(loss(U, t, intercept=True), CappedSimplex(100.5), r2))
    second = solve(Problem(loss(U[order], t[order], intercept=True), CappedSimplex(100.5), r2))
    np.testing.assert_allclose(first.x, second.x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(first.w[order], second.w, rtol=0, atol=1e-10)


def test_the_order_of_the_rows_does_not_matter_to_pca() -> None:
    A = np.random.default_rng(2).standard_normal((60, 6)) * np.arange(1, 7)
    order = np.random.default_rng(1).permutation(60)
    first, second = (solve(Problem(Subspace(rows, 2), CappedSimplex(50.5), Stiefel())) for rows in (A, A[order]))
    np.testing.assert_allclose(first.x, second.x, rtol=0, atol=1e-10)
    np.testing.assert_allclose(first.w[order], second.w, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_fewer_rows_than_columns_give_the_fit_of_least_norm(n: int) -> None:
    rng = np.random.default_rng(3)
    V, t = rng.standard_normal((n, 8)), rng.standard_normal(n)
    found = solve(Problem(LeastSquares(V, t), AllOnes()))
    np.testing.assert_allclose(found.x, np.linalg.pinv(V) @ t, atol=1e-10)
    assert found.objective == pytest.approx(0.0, abs=1e-20)
    assert found.status is Status.CONVERGED


def test_fewer_kept_rows_than_columns_give_their_fit_of_least_norm() -> None:
    rng = np.random.default_rng(3)
    V, t = rng.standard_normal((9, 8)), rng.standard_normal(9)
    found = solve(Problem(LeastSquares(V, t), CappedSimplex(6)))
    kept = found.w == 1
    assert np.sum(kept) == 6
    np.testing.assert_allclose(found.x, np.linalg.pinv(V[kept]) @ t[kept], atol=1e-10)


@pytest.mark.parametrize(
    "method", [None, svrg(), saga(), page(), palm(), sg(), alternating(inner="proximal"), prox_gradient()]
)
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.timeout(10)
def test_one_row_and_two(method: Method | None, n: int) -> None:
    V, t = np.array([[2.0], [1.0]])[:n], np.array([4.0, 2.0])[:n]
    for r1 in (CappedSimplex(n), CappedSimplex(0.5), AllOnes()):
        found = solve(Problem(LeastSquares(V, t), r1), method, max_passes=50)
        assert r1.contain(found.w)
        assert np.isfinite(found.objective)
        if method is None:
            np.testing.assert_allclose(found.x, [2.0], atol=1e-8)


@pytest.mark.parametrize("method", [None, svrg(), palm()], ids=["small", "svrg", "palm"])
def test_targets_that_are_all_equal(method: Method | None) -> None:
    found = solve(Problem(LeastSquares(V, np.full(N, 3.0), intercept=True), CappedSimplex(200)), method)
    np.testing.assert_allclose(found.x, np.append(np.zeros(V.shape[1]), 3.0), atol=1e-2 if method else 1e-10)
    np.testing.assert_allclose(found.w.sum(), 200)
    nothing = solve(Problem(LeastSquares(V, np.zeros(N)), CappedSimplex(200)), method)
    np.testing.assert_array_equal(nothing.x, np.zeros(V.shape[1]))
    assert nothing.status is Status.CONVERGED


def test_rows_that_are_all_equal_share_the_weight() -> None:
    found = solve(Problem(LeastSquares(np.ones((10, 2)), np.ones(10)), CappedSimplex(7)))
    np.testing.assert_allclose(found.w, 0.7)
    np.testing.assert_allclose(found.x, [0.5, 0.5])


def test_twin_rows_get_the_same_weight() -> None:
    V2, T2 = np.vstack([V, V]), np.append(T, T)
    found = solve(Problem(LeastSquares(V2, T2), CappedSimplex(401)))
    np.testing.assert_allclose(found.w[:N], found.w[N:], atol=1e-9)
    single = solve(Problem(LeastSquares(V, T), CappedSimplex(200.5)))
    np.testing.assert_allclose(found.x, single.x, atol=1e-9)


def test_a_constant_column_and_an_empty_one() -> None:
    W = np.column_stack([V, np.ones(N), np.zeros(N)])
    for method in (None, svrg()):
        found = solve(Problem(LeastSquares(W, T), CappedSimplex(200)), method)
        assert np.all(np.isfinite(found.x))
        assert found.x[-1] == 0.0
        assert found.objective < 0.1


# ---- sample weights ----


def weighted_pair(loss: Callable[..., Loss], r1: Callable[[np.ndarray], WeightSet]) -> tuple[Problem, Problem, Any]:
    """A problem with whole-number weights, and the same with its rows repeated."""
    rng = np.random.default_rng(4)
    s = rng.integers(0, 4, N).astype(float)
    rows = np.repeat(np.arange(N), s.astype(int))
    return (
        Problem(loss(V, T), r1(np.arange(N)), Ridge(0.1), s),
        Problem(loss(V[rows], T[rows]), r1(rows), Ridge(0.1)),
        rows,
    )


R1: dict[str, Callable[[np.ndarray], WeightSet]] = {
    "capped": lambda rows: CappedSimplex(300.5),
    "groups": lambda rows: GroupCappedSimplex(rows % 3, 300.5),
    "ones": lambda rows: AllOnes(),
}


@pytest.mark.parametrize("r1", R1.values(), ids=R1)
@pytest.mark.parametrize("loss", [LeastSquares, lambda V, t: Logistic(V, t > 1)], ids=["least squares", "logistic"])
@pytest.mark.parametrize("method", [None, svrg(), palm()], ids=["small", "svrg", "palm"])
def test_weight_2_is_the_row_twice_and_weight_0_its_removal(
    method: Method | None, loss: Callable[..., Loss], r1: Callable[[np.ndarray], WeightSet]
) -> None:
    weighted, repeated, rows = weighted_pair(loss, r1)
    kw: dict[str, Any] = {"tol": 1e-7, "max_passes": 1500}
    first, second = solve(weighted, method, **kw), solve(repeated, method, **kw)
    if not isinstance(weighted.r1, AllOnes):  # svrg may end in another local minimum: start where the first ended
        second = solve(repeated, method, x0=first.x, **kw) if method is not None else second
    np.testing.assert_allclose(first.x, second.x, atol=1e-5)
    np.testing.assert_allclose(first.w[rows], second.w, atol=1e-5)
    assert first.objective == pytest.approx(second.objective, rel=1e-8)
    assert np.all(first.w[np.setdiff1d(np.arange(N), rows)] == 0)


def test_small_problems_are_solved_alike_with_weights_and_repetitions() -> None:
    weighted, repeated, _ = weighted_pair(LeastSquares, R1["capped"])
    first, second = solve(weighted), solve(repeated)
    np.testing.assert_allclose(first.x, second.x, atol=1e-10)
    np.testing.assert_allclose(first.trace("objective"), second.trace("objective"), rtol=1e-9)


# ---- other kinds of data ----


@pytest.mark.parametrize(
    ("method", "dtype"),
    [(None, np.float64), (None, np.float32), (svrg(), np.float64), (saga(), np.float32), (palm(), np.float64)],
)
def test_torch_in_torch_out(method: Method | None, dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    data, target = V.astype(dtype), T.astype(dtype)
    s = np.arange(N) % 3 + 0.5
    ours = solve(Problem(LeastSquares(data, target, intercept=True), CappedSimplex(330), Ridge(0.1), s), method)
    theirs = solve(
        Problem(
            LeastSquares(torch.asarray(data), torch.asarray(target), intercept=True),
            CappedSimplex(330),
            Ridge(0.1),
            torch.asarray(s),
        ),
        method,
    )
    assert ours.x.dtype == ours.w.dtype == dtype
    for array in (theirs.x, theirs.w, theirs.losses):
        assert isinstance(array, torch.Tensor)
        assert array.dtype == getattr(torch, np.dtype(dtype).name)
    assert type(theirs.objective) is float
    if dtype is np.float64:
        np.testing.assert_allclose(to_numpy(theirs.x), ours.x, atol=1e-6)
        np.testing.assert_allclose(theirs.trace("objective"), ours.trace("objective"), rtol=1e-6)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-3)


@pytest.mark.parametrize("method", [None, svrg(), saga()])
def test_csr_gives_what_dense_gives(method: Method | None) -> None:
    W = np.where(np.abs(V) < 0.5, 0.0, V)
    dense, sparse = (
        solve(Problem(LeastSquares(data, T, intercept=True), CappedSimplex(220), L1(0.01)), method, max_passes=60)
        for data in (W, sp.csr_array(W))
    )
    np.testing.assert_allclose(sparse.x, dense.x, atol=1e-8)
    np.testing.assert_array_equal(sparse.w, dense.w)


# ---- progress ----


def test_progress_by_rich(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    found = solve(LOGISTIC, svrg(), progress=True, max_passes=20)
    shown = capsys.readouterr()
    assert "passes" in shown.out + shown.err
    assert same(found, solve(LOGISTIC, svrg(), max_passes=20))


def test_progress_without_rich(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_rich(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "rich":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    found = solve(LOGISTIC, svrg(), progress=True, max_passes=20)
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert len(lines) == len(found.history)
    assert all(line.startswith("pass ") and "F = " in line and "h = " in line for line in lines)


def test_without_progress_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    solve(LOGISTIC, svrg(), max_passes=5)
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


# ---- what is refused ----

X0 = np.zeros(V.shape[1])
W0 = CappedSimplex(0.8 * N).start(N)
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("method name", {"method": "svrg"}, "method must be one of"),
    ("method function", {"method": svrg}, "method must be one of"),
    *[(f"max_passes={v!r}", {"max_passes": v}, "max_passes must be") for v in (0, -1, nan, "10", None, True)],
    *[(f"max_seconds={v!r}", {"max_seconds": v}, "max_seconds must be") for v in (0, -1.0, nan, "10", True)],
    *[(f"tol={v!r}", {"tol": v}, "tol must be") for v in (-1e-4, nan, "1e-4", None, True)],
    *[(f"seed={v!r}", {"seed": v}, "seed must be") for v in (-1, 0.5, None, "0", True, 1 << 64)],
    *[(f"start={v!r}", {"start": v}, "start must be") for v in ("warm", "", 3)],
    ("start class", {"start": Continuation}, "start must be"),
    ("engine", {"engine": "gpu"}, "engine must be"),
    ("engine of another", {"engine": LocalEngine(TRIMMED)}, "engine was made for another problem"),
    ("x0 shape", {"x0": X0[1:]}, r"x0 must have shape \(4,\)"),
    ("x0 NaN", {"x0": X0 * nan}, "x0 must be finite"),
    ("x0 inf", {"x0": X0 + inf}, "x0 must be finite"),
    ("x0 text", {"x0": ["a"] * 4}, "x0"),
    ("w0 shape", {"w0": W0[1:]}, r"w0 must have one entry per row, shape \(300,\)"),
    ("w0 NaN", {"w0": W0 * nan}, "w0"),
    ("w0 sum", {"w0": W0 * 0.9}, r"w0 does not lie in CappedSimplex\(240"),
    ("w0 > 1", {"w0": np.where(np.arange(N) < 120, 2.0, 0.0)}, "w0 does not lie in"),
    ("w0 text", {"w0": ["a"] * N}, "w0"),
    ("x0 and a start", {"x0": X0, "start": "concentration"}, "start makes its own w0 and x0"),
    ("w0 and a start", {"w0": W0, "start": "multistart"}, "start makes its own w0 and x0"),
    ("x0 and a Start", {"x0": X0, "start": Continuation(5)}, "start makes its own w0 and x0"),
    ("b", {"method": svrg(b=N + 1)}, "b must be"),
    ("b < 1", {"method": saga(b=0)}, "b must be"),
    ("step", {"method": svrg(step=0)}, "step must be"),
    ("step < 0", {"method": prox_gradient(-1.0)}, "step must be"),
    ("prox_saga", {"method": prox_saga()}, r"r1 = AllOnes\(\)"),
    ("duals", {"method": saga(duals="snapshot")}, "duals='snapshot'"),
    ("iterations", {"method": alternating(iterations=0)}, "iterations must be"),
    ("inner", {"method": alternating(inner="bfgs")}, "inner must be"),
    ("checkpoint folder", {"checkpoint": "no/such/folder/file.npz"}, "checkpoint must be a file in an existing folder"),
    ("checkpoint is a folder", {"checkpoint": "."}, "checkpoint must be a file in an existing folder"),
    ("checkpoint of several", {"checkpoint": "file.npz", "start": "multistart"}, "checkpoint is for one run"),
    ("callback", {"callback": "stop"}, "callback must be"),
]


@pytest.mark.parametrize(("arguments", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_cannot_be_right_is_refused_before_any_work(
    arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)

    def work(*_: Any) -> Any:
        raise AssertionError("work was done before the arguments were checked")

    problem = Problem(Logistic(V, T > 1), CappedSimplex(0.8 * N), Ridge(1e-2))
    monkeypatch.setattr(problem.loss, "evaluate", work)
    with pytest.raises(ValueError, match=message):
        solve(problem, **arguments)
    assert not list(tmp_path.iterdir())


def test_a_problem_is_needed() -> None:
    with pytest.raises(ValueError, match="problem must be a Problem"):
        solve(LeastSquares(V, T))  # type: ignore[arg-type]


@pytest.mark.parametrize("every", [-1.0, nan, "60", None, True])
def test_how_often_to_save_is_checked(every: Any, tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="every must be"):
        Checkpoint(tmp_path / "file.npz", every)


def test_poisson_has_no_theory_step() -> None:
    problem = Problem(Poisson(U, COUNTS), AllOnes())
    with pytest.raises(ValueError, match="L is infinite"):
        solve(problem, svrg(step="theory"))


def test_what_is_right_is_not_refused() -> None:
    for arguments in (
        {"x0": list(X0)},
        {"w0": list(W0)},
        {"x0": X0, "w0": W0, "start": None},
        {"start": "given"},
        {"seed": (1 << 64) - 1, "method": svrg(), "max_passes": np.float32(3)},
        {"tol": 0, "max_seconds": 1},
        {"engine": "local"},
    ):
        assert np.isfinite(solve(LOGISTIC, **{"max_passes": 5, **arguments}).objective)


def test_zero_and_r2_none_are_the_same() -> None:
    assert same(solve(Problem(LeastSquares(V, T), AllOnes())), solve(Problem(LeastSquares(V, T), AllOnes(), Zero())))
