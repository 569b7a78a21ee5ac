"""The engine whose rows lie on the workers of a Dask cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Self, final
from weakref import finalize

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.engines.cluster.losses import LossOf, loss_of, standing_for
from trimlearn.engines.cluster.rows import Placed, ShardRows, read_saved, save_rows
from trimlearn.engines.cluster.workers import Workers, dumps, keep_memory, local_cluster
from trimlearn.engines.planning import batch_size
from trimlearn.engines.shard import Reply, Shard, Standing, part
from trimlearn.engines.sharded import ShardedEngine
from trimlearn.problem import SAMPLE, Problem, lower_medians
from trimlearn.regularizers import Regularizer
from trimlearn.weights import AllOnes, WeightSet, snap_h


def _make_shard(block: ShardRows, problem: Problem, loss: LossOf, lo: int, n: int, before: float) -> Shard:
    keep_memory()
    own = loss.make(block.V, block.t)
    s = None if block.s is None else block.s.astype(to_numpy(own.like).dtype)
    return Shard(part(problem, own, s), lo, n, before)


@final
class DaskEngine(ShardedEngine):
    """Rows on the workers of a Dask cluster: one shard on each, one task a worker and step, sums by a tree.

    Parameters
    ----------
    placed : Placed
        The rows.
    loss : LossOf
        The kind of loss they have.
    r1 : WeightSet
        ``CappedSimplex(h)`` or ``AllOnes()``.
    r2 : Regularizer, optional
        What is known about x.
    centred : bool
        Whether the problem is put about the medians of a sample of rows, where it has an intercept.

    Attributes
    ----------
    given : Problem
        The problem as it was given, not centred.
    """

    def __init__(
        self,
        placed: Placed,
        loss: LossOf,
        r1: WeightSet,
        r2: Regularizer | None = None,
        *,
        centred: bool = True,
    ) -> None:
        self._open = ExitStack()  # what `close` ends
        sample = placed.sample(SAMPLE)
        self.given = _problem(placed, loss.make(sample.V, sample.t), r1, r2)
        if centred and self.given.loss.intercept:
            loss = loss.centred(lower_medians(sample.V, np.asarray(sample.s)))
        problem = _problem(placed, loss.make(sample.V, sample.t), r1, r2)
        super().__init__(problem, placed.counted)
        self.placed, before, args = placed, 0.0, []
        for block, lo, found in zip(placed.blocks, placed.starts, placed.found, strict=True):
            if found.mass > 0:  # no row of another one counts
                args.append((block, problem, loss, lo, placed.n, before))
            before += found.mass
        self._shards = placed.workers.place(_make_shard, args, "shard")

    @classmethod
    def of(cls, problem: Problem, client: Any = None) -> Self:
        """The engine of a problem in memory, on a client or on `Workers`; without one, a cluster on this machine is
        started, and `close` ends it. The rows are written to files, which the workers map: they share the disk."""
        loss: Any = problem.loss
        recipe = loss_of(loss)
        with ExitStack() as opened:
            client = opened.enter_context(local_cluster()) if client is None else client
            workers = client if isinstance(client, Workers) else Workers(client)
            folder = Path(mkdtemp(prefix="trimlearn-"))
            opened.callback(rmtree, folder, ignore_errors=True)
            t = to_numpy(loss.t)
            t = t[:, 0] if loss.linear.K is None and t.ndim == 2 else t
            save_rows(folder, loss.linear.storage.V, t, None if problem.s is None else to_numpy(problem.s))
            n, count = problem.n, min(len(workers.addresses), problem.n)
            cuts = [n * i // count for i in range(count + 1)]
            bounds = list(pairwise(cuts))
            blocks = workers.place(read_saved, [(folder, lo, hi) for lo, hi in bounds], "rows")
            placed = Placed.of(workers, blocks, [f"rows {lo} to {hi - 1}" for lo, hi in bounds], lazy=False)
            r2 = problem.r2.r2 if problem.loss.intercept else problem.r2  # type: ignore[attr-defined]
            engine = cls(placed, recipe, problem.r1, r2, centred=False)
            engine.problem = engine.given = problem
            engine._open.push(opened.pop_all())
        finalize(engine, rmtree, folder, ignore_errors=True)  # where nobody closes it
        return engine

    def close(self) -> None:
        """Let go of the shards, and end what was started for them."""
        self._shards.clear()
        self._open.close()

    def batch_size(self) -> int:
        loss: Any = self.problem.loss
        return batch_size(self.problem.n, loss.linear.p, loss.K, len(self._shards))

    def ask_all(self, serial: int, standing: Standing | None, then: int, task: Callable[..., Any], args: Any) -> Reply:
        return self.placed.workers.ask(self._shards, (serial, standing, then, task, args), self.say)

    def collect(self, task: Callable[[Shard], np.ndarray]) -> Array:
        question = dumps((self._standing, task))
        held = self.placed.workers.place(_collected, [(shard, question) for shard in self._shards], "collect")
        each, dtype = iter(held), to_numpy(self._like).dtype
        parts = [next(each) if found.mass > 0 else np.zeros(found.n, dtype) for found in self.placed.found]
        return self.placed.one_per_row(parts, dtype)


def _collected(shard: Shard, question: bytes) -> np.ndarray:
    """On a worker: one number per row of the shard, as it stands, or should."""
    standing, task = pickle.loads(question)
    with np.errstate(all="ignore"):
        if shard.serial != standing.serial:
            shard.take(standing)
    return np.array(task(shard))


def _problem(placed: Placed, sample: Any, r1: WeightSet, r2: Regularizer | None) -> Problem:
    """The problem of all rows, by what stands for them here."""
    problem = Problem(standing_for(sample, placed.n), AllOnes(), r2)
    problem.S = placed.mass
    if not isinstance(r1, AllOnes):
        snap_h(r1.h, placed.mass)  # raises where it is more than there are
    problem.r1 = r1
    return problem
