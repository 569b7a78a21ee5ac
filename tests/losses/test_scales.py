"""Features of any scale, in float32 and float64: squares and steps that float32 does not hold must not matter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from trimlearn import (
    Problem,
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedGraphicalLasso,
    TrimmedLinearRegression,
    TrimmedPCA,
    solve,
)
from trimlearn._utils.arrays import dot, norm
from trimlearn.losses import Gamma, LeastSquares, Logistic, Poisson, Softmax
from trimlearn.losses.base import PredictionLoss
from trimlearn.regularizers import L1, Ridge
from trimlearn.smart import alternating, palm, saga, svrg
from trimlearn.smart.method import Method
from trimlearn.weights import CappedSimplex

N = 300
SCALES = [[1e-10, 1, 1, 1e10], [1e-20] * 4, [1e15] * 4, [1e-20, 1, 1, 1e15], [1e-20, 1e-10, 1e5, 1e15]]
METHODS: dict[str, Method] = {
    "svrg": svrg(),
    "saga": saga(),
    "palm": palm(),
    "alternating": alternating(),
    "euclidean": svrg(metric="euclidean"),
    "lbfgs": svrg(metric="lbfgs"),
}


def loss_of(kind: str, V: np.ndarray) -> PredictionLoss:
    rng = np.random.default_rng(1)
    eta = np.random.default_rng(0).normal(size=(N, 4)) @ np.array([1.0, -2.0, 0.5, 1.0])
    dtype = V.dtype
    if kind == "least squares":
        return LeastSquares(V, (eta + 0.1 * rng.normal(size=N)).astype(dtype), intercept=True)
    if kind == "logistic":
        return Logistic(V, eta + rng.normal(size=N) > 0, intercept=True)
    if kind == "softmax":
        return Softmax(V, np.digitize(eta + rng.normal(size=N), [-1, 1]), intercept=True)
    if kind == "poisson":
        return Poisson(V, rng.poisson(np.exp(eta / 2)).astype(dtype), intercept=True)
    return Gamma(V, (rng.gamma(2, np.exp(eta / 2) / 2) + 0.01).astype(dtype), intercept=True)


def design(scale: list[float], dtype: type) -> np.ndarray:
    return (np.random.default_rng(0).normal(size=(N, 4)) * scale).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["least squares", "logistic", "softmax", "poisson", "gamma"])
@pytest.mark.parametrize("name", ["svrg", "saga", "palm", "alternating"])
def test_the_fit_does_not_depend_on_the_scales_of_features(name: str, kind: str, dtype: type) -> None:
    """Methods with a metric of the features' own, and Newton's steps, go as low as they do at scale 1.

    Untrimmed, so that there is one minimum to find.
    """

    def least(scale: list[float]) -> float:
        loss = loss_of(kind, design(scale, dtype))
        solution = solve(Problem(loss, CappedSimplex(N)), METHODS[name], max_passes=40)
        assert np.all(np.isfinite(np.asarray(solution.x)))
        assert solution.x.dtype == dtype
        return solution.objective

    usual = least([1.0] * 4)
    for scale in SCALES:
        assert least(scale) <= 1.02 * usual


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["euclidean", "lbfgs"])
@pytest.mark.parametrize("kind", ["least squares", "logistic"])
def test_a_metric_that_knows_no_features_is_slow_but_finite(kind: str, name: str, dtype: type) -> None:
    for scale in SCALES:
        problem = Problem(loss_of(kind, design(scale, dtype)), CappedSimplex(0.9 * N), Ridge(1e-3))
        solution = solve(problem, METHODS[name], max_passes=15)
        assert solution.objective <= solution.history[0].objective
        assert np.all(np.isfinite(np.asarray(solution.x)))


@pytest.mark.parametrize("method", [alternating(), svrg(), palm()], ids=["alternating", "svrg", "palm"])
def test_a_threshold_in_float32(method: Method) -> None:
    """A prox whose step float32 does not hold: α in the features' own units leaves the same ones at 0."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(N, 4))
    t = Z[:, 0] - Z[:, 1] + 0.1 * rng.normal(size=N)

    def fit(scale: np.ndarray, dtype: type) -> np.ndarray:
        loss = LeastSquares((Z * scale).astype(dtype), t.astype(dtype), intercept=True)
        problem = Problem(loss, CappedSimplex(0.9 * N), L1(0.05 * scale))
        return np.asarray(solve(problem, method, max_passes=100).x, dtype=np.float64)[:4] * scale

    x = fit(np.array([1e-18, 1e12, 1e-18, 1e12]), np.float32)
    np.testing.assert_allclose(x, fit(np.ones(4), np.float64), atol=1e-2)
    assert x[2] == x[3] == 0


def test_products_in_float64() -> None:
    a = np.full(3, 1e20, dtype=np.float32)
    assert norm(a) == pytest.approx(3**0.5 * 1e20, rel=1e-6)
    assert dot(a, a / np.float32(1e10)) == pytest.approx(3e30, rel=1e-6)
    small = np.full(4, 1e-30, dtype=np.float32)
    assert norm(small) == pytest.approx(2e-30, rel=1e-6)


# ---- data of any size, through the estimators ----

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X @ np.array([1.0, 2.0, -1.0]) + 0.1 * np.random.default_rng(1).normal(size=60)
Y[:6] += 10
BIG = [1e100, 1e150, 1e200, 1e300, 1e-100, 1e-150, 1e-170, 1e-300]
FITS: dict[str, Callable[[float], Any]] = {
    "linear, y": lambda c: TrimmedLinearRegression(random_state=0).fit(X, Y * c),
    "linear, X": lambda c: TrimmedLinearRegression(random_state=0).fit(X * c, Y),
    "huber, y": lambda c: TrimmedGLM("huber", random_state=0).fit(X, Y * c),
    "huber, X": lambda c: TrimmedGLM("huber", random_state=0).fit(X * c, Y),
    "poisson, X": lambda c: TrimmedGLM(random_state=0).fit(X * c, np.round(np.abs(Y))),
    "wrapper, y": lambda c: TrimmedEstimator(LinearRegression(), random_state=0).fit(X, Y * c),
    "pca": lambda c: TrimmedPCA(1, random_state=0).fit(X * c),
    "covariance": lambda c: TrimmedCovariance(random_state=0).fit(X * c),
    "graphical lasso": lambda c: TrimmedGraphicalLasso(0.05 * min(c, 1e100) ** 2, random_state=0).fit(X * c),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("c", BIG)
@pytest.mark.parametrize("name", FITS)
def test_data_of_any_size_are_fitted_or_refused_in_words(name: str, c: float) -> None:
    """The answer is that of size 1 in other units, or one clear error; never NaN, never an overflow from inside."""
    try:
        model = FITS[name](c)
    except ValueError as error:
        assert re.fullmatch(r"[Xy] holds numbers of .*, whose squares are out of range: .*", str(error))  # noqa: PT017
        assert not 1e-130 < c < 1e130
        return
    np.testing.assert_array_equal(model.inlier_mask_, FITS[name](1.0).inlier_mask_)
    for attribute in ("outlier_scores_", "outlier_probability_", "coef_", "components_", "covariance_", "scale_"):
        assert np.all(np.isfinite(getattr(model, attribute, 0.0)))


def test_one_wild_number_is_an_outlier_and_no_reason_to_refuse() -> None:
    wild = Y.copy()
    wild[0] = 1e150
    assert not TrimmedLinearRegression(random_state=0).fit(X, wild).inlier_mask_[0]
