"""Quasi-Newton steps on the profile G(x) = min over w of F(w, x).

Where w is the best for x, the gradient of F(w, ·) is that of G. Alternating minimisation takes steps by the Hessian of
F(w, ·), which is larger than G's (some rows leave w as x moves): it halves what is left in a round of three passes.
Over many rows G is smooth but for single rows, and secant pairs of its own gradients (BFGS) make the steps the right
length: a step is one evaluation, which also serves the next w.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING, final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from trimlearn._utils.arrays import Array, asarray_like, rounding_of, to_numpy
from trimlearn.problem import Problem
from trimlearn.smart.alternating import AlternatingRun
from trimlearn.smart.method import State, small, start_sample_size

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
class ProfileSteps:
    """Quasi-Newton steps on the profile for as long as they bring what they promise, else alternating minimisation."""

    plain: AlternatingRun

    def advance(self, engine: Engine, state: State) -> None:
        M = None if state.failures >= FAILURES or engine.passes_left < 2 else self._inverse(engine, state)
        if M is None:
            self.plain.advance(engine, state)
            return
        r2, x, before = engine.problem.r2, state.x, state.base
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
        state.base, state.y_mean = engine.reweigh(inf).value + engine.problem.r2.value(x), engine.mean_duals()


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
