"""Tables with columns of several kinds, and the same with errors whose places are known."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

__all__ = ["TABLES", "DirtyTable", "Source", "spoil"]

CELLS, LABELS, NUMBERS = 0.05, 0.1, 0.1  # the shares of cells, labels and target numbers that are made wrong
FAR = 2.0  # robust standard deviations by which a wrong number differs from the right one at least


@dataclass(frozen=True)
class Source:
    """A table in which nothing was made wrong, and its columns of labels and of numbers that will be judged."""

    frame: pd.DataFrame
    label: str | None
    number: str | None


@dataclass(frozen=True)
class DirtyTable:
    """A table after errors were put in, and the rows whose label or number is wrong."""

    frame: pd.DataFrame
    labels: np.ndarray
    numbers: np.ndarray


def spoil(source: Source, seed: int, *, targets: bool = True) -> DirtyTable:
    """Wild cells in numeric columns, wrong labels, numbers of other rows; an amount with its currency and a date.

    targets=False: only the cells are wrong.
    """
    rng, frame = np.random.default_rng(seed), source.frame.copy()
    numeric = [c for c in frame if frame[c].dtype.kind in "if" and frame[c].nunique() > 10 and c != source.number]
    frame[numeric] = frame[numeric].astype(float)
    for name in numeric:
        there = np.flatnonzero(frame[name].notna() & (frame[name] != 0))
        rows = rng.choice(there, round(CELLS * len(there)), replace=False)
        column = frame[name].to_numpy(copy=True)
        column[rows] = [_wild(x, rng) for x in column[rows]]
        frame[name] = column
    labels = numbers = np.empty(0, dtype=np.int64)
    if targets and source.label:
        labels = _mislabel(frame, source.label, rng)
    if targets and source.number:
        numbers = _misplace(frame, source.number, rng)
    if numeric:
        largest = max(numeric, key=lambda name: float(frame[name].abs().median()))
        frame[largest] = [None if pd.isna(x) else f"€{x:,.0f}" for x in frame[largest]]
    days = pd.Timestamp("2017-03-01") + pd.to_timedelta(rng.integers(0, 2000, len(frame)), unit="D")
    frame.insert(0, "entered", days.strftime("%d.%m.%Y"))
    return DirtyTable(frame, labels, numbers)


def _wild(x: float, rng: np.random.Generator) -> float:
    """Ten or a hundred times too large, ten times too small, the wrong sign, or two digits exchanged."""
    digits = list(str(int(abs(x))))
    if len(set(digits)) > 1 and rng.random() < 0.2:
        k = int(rng.integers(len(digits) - 1))
        digits[k], digits[k + 1] = digits[k + 1], digits[k]
        return float("".join(digits))
    return float(x * rng.choice([10.0, 0.1, 100.0, -1.0]))


def _mislabel(frame: pd.DataFrame, name: str, rng: np.random.Generator) -> np.ndarray:
    column = frame[name].to_numpy(dtype=object, copy=True)
    known = np.flatnonzero(frame[name].notna())
    values = sorted(set(column[known]))
    rows = rng.choice(known, round(LABELS * len(known)), replace=False)
    for row in rows:
        others = [value for value in values if value != column[row]]
        column[row] = others[int(rng.integers(len(others)))]
    frame[name] = column
    return np.sort(rows)


def _misplace(frame: pd.DataFrame, name: str, rng: np.random.Generator) -> np.ndarray:
    column = frame[name].to_numpy(dtype=float, copy=True)
    known = np.flatnonzero(~np.isnan(column))
    values = column[known].copy()
    spread = 1.4826 * float(np.median(np.abs(values - np.median(values))))
    rows = rng.choice(known, round(NUMBERS * len(known)), replace=False)
    for row in rows:
        far = values[np.abs(values - column[row]) > FAR * spread]
        column[row] = rng.choice(far) if len(far) else column[row] + 2 * FAR * spread
    frame[name] = column
    return np.sort(rows)


def _bundled(load: Callable[..., Any], target: str, number: str | None) -> Source:
    """A table of scikit-learn; classes by their names."""
    found = load(as_frame=True, scaled=False) if load is datasets.load_diabetes else load(as_frame=True)
    frame = found.frame.rename(columns={"target": target})
    if "target_names" not in found:
        return Source(frame, None, target)
    frame[target] = [str(found.target_names[k]) for k in found.target]
    return Source(frame, target, number)


def _people(n: int, errors: str = "normal", skewed: bool = False) -> Source:
    """Made up: regions, ages, incomes, sizes; a score and an answer that depend on them, and gaps."""
    rng = np.random.default_rng(n)
    region, sex = rng.choice(["north", "south", "west", "east"], n, p=[0.4, 0.3, 0.2, 0.1]), rng.choice(["f", "m"], n)
    age, income, height = rng.normal(45, 12, n).round(), np.exp(rng.normal(10, 0.5, n)).round(), rng.normal(170, 10, n)
    z = (age - 45) / 12 + 1.6 * (np.log(income) - 10) + (region == "north") - 0.7 * (sex == "f")
    z += 0.05 * (height - 170) * (sex == "m")
    error = {"normal": rng.normal(size=n), "t3": rng.standard_t(3, n), "skewed": rng.exponential(size=n) - 1}[errors]
    score = np.exp(4 + 0.4 * (z + 0.5 * error)) if skewed else 100 + 10 * (z + 0.5 * error)
    frame = pd.DataFrame({"region": region, "sex": sex, "age": age, "income": income, "height": height.round(1)})
    frame["weight"] = (height - 100 + rng.normal(0, 9, n)).round(1)
    frame["score"], frame["answer"] = score.round(2), np.where(z + 0.3 * rng.logistic(size=n) > 0.2, "yes", "no")
    for name in ("age", "income", "region"):
        frame.loc[rng.random(n) < 0.05, name] = np.nan
    return Source(frame, "answer", "score")


def _cars(data: Path | None) -> Source | None:
    path = (data or Path(os.environ.get("TRIMLEARN_DATA", ""))) / "regression" / "TopGear.csv"
    return Source(pd.read_csv(path), "Fuel", "MPG") if path.exists() else None


TABLES: dict[str, Callable[[Path | None], Source | None]] = {
    "TopGear": _cars,
    "iris": lambda data: _bundled(datasets.load_iris, "species", "petal length (cm)"),
    "wine": lambda data: _bundled(datasets.load_wine, "cultivar", "alcohol"),
    "breast cancer": lambda data: _bundled(datasets.load_breast_cancer, "diagnosis", "mean texture"),
    "diabetes": lambda data: _bundled(datasets.load_diabetes, "progression", None),
    "people, 60": lambda data: _people(60),
    "people, 300, t3": lambda data: _people(300, "t3"),
    "people, 400, log": lambda data: _people(400, skewed=True),
    "people, 1500, skewed": lambda data: _people(1500, "skewed"),
}
