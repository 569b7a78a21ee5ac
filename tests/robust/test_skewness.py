"""Skewed errors are told from bad rows, and the doubt reaches the user."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from trimlearn import TrimmedLinearRegression
from trimlearn.robust.regression.misfit import evidence, looks_skewed


def lognormal(seed: int = 2, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 10 + X.sum(axis=1) + np.exp(rng.normal(size=n))


def test_a_fit_to_skewed_errors_warns() -> None:
    X, y = lognormal(4)  # a tenth of the rows is flagged
    with pytest.warns(UserWarning, match=r"skewed law explains .* TrimmedGLM"):
        TrimmedLinearRegression(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="transform y"):  # no logarithm of what is negative
        TrimmedLinearRegression(random_state=0).fit(X, y - 20)
    with pytest.warns(UserWarning, match="skewed"):  # on the other side as well
        TrimmedLinearRegression(random_state=0).fit(X, -y)


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
    assert evidence(r[order], off[order]) == pytest.approx(evidence(r, off))
    assert looks_skewed(np.append(r, [np.inf, np.nan]), np.append(off, [True, True]))


@pytest.mark.parametrize("bad", [4, 0])
def test_few_rows_are_not_asked(bad: int) -> None:
    r = np.append(np.random.default_rng(0).normal(size=50), np.full(bad, 9.0))
    assert evidence(r, r > 5) is None


def test_rows_on_both_sides_are_not_asked() -> None:
    r = np.append(np.random.default_rng(0).normal(size=50), [9.0] * 8 + [-9.0] * 8)
    assert evidence(r, np.abs(r) > 5) is None


def test_equal_scores_do_not_fail() -> None:
    r = np.append(np.zeros(50), np.full(10, 7.0))
    assert evidence(r, r > 5) is None
