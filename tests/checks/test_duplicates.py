"""Rows that are in a table twice, and those that are the same by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from tables_made_up import as_table, related
from trimlearn.checks.duplicates import find_duplicates


def kinds(frame: pd.DataFrame, target: str | None = None, **columns: object) -> dict[tuple[int, ...], str]:
    table = as_table(frame, **columns)  # type: ignore[arg-type]
    return {group.rows: group.kind for group in find_duplicates(table, target)}


def with_copies(**changes: float) -> pd.DataFrame:
    """A table of 100 rows with a label, and a copy of row 7, changed."""
    frame = related(100).assign(label=["a", "b"] * 50)
    copy = frame.iloc[[7]].assign(**changes)
    return pd.concat([frame, copy], ignore_index=True)


def test_exact_near_and_contradictory() -> None:
    assert kinds(with_copies()) == {(7, 100): "exact"}
    assert kinds(with_copies(price=1.0)) == {(7, 100): "near"}
    assert kinds(with_copies(label="A ")) == {(7, 100): "near"}
    assert kinds(with_copies(label=" B")) == {(7, 100): "exact"}
    other = with_copies(label="a")
    assert kinds(other, "label") == {(7, 100): "contradictory"}
    found = find_duplicates(as_table(other), "label")[0]
    assert found.differs == ("label",)


def test_rounding() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    frame = pd.concat([frame, frame.iloc[[3, 30]].round(4)], ignore_index=True)
    assert kinds(frame) == {(3, 400): "near", (30, 401): "near"}


def test_rounded_numbers_are_no_copies() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        u = rng.normal(size=300).round(1)
        two = pd.DataFrame({"u": u, "v": (2 * u + 0.1 * rng.normal(size=300)).round(1)})
        assert kinds(two) == {}, seed
        three = two.assign(w=(u + 0.2 * rng.normal(size=300)).round(1))
        assert len(kinds(three)) <= 3, seed
    fine = pd.DataFrame(rng.normal(size=(300, 2)), columns=["u", "v"]).round(4)
    assert kinds(pd.concat([fine, fine.iloc[[7, 8]]], ignore_index=True)) == {(7, 300): "exact", (8, 301): "exact"}


def test_ids() -> None:
    frame = related(100).assign(id=[f"n{k}" for k in range(100)])
    frame.loc[50, "id"] = "n3"
    assert kinds(frame, id="id") == {(3, 50): "near"}
    both = pd.concat([frame, frame.iloc[[9]].assign(id="new")], ignore_index=True)
    assert kinds(both, id="id") == {(9, 100): "exact", (3, 50): "near"}
    groups = frame.assign(id=[f"n{k // 2}" for k in range(100)])
    assert kinds(groups, id="id") == {}


def test_what_is_the_same_by_chance_is_not_reported() -> None:
    rng = np.random.default_rng(0)
    n = 500
    factor = rng.normal(size=(n, 1))
    t = np.arange(1000.0)
    tables = {
        "iris": load_iris(as_frame=True).data,
        "answers": np.clip(np.rint(1.2 * factor + 0.8 * rng.normal(size=(n, 8)) + 3), 1, 5),
        "answers that agree": np.clip(np.rint(1.6 * factor + 0.4 * rng.normal(size=(n, 12)) + 3), 1, 5),
        "yes and no": rng.integers(0, 2, (n, 9)).astype(float),
        "slow series": np.column_stack([t, np.sin(t / 500).round(4), np.cos(t / 300).round(4)]),
        "visits": np.column_stack([np.repeat(rng.normal(size=(100, 3)), 5, axis=0), np.tile(np.arange(5.0), 100)]),
        "empty": np.zeros((0, 2)),
        "one column": rng.integers(0, 9, (50, 1)).astype(float),
    }
    for name, values in tables.items():
        frame = pd.DataFrame(values)
        frame.columns = [f"c{j}" for j in range(frame.shape[1])]
        assert kinds(frame) == {}, name


def test_copies_among_answers_are_found() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(1, 6, (300, 25)).astype(float)
    X[290:] = X[:10]
    frame = pd.DataFrame(X, columns=[f"q{j}" for j in range(25)])
    assert kinds(frame) == {(k, 290 + k): "exact" for k in range(10)}


def test_rows_that_hold_nothing_are_no_copies_of_each_other():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)).round(3), columns=list("abcd"))
    frame.loc[[10, 20, 30]] = np.nan
    frame.loc[59] = frame.loc[3]
    assert [group.rows for group in find_duplicates(as_table(frame))] == [(3, 59)]
