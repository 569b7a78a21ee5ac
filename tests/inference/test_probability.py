"""The probability that a row is wrong: monotone, calibrated, and lists made of it; the same for every estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import ndtr

from trimlearn import TrimmedCovariance, TrimmedGLM, TrimmedGraphicalLasso, TrimmedLinearRegression, TrimmedPCA
from trimlearn.inference.precision import leverages
from trimlearn.inference.probability import BEGIN, PRIOR, REACH, false_discovery_rate, flag, row_probabilities

PROBABILITIES = arrays(np.float64, st.integers(0, 12), elements=st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.99, 1.0]))


def p_values(rng: np.random.Generator, n: int, wrong: int, low: float = 3.0, high: float = 5.0) -> np.ndarray:
    z = rng.normal(size=n)
    z[:wrong] += rng.uniform(low, high, wrong)
    return np.asarray(2.0 * ndtr(-np.abs(z)))


# ---- the probability ----


def test_the_shares_are_the_most_likely_ones() -> None:
    """A naive twin: the mixture's likelihood, the prior's rows among them, by a general optimiser."""
    p = p_values(np.random.default_rng(1), 300, 40)
    t = np.round(-np.log(p) * 64) / 64

    def densities(t: np.ndarray) -> np.ndarray:
        late = [np.where(t >= a, np.exp(-(t - a) / REACH) / REACH, 0.0) for a in BEGIN]
        return np.stack([np.exp(-t), *late])

    def loss(free: np.ndarray) -> float:
        w = np.exp(free - free.max()) / np.exp(free - free.max()).sum()
        return -float(np.log(w @ densities(t)).sum() + PRIOR * np.log(w[0]))

    free = minimize(loss, np.zeros(6), method="BFGS").x
    w = np.exp(free - free.max()) / np.exp(free - free.max()).sum()
    joint = w[:, None] * densities(-np.log(p))
    np.testing.assert_allclose(row_probabilities(p), 1 - joint[0] / joint.sum(axis=0), atol=0.02)


@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1)))
def test_monotone_and_blind_to_order(p: np.ndarray) -> None:
    found = row_probabilities(p)
    assert np.all((found >= 0) & (found <= 1))
    order = np.argsort(-p, kind="stable")
    assert np.all(np.diff(found[order]) >= -1e-12)
    np.testing.assert_allclose(row_probabilities(p[order]), found[order], atol=1e-9)


def test_a_weight_is_a_repetition() -> None:
    rng = np.random.default_rng(0)
    p, s = p_values(rng, 60, 8), rng.integers(0, 4, 60)
    repeated = row_probabilities(np.repeat(p, s))
    np.testing.assert_allclose(np.repeat(row_probabilities(p, s), s), repeated, atol=1e-12)


@pytest.mark.parametrize("n", [50, 200, 1000, 5000])
def test_it_is_calibrated(n: int) -> None:
    """Of rows given 0.7 to 0.9, 70 to 90 % are wrong; of those given 0.9 to 0.99, 90 to 99 %: give or take chance."""
    rng, found = np.random.default_rng(n), []
    for wrong, low, high in ((0, 3, 5), (n // 50, 3, 5), (n // 10, 3, 5), (n // 10, 8, 50), (n // 5, 3, 6)):
        for _ in range(max(4, 40_000 // n // 5)):
            found.append((row_probabilities(p_values(rng, n, wrong, low, high)), np.arange(n) < wrong))
    p, wrong_rows = (np.concatenate(parts) for parts in zip(*found, strict=True))
    for low, high in ((0.7, 0.9), (0.9, 0.99)):
        chosen = wrong_rows[(p >= low) & (p < high)]
        chance = 3 * 0.5 / np.sqrt(len(chosen))
        assert low - 0.05 - chance <= chosen.mean() <= high + 0.05 + chance
    assert wrong_rows[p >= 0.99].mean() >= 0.98


def test_where_nothing_is_wrong_the_list_is_empty() -> None:
    rng = np.random.default_rng(0)
    for n in (30, 100, 1000):
        empty = [not flag(row_probabilities(p_values(rng, n, 0))).any() for _ in range(100)]
        assert np.mean(empty) >= 0.9


def test_one_row_far_out_is_enough() -> None:
    p = np.append(np.linspace(0.01, 1, 100), [1e-9, 0.0])
    assert np.all(row_probabilities(p)[-2:] > 0.99)
    assert row_probabilities(np.linspace(0.01, 1, 100)).max() < 0.2


@pytest.mark.parametrize("bad", [np.array([0.5, np.nan]), np.array([1.5]), np.array([-0.1]), np.zeros((2, 2))])
def test_what_is_no_p_value_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="p_values"):
        row_probabilities(bad)


# ---- lists ----


@given(PROBABILITIES, st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.9]))
def test_the_list_is_the_longest_there_is(p: np.ndarray, fdr: float) -> None:
    """Naively: of all lists "everyone with at least this probability", the longest with a mean of 1 − p up to fdr."""
    lists = [p >= level for level in np.unique(p) if np.mean(1 - p[p >= level]) <= fdr + 1e-9]
    longest = max(lists, key=np.sum, default=np.zeros(p.shape, dtype=bool))
    found = flag(p, fdr)
    np.testing.assert_array_equal(found, longest)
    assert false_discovery_rate(p, found) <= fdr + 1e-9


def test_bad_arguments_of_lists() -> None:
    for fdr in (-0.1, 1.0, True, np.nan):
        with pytest.raises(ValueError, match="fdr"):
            flag(np.array([0.5]), fdr)
    with pytest.raises(ValueError, match="probability"):
        flag(np.array([1.5]), 0.1)
    with pytest.raises(ValueError, match="flagged"):
        false_discovery_rate(np.array([0.5, 0.1]), np.array([True]))
    assert false_discovery_rate(np.array([0.5]), np.array([False])) == 0.0


def test_leverages_are_the_diagonal_of_the_hat_matrix() -> None:
    rng = np.random.default_rng(0)
    A, c = rng.normal(size=(20, 3)) * [1e6, 1, 1e-6], rng.integers(0, 3, 20).astype(float)
    naive = [a @ np.linalg.inv((A * c[:, None]).T @ A) @ a for a in A]
    np.testing.assert_allclose(leverages(A, c), naive, rtol=1e-6)


# ---- estimators ----


def rows(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    X = rng.normal(size=(120, 4)) * [5, 4, 1, 1]
    X[:10, 2:] += 9
    return (X,)


def table(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    X = rng.normal(size=(120, 3))
    y = X.sum(axis=1) + rng.normal(size=120)
    y[:10] += 12
    return X, y


def counts(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    X = rng.normal(size=(120, 2))
    y = rng.poisson(np.exp(1 + 0.5 * X.sum(axis=1))).astype(float)
    y[:10] += 40
    return X, y


ESTIMATORS: dict[str, tuple[Callable[[], Any], Callable[[np.random.Generator], tuple[np.ndarray, ...]]]] = {
    "linear": (TrimmedLinearRegression, table),
    "linear, given": (lambda: TrimmedLinearRegression(contamination=0.3, random_state=0), table),
    "huber": (lambda: TrimmedGLM("huber", random_state=0), table),
    "poisson": (TrimmedGLM, counts),
    "pca": (lambda: TrimmedPCA(2, random_state=0), rows),
    "covariance": (lambda: TrimmedCovariance(random_state=0), rows),
    "covariance, raw": (lambda: TrimmedCovariance(reweight=False, random_state=0), rows),
    "covariance, shrunk": (lambda: TrimmedCovariance(shrinkage=0.1, random_state=0), rows),
    "graphical lasso": (lambda: TrimmedGraphicalLasso(alpha=0.05, random_state=0), rows),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_says_how_sure_it_is(name: str) -> None:
    make, draw = ESTIMATORS[name]
    model = make().fit(*draw(np.random.default_rng(0)))
    p = model.outlier_probability_
    assert p.shape == (120,)
    assert p[:10].min() > 0.95
    assert np.mean(p[10:]) < 0.05
    listed = model.flag(fdr=0.1)
    assert set(range(10)) <= set(listed.tolist())
    assert len(listed) <= 12
    assert np.all(np.diff(p[listed]) <= 0)  # worst first
    assert model.flag(fdr=0.0).size <= listed.size
    assert model.false_discovery_rate_ == pytest.approx(np.mean(1 - p[~model.inlier_mask_]))
    shown = model.outlier_table()
    np.testing.assert_array_equal(np.asarray(shown["probability"]), p[np.asarray(shown["row"])])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_count_rows_here_too(name: str) -> None:
    make, draw = ESTIMATORS[name]
    data = draw(np.random.default_rng(0))
    s = np.where(np.arange(120) < 5, 0, 1)
    model = make().fit(*data, sample_weight=s)
    assert np.all((model.outlier_probability_ >= 0) & (model.outlier_probability_ <= 1))
    assert model.outlier_probability_[:10].min() > 0.9  # also of rows that were not fitted to


def test_unseen_rows_have_no_probability() -> None:
    X, y = table(np.random.default_rng(0))
    model = TrimmedLinearRegression(random_state=0).fit(X, y)
    with pytest.raises((KeyError, ValueError)):
        model.outlier_table(X[:5], y[:5])["probability"]
