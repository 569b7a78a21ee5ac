"""The problems of a linear model: penalties by the names that scikit-learn's users know, and how it is all solved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, prod
from operator import attrgetter
from typing import Any, final

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn._utils.validation import is_number
from trimlearn._utils.warn import warn
from trimlearn.problem import Problem
from trimlearn.progress import stage
from trimlearn.regularizers import L0, L1, MCP, SCAD, ElasticNet, Regularizer, Ridge, Scaled
from trimlearn.smart.method import FEW, SMALL, Method, Record, small
from trimlearn.solution import Status
from trimlearn.solve import solve

SELECTING = ("l1", "elasticnet", "scad", "mcp", "l0")  # those that set coefficients to zero
PENALTIES = ("l2", *SELECTING)  # all that estimators take; names as in scikit-learn, where it has them
SETTLED = 1e-3  # share of F whose loss in the last quarter of the passes is not called falling: the tol of large data
LAST = 0.75  # of the passes: what comes after is the last quarter
TINY = 1e-300  # stands for |F| where F = 0: the smallest power of ten whose inverse is finite, and some room


def make_penalty(penalty: str, alpha: Any, l1_ratio: Any, scale: float) -> Regularizer:
    """scale · alpha · penalty: r2, where the objective a user has in mind, times ``scale``, is F.

    >>> make_penalty("l1", 0.5, None, scale=0.1)
    L1(alpha=0.05)
    """
    if not isinstance(penalty, str) or penalty not in PENALTIES:
        raise ValueError(f"penalty must be None or one of {', '.join(map(repr, PENALTIES))}, got {penalty!r}.")
    if not is_number(alpha) or not 0 <= alpha < inf:
        raise ValueError(f"alpha must be a finite number >= 0, got {alpha!r}.")
    strength = float(alpha) * scale
    if penalty == "elasticnet":
        if not is_number(l1_ratio) or not 0 <= l1_ratio <= 1:
            raise ValueError(f"l1_ratio must be a number from 0 to 1, got {l1_ratio!r}.")
        return ElasticNet(strength, float(l1_ratio))
    if penalty in ("scad", "mcp"):  # not homogeneous in alpha
        term = SCAD(float(alpha)) if penalty == "scad" else MCP(float(alpha))
        return Scaled(term, scale)
    plain: dict[str, type[Regularizer]] = {"l2": Ridge, "l1": L1, "l0": L0}
    return plain[penalty](strength)  # type: ignore[call-arg]


@final
@dataclass(frozen=True)
class LinearFit:
    """A model x, the weights w it was fitted with, and how that went. basins: models (k, q) on other planes, where some
    were found."""

    x: Array
    w: np.ndarray
    objective: float
    history: list[Record]
    status: Status
    basins: np.ndarray | None = None


@final
@dataclass(frozen=True)
class Solver:
    """How to solve all problems of one fit of the estimator called ``name``.

    max_passes, tol: None where users leave them to us. Then large data get ``enough`` passes, small ones as many as
    ``most``; and a fit to large data that ends early counts as stopped short where F was still ``falling`` by more than
    this share of it. exact: a value of F up to which the fit is exact, and all that moves is rounding.
    """

    name: str
    method: Method | None
    max_passes: float | None
    tol: float | None
    seed: int
    enough: float = 200  # a limit on time: so many passes over 10⁸ numbers are minutes
    most: float = inf
    falling: float = SETTLED
    exact: float = -inf

    def trimmed(self, problem: Problem, h: float, starts: Sequence[str | Array]) -> LinearFit:
        """The best of the trimmed fits that keep h: a start is named, or is an x."""
        stage(f"trimmed fit, keeping {h:.0f} of {problem.S:.0f} rows")
        fits = [self._solve(problem, start) for start in starts]
        best = min(fits, key=attrgetter("objective"))
        self.warn_if_short(best)
        return best

    def refit(self, problem: Problem, x0: Array) -> Array:
        """The model of rows as they are weighted: in closed form where there is one, else from x0 or the loss's own
        start, where F is less; and from the other, too, where that comes to no end. From means that have run off to 0
        hardly any gradient leads back."""
        stage(f"fit to the {problem.S:.0f} rows explained")
        s = np.ones(problem.n) if problem.s is None else problem.s
        x = problem.loss.minimiser(s / problem.S, problem.r2, x0)
        if x is not None:
            return x
        starts = [x0, to_numpy(problem.r2.feasible(problem.loss.start()))]
        first, other = sorted(starts, key=partial(problem.objective, np.ones(problem.n)))
        found = self._solve(problem, first)
        if not found.status.converged:
            found = min(found, self._solve(problem, other), key=attrgetter("objective"))
        self.warn_if_short(found)
        return found.x

    def _solve(self, problem: Problem, start: str | Array) -> LinearFit:
        where: dict[str, Any] = {"start": start} if isinstance(start, str) else {"x0": start}
        max_passes, tol = self._limits(problem)
        found = solve(problem, self.method, max_passes=max_passes, tol=tol, seed=self.seed, **where)
        return LinearFit(to_numpy(found.x), to_numpy(found.w), found.objective, found.history, found.status)

    def _limits(self, problem: Problem) -> tuple[float, float]:
        """max_passes and tol: where they are left open, the closer, the less a pass costs. tol is 1e-9 where Newton
        steps converge quadratically, so that the last digits are free, and 1e-5 where first-order steps must do. The
        passes are limits on time: over a small problem one takes a millisecond."""
        passes, tol = self.enough, 1e-3
        if small(problem):
            passes, tol = (2000.0, 1e-9) if prod(problem.loss.x_shape) <= FEW else (1000.0, 1e-5)
        passes = min(passes, self.most) if self.max_passes is None else self.max_passes
        return passes, tol if self.tol is None else self.tol

    def warn_if_short(self, fit: LinearFit) -> None:
        """ConvergenceWarning for a fit that stopped while the objective was still falling.

        Stationarity is relative to where a run starts: one that starts next to the optimum has far to go in its own
        terms. So it is asked by what share of F the last quarter of the passes has lowered it.
        """
        ours = self.max_passes is None and len(fit.w) * fit.x.size > SMALL
        if fit.status.converged or fit.objective <= self.exact:
            return
        if not _fall(fit.history) <= (self.falling if ours else SETTLED):
            how = f"{self.name} stopped short: {fit.status.value}"
            warn(f"{how} Raise max_passes, or tol, or bring the columns to one scale.", ConvergenceWarning)


def _fall(history: list[Record]) -> float:
    """The share of F by which the last quarter of the passes has lowered it; infinity where nothing is known."""
    end = history[-1]
    before = [record.objective for record in history if record.passes <= LAST * end.passes and record.h == end.h]
    if not before or not isfinite(end.objective):
        return inf
    return (before[-1] - end.objective) / max(abs(end.objective), TINY)
