"""Dask beside one process: what a round costs, what a pass costs, memory over many rounds, and a plan replayed.

``python -m benchmarks.scale_dask [rows]`` prints the figures; `print_figures` gives them to benchmarks/scale.py. Ratios
are of times in one run, interleaved, the least of several.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from json import dumps
from time import perf_counter
from typing import Any

import numpy as np

from trimlearn import Problem
from trimlearn._utils.threads import team
from trimlearn.engines import Engine, LocalEngine, plan
from trimlearn.engines.cluster.engine import DaskEngine
from trimlearn.losses import LeastSquares
from trimlearn.smart.row_laws import Nothing, Recipe, WithReplacement
from trimlearn.weights import CappedSimplex

COLUMNS = 20  # of the rows that passes are timed on
ROUNDS = 1000  # over which memory must not grow


def least(*tasks: Callable[[], Any], repeat: int) -> list[float]:
    """The least seconds of each task, taken in turn ``repeat`` times."""
    found = [float("inf")] * len(tasks)
    for _ in range(repeat):
        for i, task in enumerate(tasks):
            began = perf_counter()
            task()
            found[i] = min(found[i], perf_counter() - began)
    return found


def made_up(n: int, p: int = COLUMNS) -> Problem:
    """Least squares with a tenth of gross errors, in float32."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((n, p), dtype=np.float32)
    t = V @ np.arange(1, p + 1, dtype=np.float32) + rng.standard_normal(n, dtype=np.float32)
    t[: n // 10] += 50
    return Problem(LeastSquares(V, t), CappedSimplex(0.8 * n))


def empty(shard: Any) -> None:
    """A task that does nothing."""


def round_trip(client: Any, engine: DaskEngine) -> Callable[[], None]:
    """One empty submit-and-gather: a task for each worker, and all replies here."""
    shards, homes = engine._shards, engine.placed.workers.addresses

    def once() -> None:
        client.gather(
            [
                client.submit(empty, s, workers=[a], allow_other_workers=True, pure=False)
                for s, a in zip(shards, homes, strict=True)
            ]
        )

    return once


def overhead(client: Any, repeat: int = 60) -> tuple[float, float]:
    """Seconds of an empty submit-and-gather, and of an engine's round on next to no rows, x included."""
    problem = made_up(200)
    engine = DaskEngine.of(problem, client)
    x = problem.loss.start()
    engine.evaluate(x)
    batch = Recipe(WithReplacement(20))
    trip, step = least(
        round_trip(client, engine), lambda: engine.difference(x, batch, Recipe(Nothing())), repeat=repeat
    )
    engine.close()
    return trip, step


def a_pass(engine: Engine, b: int, x: np.ndarray) -> None:
    """A w-step and the x-steps that belong to it, n rows drawn in all."""
    engine.evaluate(x)
    engine.reweigh(np.inf)
    engine.mean_duals()
    for k in range(max(1, engine.problem.n // b)):
        engine.difference(x + np.float32(1e-3), Recipe(WithReplacement(b), 0, k), Recipe(Nothing()))


def passes(client: Any, n: int, repeat: int = 3) -> dict[str, float]:
    """Seconds of a pass in one process and on the workers with the same b, of a step, and of a round trip."""
    problem = made_up(n)
    engine, local = DaskEngine.of(problem, client), LocalEngine(problem)
    b, x = engine.batch_size(), problem.loss.start()

    def here() -> None:
        with team(size=2):  # as many threads as there are workers
            a_pass(local, b, x)

    one, many = least(here, lambda: a_pass(engine, b, x), repeat=repeat)
    batch = Recipe(WithReplacement(b))
    step, trip = least(
        lambda: engine.difference(x + np.float32(1e-3), batch, Recipe(Nothing())), round_trip(client, engine), repeat=5
    )
    engine.close()
    return {"b": float(b), "process": one, "dask": many, "step": step, "trip": trip}


def memory(client: Any) -> dict[str, float]:
    """MB that each process of the cluster, and this one, has more after a thousand rounds; the first hundred aside."""
    import psutil

    def own(dask_scheduler: Any = None) -> float:
        return float(psutil.Process().memory_info().rss / 1e6)

    def all_of_them() -> dict[str, float]:
        found = {f"worker {i}": value for i, value in enumerate(client.run(own).values())}
        return {"driver": own(), "scheduler": client.run_on_scheduler(own), **found}

    problem = made_up(20_000)
    engine = DaskEngine.of(problem, client)
    x = problem.loss.start()
    engine.evaluate(x)
    before: dict[str, float] = {}
    for k in range(ROUNDS + 100):
        if k == 100:
            before = all_of_them()
        engine.difference(x, Recipe(WithReplacement(500), 0, k), Recipe(Nothing()))
    after = all_of_them()
    engine.close()
    return {name: after[name] - before[name] for name in before}


def replay(workers: int, rounds: int, step: float, spread: float, trip: float, sending: float, seed: int = 0) -> float:
    """Seconds of a run replayed task by task: a client that submits to all workers in turn, tasks that take times drawn
    around ``step``, replies added in a tree of eight, and the next round after the last of them."""
    rng, clock = np.random.default_rng(seed), 0.0
    submit = trip / 4 / workers  # a quarter of an empty round is the client's, one task after the other
    for _ in range(rounds):
        done: list[float] = []
        for i in range(workers):
            heappush(done, clock + (i + 1) * (submit + sending) + step * rng.lognormal(0.0, spread))
        level = workers
        last = 0.0
        while done:
            last = heappop(done)
        while level > 8:
            level = -(-level // 8)
            last += trip / 4 + 8 * sending
        clock = last + trip / 2 + 8 * sending
    return clock


def simulated(trip: float, spread: float) -> str:
    """The plan for 10⁹ rows × 1,000 features on 100 workers beside a replay with task times as measured."""
    found = plan(10**9, 1000, workers=100, round_trip=trip, spread=spread)
    per_task = plan(10**9, 1000, workers=100, round_trip=trip, spread=0.0).computing / found.rounds
    seconds = replay(100, found.rounds, per_task, spread, trip, 8 * 1000 / 1e9)
    return f"{found}\nreplayed task by task, times spread by {spread:.0%} as measured: {seconds:.3g} s"


def task_spread(engine: DaskEngine, b: int, repeat: int = 15) -> float:
    """The standard deviation of the logarithm of a step's time, from run to run."""
    x, times = engine.problem.loss.start(), []
    for k in range(repeat):
        began = perf_counter()
        engine.difference(x + np.float32(1e-3), Recipe(WithReplacement(b), 0, k), Recipe(Nothing()))
        times.append(perf_counter() - began)
    return float(np.std(np.log(times)))


def figures(client: Any, n: int) -> dict[str, float]:
    """Seconds of an empty round, of the engine's on next to no rows, of passes over n rows, and of their steps."""
    empty_round, own = overhead(client)
    return {"empty": empty_round, "round": own, **passes(client, n, repeat=2)}


@contextmanager
def two_workers() -> Iterator[Any]:
    """A client of a cluster here, each worker with one thread."""
    from distributed import Client, LocalCluster

    free = {"dashboard_address": ":0"}
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, scheduler_kwargs=free) as cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
        yield client


def print_figures(n: int) -> None:
    """The figures as JSON."""
    with two_workers() as client:
        print(dumps(figures(client, n)))


def lines(client: Any, n: int) -> list[str]:
    """Every figure with its target."""
    found = figures(client, n)
    grown = memory(client)
    problem = made_up(200_000)
    engine = DaskEngine.of(problem, client)
    engine.evaluate(problem.loss.start())
    spread = task_spread(engine, 50_000)
    engine.close()
    return [
        f"empty submit-and-gather {1e3 * found['empty']:.2f} ms, a round of the engine {1e3 * found['round']:.2f} ms: "
        f"{found['round'] / found['empty']:.2f} times (target 2)",
        f"n = {n:,}: b = {found['b']:,.0f}, a step is {found['step'] / found['trip']:.1f} round trips (target 10)",
        f"a pass {found['dask']:.2f} s on the workers, {found['process']:.2f} s in one process with as many threads: "
        f"{found['dask'] / found['process']:.2f} times (target 1.3)",
        "memory after 1,000 rounds, MB more: " + ", ".join(f"{name} {mb:+.1f}" for name, mb in grown.items()),
        simulated(found["empty"], spread),
    ]


def main() -> None:
    """Print the figures."""
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 2_000_000
    with two_workers() as client:
        print("\n".join(lines(client, n)))


if __name__ == "__main__":
    main()
