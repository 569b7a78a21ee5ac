"""Scale, cut-off and contamination from residuals: constants, consistency, breakdown, efficiency, the classic sets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from trimlearn.robust.scale import Chi, judge, p_values, raw_scale, rounding_floor, small_sample
from trimlearn.robust.verdict import Verdict


def contaminated(n: int, eps: float, shift: float, seed: int) -> tuple[np.ndarray, int]:
    """Normal residuals, the first of them shifted; how many."""
    r = np.random.default_rng([seed, n]).standard_normal(n)
    bad = round(eps * n)
    r[:bad] += shift
    return r, bad


# --- the law and its factors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5.5])
@pytest.mark.parametrize("cut", [0.3, 1.0, 2.5, 6.0])
def test_second_moment_is_the_integral(k: float, cut: float) -> None:
    density = stats.chi(k).pdf
    energy, mass = (integrate.quad(lambda t, m=m: t**m * density(t), 0, cut)[0] for m in (2, 0))
    assert Chi(k).second_moment(cut) == pytest.approx(energy / mass, rel=1e-8)


def test_second_moment_is_the_classical_factor() -> None:
    q = stats.norm.ppf(0.75)
    assert Chi().second_moment(q) == pytest.approx(1 - 2 * q * stats.norm.pdf(q) / 0.5)
    assert Chi(3).second_moment(float("inf")) == 3


def test_covariance_factors_of_robustbase() -> None:
    """.MCDcons(3, 0.5) and .MCDcons(2, 0.75) of robustbase 0.95."""
    for k, share, factor in ((3, 0.5, 2.457367921), (2, 0.75, 1.859075117)):
        law = Chi(k)
        assert k / law.second_moment(law.upper(1 - share)) == pytest.approx(factor, rel=1e-9)


# p with intercept, n, alpha; then LTScnp2(p, intercept, n, alpha) of robustbase 0.95 with and without an intercept
ROBUSTBASE = [
    (1, 20, 0.5, 1.126742941, 1.138264772),
    (1, 100, 0.75, 1.015916047, 1.017130406),
    (2, 24, 0.5, 1.31156268, 1.302054776),
    (2, 50, 0.95, 1.012654236, 1.012718846),
    (4, 21, 0.5, 1.884166449, 1.878824848),
    (4, 75, 0.5, 1.275291903, 1.265269411),
    (6, 20, 0.6, 2.263586375, 2.251321253),
    (10, 38, 0.9, 1.232726331, 1.238367327),
    (10, 1000, 0.5, 1.107521821, 1.104748063),
]


@pytest.mark.parametrize(("p", "n", "alpha", "with_intercept", "without"), ROBUSTBASE)
def test_small_sample_factors_are_robustbases(
    p: int, n: int, alpha: float, with_intercept: float, without: float
) -> None:
    h = alpha * (n - p - 1) + p + 1
    assert small_sample(n, p, h) == pytest.approx(with_intercept, rel=1e-8)
    assert small_sample(n, p, h, intercept=False) == pytest.approx(without, rel=1e-8)


@pytest.mark.parametrize("p", [1, 5, 18, 19, 20, 200])
def test_small_sample_factors_stay_finite_where_p_is_near_n(p: int) -> None:
    assert 1 <= small_sample(20, p, h=15) <= 10


@pytest.mark.parametrize(("h", "n"), [(500, 1000), (700, 1000), (1000, 1000)])
@pytest.mark.parametrize("k", [1, 4])
def test_raw_scale_is_consistent(h: int, n: int, k: int) -> None:
    draws = np.sqrt(np.random.default_rng(0).chisquare(k, (200, n))) * 3
    mean = np.mean([raw_scale(r, h, law=Chi(k)) for r in draws])
    assert mean == pytest.approx(3, rel=0.01)


def test_p_values_are_the_tail() -> None:
    r = np.array([0.0, 1.0, 2.5, 9.0])
    np.testing.assert_allclose(p_values(r), 2 * stats.norm.sf(r))
    np.testing.assert_allclose(p_values(r, Chi(4)), stats.chi2.sf(r**2, 4))


# --- breakdown and contamination ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [50, 200, 2000])
@pytest.mark.parametrize("shift", [6, 50])
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.3, 0.45])
def test_contamination_is_found(n: int, shift: float, eps: float) -> None:
    errors = []
    for seed in range(40):
        r, bad = contaminated(n, eps, shift, seed)
        errors.append(judge(r, h=n // 2 + 1).contamination - bad / n)
    assert abs(np.mean(errors)) < 0.015
    assert np.quantile(np.abs(errors), 0.85) < 0.03


@pytest.mark.parametrize("shift", [5, 6, 50, 1e6, 1e200])
def test_breakdown(shift: float) -> None:
    for seed in range(20):
        r, bad = contaminated(400, 0.45, shift, seed)
        verdict = judge(r, h=201)
        assert 0.8 < verdict.scale < 1.35
        assert np.mean(verdict.inliers[:bad]) < 0.06
        assert np.mean(verdict.inliers[bad:]) > 0.95


def test_the_scale_stays_small_where_assuming_clean_rows_makes_it_large() -> None:
    r, _ = contaminated(2000, 0.45, 50, 0)
    assert raw_scale(r, h=1001) > 1.7
    assert judge(r, h=1001).scale == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("k", [3, 20])
def test_distances_have_their_own_law(k: int) -> None:
    rng = np.random.default_rng(k)
    d = 2 * np.sqrt(rng.chisquare(k, 1000))
    d[:300] += 20
    verdict = judge(d, h=510, p=1, law=Chi(k))
    assert verdict.scale == pytest.approx(2, rel=0.03)
    assert verdict.contamination == pytest.approx(0.3, abs=0.01)


# --- efficiency on clean data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "most"), [(50, 0.025), (100, 0.012), (1000, 0.005), (10_000, 0.003)])
def test_clean_rows_are_kept(n: int, most: float) -> None:
    rng = np.random.default_rng(n)
    verdicts = [judge(rng.standard_normal(n), h=n // 2 + 1) for _ in range(100 if n < 10_000 else 20)]
    assert np.mean([1 - v.inliers.mean() for v in verdicts]) < most
    assert np.mean([v.scale for v in verdicts]) == pytest.approx(1, abs=0.04)


@pytest.mark.parametrize(("draw", "most"), [(stats.t(5), 0.03), (stats.laplace(), 0.07), (stats.t(3), 0.06)])
def test_heavy_tails_are_not_contamination(draw: stats.rv_continuous, most: float) -> None:
    r = draw.rvs(size=(20, 500), random_state=0)
    assert np.mean([judge(row, h=251).contamination for row in r]) < most


def test_light_tails_are_clean() -> None:
    verdict = judge(np.random.default_rng(0).uniform(-1, 1, 500), h=251)
    assert verdict.inliers.all()
    assert verdict.contamination == 0


def test_a_refit_is_as_good_as_least_squares_on_clean_data() -> None:
    """From a start with a third of its efficiency: the fit to the half of the rows with the smallest residuals."""
    errors = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((200, 4)), rng.standard_normal(200)
        coef = 0.15 * rng.standard_normal(4)
        for _ in range(2):
            keep = judge(y - X @ coef, h=103, p=4, intercept=False).inliers
            coef = np.linalg.lstsq(X[keep], y[keep], rcond=None)[0]
        errors.append([np.sum(coef**2), np.sum(np.linalg.lstsq(X, y, rcond=None)[0] ** 2)])
    ours, least_squares = np.sqrt(np.mean(errors, axis=0))
    assert ours < 1.05 * least_squares


# --- the classic sets --------------------------------------------------------------------------------------------


def classic(home: Path, name: str) -> tuple[np.ndarray, np.ndarray, dict[str, list[float]]]:
    reference = json.loads((home / "lts_reference.json").read_text())[name]
    with (home / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    X = np.array([[1.0, *(float(row[column]) for column in reference["predictors"])] for row in rows])
    return X, np.array([float(row[reference["response"]]) for row in rows]), reference


CLASSICS = [
    "hbk",
    "stackloss",
    "wood",
    "coleman",
    "telef",
    "aircraft",
    "salinity",
    "delivery",
    "phosphor",
    "pilot",
    "kootenay",
    "heart",
    "cloud",
    "pension",
    "alcohol",
    "toxicity",
    "starsCYG",
    "exAM",
    "education",
]


@pytest.mark.parametrize("name", CLASSICS)
def test_classics(name: str, data_home: Path) -> None:
    """From the best least trimmed squares fit: the known outliers are flagged at once and after each refit."""
    home = data_home / "classic_robust"
    if not home.is_dir():
        pytest.skip(f"no classic_robust in {data_home}")
    X, y, reference = classic(home, name)
    known = json.loads((home / "known_outliers.json").read_text())[name]
    named = {row for key, rows in known.items() if key not in ("basis", "response", "predictors") for row in rows}
    coef = np.array(reference["best_coef_intercept_first"])
    for _ in range(4):
        verdict = judge(y - X @ coef, reference["h"], X.shape[1], floor=rounding_floor(y))
        assert not verdict.inliers[np.array(known["rows"], dtype=int) - 1].any()
        coef = np.linalg.lstsq(X[verdict.inliers], y[verdict.inliers], rcond=None)[0]
    flagged = set((np.flatnonzero(~verdict.inliers) + 1).tolist())
    assert len(flagged - named) <= 4


# --- what must not matter ----------------------------------------------------------------------------------------


def same(a: Verdict, b: Verdict, unit: float = 1.0) -> None:
    assert b.scale == pytest.approx(unit * a.scale, rel=1e-9)
    assert b.cutoff == pytest.approx(a.cutoff, rel=1e-9)
    assert b.contamination == pytest.approx(a.contamination, abs=1e-12)


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(5, 80), eps=st.floats(0, 0.45), unit=st.sampled_from([2.0**-400, 2.0**-30, 2.0**200]))
def test_units_do_not_matter(seed: int, n: int, eps: float, unit: float) -> None:
    r, _ = contaminated(n, eps, 7, seed)
    plain, scaled = judge(r, h=(n + 3) / 2, p=1), judge(unit * r, h=(n + 3) / 2, p=1)
    same(plain, scaled, unit)
    assert np.array_equal(plain.inliers, scaled.inliers)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(5, 80), eps=st.floats(0, 0.45))
def test_a_weight_counts_rows_and_order_is_nothing(seed: int, n: int, eps: float) -> None:
    r, _ = contaminated(n, eps, 7, seed)
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 4, n)
    s[0] = 1
    h = 0.6 * s.sum()
    weighted = judge(r, h, 1, s)
    same(weighted, judge(rng.permutation(np.repeat(r, s)), h, 1))
    assert np.array_equal(weighted.inliers, np.abs(r) / weighted.scale <= weighted.cutoff)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(4, 60), wild=st.sampled_from([1e3, 1e100, np.inf, np.nan]))
def test_a_minority_moves_the_scale_little_wherever_it_is(seed: int, n: int, wild: float) -> None:
    r = np.random.default_rng(seed).standard_normal(n)
    r[: (n - 1) // 2] = wild
    verdict = judge(r, h=n // 2 + 1)
    assert verdict.scale <= 4 * np.abs(r[(n - 1) // 2 :]).max()
    assert not verdict.inliers[: (n - 1) // 2].any()


# --- exact fits and wrong input ----------------------------------------------------------------------------------


def test_exact_fit() -> None:
    y = np.array([0.0] * 6 + [5.0, 3.0, -2.0])
    noise = 1e-17 * np.arange(9)
    verdict = judge(y + noise, h=6, p=2, floor=rounding_floor(y))
    assert verdict.inliers.tolist() == [True] * 6 + [False] * 3
    assert verdict.contamination == pytest.approx(1 / 3, abs=0.01)
    without = judge(y, h=6, p=2)
    assert without.inliers.tolist() == [True] * 6 + [False] * 3
    assert without.scale > 0


def test_nothing_trimmed_and_a_residual_that_overflowed() -> None:
    verdict = judge(np.array([1.0, 2.0, np.inf]), h=3)
    assert verdict.scale == np.finfo(float).max
    assert verdict.inliers.tolist() == [True, True, False]


def test_all_residuals_zero() -> None:
    verdict = judge(np.zeros(10), h=6, p=2)
    assert verdict.inliers.all()
    assert verdict.contamination == 0


def test_floor_follows_dtype_and_weights() -> None:
    y = np.array([8.0, 8.0, 1e9])
    assert rounding_floor(y.astype(np.float32)) == 2.0**12 * np.finfo(np.float32).eps * 8
    assert rounding_floor(y, [0, 0, 1]) == 2.0**12 * np.finfo(np.float64).eps * 1e9
    assert rounding_floor(np.zeros(3)) == 0


@pytest.mark.parametrize("h", [0, -1, 5.1, np.nan])
def test_h_must_be_possible(h: float) -> None:
    with pytest.raises(ValueError, match="h ="):
        judge(np.arange(5.0), h)


@pytest.mark.parametrize("r", [np.ones((2, 2)), np.ones(0)])
def test_residuals_must_be_a_vector(r: np.ndarray) -> None:
    with pytest.raises(ValueError, match="residuals"):
        judge(r, 1)


@pytest.mark.parametrize("n", [20, 200, 2000])
def test_where_nothing_is_flagged_unseen_rows_are_cut_where_one_row_would_have_been(n: int) -> None:
    """0.4 clean rows of n are expected beyond: not at the largest score seen, nor at 2.5."""
    r = np.clip(stats.norm.ppf((np.arange(n) + 0.5) / n), -2.2, 2.2)
    verdict = judge(r, h=n // 2 + 1, p=1)
    assert verdict.inliers.all()
    assert verdict.cutoff == pytest.approx(max(2.5, stats.norm.isf(0.2 / n)), rel=1e-9)
    assert verdict.cutoff > np.abs(r).max() / verdict.scale


def test_the_cutoff_is_never_below_its_usual_place() -> None:
    """Though no clean row lies beyond 1.5 here and others are flagged: an unseen row at 2.4 is no outlier."""
    r = np.append(np.clip(stats.norm.ppf((np.arange(100) + 0.5) / 100), -1.5, 1.5), np.full(5, 50.0))
    verdict = judge(r, h=53, p=1)
    assert verdict.inliers.sum() == 100
    assert verdict.cutoff == pytest.approx(2.5, rel=1e-9)
