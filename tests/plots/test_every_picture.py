"""Every picture of every kind of model: it is drawn, or says which others there are."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from trimlearn import (
    CellwiseOutliers,
    Problem,
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedGraphicalLasso,
    TrimmedLinearRegression,
    TrimmedLinearRegressionCV,
    TrimmedLogisticRegression,
    TrimmedPCA,
    label_errors,
    plots,
    solve,
    trim_path,
)
from trimlearn.geometry import TrimmedHomography, TrimmedPanorama
from trimlearn.losses import LeastSquares
from trimlearn.plots.subject import PICTURES
from trimlearn.weights import CappedSimplex

pytestmark = pytest.mark.usefixtures("quick_fits")  # how well rows are judged is not asked here


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    yield
    pyplot.close("all")


def rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4)) + rng.standard_normal((n, 1))
    y = X @ [1.0, 2.0, 0.0, 1.0] + 0.3 * rng.standard_normal(n)
    X[0] += 15.0
    y[:3] += 20.0
    return X, y


def labels() -> np.ndarray:
    y = (rows()[1] > 0).astype(int)
    y[[5, 9]] = 1 - y[[5, 9]]
    return y


def matches() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    src, dst = rng.uniform(0, 500, (2, 60, 2))
    dst[:40] = src[:40] + 10.0 + 0.5 * rng.standard_normal((40, 2))
    return src, dst


@cache
def fitted(name: str) -> Any:
    X, y = rows()
    models: dict[str, Any] = {
        "linear": lambda: TrimmedLinearRegression(random_state=0).fit(X, y),
        "cv": lambda: TrimmedLinearRegressionCV(alphas=[0.1, 1.0], cv=2, random_state=0).fit(X, y),
        "glm": lambda: TrimmedGLM("poisson", random_state=0).fit(X, np.round(np.exp(np.clip(y, -3, 3)))),
        "logistic": lambda: TrimmedLogisticRegression(random_state=0).fit(X + 6 * (y > 0)[:, None], labels()),
        "pca": lambda: TrimmedPCA(2, random_state=0).fit(X),
        "covariance": lambda: TrimmedCovariance(random_state=0, n_starts=20).fit(X),
        "graphical lasso": lambda: TrimmedGraphicalLasso(random_state=0).fit(X),
        "tree": lambda: TrimmedEstimator(DecisionTreeRegressor(max_depth=3), random_state=0).fit(X, y),
        "label tree": lambda: TrimmedEstimator(DecisionTreeClassifier(max_depth=2), random_state=0).fit(X, labels()),
        "cells": lambda: CellwiseOutliers().fit(X),
        "label errors": lambda: label_errors(labels(), np.full((60, 2), 0.5)),
        "homography": lambda: TrimmedHomography(max_samples=2000).fit(*matches()),
        "panorama": lambda: TrimmedPanorama(model="homography").fit([(0, 1, *matches())], [(511, 511), (511, 511)]),
        "pipeline": lambda: make_pipeline(StandardScaler(), TrimmedLinearRegression(random_state=0)).fit(X, y),
    }
    with warnings.catch_warnings():  # of few rows: it is the pictures that are asked here
        warnings.simplefilter("ignore")
        return models[name]()


MODELS = {
    "linear": "scores outlier_map residuals qq distances gallery coefficients convergence",
    "cv": "scores outlier_map residuals qq distances gallery coefficients convergence",
    "glm": "scores outlier_map residuals qq distances gallery coefficients convergence",
    "logistic": "scores noise_matrix gallery coefficients convergence",
    "pca": "scores outlier_map qq biplot gallery convergence",
    "covariance": "scores qq distances gallery convergence",
    "graphical lasso": "scores qq distances gallery convergence",
    "tree": "scores outlier_map residuals qq distances gallery convergence",
    "label tree": "scores noise_matrix gallery convergence",
    "cells": "scores cell_map",
    "label errors": "scores noise_matrix",
    "homography": "scores qq matches convergence",
    "panorama": "scores qq matches convergence",
}


def test_every_picture_is_known() -> None:
    assert set(plots.__all__) - set(PICTURES) == {"plot_forward_search"}


@pytest.mark.parametrize("name", MODELS)
def test_pictures_that_apply_are_drawn_and_others_are_named(name: str) -> None:
    model, drawn = fitted(name), set(MODELS[name].split())
    for picture in sorted(set(PICTURES) - {"plot_trim_path"}):
        draw = getattr(plots, picture)
        if picture.removeprefix("plot_") in drawn:
            ax = draw(model)
            ax.figure.draw_without_rendering()  # nothing that a renderer stumbles over
            assert ax.get_title(), picture
            pyplot.close("all")
        elif (name, picture) != ("label errors", "plot_gallery"):
            with pytest.raises(ValueError, match=r"is for .*, not for .*, which has plot_scores"):
                draw(model)


def test_one_sentence_for_what_is_not_ours() -> None:
    X, y = rows()
    for picture in PICTURES:
        with pytest.raises(TypeError, match="takes a fitted estimator of trimlearn"):
            getattr(plots, picture)(LinearRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="not fitted"):
        plots.plot_scores(TrimmedLinearRegression())
    with pytest.raises(TypeError, match="what forward_search returned"):
        plots.plot_forward_search(LinearRegression())


def test_signatures_are_alike() -> None:
    for name in PICTURES:
        _, X, y, *rest = inspect.signature(getattr(plots, name)).parameters.values()
        assert (X.name, X.default, y.name, y.default) == ("X", None, "y", None), name
        assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in rest)
        assert rest[-1].name == "ax" and rest[-1].default is None
        assert name == "plot_convergence" or "label" in [parameter.name for parameter in rest]  # it has nothing to name


def test_axes_go_in_and_come_out() -> None:
    ax = pyplot.subplots()[1]
    for picture in ("scores", "outlier_map", "residuals", "qq", "distances", "coefficients", "convergence"):
        assert getattr(plots, f"plot_{picture}")(fitted("linear"), ax=ax) is ax
    with pytest.raises(TypeError, match="one Axes"):
        plots.plot_scores(fitted("linear"), ax=[ax])


def test_a_pipeline_is_drawn_as_its_last_step_sees_it() -> None:
    X, y = rows()
    plain, inside = fitted("linear"), fitted("pipeline")
    a, b = plots.plot_residuals(plain), plots.plot_residuals(inside, X, y)
    for kept, other in zip(a.collections, b.collections, strict=True):
        np.testing.assert_allclose(kept.get_offsets(), other.get_offsets(), atol=1e-6)
    assert [t.get_text() for t in plots.plot_coefficients(inside).get_yticklabels()] == ["x0", "x1", "x2", "x3"]
    assert [t.get_text() for t in plots.plot_coefficients(inside, label=["x2"]).get_yticklabels()] == ["x2"]


def test_other_rows_are_judged_as_new_ones() -> None:
    ax = plots.plot_scores(fitted("linear"), rows()[0][:10], np.full(10, 1e3), label=0)
    (flagged,) = ax.collections
    assert flagged.get_label() == "flagged" and len(flagged.get_offsets()) == 10


def test_a_path_from_an_estimator_has_the_names_of_the_table() -> None:
    pd = pytest.importorskip("pandas")
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(len(X))])
    model = TrimmedLinearRegression(random_state=0)
    path = trim_path(model, table, y, grid=[0.0, 0.1, 0.2])
    assert path.features == ("a", "b", "c", "d") and path.names is not None and path.names[2] == "row 2"
    _, coefficients, leaving = plots.plot_trim_path(path, label=3)
    assert {text.get_text() for text in coefficients.texts} == set("abcd")
    assert {text.get_text() for text in leaving.texts} == {"row 0", "row 1", "row 2"}
    with pytest.raises(ValueError, match="an estimator with X"):
        plots.plot_trim_path(model)
    inside = make_pipeline(StandardScaler(), TrimmedPCA(2, random_state=0)).fit(table)
    assert len(plots.plot_trim_path(inside, table)) == 3


def test_a_solution_converges_too() -> None:
    X, y = rows()
    ax = plots.plot_convergence(solve(Problem(LeastSquares(X, y), CappedSimplex(50))))
    assert ax.get_ylabel() == "objective" and ax.get_title().startswith("solve: ")


def test_the_gallery_shows_given_and_suggested_labels() -> None:
    ax = plots.plot_gallery(fitted("logistic"), label=[5, 0], images=np.zeros((60, 6, 3)))
    given, suggested = ax.texts[0].get_text().split(" → ")
    assert {given, suggested} == {"0", "1"} and len(ax.images) == 2
    with pytest.raises(ValueError, match="one for each of the 60 rows"):
        plots.plot_gallery(fitted("logistic"), images=np.zeros((3, 2, 2)))
    with pytest.raises(ValueError, match="give images="):
        plots.plot_gallery(fitted("label errors"))
    with pytest.raises(ValueError, match="no square images"):
        plots.plot_gallery(TrimmedPCA(1, random_state=0).fit(rows()[0][:, :3]))


def test_the_noise_matrix_is_written_in_per_cent() -> None:
    ax = plots.plot_noise_matrix(fitted("logistic"))
    T = fitted("logistic").noise_matrix_
    assert {text.get_text() for text in ax.texts} == {f"{100 * t:.2g}" for t in T.ravel() if t >= 0.0005}
    assert [text.get_text() for text in plots.plot_noise_matrix(fitted("logistic"), label=1).texts] == [
        f"{100 * max(T[0, 1], T[1, 0]):.2g}"
    ]


def test_matches_of_a_panorama_are_those_of_one_pair() -> None:
    ax = plots.plot_matches(fitted("panorama"), pair=(0, 1))
    assert sum(len(lines.get_segments()) for lines in ax.collections) == 60
    assert len(plots.plot_matches(fitted("panorama"), label=3).texts) == 3
    with pytest.raises(ValueError, match="two images that overlap"):
        plots.plot_matches(fitted("panorama"), pair=(0, 2))
    photographs = [np.zeros((511, 511, 3), np.uint8)] * 2
    pytest.importorskip("cv2")
    assert len(plots.plot_matches(fitted("homography"), images=photographs).images) == 2
    with pytest.raises(ValueError, match="2 photographs at least"):
        plots.plot_matches(fitted("homography"), images=photographs[:1])


def test_a_biplot_needs_two_components() -> None:
    with pytest.raises(ValueError, match="two components"):
        plots.plot_biplot(TrimmedPCA(1, random_state=0).fit(rows()[0]))
    with pytest.raises(ValueError, match="from 0 to 1"):
        plots.plot_biplot(fitted("pca"), components=(0, 2))


def test_cells_are_drawn_for_the_rows_that_are_asked_for() -> None:
    model, X = fitted("cells"), rows()[0]
    assert len(plots.plot_cell_map(model, rows=7).get_yticks()) == 7
    assert len(plots.plot_cell_map(model, X[:5]).get_yticks()) == 5
    names = [text.get_text() for text in plots.plot_cell_map(model, rows=7, label=[0]).get_yticklabels()]
    assert "0" in names and sum(name != "" for name in names) == 1
    for wrong in (0, [60], [[1]], ["a"]):
        with pytest.raises(ValueError, match="rows must be"):
            plots.plot_cell_map(model, rows=wrong)
