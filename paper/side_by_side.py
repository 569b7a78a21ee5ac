"""Fits that do not depend on each other, one on each core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

__all__ = ["side_by_side", "usual_workers"]

MOST = 4  # fits at a time: each has arrays of its own

Item = TypeVar("Item")
Out = TypeVar("Out")


def side_by_side(task: Callable[[Item], Out], items: Sequence[Item], workers: int | None = None) -> Iterator[Out]:
    """task(item) for every item, in their order, made ``workers`` at a time (None: `usual_workers`).

    Each is a thread with one BLAS thread: a fit is mostly products that wait for memory and release Python's lock, and
    two fits on a core each end sooner than two in turn on both.

    >>> list(side_by_side(lambda k: k * k, [1, 2, 3]))
    [1, 4, 9]
    """
    pool = ThreadPoolExecutor(usual_workers() if workers is None else workers, "trimlearn")
    with threadpool_limits(limits=1, user_api="blas"):
        try:
            for made in [pool.submit(task, item) for item in items]:
                yield made.result()
        finally:
            pool.shutdown(cancel_futures=True)  # once something went wrong, what has not begun need not


def usual_workers() -> int:
    """One per core that this process may use, at most four.

    >>> 1 <= usual_workers() <= 4
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST, cores)
