"""Rows that chance sets apart from a regression count again; others do not; what lies between is told."""

from __future__ import annotations

import json
from functools import partial
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from benchmarks.calibration import outlying
from trimlearn.robust.regression.set_apart import LEVEL, log_sets_expected, without_chance


def test_a_single_row_is_judged_by_its_studentised_residual() -> None:
    rng = np.random.default_rng(0)
    n, q = 25, 3
    A, y = np.column_stack([np.ones(n), rng.normal(size=(n, q - 1))]), rng.normal(size=n)

    def left(rows: np.ndarray) -> float:
        return float(np.linalg.lstsq(A[rows], y[rows], rcond=None)[1][0])

    others = np.arange(n) != 7
    ratio = left(others) / left(np.full(n, True))
    studentised = np.sqrt((n - q - 1) * (1 / ratio - 1))
    assert exp(log_sets_expected(ratio, n, 1, q)) == pytest.approx(n * 2 * student.sf(studentised, n - q - 1))


def test_more_left_out_is_less_surprising_and_less_kept_is_more() -> None:
    by_rows = [log_sets_expected(0.3, 40, b, 3) for b in (2, 4, 8, 16)]
    assert by_rows == sorted(by_rows)
    by_ratio = [log_sets_expected(ratio, 40, 8, 3) for ratio in (0.01, 0.1, 0.3, 0.9)]
    assert by_ratio == sorted(by_ratio) and by_ratio[0] < log(LEVEL) < by_ratio[-1]


def test_nothing_left_and_more_than_half_left_out_are_judged_too() -> None:
    assert log_sets_expected(0.0, 40, 8, 3) < -100
    assert log_sets_expected(0.0, 40, 1, 3) < -100
    assert log_sets_expected(0.5, 20, 12, 3) > 0 > log_sets_expected(1e-9, 20, 12, 3)


@pytest.mark.parametrize(("far", "back"), [(1.3, 4), (30.0, 0)])
def test_rows_come_back_where_chance_would_do(far: float, back: int) -> None:
    y = np.append(np.linspace(-1, 1, 40), far + 0.01 * np.arange(4))
    mean = partial(mean_of, y, np.ones(44))
    model, rows, doubt = without_chance(0.0, np.arange(44) < 40, None, 1, lambda m: y - m, mean)
    assert rows.sum() == 40 + back and rows[:40].all() and not doubt
    assert model == pytest.approx(y[rows].mean() if back else 0.0)


def test_right_rows_come_back_from_beside_wrong_ones() -> None:
    y = np.concatenate([np.linspace(-1, 1, 40), [1.2, -1.2], [20.0, 21.0, 22.0]])
    mean = partial(mean_of, y, np.ones(45))
    _, rows, doubt = without_chance(0.0, np.arange(45) < 40, None, 1, lambda m: y - m, mean)
    assert np.flatnonzero(~rows).tolist() == [42, 43, 44] and not doubt


def test_what_lies_between_is_left_out_and_in_doubt() -> None:
    y = np.append(np.random.default_rng(1).normal(size=18), [2.7, 3.1])
    mean = partial(mean_of, y, np.ones(20))
    _, rows, doubt = without_chance(float(y[:18].mean()), np.arange(20) < 18, None, 1, lambda m: y - m, mean)
    assert rows.sum() == 18 and doubt


def mean_of(y: np.ndarray, s: np.ndarray, rows: np.ndarray, _: float) -> float:
    return float(np.average(y[rows], weights=s[rows]))


def test_weights_count_rows() -> None:
    y = np.append(np.linspace(-1, 1, 19), 2.0)
    s = np.where(np.arange(20) == 19, 3.0, 1.0)
    repeated = np.append(y, [2.0, 2.0])

    def fit(y: np.ndarray, s: np.ndarray) -> tuple[float, np.ndarray, bool]:
        return without_chance(0.0, y < 1.5, s, 1, lambda m: y - m, partial(mean_of, y, s))

    weighted, written_out = fit(y, s), fit(repeated, np.ones(22))
    assert weighted[0] == pytest.approx(written_out[0]) and weighted[2] == written_out[2]
    assert weighted[1].all() == written_out[1].all()


def test_the_law_is_that_of_simulated_searches() -> None:
    file = Path(outlying.__file__).parent / "results" / "outlying.json"
    (table,) = json.loads(file.read_text(encoding="utf-8")).values()
    for row in table.values():
        assert row["predicted"] == pytest.approx(row["mean"], abs=0.11)
        assert row["its prediction"] == pytest.approx(row["deviation"], abs=0.06)
        assert row["denied"] < 2 * LEVEL
    few = outlying.compared(40, 8, 3, samples=20)
    assert few["predicted"] == table["n=40, q=3, b=8"]["predicted"]
    assert few["mean"] == pytest.approx(few["predicted"], abs=0.15)
