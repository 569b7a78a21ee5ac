"""Losses in blocks: alternating minimisation by Newton's steps, and a look at where single blocks could be instead."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, final

from trimlearn._utils.arrays import Array, asarray_like, to_numpy
from trimlearn.losses.blocks import BlockLoss
from trimlearn.losses.relocate import relocated
from trimlearn.problem import Problem
from trimlearn.smart.alternating import AlternatingRun, alternating
from trimlearn.smart.finish import SETTLED
from trimlearn.smart.method import Method, Record, Run, State
from trimlearn.weights import AllOnes

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

# Newton steps between two w-steps: of 1, 2, 3, 5 and 20 those that took the fewest passes, and ended no higher, on
# made-up cameras (`trimlearn.geometry.bundle_data`) whose start was one, two and three times as far off as usual.
STEPS = 2


@final
@dataclass(frozen=True)
class Blockwise(Method):
    """The default for losses in blocks (`trimlearn.losses.BlockLoss`) with a smooth r2."""

    steps: int = STEPS

    def bind(self, problem: Problem, seed: int) -> Run:
        run = alternating(self.steps, inner="newton").bind(problem, seed)
        return run if isinstance(problem.r1, AllOnes) else BlockwiseRun(run)


@final
@dataclass(frozen=True)
class BlockwiseRun(Run):
    """Alternating minimisation; once w has settled, blocks that fit the wrong ones of their examples are moved (see
    `trimlearn.losses.relocate`), and it goes on from there, as long as F falls by that."""

    rounds: AlternatingRun

    def prepare(self, engine: Engine) -> None:
        self.rounds.prepare(engine)

    def init(self, engine: Engine, x: Array) -> State:
        return self.rounds.init(engine, x)

    def advance(self, engine: Engine, state: State) -> None:
        self.rounds.advance(engine, state)
        if state.record is not None and self._due(engine, state, state.record):
            self._look_elsewhere(engine, state, state.record)

    def finish(self, engine: Engine, state: State) -> None:
        self.rounds.finish(engine, state)

    def _due(self, engine: Engine, state: State, record: Record) -> bool:
        """Whether w has settled in r1; ``finishing``: blocks were tried elsewhere already, in vain."""
        settled = state.since is not None and record.stationarity_w <= SETTLED
        return settled and not state.finishing and engine.passes_left >= 1

    def _look_elsewhere(self, engine: Engine, state: State, record: Record) -> None:
        """Go on from where the blocks are better placed, or stay. These passes come on top of max_passes."""
        problem, made = self.rounds.problem, engine.passes
        assert isinstance(problem.loss, BlockLoss), "other losses have no blocks"
        f, w = to_numpy(engine.losses), to_numpy(engine.weights)
        moved, evaluated = relocated(problem.loss, to_numpy(state.x), f, w)
        engine.counts.gradients += evaluated
        engine.counts.functions += evaluated
        x = asarray_like(moved, state.x)
        engine.evaluate(x)
        lower = engine.reweigh(inf).value + problem.r2.value(x) < record.objective - SETTLED * abs(record.objective)
        if not lower:
            state.finishing, x = True, state.x
            engine.evaluate(x)
            engine.reweigh(inf)
        state.elsewhere += engine.passes - made
        engine.max_passes += engine.passes - made
        if lower:
            self.rounds.take_over(engine, state, x)
