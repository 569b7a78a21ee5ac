"""Folds and starts side by side give what they give one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from trimlearn import (
    TrimmedEstimator,
    TrimmedLinearRegression,
    TrimmedLinearRegressionCV,
    TrimmedLogisticRegression,
    TrimmedLogisticRegressionCV,
    trim_path,
)
from trimlearn._utils.threads import each, jobs, team, team_size

pytestmark = pytest.mark.usefixtures("quick_fits")  # how well rows are judged is not asked here

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.3 * RNG.normal(size=120)
Y[:12] += 20
T = (X[:, 0] > 0).astype(int)
T[:10] = 1 - T[:10]


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (TrimmedLogisticRegression(random_state=0), T),
        (TrimmedLogisticRegressionCV(Cs=3, cv=3, random_state=0), T),
        (TrimmedLinearRegressionCV(alphas=3, cv=3, random_state=0), Y),
        (TrimmedEstimator(LinearRegression(), random_state=0), Y),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_number_of_jobs_gives_the_same(model: Any, target: np.ndarray) -> None:
    one, two = (model.set_params(n_jobs=n).fit(X, target) and vars(model).copy() for n in (None, 2))
    np.testing.assert_array_equal(one["weights_"], two["weights_"])
    if "coef_" in one:
        np.testing.assert_allclose(one["coef_"], two["coef_"], rtol=1e-10)


def test_a_path_in_two_processes() -> None:
    grid = [0.0, 0.1, 0.2]
    one, two = (trim_path(TrimmedLinearRegression(random_state=0), X, Y, grid, n_jobs=n) for n in (None, 2))
    np.testing.assert_array_equal(one.coef, two.coef)
    assert one.elbow == two.elbow


def test_jobs_keep_their_order_and_leave_no_threads_to_one_another() -> None:
    def task(k: int) -> tuple[int, int]:
        with team():  # as a solve inside the job would
            return k, team_size() + len(each(lambda i: i, range(0)))

    assert jobs(task, zip(range(5)), n_jobs=2) == [(k, 1) for k in range(5)]


def test_what_fails_in_a_job_fails() -> None:
    def task(k: int) -> float:
        return 1 / k

    for n in (None, 2):
        with pytest.raises(ZeroDivisionError):
            jobs(task, [(1,), (0,)], n_jobs=n)
