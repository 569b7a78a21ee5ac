"""The engine whose rows lie on a CUDA device, while x and what is of its size stay in the host's memory.

What a run looks at between two stretches of steps are numbers and vectors of x's size: on the host they cost a few
microseconds each, on the device a launch and a wait. So every operation below sends x there, sums over rows, and
brings the sum back, with one wait; a stretch of x-steps goes up and comes back as a whole (`steps`). The same rows are
drawn as by any other engine, and the iterates agree up to rounding.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from math import isfinite, isinf, nan
from typing import Any, final

import numpy as np
import torch

from trimlearn._utils.arrays import Array, Tensor, asarray_like, sum64, zeros
from trimlearn._utils.device_memory import explained
from trimlearn._utils.residence import copy_on_device, lies_on_device
from trimlearn.engines.base import Engine
from trimlearn.engines.cuda.coins import tails_ahead
from trimlearn.engines.cuda.evaluation import EvaluatedRows
from trimlearn.engines.cuda.exchange import Exchange
from trimlearn.engines.cuda.fastest import drawing_on_device, rows_on_device, selection_on_device, steps_on_device
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.engines.cuda.place import on_device, open_device, rows_like
from trimlearn.engines.cuda.products import Products
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.engines.cuda.singly import Active, active, refreshed
from trimlearn.engines.cuda.steps import Steps, knows
from trimlearn.engines.local import LocalEngine
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.newton_system import DenseSystem, NewtonSystem
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.method import Reweighed, State
from trimlearn.smart.row_laws import Everything, Nothing, Recipe
from trimlearn.smart.w_step import gap, reweigh


@final
class CudaEngine(Engine):
    """The engine that holds all examples on a CUDA device.

    `trimlearn.solve` makes one for engine="cuda", and for data that are CUDA tensors.

    Parameters
    ----------
    problem : Problem
        The problem whose examples they are: dense data, NumPy arrays or tensors, and a loss of a linear prediction.
    device : str or torch.device, optional
        Where they go. None: where they are if that is a CUDA device, else "cuda".
    storage : str, optional
        The torch dtype that V is stored in there, "bfloat16" say, for half the memory and half the time of float32:
        each entry is rounded to 3 digits, sums are as precise as ever. None: V's own.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import Problem, solve
    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> problem = Problem(LeastSquares(np.ones((3, 1)), np.array([1.0, 1.0, 9.0])), CappedSimplex(2))
    >>> solve(problem, engine=CudaEngine(problem, device="cpu")).x  # on a machine with CUDA leave out the device
    array([1.])
    """

    on_threads = False

    def __init__(self, problem: Problem, device: Any = None, storage: str | None = None) -> None:
        super().__init__(problem)
        loss = problem.loss
        if not isinstance(loss, PredictionLoss):
            raise ValueError(f"CudaEngine is for losses of a linear prediction, not {type(loss).__name__}.")
        V = loss.linear.storage.V
        copy_there = V if lies_on_device(V) else copy_on_device(V)
        there = "cuda" if copy_there is None else copy_there.device
        self.device = open_device(there if device is None else device)
        moved = on_device(loss, self.device, storage)
        with explained(0, "the weights, losses and residuals of all rows"):
            self._layout = MatrixLayout(moved.linear)
            self._rows: TorchRows = rows_on_device(moved, self._layout)
            self._w: Tensor = moved.like.new_zeros(problem.n)
            self._exchange = Exchange(self._layout, loss.like, self._w)
            s = None if problem.s is None else asarray_like(problem.s, moved.like)
            self._all = EvaluatedRows(self._rows, self._exchange, self._w, s, problem.S)
            self._selection = selection_on_device(self._all.f, self._w, s, problem.S)
        self._twin = copy(problem)
        self._twin.loss, self._twin.s = moved, s
        self._outside = rows_like(loss)
        self.set_even_weights()
        self._kind = "residuals"
        self._drawing = drawing_on_device(problem.n, self._cumulative, self.device)
        self._products = Products(self._rows, self._exchange, self._w, self._drawing)
        self._steps: tuple[Algorithm1 | None, Steps | None] = (None, None)
        self._careful = False  # whether a stretch has overflowed: its steps are then taken one by one

    def reset(self) -> None:
        super().reset()
        self._careful = False

    def use_duals(self, kind: str) -> None:
        self._kind = kind
        if kind != "residuals":
            self._other_duals.use_duals(kind)

    @property
    def keeps_duals(self) -> bool:
        return self._kind == "residuals" or self._other_duals.keeps_duals

    @property
    def weights(self) -> Array:
        return asarray_like(self._w.clone(), self._outside)

    def set_weights(self, w: Any) -> None:
        self._w.copy_(self._exchange.tensor(w))

    def set_even_weights(self) -> None:
        if self._selection.knows(self.r1):
            self._selection.spread(self.r1)
        else:
            self._w.copy_(asarray_like(self.r1.start(self.problem.n, self._twin.s), self._w))

    def set_best_weights(self, x: Array) -> None:
        self._exchange.send(x)
        self._w.copy_(self.r1.minimise(self._rows.values(self._exchange.x), self._twin.s))

    @property
    def losses(self) -> Array:
        return asarray_like(self._all.f.clone(), self._outside)

    # -- w-steps ------------------------------------------------------------------------------------------------------

    def evaluate(self, x: Array) -> float:
        self._careful = False
        if self._kind != "residuals":
            generic = self._plain()
            value = generic.evaluate(self._exchange.tensor(x))
            self._all.f.copy_(generic.losses)
            return value
        self.counts.gradients += self.problem.n
        self.counts.functions += self.problem.n
        return self._all.take(x)

    def reweigh(self, tau: float) -> Reweighed:
        self.counts.prox_r1 += 1
        if isinf(tau) and self._selection.knows(self.r1):
            value, before = self._selection.take(self.r1)
            return Reweighed(value, before - value, nan)
        w, found = reweigh(self._twin, self.r1, self._w, self._all.f, tau)
        self._w.copy_(w)
        return found

    def gap(self) -> float:
        if self._selection.knows(self.r1):
            value, before = self._selection.look(self.r1)
            return before - value
        return gap(self._twin, self._w, self._all.f, self.r1.minimise(self._all.f, self._twin.s))

    def mean_duals(self) -> Array:
        if self._kind != "residuals":
            return self._exchange.array(self._plain().mean_duals())
        return self._all.mean()

    # -- x-steps ------------------------------------------------------------------------------------------------------

    def difference(self, x: Array, batch: Recipe, refresh: Recipe) -> tuple[Array, Array]:
        if self._kind != "residuals":
            found = self._plain().difference(self._exchange.tensor(x), batch, refresh)
            return self._exchange.array(found[0]), self._exchange.array(found[1])
        exchange, shares = self._exchange, self._all.shares()
        exchange.send(x)
        drawn = self._active(batch, shares)
        difference = exchange.fetch(self._rows.difference(exchange.x, drawn.rows, drawn.c)[0])
        if isinstance(refresh.law, Nothing):
            return difference, zeros(x.shape, x)
        if refresh is not batch:
            drawn = self._active(refresh, shares)
        self._all.table_changed()
        return difference, exchange.fetch(refreshed(self._rows, exchange.x, drawn.rows, shares))

    def finite(self, g: Array) -> bool:
        return isfinite(sum64(g))

    def stretch(self, run: Algorithm1, state: State) -> bool:
        steps = None if self._careful else self._steps_of(run)
        if steps is None:
            return False
        count = tails_ahead(run, state.k, steps.capacity)
        if count == 0:
            return False
        steps.draw(state, count)
        if self.passes + 1 + count * run.b / self.problem.n >= self.max_passes:  # then the driver may stop on the way
            distinct = steps.distinct(count)
            distinct[0] *= state.moved
            enough = (self.counts.gradients + np.cumsum(distinct)) / self.problem.n + 1 >= self.max_passes
            count = int(np.argmax(enough)) + 1 if enough.any() else count
        drawn = steps.take(state, count)
        if drawn is None:
            self._careful = True
            return False
        self.counts.gradients += drawn.evaluated
        self.counts.skipped += drawn.skipped
        self.counts.prox_r2 += count
        return True

    def _steps_of(self, run: Algorithm1) -> Steps | None:
        """The stretches of a run; None where its steps are not known there."""
        if self._steps[0] is not run:
            made = steps_on_device(self._rows, self._layout, run, self._w, self._drawing) if knows(run) else None
            self._steps = (run, made)
        return self._steps[1]

    # -- the rest -----------------------------------------------------------------------------------------------------

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        self._exchange.send(x)
        c = self._all.shares()
        kept = int((c != 0).sum())
        self.counts.gradients += kept if 4 * kept < self.problem.n else self.problem.n
        self.counts.functions += kept if 4 * kept < self.problem.n else self.problem.n
        value, G = self._rows.value_gradient(self._exchange.x, c)
        return float(value), self._exchange.fetch(G)

    def hessp(self, x: Array, u: Array, batch: Recipe) -> Array:
        self._exchange.send_both(x, u)
        if isinstance(batch.law, Everything):
            self.counts.gradients += self.problem.n
            return self._exchange.fetch(
                self._rows.hessp(self._exchange.x, self._exchange.u, slice(0, self.problem.n), self._all.shares())
            )
        found = self._products.of(batch)
        self.counts.gradients += found.evaluated
        self.counts.skipped += found.skipped
        return self._exchange.fetch(found.product())

    def hessian(self, x: Array) -> np.ndarray:
        self.counts.gradients += self.problem.n
        return self._twin.loss.hessian(self._exchange.tensor(x), self._all.shares())

    def newton_system(self, x: Array) -> NewtonSystem:
        return DenseSystem(self.hessian(x))

    def column_moments(self) -> tuple[float, Array, Array]:
        c = self._all.shares()
        second, fourth = self._rows.moments(c)
        found = torch.cat([c.sum(dtype=torch.float64)[None], second, fourth]).cpu().numpy()
        total, p = float(found[0]), self._rows.p
        second, fourth = (self._layout.broadcasting(part, total) for part in (found[1 : p + 1], found[p + 1 :]))
        return total, self._exchange.array64(second), self._exchange.array64(fourth)

    def minimise(self, x: Array, r2: Regularizer | None = None) -> Array | None:
        found = self._twin.loss.minimiser(
            self._all.shares(), self.problem.r2 if r2 is None else r2, self._exchange.tensor(x)
        )
        return None if found is None else self._exchange.array(found)

    def _active(self, recipe: Recipe, shares: Tensor) -> Active:
        found = active(recipe, self.problem.n, self._cumulative, self._w, shares)
        self.counts.gradients += found.evaluated
        self.counts.skipped += found.skipped
        return found

    @cached_property
    def _other_duals(self) -> LocalEngine:
        """An engine for duals that are not kept as residuals, on the same device."""
        return LocalEngine(self._twin)

    def _plain(self) -> LocalEngine:
        """The engine for duals that are kept in other ways, brought up to date."""
        self._other_duals.counts = self.counts
        self._other_duals.set_weights(self._w)
        return self._other_duals
