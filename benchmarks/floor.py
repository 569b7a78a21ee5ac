"""floor: what a SMART step costs beyond the matrix products that no method can do without, in time and in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import Digits, Result, Table, Target, Task, Timing, interleave
from benchmarks.floor_bench import Bench
from benchmarks.floor_cases import CSR_DATA, binary, csr
from trimlearn import Problem, solve
from trimlearn.losses import Softmax
from trimlearn.regularizers import Ridge
from trimlearn.smart import SMART, saga, svrg
from trimlearn.weights import CappedSimplex

__all__ = ["run"]

X_STEPS, W_STEP = 0.8, 0.8  # times the two products: reading each row once instead of twice leaves that much
SPARSE = 1.0  # times the two products of SciPy
LOGISTIC = 2.0  # times scikit-learn's plain fit
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
    small = data.name != "MNIST"
    sparse, logistic = csr(repetitions, small), binary(small)
    passed = "a pass of x-steps / the two products"
    targets += [Target(f"CSR, {name}: {passed}", timing.ratio, SPARSE) for name, timing in sparse.items()]
    targets.append(Target("binary logistic to the F of alternating / a plain fit", logistic.ratio, LOGISTIC))
    return Result(
        benchmark="floor",
        settings={"data": data.name, "n": n, "p": p, "K": K, "b": b, "repetitions": repetitions},
        targets=[target for name, timings in timed.items() for target in _targets(name, timings)] + targets,
        tables=[_table(name, timings) for name, timings in timed.items()]
        + [Table(f"a pass of x-steps over CSR: {CSR_DATA}", COLUMNS, [t.row(name) for name, t in sparse.items()])]
        + [logistic.table, memory],
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

    problem, some = _problem(data, 1.0), _problem(data, KEPT)
    whole, trimmed, table = Bench(problem, PLAIN_SVRG), Bench(some, PLAIN_SVRG), Bench(problem, PLAIN_SAGA)
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
