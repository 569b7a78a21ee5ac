"""Rows in several places: every operation of an engine is asked of all shards, and their answers are added."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, isinf, nan, prod
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, sum64, to_numpy, zeros
from trimlearn.engines.base import Engine
from trimlearn.engines.levels import Level, level
from trimlearn.engines.shard import Reply, Shard, Standing
from trimlearn.engines.weighing import Chosen, Even, Listed, Weighing, saved_weighing
from trimlearn.losses import LeastSquares
from trimlearn.losses.exact import solve_symmetric
from trimlearn.losses.newton_system import DenseSystem, NewtonSystem
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.duals import DUALS, choose_duals
from trimlearn.smart.method import SOME, Reweighed, State
from trimlearn.smart.row_laws import Nothing, Recipe, RowLaw
from trimlearn.weights import snap_h

STATELESS = ("residuals", "snapshot", "none")  # duals that are a function of the x last evaluated


class ShardedEngine(Engine):
    """An engine whose rows lie in shards (`trimlearn.engines.shard`), wherever those are.

    It takes D = ∅ and τ = ∞. Then all that a shard holds beside its rows is a function of a few arrays of x's size, so
    that nothing is lost with a shard, and a checkpoint needs no weights.

    Parameters
    ----------
    problem : Problem
        The problem of all rows. No method of its loss that needs rows is called.
    counted : bool
        Whether every row counts once, because there are no sample weights.
    """

    on_threads = False

    def __init__(self, problem: Problem, counted: bool = True) -> None:
        super().__init__(problem)
        self.counted = counted
        self._like = problem.loss.like
        kind = choose_duals(None, problem.loss, refreshes=False)
        self._standing = Standing(0, kind, self._even())
        self._told = False  # whether the shards know where to stand
        self._mean: Array | None = None  # of y, where the last w-step has summed it

    @abstractmethod
    def ask_all(self, serial: int, standing: Standing | None, then: int, task: Callable[..., Any], args: Any) -> Reply:
        """The sum of what `trimlearn.engines.shard.answer` says to these, over all shards."""

    @abstractmethod
    def collect(self, task: Callable[[Shard], np.ndarray]) -> Array:
        """One number per row, as they stand now, in the order of the rows."""

    def ask(self, task: Callable[..., Any], *args: Any, then: Standing | None = None) -> tuple[Any, ...]:
        """The sum of task(shard, *args) over all shards, which stand where ``then`` says after it."""
        before = self._standing
        after = before if then is None else then
        reply = self.ask_all(before.serial, None if self._told else before, after.serial, task, args)
        if reply.stale:  # a shard is new, because one was lost: now with what it takes to come back to where it stood
            reply = self.ask_all(before.serial, before, after.serial, task, args)
        if reply.stale:
            raise RuntimeError("a shard was lost and could not be brought back to where it stood.")
        self._standing, self._told = after, True
        self.counts += reply.counts
        return reply.parts

    def _next(self, **changes: Any) -> Standing:
        return replace(self._standing, serial=self._standing.serial + 1, **changes)

    def _stand(self, **changes: Any) -> None:
        """Stand elsewhere; the shards will be told with what they are asked next."""
        self._standing, self._told, self._mean = self._next(**changes), False, None

    def _even(self) -> Even:
        return Even(snap_h(self.h, self.problem.S) / self.problem.S)

    # -- the engine ---------------------------------------------------------------------------------------------------

    def check(self, refresh: RowLaw, tau: float) -> None:
        if not isinstance(refresh, Nothing):
            raise ValueError("rows in several places take D = ∅, and this method refreshes single duals; use svrg().")
        if not isinf(tau):
            raise ValueError(f"rows in several places take τ = ∞, got tau={tau:g}; leave tau out.")

    def use_duals(self, kind: str) -> None:
        if kind not in STATELESS:
            raise ValueError(
                f"duals={kind!r} change from step to step, and rows in several places keep none that do; use svrg()."
            )
        if kind != self._standing.duals:
            self._stand(duals=kind, x=None)

    @property
    def keeps_duals(self) -> bool:
        return DUALS[self._standing.duals].keeps

    @property
    def weights(self) -> Array:
        return self.collect(weights_of)

    def set_weights(self, w: Any) -> None:
        self._stand(weights=w if isinstance(w, Weighing) else Listed(to_numpy(asarray_like(w, self._like))))

    def set_even_weights(self) -> None:
        self._stand(weights=self._even())

    def set_best_weights(self, x: Array) -> None:
        counts = self.counts
        self.evaluate(x)
        self.reweigh(inf)
        self.counts = counts

    def saved_weights(self) -> dict[str, np.ndarray]:
        """No weight of a row: they are a function of the x and the threshold they were chosen at."""
        return self._standing.weights.saved()

    def read_weights(self, arrays: dict[str, np.ndarray]) -> Weighing:
        return saved_weighing(arrays, self._like)

    @property
    def losses(self) -> Array:
        return self.collect(losses_of)

    def evaluate(self, x: Array) -> float:
        self._mean = None
        (value,) = self.ask(Shard.evaluate, x, then=self._next(x=x))
        return float(value)

    def reweigh(self, tau: float) -> Reweighed:
        self.check(Nothing(), tau)
        best = self._best()
        chosen = Chosen(self._standing.x, best)
        before, after, self._mean = self.ask(Shard.reweigh, best, then=self._next(weights=chosen))
        self.counts.prox_r1 += 1
        return Reweighed(float(after), float(before - after), nan)

    def gap(self) -> float:
        before, after = self.ask(Shard.excess, self._best())
        return float(before - after)

    def mean_duals(self) -> Array:
        if self._mean is not None:
            return self._mean
        return self.ask(Shard.mean_duals)[0]

    def difference(self, x: Array, batch: Recipe, refresh: Recipe) -> tuple[Array, Array]:
        self.check(refresh.law, inf)
        return self.ask(Shard.difference, x, batch)[0], zeros(x.shape, x)

    def finite(self, g: Array) -> bool:
        return isfinite(sum64(g))

    def stretch(self, run: Algorithm1, state: State) -> bool:
        return False

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        value, gradient = self.ask(Shard.value_gradient, x)
        return float(value), gradient

    def hessp(self, x: Array, u: Array, batch: Recipe) -> Array:
        return self.ask(Shard.hessp, x, u, batch)[0]

    def hessian(self, x: Array) -> np.ndarray:
        return np.asarray(self.ask(Shard.hessian, x)[0])

    def newton_system(self, x: Array) -> NewtonSystem:
        return DenseSystem(self.hessian(x))

    def column_moments(self) -> tuple[float, Array, Array]:
        total, second, fourth = self.ask(Shard.column_moments)
        return float(total), second, fourth

    def minimise(self, x: Array, r2: Regularizer | None = None) -> Array | None:
        r2 = self.problem.r2 if r2 is None else r2
        loss = self.problem.loss
        if not (isinstance(loss, LeastSquares) and r2.smooth and prod(loss.x_shape) <= SOME):
            return None
        zero = zeros(x.shape, x)
        A, g = self.ask(Shard.normal_equations, zero)
        ridge = to_numpy(r2.gradient(asarray_like(np.ones(x.shape), x))).astype(np.float64).ravel()  # ∇r2 is linear
        T = -to_numpy(g).astype(np.float64).reshape(-1, 1)
        return asarray_like(solve_symmetric(A + np.diag(ridge), T).reshape(x.shape), x)

    def _best(self) -> Level:
        """The best weights for f, by rounds in which only counts travel."""
        dtype = to_numpy(self._like).dtype
        return level(self.r1, self.problem.S, self.counted, dtype, lambda *at: self.ask(Shard.count, *at)[0])


def weights_of(shard: Shard) -> np.ndarray:
    """w of its rows."""
    return to_numpy(shard.engine.weights)


def losses_of(shard: Shard) -> np.ndarray:
    """f of its rows."""
    return to_numpy(shard.engine.losses)
