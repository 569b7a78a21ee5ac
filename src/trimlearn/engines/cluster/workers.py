"""The workers of a cluster: who they are, tasks for all of them at once, and what is done when one is lost or slow."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from time import perf_counter
from typing import Any, final
from uuid import uuid4

from trimlearn._utils.threads import team
from trimlearn._utils.warn import warn
from trimlearn.engines.shard import Reply, Shard, answer

FAN = 8  # replies that one task adds up: two levels of them for 64 workers; of as many or fewer, the client does it
PATIENCE = 10.0  # seconds after which it is looked who has not answered, or come: a thousand times what a round takes
GRACE = 60.0  # seconds without any worker after which a fit gives up: a nanny starts a new one within a few
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEPT_BYTES = 32 << 20  # the most that glibc takes for the latter: larger arrays are mapped
Say = Callable[[str], None]
_serials = count()  # of engines in this process: their tasks must not be taken for one another's


@final
class Workers:
    """The workers of a client, in a fixed order, each the place of one shard.

    Parameters
    ----------
    client : distributed.Client
        Its cluster is used as it is at this moment; it stays the caller's to close.
    """

    def __init__(self, client: Any) -> None:
        self.client = check_client(client)
        self.addresses = sorted(client.scheduler_info(n_workers=-1)["workers"])
        self.name = f"trimlearn-{next(_serials)}-{uuid4().hex[:8]}"
        self._rounds = count()
        self._warned = False

    def place(self, task: Callable[..., Any], args: Sequence[tuple[Any, ...]], what: str) -> list[Any]:
        """Futures of task(*args[i]), made on worker i, and made again elsewhere if that one is lost."""
        stem = f"{self.name}-{what}-{next(self._rounds)}"
        return [
            self.client.submit(task, *each, key=(stem, i), workers=[self._home(i)], allow_other_workers=True)
            for i, each in enumerate(args)
        ]

    def compute(self, task: Callable[..., Any], args: Sequence[tuple[Any, ...]], what: str) -> list[Any]:
        """The same as `place` where args hold pieces of Dask collections."""
        from dask import delayed  # type: ignore[attr-defined]

        later, found = delayed(task, pure=False), []
        for i, each in enumerate(args):
            name = f"{self.name}-{what}-{next(self._rounds)}"
            made = later(*each, dask_key_name=name)
            found.append(self.client.compute(made, workers=[self._home(i)], allow_other_workers=True))
        return found

    def _home(self, i: int) -> str:
        return str(self.addresses[i % len(self.addresses)])

    def ask(self, shards: Sequence[Any], asked: tuple[Any, ...], say: Say) -> Reply:
        """The sum of `answer` over shards: one task for each, and a tree of sums where there are many."""
        question = dumps(asked)
        leaves = futures = self.place(reply_to, [(shard, question) for shard in shards], asked[3].__name__)
        k, level = next(self._rounds), 0
        while len(futures) > FAN:
            level += 1
            groups = [futures[i : i + FAN] for i in range(0, len(futures), FAN)]
            futures = [
                self.client.submit(added, *group, key=(f"{self.name}-sum", k, level, i))
                for i, group in enumerate(groups)
            ]
        return added(*self.gather(futures, leaves, say))

    def gather(self, futures: list[Any], leaves: list[Any] | None = None, say: Say | None = None) -> list[Any]:
        """What they hold, once all are there. Who keeps the others waiting is said; a worker lost is waited out."""
        from distributed import wait

        finished: Any = wait  # untyped
        began, alone = perf_counter(), 0.0
        while True:
            try:
                with self.client.as_current():
                    finished(futures, timeout=PATIENCE)
                break
            except TimeoutError:
                alone = self._look(leaves or futures, perf_counter() - began, alone, say)
        try:
            return list(self.client.gather(futures))
        except Exception as error:
            raise self._explained(error) from error

    def _look(self, leaves: list[Any], seconds: float, alone: float, say: Say | None) -> float:
        """Say who has not answered; the seconds for which there has been no worker at all."""
        living = set(self.client.scheduler_info(n_workers=-1)["workers"])
        alone = 0.0 if living else alone + PATIENCE
        if alone >= GRACE:
            raise RuntimeError(
                f"all workers were lost, and none has come back for {alone:.0f} seconds. If memory was short, use more "
                "workers, more memory for each, or float32; then fit again, `solve` from its checkpoint."
            )
        late = [i for i, future in enumerate(leaves) if future.status == "pending"]
        if not living:
            sentence = "no worker is left: waiting for a new one"
        elif len(late) < len(leaves):
            where = ", ".join(sorted({self._home(i) for i in late}))
            sentence = f"waiting for {len(late)} of {len(leaves)} shards, since {seconds:.0f} s: {where}"
            if not self._warned:
                warn(f"A slow worker holds up all others: {sentence}. The fit goes on when it answers.")
            self._warned = True
        else:
            sentence = f"waiting for the workers, since {seconds:.0f} s"
        if say is not None:
            say(sentence)
        return alone

    def _explained(self, error: Exception) -> Exception:
        """In one sentence, where it is the cluster that failed."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return RuntimeError(
                "workers died again and again over the same rows, most likely for want of memory: use more workers, "
                f"more memory for each, or float32 ({error.last_worker.address})."
            )
        return error


@contextmanager
def local_cluster() -> Iterator[Any]:
    """A client of a cluster on this machine, one process for each core; both are closed at the end."""
    from distributed import Client, LocalCluster  # untyped

    started: Any = LocalCluster
    connected: Any = Client

    try:
        # Port 0 is any that is free: the usual one may be taken, which would be worth a warning to Dask.
        free = {"dashboard_address": ":0"}
        cluster = started(threads_per_worker=1, processes=True, dashboard_address=None, scheduler_kwargs=free)
    except RuntimeError as error:
        raise RuntimeError(
            "engine='dask' could not start worker processes; in a script, put what starts them under "
            f"'if __name__ == \"__main__\":', or give a client ({error})."
        ) from error
    with cluster, connected(cluster) as client:
        yield client


def check_client(client: Any) -> Any:
    """ValueError unless it is a client one can ask, with workers."""
    from distributed import Client

    if not isinstance(client, Client):
        raise ValueError(f"client must be a distributed.Client, got {type(client).__name__}.")
    if client.asynchronous:
        raise ValueError("client must not be asynchronous: a fit waits for its workers. Use Client(...) without it.")
    if client.status != "running":
        raise ValueError(f"client is {client.status}: connect a new one, and keep it open until the fit has ended.")
    if not client.scheduler_info(n_workers=-1)["workers"]:
        try:  # they may be on their way
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise ValueError("client has no workers: start some, or scale its cluster, before the fit.") from error
    return client


def dumps(asked: Any) -> bytes:
    """A question as bytes, once for all workers; functions of a module that workers do not have are sent along."""
    from distributed.protocol import pickle as dask_pickle

    pickled: Any = dask_pickle  # untyped
    return bytes(pickled.dumps(asked))


def keep_memory() -> None:
    """On a worker: keep the memory of large arrays for the next ones, where the C library is glibc.

    Dask's nannies set MALLOC_TRIM_THRESHOLD_, and with that glibc maps every array of more than 128 kB afresh, so that
    each of its pages is a fault: an engine's steps, which are all such arrays, took two to five times as long.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
    mallopt(M_TRIM_THRESHOLD, 8 * KEPT_BYTES)


def reply_to(shard: Shard, question: bytes) -> Reply:
    """On a worker: the answer to one question, with as many threads as the worker has."""
    from distributed import get_worker

    with team(size=get_worker().state.nthreads):
        return answer(shard, *pickle.loads(question))


def added(*replies: Reply) -> Reply:
    """Their sum, in their order."""
    total = replies[0]
    for reply in replies[1:]:
        total = total + reply
    return total
