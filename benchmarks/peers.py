"""peers: the estimators side by side with what people use today, on one machine, in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import Part, Result, Table, digits, gather, home
from benchmarks.peers_anomalies import anomalies
from benchmarks.peers_cells import cells, number_columns
from benchmarks.peers_clean import unharmed
from benchmarks.peers_covariance import covariance
from benchmarks.peers_homography import homography
from benchmarks.peers_labels import imbalanced, labels
from benchmarks.peers_linear import breakdown, classics, clean, speed
from benchmarks.peers_mosaic import mosaics
from benchmarks.peers_regression import regression
from benchmarks.peers_rivals import presence
from benchmarks.peers_scatter import scatter
from benchmarks.peers_sparse import sparse
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
    wide: tuple[tuple[int, int], ...] = ((100, 150), (50, 10), (200, 20), (500, 10), (50, 1000), (400, 1000))
    bad: tuple[tuple[str, float], ...] = (("clean", 0.0), ("vertical", 0.15), ("leverage", 0.15), ("both", 0.15))
    rows: tuple[int, ...] = (20, 50, 100, 200, 500, 2000)  # of regression in small samples
    draws: int = 20
    beside: tuple[int, ...] = (50, 200, 1000)  # rows of location and scatter beside R, and samples of each kind
    tries: int = 8
    unharmed: tuple[tuple[int, int], ...] = (
        (15, 2), (15, 5), (15, 10), (20, 2), (20, 5), (20, 30), (30, 5), (50, 5), (50, 20), (100, 10), (200, 2),
        (500, 5), (2000, 10),
    )  # fmt: skip
    times: int = 200


FULL = Plan()
QUICK = Plan(
    True, ("hbk", "telef"), (100,), (3,), (0,), ((100, 2),), (1000, 3), ((100, 3),), 500, (0.2,), 2000, (6.0,),
    ((40, 60),), (("vertical", 0.15),), (20,), 1, (50,), 1, ((20, 2),), 3,
)  # fmt: skip

Measure = Callable[[Plan, Path | None], Part]


def _classics(plan: Plan, data: Path | None) -> Part:
    folder = find_folder("classic_robust", home(data), holding="lts_reference.json")
    if folder is None:
        why = "not run: no classic_robust/ in --data, $TRIMLEARN_DATA or the user's cache"
        return Part([Table("the classics", ["why"], [[why]])], [])
    return classics(folder, plan.classics)


def _anomalies(plan: Plan, data: Path | None) -> Part:
    folder = find_folder("tabular", home(data), holding="wine.npz")
    if folder is None:
        why = "not run: no tabular/ in --data, $TRIMLEARN_DATA or the user's cache"
        return Part([Table("anomalies", ["why"], [[why]])], [])
    return anomalies(folder, plan.quick)


def _labels(plan: Plan, data: Path | None) -> Part:
    found = digits(data, plan.quick)
    few = replace(found, V=found.V[: plan.images], t=found.t[: plan.images])
    return labels(few, plan.wrong)


def _cells(plan: Plan, data: Path | None) -> Part:
    """Real tables, dirtied, where they are at hand; a simulated one always."""
    rng = np.random.default_rng(0)
    size = rng.lognormal(sigma=0.6, size=(300, 1))
    tables = {"simulated sizes": 50 * size ** rng.uniform(0.3, 1.5, 6) * rng.lognormal(sigma=0.1, size=(300, 6))}
    known = {"TopGear.csv": "regression", "milk.csv": "classic_robust", "pulpfiber.csv": "classic_robust"}
    for file, folder in known.items():
        found = find_folder(folder, home(data), holding=file)
        if found is not None and not plan.quick:
            tables[file] = number_columns(found / file)
    return cells(tables, plan.seeds)


PARTS: dict[str, Measure] = {
    "classics": _classics,
    "breakdown": lambda plan, _: breakdown(plan.sizes, plan.features, plan.seeds),
    "clean": lambda plan, _: clean(dict(plan.samples)),
    "regression": lambda plan, _: regression(plan.rows, plan.wrong[1:] or plan.wrong, plan.draws),
    "speed": lambda plan, _: speed(*plan.lts, plan.seeds),
    "covariance": lambda plan, _: covariance(plan.shapes, plan.seeds),
    "scatter": lambda plan, _: scatter(plan.beside, plan.features, plan.tries),
    "unharmed": lambda plan, _: unharmed(plan.unharmed, plan.times),
    "cells": _cells,
    "sparse": lambda plan, _: sparse(plan.wide, plan.bad, plan.seeds),
    "anomalies": _anomalies,
    "labels": _labels,
    "homography": lambda plan, data: homography(plan.quick, data),
    "imbalanced": lambda plan, _: imbalanced(plan.rare, plan.distances, plan.seeds),
    "mosaic": lambda plan, data: mosaics(data, plan.quick),
}


def run(plan: Plan = FULL, data: Path | None = None, parts: Sequence[str] = tuple(PARTS)) -> Result:
    """The parts asked for, one after the other."""
    measures = {name: partial(PARTS[name], plan, data) for name in parts}
    result = gather("peers", measures, asdict(plan))
    return replace(result, tables=[presence(), *result.tables])
