"""Figure 2, one panel: every method on MNIST with a share of its labels wrong, its rivals tuned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from paper.outcome import Say, quiet
from paper.rates.optimum import Optimum, lowest
from paper.rates.runs import Entry, Run, best, solve_entry, trimmed_softmax, with_ends
from paper.side_by_side import side_by_side
from trimlearn import Problem
from trimlearn._utils.arrays import Array
from trimlearn.datasets import shift_labels
from trimlearn.smart import alternating, palm, saga, sg, svrg
from trimlearn.smart.steps import Decaying

__all__ = ["CONTINUED", "METHODS", "Level", "LevelSettings", "compare", "fading"]

CLASSES = 10  # digits
CONTINUED = "SMART-SVRG, continuation"
METHODS = ("SMART-SVRG", "SMART-SAGA", CONTINUED, "alternating", "SG", "PALM")


@dataclass(frozen=True)
class LevelSettings:
    """Passes of each run, and of each of those that look for F*; the rivals' grids: PALM's γ, SG's γ and the passes
    after which it is halved (inf: never), L-BFGS steps in a round of alternating minimisation."""

    passes: float = 100
    long_passes: float = 180
    palm: tuple[float, ...] = (1, 2, 4)
    sg: tuple[tuple[float, float], ...] = ((3, inf), (10, inf), (10, 5), (30, 20))
    alternating: tuple[int, ...] = (3, 5, 10, 20, 40)
    seed: int = 0


@dataclass(frozen=True)
class Level:
    """What came out: the best run of each method, the lowest F known, and how many settings each was the best of."""

    wrong: float
    h: float
    optimum: Optimum
    runs: dict[str, Run]
    tried: dict[str, int]
    f_star: float

    def errors(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Passes, and (F − F*)/F* there; a continuation is shown from where it has come down to h."""
        records = [record for record in self.runs[name].solution.history if record.h <= self.h]
        F = np.array([record.objective for record in records])
        return np.array([record.passes for record in records]), (F - self.f_star) / self.f_star

    def needs(self, name: str, error: float) -> float:
        """Passes until (F − F*)/F* ≤ ``error``; inf: never."""
        passes, errors = self.errors(name)
        return next((float(p) for p, e in zip(passes, errors, strict=True) if e <= error), inf)

    def final(self, name: str) -> float:
        """(F − F*)/F* after the passes allowed."""
        return (self.runs[name].final - self.f_star) / self.f_star


def compare(
    V: Array,
    y: ArrayLike,
    wrong: float,
    settings: LevelSettings,
    cache: Path | None = None,
    *,
    say: Say = quiet,
) -> Level:
    """Shift a share ``wrong`` of the labels ``y`` by one, look for F*, run every method from w = h/n, x = 0."""
    t, _ = shift_labels(y, wrong, CLASSES, seed=settings.seed)
    problem = trimmed_softmax(V, t, wrong)
    optimum = lowest(problem, settings.long_passes, cache, say=say)
    runs = []
    for run in side_by_side(lambda entry: solve_entry(problem, entry, settings.passes), list(_entries(settings))):
        runs.append(run)
        say(f"rates: {wrong:.0%} wrong: {run.name}, {run.entry.settings}: F = {run.final:.3g}")
    tried = {name: sum(run.name == name for run in runs) for name in METHODS}
    return Level(wrong, problem.r1.h, optimum, best(runs), tried, _lowest_seen(problem, optimum, runs))


def _lowest_seen(problem: Problem, optimum: Optimum, runs: list[Run]) -> float:
    """F*: no run may be below it."""
    records = (record for run in runs for record in run.solution.history if record.h <= problem.r1.h)
    return min([optimum.objective, *(record.objective for record in records if record.objective < inf)])


def _entries(settings: LevelSettings) -> Iterator[Entry]:
    seed = settings.seed
    yield Entry("SMART-SVRG", "step found by itself", svrg(finish=False), seed)
    yield Entry("SMART-SAGA", "step found by itself", saga(finish=False), seed)
    yield Entry(CONTINUED, "step found by itself", svrg(finish=False), seed, start="continuation")
    for gamma, end in with_ends(settings.palm):
        yield Entry("PALM", f"γ = {gamma:g}", palm(step=gamma), seed, at_end=end)
    for gamma, half in settings.sg:
        yield Entry("SG", f"γ = {gamma:g}, {fading(half)}", sg(step=Decaying(gamma, half)), seed)
    for iterations, end in with_ends(settings.alternating):
        method = alternating(iterations, inner="lbfgs")
        yield Entry("alternating", f"{iterations} L-BFGS steps a round", method, seed, at_end=end)


def fading(half: float) -> str:
    """How SG's step shrinks, in words."""
    return "constant" if half == inf else f"halved after {half:g} passes"
