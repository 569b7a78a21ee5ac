"""The rows most like a given one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tables_made_up import as_table
from trimlearn.checks import neighbours
from trimlearn.checks.neighbours import nearest_rows


def mixed(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=n), "y": 1000 * rng.normal(size=n)})
    frame["kind"] = rng.choice(list("abc"), n)
    frame["name"] = rng.choice([f"n{k}" for k in range(30)], n)
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    frame.loc[3, "x"] = np.nan
    return frame


def by_hand(frame: pd.DataFrame, row: int, k: int) -> list[int]:
    distance = np.zeros(len(frame))
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "fM":
            x = (
                column.to_numpy(dtype=float)
                if column.dtype.kind == "f"
                else column.to_numpy("datetime64[s]").astype(float)
            )
            center = np.nanmedian(x)
            z = np.nan_to_num((x - center) / (1.482602218505602 * np.nanmedian(np.abs(x - center)))).clip(-3, 3)
            distance += (z - z[row]) ** 2
        else:
            distance += (column != column[row]).to_numpy()
    distance[row] = np.inf
    return np.argsort(distance, kind="stable")[:k].tolist()


def test_as_by_hand() -> None:
    frame = mixed()
    found = nearest_rows(as_table(frame), frame, [0, 3, 17], k=4)
    assert {row: list(near) for row, near in found.items()} == {row: by_hand(frame, row, 4) for row in (0, 3, 17)}


def test_blocks_target_and_little_tables(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    frame = mixed()
    table = as_table(frame)
    whole = nearest_rows(table, frame, range(50), target="kind")
    assert {row: list(near) for row, near in whole.items()} == {
        row: by_hand(frame.drop(columns="kind"), row, 3) for row in range(50)
    }
    monkeypatch.setattr(neighbours, "HELD", 400)
    assert nearest_rows(table, frame, range(50), target="kind") == whole
    two = frame.iloc[:2]
    assert nearest_rows(as_table(two), two, [1], k=3) == {1: (0,)}
    assert nearest_rows(as_table(two), two.iloc[:1], [0]) == {0: ()}
    assert nearest_rows(table, frame, []) == {}
