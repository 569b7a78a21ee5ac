"""peers: the estimators side by side with what people use today, on one machine, in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.common import Part, Result, Table, digits, gather, home
from benchmarks.peers_covariance import covariance
from benchmarks.peers_labels import imbalanced, labels
from benchmarks.peers_linear import breakdown, classics, clean, speed
from benchmarks.peers_regression import regression
from benchmarks.peers_rivals import presence
from trimlearn.datasets.locate import find_folder

__all__ = ["PARTS", "QUICK", "Plan", "run"]


@dataclass(frozen=True)
class Plan:
    """How much of it. ``samples``: of clean data, for each n; ``classics``: names, None for all."""

    quick: bool = False
    classics: tuple[str, ...] | None = None
    sizes: tuple[int, ...] = (200, 1000, 10_000)
    features: tuple[int, ...] = (3, 10, 20)
    seeds: tuple[int, ...] = (0, 1, 2)
    samples: tuple[tuple[int, int], ...] = ((100, 50), (1000, 20), (10_000, 5))
    lts: tuple[int, int] = (100_000, 10)
    shapes: tuple[tuple[int, int], ...] = ((200, 5), (1000, 10), (10_000, 20))
    images: int | None = None  # None: all of them
    wrong: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)
    rare: int = 20_000
    distances: tuple[float, ...] = (4.0, 6.0)
    rows: tuple[int, ...] = (20, 50, 100, 200, 500, 2000)  # of regression in small samples
    draws: int = 100


FULL = Plan()
QUICK = Plan(
    True, ("hbk", "telef"), (100,), (3,), (0,), ((100, 2),), (1000, 3), ((100, 3),), 500, (0.2,), 2000, (6.0,), (20,), 1
)  # fmt: skip

Measure = Callable[[Plan, Path | None], Part]


def _classics(plan: Plan, data: Path | None) -> Part:
    folder = find_folder("classic_robust", home(data), holding="lts_reference.json")
    if folder is None:
        why = "not run: no classic_robust/ in --data, $TRIMLEARN_DATA or the user's cache"
        return Part([Table("the classics", ["why"], [[why]])], [])
    return classics(folder, plan.classics)


def _labels(plan: Plan, data: Path | None) -> Part:
    found = digits(data, plan.quick)
    few = replace(found, V=found.V[: plan.images], t=found.t[: plan.images])
    return labels(few, plan.wrong)


PARTS: dict[str, Measure] = {
    "classics": _classics,
    "breakdown": lambda plan, _: breakdown(plan.sizes, plan.features, plan.seeds),
    "clean": lambda plan, _: clean(dict(plan.samples)),
    "regression": lambda plan, _: regression(plan.rows, plan.wrong[1:] or plan.wrong, plan.draws),
    "speed": lambda plan, _: speed(*plan.lts, plan.seeds),
    "covariance": lambda plan, _: covariance(plan.shapes, plan.seeds),
    "labels": _labels,
    "imbalanced": lambda plan, _: imbalanced(plan.rare, plan.distances, plan.seeds),
}


def run(plan: Plan = FULL, data: Path | None = None, parts: Sequence[str] = tuple(PARTS)) -> Result:
    """The parts asked for, one after the other."""
    measures = {name: partial(PARTS[name], plan, data) for name in parts}
    result = gather("peers", measures, asdict(plan))
    return replace(result, tables=[presence(), *result.tables])
