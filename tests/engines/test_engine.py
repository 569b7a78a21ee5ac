"""The in-process engine: the same iterates from every kind of data, and no copy of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import textbook
from backends import BACKENDS, Backend
from textbook import GROUPS, given, iterates, make, point
from trimlearn._utils.arrays import to_numpy
from trimlearn.engines import LocalEngine
from trimlearn.losses import LeastSquares, Logistic, Loss, Softmax
from trimlearn.problem import Problem
from trimlearn.regularizers import L1, Ridge, Zero
from trimlearn.smart import page, palm, prox_gradient, prox_saga, saga, sg, svrg
from trimlearn.smart.draws import Stream
from trimlearn.smart.duals import ResidualTable
from trimlearn.smart.method import Method
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex

N = 60
METHODS: dict[str, Method] = {
    "svrg": svrg(b=9, q=0.2, step=0.05),
    "svrg-auto": svrg(b=9, q=0.2),
    "svrg-gradients": svrg(b=9, q=0.2, step=0.05, duals="gradients"),
    "svrg-snapshot-tau": svrg(b=9, q=0.2, step=0.05, duals="snapshot", tau=20.0),
    "svrg-lbfgs": svrg(b=9, q=0.2, step=0.05, metric="lbfgs"),
    "saga": saga(b=9, q=0.1, step=0.05),
    "saga-auto-tau": saga(b=9, q=0.2, tau=20.0),
    "page": page(b=9, q=0.2, step=0.05),
    "sg": sg(b=9, q=0.2, step=0.05),
    "palm": palm(step=0.05, cyclic=False),
    "joint": prox_gradient(step=0.05),
}
LOSSES: dict[str, Callable[..., Loss]] = {
    "least squares": LeastSquares,
    "softmax": lambda V, t: Softmax(
        V, to_numpy(t).astype(int), intercept=True, center=np.arange(4.0), scale=[1, 2, 3, 4]
    ),
}


def data(kind: str) -> tuple[np.ndarray, np.ndarray]:
    V, t = textbook.table(kind, N, p=4)
    V[np.abs(V) < 0.4] = 0.0  # something to leave out for CSR
    return V, t


def problem_on(backend: Backend, kind: str) -> Problem:
    V, t = data(kind)
    s = (np.arange(N) % 4) * 0.75
    return Problem(LOSSES[kind](backend.matrix(V), backend.array(t)), CappedSimplex(40.5), Ridge(0.1), s)


# ---- backends ----


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [name for name in BACKENDS if name != "numpy64"])
def test_every_backend_gives_the_numpy_iterates(name: str, method: str, kind: str, tmp_path: Path) -> None:
    backend, plain = Backend(name, tmp_path), Backend("numpy64", tmp_path)
    problem, reference = problem_on(backend, kind), problem_on(plain, kind)
    engine = LocalEngine(problem)
    run = METHODS[method].bind(problem, 3)
    x = 0.5 * point(reference)
    state = run.init(engine, backend.array(x))
    steps = 12 if backend.dtype == "float32" else 25
    for _, (w_twin, x_twin) in zip(range(steps), iterates(METHODS[method], reference, x), strict=False):
        run.advance(engine, state)
        backend.assert_close(state.x, x_twin, rtol=5e-3 if backend.dtype == "float32" else 1e-9)
        backend.assert_close(engine.weights, w_twin, rtol=2e-2 if backend.dtype == "float32" else 1e-8)
        for array in (state.y_mean, engine.losses, state.anchor):
            assert array is None or str(array.dtype).removeprefix("torch.") == backend.dtype
        assert isinstance(state.gamma, float)
        if state.record is not None:
            assert isinstance(state.record.objective, float) and isinstance(state.record.stationarity_x, float)
    run.finish(engine, state)
    backend.assert_close(engine.losses, reference.loss.values(to_numpy(state.x).astype(float)), rtol=1e-4)


@pytest.mark.parametrize("name", ["numpy32", "torch32"])
@pytest.mark.parametrize("metric", ["diagonal", "lbfgs", "euclidean"])
def test_float32_stays_float32(name: str, metric: str, tmp_path: Path) -> None:
    backend = Backend(name, tmp_path)
    problem = problem_on(backend, "softmax")
    engine = LocalEngine(problem)
    run = svrg(b=9, q=0.3, metric=metric, momentum=0.8, output="random").bind(problem, 0)
    state = run.init(engine, backend.array(np.zeros((5, 3))))
    for _ in range(30):
        run.advance(engine, state)
        arrays = [state.x, state.previous, state.y_mean, state.anchor, state.direction, state.sampled_x]
        pairs = state.metric.pairs  # a diagonal is in float64: float32 does not hold every square
        for array in [*arrays, engine.weights, engine.losses, pairs]:
            assert array is None or str(array.dtype).removeprefix("torch.") == "float32"


def test_float32_objectives_are_summed_in_float64() -> None:
    """16 million terms of 1/2 in float32 would stop at 2^24; here a few terms of very different size suffice."""
    V = np.zeros((3, 1), dtype=np.float32)
    t = np.array([np.sqrt(2e8), np.sqrt(2.0), np.sqrt(2.0)], dtype=np.float32)
    problem = Problem(LeastSquares(V, t), AllOnes())
    engine = LocalEngine(problem)
    expected = float(np.mean(problem.loss.values(np.zeros(1, dtype=np.float32)).astype(np.float64)))
    assert engine.evaluate(np.zeros(1, dtype=np.float32)) == pytest.approx(expected, rel=1e-12)


def test_integer_and_bool_data_work() -> None:
    V, t = data("least squares")
    small = np.round(3 * V).astype(np.int8)
    runs = [
        iterates(svrg(b=9, q=0.2, step=0.01), Problem(LeastSquares(A, t), CappedSimplex(40)), np.zeros(4, dtype=A_type))
        for A, A_type in ((small, np.float32), (small.astype(np.float64), np.float64))
    ]
    for _, (_, a), (_, b) in zip(range(20), *runs, strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", [svrg(b=9), saga(b=9)], ids=["svrg", "saga"])
def test_auto_survives_large_entries_in_float32(method: Method) -> None:
    """The fourth moment of a column of scale 1e10 is 1e40: more than float32 holds."""
    V, t = data("least squares")
    V = V * [1e10, 1.0, 1e-5, 1.0]
    problem = Problem(LeastSquares(V.astype(np.float32), t.astype(np.float32)), CappedSimplex(40))
    engine = LocalEngine(problem)
    with np.errstate(all="ignore"):  # as in solve
        run = method.bind(problem, 0)
        state = run.init(engine, problem.loss.start())
        records = [state.record]
        for _ in range(400):
            run.advance(engine, state)
            records += [state.record] if state.record is not None else []
    assert np.all(np.isfinite(state.x))
    assert records[-1].objective < 0.1 * records[0].objective


# ---- a weighted row is a repeated row ----


@pytest.mark.parametrize("tau", [inf, 15.0])
@pytest.mark.parametrize("kind", ["least squares", "logistic", "softmax"])
@pytest.mark.parametrize("method", ["svrg", "svrg-snapshot", "svrg-momentum", "page", "palm", "joint"])
def test_a_weighted_row_is_the_row_repeated(method: str, kind: str, tau: float) -> None:
    """Iterate by iterate: the same b, q and seed draw the same rows; every copy has the weight of the original.

    SAGA is left out: it has one dual for all copies of a row, so that drawing one refreshes them all. (With sample
    weights it is tested against its textbook form.)
    """
    n = 20
    V, t = textbook.table(kind, n)
    s = np.array([1, 0, 2, 3, 1] * 4)
    back = np.repeat(np.arange(n), s)
    make_loss = textbook.LOSSES[kind]
    methods: dict[str, Method] = {
        "svrg": svrg(b=8, q=0.25, step=0.1, tau=tau),
        "svrg-snapshot": svrg(b=8, q=0.25, step=0.1, tau=tau, duals="snapshot"),
        "svrg-momentum": svrg(b=8, q=0.25, step=0.05, tau=tau, momentum=0.7, metric="diagonal"),
        "page": page(b=8, q=0.25, step=0.1, tau=tau),
        "palm": palm(step=0.1, tau=tau, cyclic=False),
        "joint": prox_gradient(step=0.5),
    }
    labels = GROUPS[:n]
    for r1, r1_repeated in (
        (CappedSimplex(18.3), CappedSimplex(18.3)),
        (GroupCappedSimplex(labels, 18.3), GroupCappedSimplex(labels[back], 18.3)),
    ):
        weighted = Problem(make_loss(V, t), r1, Ridge(0.05), s)
        repeated = Problem(make_loss(V[back], t[back]), r1_repeated, Ridge(0.05))
        x = point(weighted)
        runs = [iterates(methods[method], problem, x) for problem in (weighted, repeated)]
        for k, (w, a), (w_repeated, c) in zip(range(40), *runs, strict=False):
            np.testing.assert_allclose(w[back], w_repeated, rtol=1e-10, atol=1e-11, err_msg=f"w at iteration {k}")
            np.testing.assert_allclose(a, c, rtol=1e-10, atol=1e-11, err_msg=f"x at iteration {k}")
            assert not np.any(w[s == 0])


def test_a_weighted_row_is_the_row_repeated_in_the_records_too() -> None:
    n = 20
    V, t = textbook.table("least squares", n)
    s = np.array([1, 0, 2, 3, 1] * 4)
    back = np.repeat(np.arange(n), s)
    problems = [
        Problem(LeastSquares(V, t), CappedSimplex(18.3), L1(0.02), s),
        Problem(LeastSquares(V[back], t[back]), CappedSimplex(18.3), L1(0.02)),
    ]
    records = []
    for problem in problems:
        engine = LocalEngine(problem)
        run = svrg(b=8, q=0.3, step=0.05, tau=10.0).bind(problem, 1)
        state = run.init(engine, point(problem))
        found = [state.record]
        for _ in range(40):
            run.advance(engine, state)
            found.append(state.record)
        names = ("objective", "stationarity_x", "stationarity_w", "h", "residual_x", "residual_w")
        records.append([[getattr(r, name) for name in names] for r in found if r is not None])
    np.testing.assert_allclose(records[0], records[1], rtol=1e-8, atol=1e-12)


def test_sample_weights_of_one_change_nothing() -> None:
    V, t = data("least squares")
    runs = [
        iterates(method, Problem(LeastSquares(V, t), CappedSimplex(40.5), L1(0.02), s), np.zeros(4))
        for method in (svrg(b=9, q=0.2), saga(b=9, q=0.2, tau=9.0))
        for s in (None, np.ones(N))
    ]
    for plain, weighted in (runs[:2], runs[2:]):
        for _, a, b in zip(range(40), plain, weighted, strict=False):
            np.testing.assert_allclose(a[0], b[0], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(a[1], b[1], rtol=1e-9, atol=1e-9)


def test_a_row_with_sample_weight_0_may_hold_anything() -> None:
    """s = 0 is removal: the iterates do not depend on what the row holds."""
    V, t = data("least squares")
    s = np.ones(N)
    s[[7, 30]] = 0.0
    runs = []
    for row, target in ((np.zeros(4), 0.0), (np.array([1e308, -1e308, 1e308, 1e308]), -1e300)):
        V[[7, 30]], t[[7, 30]] = row, target
        problem = Problem(LeastSquares(V.copy(), t.copy()), CappedSimplex(40.5), L1(0.02), s)
        runs.append(iterates(svrg(b=9, q=0.2, step=0.05), problem, np.full(4, 20.0)))
    with np.errstate(all="ignore"):
        for _, a, b in zip(range(40), *runs, strict=False):
            np.testing.assert_allclose(a[0], b[0], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(a[1], b[1], rtol=1e-12, atol=1e-12)


def test_a_removed_row_has_no_influence_even_where_w0_gives_it_weight() -> None:
    """w₃ = 1 satisfies Σ sᵢwᵢ = h all the same; its loss is infinite and must not become inf·0."""
    problem = Problem(LeastSquares(np.ones((4, 1)), np.array([0, 1, 2, 1e200])), CappedSimplex(2), None, [1, 1, 1, 0])
    engine = LocalEngine(problem)
    engine.set_weights(np.array([1.0, 1.0, 0.0, 1.0]))
    with np.errstate(all="ignore"):
        assert engine.evaluate(np.zeros(1)) == pytest.approx(1 / 6, rel=1e-12)
        assert problem.objective(engine.weights, np.zeros(1)) == pytest.approx(1 / 6, rel=1e-12)


# ---- the operations, one by one ----


def test_reweigh_is_the_prox_of_the_w_step() -> None:
    for s in (None, np.array([1, 2, 0, 1, 3, 1] * 4)):
        problem, twin = make("least squares", CappedSimplex(13.3), Zero(), 24, s)
        engine = LocalEngine(problem)
        x = point(problem)
        w = to_numpy(engine.weights)
        value = engine.evaluate(x)
        f = twin.f(x)
        assert value == pytest.approx(twin.mean(w * f), rel=1e-13)
        for tau in (0.1, 5.0, 1e4, inf):
            engine.set_weights(w)
            found = engine.reweigh(tau)
            new = twin.best(f) if tau == inf else twin.project(w - tau / twin.s.sum() * f)
            np.testing.assert_allclose(engine.weights, new, rtol=1e-11, atol=1e-12)
            assert found.value == pytest.approx(twin.mean(new * f), rel=1e-11)
            assert found.value <= value + 1e-12
        assert engine.gap() == pytest.approx(0.0, abs=1e-14)


def test_the_gap_of_the_start_is_not_negative_and_0_where_w_is_best() -> None:
    problem, _ = make("logistic", CappedSimplex(13.3), Zero(), 24)
    engine = LocalEngine(problem)
    engine.evaluate(point(problem))
    assert engine.gap() > 0.1
    engine.reweigh(inf)
    assert engine.gap() == 0.0


def test_value_gradient_and_curvature_against_the_formulas() -> None:
    problem, twin = make("softmax", CappedSimplex(13.3), Zero(), 24, np.array([1, 2, 0, 1, 3, 1] * 4))
    engine = LocalEngine(problem)
    x, u = point(problem, 1), point(problem, 2)
    engine.evaluate(point(problem, 3))
    y, f = engine.mean_duals(), engine.losses
    w = np.random.default_rng(0).random(24) * (np.arange(24) % 3 > 0)
    engine.set_weights(w)
    value, gradient = engine.value_gradient(x)
    assert value == pytest.approx(twin.mean(w * twin.f(x)), rel=1e-12)
    np.testing.assert_allclose(gradient, twin.mean(twin.wG(w, x)), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(engine.losses, f)  # f and y are left alone
    engine.set_weights(problem.r1.start(24, problem.s))
    np.testing.assert_array_equal(engine.mean_duals(), y)
    engine.set_weights(w)
    batch, h = np.array([0, 4, 4, 7, 20, 1]), 1e-6
    change = sum(twin.wG(w, x + h * u)[i] - twin.wG(w, x - h * u)[i] for i in batch) / (2 * h * 6)
    np.testing.assert_allclose(engine.hessp(x, u, given(batch)), change, rtol=1e-6, atol=1e-9)


def test_column_moments_are_weighted_sums_of_powers() -> None:
    problem, twin = make("least squares", CappedSimplex(13.3), Zero(), 24, np.array([1, 2, 0, 1, 3, 1] * 4))
    engine = LocalEngine(problem)
    w = np.random.default_rng(0).random(24)
    engine.set_weights(w)
    share = twin.s * w / sum(twin.s)
    total, second, fourth = engine.column_moments()
    assert total == pytest.approx(sum(share), rel=1e-12)
    np.testing.assert_allclose(second, share @ twin.V**2, rtol=1e-12)
    np.testing.assert_allclose(fourth, share @ twin.V**4, rtol=1e-12)


def test_draws_of_the_engine_are_those_of_seed_k_and_the_sample_weights() -> None:
    problem, twin = make("least squares", CappedSimplex(13.3), Zero(), 24, np.array([1, 2, 0, 1, 3, 1] * 4))
    engine = LocalEngine(problem)
    np.testing.assert_array_equal(engine.draws(4, 17).rows(50), twin.draws(4, 17).rows(50))
    assert engine.draws(4, 17, Stream.PROBE).uniform() != engine.draws(4, 17).uniform()


def test_two_engines_on_one_problem_do_not_disturb_each_other() -> None:
    problem, _ = make("softmax", CappedSimplex(13.3), Ridge(0.1), 24)
    x = point(problem)
    run = iterates(saga(b=5, q=0.2, step=0.1), problem, x)
    alone = [next(run)[1] for _ in range(30)]
    together = iterates(saga(b=5, q=0.2, step=0.1), problem, x), iterates(svrg(b=7, q=0.2, step=0.1), problem, x)
    for expected, (_, found), _ in zip(alone, *together, strict=False):
        np.testing.assert_array_equal(found, expected)


def test_the_users_arrays_are_never_written_to() -> None:
    V, t = data("least squares")
    x, w, s = np.ones(4), np.full(N, 40 / N), np.ones(N)
    kept = [a.copy() for a in (V, t, x, w, s)]
    for method in METHODS.values():
        run = iterates(method, Problem(LeastSquares(V, t), CappedSimplex(40), Ridge(0.1), s), x, w=w)
        for _ in range(15):
            next(run)
    for a, before in zip((V, t, x, w, s), kept, strict=True):
        np.testing.assert_array_equal(a, before)


def test_nor_does_what_the_user_writes_to_w0_later_reach_the_weights() -> None:
    V, t = data("least squares")
    w = np.full(N, 40 / N)
    engine = LocalEngine(Problem(LeastSquares(V, t), CappedSimplex(40)))
    engine.set_weights(w)
    w[:] = 0.0
    np.testing.assert_array_equal(engine.weights, 40 / N)


# ---- memory ----


@pytest.fixture(scope="module")
def large() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    V = rng.normal(size=(50_000, 100))  # 40 MB
    return V, V[:, 0] + rng.normal(size=len(V))


def compile_kernels(loss: Any) -> None:
    """Make both fused steps once: a compiler takes memory of its own, and takes it once."""
    table, x = ResidualTable(loss), loss.start()
    table.evaluate(x, np.ones(loss.n, dtype=x.dtype))
    table.difference(x, np.ones(2, dtype=x.dtype), np.arange(2))


@pytest.mark.parametrize(
    "method",
    [
        svrg(step=0.01),
        svrg(step=0.01, tau=5e4),
        svrg(step=0.01, duals="snapshot"),
        svrg(),
        saga(step=0.01),
        page(step=0.01),
        sg(step=0.01),
        palm(step=0.01, cyclic=False),
    ],
    ids=["svrg", "svrg-tau", "svrg-snapshot", "svrg-auto", "saga", "page", "sg", "palm"],
)
def test_V_is_never_copied(method: Any, large: tuple[np.ndarray, np.ndarray]) -> None:
    """A w-step and the x-steps around it, in less than a quarter of V, all that is kept per row included."""
    V, t = large
    compile_kernels(LeastSquares(V, t))
    tracemalloc.start()
    try:
        problem = Problem(LeastSquares(V, t), CappedSimplex(40_000))
        engine = LocalEngine(problem)
        run = method.bind(problem, 0)
        state = run.init(engine, problem.loss.start())
        while min(engine.counts.prox_r1, engine.counts.prox_r2 - 1) < 1:
            run.advance(engine, state)
        run.finish(engine, state)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < V.nbytes / 4


def test_the_solvers_memory_beside_the_data_is_a_few_numbers_per_example() -> None:
    """≤ (2K + 6) numbers per example + 30·p·K, the data and its targets aside; with 4 MB for the pieces in flight."""
    rng = np.random.default_rng(0)
    n, p, K = 400_000, 4, 2
    V, t = rng.normal(size=(n, p)), rng.integers(0, K, n)
    problem = Problem(Softmax(V, t), CappedSimplex(0.8 * n))
    compile_kernels(problem.loss)
    tracemalloc.start()
    try:
        engine = LocalEngine(problem)
        run = svrg(step=0.1, q=0.5).bind(problem, 0)
        state = run.init(engine, problem.loss.start())
        for _ in range(6):
            run.advance(engine, state)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert engine.counts.prox_r1 >= 1
    assert kept <= 8 * (2 * K + 6) * n + (4 << 20)
    assert peak <= 8 * (2 * K + 6) * n + 8 * 30 * p * K + (4 << 20)


def test_prox_saga_on_a_memory_map_reads_only_what_it_draws(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "V.npy", rng.normal(size=(20_000, 50)))
    V = np.load(tmp_path / "V.npy", mmap_mode="r")
    problem = Problem(Logistic(V, np.arange(20_000) % 2), AllOnes(), Ridge(0.1))
    tracemalloc.start()
    try:
        run = iterates(prox_saga(b=50, step=0.01), problem, np.zeros(50))
        for _ in range(5):
            next(run)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < V.nbytes / 4
