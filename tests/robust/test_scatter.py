"""The parts of the minimum covariance determinant, and what is judged by distances from it."""

from __future__ import annotations

import numpy as np
import pytest

from trimlearn.robust.scatter.judge import DistanceJudge, effective_freedom, judge_by_shape
from trimlearn.robust.scatter.mcd import mcd
from trimlearn.robust.scatter.starts import deterministic, normal_scores
from trimlearn.robust.scatter.steps import DeterminantProblem, Moments, Shrinkage, c_steps

RNG = np.random.default_rng(0)
A = RNG.standard_normal((200, 3)) @ RNG.standard_normal((3, 3))
A[:40] += 12.0
ONES = np.ones(200)


def test_many_starts_at_once_are_one_after_the_other() -> None:
    problem = DeterminantProblem(A, ONES, 110.0)
    parts = [Moments.of(A, (RNG.random((1, 200)) < 0.1).astype(float)) for _ in range(4)]
    together, moments = c_steps(problem, Moments.stacked(parts), 5)
    for k, start in enumerate(parts):
        alone, found = c_steps(problem, start, 5)
        assert alone[0] == pytest.approx(together[k])
        np.testing.assert_allclose(found.S[0], moments.at(k).S)
    assert np.all(np.isfinite(moments.squared_distances(A, Shrinkage(0.1))))


def test_the_start_by_normal_scores_is_one_of_the_deterministic() -> None:
    mu, S = normal_scores(A, ONES, centred=False)
    every = deterministic(A, ONES, centred=False)
    np.testing.assert_array_equal(every.mu[2], mu[0])
    np.testing.assert_array_equal(every.S[2], S[0])


def test_a_trimmed_fit_is_judged_in_units_of_the_untrimmed_covariance() -> None:
    by = DistanceJudge(A, ONES, None)
    judged = by.trimmed(mcd(A, ONES, 102.0), 102.0)
    d2 = judged.model.squared_distances(A)
    assert not judged.verdict.inliers[:40].any() and judged.verdict.inliers[40:].mean() > 0.97
    assert judged.verdict.contamination == pytest.approx(0.2, abs=0.02)
    assert np.median(d2[40:]) == pytest.approx(2.37, abs=0.6)  # that of χ²₃
    assert d2[:40].min() > judged.reach > 9.0
    refitted = by.fitted(judged.model.refitted(A, ONES, judged.verdict.inliers.astype(float), False), 102.0)
    np.testing.assert_allclose(refitted.model.covariance, np.cov(A[40:].T), rtol=0.3)
    assert np.all(refitted.p_values[:40] < 1e-6)


def test_judging_by_shape_cuts_off_the_upper_side() -> None:
    d2 = np.append(RNG.chisquare(20, 300), [1e3, 1e4])
    judged = judge_by_shape("model", d2, 200.0, np.ones(302), 20.0)
    assert judged.model == "model" and not judged.verdict.inliers[300:].any()
    np.testing.assert_array_equal(judged.verdict.inliers, d2 <= judged.reach)
    inliers = judged.verdict.inliers
    assert judged.p_values[~inliers].max() < judged.p_values[inliers].min()


def test_the_freedom_of_a_quadratic_form() -> None:
    """Of xᵀΘx for the covariance Σ: p where ΘΣ = I, and (tr)²/tr² of the eigenvalues else."""
    values = np.array([4.0, 1.0, 1.0, 0.5])
    X = RNG.standard_normal((4000, 4)) * np.sqrt(values)
    S = np.cov(X.T, bias=True)
    assert effective_freedom(np.diag(1 / values), S, 4000.0) == pytest.approx(4.0, rel=0.02)
    assert effective_freedom(np.eye(4), S, 4000.0) == pytest.approx(values.sum() ** 2 / np.sum(values**2), rel=0.05)
