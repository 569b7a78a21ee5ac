"""cores: x-steps and w-steps beside the two matrix products, on one thread, two, four, … up to all cores.

Beside each stands what does not read rows: of x-steps the draws, the move of x, the sums over pieces and the threads'
waiting for one another, timed with all weights 0; of a w-step the new weights. "by Amdahl's law" is what x-steps would
take if the reading of rows, and nothing else, were divided by the threads.
"""

from __future__ import annotations

import os
from math import inf

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import Digits, Result, Table, Target, Timing, interleave, say
from benchmarks.floor import W_STEP, X_STEPS
from benchmarks.floor_bench import Bench
from trimlearn import Problem
from trimlearn._utils.threads import team
from trimlearn.losses import Softmax
from trimlearn.regularizers import Ridge
from trimlearn.smart import svrg
from trimlearn.weights import CappedSimplex

__all__ = ["run"]

X_STEPS_ON_MANY = 1.5  # times the two products where there are more than FEW cores: asked for on 16
FEW = 2  # cores up to which x-steps are held to the floor's limit
KEPT = 0.7  # h/n: some rows are trimmed, so that weights have to be found
READ, UNREAD, RENEWAL, WEIGHTS = "x-steps", "x-steps without rows", "w-step", "weights alone"
COLUMNS = ["threads", "products, ms", "x-steps, ms", "× products", "without rows, ms", "by Amdahl's law, ms"]
COLUMNS += ["w-step, ms", "× products", "weights alone, ms"]


def run(data: Digits, repetitions: int = 5) -> Result:
    """A pass of x-steps and a w-step on more and more threads."""
    n, p = data.V.shape
    counts = [2**k for k in range(_cores().bit_length())]
    found = {}
    for threads in counts:
        say(f"cores: {threads} of {_cores()}")
        with threadpool_limits(threads, user_api="blas"):
            found[threads] = measure(data, repetitions)
    most = counts[-1]
    limit = X_STEPS if most <= FEW else X_STEPS_ON_MANY
    return Result(
        benchmark="cores",
        settings={"data": data.name, "n": n, "p": p, "repetitions": repetitions},
        targets=[
            Target(f"a pass of x-steps / the two products, {most} threads", found[most][READ].ratio, limit),
            Target(f"a w-step / the two products, {most} threads", found[most][RENEWAL].ratio, W_STEP),
        ],
        tables=[Table("a pass of x-steps and a w-step by threads: medians", COLUMNS, _rows(found))],
    )


def measure(data: Digits, repetitions: int) -> dict[str, Timing]:
    """Seconds of all four, on the threads that BLAS has here."""
    n, K = len(data.t), int(data.t.max()) + 1
    rng = np.random.default_rng(0)
    X, R = (rng.standard_normal((rows, K)).astype(data.V.dtype) for rows in data.V.shape[::-1])

    def products() -> None:
        data.V @ X
        data.V.T @ R

    def bench() -> Bench:
        problem = Problem(Softmax(data.V, data.t), CappedSimplex(KEPT * n), Ridge(0.01 / n))
        return Bench(problem, svrg(finish=False))

    def evaluated() -> None:
        trimmed.engine.evaluate(trimmed.state().x)

    @team()
    def weigh(_: None) -> None:
        trimmed.engine.reweigh(inf)
        trimmed.engine.mean_duals()

    whole, empty, trimmed = bench(), bench(), bench()
    whole.engine.set_weights(np.ones(n))
    empty.engine.set_weights(np.zeros(n))
    tasks = {
        READ: (whole.state, whole.x_steps),
        UNREAD: (empty.state, empty.x_steps),
        RENEWAL: (trimmed.state, trimmed.renewal),
        WEIGHTS: (evaluated, weigh),
    }
    return interleave(products, tasks, repetitions)


def _rows(found: dict[int, dict[str, Timing]]) -> list[list[object]]:
    alone = {name: _ms(timing.seconds) for name, timing in found[1].items()}
    rows: list[list[object]] = []
    for threads, timings in found.items():
        ms = {name: _ms(timing.seconds) for name, timing in timings.items()}
        products = _ms(np.concatenate([timing.reference for timing in timings.values()]))
        ideal = (alone[READ] - alone[UNREAD]) / threads + ms[UNREAD]
        steps = [ms[READ], timings[READ].ratio, ms[UNREAD], ideal]
        rows.append([threads, products, *steps, ms[RENEWAL], timings[RENEWAL].ratio, ms[WEIGHTS]])
    return rows


def _ms(seconds: np.ndarray) -> float:
    return 1e3 * float(np.median(seconds))


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
