"""Skewed errors are told from bad rows, and the doubt reaches the user."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from trimlearn import TrimmedLinearRegression
from trimlearn.robust.regression.one_law import looks_of_two_scales, looks_skewed, skewness_evidence


def lognormal(seed: int = 2, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 10 + X.sum(axis=1) + np.exp(rng.normal(size=n))


def test_a_fit_to_skewed_errors_warns() -> None:
    X, y = lognormal(4)
    sharp = TrimmedLinearRegression(efficiency="reweight", random_state=0)  # which flags a tenth of the rows
    with pytest.warns(UserWarning, match=r"skewed law explains .* TrimmedGLM"):
        sharp.fit(X, y)
    with pytest.warns(UserWarning, match="transform y"):  # no logarithm of what is negative
        sharp.fit(X, y - 20)
    with pytest.warns(UserWarning, match="skewed"):  # on the other side as well
        sharp.fit(X, -y)


def test_a_mean_of_fits_knows_skewed_laws_and_flags_few() -> None:
    for seed in range(4):
        X, y = lognormal(seed)
        assert TrimmedLinearRegression(random_state=0).fit(X, y).inlier_mask_.mean() > 0.93


@pytest.mark.parametrize("by", [5.0, 10.0])
def test_bad_rows_do_not(by: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X.sum(axis=1) + rng.normal(size=200) + by * (np.arange(200) < 40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    assert (~model.inlier_mask_[:40]).mean() > 0.8


def test_a_given_level_is_not_doubted() -> None:
    X, y = lognormal()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TrimmedLinearRegression(0.1, random_state=0).fit(X, y)
    assert looks_skewed((y - model.predict(X)) / model.scale_, ~model.inlier_mask_)  # it would have been


def test_units_order_and_wild_rows_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    r = np.exp(rng.normal(size=300)) - 1
    off = r > 3
    assert looks_skewed(r, off)
    assert looks_skewed(r * 1e9, off) and looks_skewed(-r, off)
    order = rng.permutation(300)
    assert skewness_evidence(r[order], off[order]) == pytest.approx(skewness_evidence(r, off))
    assert looks_skewed(np.append(r, [np.inf, np.nan]), np.append(off, [True, True]))


@pytest.mark.parametrize("bad", [4, 0])
def test_few_rows_are_not_asked(bad: int) -> None:
    r = np.append(np.random.default_rng(0).normal(size=50), np.full(bad, 9.0))
    assert skewness_evidence(r, r > 5) is None


def test_rows_on_both_sides_are_not_asked() -> None:
    r = np.append(np.random.default_rng(0).normal(size=50), [9.0] * 8 + [-9.0] * 8)
    assert skewness_evidence(r, np.abs(r) > 5) is None


def test_equal_scores_do_not_fail() -> None:
    r = np.append(np.zeros(50), np.full(10, 7.0))
    assert skewness_evidence(r, r > 5) is None


# ---- two scales ----


def of_two_scales(seed: int, n: int, ratio: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=n) * np.where(rng.random(n) < 0.3, ratio, 1.0))


@pytest.mark.parametrize("ratio", [4.0, 5.0])
def test_a_fit_to_errors_of_two_scales_warns(ratio: float) -> None:
    for seed in range(3):
        X = np.random.default_rng([seed, 1]).normal(size=(400, 2))
        with pytest.warns(UserWarning, match="errors of two scales explain"):
            TrimmedLinearRegression(random_state=0).fit(X, X.sum(axis=1) + of_two_scales(seed, 400, ratio))


def test_bad_rows_on_both_sides_are_groups_of_their_own() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        r = rng.normal(size=150) + (np.arange(150) < 30) * rng.choice([-1, 1], 150) * rng.uniform(8, 15, 150)
        assert not looks_of_two_scales(r, np.abs(r) > 4)


def test_two_scales_are_asked_of_enough_rows_on_both_sides() -> None:
    r = of_two_scales(0, 300, 5.0)
    assert looks_of_two_scales(r, np.abs(r) > 3)
    assert not looks_of_two_scales(np.abs(r), np.abs(r) > 3)  # one side
    assert not looks_of_two_scales(r, np.abs(r) > np.sort(np.abs(r))[-5])  # four rows
    assert not looks_of_two_scales(np.where(np.abs(r) > 3, r, 0.0), np.abs(r) > 3)  # an exact fit


# ---- one value of y ----


@pytest.mark.parametrize("n", [30, 200])
def test_a_value_that_many_targets_have_is_told(n: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    y = X.sum(axis=1) + 3 + 0.5 * rng.normal(size=n)
    y[: n * 3 // 10] = 0.0
    with pytest.warns(UserWarning, match="y is 0 in 30% of the rows"):
        TrimmedLinearRegression(random_state=0).fit(X, y)


def test_a_value_of_which_every_row_is_flagged_does_no_harm() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 2))
    y = X.sum(axis=1) + 3 + 0.5 * rng.normal(size=100)
    y[:20] = 50.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    assert not model.inlier_mask_[:20].any() and model.inlier_mask_[20:].all()


def test_values_that_all_repeat_are_no_mark() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TrimmedLinearRegression(random_state=0).fit(X, np.round(X.sum(axis=1) + rng.normal(size=200)))
    assert model.inlier_mask_.mean() > 0.97


def test_few_values_are_told_where_rows_are_flagged() -> None:
    rng = np.random.default_rng(905)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, 30).astype(float)
    with pytest.warns(UserWarning, match="y holds only 3 different values"):
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    assert (~model.inlier_mask_).mean() > 0.05
