"""Some of the rows: what a process does with those it holds, so that the sums over all places are the engine's answers.

A shard is an in-process engine over its own rows, whose means are over the rows of all shards: so what shards answer
adds up, and no operation is written a second time. What changes in it is a pure function of its rows and of a
`Standing`, a few arrays of x's size: a shard that was lost is read again and brought back to where it stood.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy, zeros
from trimlearn._utils.digits import histogram, order_keys
from trimlearn.engines.base import Counts
from trimlearn.engines.levels import Level
from trimlearn.engines.local import EVERY, LocalEngine
from trimlearn.engines.weighing import Weighing
from trimlearn.losses.base import Loss
from trimlearn.problem import Problem
from trimlearn.smart.draws import Draws
from trimlearn.smart.row_laws import Everything, GivenRows, Nothing, Recipe, WithReplacement
from trimlearn.weights import AllOnes

PIECE = 1 << 14  # numbers looked at in one go: 0.1 MB stays in a level-2 cache, and is not mapped afresh each time


@final
@dataclass(frozen=True, eq=False)
class Standing:
    """Where every shard is: how y is kept, where w comes from, and the x that f and y belong to."""

    serial: int
    duals: str
    weights: Weighing
    x: Array | None = None  # None: nothing was evaluated yet


@final
@dataclass(frozen=True)
class Reply:
    """The parts that a shard, or several of them, add to a sum. stale: a shard did not stand where it should."""

    parts: tuple[Any, ...] = ()
    counts: Counts = field(default_factory=Counts)
    stale: bool = False

    def __add__(self, other: Reply) -> Reply:
        if self.stale or other.stale:
            return Reply(stale=True)
        return Reply(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)), self.counts + other.counts)


def part(problem: Problem, loss: Loss, s: np.ndarray | None) -> Problem:
    """The problem of some of the rows: its means are shares of those over all rows."""
    own = copy(problem)
    own.loss, own.s, own.r1 = loss, s, AllOnes()
    return own


@final
class Shard:
    """Consecutive rows of a problem, from row ``lo`` of all on.

    Parameters
    ----------
    problem : Problem
        That of these rows, as `part` makes it.
    lo : int
        How many rows stand before them.
    n : int
        How many rows there are in all shards.
    before : float
        The sample weight of the rows before them.

    Examples
    --------
    >>> from trimlearn.engines.weighing import Even
    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> V, t = np.ones((3, 1)), np.array([1.0, 1.0, 9.0])
    >>> whole = Problem(LeastSquares(V, t), CappedSimplex(2))
    >>> shard = Shard(part(whole, LeastSquares(V[1:], t[1:]), None), lo=1, n=3)
    >>> shard.take(Standing(1, "residuals", Even(1.0)))
    >>> shard.evaluate(np.ones(1)) == (32 / 3,)
    True
    """

    def __init__(self, problem: Problem, lo: int, n: int, before: float = 0.0) -> None:
        self.engine, self.lo, self.n = LocalEngine(problem), lo, n
        self.serial: int | None = None
        self._sums = None if problem.s is None else _running_sums(problem.s, before)
        self._edges = _least_with(lo, n), _least_with(lo + problem.n, n) if lo + problem.n < n else 1.0

    def __sizeof__(self) -> int:
        """What it holds: a scheduler weighs by this whether a shard is worth moving."""
        linear: Any = vars(self.engine.problem.loss).get("linear")
        V = None if linear is None else linear.storage.V
        return int(getattr(V, "nbytes", 0)) + 24 * self.engine.problem.n

    def take(self, standing: Standing) -> None:
        """Come to stand there, from wherever."""
        self.engine.use_duals(standing.duals)
        self.engine.set_weights(standing.weights.weigh(self.engine, self.lo))
        if standing.x is not None:
            self.engine.evaluate(standing.x)
        self.serial = standing.serial

    # -- what the engine of all rows asks, each time for a part of a sum -----------------------------------------------

    def evaluate(self, x: Array) -> tuple[float]:
        """1/S Σ sᵢwᵢfᵢ(x)."""
        return (self.engine.evaluate(x),)

    def count(self, known: int, after: int, bits: int) -> tuple[np.ndarray]:
        """The histogram of a search for the threshold, see `trimlearn.engines.levels`."""
        f, s = to_numpy(self.engine.losses), self.engine.problem.s
        found = np.zeros(1 << bits)
        for at in _pieces(len(f)):
            found += histogram(order_keys(f[at]), None if s is None else s[at], known, after, bits)
        return (found,)

    def excess(self, level: Level) -> tuple[float, float]:
        """1/S Σ sᵢwᵢfᵢ, and the same with the best weights."""
        f, problem = self.engine.losses, self.engine.problem
        best = level.weights(to_numpy(f), problem.s)
        return problem.weighted_mean(self.engine.weights, f), problem.weighted_mean(best, f)

    def reweigh(self, level: Level) -> tuple[float, float, Array]:
        """w ← the best weights; 1/S Σ sᵢwᵢfᵢ before and after, and Σ yᵢ/S."""
        problem = self.engine.problem
        before = problem.weighted_mean(self.engine.weights, self.engine.losses)
        self.engine.set_weights(level.weights(to_numpy(self.engine.losses), problem.s))
        return before, problem.weighted_mean(self.engine.weights, self.engine.losses), self.engine.mean_duals()

    def mean_duals(self) -> tuple[Array]:
        return (self.engine.mean_duals(),)

    def difference(self, x: Array, batch: Recipe) -> tuple[Array]:
        """1/b Σ_{i∈I}(wᵢ∇fᵢ(x) − yᵢ), D = ∅."""
        held, share = self._held(batch)
        if share == 0:
            return (zeros(x.shape, x),)
        return (self.engine.difference(x, held, Recipe(Nothing()))[0] * share,)

    def hessp(self, x: Array, u: Array, batch: Recipe) -> tuple[Array]:
        """The Hessian of 1/b Σ_{i∈I} wᵢfᵢ at x, times u."""
        held, share = self._held(batch)
        return (self.engine.hessp(x, u, held) * share if share else zeros(x.shape, x),)

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        return self.engine.value_gradient(x)

    def hessian(self, x: Array) -> tuple[np.ndarray]:
        return (self.engine.hessian(x),)

    def normal_equations(self, x: Array) -> tuple[np.ndarray, Array]:
        """The Hessian and the gradient of a mean loss that is quadratic; they are not counted as passes."""
        loss, shares = self.engine.problem.loss, self.engine._shares(EVERY)
        return loss.hessian(x, shares), loss.gradient(x, shares)

    def column_moments(self) -> tuple[float, Array, Array]:
        return self.engine.column_moments()

    def _held(self, batch: Recipe) -> tuple[Recipe, float]:
        """Those of the rows drawn that are here, as numbers of its own, and their share in the draws."""
        if isinstance(batch.law, Everything):
            return batch, 1.0
        hi = self.lo + self.engine.problem.n
        if isinstance(batch.law, WithReplacement):
            b = batch.law.numbers(self.n, batch.k)
            draws = Draws(batch.seed, batch.k, self.n, None, batch.stream)
            draws.uniforms(batch.skip)
            rows = np.concatenate([self._among(draws.uniforms(at.stop - at.start), hi) for at in _pieces(b)])
        else:
            drawn: Any = batch.rows(self.n)
            b, rows = len(drawn), drawn[(drawn >= self.lo) & (drawn < hi)] - self.lo
        return Recipe(GivenRows(rows)), len(rows) / b

    def _among(self, u: np.ndarray, hi: int) -> np.ndarray:
        """The rows of this shard that `Draws.rows` gives for the numbers u, which stand for rows of all shards."""
        if self._sums is None:
            first, last = self._edges
            own = u[(u >= first) & (u < last)]
            return np.asarray(np.minimum((own * self.n).astype(np.int64), self.n - 1) - self.lo)
        at = u * self.engine.problem.S
        own = (at >= self._sums[0]) & (at < self._sums[-1]) if hi < self.n else at >= self._sums[0]
        return np.asarray(np.minimum(np.searchsorted(self._sums[1:], at[own], "right"), self.engine.problem.n - 1))


def _pieces(n: int) -> list[slice]:
    return [slice(i, min(i + PIECE, n)) for i in range(0, n, PIECE)]


def _least_with(row: int, n: int) -> float:
    """The least u for which u·n, rounded, is ``row`` or more: numbers below it stand for rows before.

    >>> [round(_least_with(row, 10), 9) for row in (0, 3, 10)]
    [0.0, 0.3, 1.0]
    """
    u = row / n
    while u > 0 and np.nextafter(u, 0.0) * n >= row:
        u = float(np.nextafter(u, 0.0))
    while u * n < row:
        u = float(np.nextafter(u, 2.0))
    return u


def _running_sums(s: np.ndarray, before: float) -> np.ndarray:
    """before, before + s₁, before + s₁ + s₂, …: the additions that sums over all rows would make, in their order."""
    return np.cumsum(np.concatenate([[before], to_numpy(s)]), dtype=np.float64)


def answer(shard: Shard, serial: int, standing: Standing | None, then: int, task: Any, args: tuple[Any, ...]) -> Reply:
    """The reply to one task of a shard that stands at ``serial``, or can be brought there; it stands at ``then`` after.

    stale: it stands elsewhere, because it was lost and read again, and it was not said how to come back.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a step that overflows is taken back
        if shard.serial != serial:
            if standing is None:
                return Reply(stale=True)
            shard.take(standing)
        shard.engine.counts = Counts()
        parts = task(shard, *args)
    shard.serial = then
    return Reply(tuple(parts), replace(shard.engine.counts))
