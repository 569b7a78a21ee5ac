"""Findings to draw: made up, small, and of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from trimlearn import TrimmedCovariance, TrimmedPCA
from trimlearn.checks.findings import (
    CellFindings,
    DuplicateRows,
    OddRow,
    RowFindings,
    TargetFindings,
    WrongCell,
)
from trimlearn.tables.table import Column, Table

MAKES = ("Alfa", "Audi", "Fiat", "Ford", "Honda", "Kia", "Lotus", "Mazda", "Opel", "Saab", "Seat", "Volvo")
COLUMNS = ("Price", "Power", "Torque", "Weight", "Length", "Width", "TopSpeed", "Acceleration")


@dataclass(frozen=True)
class Example:
    """All that `charts` takes."""

    table: Table
    cells: CellFindings
    target: TargetFindings | None
    rows: RowFindings | None
    names: dict[int, str]
    more: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """What to call `charts` with."""
        known = {"table": self.table, "cells": self.cells, "target": self.target, "rows": self.rows}
        return {**known, "names": lambda row: self.names.get(row, f"line {row + 2}"), **self.more}


def _table(n: int, rng: np.random.Generator) -> tuple[Table, np.ndarray]:
    size = rng.normal(size=n)
    X = size[:, None] * rng.uniform(0.5, 1.0, len(COLUMNS)) + 0.4 * rng.normal(size=(n, len(COLUMNS)))
    scale, centre = (
        np.array([6e3, 40, 60, 250, 300, 90, 20, 2.0]),
        np.array([2.4e4, 140, 260, 1400, 4300, 1800, 200, 9.0]),
    )
    frame = pd.DataFrame(centre + scale * X, columns=list(COLUMNS)).round(1)
    frame["MPG"] = np.round(45 - 6 * size + 2 * rng.normal(size=n), 1)
    frame["Fuel"] = np.where(size + 0.5 * rng.normal(size=n) > 0, "Diesel", "Petrol")
    columns = [Column(name, "number", missing=int(rng.integers(0, n // 20 + 1))) for name in (*COLUMNS, "MPG")]
    table = Table(frame, frame.astype(str), (*columns, Column("Fuel", "category")), "cars.csv", 2, "f00")
    return table, X


def _cells(table: Table, rng: np.random.Generator, count: int = 41) -> CellFindings:
    n = len(table.frame)
    rows = rng.choice(n, size=min(count, n), replace=False)
    columns = rng.choice(COLUMNS, size=len(rows), p=[0.45, 0.05, 0.05, 0.25, 0.05, 0.05, 0.05, 0.05])
    found = []
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        value = float(table.frame[column].iloc[row])
        high = rng.random() < 0.6
        score = float(rng.uniform(4, 30)) * (1 if high else -1)
        found.append(
            WrongCell(row, column, 10 * value if high else value / 10, value, score, 0.97, "10 times too large" * high)
        )
    return CellFindings(tuple(found), table.frame, {"Price": "10 times too large"})


def record(k: int, objective: float, moves: float) -> SimpleNamespace:
    """What the history of a fit holds after a step: ``moves`` says how far the next one would go."""
    return SimpleNamespace(passes=float(k), objective=objective, stationarity_x=moves, stationarity_w=0.0, h=250.0)


def regression(n: int = 297, bad: int = 24, seed: int = 0) -> Example:
    """Numbers: MPG, some of it wrong."""
    rng = np.random.default_rng(seed)
    table, _ = _table(n, rng)
    wrong = rng.choice(n, size=bad, replace=False)
    score = np.abs(rng.normal(size=n))
    score[wrong] = np.exp(rng.uniform(1.4, 4.5, bad))
    flagged = score > 3.2
    suggested = table.frame["MPG"].to_numpy() + 0.3 * rng.normal(size=n)
    table.frame["MPG"] = suggested + np.where(rng.random(n) < 0.5, 2.0, -2.0) * score
    probability = np.where(flagged, 1 - np.exp(-(score - 2) / 1.5), 0.2 * rng.random(n) ** 6)
    boosting = flagged & (rng.random(n) < 0.8)
    coefficients = tuple(
        {"name": name, "plain": b + d, "trimmed": b, "low": b - s, "high": b + s}
        for name, b, d, s in zip(
            COLUMNS, rng.normal(size=8) * 3, rng.normal(size=8), 0.3 + 0.4 * rng.random(8), strict=True
        )
    )
    history = [record(k, 3 * 0.6**k + 1, 0.4**k) for k in range(20)]
    leaves = np.full(n, np.inf)
    order = np.argsort(-score)[: int(0.3 * n)]
    leaves[order] = 0.025 * np.ceil((np.arange(len(order)) + 1) / n / 0.025)
    far = np.sqrt(rng.chisquare(8, n)) * np.where(rng.random(n) < 0.03, 8, 1)
    target = TargetFindings(
        "MPG", "regression", (), probability, flagged, score, suggested, flagged.copy(), boosting, bad / n,
        coefficients=coefficients, fits={"history": history},
    )  # fmt: skip
    path = SimpleNamespace(leaves_at=leaves, elbow=0.075, auto=0.08)
    names = {int(i): f"{MAKES[i % len(MAKES)]} {100 + i}" for i in range(n)}
    more = {"path": path, "distances": far, "distance_limit": 4.2}
    return Example(table, _cells(table, rng), target, None, names, more)


def classification(n: int = 297, bad: int = 37, seed: int = 1) -> Example:
    """Labels: Fuel, some of it wrong."""
    rng = np.random.default_rng(seed)
    table, X = _table(n, rng)
    classes = ("Diesel", "Petrol")
    p = 1 / (1 + np.exp(-3 * X[:, 0]))
    predicted = np.column_stack([p, 1 - p])
    given = table.frame["Fuel"].to_numpy()
    own = np.where(given == "Diesel", p, 1 - p)
    score = -np.log(own)
    flagged = np.zeros(n, dtype=bool)
    flagged[np.argsort(-score)[:bad]] = True
    probability = np.where(flagged, 1 - own, 0.1 * (1 - own))
    target = TargetFindings(
        "Fuel", "classification", classes, probability, flagged, score, np.where(p > 0.5, "Diesel", "Petrol"),
        flagged, flagged & (rng.random(n) < 0.8), bad / n, noise_matrix=np.array([[0.86, 0.14], [0.09, 0.91]]),
    )  # fmt: skip
    far = np.sqrt(rng.chisquare(8, n))
    more = {"distances": far, "distance_limit": 4.2, "predicted": predicted}
    groups = [
        DuplicateRows((3, 9), "exact"),
        DuplicateRows((5, 6, 8, 12), "near", ("Price",)),
        DuplicateRows((20, 30), "contradictory", ("Fuel",)),
    ]
    return Example(table, _cells(table, rng), target, None, {}, {**more, "duplicates": groups})


def whole_rows(n: int = 250, seed: int = 2) -> Example:
    """No target: rows that are odd as a whole."""
    rng = np.random.default_rng(seed)
    table, X = _table(n, rng)
    X = X.copy()
    X[:9] += rng.normal(size=(9, X.shape[1])) * 3
    fit = TrimmedCovariance(random_state=0).fit(X)
    pca = TrimmedPCA(2, random_state=0).fit(X)
    odd = tuple(
        OddRow(int(i), float(fit.outlier_scores_[i]), float(fit.outlier_probability_[i]), ("Price", "Width"))
        for i in np.flatnonzero(~fit.inlier_mask_)
    )
    fits = {"covariance": fit, "pca": pca, "matrix": X, "columns": COLUMNS}
    rows = RowFindings(odd, fit.outlier_scores_, float(fit.threshold_), 0.03, fits=fits)
    names = {int(i): f"{MAKES[i % len(MAKES)]} {100 + i}" for i in range(n)}
    return Example(table, _cells(table, rng, 5), None, rows, names, {})
