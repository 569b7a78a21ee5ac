"""floor: what a SMART step costs beyond the matrix products that no method can do without, in time and in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import Digits, Result, Table, Target, Task, Timing, interleave
from trimlearn import Problem, solve
from trimlearn._utils.threads import team
from trimlearn.engines import LocalEngine
from trimlearn.losses import Softmax
from trimlearn.regularizers import Ridge
from trimlearn.smart import SMART, saga, svrg
from trimlearn.smart.draws import Coin, Given, Recipe
from trimlearn.smart.method import State
from trimlearn.weights import CappedSimplex

__all__ = ["run"]

X_STEPS, W_STEP = 1.5, 1.3  # times the two products
NEVER = 1e-300  # the chance of a w-step where x-steps alone are timed
KEPT = 0.7  # h/n where some rows are trimmed

PLAIN_SVRG, PLAIN_SAGA = svrg(finish=False), saga(finish=False)  # the steps of Algorithm 1 are what is timed
DRAWN, GIVEN, SAGA = "x-steps, svrg, with their draws", "x-steps, svrg, rows drawn before", "x-steps, saga, with draws"
RENEWAL, TRIMMED = "w-step", f"w-step, h = {KEPT} n"
COLUMNS = ["what", "ms", "× products: quartile 1", "median", "quartile 3", "best / best"]


def run(data: Digits, repetitions: int = 15, passes: float = 12) -> Result:
    """One pass of x-steps and one w-step against V·X and Vᵀ·R; memory against (2K + 6) numbers a row + 30·p·K."""
    n, p = data.V.shape
    K = int(data.t.max()) + 1
    b = PLAIN_SVRG.bind(_problem(data, 1.0), seed=0).b
    timed = {"all threads": measure(data, repetitions)}
    with threadpool_limits(1, user_api="blas"):
        timed["one thread"] = measure(data, repetitions)
    memory, targets = _memory(data, K, passes)
    return Result(
        benchmark="floor",
        settings={"data": data.name, "n": n, "p": p, "K": K, "b": b, "repetitions": repetitions},
        targets=[target for name, timings in timed.items() for target in _targets(name, timings)] + targets,
        tables=[_table(name, timings) for name, timings in timed.items()] + [memory],
    )


def _targets(threads: str, timings: dict[str, Timing]) -> list[Target]:
    return [
        Target(f"one pass of x-steps / the two products, {threads}", timings[DRAWN].ratio, X_STEPS),
        Target(f"one w-step / the two products, {threads}", timings[RENEWAL].ratio, W_STEP),
    ]


def _table(threads: str, timings: dict[str, Timing]) -> Table:
    reference = 1e3 * float(np.median(np.concatenate([timing.reference for timing in timings.values()])))
    rows: list[list[Any]] = [["the two products V·X and Vᵀ·R", reference, 1.0, 1.0, 1.0, 1.0]]
    rows += [timing.row(name) for name, timing in timings.items()]
    return Table(f"one pass of x-steps, and one w-step: {threads}", COLUMNS, rows)


def measure(data: Digits, repetitions: int) -> dict[str, Timing]:
    """Seconds of every row of the table."""
    V = data.V
    rng = np.random.default_rng(0)
    K = int(data.t.max()) + 1
    X = (0.01 * rng.standard_normal((V.shape[1], K))).astype(V.dtype)
    R = rng.standard_normal((len(V), K)).astype(V.dtype)

    def products() -> None:
        V @ X
        V.T @ R

    def other_order() -> None:
        V @ X
        R.T @ V

    whole, trimmed, table = Bench(data, PLAIN_SVRG, 1.0), Bench(data, PLAIN_SVRG, KEPT), Bench(data, PLAIN_SAGA, 1.0)
    tasks: dict[str, Task] = {
        "the products as V·X and Rᵀ·V": (_nothing, lambda _: other_order()),
        "plain NumPy with a gather": (whole.rows, lambda rows: _plain_numpy(data, X, R, rows)),
        GIVEN: (whole.state_and_rows, lambda given: whole.x_steps_by(*given)),
        DRAWN: (whole.state, whole.x_steps),
        SAGA: (table.state, table.x_steps),
        RENEWAL: (whole.state, whole.renewal),
        TRIMMED: (trimmed.state, trimmed.renewal),
        "w-step with the curvature probe of step='auto'": (whole.anchored, whole.w_step),
        "the column moments of its metric (w-steps 1, 4, 16, …)": (_nothing, lambda _: whole.moments()),
    }
    return interleave(products, tasks, repetitions)


def _nothing() -> None:
    return


def _plain_numpy(data: Digits, X: np.ndarray, table: np.ndarray, batches: list[np.ndarray]) -> None:
    """The x-steps of SVRG as one would first write them: beside it stands what the library's bookkeeping costs."""
    X, mean = X.copy(), np.zeros_like(X)
    for rows in batches:
        V = data.V[rows]
        Z = V @ X
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        P[np.arange(len(rows)), data.t[rows]] -= 1
        X -= 1e-3 * (V.T @ (P - table[rows]) / len(rows) + mean)


def _problem(data: Digits, kept: float) -> Problem:
    n = len(data.t)
    return Problem(Softmax(data.V, data.t), CappedSimplex(kept * n), Ridge(0.01 / n))


class Bench:
    """A run of SMART that stands still: each repetition begins at the same state, on the threads `solve` would use."""

    def __init__(self, data: Digits, method: SMART, kept: float) -> None:
        self.problem = _problem(data, kept)
        self.engine = LocalEngine(self.problem)
        self.algorithm = method.bind(self.problem, seed=0)
        self._forever = replace(self.algorithm, j=Coin(NEVER))
        self._at_anchor = self.algorithm.init(self.engine, self.problem.loss.start())
        self.algorithm.w_step(self.engine, self._at_anchor)  # w is now 0 or 1
        self._moved = replace(self._at_anchor)
        self._step(self._moved, 0)

    @property
    def steps(self) -> int:
        """How many x-steps make a pass."""
        return round(self.problem.n / self.algorithm.b)

    def state(self) -> State:
        """Where x-steps begin: x has left the last w-step's."""
        return replace(self._moved)

    def anchored(self) -> State:
        """Where a w-step evaluates, finds F as it was and takes nothing back; not one at which the metric learns."""
        return replace(self._at_anchor, w_steps=2, moved=True)

    def rows(self) -> list[np.ndarray]:
        """The rows of a pass."""
        return [self.algorithm.batch.draw(self.engine.draws(0, k)) for k in range(self.steps)]

    def state_and_rows(self) -> tuple[State, list[np.ndarray]]:
        """Both, made before the clock starts."""
        return self.state(), self.rows()

    @team()
    def x_steps(self, state: State) -> None:
        """One pass of x-steps, as `solve` has them taken."""
        end = state.k + self.steps
        while state.k < end:
            self._forever.advance(self.engine, state)

    @team()
    def x_steps_by(self, state: State, rows: list[np.ndarray]) -> None:
        """The same one by one, with rows that were drawn before."""
        for k in range(self.steps):
            self._step(state, k, rows[k])

    def _step(self, state: State, k: int, rows: np.ndarray | None = None) -> None:
        draws = self.engine.draws(0, k)
        batch = draws.recipe(self.algorithm.batch) if rows is None else Recipe(Given(rows))
        self.algorithm.x_step(self.engine, state, batch, draws.recipe(self.algorithm.refresh, batch))

    @team()
    def renewal(self, state: State) -> None:
        """What Algorithm 1 asks of a w-step: f, w, y."""
        self.engine.evaluate(state.x)
        self.engine.reweigh(inf)
        self.engine.mean_duals()

    @team()
    def w_step(self, state: State) -> None:
        """A w-step with all that is done on its occasion."""
        self.algorithm.w_step(self.engine, state)

    @team()
    def moments(self) -> None:
        """What the diagonal metric learns from."""
        self.engine.column_moments()


# -- memory ---------------------------------------------------------------------------------------------------------


def _memory(data: Digits, K: int, passes: float) -> tuple[Table, list[Target]]:
    n, p = data.V.shape
    size = int(data.V.itemsize)
    small = 30 * p * K
    allowed = size * ((2 * K + 6) * n + small)
    methods = {"svrg": PLAIN_SVRG, "saga": PLAIN_SAGA}
    peaks = {name: _solve_peak(data, method, passes) for name, method in methods.items()}
    whole = {
        "allowed: (2K + 6) numbers a row + 30·p·K": allowed,
        **{f"solve, {name}: peak": peak for name, peak in peaks.items()},
        "Problem(Softmax(V, t), …): peak": _peak(lambda: _problem(data, KEPT)),
        "V itself": data.V.nbytes,
    }
    rows = [[name, held / 1e6, (held / size - small) / n, held / allowed] for name, held in whole.items()]
    columns = ["what", "MB", "numbers a row, beyond 30·p·K", "of what is allowed"]
    copied = not np.shares_memory(_problem(data, KEPT).loss.linear.storage.V, data.V)  # type: ignore[attr-defined]
    return Table("memory beside V and t", columns, rows), [
        Target("solver memory beside the data / allowed", max(peaks.values()) / allowed, 1.0),
        Target("copies of V", float(copied), 0.0),
    ]


def _solve_peak(data: Digits, method: SMART, passes: float) -> int:
    problem = _problem(data, KEPT)  # a new one: a loss keeps the buffer its rows are gathered in
    return _peak(lambda: solve(problem, method, start=None, max_passes=passes, tol=0))


def _peak(task: Callable[[], Any]) -> int:
    """The most bytes that ``task`` held at a time."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        task()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
