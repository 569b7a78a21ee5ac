"""rates (the paper's Figure 2): passes to a given objective, SMART against its rivals, labels shifted by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.common import Digits, Result, Table, Target, say
from paper.mnist.fits import OVERTRIM
from paper.rates.runs import Entry, Run, solve_entry, trimmed_softmax, with_ends
from paper.rates.runs import best as _best
from trimlearn import Problem, Solution
from trimlearn.datasets import shift_labels
from trimlearn.smart import alternating, page, palm, saga, sg, svrg
from trimlearn.smart.steps import Decaying

__all__ = ["QUICK", "Entry", "Plan", "Run", "run"]

# Passes SMART may need for what the rival has at the end, as a share of the rival's own.
PALM, SG, ALTERNATING, ALTERNATING_GOAL, BY_HAND = 1 / 6, 1.0, 1.0, 1 / 2, 1.5
SMARTS = ("svrg, auto", "saga, auto")
SMART_BY_HAND = "svrg, γ by hand"
PALM_WITH_MOMENTUM = "palm, momentum 0.9"  # not PALM any more: shows what the sampling alone is worth
RIVALS = ("palm", "sg", "alternating")


@dataclass(frozen=True)
class Plan:
    """Shares of wrong labels, passes, seeds of the methods that need no tuning, and the rivals' grids."""

    wrong: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4)
    passes: float = 60
    seeds: tuple[int, ...] = (0, 1)
    palm_steps: tuple[float, ...] = (0.5, 1, 2, 4, 8)
    sg_steps: tuple[float, ...] = (0.1, 0.3, 1, 3, 10, 30)
    sg_halves: tuple[float, ...] = (5, 20, 1e9)
    inner: tuple[int, ...] = (3, 5, 10, 20, 40)
    by_hand: tuple[float, ...] = (0.3, 0.5, 1, 1.5, 2, 3)
    by_hand_momentum: tuple[float, ...] = (0.1, 0.3, 0.5, 1, 2, 4, 8)


FULL = Plan()
QUICK = Plan((0.2,), 10, (0,), (2, 4), (0.3, 3), (1e9,), (5,), (1,), (0.1, 0.3))


def run(data: Digits, plan: Plan = FULL) -> Result:
    """Every share of wrong labels: a table and the targets."""
    targets: list[Target] = []
    tables: list[Table] = []
    for wrong in plan.wrong:
        t, shifted = shift_labels(data.t, wrong, 10, seed=0)
        problem = trimmed_softmax(data.V, t, wrong)
        runs = [_solve(problem, plan, entry) for entry in _entries(plan)]
        best = _best(runs)
        targets += _targets(wrong, plan, runs, best)
        tables.append(_table(wrong, data, shifted, plan, runs, best))
    grids = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(plan).items()}
    return Result("rates", {"data": data.name, "n": len(data.t), **grids}, targets, tables)


def _entries(plan: Plan) -> Iterator[Entry]:
    for seed in plan.seeds:
        for name, make in {"svrg": svrg, "saga": saga, "page": page}.items():
            yield Entry(f"{name}, auto", f"seed {seed}", make(finish=False), seed)
        yield Entry("svrg, auto, continuation", f"seed {seed}", svrg(finish=False), seed, "continuation")
    yield Entry(PALM_WITH_MOMENTUM, "auto", palm(momentum=0.9))
    yield Entry("palm", "auto", palm())
    for gamma, end in with_ends(plan.palm_steps):
        yield Entry("palm", f"γ = {gamma:g}", palm(step=gamma), at_end=end)
    for gamma, end in with_ends(plan.sg_steps):
        for half in plan.sg_halves:
            settings = f"γ = {gamma:g}, halved after {half:g} passes"
            yield Entry("sg", settings, sg(step=Decaying(gamma, half)), at_end=end)
    for iterations, end in with_ends(plan.inner):
        yield Entry("alternating", f"{iterations} L-BFGS steps a round", alternating(iterations), at_end=end)
    for momentum, gammas in ((0.0, plan.by_hand), (0.9, plan.by_hand_momentum)):
        for gamma, end in with_ends(gammas):
            settings = f"γ = {gamma:g}, momentum {momentum:g}"
            yield Entry(SMART_BY_HAND, settings, svrg(step=gamma, momentum=momentum), at_end=end)


def _solve(problem: Problem, plan: Plan, entry: Entry) -> Run:
    run = solve_entry(problem, entry, plan.passes)
    say(f"{problem.r1!r}: {entry.name}, {entry.settings}: F = {run.final:.3g}, {run.solution.seconds:.1f} s")
    return run


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
    tuned = [best[name] for name in (SMART_BY_HAND, *RIVALS)]
    untuned = [run for run in runs if run.name not in (SMART_BY_HAND, *RIVALS)]
    for run in [*untuned, *tuned]:
        settings = run.entry.settings + (" (end of the grid)" if run.entry.at_end else "")
        needs = [_worst(runs, smart, run.final) for smart in SMARTS]
        table.rows.append(
            [run.name, settings, run.final, *needs, *_rated(run.solution, data, shifted), run.solution.seconds]
        )
    return table


def _rated(solution: Solution, data: Digits, shifted: np.ndarray) -> list[float]:
    """Test accuracy, wrong labels found, right labels accused; in %."""
    right = np.argmax(data.V_test @ solution.x, axis=1) == data.t_test
    accused = solution.w <= 0
    return [100 * float(np.mean(part)) for part in (right, accused[shifted], accused[~shifted])]
