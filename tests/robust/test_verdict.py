"""Trim, judge, readmit, fit again: when it ends, and with what."""

from __future__ import annotations

import numpy as np
import pytest

from trimlearn.robust.verdict import ROUNDS, Verdict, readmit, rounds_for

VALUES = np.array([0.0, 1.0, 2.0, 3.0, 4.2, 50.0])


def near(mean: float) -> Verdict:
    return Verdict(1.0, 2.9, np.abs(VALUES - mean) <= 2.9, 0.0)


class Means:
    """Fits by means of the rows, and how many of them were made; None from the fit ``fails`` on."""

    def __init__(self, fails: int = 99) -> None:
        self.made, self.fails = 0, fails

    def __call__(self, rows: np.ndarray, mean: float) -> float | None:
        self.made += 1
        return None if self.made >= self.fails else float(VALUES[rows].mean())


def test_where_all_rows_are_explained_none_is_left_out_again() -> None:
    assert rounds_for(Verdict(1.0, 2.5, np.ones(3, dtype=bool), 0.0)) == 1
    assert rounds_for(Verdict(1.0, 2.5, np.array([True, False]), 0.1)) == ROUNDS > 1


def test_it_ends_where_the_rows_stay_the_same() -> None:
    fit = Means()
    mean, rows, verdict = readmit(0.0, near(0.0), fit, near, rounds=50)
    assert fit.made == 3  # of 0 to 2; of 0 to 3; of all but 50, who stay
    assert mean == pytest.approx(2.04)
    np.testing.assert_array_equal(rows, verdict.inliers)
    np.testing.assert_array_equal(rows, [True, True, True, True, True, False])


def test_a_fit_that_cannot_be_made_leaves_the_one_before() -> None:
    mean, rows, verdict = readmit(0.0, near(0.0), Means(fails=2), near, rounds=50)
    assert mean == 1.0  # of 0 to 2, which were near 0
    np.testing.assert_array_equal(rows, [True, True, True, False, False, False])
    assert verdict.inliers.sum() == 4


def test_as_many_rounds_as_are_allowed() -> None:
    fit = Means()
    assert readmit(0.0, near(0.0), fit, near, rounds=1)[0] == 1.0 and fit.made == 1
