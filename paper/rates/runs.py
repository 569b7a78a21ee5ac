"""Methods run side by side on one trimmed problem: what is run, what came out, the best of a grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from paper.mnist.fits import LAMBDA, OVERTRIM
from trimlearn import Problem, Solution, solve
from trimlearn._utils.arrays import Array
from trimlearn.losses import Softmax
from trimlearn.regularizers import Ridge
from trimlearn.smart.method import Method
from trimlearn.weights import CappedSimplex

__all__ = ["Entry", "Run", "best", "solve_entry", "trimmed_softmax", "with_ends"]

Value = TypeVar("Value")


def trimmed_softmax(V: Array, t: ArrayLike, wrong: float) -> Problem:
    """The paper's trimmed multiclass problem where a share ``wrong`` of the labels is wrong: h = (1 − wrong − 0.1)·n.

    >>> trimmed_softmax(np.eye(10), np.arange(10), wrong=0.3).r1
    CappedSimplex(6.0)
    """
    n = len(V)
    return Problem(Softmax(V, t), CappedSimplex(round(n * (1 - wrong - OVERTRIM))), Ridge(LAMBDA / n))


@dataclass(frozen=True)
class Entry:
    """A method to run: its name, the settings that others of that name do not share, and where it starts."""

    name: str
    settings: str
    method: Method
    seed: int = 0
    start: str | None = None
    at_end: bool = False  # of its grid: a better setting may lie beyond


@dataclass(frozen=True)
class Run:
    """What came out."""

    entry: Entry
    solution: Solution
    passes: float  # allowed

    @property
    def name(self) -> str:
        """The method's."""
        return self.entry.name

    @property
    def final(self) -> float:
        """F after the passes allowed: a method that looks at F more rarely than that is interpolated, in log F."""
        history = self.solution.history
        before = max((record for record in history if record.passes <= self.passes), key=lambda record: record.passes)
        after = next((record for record in history if record.passes > self.passes), None)
        if after is None or before.passes == self.passes or not (before.objective > 0 and 0 < after.objective < inf):
            return before.objective
        share = (self.passes - before.passes) / (after.passes - before.passes)
        return exp((1 - share) * log(before.objective) + share * log(after.objective))

    def needs(self, objective: float) -> float:
        """Passes until a record shows this objective or less; inf: never."""
        shown = (record.passes for record in self.solution.history if record.objective <= objective)
        return next(shown, inf)


def with_ends(values: Sequence[Value]) -> Iterator[tuple[Value, bool]]:
    """The values of a grid, and whether each is its first or its last.

    >>> list(with_ends([1, 2, 3]))
    [(1, True), (2, False), (3, True)]
    """
    return ((value, value in (values[0], values[-1])) for value in values)


def solve_entry(problem: Problem, entry: Entry, passes: float) -> Run:
    """Run it for so many passes, whatever it converges to."""
    with np.errstate(over="ignore", invalid="ignore"):  # a grid holds steps that diverge
        solution = solve(problem, entry.method, start=entry.start, max_passes=passes, tol=0, seed=entry.seed)
    return Run(entry, solution, passes)


def best(runs: Iterable[Run]) -> dict[str, Run]:
    """The lowest final F under each name; NaN is never the lowest."""
    found: dict[str, Run] = {}
    for run in runs:
        if run.name not in found or run.final < found[run.name].final or not found[run.name].final < inf:
            found[run.name] = run
    return found
