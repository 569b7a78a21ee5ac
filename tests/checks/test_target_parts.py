"""Two groups of residuals, the scales of targets, and what many features or rows lead to."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from trimlearn.checks.error_sizes import error_sizes, local_scale
from trimlearn.checks.target_labels import judge_target_labels
from trimlearn.checks.target_learners import fold_plan
from trimlearn.checks.target_linear import FEATURES, LinearFits, linear_predictions, telling
from trimlearn.checks.target_numbers import judge_target_numbers
from trimlearn.checks.target_scale import TargetScale, choose_scale, counts_behave
from trimlearn.checks.target_task import Target


@pytest.mark.parametrize("law", ["normal", "standard_t", "laplace", "exponential"])
@pytest.mark.parametrize("n", [100, 1000])
def test_tails_of_errors_are_no_wrong_numbers(law: str, n: int) -> None:
    rng = np.random.default_rng(n)
    truth = rng.normal(size=n)
    error = rng.standard_t(3, n) if law == "standard_t" else getattr(rng, law)(size=n)
    found = judge_target_numbers(truth + 0.3 * error, truth)
    assert found.flagged.mean() <= 0.02 and found.contamination < 0.03


@pytest.mark.parametrize("far", [60.0, 300.0, 1e4])
@pytest.mark.parametrize("n", [40, 150, 500])
def test_one_number_far_out_is_wrong(n: int, far: float) -> None:
    rng = np.random.default_rng(n)
    truth = 2 * rng.normal(size=n)
    y = truth + 0.5 * rng.standard_t(4, n)
    y[4] = far
    found = judge_target_numbers(y, truth)
    assert found.probability[4] > 0.7 and found.flagged.sum() <= 3


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_wrong_numbers_are_found_at_any_level(share: float) -> None:
    rng = np.random.default_rng(0)
    truth, wrong = rng.normal(size=500), np.arange(500) < 500 * share
    y = truth + 0.1 * rng.normal(size=500)
    y[wrong] = rng.permutation(truth)[wrong] + np.where(truth[wrong] > 0, -2, 2)
    found = judge_target_numbers(y, truth)
    assert found.flagged[wrong].mean() > 0.85 and found.flagged[~wrong].mean() < 0.02
    assert abs(found.contamination - share) < 0.05


def test_many_zeros_are_no_reason_to_call_the_others_wrong() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(500) < 0.8, 0.0, rng.exponential(size=500))
    few = y.copy()
    few[np.flatnonzero(y)[5:]] = 0.0
    assert judge_target_numbers(y, np.zeros(500)).flagged.mean() < 0.02
    assert not judge_target_numbers(few, np.zeros(500)).flagged.any()


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    y = truth + 0.2 * rng.normal(size=200)
    y[:15] += 4
    here, there = judge_target_numbers(y, truth), judge_target_numbers(1e6 * y + 5e6, 1e6 * truth + 5e6)
    assert np.allclose(here.probability, there.probability, atol=1e-3)


def test_even_errors_have_one_size() -> None:
    rng = np.random.default_rng(1)
    size = local_scale(rng.normal(size=2000), rng.normal(size=2000), 0.0)
    assert size.max() / size.min() < 1.25


def test_errors_that_are_large_for_one_kind_of_row_are_no_wrong_numbers() -> None:
    rng = np.random.default_rng(0)
    n = 600
    kind, truth = rng.choice([0.3, 6.0], n, p=[0.85, 0.15]), 3 * rng.normal(size=n)
    X = np.column_stack([kind > 1, rng.normal(size=n)]).astype(np.float64)
    y = truth + kind * rng.normal(size=n)
    assert judge_target_numbers(y, truth, X=X).flagged.mean() < 0.01 < judge_target_numbers(y, truth).flagged.mean()
    wrong = np.flatnonzero(kind < 1)[:40]
    y[wrong] += rng.choice([-8.0, 8.0], 40)
    found = judge_target_numbers(y, truth, X=X)
    assert found.flagged[wrong].mean() > 0.9 and np.delete(found.flagged, wrong).mean() < 0.02


def test_features_that_tell_nothing_of_the_size_of_errors_do_not_change_it() -> None:
    rng = np.random.default_rng(2)
    X, r = rng.normal(size=(400, 3)), rng.normal(size=400)
    assert np.array_equal(error_sizes(np.zeros(400), r, 0.0, X), local_scale(np.zeros(400), r, 0.0))


def fitted(*columns: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A line through these columns."""
    X = np.column_stack([np.ones(len(columns[0])), *columns])
    return lambda z: np.asarray(X @ np.linalg.lstsq(X, z, rcond=None)[0])


def numbers_of(y: np.ndarray) -> Target:
    nobody = np.zeros(len(y), dtype=bool)
    return Target("y", "regression", np.arange(len(y)), y, (), nobody, nobody)


def test_the_log_is_chosen_where_errors_are_ratios_and_counts_where_they_behave() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    line = fitted(x)

    def link(y: np.ndarray) -> str:
        return choose_scale(numbers_of(y), [line])[1].link

    assert link(np.exp(1 + x + 0.3 * rng.normal(size=400))) == "log"
    assert link(20 + x + 0.3 * rng.normal(size=400)) == "identity" and link(x) == "identity"
    assert link(np.clip(np.round(np.exp(1 + x)), 1, 6)) == "identity"  # grades are no amounts
    assert counts_behave(rng.poisson(np.exp(1 + 0.5 * x)).astype(float), line)
    assert not counts_behave(np.round(5 + x), line)


def test_features_are_taken_as_they_are_where_sums_of_them_explain_the_target() -> None:
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(size=(400, 2)))
    lines = [fitted(*np.log(x.T)), fitted(*x.T)]
    total, product = 5 + 2 * x[:, 0] + x[:, 1], 5 * x[:, 0] * x[:, 1] ** 0.5
    assert choose_scale(numbers_of(total + 0.3 * rng.normal(size=400)), lines)[2] == 1
    scale, chosen = choose_scale(numbers_of(product * np.exp(0.1 * rng.normal(size=400))), lines)[1:]
    assert (scale.link, chosen) == ("log", 0)


def test_the_next_grade_is_as_good_as_the_one_expected() -> None:
    rng = np.random.default_rng(0)
    grades = rng.integers(1, 7, 400).astype(float)
    y = np.clip(grades + rng.choice([-1, 0, 1], 400, p=[0.1, 0.8, 0.1]), 1, 6)
    y[:3] = 55.0
    near = grades + 0.02 * rng.normal(size=400)
    assert judge_target_numbers(y, near).flagged.mean() > 0.1  # of numbers that may be any, the next one is far
    assert np.flatnonzero(judge_target_numbers(y, near, rounding=0.5).flagged).tolist() == [0, 1, 2]


def test_a_trimmed_model_that_believes_nobody_still_predicts() -> None:
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    nobody = LinearFits(None, SimpleNamespace(weights_=np.zeros(40)), np.arange(40), np.zeros(40, dtype=bool), ())
    plain, trimmed = linear_predictions(X, y, "regression", nobody, 0)
    assert np.allclose(plain, y, atol=1e-3) and np.array_equal(plain, trimmed)


@pytest.mark.parametrize("link", ["identity", "log", "root"])
def test_scales_there_and_back(link: str) -> None:
    y = np.array([1.0, 2.0, 5.0, 9.0, 40.0])
    scale = TargetScale.of(link, y)  # type: ignore[arg-type]
    assert np.allclose(scale.back(scale.to(y)), y)


def test_labels_that_nothing_explains_are_not_flagged() -> None:
    rng = np.random.default_rng(0)
    y, z = rng.integers(2, size=300), np.log(rng.dirichlet([5, 5], 300))
    found = judge_target_labels([z], y)
    assert not found.flagged.any() and any("chance" in caveat for caveat in found.caveats)


def test_many_rows_or_classes_cost_fewer_fits() -> None:
    assert fold_plan(300, 300 * 30) == (3, 5) and fold_plan(300, 10**7) == (1, 5)
    assert fold_plan(100_000, 1) == (1, 2)


def test_the_features_that_tell_most_are_kept() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, FEATURES + 50))
    no = np.zeros(300, dtype=bool)
    target = Target("y", "regression", np.arange(300), X[:, 77] + X[:, 240], (), no, no)
    kept = telling(X, target)
    assert len(kept) == FEATURES and {77, 240} <= set(kept)


def test_many_rows_tell_the_size_of_errors_as_a_forest_does() -> None:
    rng = np.random.default_rng(4)
    X, n = rng.normal(size=(4000, 3)), 4000
    r = np.exp(X[:, 0]) * rng.normal(size=n)
    size = error_sizes(np.zeros(n), r, 0.0, X)
    assert np.corrcoef(np.log(size), X[:, 0])[0, 1] > 0.95
    even = rng.normal(size=n)
    assert np.array_equal(error_sizes(np.zeros(n), even, 0.0, X), local_scale(np.zeros(n), even, 0.0))
