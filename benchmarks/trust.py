"""trust: right, or it says so. What defaults do on clean tables and dirty ones, and whether certificates hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from benchmarks.common import Part, Result, Table, digits, gather
from benchmarks.trust_cases import MODELS, certificates, misfit, speed, wild, wrapped
from benchmarks.trust_data import CLEAN, NOISES, Labelled, Noise, read
from benchmarks.trust_labels import labels

__all__ = ["PARTS", "QUICK", "Plan", "run"]


FEW = (
    *("Cardiotocography", "fault", "landsat", "Pima", "vowels"),
    *("sklearn breast_cancer", "sklearn digits", "sklearn wine"),
)


@dataclass(frozen=True)
class Plan:
    """How much of it. ``names``: of tables, None for all; ``few``: the tables of TrimmedEstimator, which takes long."""

    quick: bool = False
    names: tuple[str, ...] | None = None
    noises: tuple[Noise, ...] = NOISES
    seeds: tuple[int, ...] = (0, 1, 2)
    rows: int = 1500
    few: tuple[str, ...] = FEW
    models: tuple[str, ...] = tuple(MODELS)
    repeats: tuple[int, ...] = (0, 1, 2, 3, 4)  # of misfit and wild features
    shapes: tuple[tuple[int, int], ...] = ((500, 5), (1000, 10), (1500, 20))  # of wild features
    jobs: int = 2


FULL = Plan()
IRIS = ("sklearn iris",)
QUICK = Plan(True, IRIS, (CLEAN, Noise("pair", 0.2)), (0,), 150, IRIS, ("forest",), (0,), ((500, 5),), 1)

Measure = Callable[[Plan, Path | None], Part]


def _tables(data: Path | None, names: Sequence[str] | None) -> list[Labelled]:
    return [table for table in read(data) if names is None or table.name in names]


def _labels(plan: Plan, data: Path | None) -> Part:
    return labels(_tables(data, plan.names), plan.noises, plan.seeds, plan.rows, plan.jobs)


def _wrapped(plan: Plan, data: Path | None) -> Part:
    return wrapped(_tables(data, plan.few), plan.models, plan.rows, plan.jobs)


def _speed(plan: Plan, data: Path | None) -> Part:
    try:
        found = digits(data, plan.quick)
    except FileNotFoundError as error:
        return Part([Table("seconds, MNIST", ["why not"], [[f"not run: {str(error).split(';')[0]}"]])], [])
    return speed(found)


PARTS: dict[str, Measure] = {
    "tables": _labels,
    "wrapped": _wrapped,
    "misfit": lambda plan, _: misfit(plan.repeats),
    "wild": lambda plan, _: wild(plan.shapes, plan.repeats),
    "certificates": lambda plan, _: certificates(),
    "seconds": _speed,
}


def run(plan: Plan = FULL, data: Path | None = None, parts: Sequence[str] = tuple(PARTS)) -> Result:
    """The parts asked for, one after the other."""
    settings = {**asdict(plan), "noises": ", ".join(map(str, plan.noises))}
    return gather("trust", {name: partial(PARTS[name], plan, data) for name in parts}, settings)
