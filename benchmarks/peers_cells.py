"""peers, wrong cells: CellwiseOutliers beside what people do today, column by column."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.common import NOTHING, Part, Table, Target, clock, say
from trimlearn import CellwiseOutliers

__all__ = ["SHARE", "cells", "dirty", "number_columns"]

SHARE = 0.05  # of the cells that are made wrong
MAD = 1.4826  # makes the median of |z| consistent for normal z
BIG = 3.0  # robust σ of its column by which a wrong cell must differ from the truth to be looked for
FENCE = 1.5  # quartile ranges beyond the quartiles: Tukey's boxplot
MINE, SIGMAS, BOXES = "CellwiseOutliers", "3 robust σ of the column", "boxplot of the column"
COLUMNS = ["table", "n", "p", "method", "found, %", "clean flagged, %", "expected value off by, %", "seconds"]
FOUND, FALSE, OFF = 90.0, 2.0, 10.0  # the aims: at least, at most, at most


def dirty(X: np.ndarray, seed: int) -> np.ndarray:
    """The table with a share of its cells times 10, 100 or 1/10, with the other sign or with two digits swapped."""
    rng = np.random.default_rng(seed)
    out = X.copy()
    places = np.argwhere(np.isfinite(X) & (X != 0))
    for i, j in places[rng.choice(len(places), round(SHARE * len(places)), replace=False)]:
        how = int(rng.integers(5))
        out[i, j] = _swapped(X[i, j], rng) if how == 4 else X[i, j] * (10.0, 100.0, 0.1, -1.0)[how]
    return out


def _swapped(value: float, rng: np.random.Generator) -> float:
    digits = list(str(int(abs(value))))
    if len(set(digits)) < 2:
        return value * 10.0
    i = int(rng.integers(len(digits) - 1))
    digits[i], digits[i + 1] = digits[i + 1], digits[i]
    return float("".join(digits))


def number_columns(path: Path, least: int = 11) -> np.ndarray:
    """The columns of a CSV file that hold numbers, NaN where one is missing, at least so many different ones."""
    with path.open(encoding="utf-8", newline="") as file:
        _, *lines = csv.reader(file)
    columns = []
    for entries in zip(*lines, strict=True):
        try:
            x = np.array([float(entry) if entry not in ("", "NA") else np.nan for entry in entries])
        except ValueError:
            continue
        if len(np.unique(x[np.isfinite(x)])) >= least:
            columns.append(x)
    return np.column_stack(columns)


def cells(tables: dict[str, np.ndarray], seeds: Sequence[int]) -> Part:
    """Wrong cells of each table found, clean ones flagged, and how far off what was expected is; means over seeds."""
    table = Table(f"{SHARE:.0%} of the cells wrong: means over {len(seeds)} seeds", COLUMNS)
    targets = []
    for name, X in tables.items():
        say(f"peers: cells, {name}")
        runs = [_compared(X, dirty(X, seed)) for seed in seeds]
        for method in (MINE, SIGMAS, BOXES):
            found = [float(np.mean([run[method][k] for run in runs])) for k in range(4)]
            table.rows.append([name, *X.shape, method, *found[:3], found[3] if method == MINE else NOTHING])
        mine = [float(np.mean([run[MINE][k] for run in runs])) for k in range(3)]
        targets += [
            Target(f"cells, {name}: missed, %", 100.0 - mine[0], 100.0 - FOUND, goal=True),
            Target(f"cells, {name}: clean flagged, %", mine[1], FALSE, goal=True),
            Target(f"cells, {name}: expected off by, %", mine[2], OFF, goal=True),
        ]
    return Part([table], targets)


def _compared(truth: np.ndarray, X: np.ndarray) -> dict[str, tuple[float, float, float, float]]:
    known = np.isfinite(truth)
    wrong = known & (X != truth)
    sigma = MAD * np.nanmedian(np.abs(truth - np.nanmedian(truth, axis=0)), axis=0)
    big, clean = wrong & (np.abs(X - truth) > BIG * sigma), known & ~wrong
    model = CellwiseOutliers()
    seconds = clock(lambda: model.fit(X))
    centre = np.nanmedian(X, axis=0)
    spread = MAD * np.nanmedian(np.abs(X - centre), axis=0)
    low, high = np.nanquantile(X, (0.25, 0.75), axis=0)
    middle = np.broadcast_to(centre, X.shape)
    masks = {
        MINE: (model.cell_mask_, np.asarray(model.expected_)),
        SIGMAS: (np.abs(X - centre) > BIG * spread, middle),
        BOXES: ((X < low - FENCE * (high - low)) | (X > high + FENCE * (high - low)), middle),
    }
    return {
        name: (
            100 * float(mask[big].mean()),
            100 * float(mask[clean].mean()),
            100 * median((np.abs(expected - truth)[big] / np.abs(truth[big])).tolist()),
            seconds,
        )
        for name, (mask, expected) in masks.items()
    }
