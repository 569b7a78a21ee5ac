"""rates (the paper's Figure 2): passes to a given objective, SMART against its rivals, labels shifted by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import numpy as np

from benchmarks.common import Digits, Result, Table, Target
from trimlearn import Problem, Solution, solve
from trimlearn.datasets import shift_labels
from trimlearn.losses import Softmax
from trimlearn.regularizers import Ridge
from trimlearn.smart import alternating, page, palm, saga, sg, svrg
from trimlearn.smart.method import Method
from trimlearn.smart.steps import Decaying
from trimlearn.weights import CappedSimplex

__all__ = ["QUICK", "Plan", "Run", "run"]

# Passes SMART may need for what the rival has at the end, as a share of the rival's own.
PALM, SG, ALTERNATING, ALTERNATING_GOAL, BY_HAND = 1 / 6, 1.0, 1.0, 1 / 2, 1.5
OVERTRIM = 0.1  # as in the paper: 10 points more are trimmed than are wrong
SMARTS = ("svrg, auto", "saga, auto")
SMART_BY_HAND = "svrg, γ by hand"
RIVALS = ("palm", "sg", "alternating")


@dataclass(frozen=True)
class Plan:
    """Shares of wrong labels, passes, seeds of the methods that need no tuning, and the rivals' grids."""

    wrong: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4)
    passes: float = 60
    seeds: tuple[int, ...] = (0, 1)
    palm_steps: tuple[float, ...] = (0.5, 1, 2, 4, 8)
    sg_steps: tuple[float, ...] = (0.1, 0.3, 1, 3)
    sg_halves: tuple[float, ...] = (5, 20, 1e9)
    inner: tuple[int, ...] = (5, 10, 20)
    by_hand: tuple[float, ...] = (0.3, 0.5, 1, 1.5, 2, 3)
    by_hand_momentum: tuple[float, ...] = (0.03, 0.1, 0.2, 0.3, 0.5)


QUICK = Plan((0.2,), 10, (0,), (2, 4), (0.3, 3), (1e9,), (5,), (1,), (0.3,))


@dataclass(frozen=True)
class Run:
    """One method on one problem: its name, its settings, and what came out."""

    name: str
    settings: str
    seed: int
    solution: Solution
    passes: float  # allowed

    @property
    def final(self) -> float:
        """F after the passes allowed: a method that looks at F more rarely than that is interpolated, in log F."""
        before, after = None, None
        for record in self.solution.history:
            if record.passes <= self.passes:
                before = record
            elif after is None:
                after = record
        assert before is not None
        if after is None or not 0 < after.objective < inf or not before.objective > 0:
            return before.objective
        share = (self.passes - before.passes) / (after.passes - before.passes)
        return exp((1 - share) * log(before.objective) + share * log(after.objective))

    def needs(self, objective: float) -> float:
        """Passes until a record shows this objective or less; inf: never."""
        shown = (record.passes for record in self.solution.history if record.objective <= objective)
        return next(shown, inf)


def run(data: Digits, plan: Plan = Plan()) -> Result:
    """Every share of wrong labels: a table and the targets."""
    targets: list[Target] = []
    tables: list[Table] = []
    for wrong in plan.wrong:
        t, shifted = shift_labels(data.t, wrong, 10, seed=0)
        n = len(t)
        problem = Problem(Softmax(data.V, t), CappedSimplex(n * (1 - wrong - OVERTRIM)), Ridge(0.01 / n))
        runs = [_solve(problem, plan, *entry) for entry in _entries(plan)]
        best = _best(runs)
        targets += _targets(wrong, plan, runs, best)
        tables.append(_table(wrong, data, shifted, plan, runs, best))
    settings: dict[str, Any] = {"data": data.name, "n": len(data.t), "passes": plan.passes, "seeds": list(plan.seeds)}
    grids = {name: list(getattr(plan, name)) for name in Plan.__dataclass_fields__ if name not in ("wrong", "seeds", "passes")}
    return Result("rates", settings | grids, targets, tables)


Entry = tuple[str, str, Method, int, str | None]  # name, settings, method, seed, start


def _entries(plan: Plan) -> Iterator[Entry]:
    for seed in plan.seeds:
        for name, make in {"svrg": svrg, "saga": saga, "page": page}.items():
            yield f"{name}, auto", f"seed {seed}", make(), seed, None
        yield "svrg, auto, continuation", f"seed {seed}", svrg(), seed, "continuation"
    for gamma in plan.by_hand:
        yield SMART_BY_HAND, f"γ = {gamma:g}", svrg(step=gamma, momentum=0.0), 0, None
    for gamma in plan.by_hand_momentum:
        yield SMART_BY_HAND, f"γ = {gamma:g}, momentum 0.9", svrg(step=gamma, momentum=0.9), 0, None
    yield "palm", "auto", palm(), 0, None
    for gamma in plan.palm_steps:
        yield "palm", f"γ = {gamma:g}", palm(step=gamma), 0, None
    for gamma in plan.sg_steps:
        for half in plan.sg_halves:
            yield "sg", f"γ = {gamma:g}, halved after {half:g} passes", sg(step=Decaying(gamma, half)), 0, None
    for iterations in plan.inner:
        yield "alternating", f"{iterations} L-BFGS steps a round", alternating(iterations), 0, None


def _solve(
    problem: Problem, plan: Plan, name: str, settings: str, method: Method, seed: int, start: str | None
) -> Run:
    with np.errstate(over="ignore", invalid="ignore"):  # a grid holds steps that diverge
        solution = solve(problem, method, start=start, max_passes=plan.passes, tol=0, seed=seed)
    return Run(name, settings, seed, solution, plan.passes)


def _best(runs: list[Run]) -> dict[str, Run]:
    """The lowest final F under each name; NaN is never the lowest."""
    best: dict[str, Run] = {}
    for run in runs:
        if run.name not in best or run.final < best[run.name].final or not best[run.name].final < inf:
            best[run.name] = run
    return best


def _worst(runs: list[Run], name: str, objective: float) -> float:
    """The passes that SMART needs, the unluckiest seed's."""
    return max(run.needs(objective) for run in runs if run.name == name)


def _targets(wrong: float, plan: Plan, runs: list[Run], best: dict[str, Run]) -> list[Target]:
    where = f"{wrong:.0%} wrong"
    found = []
    for smart in SMARTS:
        share = {name: _worst(runs, smart, best[name].final) / plan.passes for name in RIVALS}
        found += [
            Target(f"{where}: {smart} / palm, passes", share["palm"], PALM),
            Target(f"{where}: {smart} / sg, passes", share["sg"], SG),
            Target(f"{where}: {smart} / alternating, passes", share["alternating"], ALTERNATING),
            Target(f"{where}: {smart} / alternating, passes", share["alternating"], ALTERNATING_GOAL, goal=True),
        ]
    ratio = max(against_hand(run, best[SMART_BY_HAND]) for run in runs if run.name == SMARTS[0])
    return [*found, Target(f"{where}: svrg, auto / γ by hand, passes", ratio, BY_HAND)]


def against_hand(auto: Run, hand: Run) -> float:
    """Passes of auto over passes of the best γ by hand, to the larger of their final objectives: both reach that."""
    level = max(auto.final, hand.final)
    return auto.needs(level) / hand.needs(level)


def _table(wrong: float, data: Digits, shifted: np.ndarray, plan: Plan, runs: list[Run], best: dict[str, Run]) -> Table:
    columns = ["method", "settings", f"F after {plan.passes:g} passes", "svrg needs", "saga needs"]
    table = Table(
        f"{wrong:.0%} of the labels wrong, {wrong + OVERTRIM:.0%} trimmed",
        [*columns, "test accuracy %", "detected %", "false positives %", "seconds"],
    )
    shown = [run for run in runs if "auto" in run.name and run.settings != "auto"]
    for run in [*shown, *(best[name] for name in (SMART_BY_HAND, *RIVALS))]:
        needs = [_worst(runs, smart, run.final) for smart in SMARTS]
        rated = _rated(run.solution, data, shifted)
        table.rows.append([run.name, run.settings, run.final, *needs, *rated, run.solution.seconds])
    return table


def _rated(solution: Solution, data: Digits, shifted: np.ndarray) -> list[float]:
    """Test accuracy, wrong labels found, right labels accused; in %."""
    right = np.argmax(data.V_test @ solution.x, axis=1) == data.t_test
    accused = solution.w <= 0
    return [100 * float(np.mean(part)) for part in (right, accused[shifted], accused[~shifted])]
