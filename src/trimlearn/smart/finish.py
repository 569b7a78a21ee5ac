"""What Algorithm 1 began, finished: full-batch steps on the rows kept, once w has settled or half the passes are made.

First-order steps find the rows to keep, and slow down where columns are correlated, scales differ or n < p. Alternating
minimisation from there, by a closed form or by Newton's steps, takes a few rounds. It lies around Algorithm 1, not in
it, and is for steps that are automatic: a γ that was given is kept to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from trimlearn.arrays import Array
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.alternating import AlternatingRun, affordable, default_inner
from trimlearn.smart.method import Record, Run, State, least
from trimlearn.smart.metric import Metric, default_metric
from trimlearn.smart.steps import Auto, first_step

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

__all__ = ["Finished", "can_finish", "decrease", "finisher"]

SETTLED = 1e-3  # a w-step that lowers F by no more than this share of it: the rows to keep are nearly known
SHARE = 0.5  # of the passes allowed: the latest time to begin
TRIAL = 20  # steps of a solver that is to show whether F can still fall
ROUND = {"newton": 1, "lbfgs": 20, "proximal": 20}  # steps between two w-steps: few, for the next w will differ


def can_finish(run: Algorithm1) -> bool:
    """Whether full-batch steps are allowed (γ is automatic, the last iterate is what is asked for) and affordable."""
    asked = isinstance(run.rule, Auto) and run.renews and not run.random_output and run.duals != "none"
    return asked and affordable(run.problem) and isinstance(run.problem.loss, PredictionLoss)


def finisher(problem: Problem, seed: int, metric: Metric) -> AlternatingRun:
    """Alternating minimisation in the metric of the run that it finishes."""
    inner = default_inner(problem, hessians=True)
    return AlternatingRun(problem, seed, ROUND[inner], inner, metric)


def decrease(engine: Engine, state: State) -> float:
    """By what share F(w, ·) could fall from x on: what a solver of the whole problem takes off, and what it leaves.

    Infinity where it did not come to its end. x, w, f and y stay as they are; the passes count.
    """
    problem = engine.problem
    run = AlternatingRun(problem, 0, TRIAL, default_inner(problem, hessians=True), default_metric(problem))
    value, gradient = engine.value_gradient(state.x)
    F = value + problem.r2.value(state.x)
    trial = State(x=state.x, base=value, y_mean=gradient, w_steps=1)
    run.metric.learn(engine, trial, 0.0)
    trial.gamma = first_step(engine, trial.x, run.metric.inverse(trial))
    x, left = run.fit(engine, trial)
    gain = F - engine.value_gradient(x)[0] - problem.r2.value(x)
    return (max(gain, 0.0) + left) / max(abs(F), least(state))


@final
@dataclass(frozen=True)
class Finished(Run):
    """Algorithm 1, and then alternating minimisation from where it has come to."""

    first: Algorithm1
    last: AlternatingRun

    def prepare(self, engine: Engine) -> None:
        self.first.prepare(engine)

    def init(self, engine: Engine, x: Array) -> State:
        return self.first.init(engine, x)

    def advance(self, engine: Engine, state: State) -> None:
        if state.finishing:
            self.last.advance(engine, state)
            return
        self.first.advance(engine, state)
        if state.record is not None and self._due(engine, state, state.record):
            state.finishing = True
            self.last.take_over(engine, state)

    def finish(self, engine: Engine, state: State) -> None:
        (self.last if state.finishing else self.first).finish(engine, state)

    def _due(self, engine: Engine, state: State, record: Record) -> bool:
        """Whether w lies in r1 and has settled, or time presses."""
        made, allowed = engine.passes - state.began, engine.max_passes - state.began
        return state.since is not None and (record.stationarity_w <= SETTLED or made >= SHARE * allowed)
