"""The duals y: the estimator is unbiased, the running mean is exact, the representations agree, nothing leaks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import textbook
from textbook import given, groups, iterates, make, point
from trimlearn._utils.arrays import to_numpy
from trimlearn.engines import LocalEngine
from trimlearn.losses import LeastSquares, Logistic, Softmax
from trimlearn.losses.base import Loss
from trimlearn.problem import Problem
from trimlearn.regularizers import L1, Ridge, Sphere, Zero
from trimlearn.smart import SMART, page, palm, prox_saga, saga, svrg, variable_projection
from trimlearn.smart.duals import DUALS, GradientTable, ResidualTable, Snapshot, choose_duals
from trimlearn.smart.method import Method
from trimlearn.smart.move_laws import Coin, Every
from trimlearn.smart.row_laws import ALL, Everything, Independent, Nothing, Recipe, WithReplacement
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex

NOTHING = Recipe(Nothing())
TABLES = ["residuals", "gradients"]
EXACT = [*TABLES, "snapshot"]
KINDS = ["least squares", "logistic", "softmax"]

# ---- the estimator ----


def tiny(kind: str, n: int, s: Any, seed: int) -> tuple[LocalEngine, textbook.Twin]:
    """n rows, random weights w among which one is 0."""
    problem, twin = make(kind, AllOnes(), Zero(), n, s)
    engine = LocalEngine(problem)
    w = np.random.default_rng(seed).random(n)
    w[seed % n] = 0.0
    engine.set_weights(w)
    return engine, twin


def stir(engine: LocalEngine, duals: str, seed: int) -> None:
    """Leave y at several old x, where the representation can."""
    problem = engine.problem
    engine.use_duals(duals)
    engine.evaluate(point(problem, seed))
    if DUALS[duals].refreshes:
        engine.difference(point(problem, seed + 1), given(np.empty(0, dtype=np.int64)), given([0, 2, 2]))
        engine.difference(point(problem, seed + 2), given([1, 1]), given([1]))


@pytest.mark.parametrize("s", [None, (2.0, 0.5, 1.0, 3.0), (1.0, 0.0, 2.5, 1.0)], ids=["plain", "weighted", "removed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("duals", EXACT)
def test_the_estimator_is_unbiased(duals: str, kind: str, s: Any) -> None:
    """The mean of mean(y) + difference over EVERY I of {1..n}^b, each with its probability, is the full gradient."""
    for n, b in ((3, 1), (3, 3), (4, 2)):
        weights = None if s is None else np.array(s[:n])
        engine, twin = tiny(kind, n, weights, seed=n + b)
        stir(engine, duals, seed=10 * n + b)
        x = point(engine.problem, 99)
        chance = twin.s / twin.s.sum()
        expected = sum(
            prod(chance[list(J)]) * engine.difference(x, given(J), NOTHING)[0] for J in product(range(n), repeat=b)
        )
        full = twin.mean(twin.wG(to_numpy(engine.weights), x))
        np.testing.assert_allclose(engine.mean_duals() + expected, full, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("duals", EXACT)
def test_one_estimate_is_its_formula_and_not_just_its_mean(duals: str) -> None:
    """Duplicates count every time they are drawn, rows of weight 0 count as 0."""
    engine, twin = tiny("softmax", 4, np.array([1.0, 2.0, 0.5, 1.5]), seed=1)
    engine.use_duals(duals)
    old, x = point(engine.problem, 5), point(engine.problem, 6)
    engine.evaluate(old)
    w = to_numpy(engine.weights)
    new, y = twin.wG(w, x), twin.wG(w, old)
    for batch in ([0], [1, 1, 1], [3, 1, 0, 3], [2, 2, 1, 0, 0]):
        found, change = engine.difference(x, given(batch), NOTHING)
        np.testing.assert_allclose(found, sum(new[i] - y[i] for i in batch) / len(batch), rtol=1e-12, atol=1e-14)
        assert not np.any(change)


def test_plain_minibatches_are_unbiased_too() -> None:
    engine, twin = tiny("logistic", 4, np.array([2.0, 0.5, 1.0, 3.0]), seed=2)
    engine.use_duals("none")
    x = point(engine.problem, 3)
    engine.evaluate(point(engine.problem, 4))
    chance = twin.s / twin.s.sum()
    mean = sum(prod(chance[list(J)]) * engine.difference(x, given(J), NOTHING)[0] for J in product(range(4), repeat=2))
    np.testing.assert_allclose(mean, twin.mean(twin.wG(to_numpy(engine.weights), x)), rtol=1e-12)
    assert not engine.keeps_duals


def test_page_keeps_its_error_on_average() -> None:
    """E[gᵏ⁺¹ − ∇F(xᵏ⁺¹)] = gᵏ − ∇F(xᵏ): the difference estimates the change of the full gradient."""
    engine, twin = tiny("softmax", 3, np.array([1.0, 2.0, 0.5]), seed=0)
    old, x = point(engine.problem, 7), point(engine.problem, 8)
    chance, w = twin.s / twin.s.sum(), to_numpy(engine.weights)
    mean: Any = 0.0
    for J in product(range(3), repeat=2):
        engine.use_duals("recursive")
        engine.evaluate(old)
        mean = mean + prod(chance[list(J)]) * engine.difference(x, given(J), NOTHING)[0]
    np.testing.assert_allclose(mean, twin.mean(twin.wG(w, x) - twin.wG(w, old)), rtol=1e-12, atol=1e-14)


# ---- the running mean ----


@pytest.mark.parametrize("s", [None, np.array([1, 2, 0, 1, 3, 1] * 3) + 0.0], ids=["plain", "weighted"])
@pytest.mark.parametrize("duals", TABLES)
def test_the_running_mean_is_exact_after_1000_saga_steps(duals: str, s: Any) -> None:
    """b = n draws with replacement: a third of them are duplicates. No w-step comes to the rescue."""
    n = 18
    problem, twin = make("least squares", CappedSimplex(11.5), L1(0.01), n, s)
    engine = LocalEngine(problem)
    w = problem.r1.minimise(twin.f(point(problem)), problem.s)
    engine.set_weights(w)
    run = saga(b=n, q=1e-9, step=0.05, duals=duals).bind(problem, 5)
    state = run.init(engine, point(problem))
    y = twin.wG(w, to_numpy(state.x))
    duplicates = 0
    for _ in range(1000):
        batch, moved = twin.draws(5, state.k), state.moved
        assert batch.uniform() > 1e-9
        rows = batch.rows(n)
        duplicates += n - len(set(rows))
        if moved:
            y[rows] = twin.wG(w, to_numpy(state.x))[rows]
        run.advance(engine, state)
    assert duplicates > 3000
    scale = np.abs(y).max()
    np.testing.assert_allclose(state.y_mean, twin.mean(y), rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(state.y_mean, engine.mean_duals(), rtol=0, atol=1e-13 * scale)


@pytest.mark.parametrize("duals", TABLES)
def test_a_row_drawn_twice_changes_the_mean_once(duals: str) -> None:
    engine, twin = tiny("softmax", 4, np.array([1.0, 2.0, 0.5, 1.5]), seed=0)
    engine.use_duals(duals)
    old, x = point(engine.problem, 5), point(engine.problem, 6)
    engine.evaluate(old)
    w = to_numpy(engine.weights)
    before = engine.mean_duals()
    batch = np.array([1, 3, 1, 1, 0])
    recipe = given(batch)
    difference, change = engine.difference(x, recipe, recipe)
    y = twin.wG(w, old)
    new = twin.wG(w, x)
    np.testing.assert_allclose(difference, sum(new[i] - y[i] for i in batch) / 5, rtol=1e-12, atol=1e-14)
    y[[1, 3]] = new[[1, 3]]  # row 0 has weight 0
    np.testing.assert_allclose(before + change, twin.mean(y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(engine.mean_duals(), twin.mean(y), rtol=1e-12, atol=1e-14)
    again, nothing = engine.difference(x, recipe, recipe)
    assert not np.any(again) and not np.any(nothing)


@pytest.mark.parametrize("duals", TABLES)
def test_D_may_be_anything(duals: str) -> None:
    """Everything, rows outside I, rows of weight 0 only, no row: the mean follows each of them."""
    engine, twin = tiny("least squares", 6, None, seed=2)
    engine.use_duals(duals)
    w = to_numpy(engine.weights)
    engine.evaluate(point(engine.problem, 0))
    y = twin.wG(w, point(engine.problem, 0))
    mean = engine.mean_duals()
    batch = np.array([4, 1, 4])
    recipe = given(batch)
    for i, refresh in enumerate([given([0, 5, 0]), given([2, 2]), NOTHING, recipe, ALL, given([1, 4])]):
        x = point(engine.problem, 10 + i)
        new = twin.wG(w, x)
        difference, change = engine.difference(x, recipe, refresh)
        np.testing.assert_allclose(difference, sum(new[j] - y[j] for j in batch) / 3, rtol=1e-12, atol=1e-14)
        D = refresh.rows(6)
        y[D] = new[D]
        mean = mean + change
        np.testing.assert_allclose(mean, twin.mean(y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("duals", TABLES)
def test_a_batch_of_weight_0_alone_changes_nothing(duals: str) -> None:
    engine, _ = tiny("softmax", 4, None, seed=2)
    engine.use_duals(duals)
    engine.evaluate(point(engine.problem, 0))
    before = engine.mean_duals()
    batch = given([2, 2, 2])  # w₂ = 0
    for refresh in (NOTHING, batch):
        difference, change = engine.difference(point(engine.problem, 1), batch, refresh)
        assert difference.shape == change.shape == engine.problem.loss.x_shape
        assert not np.any(difference) and not np.any(change)
    np.testing.assert_array_equal(engine.mean_duals(), before)


# ---- one y, three representations ----


def runs(method: Any, problem: Problem, duals: list[str], **options: Any) -> Iterator[Any]:
    yield from zip(*[iterates(method(duals=d, **options), problem, point(problem)) for d in duals], strict=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("method", "options", "duals"),
    [
        (svrg, {"b": 5, "q": 0.2, "step": 0.1}, EXACT),
        (svrg, {"b": 5, "q": 0.2, "step": 0.05, "tau": 6.0, "momentum": 0.7}, EXACT),
        (svrg, {"b": 5, "q": 0.2, "finish": False}, EXACT),  # auto
        (saga, {"b": 5, "q": 0.2, "step": 0.1}, TABLES),
        (saga, {"b": 5, "q": 0.2, "finish": False}, TABLES),
        (palm, {"step": 0.1, "cyclic": False}, TABLES),
    ],
    ids=["svrg", "svrg-tau", "svrg-auto", "saga", "saga-auto", "palm"],
)
def test_the_representations_agree(method: Any, options: dict[str, Any], duals: list[str], kind: str) -> None:
    for r1, r2, s in (
        (CappedSimplex(17.4), Ridge(0.1), None),
        (groups(24, 15.0), Sphere(1.5), None) if "momentum" not in options else (groups(24, 15.0), L1(0.01), None),
        (CappedSimplex(20.5), L1(0.01), np.array([1, 2, 0, 1, 3, 1] * 4)),
    ):
        problem, _ = make(kind, r1, r2, 24, s)
        for k, (first, *others) in zip(range(25), runs(method, problem, duals, **options), strict=False):
            for w, x in others:
                np.testing.assert_allclose(w, first[0], rtol=1e-10, atol=1e-10, err_msg=f"w at iteration {k}")
                np.testing.assert_allclose(x, first[1], rtol=1e-10, atol=1e-10, err_msg=f"x at iteration {k}")


def test_prox_saga_representations_agree() -> None:
    problem, _ = make("softmax", AllOnes(), Ridge(0.1), 24)
    for refresh in ("same", "independent"):
        method = lambda duals, refresh=refresh: prox_saga(b=5, step=0.1, refresh=refresh, duals=duals)  # noqa: E731
        for _, (a, b) in zip(range(30), runs(method, problem, TABLES), strict=False):
            np.testing.assert_allclose(a[1], b[1], rtol=1e-12, atol=1e-12)


def test_a_loss_without_predictions_takes_the_snapshot() -> None:
    problem, _ = make("least squares", CappedSimplex(5), Zero(), 8)
    assert choose_duals(None, problem.loss, refreshes=True) == "residuals"
    for kind, cls in (("residuals", ResidualTable), ("gradients", GradientTable), ("snapshot", Snapshot)):
        assert DUALS[choose_duals(kind, problem.loss, refreshes=False)] is cls
    with pytest.raises(ValueError, match="duals must be one of 'residuals', 'gradients', 'snapshot'"):
        choose_duals("table", problem.loss, refreshes=False)
    with pytest.raises(ValueError, match="cannot refresh"):
        DUALS["snapshot"](problem.loss).refresh(point(problem), np.ones(1), np.array([0]))


def test_the_residual_table_is_small() -> None:
    """K numbers per row, never p·K."""
    V, t = textbook.table("softmax", 30, p=7)
    loss = Softmax(V, t)
    assert DUALS["residuals"](loss).table.shape == (30, 3)
    assert DUALS["gradients"](loss).table.shape == (30, 7, 3)
    assert DUALS["residuals"](Logistic(V, t > 0)).table.shape == (30, 1)


# ---- a row of weight 0 cannot leak ----

# Finite data, but predictions inf − inf = NaN, infinite residuals and infinite losses.
POISON = np.array([1e308, -1e308, 1e308])
SILENT = {
    "saga": saga(b=6, q=0.2, step=0.1),
    "saga-gradients": saga(b=6, q=0.2, step=0.1, duals="gradients"),
    "saga-tau": saga(b=6, q=0.2, step=0.1, tau=9.0),
    "svrg": svrg(b=6, q=0.2, step=0.1),
    "svrg-gradients": svrg(b=6, q=0.2, step=0.1, duals="gradients"),
    "svrg-snapshot": svrg(b=6, q=0.2, step=0.1, duals="snapshot"),
    "svrg-auto": svrg(b=6, q=0.2, metric="euclidean"),
    "svrg-lbfgs": svrg(b=6, q=0.2, metric="lbfgs"),
    "svrg-diagonal": svrg(b=6, q=0.2, step=0.1, metric="diagonal"),
    "page": page(b=6, q=0.2, step=0.1),
    "palm": palm(step=0.1),
    "palm-coin": palm(step=0.1, cyclic=False),
    "palm-coin-gradients": palm(step=0.1, cyclic=False, duals="gradients"),
    "independent-D": SMART(WithReplacement(6), Coin(0.2), Independent(0.4), step=0.1),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_row_of_weight_0_has_no_influence_even_where_its_loss_is_not_a_number(name: str) -> None:
    method: Method = SILENT[name]
    V, t = textbook.table("least squares", 24)
    bad = [3, 11, 12]
    results = []
    for row, target in ((POISON, 0.0), (np.zeros(3), 1e6)):
        V[bad], t[bad] = row, target
        problem = Problem(LeastSquares(V.copy(), t.copy()), CappedSimplex(16.5), Ridge(0.1))
        w = np.where(np.isin(np.arange(24), bad), 0.0, 16.5 / 21)
        with np.errstate(all="ignore"):
            run = iterates(method, problem, 20 + point(problem), w=w)
            results.append([next(run) for _ in range(40)])
    for (w, x), (w_tame, x_tame) in zip(*results, strict=True):
        np.testing.assert_array_equal(w[bad], 0.0)
        np.testing.assert_allclose(w, w_tame, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(x, x_tame, rtol=1e-12, atol=1e-12)


def test_the_diagonal_metric_does_not_see_large_entries_in_rows_of_weight_0() -> None:
    """float32: the fourth power of 1e10 is infinite, and 0·inf is NaN."""
    V, t = textbook.table("least squares", 24)
    w = np.full(24, 16 / 23)
    w[5] = 0.0
    found = []
    for entry in (1e10, 0.0):
        V[5] = entry * np.array([1, -1, 1])
        problem = Problem(LeastSquares(V.astype(np.float32), t.astype(np.float32)), CappedSimplex(16))
        engine = LocalEngine(problem)
        engine.set_weights(w)
        with np.errstate(all="ignore"):
            state = svrg(b=6, step=0.1, metric="diagonal").bind(problem, 0).init(engine, point(problem))
        found.append(state.metric.inverse)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


# ---- any loss ----


class Plain(Loss):
    """A loss that hides its linear predictions: values and weighted sums of gradients are all it gives."""

    def __init__(self, inner: Loss) -> None:
        self.n, self.x_shape, self.like, self._inner = inner.n, inner.x_shape, inner.like, inner

    def values(self, x: Any, rows: Any = None) -> Any:
        return self._inner.values(x, rows)

    def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
        return self._inner.gradient(x, c, rows)

    def lipschitz(self) -> Any:
        return self._inner.lipschitz()


FULL: dict[str, Method] = {
    "palm": palm(step=0.1),
    "palm tau": palm(step=0.1, tau=8.0),
    "palm coin": palm(step=0.1, tau=8.0, cyclic=False),
    "palm theory": palm(step="theory", tau="theory", cyclic=False),
    "palm momentum": palm(step=0.1, momentum=0.5, cyclic=False),
    "variable projection": variable_projection(step=0.1),
    "variable projection coin": variable_projection(step=0.1, cyclic=False),
}


@pytest.mark.parametrize("s", [None, np.arange(20) % 3], ids=["plain", "weighted"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FULL)
def test_full_gradients_need_no_table(name: str, kind: str, s: Any) -> None:
    """palm and variable_projection take any loss: the same iterates at the same cost as with linear predictions."""
    known, _ = make(kind, CappedSimplex(13.3), Ridge(0.05), 20, s)
    hidden = Problem(Plain(known.loss), CappedSimplex(13.3), Ridge(0.05), s)
    runs = []
    for problem in (known, hidden):
        engine, x = LocalEngine(problem), point(problem)
        run = FULL[name].bind(problem, 3)
        state, seen = run.init(engine, x), []
        for _ in range(40):
            run.advance(engine, state)
            seen.append(np.append(to_numpy(state.x).ravel(), to_numpy(engine.weights)))
        run.finish(engine, state)
        runs.append((np.array(seen), engine.counts))
    np.testing.assert_allclose(runs[0][0], runs[1][0], rtol=1e-9, atol=1e-12)
    assert runs[0][1] == runs[1][1]


@pytest.mark.parametrize("duals", ["total", "gradients"])
def test_an_evaluation_between_full_gradients_changes_nothing(duals: str) -> None:
    """Without w-steps: the mean of y is summed afresh where every y was renewed last, which is not where x is."""
    known, twin = make("logistic", AllOnes(), Ridge(0.05), 20)
    problem = Problem(Plain(known.loss), AllOnes(), Ridge(0.05))
    method = SMART(Everything(), Every(2), Everything(), step=0.1, duals=duals)
    engine, x = LocalEngine(problem), point(problem)
    run = method.bind(problem, 3)
    state = run.init(engine, x)
    for k in range(12):
        run.advance(engine, state)
        if k % 3 < 2:
            x = twin.prox(x - 0.1 * twin.mean(twin.wG(np.ones(20), x)), 0.1)
        np.testing.assert_allclose(state.x, x, rtol=1e-9)


@pytest.mark.parametrize("method", [palm(), variable_projection(), palm(tau=50.0, cyclic=False)])
def test_full_gradients_with_automatic_steps(method: Method) -> None:
    known, _ = make("logistic", CappedSimplex(16.0), Ridge(0.05), 20)
    best = solve(known, start=None).objective
    solution = solve(Problem(Plain(known.loss), CappedSimplex(16.0), Ridge(0.05)), method, start=None, max_passes=300)
    assert solution.objective == pytest.approx(best, rel=1e-3)


def test_a_total_is_for_full_gradients_only() -> None:
    problem, _ = make("logistic", CappedSimplex(13.3), Zero(), 20)
    with pytest.raises(ValueError, match="duals='total' is for full gradients"):
        svrg(duals="total").bind(problem, 0)
    with pytest.raises(ValueError, match="cannot refresh single rows"):
        saga().bind(Problem(Plain(problem.loss), CappedSimplex(13.3)), 0)
