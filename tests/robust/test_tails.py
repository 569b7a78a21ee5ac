"""Distances with a tail: what is a tail, what is contamination, and that clean rows are left alone."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, f

from benchmarks.calibration import stored, tails
from trimlearn.robust.scatter.tails import TailLaw, judge_distances


@pytest.mark.parametrize(("k", "m"), [(1.0, inf), (5.0, inf), (1.0, 3.0), (13.0, 5.0)])
def test_the_law(k: float, m: float) -> None:
    law = TailLaw(k, m)
    expected = chi2.sf(4.0, k) if m == inf else f.sf(4.0 / k, k, m)
    assert law.survival(2.0) == pytest.approx(expected)
    assert law.survival(law.upper(0.03)) == pytest.approx(0.03, rel=1e-6)
    assert quad(lambda y: np.exp(law.log_density(np.array(y))), -20, 20)[0] == pytest.approx(1.0, abs=1e-6)


def test_cheap_parts_of_the_calibration_give_what_is_stored() -> None:
    table = stored("tails")["what distances are taken for"]
    for law, n, k in (("normal", 50, 5), ("40 % shifted", 50, 5)):
        row = next(row for row in table if (row["law"], row["n"], row["k"]) == (law, n, k))
        assert tails.judged(law, n, k) == {name: row[name] for name in row if name not in ("law", "n", "k")}
    for row in table:
        if row["law"] == "normal":
            assert row["flagged"] <= 0.03
        if row["law"].startswith("elliptical") and row["n"] == 300:
            assert row["contamination"] < 0.02 < row["were it normal"]


@pytest.mark.parametrize("n", [300, 5000])
def test_bad_rows_apart_from_a_heavy_tail(n: int) -> None:
    """They are flagged, the tail is not; also where distances are binned."""
    rng = np.random.default_rng(0)
    d = np.sqrt(rng.chisquare(5, n) / rng.chisquare(8, n) * 8)
    d[: n // 5] = 60.0 + rng.standard_normal(n // 5)
    judged = judge_distances(d, 0.55 * n, np.ones(n), 5.0)
    assert judged.apart and judged.law.m < inf
    assert not judged.verdict.inliers[: n // 5].any() and judged.verdict.inliers[n // 5 :].mean() > 0.97
    assert judged.verdict.contamination == pytest.approx(0.2, abs=0.02)
    assert np.array_equal(judged.weights > 0, judged.verdict.inliers) and judged.weights.max() == 1.0


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    d, s = np.sqrt(rng.chisquare(3, 60)), rng.integers(0, 3, 60).astype(float)
    d[:8] += 9.0
    once, often = (
        judge_distances(d, 40.0, s, 3.0),
        judge_distances(np.repeat(d, s.astype(int)), 40.0, np.ones(int(s.sum())), 3.0),
    )
    assert once.verdict.contamination == pytest.approx(often.verdict.contamination)
    assert once.verdict.cutoff == pytest.approx(often.verdict.cutoff) and once.law == often.law


@pytest.mark.parametrize(
    "d", [np.zeros(30), np.ones(30), np.append(np.ones(29), 1e308), np.append(np.zeros(29), np.inf)]
)
def test_odd_distances(d: np.ndarray) -> None:
    judged = judge_distances(d, 20.0, np.ones(30), 2.0)
    assert np.isfinite(judged.verdict.scale) and 0 <= judged.verdict.contamination < 1
    assert judged.verdict.inliers[:29].all()
