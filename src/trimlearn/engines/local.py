"""All examples in this process: NumPy arrays, CSR, memory maps, torch tensors."""

from __future__ import annotations

from math import isfinite
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, sum64, to_numpy, zeros
from trimlearn.engines.base import Engine
from trimlearn.engines.stretch import law_of, model_of, put_back
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.newton_system import NewtonSystem
from trimlearn.losses.sampled import SampledRows, can_sample
from trimlearn.problem import Problem
from trimlearn.regularizers import ExceptIntercept, Regularizer
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.draws import Stream
from trimlearn.smart.duals import DUALS, Duals, ResidualTable, choose_duals
from trimlearn.smart.method import Reweighed, State
from trimlearn.smart.row_laws import Nothing, Recipe
from trimlearn.smart.w_step import gap, reweigh
from trimlearn.weights import CappedSimplex

EVERY = slice(None)  # row, as they lie in memory


@final
class LocalEngine(Engine):
    """The engine that holds all examples in this process: NumPy arrays, CSR, memory maps, torch tensors.

    Parameters
    ----------
    problem : Problem
        The problem whose examples they are.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import Problem, solve
    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> problem = Problem(LeastSquares(np.ones((3, 1)), np.array([1.0, 1.0, 9.0])), CappedSimplex(2))
    >>> solve(problem, engine=LocalEngine(problem)).x
    array([1.])
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._like = problem.loss.like
        self.use_duals(choose_duals(None, problem.loss, refreshes=False))
        self._f = zeros((problem.n,), self._like)
        self._w = asarray_like(problem.r1.start(problem.n, problem.s), self._like)

    def use_duals(self, kind: str) -> None:
        self._duals: Duals = DUALS[kind](self.problem.loss)

    @property
    def keeps_duals(self) -> bool:
        return self._duals.keeps

    @property
    def weights(self) -> Array:
        return self._w

    def set_weights(self, w: Any) -> None:
        self._w = asarray_like(w, self._like) + 0  # a copy: the caller's array is not ours

    @property
    def losses(self) -> Array:
        return self._f

    def evaluate(self, x: Array) -> float:
        self._f = self._duals.evaluate(x, self._shares(EVERY))
        self.counts.gradients += self.problem.n
        self.counts.functions += self.problem.n
        return self.problem.weighted_mean(self._w, self._f)

    def reweigh(self, tau: float) -> Reweighed:
        self._w, found = reweigh(self.problem, self.r1, self._w, self._f, tau)
        self.counts.prox_r1 += 1
        return found

    def gap(self) -> float:
        return gap(self.problem, self._w, self._f, self.r1.minimise(self._f, self.problem.s))

    def mean_duals(self) -> Array:
        return self._duals.mean(self._shares(EVERY))

    def difference(self, x: Array, batch: Recipe, refresh: Recipe) -> tuple[Array, Array]:
        rows, shares = self._active(batch)
        difference = self._duals.difference(x, shares, rows) if shares.shape[0] else zeros(x.shape, x)
        self.counts.gradients += shares.shape[0] * self._duals.cost
        self._duals.advance(x)
        if self._duals.recursive:
            return difference, difference
        if isinstance(refresh.law, Nothing):
            return difference, zeros(x.shape, x)
        renewed = rows if refresh is batch else self._active(refresh)[0]
        if renewed is not rows:
            self.counts.gradients += self.problem.n if isinstance(renewed, slice) else renewed.shape[0]
        return difference, self._duals.refresh(x, self._shares(renewed), renewed)

    def finite(self, g: Array) -> bool:
        return isfinite(sum64(g))

    def stretch(self, run: Algorithm1, state: State) -> bool:
        if not isinstance(self._duals, ResidualTable) or self._duals.fused is None:
            return False
        linear = self._duals.loss.linear
        law = law_of(run, state, self, self._cumulative)
        model = None if law is None else model_of(run, state, linear)
        if model is None:
            return False
        steps, rows, idle = self._duals.fused.stretch(law, model, self._duals.table, self._w)
        self.counts.gradients += rows
        self.counts.skipped += idle
        self.counts.prox_r2 += steps
        if steps:
            put_back(model, state, linear)
            state.k += steps
        return steps > 0

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        rows, shares = None, self._shares(EVERY)
        kept = namespace(shares).nonzero(shares)[0]
        if 4 * kept.shape[0] < self.problem.n:  # few rows count; else all of them, as they lie in memory
            rows, shares = kept, shares[kept]
        self.counts.gradients += shares.shape[0]
        self.counts.functions += shares.shape[0]
        return self.problem.loss.value_gradient(x, shares, rows)

    def hessp(self, x: Array, u: Array, batch: Recipe) -> Array:
        rows, shares = self._active(batch)
        self.counts.gradients += shares.shape[0]
        if not shares.shape[0]:
            return zeros(x.shape, x)
        return self.problem.loss.hessp(x, u, shares, rows)

    def hessian(self, x: Array) -> np.ndarray:
        self.counts.gradients += self.problem.n
        return self.problem.loss.hessian(x, self._shares(EVERY))

    def newton_system(self, x: Array) -> NewtonSystem:
        self.counts.gradients += self.problem.n
        return self.problem.loss.newton_system(x, self._shares(EVERY))

    def column_moments(self) -> tuple[float, Array, Array]:
        assert isinstance(self.problem.loss, PredictionLoss), "the diagonal metric was refused for other losses"
        shares, fused = self._shares(EVERY), self._duals.fused
        found = None if fused is None else fused.column_moments(shares)
        return self.problem.loss.linear.column_moments(shares) if found is None else found

    def sample(self, m: int, seed: int) -> LocalEngine | None:
        """Sample weights are the chances to be drawn, and whole numbers then: how often."""
        problem, loss = self.problem, self.problem.loss
        if not (can_sample(loss) and isinstance(loss, PredictionLoss) and isinstance(problem.r1, CappedSimplex)):
            return None
        rows, times = np.unique(self.draws(seed, 0, Stream.START).rows(m), return_counts=True)
        part = SampledRows(loss, rows)
        if not part.informative:
            return None
        s = None if problem.s is None else times
        r1 = problem.r1.at_h(problem.r1.h / problem.S * (len(rows) if s is None else m))
        r2 = problem.r2.r2 if isinstance(problem.r2, ExceptIntercept) else problem.r2
        return LocalEngine(Problem(part, r1, r2, s))

    def minimise(self, x: Array, r2: Regularizer | None = None) -> Array | None:
        loss = self.problem.loss
        if loss.minimiser_passes > max(self.passes_left, 0.0):
            return None
        exact = loss.minimiser(self._shares(EVERY), self.problem.r2 if r2 is None else r2, x)
        self.counts.gradients += 0 if exact is None else round(loss.minimiser_passes * self.problem.n)
        return exact

    def _shares(self, rows: Any) -> Array:
        """sᵢwᵢ/S: what a row counts in the mean."""
        s = self.problem.s
        return (self._w[rows] if s is None else self._w[rows] * s[rows]) / self.problem.S

    def _active(self, recipe: Recipe) -> tuple[Any, Array]:
        """The distinct rows of positive weight among those drawn, and what each counts in 1/b Σ: w·(times drawn)/b."""
        drawn = recipe.rows(self.problem.n, self._cumulative)
        if isinstance(drawn, slice):
            return drawn, self._shares(drawn)
        fused = self._duals.fused
        if fused is not None:
            rows, shares, idle = fused.distinct(drawn, self._w)
            self.counts.skipped += idle
            return rows, shares
        alive = drawn[to_numpy(self._w)[drawn] > 0]
        self.counts.skipped += len(drawn) - len(alive)
        rows, times = np.unique(alive, return_counts=True)
        rows = index_like(rows, self._w)
        return rows, self._w[rows] * asarray_like(times / len(drawn), self._w)
