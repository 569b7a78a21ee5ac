"""Algorithm 1 at work: what a step costs, what it may skip, what its records say, and what it gives out at the end."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import astuple
from math import ceil, inf, isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import textbook
from textbook import given, make, point
from trimlearn._utils.arrays import to_numpy
from trimlearn.checkpoint import Checkpoint
from trimlearn.engines import Counts, LocalEngine
from trimlearn.losses import LeastSquares
from trimlearn.losses.linear import Block, Linear
from trimlearn.problem import Problem
from trimlearn.regularizers import L1, Ridge, Sphere, Zero
from trimlearn.smart import SMART, page, palm, prox_gradient, prox_saga, prox_svrg, saga, sg, svrg, variable_projection
from trimlearn.smart.draws import Draws, Stream
from trimlearn.smart.method import Method, MetricMemory, Run, State
from trimlearn.smart.metrics import LBFGS
from trimlearn.smart.move_laws import Coin
from trimlearn.smart.row_laws import Independent, Nothing, Recipe, Same, WithReplacement
from trimlearn.smart.steps import Auto
from trimlearn.smart.w_step import renew
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex

N = 24
STEPS = 60


def begin(method: Method, problem: Problem, seed: int = 3) -> tuple[Run, LocalEngine, State]:
    engine = LocalEngine(problem)
    run = method.bind(problem, seed)
    return run, engine, run.init(engine, point(problem))


def stepping(method: Method, problem: Problem, steps: int, seed: int = 3) -> Any:
    """The run after each of ``steps`` iterations."""
    run, engine, state = begin(method, problem, seed)
    for _ in range(steps):
        run.advance(engine, state)
        yield run, engine, state


# ---- counts ----


def naive_counts(method: SMART, problem: Problem, cost: int = 1, *, keeps: bool = True) -> list[tuple[int, ...]]:
    """(gradients, functions, prox_r1, prox_r2, skipped) after the start and after each iteration, counted by hand."""
    run, engine, state = begin(method, problem)
    gradients, functions, prox_r1, prox_r2, skipped = N, N, 0, 0, 0
    rows = [(gradients, functions, prox_r1, prox_r2, skipped)]
    moved = False
    for k in range(STEPS):
        w = to_numpy(engine.weights)
        draws = Draws(3, k, N, None if problem.s is None else np.cumsum(problem.s))
        move = method.j.bind(N, run.b).draw(draws, k).name
        if move == "W":
            cost_w = N if moved else 0  # where x has not moved since f was evaluated, f is known
            gradients, functions, prox_r1, moved = gradients + cost_w, functions + cost_w, prox_r1 + 1, False
        elif move == "EVALUATE":
            gradients, functions = gradients + N, functions + N
        else:
            batch = run.batch.draw(draws)
            D = batch if isinstance(run.refresh, Same) else run.refresh.draw(draws)
            if moved or not keeps:
                for drawn in [batch] if D is batch else [batch, D]:
                    if isinstance(drawn, slice):
                        gradients += N
                    else:
                        gradients += cost * len({i for i in drawn if w[i] > 0})
                        skipped += sum(w[i] == 0 for i in drawn)
            prox_r2, moved = prox_r2 + 1, True
        rows.append((gradients, functions, prox_r1, prox_r2, skipped))
        run.advance(engine, state)
    return rows


TRIMMED = make("least squares", CappedSimplex(13.4), L1(0.01), N)[0]
WEIGHTED = make("softmax", CappedSimplex(17.5), Ridge(0.1), N, np.array([1, 2, 0, 1, 3, 1] * 4))[0]
ONES = make("logistic", AllOnes(), Ridge(0.1), N)[0]

COUNTED: dict[str, tuple[SMART, Problem, dict[str, Any]]] = {
    "svrg": (svrg(b=7, q=0.2, step=0.1), TRIMMED, {}),
    "svrg-tau": (svrg(b=7, q=0.2, step=0.1, tau=6.0), TRIMMED, {}),
    "svrg-weighted": (svrg(b=7, q=0.2, step=0.1), WEIGHTED, {}),
    "svrg-gradients": (svrg(b=7, q=0.2, step=0.1, duals="gradients"), TRIMMED, {}),
    "svrg-snapshot": (svrg(b=7, q=0.2, step=0.1, duals="snapshot"), TRIMMED, {"cost": 2}),
    "saga": (saga(b=7, q=0.2, step=0.1), TRIMMED, {}),
    "saga-weighted": (saga(b=9, q=0.2, step=0.1), WEIGHTED, {}),
    "page": (page(b=7, q=0.2, step=0.1), TRIMMED, {"cost": 2}),
    "sg": (sg(b=7, q=0.2, step=0.1), TRIMMED, {"keeps": False}),
    "sg-growing": (sg(b=2, q=0.1, step=0.1, growth=0.1), TRIMMED, {"keeps": False}),
    "palm": (palm(step=0.1), TRIMMED, {}),
    "palm-coin": (palm(step=0.1, tau=6.0, cyclic=False), TRIMMED, {}),
    "projection": (variable_projection(step=0.1), WEIGHTED, {}),
    "prox_saga": (prox_saga(b=7, step=0.1), ONES, {}),
    "prox_saga-independent": (prox_saga(b=7, step=0.1, refresh="independent"), ONES, {}),
    "prox_svrg-restart": (prox_svrg(b=7, q=0.1, step=0.1, restart=9), ONES, {}),
    "own-D": (SMART(WithReplacement(5), Coin(0.2), Independent(0.3), step=0.1), TRIMMED, {}),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_counts_are_what_a_naive_count_gives(name: str) -> None:
    method, problem, options = COUNTED[name]
    expected = naive_counts(method, problem, **options)
    run, engine, state = begin(method, problem)
    for k, row in enumerate(expected):
        assert astuple(engine.counts) == row, f"after {k} iterations"
        assert engine.passes == row[0] / N
        run.advance(engine, state)
    assert expected[-1][0] > 3 * N and expected[-1][3] > 0
    if problem is TRIMMED and "palm" not in name:
        assert expected[-1][4] > 0  # draws were skipped


@pytest.mark.parametrize("name", ["svrg", "svrg-tau", "svrg-weighted", "saga", "saga-weighted", "palm", "palm-coin"])
def test_the_counts_are_the_rows_really_evaluated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, problem, _ = COUNTED[name]
    predict, rows = Block.predict, [0]

    def counting(block: Block, x: Any) -> Any:
        rows[0] += block.m
        return predict(block, x)

    monkeypatch.setattr(Block, "predict", counting)
    for _, engine, _ in stepping(method, problem, STEPS):
        assert engine.counts.gradients == rows[0]


def test_prox_gradient_takes_one_pass_an_iteration() -> None:
    for k, (_, engine, _) in enumerate(stepping(prox_gradient(step=0.1), TRIMMED, 10), start=1):
        assert engine.counts == Counts((k + 1) * N, (k + 1) * N, k, k, 0)


def test_a_cyclic_pair_is_one_pass() -> None:
    for variant in (palm(step=0.1, tau=5.0), variable_projection(step=0.1)):
        passes = [engine.passes for _, engine, _ in stepping(variant, TRIMMED, 20)]
        assert passes[::2] == passes[1::2] == [float(k) for k in range(1, 11)]


# ---- exact shortcuts ----


@pytest.mark.parametrize("method", [svrg(b=6, q=0.3, step=0.1), saga(b=6, q=0.3, step=0.1), page(b=6, q=0.3, step=0.1)])
def test_the_first_x_step_after_a_w_step_evaluates_no_row(method: SMART, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 0
    before = None
    for _, engine, state in stepping(method, TRIMMED, STEPS):
        if before is not None and before["renewed"] and state.record is None:
            assert engine.counts.gradients == before["gradients"]
            assert engine.counts.prox_r2 == before["prox_r2"] + 1
            free += 1
        before = {
            "renewed": state.record is not None,
            "gradients": engine.counts.gradients,
            "prox_r2": engine.counts.prox_r2,
        }
    assert free >= 5


def test_a_w_step_where_x_has_not_moved_evaluates_no_row() -> None:
    """Two w-steps in a row, and one right after the start: f and y/w are known, only w and the mean of y change."""
    problem, twin = make("least squares", CappedSimplex(13.4), Zero(), N)
    for duals in ("residuals", "gradients", "snapshot"):
        known = 0
        moved = False
        before: tuple[int, int] = (N, N)
        for _, engine, state in stepping(svrg(b=6, q=0.6, step=0.1, tau=3.0, duals=duals), problem, STEPS):
            if state.record is not None:
                w, x = to_numpy(engine.weights), to_numpy(state.x)
                np.testing.assert_allclose(engine.losses, twin.f(x), rtol=1e-12)
                np.testing.assert_allclose(state.y_mean, twin.mean(twin.wG(w, x)), rtol=1e-11, atol=1e-13)
                if not moved:
                    assert (engine.counts.gradients, engine.counts.functions) == before
                    known += 1
            moved = state.record is None
            before = (engine.counts.gradients, engine.counts.functions)
        assert known >= 10


def test_rows_of_weight_0_are_never_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spy on every gather of an x-step."""
    for name in ("svrg", "saga", "svrg-snapshot", "page", "sg", "own-D", "saga-weighted"):
        method, problem, _ = COUNTED[name]
        run, engine, state = begin(method, problem)
        asked: list[np.ndarray] = []
        made = Block.__init__

        def spying(self: Block, linear: Linear, rows: Any, made: Any = made, asked: Any = asked) -> None:
            if rows is not None and not isinstance(rows, slice):
                asked.append(np.asarray(rows))
            made(self, linear, rows)

        with monkeypatch.context() as patch:
            patch.setattr(Block, "__init__", spying)
            for _ in range(STEPS):
                w = to_numpy(engine.weights).copy()
                asked.clear()
                run.advance(engine, state)
                if state.record is None and asked:
                    rows = np.concatenate(asked)
                    assert np.all(w[rows] > 0), name


def test_skipped_draws_do_not_change_the_divisor() -> None:
    """b counts the draws, not those that were evaluated: else the estimator would be biased."""
    problem, twin = make("least squares", AllOnes(), Zero(), N)
    engine = LocalEngine(problem)
    w = (np.arange(N) % 3 == 0) + 0.0
    engine.set_weights(w)
    x, old = point(problem, 1), point(problem, 2)
    engine.evaluate(old)
    batch = np.arange(12)
    found, _ = engine.difference(x, given(batch), Recipe(Nothing()))
    y = twin.wG(w, x) - twin.wG(w, old)
    np.testing.assert_allclose(found, y[:12].sum(axis=0) / 12, rtol=1e-12)
    assert engine.counts.skipped == 8


# ---- the record ----


def test_a_record_is_made_by_w_steps_alone_and_tells_the_truth() -> None:
    problem, twin = make("softmax", CappedSimplex(15.2), Ridge(0.1), N)
    seen = 0
    for run, engine, state in stepping(svrg(b=6, q=0.3, step=0.1), problem, STEPS):
        j_is_1 = Draws(run.seed, state.k - 1, N).uniform() < 0.3
        assert (state.record is not None) == j_is_1
        if state.record is None:
            continue
        seen += 1
        record, w, x = state.record, to_numpy(engine.weights), to_numpy(state.x)
        assert record.objective == pytest.approx(twin.mean(w * twin.f(x)) + 0.05 * np.sum(x * x), rel=1e-12)
        assert record.objective == pytest.approx(problem.objective(w, x), rel=1e-12)
        assert (record.k, record.passes, record.h, record.gamma) == (state.k - 1, engine.passes, 15.2, 0.1)
        np.testing.assert_allclose(engine.losses, twin.f(x), rtol=1e-12)
        assert isnan(record.residual_w)
    assert seen > 8


@pytest.mark.parametrize("step", [0.1, "theory"])
def test_stationarity_x_is_the_residual_relative_to_its_first(step: Any) -> None:
    """‖x − prox_{s r2}(x − s·mean(y))‖/s at (w_new, x), s = γ (theory: γ/η), relative to its first value."""
    problem, twin = make("least squares", CappedSimplex(15.2), Sphere(1.5), N)  # here the residual depends on s
    run, engine, state = begin(svrg(b=6, q=0.4, step=step), problem)
    s = run.rule.gamma / run.rule.eta

    def residual() -> float:
        x = to_numpy(state.x)
        gradient = twin.mean(twin.wG(to_numpy(engine.weights), x))
        return float(np.linalg.norm(x - twin.prox(x - s * gradient, s)) / s)

    first = residual()
    assert state.record.stationarity_x == 1.0
    for _ in range(150):
        run.advance(engine, state)
        if state.record is not None:
            assert state.record.stationarity_x == pytest.approx(residual() / first, rel=1e-9)


def test_stationarity_w_is_the_gap_relative_to_F() -> None:
    """(1/n)⟨w_old − ŵ, f(x)⟩ / |F|, ŵ the best weights."""
    for tau in (inf, 4.0):
        problem, twin = make("least squares", CappedSimplex(15.2), Ridge(1.0), N)
        run, engine, state = begin(svrg(b=6, q=0.4, step=0.02, tau=tau), problem)
        seen = 0
        for _ in range(STEPS):
            old = to_numpy(engine.weights)
            run.advance(engine, state)
            if state.record is not None:
                x = to_numpy(state.x)
                drop = twin.mean((old - twin.best(twin.f(x))) * twin.f(x))
                F = [twin.mean(w * twin.f(x)) + 0.5 * np.sum(x * x) for w in (old, to_numpy(engine.weights))]
                found = state.record.stationarity_w  # relative to |F| before or after the w-step: both will do
                assert any(found == pytest.approx(drop / value, rel=1e-9, abs=1e-15) for value in F)
                seen += drop > 1e-6
        assert seen >= 2


@pytest.mark.parametrize("r2", [L1(0.1), Ridge(5.0)], ids=["L1", "Ridge"])  # Ridge's residual depends on the step
def test_the_papers_own_residuals_are_recorded_when_tau_is_finite(r2: Any) -> None:
    """§3.1: (η/γ)(x − x̄) with x̄ = prox_{(γ/η) r2}(x − (γ/η)∇), and (w − w̄)/τ with w̄ = prox_{τ r1}(w − τ/n f)."""
    problem, twin = make("least squares", CappedSimplex(15.2), r2, N)
    run, engine, state = begin(svrg(b=6, q=0.4, step="theory", tau="theory"), problem)
    s, tau = run.rule.gamma / run.rule.eta, run.tau
    assert isnan(state.record.residual_w)
    seen = 0
    for _ in range(STEPS):
        run.advance(engine, state)
        if state.record is not None:
            w, x = to_numpy(engine.weights), to_numpy(state.x)
            x_bar = twin.prox(x - s * twin.mean(twin.wG(w, x)), s)
            w_bar = twin.project(w - tau / N * twin.f(x))
            assert state.record.residual_x == pytest.approx(np.linalg.norm(x - x_bar) / s, rel=1e-9)
            assert state.record.residual_w == pytest.approx(np.linalg.norm(w - w_bar) / tau, rel=1e-6, abs=1e-9)
            seen += 1
    assert seen > 8


# ---- the end ----


@pytest.mark.parametrize(
    "name", ["svrg", "saga", "page", "sg", "palm-coin", "prox_saga", "prox_svrg-restart", "svrg-random"]
)
def test_finish_makes_everything_belong_to_the_present_x(name: str) -> None:
    method, problem = (
        (svrg(b=7, q=0.1, step=0.1, output="random"), TRIMMED) if name == "svrg-random" else COUNTED[name][:2]
    )
    for steps in (7, 8, 23):
        run, engine, state = begin(method, problem)
        for _ in range(steps):
            run.advance(engine, state)
        run.finish(engine, state)
        w, x = to_numpy(engine.weights), to_numpy(state.x)
        np.testing.assert_allclose(engine.losses, problem.loss.values(state.x), rtol=1e-12)
        assert state.record.objective == pytest.approx(problem.objective(w, x), rel=1e-12)


def t0_by_the_draws(seed: int, T: int) -> int:
    """The last k ≤ T whose number says so: a reservoir of one."""
    taken = [k for k in range(1, T + 1) if Draws(seed, k, N, None, Stream.OUTPUT).uniform() * (k + 1) < 1]
    return max(taken, default=0)


def test_t0_is_uniform_over_all_iterates() -> None:
    for T in (1, 4, 9):
        seen = np.bincount([t0_by_the_draws(seed, T) for seed in range(3000)], minlength=T + 1)
        assert chisquare(seen).pvalue > 1e-3


@pytest.mark.parametrize("T", [1, 3, 6])
def test_the_random_output_is_the_iterate_at_t0(T: int) -> None:
    found = []
    for seed in range(40):
        run, engine, state = begin(svrg(b=5, q=0.3, step=0.1, output="random"), TRIMMED, seed)
        path = [(to_numpy(engine.weights), to_numpy(state.x))]
        for _ in range(T):
            run.advance(engine, state)
            path.append((to_numpy(engine.weights), to_numpy(state.x)))
        last = deepcopy(path[-1])
        run.finish(engine, state)
        t0 = t0_by_the_draws(seed, T)
        found.append(t0)
        np.testing.assert_array_equal(to_numpy(state.x), path[t0][1], err_msg=f"seed {seed}, t0 = {t0}")
        np.testing.assert_array_equal(to_numpy(engine.weights), path[t0][0])
        np.testing.assert_array_equal(last[1], path[-1][1])  # the path was not changed behind our back
    assert set(found) == set(range(T + 1))


def test_the_random_output_does_not_change_the_run() -> None:
    plain, random = (
        [to_numpy(state.x) for _, _, state in stepping(svrg(b=5, q=0.3, step=0.1, output=output), TRIMMED, 30)]
        for output in ("last", "random")
    )
    np.testing.assert_array_equal(plain, random)


# ---- theory ----


@pytest.mark.parametrize("tau", [inf, "theory"])
@pytest.mark.parametrize("variant", [svrg, saga])
def test_with_the_theorys_steps_F_decreases_on_average(variant: Any, tau: Any) -> None:
    """Over 12 seeds; the theorem speaks of expectations."""
    problem, _ = make("least squares", CappedSimplex(16), L1(0.05), N)
    method = variant(b=9, q=0.25, step="theory", tau=tau)
    paths = []
    for seed in range(12):
        runs = stepping(method, problem, 240, seed)
        F = [problem.objective(engine.weights, state.x) for k, (_, engine, state) in enumerate(runs) if k % 30 == 29]
        paths.append([problem.objective(problem.r1.start(N), point(problem)), *F])
    mean = np.mean(paths, axis=0)
    assert np.all(np.diff(mean) < 0)
    assert mean[-1] < 0.5 * mean[0]


def test_full_batches_with_a_small_step_never_go_up() -> None:
    """PALM is deterministic, and below 1/L each step decreases F."""
    problem, _ = make("softmax", CappedSimplex(16), Ridge(0.05), N)
    L = float(np.mean(problem.loss.lipschitz()))
    for tau in (inf, 3.0):
        runs = stepping(palm(step=1 / L, tau=tau), problem, 80)
        F = [problem.objective(engine.weights, state.x) for _, engine, state in runs]
        assert np.all(np.diff(F) <= 1e-14)
        assert F[-1] < 0.9 * F[0]


# ---- taking steps back, and starting again ----


def test_a_rise_of_F_is_taken_back_and_the_step_shortened() -> None:
    """A step ten times too long: the guard restores the last w-step's x, w and y exactly."""
    problem, twin = make("least squares", CappedSimplex(16), Zero(), N)
    run, engine, state = begin(svrg(b=6, q=0.2, step=Auto(), momentum=0, metric="euclidean", finish=False), problem)
    restored, anchor, F = 0, state.x, state.record.objective
    for k in range(120):
        if state.record is not None and k % 3 == 0:
            state.gamma *= 30.0
        gamma = state.gamma
        run.advance(engine, state)
        if state.record is None:
            continue
        if state.record.restored:
            restored += 1
            np.testing.assert_array_equal(state.x, anchor)
            np.testing.assert_array_equal(state.previous, anchor)  # what was gained in momentum is lost too
            assert state.gamma < gamma and state.record.objective == pytest.approx(F, rel=1e-12)
            w, x = to_numpy(engine.weights), to_numpy(state.x)
            np.testing.assert_allclose(state.y_mean, twin.mean(twin.wG(w, x)), rtol=1e-10, atol=1e-13)
        else:
            assert state.record.objective <= F * (1 + 1e-12)
        anchor, F = state.x, state.record.objective
    assert restored >= 3


def test_secants_of_steps_that_were_taken_back_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = make("least squares", CappedSimplex(16), Zero(), N)
    run, engine, state = begin(svrg(b=6, q=0.2, step=Auto(), momentum=0, metric="lbfgs", finish=False), problem)
    while state.metric.pairs is None or not state.moved:
        run.advance(engine, state)
    monkeypatch.setattr(engine, "evaluate", lambda x: 2 * state.base)
    run.w_step(engine, state)
    assert state.record.restored
    assert state.metric == MetricMemory()


def test_the_latest_secants_are_kept() -> None:
    problem, _ = make("least squares", CappedSimplex(15.2), Zero(), N)
    state, engine = State(x=np.zeros(2), anchor=np.zeros(2)), LocalEngine(problem)
    for k in range(1, 6):
        state.metric.sums = np.array([[k, 0.0], [k, 1.0]])
        LBFGS(memory=3).learn(engine, state, 0.0)
    np.testing.assert_array_equal(state.metric.pairs[:, 0, 0], [3, 4, 5])


@pytest.mark.parametrize(("units", "restored"), [(0, False), (100, False), (1000, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_rise_by_rounding_alone_is_none(
    units: float, restored: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F may rise by its last digits, 256 units of rounding at most, where x has come to rest."""
    V, t = textbook.table("least squares", N)
    problem = Problem(LeastSquares(V.astype(dtype), t.astype(dtype)), CappedSimplex(16))
    run, engine, state = begin(svrg(b=6, q=0.2, finish=False), problem)
    evaluate = engine.evaluate
    monkeypatch.setattr(engine, "evaluate", lambda x: evaluate(x) * (1 + units * float(np.finfo(dtype).eps)))
    state.moved = True  # as if x-steps had led back to where they began
    run.w_step(engine, state)
    assert state.record.restored is restored


def test_a_method_without_duals_has_none_after_a_restore() -> None:
    """sg with a guarded step: after a step is taken back, the estimator is still the plain minibatch gradient."""
    problem, _ = make("least squares", CappedSimplex(16), Zero(), N)
    run, engine, state = begin(sg(b=6, q=0.3, step=Auto()), problem)
    restored = 0
    for _ in range(100):
        if state.record is not None:
            state.gamma *= 50.0
        run.advance(engine, state)
        restored += state.record is not None and state.record.restored
        assert not np.any(state.y_mean)
    assert restored > 0


RESUMED = {
    **{name: COUNTED[name][:2] for name in COUNTED},
    "svrg-auto": (svrg(b=7, q=0.2), TRIMMED),
    "saga-auto": (saga(b=7, q=0.2), TRIMMED),
    "svrg-lbfgs": (svrg(b=7, q=0.2, metric="lbfgs"), WEIGHTED),
    "joint": (prox_gradient(step=0.1), TRIMMED),
}


def resumed(run: Run, engine: LocalEngine, state: State) -> tuple[LocalEngine, State]:
    """A fresh engine and state, from what a checkpoint holds: w and the state without y."""
    fresh, other = LocalEngine(engine.problem), deepcopy(state)
    fresh.set_weights(engine.weights)
    other.y_mean = None
    run.prepare(fresh)
    fresh.evaluate(other.x)
    renew(fresh, other)
    fresh.counts = deepcopy(engine.counts)
    return fresh, other


@pytest.mark.parametrize("name", [name for name in RESUMED if "prox_saga" not in name])
def test_resuming_at_a_w_step_changes_nothing(name: str) -> None:
    """Bit for bit."""
    method, problem = RESUMED[name]
    run, engine, state = begin(method, problem)
    tried = 0
    while tried < 3:
        run.advance(engine, state)
        if state.record is None or state.moved:
            continue
        tried += 1
        fresh, other = resumed(run, engine, state)
        for _ in range(8):
            run.advance(fresh, other)
            run.advance(engine, state)
            np.testing.assert_array_equal(other.x, state.x)
            np.testing.assert_array_equal(fresh.weights, engine.weights)


@pytest.mark.parametrize(
    "name",
    [name for name in RESUMED if "prox_saga" not in name],
)
def test_a_solve_that_is_stopped_and_resumed_gives_what_an_undisturbed_one_gives(name: str, tmp_path: Path) -> None:
    method, problem = RESUMED[name]
    options: dict[str, Any] = {"x0": point(problem), "max_passes": 25, "tol": 0.0}
    whole = solve(problem, method, **options)
    path, seen = tmp_path / "run.npz", [0]

    def stop_at_the_fourth(record: Any) -> bool:
        seen[0] += 1
        return seen[0] == 4

    solve(problem, method, **options, checkpoint=Checkpoint(path, every=0.0), callback=stop_at_the_fourth)
    again = solve(problem, method, **options, checkpoint=Checkpoint(path, every=1e9))
    np.testing.assert_array_equal(again.x, whole.x)
    np.testing.assert_array_equal(again.w, whole.w)
    assert again.counts == whole.counts
    np.testing.assert_array_equal(again.trace("objective"), whole.trace("objective"))


def test_prox_saga_which_never_renews_its_duals_refuses_a_checkpoint(tmp_path: Path) -> None:
    """A checkpoint leaves y out; without a w-step y is no function of (w, x)."""
    with pytest.raises(ValueError, match="checkpoint"):
        solve(ONES, prox_saga(b=7, step=0.05), checkpoint=tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


def test_the_period_of_prox_saga_is_n_draws() -> None:
    records = [state.record is not None for _, _, state in stepping(prox_saga(b=7, step=0.05), ONES, 30)]
    period = ceil(N / 7) + 1
    assert records == [(k + 1) % period == 0 for k in range(30)]


def test_an_evaluation_changes_neither_x_nor_w_nor_y() -> None:
    problem, twin = make("logistic", AllOnes(), Ridge(0.1), N)
    run, engine, state = begin(prox_saga(b=7, step=0.3), problem)
    y = twin.wG(np.ones(N), to_numpy(state.x))
    for k in range(20):
        x = to_numpy(state.x)
        new = twin.wG(np.ones(N), x)
        if (k + 1) % 5 != 0:
            rows = twin.draws(3, k).rows(7)
            y[rows] = new[rows]
        run.advance(engine, state)
        np.testing.assert_allclose(state.y_mean, twin.mean(y), rtol=1e-12, atol=1e-14)
        if state.record is not None:
            np.testing.assert_array_equal(state.x, x)
            F = np.mean(twin.f(x)) + 0.05 * x @ x
            assert state.record.objective == pytest.approx(F, rel=1e-12)
            assert state.record.stationarity_w == 0.0


# ---- the L-BFGS metric ----


def test_lbfgs_pairs_are_secants_of_the_minibatch_differences() -> None:
    """s = Σ(xᵏ − x̃) and y = Σ 1/b Σ_{i∈I} wᵢ(∇fᵢ(xᵏ) − ∇fᵢ(x̃)) + α s over the x-steps between two w-steps."""
    problem, twin = make("least squares", CappedSimplex(15.2), Ridge(0.2), N)
    run, engine, state = begin(svrg(b=8, q=0.2, step=0.02, metric="lbfgs"), problem)
    anchor, sums, pairs = to_numpy(state.x), np.zeros((2, 3)), 0
    for _ in range(60):
        w, x, k = to_numpy(engine.weights), to_numpy(state.x), state.k
        run.advance(engine, state)
        if state.record is None:
            draws = twin.draws(3, k)
            draws.uniform()
            here, there = twin.wG(w, x), twin.wG(w, anchor)
            sums += [x - anchor, sum(here[i] - there[i] for i in draws.rows(8)) / 8]
        else:
            if np.any(sums):
                s, y = sums[0], sums[1] + 0.2 * sums[0]
                assert s @ y > 0
                np.testing.assert_allclose(state.metric.pairs[-1], [s, y], rtol=1e-9, atol=1e-12)
                pairs += 1
            anchor, sums = x, np.zeros((2, 3))
    assert pairs >= 4


def test_lbfgs_with_one_pair_is_the_bfgs_formula() -> None:
    """M⁻¹ = (I − ρsyᵀ)(sᵀy/yᵀy)(I − ρysᵀ) + ρssᵀ."""
    problem, twin = make("least squares", CappedSimplex(15.2), Ridge(0.2), N)
    run, engine, state = begin(svrg(b=8, q=0.2, step=0.02, metric="lbfgs"), problem)
    while state.metric.pairs is None:
        run.advance(engine, state)
    s, y = state.metric.pairs[0]
    rho = 1 / (s @ y)
    left = np.eye(3) - rho * np.outer(s, y)
    inverse = left @ left.T * (s @ y) / (y @ y) + rho * np.outer(s, s)
    x, w = to_numpy(state.x), to_numpy(engine.weights)
    while state.record is not None:  # the next x-step is the first after its w-step: its gradient is the full one
        x, w = to_numpy(state.x), to_numpy(engine.weights)
        run.advance(engine, state)
        if state.metric.pairs is not None and len(state.metric.pairs) > 1:
            pytest.fail("another pair came first; choose another seed")
    g = twin.mean(twin.wG(w, x)) + 0.2 * x
    np.testing.assert_allclose(state.x, x - 0.02 * inverse @ g, rtol=1e-10)


# ---- a badly scaled least-squares problem, as a whole ----


def test_auto_survives_features_of_very_different_scales() -> None:
    V, t = textbook.table("least squares", 200)
    problem = Problem(LeastSquares(V * [1e-3, 1.0, 1e3], t), CappedSimplex(150))
    run, engine, state = begin(svrg(finish=False), problem)
    records = []
    for _ in range(600):
        run.advance(engine, state)
        if state.record is not None:
            records.append(state.record.objective)
    assert np.all(np.isfinite(records))
    assert records[-1] < 0.02 * records[0]
    assert np.isclose(records[-1], min(records), rtol=1e-2)


@pytest.mark.parametrize(("cosine", "kept"), [(-1.0, False), (0.0, False), (1e-9, False), (1e-7, True), (1.0, True)])
def test_a_secant_of_hardly_positive_curvature_is_dropped(cosine: float, kept: bool) -> None:
    """⟨s, y⟩ must be clearly positive, more than 1e-8 of ‖s‖‖y‖: its inverse scales the metric."""
    problem, _ = make("least squares", CappedSimplex(15.2), Zero(), N)
    state = State(x=np.zeros(2), anchor=np.zeros(2))
    for length in (1e-9, 1.0, 1e9):
        s, y = length * np.array([1.0, 0.0]), np.array([cosine, np.sqrt(1 - cosine**2)]) / length
        state.metric = MetricMemory(sums=np.stack([s, y]))
        LBFGS().learn(LocalEngine(problem), state, 0.0)
        assert (state.metric.pairs is not None) == kept
