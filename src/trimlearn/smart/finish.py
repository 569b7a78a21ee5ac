"""What Algorithm 1 began, finished: full-batch steps on the rows kept, once w has settled or half the passes are made.

First-order steps find the rows to keep, and slow down where columns are correlated, scales differ or n < p. Alternating
minimisation from there, by a closed form or by Newton's steps, takes a few rounds. Small problems have local minima
far apart, and there it is also tried from elsewhere. All this lies around Algorithm 1, not in it, and is for steps that
are automatic: a γ that was given is kept to.

Quasi-Newton steps on the profile G(x) = min over w of F(w, x).

Where w is the best for x, the gradient of F(w, ·) is that of G. Alternating minimisation takes steps by the Hessian of
F(w, ·), which is larger than G's (some rows leave w as x moves): it halves what is left in a round of three passes.
Over many rows G is smooth but for single rows, and secant pairs of its own gradients (BFGS) make the steps the right
length: a step is one evaluation, which also serves the next w.

A start from a sample of the rows: where rows are many, a few per cent of them lead to the same valley.

A continuation over all rows takes some 20 passes. Over a few hundred rows for each parameter it takes a fraction of
one, and ends within statistical error of where the other ends: (w, x) on all rows goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, repeat
from math import inf, isfinite, prod
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from trimlearn._utils.arrays import Array, asarray_like, rounding_of, to_numpy
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Zero
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.alternating import AlternatingRun
from trimlearn.smart.inner.newton import newton, newton_decrease
from trimlearn.smart.method import Record, Run, State, affordable, default_inner, small, start_sample_size
from trimlearn.smart.metrics import Euclidean, Metric, default_metric, first_step
from trimlearn.smart.steps import Auto
from trimlearn.smart.w_step import least
from trimlearn.weights import AllOnes

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

ROWS = 100  # for each parameter from which on G counts as smooth: the Hessian is then known to a tenth
PROMISED = 0.1  # share of the predicted fall that a step must bring: less, and G is rougher than the step is long
FAILURES = 2  # steps that may fail before alternating minimisation takes over


def is_smooth(problem: Problem) -> bool:
    """Whether the profile of this problem is smooth enough, and its Hessian of some use."""
    many = problem.n >= ROWS * prod(problem.loss.x_shape) and not small(problem)
    return many and problem.r2.smooth and problem.r2.separable and problem.r2.convex


@final
@dataclass(frozen=True)
class ProfileRun(Run):
    """Quasi-Newton steps on the profile for as long as they bring what they promise, else alternating minimisation."""

    plain: AlternatingRun

    def prepare(self, engine: Engine) -> None:
        self.plain.prepare(engine)

    def init(self, engine: Engine, x: Array) -> State:
        return self.plain.init(engine, x)

    def finish(self, engine: Engine, state: State) -> None:
        self.plain.finish(engine, state)

    def advance(self, engine: Engine, state: State) -> None:
        M = None if state.failures >= FAILURES or engine.passes_left < 2 else self._inverse(engine, state)
        if M is None:
            self.plain.advance(engine, state)
            return
        r2, x, before = engine.problem.r2, state.x, state.base + engine.problem.r2.value(state.x)
        g = _flat(state.y_mean + r2.gradient(x))
        d = -M @ g
        promised = -0.5 * float(g @ d)
        state.x = x + asarray_like(d.reshape(x.shape), x)
        engine.evaluate(state.x)
        found = engine.reweigh(inf)
        engine.counts.prox_r2 += 1
        fall = before - found.value - r2.value(state.x)
        if not fall >= PROMISED * promised:  # also where it is NaN
            state.failures += 1
            state.metric.profile = None
        if not fall >= -rounding_of(x) * abs(before):
            self._back(engine, state, x)
            self.plain.advance(engine, state)
            return
        state.k += 1
        self.plain.renew(engine, state, found)
        if state.metric.profile is not None:
            change = _flat(state.y_mean + r2.gradient(state.x)) - g
            if float(d @ change) > 2 * PROMISED * promised:  # else G is flat or concave along d, and M would explode
                state.metric.profile = _secant(M, d, change)

    def _inverse(self, engine: Engine, state: State) -> np.ndarray | None:
        """That of what is known of G's Hessian, the Hessian of F(w, ·) at first; None where it is not positive."""
        if state.metric.profile is None:
            H = _hessian(engine, state.x, self.plain.seed)
            try:
                state.metric.profile = cho_solve(cho_factor(H), np.eye(len(H)))
            except (LinAlgError, ValueError):  # singular, or not finite
                state.failures = FAILURES
        return None if state.metric.profile is None else np.asarray(state.metric.profile)

    def _back(self, engine: Engine, state: State, x: Array) -> None:
        """x as it was, with the best w for it, which it had."""
        state.x = x
        engine.evaluate(x)
        state.base, state.y_mean = engine.reweigh(inf).value, engine.mean_duals()


def _hessian(engine: Engine, x: Array, seed: int) -> np.ndarray:
    """That of F(w, ·), w the best for x: over a sample of the rows where one will do."""
    m = start_sample_size(engine.problem)
    part = None if m is None else engine.sample(m, seed)
    if part is not None:
        part.evaluate(x)
        part.reweigh(inf)
        engine.counts.gradients += 2 * part.problem.n
    return (part or engine).newton_system(x).plus(_flat(engine.problem.r2.curvature(x))).matrix()


def _secant(M: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """M after the secant pair (s, y), ⟨s, y⟩ > 0: the update of Broyden, Fletcher, Goldfarb and Shanno."""
    along, My = float(s @ y), M @ y
    outer = np.outer(s, My)
    return M + (1 + float(y @ My) / along) / along * np.outer(s, s) - (outer + outer.T) / along


def _flat(a: Array) -> np.ndarray:
    return to_numpy(a).astype(np.float64).ravel()


# benchmarks/calibration/finishing.py varies the first three: the passes and objectives found hardly change.
SETTLED = 1e-3  # a w-step that lowers F by no more than this share of it: the rows to keep are nearly known
SHARE = 0.5  # of the passes allowed: the latest time to begin
LEVELS = 8  # of h along a continuation, as many as `trimlearn.starts.Continuation` has w-steps
UNPENALISED = 4  # Newton steps for an x that is only a start: each doubles its digits, one becomes 16
PASSES = 3  # of a round: losses and gradient, Hessian, trial
ROUND = {"newton": 1, "lbfgs": 20, "proximal": 20}  # steps between two w-steps: one, or `alternating`'s default


def can_finish(run: Algorithm1) -> bool:
    """Whether full-batch steps are allowed (γ is automatic, the last iterate is what is asked for) and affordable."""
    asked = isinstance(run.rule, Auto) and run.renews and not run.random_output and run.duals != "none"
    return asked and affordable(run.problem) and isinstance(run.problem.loss, PredictionLoss)


def finisher(problem: Problem, seed: int, metric: Metric) -> AlternatingRun:
    """Alternating minimisation in the metric of the run that it finishes."""
    inner = default_inner(problem, hessians=True)
    return AlternatingRun(problem, seed, ROUND[inner], inner, metric)


def decrease(engine: Engine, state: State, gradient: Array | None) -> float:
    """By what share F(w, ·) could fall from x on: to a closed form, to the minimum of Newton's model, or by what some
    iterations take off and leave. Infinity where those did not come to their end.

    ``gradient``: of the mean loss, where it is known. x, w, f and y stay as they are; the passes count.
    """
    problem, x = engine.problem, state.x
    F, penalty = state.record.objective if state.record else inf, problem.r2.value(x)
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
        trial = State(x=x, base=F - penalty, y_mean=gradient, w_steps=1)
        run = AlternatingRun(problem, 0, ROUND[inner], inner, default_metric(problem))
        run.metric.learn(engine, trial, 0.0)
        trial.gamma = first_step(engine, x, run.metric.inverse(trial))
        best, left = run.fit(engine, trial)
        fall = F - engine.value_gradient(best)[0] - problem.r2.value(best) + left
    return max(fall, 0.0) / max(abs(F), least(state))


def unpenalised(engine: Engine, x: Array) -> Array:
    """x without r2, and then the nearest that r2 allows: a penalty that is not convex may hold x at 0."""
    exact = engine.minimise(x, Zero())
    if exact is None:
        exact, _ = newton(engine, x, *engine.value_gradient(x), UNPENALISED, Zero())
    return engine.problem.r2.feasible(exact)


def scout(engine: Engine, run: AlternatingRun, state: State, x: Array, levels: list[float]) -> tuple[float, Array]:
    """F and x where concentration leads from x: a round at each of the levels of h, then until it pays no more."""
    problem = engine.problem
    trial, F = State(x=x, gamma=state.gamma, metric=state.metric), inf
    for h in chain(levels, repeat(problem.r1.h)):
        if engine.passes_left < PASSES:
            break
        engine.r1 = problem.r1 if h == problem.r1.h else problem.r1.at_h(h)
        engine.evaluate(trial.x)
        trial.base, trial.y_mean = engine.reweigh(inf).value, engine.mean_duals()
        if engine.r1 is problem.r1:
            before, F = F, trial.base + problem.r2.value(trial.x)
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


@final
@dataclass(frozen=True)
class Finished(Run):
    """Algorithm 1, and then alternating minimisation from where it has come to, or steps on the profile where rows are
    many."""

    first: Algorithm1
    last: AlternatingRun

    @property
    def steps(self) -> Run:
        """What finishes."""
        many = self.last.inner == "newton" and is_smooth(self.first.problem)
        return ProfileRun(self.last) if many else self.last

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


SURPRISE = 0.25  # share of F by which it may be higher on all rows: more, at 40 % wrong labels, led to worse minima


def from_sample(engine: Engine, seed: int) -> Array | None:
    """x where a continuation over a sample of the rows leads, with the best w for it in the engine; None where the rows
    are few, where the engine has none at hand, or where the sample says too little about all of them."""
    problem = engine.problem
    newton = isinstance(problem.loss, PredictionLoss) and default_inner(problem, hessians=True) == "newton"
    m = start_sample_size(problem) if newton and problem.r2.convex else None
    part = None if m is None else engine.sample(m, seed)
    if part is None:
        return None
    F, x = continued(part, finisher(part.problem, seed, Euclidean()))
    engine.counts.gradients += part.counts.gradients
    engine.evaluate(x)
    on_all = engine.reweigh(inf).value + problem.r2.value(x)
    return x if on_all - F <= SURPRISE * abs(F) else None
