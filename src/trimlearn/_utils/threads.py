"""Work in pieces on several threads, with one BLAS thread for each; and independent fits on several cores.

A product of some thousand rows is too short to wake BLAS's threads for, and they leave what stands between two
products (gathering rows, a softmax) to one of them. So a large solve cuts its rows into pieces, and each thread takes
its pieces through all of that. The pieces and the order of their sum depend on the data alone: the result is the same,
bit for bit, for any number of threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Any, TypeVar, final

import numpy as np
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Out = TypeVar("Out")


@final
@dataclass(frozen=True)
class _Team:
    size: int
    pool: ThreadPoolExecutor


_current: ContextVar[_Team | None] = ContextVar("team", default=None)


def each(task: Callable[[Item], Out], items: Iterable[Item]) -> list[Out]:
    """task(item) for every item, in the order of the items; on the threads of the `team` around it, if there is one.

    >>> with team():
    ...     each(lambda k: k * k, range(4))
    [0, 1, 4, 9]
    """
    todo, current = list(items), _current.get()
    if current is None or len(todo) < 2:
        return [task(item) for item in todo]
    found: list[Any] = [None] * len(todo)
    errors = np.geterr()

    left = iter(range(len(todo)))  # who is ready takes the next: others may be held up

    def work() -> None:
        with np.errstate(**errors):  # NumPy 1 keeps it by the thread, not in the context
            for k in left:
                found[k] = task(todo[k])

    size = min(current.size, len(todo))
    # In a copy of the context, with no team in it: a task does not wait for others.
    futures = [current.pool.submit(copy_context().run, _alone, work) for _ in range(1, size)]
    try:
        copy_context().run(_alone, work)
    finally:
        wait(futures)
    for future in futures:
        future.result()
    return found


def filled(out: np.ndarray, task: Callable[[slice], Any], pieces: Iterable[slice]) -> np.ndarray:
    """``out``, after task(at) was put at each of the pieces.

    >>> filled(np.empty(3), lambda at: at.start, [slice(0, 2), slice(2, 3)])
    array([0., 0., 2.])
    """

    def part(at: slice) -> None:
        out[at] = task(at)

    each(part, pieces)
    return out


def team_size() -> int:
    """How many threads `each` uses here.

    >>> team_size()
    1
    """
    current = _current.get()
    return 1 if current is None else current.size


def total(task: Callable[[Item], Out], items: Iterable[Item], zero: Out) -> Out:
    """zero + Σ task(item), added in the order of the items; few terms are held at a time.

    >>> total(lambda k: k * k, range(4), 0)
    14
    """
    current, left = _current.get(), iter(items)
    result: Any = zero
    if current is None:
        for item in left:
            result = result + task(item)
        return result  # type: ignore[no-any-return]
    while wave := list(islice(left, 2 * current.size)):
        for term in each(task, wave):
            result = result + term
    return result  # type: ignore[no-any-return]


def _alone(work: Callable[[], None]) -> None:
    _current.set(None)
    work()


@contextmanager
def team(worth_it: bool = True, size: int | None = None) -> Iterator[None]:
    """Here `each` uses as many threads as BLAS had, or ``size``, and BLAS one, in the whole process."""
    with one_blas_thread() if worth_it and size != 1 else nullcontext(1) as had:
        size = had if size is None else size
        if size < 2:
            yield
            return
        with _pool(size - 1) as pool:
            token = _current.set(_Team(size, pool))
            try:
                yield
            finally:
                _current.reset(token)


_idle: list[tuple[int, ThreadPoolExecutor]] = []  # the last team's threads: to start one takes 0.1 ms
if hasattr(os, "register_at_fork"):  # a fork leaves threads behind
    os.register_at_fork(after_in_child=_idle.clear)


@contextmanager
def _pool(size: int) -> Iterator[ThreadPoolExecutor]:
    """So many threads for one team alone: kernels wait for one another, for ever if some of theirs served others."""
    try:
        had, pool = _idle.pop()
    except IndexError:
        had, pool = size, ThreadPoolExecutor(size, "trimlearn")
    if had != size:
        pool.shutdown(wait=False)
        pool = ThreadPoolExecutor(size, "trimlearn")
    try:
        yield pool
    except BaseException:
        pool.shutdown()
        raise
    _idle.append((size, pool))


_limited = Lock()  # held by the solve that has limited BLAS: it alone sets back what it found


@lru_cache(maxsize=1)
def _blas(modules: int) -> ThreadpoolController:
    """What limits BLAS; looked for again, for 2 ms, only after something has been imported that may bring a BLAS."""
    return ThreadpoolController().select(user_api="blas")


def _threads_of(controller: ThreadpoolController) -> int:
    return max((pool["num_threads"] for pool in controller.info()), default=1)


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Gives the number of threads BLAS had. Beside another solve, whose limit holds here too, that number is 1."""
    controller = _blas(len(sys.modules))
    if not _limited.acquire(blocking=False):
        yield 1
        return
    try:
        size = _threads_of(controller)
        with controller.limit(limits=1):
            yield size
    finally:
        _limited.release()


def jobs(
    task: Callable[..., Out], arguments: Iterable[tuple[Any, ...]], n_jobs: Any = None, processes: bool = False
) -> list[Out]:
    """task(*given) for each of the arguments given, in their order, whatever n_jobs: None is one at a time, −1 as many
    as there are cores.

    Threads share the data and suit our own fits, which spend their time outside the interpreter; while several run,
    BLAS and each fit have one thread. Processes suit the estimators of others, and joblib sees to their threads.

    >>> jobs(pow, [(2, 3), (3, 2)], n_jobs=2)
    [8, 9]
    """
    from joblib import effective_n_jobs  # type: ignore[import-untyped]  # with scikit-learn, which `solve` does without
    from sklearn.utils.parallel import Parallel, delayed

    todo = list(arguments)
    if len(todo) < 2 or effective_n_jobs(n_jobs) == 1:
        return [task(*given) for given in todo]
    with nullcontext() if processes else one_blas_thread():
        found = Parallel(n_jobs=n_jobs, prefer="processes" if processes else "threads")(
            delayed(task)(*given) for given in todo
        )
    return list(found)
