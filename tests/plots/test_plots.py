"""What the pictures show: the data, not the pixels."""

from __future__ import annotations

import builtins
import pickle
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot

from trimlearn import CellwiseOutliers, TrimmedLinearRegression, forward_search
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.path import TrimPath
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.plots import plot_cell_map, plot_forward_search, plot_outlier_map, plot_scores, plot_trim_path


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    yield
    pyplot.close("all")


def path() -> TrimPath:
    weights = np.array([[1.0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 0]])
    coef = np.array([[1.0, 5], [2, 5], [3, 5]])
    return TrimPath(np.array([0.0, 0.25, 0.5]), np.array([9.0, 0.5, 0.4]), coef, weights, np.ones(3))


def regression() -> tuple[TrimmedLinearRegression, np.ndarray, np.ndarray]:
    """Row 0 a vertical outlier above, row 1 below, row 2 a good leverage point, row 3 a bad one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 2))
    X[2:4] = 15
    y = X @ [1.0, 2.0] + 0.1 * rng.standard_normal(100)
    y[[0, 1, 3]] += [20, -20, 20]
    return TrimmedLinearRegression().fit(X, y), X, y


def points(ax: Any) -> dict[str, np.ndarray]:
    return {dots.get_label(): np.asarray(dots.get_offsets()) for dots in ax.collections}


def test_the_trim_path_has_three_panels() -> None:
    panels = plot_trim_path(path())
    objective, coefficients, leaving = panels
    assert [panel.get_xlabel() for panel in panels] == ["share of the rows that is trimmed"] * 3
    assert [panel.get_ylabel() for panel in panels] == ["objective", "coefficient", "rows that have left"]
    curve, elbow = objective.lines
    np.testing.assert_array_equal(curve.get_xydata(), [[0, 9], [0.25, 0.5], [0.5, 0.4]])
    assert elbow.get_xdata()[0] == 0.25
    np.testing.assert_array_equal([curve.get_ydata() for curve in coefficients.lines[:-1]], [[1, 2, 3], [5, 5, 5]])
    np.testing.assert_array_equal(leaving.lines[0].get_xydata(), [[0.25, 1], [0.5, 2]])


def test_it_draws_into_the_axes_given() -> None:
    given = pyplot.subplots(3)[1]
    assert all(a is b for a, b in zip(plot_trim_path(path(), ax=given), given, strict=True))
    with pytest.raises(ValueError, match="three Axes"):
        plot_trim_path(path(), ax=given[:2])
    ax = pyplot.subplots()[1]
    assert plot_scores(regression()[0], ax=ax) is ax


def test_scores_are_sorted_and_the_cutoff_parts_them() -> None:
    model, _, _ = regression()
    ax = plot_scores(model)
    seen = points(ax)
    assert len(seen["kept"]) == model.inlier_mask_.sum() and len(seen["flagged"]) == (~model.inlier_mask_).sum() >= 3
    together = np.concatenate([seen["kept"], seen["flagged"]])
    np.testing.assert_allclose(together[np.argsort(together[:, 0]), 1], np.sort(model.outlier_scores_))
    (cutoff,) = {line.get_ydata()[0] for line in ax.lines}
    assert seen["kept"][:, 1].max() <= cutoff * (1 + 1e-9) and cutoff <= seen["flagged"][:, 1].min()
    assert ax.get_title() == f"TrimmedLinearRegression: {(~model.inlier_mask_).sum()} of 100 rows flagged"


def test_the_map_of_a_regression_tells_outliers_from_leverage() -> None:
    model, _, _ = regression()
    ax = plot_outlier_map(model)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("robust distance of the features", "residual / scale")
    vertical = [line.get_xdata()[0] for line in ax.lines if len(set(line.get_xdata())) == 1]
    assert vertical == [pytest.approx(2.716, abs=1e-3)]  # √ of the 97.5 % quantile of χ²₂
    trimmed = points(ax)["flagged"]
    (above,) = trimmed[np.isclose(trimmed[:, 1], model.outlier_scores_[0])]
    (below,) = trimmed[np.isclose(trimmed[:, 1], -model.outlier_scores_[1])]
    (bad_leverage,) = trimmed[np.isclose(trimmed[:, 1], model.outlier_scores_[3])]
    assert above[0] < 4 and below[0] < 4 and bad_leverage[0] > 10
    kept = points(ax)["kept"]
    assert np.sum(kept[:, 0] > 10) == 1 and abs(kept[kept[:, 0] > 10][0, 1]) < 3  # the good leverage point


def test_the_map_after_unpickling_wants_the_data_again() -> None:
    model, X, y = regression()
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="give X"):
        plot_outlier_map(again)
    np.testing.assert_allclose(points(plot_outlier_map(again, X, y))["kept"], points(plot_outlier_map(model))["kept"])


def test_the_map_of_a_pca() -> None:
    rng = np.random.default_rng(1)
    X = np.outer(rng.standard_normal(80), [3.0, 4.0, 0.0]) + 0.1 * rng.standard_normal((80, 3))
    X[:8] += [0.0, 0.0, 20.0]
    model = TrimmedPCA(n_components=1, random_state=0).fit(X)
    ax = plot_outlier_map(model)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance within the subspace", "distance from the subspace / scale")
    out = ~model.inlier_mask_
    expected = np.column_stack([model.score_distances_, model.outlier_scores_])
    np.testing.assert_allclose(points(ax)["flagged"], expected[out])
    np.testing.assert_allclose(points(ax)["kept"], expected[~out])


def test_no_map_for_a_covariance() -> None:
    model = TrimmedCovariance(random_state=0).fit(np.random.default_rng(0).standard_normal((50, 2)))
    with pytest.raises(ValueError, match="not for TrimmedCovariance"):
        plot_outlier_map(model)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_matplotlib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(ImportError, match="pip install"):
        plot_trim_path(path())


def test_cell_map_draws_the_columns_that_were_judged() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + rng.normal(size=(60, 1))
    X[5, 2] = 50.0
    X[:, 3] = 1.0
    model = CellwiseOutliers().fit(X)
    ax = plot_cell_map(model, rows=[4, 5, 6])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x0", "x1", "x2"]
    shown = ax.images[0].get_array()
    assert shown.shape == (3, 3) and shown[1, 2] == 1.0
    assert len(plot_cell_map(model).get_yticks()) == 40


def test_forward_search_names_its_outliers() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X.sum(axis=1) + rng.normal(size=40)
    y[3] = 30.0
    panels = plot_forward_search(forward_search(X, y))
    assert [text.get_text() for text in panels[0].texts] == ["3"]
    with pytest.raises(ValueError, match="two Axes"):
        plot_forward_search(forward_search(X, y), ax=[panels[0]])
