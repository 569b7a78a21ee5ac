"""Rows that are far out only because features are skewed are told apart from wrong ones, or at least doubted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from trimlearn import TrimmedCovariance, TrimmedGraphicalLasso, TrimmedGraphicalLassoCV, TrimmedPCA


def _told(model: Any, X: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X)
    return [str(one.message) for one in told]


def test_a_skewed_tail_is_doubted() -> None:
    X = np.exp(np.random.default_rng(1).normal(size=(50, 5)))
    model = TrimmedCovariance(random_state=0)
    (said,) = _told(model, X)
    assert model.contamination_ > 0.1 and "powers or logarithms of the features explain all rows" in said
    assert f"{max(model.contamination_, 1.0 - model.inlier_mask_.mean()):.0%} of the rows" in said
    assert _told(TrimmedCovariance(random_state=0), np.log(X)) == []
    assert _told(TrimmedCovariance(0.1, random_state=0), X) == []  # who gives it, knows


@pytest.mark.parametrize("k", range(6))
def test_a_slight_skew_is_doubted_from_a_twentieth_of_the_rows_on(k: int) -> None:
    X = np.random.default_rng([9, k]).chisquare(4, size=(100, 3))
    model = TrimmedCovariance(random_state=0)
    said = _told(model, X)
    assert said or model.inlier_mask_.mean() >= 0.95


@pytest.mark.parametrize("model", [TrimmedGraphicalLasso(random_state=0), TrimmedGraphicalLassoCV(random_state=0)])
def test_a_network_of_skewed_features_is_doubted(model: Any) -> None:
    X = np.random.default_rng(2).exponential(size=(200, 4))
    (said,) = _told(model, X)
    assert model.contamination_ > 0.1 and "powers or logarithms of the features explain all rows" in said


@pytest.mark.parametrize(
    "model",
    [TrimmedCovariance(random_state=0), TrimmedPCA(1, random_state=0), TrimmedGraphicalLasso(random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_wrong_rows_among_normal_ones_are_not_doubted(model: Any) -> None:
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(60, 4)) @ np.diag([5.0, 1.0, 1.0, 1.0])
        X[:15, 3] += 12.0
        assert _told(model, X) == []
        assert model.contamination_ > 0.2


def test_the_fit_is_the_same_with_the_doubt() -> None:
    X = np.exp(np.random.default_rng(1).normal(size=(50, 5)))
    before = X.copy()
    model = TrimmedCovariance(random_state=0)
    assert len(_told(model, X)) == 1
    np.testing.assert_array_equal(X, before)
    assert model.mahalanobis(X) == pytest.approx(model.dist_)


def test_a_flagged_tail_of_one_feature_is_doubted() -> None:
    """A tenth is flagged, a little less is estimated to be bad."""
    X = np.random.default_rng([99, 7]).lognormal(size=(200, 1))
    model = TrimmedCovariance(random_state=0)
    with pytest.warns(UserWarning, match="a skewed tail is no error"):
        model.fit(X)
    assert model.contamination_ < 0.1 < np.mean(~model.inlier_mask_)


@pytest.mark.parametrize(
    "model",
    [TrimmedCovariance(random_state=0), TrimmedPCA(1, random_state=0), TrimmedGraphicalLasso(0.1, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_a_heavy_tail_is_doubted_and_gross_errors_are_not(model: Any) -> None:
    """Of ten samples whose features are of Student's t with 3 degrees of freedom, and ten with rows that are wrong."""
    silent = doubted = 0
    for k in range(10):
        rng = np.random.default_rng([77, k])
        said = _told(model, rng.standard_t(3, size=(60, 3)))
        silent += not said and float(model.inlier_mask_.mean()) < 0.95
        X = rng.normal(size=(60, 3)) * [4.0, 1.0, 1.0]
        X[:9, 2] += rng.uniform(8.0, 12.0, size=9) * rng.choice([-1.0, 1.0], size=9)
        doubted += any("a heavy tail is no error" in one for one in _told(model, X))
        assert model.contamination_ > 0.1
    assert silent <= 1 and doubted <= 1


def test_the_doubt_of_a_heavy_tail_says_how_many_are_called_bad() -> None:
    X = np.random.default_rng([77, 0]).standard_t(3, size=(60, 3))
    model = TrimmedCovariance(random_state=0)
    (said,) = _told(model, X)
    bad = max(model.contamination_, 1.0 - model.inlier_mask_.mean())
    assert said.startswith(f"{bad:.0%} of the rows are called bad, but one heavy-tailed law")
    assert _told(TrimmedCovariance(0.1, random_state=0), X) == []  # who gives it, knows
