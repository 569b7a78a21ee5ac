"""A run of SMART that stands still, to be timed."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf

import numpy as np

from trimlearn import Problem
from trimlearn._utils.threads import team
from trimlearn.engines import LocalEngine
from trimlearn.smart import SMART
from trimlearn.smart.method import State
from trimlearn.smart.move_laws import Coin
from trimlearn.smart.row_laws import GivenRows, Recipe

__all__ = ["Bench"]

NEVER = 1e-300  # the chance of a w-step where x-steps alone are timed


class Bench:
    """A run of SMART that stands still: each repetition begins at the same state, on the threads `solve` would use."""

    def __init__(self, problem: Problem, method: SMART) -> None:
        self.problem = problem
        self.engine = LocalEngine(self.problem)
        self.algorithm = method.bind(self.problem, seed=0)
        self._forever = replace(self.algorithm, j=Coin(NEVER))
        self._at_anchor = self.algorithm.init(self.engine, self.problem.loss.start())
        self.algorithm.w_step(self.engine, self._at_anchor)  # w is now 0 or 1
        self._moved = replace(self._at_anchor)
        self._step(self._moved, 0)

    @property
    def steps(self) -> int:
        """How many x-steps make a pass."""
        return ceil(self.problem.n / self.algorithm.b)

    def state(self) -> State:
        """Where x-steps begin: x has left the last w-step's."""
        return replace(self._moved)

    def anchored(self) -> State:
        """Where a w-step evaluates, finds F as it was and takes nothing back; not one at which the metric learns."""
        return replace(self._at_anchor, w_steps=2, moved=True)

    def rows(self) -> list[np.ndarray]:
        """The rows of a pass: those that `x_steps` draws."""
        return [self._drawn(self._moved.k + k) for k in range(self.steps)]

    def _drawn(self, k: int) -> np.ndarray:
        draws = self.engine.draws(0, k)
        draws.uniform()  # what says that it is an x-step
        return np.asarray(self.algorithm.batch.draw(draws))

    def state_and_rows(self) -> tuple[State, list[np.ndarray]]:
        """Both, made before the clock starts."""
        return self.state(), self.rows()

    @team()
    def x_steps(self, state: State) -> None:
        """One pass of x-steps, as `solve` has them taken."""
        end = state.k + self.steps
        while state.k < end:
            self._forever.advance(self.engine, state)

    @team()
    def x_steps_by(self, state: State, rows: list[np.ndarray]) -> None:
        """The same one by one, with rows that were drawn before."""
        for k in range(self.steps):
            self._step(state, k, rows[k])

    def _step(self, state: State, k: int, rows: np.ndarray | None = None) -> None:
        draws = self.engine.draws(0, k)
        batch = Recipe.of(self.algorithm.batch, draws) if rows is None else Recipe(GivenRows(rows))
        self.algorithm.x_step(self.engine, state, batch, Recipe.of(self.algorithm.refresh, draws, batch))

    @team()
    def renewal(self, state: State) -> None:
        """What Algorithm 1 asks of a w-step: f, w, y."""
        self.engine.evaluate(state.x)
        self.engine.reweigh(inf)
        self.engine.mean_duals()

    @team()
    def w_step(self, state: State) -> None:
        """A w-step with all that is done on its occasion."""
        self.algorithm.w_step(self.engine, state)

    @team()
    def moments(self) -> None:
        """What the diagonal metric learns from."""
        self.engine.column_moments()
