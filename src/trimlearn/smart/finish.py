"""What Algorithm 1 began, finished: full-batch steps on the rows kept, once w has settled or half the passes are made.

First-order steps find the rows to keep, and slow down where columns are correlated, scales differ or n < p. Alternating
minimisation from there, by a closed form or by Newton's steps, takes a few rounds. Small problems have local minima
far apart, and there it is also tried from elsewhere. All this lies around Algorithm 1, not in it, and is for steps that
are automatic: a γ that was given is kept to.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, repeat
from math import inf, isfinite
from typing import TYPE_CHECKING, final

from trimlearn._utils.arrays import Array
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Zero
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.alternating import AlternatingRun
from trimlearn.smart.inner.newton import newton, newton_decrease
from trimlearn.smart.method import Record, Run, State, affordable, default_inner, small
from trimlearn.smart.metrics import Metric, default_metric, first_step
from trimlearn.smart.profile import ProfileSteps, is_smooth
from trimlearn.smart.steps import Auto
from trimlearn.smart.w_step import least
from trimlearn.weights import AllOnes

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

# benchmarks/calibration/finishing.py varies the first three: the passes and objectives found hardly change.
SETTLED = 1e-3  # a w-step that lowers F by no more than this share of it: the rows to keep are nearly known
SHARE = 0.5  # of the passes allowed: the latest time to begin
LEVELS = 8  # of h along a continuation, as many as `trimlearn.starts.Continuation` has w-steps
UNPENALISED = 4  # Newton steps for an x that is only a start: each doubles its digits, one becomes 16
PASSES = 3  # of a round: losses and gradient, Hessian, trial
ROUND = {"newton": 1, "lbfgs": 20, "proximal": 20}  # steps between two w-steps: one, or `alternating`'s default


@final
@dataclass(frozen=True)
class Finished(Run):
    """Algorithm 1, and then alternating minimisation from where it has come to, or steps on the profile where rows are
    many."""

    first: Algorithm1
    last: AlternatingRun

    @property
    def steps(self) -> AlternatingRun | ProfileSteps:
        """What finishes."""
        many = self.last.inner == "newton" and is_smooth(self.first.problem)
        return ProfileSteps(self.last) if many else self.last

    def prepare(self, engine: Engine) -> None:
        self.first.prepare(engine)

    def init(self, engine: Engine, x: Array) -> State:
        return self.first.init(engine, x)

    def advance(self, engine: Engine, state: State) -> None:
        if state.finishing:
            self.steps.advance(engine, state)
            return
        self.first.advance(engine, state)
        if state.record is not None and self._due(engine, state, state.record):
            state.finishing = True
            x = self._best_of_several(engine, state) if self._looks_elsewhere(engine, state) else state.x
            self.last.take_over(engine, state, x)

    def begin_near(self, engine: Engine, state: State) -> None:
        state.finishing = True
        self.last.take_over(engine, state, state.x)

    def finish(self, engine: Engine, state: State) -> None:
        (self.last if state.finishing else self.first).finish(engine, state)

    def _looks_elsewhere(self, engine: Engine, state: State) -> bool:
        """Whether that is likely to pay (trimming makes F nonconvex, few rows rugged), affordable, and not against the
        user's word: one who gives x0, or starts that were compared already, did not come along a continuation."""
        problem = self.first.problem
        cheap = small(problem) and self.last.inner == "newton" and not isinstance(problem.r1, AllOnes)
        return cheap and bool(state.since) and engine.max_passes - state.began >= PASSES * LEVELS

    def _best_of_several(self, engine: Engine, state: State) -> Array:
        """The best of where concentration leads from x, from the loss's own start at once and along a continuation, and
        from x again with half of the trimmed rows back, or half as many more gone, for a round."""
        problem, limit, made = self.first.problem, engine.max_passes, engine.passes
        engine.max_passes = made + limit - state.began  # as many passes as the run has, on top of them
        begin, h, trimmed = problem.r2.feasible(problem.loss.start()), problem.r1.h, problem.S - problem.r1.h
        other = begin if problem.r2.convex else unpenalised(engine, state.x)
        fewer = [max(h - trimmed / 2, h / 2)]
        ways: list[tuple[Array, list[float]]] = [(state.x, []), (other, []), (begin, levels(problem))]
        ways += [(state.x, [h + trimmed / 2]), (state.x, fewer)]
        tried = [scout(engine, self.last, state, *way) for way in ways]
        state.elsewhere = engine.passes - made
        engine.max_passes = limit + state.elsewhere
        return min(tried, key=lambda found: found[0])[1]

    def _due(self, engine: Engine, state: State, record: Record) -> bool:
        """Whether w lies in r1 and has settled, or time presses, or there are other minima to look for."""
        made, allowed = engine.passes - state.began, engine.max_passes - state.began
        ripe = self._looks_elsewhere(engine, state) or record.stationarity_w <= SETTLED or made >= SHARE * allowed
        return state.since is not None and ripe


def can_finish(run: Algorithm1) -> bool:
    """Whether full-batch steps are allowed (γ is automatic, the last iterate is what is asked for) and affordable."""
    asked = isinstance(run.rule, Auto) and run.renews and not run.random_output and run.duals != "none"
    return asked and affordable(run.problem) and isinstance(run.problem.loss, PredictionLoss)


def finisher(problem: Problem, seed: int, metric: Metric) -> AlternatingRun:
    """Alternating minimisation in the metric of the run that it finishes."""
    inner = default_inner(problem, hessians=True)
    return AlternatingRun(problem, seed, ROUND[inner], inner, metric)


def scout(engine: Engine, run: AlternatingRun, state: State, x: Array, levels: list[float]) -> tuple[float, Array]:
    """F and x where concentration leads from x: a round at each of the levels of h, then until it pays no more."""
    problem = engine.problem
    trial, F = State(x=x, gamma=state.gamma, metric=state.metric), inf
    for h in chain(levels, repeat(problem.r1.h)):
        if engine.passes_left < PASSES:
            break
        engine.r1 = problem.r1 if h == problem.r1.h else problem.r1.at_h(h)
        engine.evaluate(trial.x)
        trial.base, trial.y_mean = engine.reweigh(inf).value + problem.r2.value(trial.x), engine.mean_duals()
        if engine.r1 is problem.r1:
            before, F = F, trial.base
            if not F < before - SETTLED * abs(F):
                break
        trial.x = run.fit(engine, trial)[0]
    engine.r1 = problem.r1
    return F if isfinite(F) else inf, trial.x


def levels(problem: Problem) -> list[float]:
    """The h of a short continuation, the target's own aside."""
    h, trimmed = problem.r1.h, problem.S - problem.r1.h
    return [h + (1 - k / LEVELS) * trimmed for k in range(LEVELS)]


def continued(engine: Engine, run: AlternatingRun) -> tuple[float, Array]:
    """F and x where concentration leads from the loss's own start along a short continuation."""
    problem = engine.problem
    begin = problem.r2.feasible(problem.loss.start())
    return scout(engine, run, State(x=begin), begin, levels(problem))


def unpenalised(engine: Engine, x: Array) -> Array:
    """x without r2, and then the nearest that r2 allows: a penalty that is not convex may hold x at 0."""
    exact = engine.minimise(x, Zero())
    if exact is None:
        exact, _ = newton(engine, x, *engine.value_gradient(x), UNPENALISED, Zero())
    return engine.problem.r2.feasible(exact)


def decrease(engine: Engine, state: State, gradient: Array | None) -> float:
    """By what share F(w, ·) could fall from x on: to a closed form, to the minimum of Newton's model, or by what some
    iterations take off and leave. Infinity where those did not come to their end.

    ``gradient``: of the mean loss, where it is known. x, w, f and y stay as they are; the passes count.
    """
    problem, x = engine.problem, state.x
    F = state.record.objective if state.record else inf
    inner, exact = default_inner(problem, hessians=True), engine.minimise(x)
    if exact is None and inner != "newton" and engine.passes_left < ROUND[inner]:
        return inf
    if gradient is None:
        gradient = engine.value_gradient(x)[1]
    if exact is not None:
        fall = F - engine.value_gradient(exact)[0] - problem.r2.value(exact)
    elif inner == "newton":
        fall = newton_decrease(engine, x, F, gradient)
    else:
        trial = State(x=x, base=F, y_mean=gradient, w_steps=1)
        run = AlternatingRun(problem, 0, ROUND[inner], inner, default_metric(problem))
        run.metric.learn(engine, trial, 0.0)
        trial.gamma = first_step(engine, x, run.metric.inverse(trial))
        best, left = run.fit(engine, trial)
        fall = F - engine.value_gradient(best)[0] - problem.r2.value(best) + left
    return max(fall, 0.0) / max(abs(F), least(state))
