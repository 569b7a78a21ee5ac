"""Cells that models of the target had better not see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tables_made_up import as_table
from trimlearn import check
from trimlearn.checks.doubtful import without_doubtful
from trimlearn.robust.cells import table as cell_table
from trimlearn.tables.table import Column, Table


def _made_up() -> tuple[Table, np.ndarray]:
    """Six numbers that hang together, some of them ten times too large; the last is the target. In row 3 the first
    number and the target are far out together."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(200, 6)) + 5.0
    X[:, 0] = rng.normal(size=200)
    X[3, 0] = 7.0
    X[:, 5] = X[:, 0] + 0.1 * rng.normal(size=200)
    wrong = np.zeros(X.shape, dtype=bool)
    wrong[[10, 20, 30], [1, 2, 4]] = True
    X[wrong] *= 10
    frame = pd.DataFrame(X.round(3), columns=list("abcdey"))
    return Table(frame, frame.astype(str), tuple(Column(c, "number") for c in frame), "made up", 0, ""), wrong


def test_doubtful_cells_are_missing_to_models_unless_the_target_explains_them() -> None:
    table, wrong = _made_up()
    seen = without_doubtful(table, table.frame, "y")
    missing = seen.isna().to_numpy()
    assert missing[wrong].all() and missing.sum() <= wrong.sum() + 5
    assert not missing[3].any() and not missing[:, 5].any()
    alone = Table(table.frame, table.written, (*table.columns[:-1], Column("y", "category")), "made up", 0, "")
    assert without_doubtful(alone, table.frame, "y").isna().to_numpy()[3, 0]


def test_the_target_is_asked_where_a_cell_is_doubted_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = _made_up()
    fits = []
    fit = cell_table.fit_cells

    def counted(Z: Any) -> Any:
        fits.append(Z.shape)
        return fit(Z)

    monkeypatch.setattr(cell_table, "fit_cells", counted)
    without_doubtful(table, table.frame, "y")
    assert fits == [(200, 5), (200, 6)]


def body_masses(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    height = rng.normal(172, 9, n).round()
    weight = ((height - 100) * np.exp(0.15 * rng.normal(size=n))).round(1)
    return pd.DataFrame({"height": height, "weight": weight, "index": (weight / (height / 100) ** 2).round(1)})


def test_one_error_is_not_called_two() -> None:
    frame = body_masses()
    frame.loc[8, "height"] /= 100
    frame.loc[20, "weight"] *= 10
    frame.loc[33, "index"] /= 10
    found = check(frame, target="index")
    assert {(cell.row, cell.column) for cell in found.parts.cells.cells} == {(8, "height"), (20, "weight")}
    assert np.flatnonzero(found.parts.target.flagged).tolist() == [33]


def test_cells_beside_a_target_that_is_known_to_a_hair_are_not_doubted() -> None:
    frame = body_masses()
    kept = without_doubtful(as_table(frame), frame, "index")
    assert kept[["height", "weight"]].isna().to_numpy().mean() < 0.01
