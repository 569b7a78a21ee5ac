"""How sure `find_cells` is agrees with what was simulated."""

from __future__ import annotations

import numpy as np

from benchmarks.calibration import stored
from benchmarks.calibration.cell_odds import calibrated, judged, probabilities, tables
from benchmarks.peers_cells import dirty


def test_probabilities_are_calibrated() -> None:
    rows = stored("cell_odds")["calibrated"]
    assert sum(row["cells"] for row in rows) > 10_000
    assert all(abs(row["probability"] - row["wrong"]) < 0.12 for row in rows)


def test_few_clean_cells_are_flagged() -> None:
    rows = stored("cell_odds")["summary"]
    assert all(row["flagged"] < 1 and row["clean flagged"] < 1 for row in rows)
    assert np.median([row["found"] for row in rows]) > 95


def test_a_cheap_part_of_it_again() -> None:
    X = tables()["wine"]
    case = judged(X, dirty(X, 5))
    p, wrong = probabilities(case), case[3]
    assert np.mean(p[case[4]] > 0.5) > 0.9
    assert calibrated(p, wrong)[-1]["wrong"] > 0.95
