"""The forward search beside a naive one, its envelopes by simulation, and its outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from trimlearn import forward_search


def data(n: int = 60, bad: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=n)
    y[:bad] += 10
    return X, y


def test_every_fit_is_least_squares_on_its_subset() -> None:
    X, y = data(bad=3)
    search = forward_search(X, y)
    A = np.column_stack([np.ones(len(X)), X])
    inside = None
    for k, m in enumerate(search.sizes):
        if inside is not None:
            x, *_ = np.linalg.lstsq(A[inside], y[inside], rcond=None)
            np.testing.assert_allclose(search.coef[k], x, rtol=1e-7, atol=1e-9)
            r = y - A @ x
            np.testing.assert_allclose(search.residuals[k] * search.scale[-1], r, rtol=1e-6, atol=1e-8)
            s = np.sqrt(r[inside] @ r[inside] / (m - 3))
            outside = np.setdiff1d(np.arange(len(y)), inside)
            h = np.einsum("ij,jk,ik->i", A, np.linalg.inv(A[inside].T @ A[inside]), A)
            if len(outside):
                least = np.min(np.abs(r[outside]) / (s * np.sqrt(1 + h[outside])))
                assert search.min_deletion_residual[k] == pytest.approx(least, rel=1e-6)
        inside = np.argsort(np.abs(search.residuals[k]))[: m + 1]
    assert search.sizes[-1] == len(y) and np.isnan(search.min_deletion_residual[-1])


def test_outliers_come_in_last_and_are_named() -> None:
    X, y = data(bad=5)
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(60)])
    search = forward_search(frame, y)
    assert sorted(search.outliers.tolist()) == [0, 1, 2, 3, 4]
    assert np.all(search.entry[:5] > 55)
    worst = search.table().head(5)
    assert set(worst["name"]) == {f"row {i}" for i in range(5)} and worst["outlier"].all()


@pytest.mark.parametrize("n", [20, 50])
def test_clean_samples_have_no_outliers(n: int) -> None:
    assert np.mean([len(forward_search(*data(n, seed=seed)).outliers) > 0 for seed in range(40)]) <= 0.05


def test_the_envelopes_hold_what_they_promise() -> None:
    searches = [forward_search(*data(80, seed=seed)) for seed in range(60)]
    for level in (0.5, 0.99):
        below = [s.min_deletion_residual[-10:-1] < s.envelope(level)[-10:-1] for s in searches]
        assert np.mean(below) == pytest.approx(level, abs=0.1)


def test_rows_without_a_target() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    X[:6] += 7
    search = forward_search(X)
    assert sorted(search.outliers.tolist()) == list(range(6))
    mean = X[np.argsort(search.entry)].mean(axis=0)
    np.testing.assert_allclose(search.coef[-1], mean, rtol=1e-9)
    d = np.sqrt(np.einsum("ij,jk,ik->i", X - mean, np.linalg.inv(np.cov(X.T)), X - mean))
    np.testing.assert_allclose(search.residuals[-1], d, rtol=1e-8)


def test_offsets_scales_dummies_and_exact_fits() -> None:
    X, y = data(bad=5)
    far = forward_search(X * 1e-3 + 1e4, y * 1e6 - 1e8)
    assert sorted(far.outliers.tolist()) == [0, 1, 2, 3, 4]
    dummies = np.column_stack([X, np.arange(60) % 3 == 0, np.arange(60) % 3 == 1]).astype(float)
    assert sorted(forward_search(dummies, y).outliers.tolist()) == [0, 1, 2, 3, 4]
    exact = X @ [1.0, 2.0]
    exact[7] = 30.0
    assert forward_search(X, exact).outliers.tolist() == [7]


@pytest.mark.parametrize(
    ("X", "y", "what"), [(np.ones((3, 1)), np.ones(3), "minimum of 4"), (np.eye(4), np.ones(4), "too few")]
)
def test_too_few_rows_are_refused(X: Any, y: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        forward_search(X, y)


def test_a_level_is_a_probability() -> None:
    with pytest.raises(ValueError, match="level must lie"):
        forward_search(*data()).envelope(1.0)


def test_what_cannot_be_searched_is_refused() -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises(ValueError, match="all rows of X are the same"):
        forward_search(np.zeros((30, 2)))
    with pytest.raises(ValueError, match="y holds numbers of about"):
        forward_search(X, 1e200 * X[:, 0])
    with pytest.raises(ValueError, match="level must lie"):
        forward_search(X, X[:, 0] + X[:, 1] ** 2).envelope("a")  # type: ignore[arg-type]


def test_many_copies_are_told() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=60)
    X[30:], y[30:] = X[:30], y[:30]
    with pytest.warns(UserWarning, match="50% of the rows are copies"):
        forward_search(X, y)
