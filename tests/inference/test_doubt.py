"""Rows left out that may be right widen intervals; those that are wrong for certain do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trimlearn import TrimmedLinearRegression
from trimlearn.inference.fitted import Fitted
from trimlearn.inference.infer import infer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = X @ [1.0, -2.0] + RNG.normal(size=30) + 4 * (np.arange(30) == 3)
WEIGHTS = (np.arange(30) != 3).astype(float)
DESIGN = np.column_stack([np.ones(30), X])


def fit_without() -> Fitted:
    theta = np.linalg.lstsq(DESIGN[WEIGHTS > 0], Y[WEIGHTS > 0], rcond=None)[0]
    return Fitted("normal", X, Y, theta[1:], theta[0], WEIGHTS, scale=1.1)


def test_a_row_that_is_wrong_for_certain_adds_nothing() -> None:
    fit = fit_without()
    certain = infer(replace(fit, innocence=np.zeros(30))).covariance
    np.testing.assert_allclose(certain, infer(fit).covariance)
    counted = infer(replace(fit, innocence=WEIGHTS)).covariance  # of rows that count it does not matter
    np.testing.assert_allclose(counted, infer(fit).covariance)


def test_the_covariance_is_that_of_a_mixture_of_both_fits() -> None:
    fit, p = fit_without(), 0.3
    with_it = np.linalg.lstsq(DESIGN, Y, rcond=None)[0]
    moved = with_it - np.append(fit.intercept, fit.coef)
    r, df = Y - DESIGN @ np.append(fit.intercept, fit.coef), 26
    inverse = np.linalg.inv(DESIGN[WEIGHTS > 0].T @ DESIGN[WEIGHTS > 0])
    larger = 1 + p * (r[3] ** 2 / (1 + DESIGN[3] @ inverse @ DESIGN[3]) / 1.1**2 - 1) / (df + 1)
    found = infer(replace(fit, innocence=np.full(30, p))).covariance
    np.testing.assert_allclose(found, 1.1**2 * inverse * larger + p * np.outer(moved, moved))


def test_two_copies_of_a_row_count_twice() -> None:
    fit = replace(fit_without(), innocence=np.full(30, 0.2), sample_weight=np.where(WEIGHTS > 0, 1.0, 2.0))
    order = np.append(np.arange(30), 3)
    twice = replace(fit, X=X[order], y=Y[order], weights=WEIGHTS[order], innocence=np.full(31, 0.2), sample_weight=None)
    np.testing.assert_allclose(infer(fit).covariance, infer(twice).covariance)


@pytest.mark.parametrize("off", [3.4, 60.0])
def test_a_doubtful_row_widens_the_estimators_intervals(off: float) -> None:
    y = Y.copy()
    y[3] = X[3] @ [1.0, -2.0] + off
    model = TrimmedLinearRegression(efficiency="mm", random_state=0).fit(X, y)
    assert not model.inlier_mask_[3]
    certain = infer(replace(model._fitted(None, None), innocence=None)).std_error
    ratio = model.inference().std_error / certain
    assert np.all(ratio > 1.01) if off < 10 else np.all(ratio < 1.001)


def test_fits_that_lie_apart_widen_the_intervals_of_their_mean() -> None:
    fit = fit_without()
    apart = np.array([[0.5, 1.0, 0.0], [-0.5, -1.0, 0.0]])
    found, plain = (infer(replace(fit, scatter=scatter)).covariance for scatter in (apart, None))
    np.testing.assert_allclose(found - plain, apart.T @ apart, atol=1e-12)
