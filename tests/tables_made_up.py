"""Tables for the tests of checks: frames as the reader gives them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from trimlearn.tables.table import Column, Kind, Table

__all__ = ["as_table", "related"]


def as_table(frame: pd.DataFrame, **kinds: Kind) -> Table:
    """A frame as a table: numbers, dates and categories, unless ``kinds`` says otherwise."""
    columns = []
    for name in frame.columns:
        kind: Kind = {"f": "number", "M": "date"}.get(frame[name].dtype.kind, "category")  # type: ignore[assignment]
        columns.append(Column(str(name), kinds.get(str(name), kind), missing=int(frame[name].isna().sum())))
    return Table(frame, frame.astype(str), tuple(columns), "made up", 0, "")


def related(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Sizes that go with each other, as people write them: whole numbers, one and two decimals."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=(n, 1)) * 0.4
    X = np.exp(size + 0.1 * rng.normal(size=(n, 5))) * np.array([2000.0, 300.0, 40.0, 9.0, 5000.0])
    frame = pd.DataFrame(X, columns=["weight", "power", "width", "time", "price"])
    return frame.round({"weight": 0, "power": 0, "width": 1, "time": 2, "price": 0})
