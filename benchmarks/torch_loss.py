"""A pass of `TorchLoss` beside the same softmax of the core: a part of `python -m benchmarks torch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import Digits, Part, Table, Target, Task, Timing, clock, interleave
from trimlearn.kernels import fused
from trimlearn.losses import Softmax

__all__ = ["measure"]

LIMIT = 2.0  # times the pass of the core's NumPy path
LEAST = 0.02  # seconds of a timing
KEPT = 0.7  # h/n where some rows are trimmed
MATRIX, LINEAR, TRIMMED, COMPILED = "a matrix W, x @ W", "nn.Linear", f"nn.Linear, h = {KEPT} n", "the core, compiled"
VALUES = "nn.Linear, values alone"
COLUMNS = ["what", "ms", "× NumPy: quartile 1", "median", "quartile 3", "best / best"]


def measure(data: Digits, repetitions: int = 9) -> Part:
    """Value and gradient of the mean loss over all rows, on one thread: seconds against the core's NumPy path."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            timings, reference = _timings(data, repetitions)
    finally:
        torch.set_num_threads(threads)
    rows: list[list[Any]] = [["the core, NumPy", 1e3 * reference, 1.0, 1.0, 1.0, 1.0]]
    rows += [timing.row(name) for name, timing in timings.items()]
    targets = [
        Target(f"TorchLoss of softmax on {data.name}, {name} / the core's NumPy path", timings[name].ratio, LIMIT)
        for name in (MATRIX, LINEAR, TRIMMED)
    ]
    n, p = data.V.shape
    title = f"a pass of softmax by TorchLoss, {data.name}, {n:,} × {p}, one thread"
    if COMPILED in timings:
        best = min(timings[MATRIX].ratio, timings[LINEAR].ratio) / timings[COMPILED].ratio
        title += f"; TorchLoss / the compiled kernel: {best:.2f}"
    return Part([Table(title, COLUMNS, rows)], targets)


def _timings(data: Digits, repetitions: int) -> tuple[dict[str, Timing], float]:
    import torch
    from torch.nn import functional

    from trimlearn.torch import TorchLoss

    n, p = data.V.shape
    core = Softmax(data.V, data.t)
    K = core.K
    x = (0.01 * np.random.default_rng(0).standard_normal((p, K))).astype(data.V.dtype)
    c = np.full(n, 1 / n, dtype=data.V.dtype)
    trimmed = np.where(np.random.default_rng(1).random(n) < KEPT, c, 0).astype(c.dtype)
    both = torch.as_tensor(data.V), torch.as_tensor(data.t)
    matrix = TorchLoss(
        lambda W, b: functional.cross_entropy(b[0] @ W, b[1], reduction="none"), torch.as_tensor(x), both
    )
    linear = TorchLoss.of_module(torch.nn.Linear(p, K), torch.nn.CrossEntropyLoss(reduction="none"), both)

    passes = _passes(lambda: core.value_gradient(x, c))

    def task(loss: TorchLoss, shares: np.ndarray) -> Task:
        given = loss.start(), torch.as_tensor(shares)
        return (lambda: None), lambda _: _repeat(lambda: loss.value_gradient(*given), passes)

    tasks: dict[str, Task] = {
        MATRIX: task(matrix, c),
        LINEAR: task(linear, c),
        TRIMMED: task(linear, trimmed),
        VALUES: (linear.start, lambda x: _repeat(lambda: linear.values(x), passes)),
    }
    compiled = fused(core)
    if compiled is not None:
        table = np.zeros((n, K), dtype=x.dtype)
        tasks[COMPILED] = (lambda: None), lambda _: _repeat(lambda: compiled.evaluate(x, c, table), passes)
    found = interleave(lambda: _repeat(lambda: core.value_gradient(x, c), passes), tasks, repetitions)
    found = {name: Timing(timing.seconds / passes, timing.reference / passes) for name, timing in found.items()}
    return found, float(np.median(np.concatenate([timing.reference for timing in found.values()])))


def _passes(task: Callable[[], Any]) -> int:
    """How many of them fill a timing: a fit makes hundreds in a row, and the first after a rest is not like them."""
    return max(1, round(LEAST / min(clock(task) for _ in range(5))))


def _repeat(task: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        task()
