"""trim_path: warm, robust, and right about who leaves when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from trimlearn import TrimmedLinearRegression, TrimmedLogisticRegression
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.meta.wrapper import TrimmedEstimator
from trimlearn.estimators.path import TrimPath, trim_path
from trimlearn.estimators.pca import TrimmedPCA

BAD = 30


def line(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """A fifth of the rows shifted by 50 to 80 standard deviations, the first row most."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(n)
    y[:BAD] += np.linspace(8, 5, BAD)
    return X, y


def leverage() -> tuple[np.ndarray, np.ndarray]:
    """Thirty bad leverage points among a hundred rows, on a line of their own that least squares follows."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 1))
    y = X[:, 0] + 0.1 * rng.standard_normal(100)
    X[:30] = 20 + 0.1 * rng.standard_normal((30, 1))
    y[:30] = -20 + 0.1 * rng.standard_normal(30)
    return X, y


def made_up(weights: Any, objective: Any = (3.0, 2.0, 1.0)) -> TrimPath:
    m = len(weights)
    nothing = np.zeros((m, 0))
    return TrimPath(np.linspace(0, 0.4, m), np.array(objective), nothing, np.array(weights), np.full(m, np.nan))


def test_leaves_at_is_where_a_row_is_out_for_good() -> None:
    path = made_up([[1.0, 1.0, 0.0, 0.0], [1.0, 0.5, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    assert path.leaves_at.tolist() == [np.inf, 0.4, 0.0, 0.4]  # the last row came back once


@pytest.mark.parametrize(
    ("objective", "elbow"),
    [((9.0, 0.1, 0.0), 0.2), ((1.0, 1.0, 1.0), 0.0), ((2.0, -1.0, -1.1), 0.2)],
    ids=["a drop", "flat", "a log-determinant"],
)
def test_the_elbow(objective: tuple[float, ...], elbow: float) -> None:
    assert made_up(np.ones((3, 1)), objective).elbow == pytest.approx(elbow)


def test_the_elbow_is_what_auto_says_where_it_was_asked() -> None:
    path = replace(made_up(np.ones((5, 1)), np.linspace(9, 1, 5)), auto=0.22)
    assert path.elbow == 0.2
    assert replace(path, auto=0.9).elbow == 0.4 and replace(path, auto=0.0).elbow == 0


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2, 0.3, 0.4])
@pytest.mark.parametrize("kind", ["shifted", "leverage"])
def test_the_elbow_finds_the_share_of_bad_rows(share: float, kind: str) -> None:
    rng = np.random.default_rng(int(100 * share))
    X = rng.standard_normal((200, 3))
    y, bad = X @ [1.0, 2.0, 3.0] + rng.standard_normal(200), slice(0, int(200 * share))
    X[bad] += 10.0 * (kind == "leverage")
    y[bad] += 10.0 * (kind == "shifted")
    path = trim_path(TrimmedLinearRegression(random_state=0), X, y)
    assert path.elbow == pytest.approx(share, abs=0.05)
    assert path.elbow == pytest.approx(TrimmedLinearRegression(random_state=0).fit(X, y).contamination_, abs=0.0126)


# Minutes of calls recorded as their number, six years on end (telef), may be one side of a step; the rows that
# hawkins was made with, a model of their own: that is said.
RULE = pytest.mark.filterwarnings("ignore:.* seem to follow a rule of their own")


@RULE
@pytest.mark.filterwarnings("ignore:It is in doubt which rows are wrong")  # of stackloss and wood
@pytest.mark.parametrize("name", ["hbk", "stackloss", "starsCYG", "wood", "salinity", "coleman", "phosphor", "telef"])
def test_the_elbow_and_auto_agree_on_the_classics(name: str, data_home: Path) -> None:
    table = np.genfromtxt(data_home / "classic_robust" / f"{name}.csv", delimiter=",", skip_header=1)
    table = table[:, ~np.isnan(table).any(axis=0)]
    X, y = table[:, :-1], table[:, -1]
    path = trim_path(TrimmedLinearRegression(random_state=0), X, y)
    auto = TrimmedLinearRegression(random_state=0).fit(X, y).contamination_
    assert path.auto == auto and abs(path.elbow - auto) <= 0.05


@RULE
@pytest.mark.parametrize("name", ["hawkins", "hospital"])
def test_the_elbow_and_auto_agree_on_tables(name: str, data_home: Path) -> None:
    table = np.genfromtxt(data_home / "regression" / f"{name}.csv", delimiter=",", skip_header=1)
    path = trim_path(TrimmedLinearRegression(random_state=0), table[:, :-1], table[:, -1])
    model = TrimmedLinearRegression(random_state=0).fit(table[:, :-1], table[:, -1])
    assert abs(path.elbow - model.contamination_) <= 0.05


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (TrimmedPCA(n_components=1, random_state=0), False),
        (TrimmedCovariance(random_state=0), False),
        (TrimmedLogisticRegression(random_state=0), True),
    ],
)
def test_the_elbow_of_other_estimators_is_their_auto(model: Any, labels: bool) -> None:
    rng = np.random.default_rng(5)
    X = np.outer(rng.standard_normal(150), [3.0, 2.0, 1.0]) + 0.3 * rng.standard_normal((150, 3))
    X[:20] += [0.0, 9.0, -9.0] if not labels else 0.0
    y = (X[:, 0] > 0).astype(int)
    y[:20] = 1 - y[:20]
    path = trim_path(model, X, y if labels else None, grid=np.linspace(0, 0.4, 17))
    assert path.auto == clone(model).fit(X, y if labels else None).contamination_
    assert path.elbow == pytest.approx(20 / 150, abs=0.05)


def test_regression_loses_its_outliers_first_and_the_worst_of_them_first() -> None:
    X, y = line()
    path = trim_path(TrimmedLinearRegression(random_state=0), X, y)
    assert path.contamination.shape == (19,) and path.coef.shape == (19, 2) and path.weights.shape == (19, 150)
    assert path.elbow == 0.2
    assert path.leaves_at[:BAD].max() <= 0.2 < path.leaves_at[BAD:].min()
    assert path.leaves_at[:7].max() < path.leaves_at[23:BAD].min()
    np.testing.assert_allclose(path.coef[path.contamination >= 0.2], [[1.0, -2.0]] * 11, atol=0.05)
    np.testing.assert_allclose(path.weights.sum(axis=1), 150 * (1 - path.contamination), rtol=1e-9)
    assert path.scale[8] == pytest.approx(0.1, rel=0.2) and path.scale[0] > 0.5


def test_the_objective_falls_along_the_path() -> None:
    for X, y in (line(), leverage()):
        path = trim_path(TrimmedLinearRegression(random_state=0), X, y)
        assert np.all(np.diff(path.objective) <= 1e-9 * path.objective[0])


def test_bad_leverage_points_do_not_capture_the_path() -> None:
    X, y = leverage()
    path = trim_path(TrimmedLinearRegression(random_state=0), X, y, grid=[0.0, 0.1, 0.2, 0.3, 0.4])
    assert path.coef[0, 0] < -0.8  # the untrimmed fit follows them
    np.testing.assert_allclose(path.coef[3:, 0], 1.0, atol=0.1)
    assert np.all(path.leaves_at[:30] <= 0.3)


def test_each_point_is_as_good_as_a_fit_from_scratch() -> None:
    X, y = line()
    path = trim_path(TrimmedLinearRegression(random_state=0), X, y, grid=[0.1, 0.2, 0.3])
    for c, objective in zip(path.contamination, path.objective, strict=True):
        cold = TrimmedLinearRegression(contamination=float(c), reweight=False, random_state=0).fit(X, y)
        assert objective <= cold.objective_ * (1 + 1e-6)


def test_pca_and_covariance_need_no_y() -> None:
    rng = np.random.default_rng(2)
    X = np.outer(rng.standard_normal(120), [3.0, 4.0, 0.0]) + 0.1 * rng.standard_normal((120, 3))
    X[:12] += [0.0, 0.0, 30.0]
    pca = trim_path(TrimmedPCA(n_components=1, random_state=0), X, grid=[0.0, 0.05, 0.1, 0.15, 0.2])
    assert pca.elbow == 0.1 and np.all(pca.leaves_at[:12] <= 0.1)
    np.testing.assert_allclose(pca.coef[2:], [[0.6, 0.8, 0.0]] * 3, atol=0.02)
    covariance = trim_path(TrimmedCovariance(random_state=0), X, grid=[0.0, 0.05, 0.1, 0.15, 0.2])
    assert covariance.coef.shape == (5, 9) and np.all(covariance.leaves_at[:12] <= 0.1)
    assert np.all(np.isnan(covariance.scale))


def test_a_wrapped_model_has_the_coefficients_of_what_it_wraps() -> None:
    X, y = line()
    path = trim_path(TrimmedEstimator(Ridge(alpha=1e-6), random_state=0), X, y, grid=[0.0, 0.2, 0.3])
    np.testing.assert_allclose(path.coef[1:], [[1.0, -2.0]] * 2, atol=0.05)
    assert np.all(path.leaves_at[:BAD] <= 0.2)


def test_sample_weight_zero_is_removal() -> None:
    X, y = line()
    s = np.ones(150)
    s[:BAD] = 0
    path = trim_path(TrimmedLinearRegression(random_state=0), X, y, grid=[0.0, 0.1], sample_weight=s)
    without = trim_path(TrimmedLinearRegression(random_state=0), X[BAD:], y[BAD:], grid=[0.0, 0.1])
    np.testing.assert_allclose(path.coef, without.coef, rtol=1e-5)
    np.testing.assert_allclose(path.weights[:, BAD:], without.weights, atol=1e-9)


def test_the_estimator_given_is_left_alone() -> None:
    X, y = line()
    estimator = TrimmedLinearRegression(contamination=0.1, random_state=0)
    trim_path(estimator, X, y, grid=[0.2])
    assert estimator.contamination == 0.1 and estimator.reweight and not hasattr(estimator, "weights_")


@pytest.mark.parametrize("grid", [[], [0.1, 1.0], [-0.1], [np.nan]])
def test_a_grid_that_cannot_be(grid: list[float]) -> None:
    with pytest.raises(ValueError, match="grid must hold shares"):
        trim_path(TrimmedLinearRegression(random_state=0), *line(), grid=grid)
