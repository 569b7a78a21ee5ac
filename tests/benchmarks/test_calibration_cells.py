"""The constants of robust/cells are those that the stored simulations speak for."""

from __future__ import annotations

import numpy as np

from benchmarks.calibration import stored
from benchmarks.calibration.cells import cells
from benchmarks.peers_cells import dirty
from trimlearn.robust.cells import fit, tails


def test_wrong_cells_are_found_and_tails_left_alone() -> None:
    rows = [row for row in stored("cells")["REACH"] if row["REACH"] == tails.REACH]
    assert len(rows) == 5
    assert all(row["found"] > 90 and row["flagged"] < 2 for row in rows)


def test_small_clean_tables_are_left_alone() -> None:
    rows = [row for row in stored("cells")["SMALL"] if row["SMALL"] == fit.SMALL]
    assert rows and all(row["flagged"] < 2 for row in rows)
    before = [row for row in stored("cells")["SMALL"] if row["SMALL"] == 0.0]
    assert max(row["flagged"] for row in before) > 2


def test_a_cheap_part_of_it_again() -> None:
    row = cells((30, 4, 2.0, 0.0, 0.0), repetitions=3)
    assert row["flagged"] < 2


def test_dirt_is_where_it_is_said_to_be() -> None:
    X = np.random.default_rng(0).lognormal(size=(50, 4)) * 1000
    assert 5 <= np.count_nonzero(dirty(X, 0) != X) <= 10
