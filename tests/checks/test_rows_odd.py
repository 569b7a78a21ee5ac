"""Rows that are odd as a whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from tables_made_up import as_table, related
from trimlearn.checks import rows
from trimlearn.checks.cells import find_cells
from trimlearn.checks.rows import odd_rows


def normal(n: int, p: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) + rng.normal(size=(n, p))
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(p)])


def test_clean_rows_are_not_odd() -> None:
    shares = []
    for seed, (n, p) in enumerate([(50, 3), (100, 5), (300, 6)]):
        frame = normal(n, p, seed)
        shares.append(len(odd_rows(as_table(frame), frame).odd) / n)
    assert np.mean(shares) <= 0.03
    for frame in (related(), load_iris(as_frame=True).data):
        found = odd_rows(as_table(frame), frame)
        assert len(found.odd) <= 0.01 * len(frame)


def test_a_product_of_other_columns_makes_no_row_odd() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame({"sold": rng.poisson(40, 80) * 1.0, "price": rng.gamma(4, 5, 80).round(2)})
        frame["sum"] = (frame["sold"] * frame["price"]).round(2)
        found = find_cells(as_table(frame))
        assert found.reckoned == ("sum",) and not any(cell.column == "sum" for cell in found.cells)
        assert odd_rows(as_table(frame), found.mended.drop(columns="sum")).odd == ()


def test_odd_rows_are_found_and_explained() -> None:
    frame = normal(300, 8, 0)
    rng = np.random.default_rng(1)
    bad = np.arange(25)
    frame.iloc[bad] += 5 * rng.choice([-1.0, 1.0], (25, 8))
    frame.iloc[40, 2] = np.nan
    found = odd_rows(as_table(frame), frame, pinned={0: False, 1: True})
    listed = [row.row for row in found.odd]
    assert len(set(listed) & set(bad)) >= 20
    assert len(set(listed) - set(bad)) <= 2
    assert 0 not in listed
    assert found.scores[bad].min() > np.median(found.scores)
    assert all(row.columns and set(row.columns) <= set(frame.columns) for row in found.odd)
    assert all(0.5 < row.probability <= 1 for row in found.odd)
    assert set(found.fits) == {"covariance", "pca", "matrix", "columns"}


def test_groups_are_said_to_be_groups() -> None:
    frame = normal(200, 3, 0)
    frame.iloc[:70] += 30.0
    found = odd_rows(as_table(frame), frame)
    assert found.odd == ()
    assert any("groups of their own" in caveat for caveat in found.caveats)


def test_too_little_to_tell() -> None:
    for frame in (normal(10, 3, 0), normal(100, 1, 0), normal(60, 20, 0), normal(0, 3, 0)):
        found = odd_rows(as_table(frame), frame)
        assert found.odd == ()
        assert np.isnan(found.scores).all()
        assert "No rows were judged" in found.caveats[0]


def test_more_rows_than_are_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "ROWS", 300)
    frame = normal(1000, 5, 0)
    frame.iloc[::100] += [6, -6, 6, -6, 6]
    found = odd_rows(as_table(frame), frame)
    assert len({row.row for row in found.odd} & set(range(0, 1000, 100))) >= 8
    assert len(found.scores) == 1000
    assert any("learnt from 300" in caveat for caveat in found.caveats)


def test_a_gap_among_columns_that_hang_together_makes_no_row_odd():
    rng = np.random.default_rng(2)
    z = rng.uniform(10.0, 90.0, 200)
    frame = pd.DataFrame({"a": z, "b": z + rng.normal(size=200), "c": 2 * z + rng.normal(size=200)})
    for row in range(0, 60, 2):
        frame.iloc[row, row // 2 % 3] = np.nan
    assert odd_rows(as_table(frame), frame).odd == ()


def test_why_no_rows_were_judged_is_said_in_words_that_help():
    rng = np.random.default_rng(0)
    one, wide = pd.DataFrame({"a": rng.normal(size=90)}), pd.DataFrame(rng.normal(size=(40, 20))).add_prefix("c")
    assert odd_rows(as_table(one), one).caveats == (
        "No rows were judged as a whole: that takes two columns of numbers, here 1 can be used.",
    )
    assert odd_rows(as_table(wide), wide).caveats == (
        "No rows were judged as a whole: 20 columns of numbers take 100 rows, and there are 40.",
    )


def test_a_machine_switched_off_is_a_group_and_no_error() -> None:
    frame = normal(400, 4, 0)
    off = np.arange(48)
    frame.iloc[off] = 0.3 * normal(48, 4, 1) + [12.0, -12.0, 12.0, -12.0]
    frame.iloc[399] = [-20.0, 20.0, -20.0, 20.0]
    found = odd_rows(as_table(frame), frame)
    assert {399} <= {row.row for row in found.odd} and len({row.row for row in found.odd} & set(off)) <= 3
    assert any("lie close together" in caveat and " there, " in caveat for caveat in found.caveats)
