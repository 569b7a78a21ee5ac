"""Independent fits on several cores, by joblib, as scikit-learn's ``n_jobs`` has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, TypeVar

from joblib import effective_n_jobs  # type: ignore[import-untyped]
from sklearn.utils.parallel import Parallel, delayed

from trimlearn._utils.threads import one_blas_thread

__all__ = ["jobs"]

Out = TypeVar("Out")


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
    todo = list(arguments)
    if len(todo) < 2 or effective_n_jobs(n_jobs) == 1:
        return [task(*given) for given in todo]
    with nullcontext() if processes else one_blas_thread():
        found = Parallel(n_jobs=n_jobs, prefer="processes" if processes else "threads")(
            delayed(task)(*given) for given in todo
        )
    return list(found)
