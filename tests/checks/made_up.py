"""Small findings, made by hand: for tests of what is made of them."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from trimlearn.checks.findings import (
    CellFindings,
    DuplicateRows,
    ModelScore,
    OddRow,
    RowFindings,
    TargetFindings,
    WrongCell,
)
from trimlearn.checks.parts import Parts
from trimlearn.tables.table import Column, Table

N = 60


def table() -> Table:
    """Cars: a name, a fuel, a price in pounds, a mileage."""
    prices = [f"£{20_000 + 100 * i:,}" for i in range(N)]
    prices[3] = "£2,125,000"
    written = pd.DataFrame(
        {
            "Name": [f"car <{i}>" for i in range(N)],
            "Fuel": ["Petrol" if i % 2 else "Diesel" for i in range(N)],
            "Price": prices,
            "MPG": [f"{40 + i % 7}.5" for i in range(N)],
        }
    )
    frame = pd.DataFrame(
        {
            "Name": written["Name"].astype(object),
            "Fuel": written["Fuel"].astype(object),
            "Price": [float(price[1:].replace(",", "")) for price in prices],
            "MPG": written["MPG"].astype(float),
        }
    )
    kinds = {"Name": "id", "Fuel": "category", "Price": "number", "MPG": "number"}
    columns = tuple(Column(name, kind) for name, kind in kinds.items())
    mark = hashlib.sha256(written.to_csv().encode()).hexdigest()[:16]
    return Table(frame, written, columns, "cars.csv", 2, mark, ("Price was read as pounds.",))


def cells(of: Table, *wrong: WrongCell) -> CellFindings:
    mended = of.frame.copy()
    for cell in wrong:
        mended.loc[cell.row, cell.column] = np.nan
    return CellFindings(tuple(wrong), mended, {"Price": "100 times too large"}, ("A caveat of cells.",))


PRICE = WrongCell(3, "Price", 2_125_000.0, 21_250.0, 12.0, 0.9, "100 times too large")


def fuel(of: Table, flagged: dict[int, float], contamination: float = 0.13) -> TargetFindings:
    """Labels judged by hand: row → probability. Rows that can be divided by 10 are doubted by one model only."""
    probability, wrong = np.full(N, 0.01), np.zeros(N, dtype=bool)
    for row, p in flagged.items():
        probability[row], wrong[row] = p, True
    both = wrong & (np.arange(N) % 10 != 0)
    other = np.where(of.frame["Fuel"] == "Petrol", "Diesel", "Petrol").astype(object)
    return TargetFindings(
        name="Fuel",
        task="classification",
        classes=("Diesel", "Petrol"),
        probability=probability,
        flagged=wrong,
        score=5 * probability,
        suggested=other,
        by_linear=wrong,
        by_boosting=both,
        contamination=contamination,
        scores=(ModelScore("linear", "trimmed", "share of labels predicted", 0.91, "higher"),),
        coefficients=({"name": "Price", "plain": 0.1, "trimmed": 0.3, "low": 0.2, "high": 0.4},),
    )


def number(of: Table, row: int, suggested: float) -> TargetFindings:
    flagged = np.arange(N) == row
    return TargetFindings(
        "MPG", "regression", (), np.where(flagged, 0.97, 0.01), flagged, np.where(flagged, 8.0, 0.5),
        np.full(N, suggested), flagged, flagged, 1 / N,
    )  # fmt: skip


def parts(
    target: TargetFindings | None = None,
    wrong: tuple[WrongCell, ...] = (),
    odd: tuple[OddRow, ...] = (),
    duplicates: tuple[DuplicateRows, ...] = (),
    of: Table | None = None,
) -> Parts:
    of = of or table()
    rows = None if target is not None else RowFindings(odd, np.zeros(N), 3.0, len(odd) / N)
    found = cells(of, *wrong) if wrong else CellFindings((), of.frame, {})
    return Parts(of, found, target, rows, duplicates)
