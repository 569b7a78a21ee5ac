"""Names that do not overlap, axes that are logarithmic where they have to be, text that is no formula."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot

from trimlearn import TrimmedLinearRegression, TrimmedPCA
from trimlearn._utils.palette import DARK, LIGHT
from trimlearn.plots import plot_coefficients, plot_outlier_map, plot_scores
from trimlearn.plots.canvas import colours, wide
from trimlearn.plots.names import labelled_rows, name_points

LONG = "a name that goes on and on and on"
ODD_NAMES = ["a$b$_c", "x_1^2", r"$\frac{1}{0}$", "<b>bold</b>", "two\nlines", LONG, "שלום"]


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    yield
    pyplot.close("all")


def drawn(ax: Any) -> Any:
    """The boxes of the names, as a renderer draws them."""
    ax.figure.canvas.draw()
    return [mpl.text.Text.get_window_extent(text) for text in ax.texts if text.get_text()]


def pca(index: Any = None, wild: float = 50.0) -> TrimmedPCA:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = np.outer(rng.standard_normal(60), [3.0, 4.0, 1.0]) + 0.1 * rng.standard_normal((60, 3))
    X[:7] += wild * np.array([1.0, -1.0, 1.0]) * (1.0 + 0.01 * rng.random((7, 1)))
    return TrimmedPCA(1, random_state=0).fit(pd.DataFrame(X, index=index))


def test_names_do_not_overlap_and_stay_inside() -> None:
    ax = plot_outlier_map(pca([f"name {i}" for i in range(60)]), label=12)
    boxes = drawn(ax)
    assert len(boxes) == 12
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    frame = ax.get_window_extent()
    assert all(frame.x0 <= box.x0 + 1 and box.x1 <= frame.x1 + 1 for box in boxes)


def test_names_of_points_in_one_place_do_not_overlap() -> None:
    ax = pyplot.subplots()[1]
    ax.scatter(np.zeros(10), np.zeros(10))
    name_points(ax, np.zeros(10), np.zeros(10), range(10), [f"name {i}" for i in range(10)])
    boxes = drawn(ax)
    assert len(boxes) == 10 and not any(a.overlaps(b) for a, b in combinations(boxes, 2))


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_shown_as_they_are() -> None:
    model = pca([*ODD_NAMES, *(f"r{i}" for i in range(53))])
    ax = plot_scores(model, label=7)
    shown = {text.get_text() for text in ax.texts}
    assert shown == {*ODD_NAMES[:4], "two lines", "a name that goes on and on…", "שלום"}
    ax.figure.savefig(io.BytesIO(), format="svg")  # \frac{1}{0} would be no error, an unknown command would
    assert all(not text.get_parse_math() for text in ax.texts)


def test_names_of_features_are_shown_as_they_are() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((40, 2)), columns=["a$b$", r"$\nonsense$"])
    ax = plot_coefficients(TrimmedLinearRegression(random_state=0).fit(X, X.sum(axis=1) + rng.standard_normal(40)))
    ax.figure.savefig(io.BytesIO())  # which raises where it is read as a formula
    shown = [label.get_text().replace(r"\$", "$") for label in ax.get_yticklabels()]
    assert sorted(shown) == sorted(X.columns)


def test_labels_are_numbers_names_or_none() -> None:
    scores, names = np.array([1.0, np.nan, 3.0, 2.0]), ["a", "b", "c", "d"]
    assert labelled_rows(2, scores, names).tolist() == [2, 3]
    assert labelled_rows(99, scores, names).tolist() == [2, 3, 0, 1]
    assert labelled_rows(["b", -1], scores, names).tolist() == [1, 3]
    assert labelled_rows(None, scores, names).tolist() == labelled_rows(0, scores, None).tolist() == []
    for wrong in (-1, True, "a", 1.5):
        with pytest.raises(ValueError, match="how many rows"):
            labelled_rows(wrong, scores, names)
    with pytest.raises(ValueError, match="no row is called so"):
        labelled_rows(["z"], scores, names)
    with pytest.raises(ValueError, match="there are 4 rows"):
        labelled_rows([4], scores, names)


def test_an_axis_is_logarithmic_only_where_the_range_asks_for_it() -> None:
    assert plot_outlier_map(pca(wild=0.5)).get_yscale() == "linear" and plot_outlier_map(pca()).get_yscale() == "symlog"
    near, far = pyplot.subplots(1, 2)[1]
    wide(near, "y", np.array([0.0, 20.0]), 2.5)
    wide(far, "y", np.array([-0.5, 2e7]), 2.5)
    assert (near.get_yscale(), far.get_yscale()) == ("linear", "symlog")
    far.set_ylim(-10, 3e7)
    far.figure.canvas.draw()
    texts = [label.get_text() for label in far.get_yticklabels()]
    assert {"0", "10", "100"} < set(texts) and len(texts) == len(set(texts))


@pytest.mark.parametrize("unit", [np.nan, np.inf, 0.0, -1.0, 1e-300])
def test_any_unit_will_do(unit: float) -> None:
    ax = pyplot.subplots()[1]
    wide(ax, "x", np.array([0.0, 1.0, 1e6, np.inf, np.nan]), unit)
    wide(ax, "y", np.zeros(0), unit)
    ax.figure.canvas.draw()
    assert (ax.get_xscale(), ax.get_yscale()) == ("symlog", "linear")
    ticks = ax.get_xticks()
    assert np.isfinite(ticks).all() and 2 < len(ticks) < 20 and ticks.max() <= 1e7


def test_infinite_scores_are_drawn_at_the_edge() -> None:
    model = pca()
    model.outlier_scores_ = np.where(np.arange(60) == 3, np.inf, model.outlier_scores_)
    ax = plot_scores(model)
    (beyond,) = [dots for dots in ax.collections if dots.get_label() == "infinitely far"]
    assert np.isfinite(beyond.get_offsets()).all() and len(beyond.get_offsets()) == 1
    assert beyond.get_offsets()[0, 1] > model.outlier_scores_[np.isfinite(model.outlier_scores_)].max()


def test_a_figure_can_be_pickled() -> None:
    assert len(pickle.loads(pickle.dumps(plot_outlier_map(pca()).figure)).axes) == 1


def test_colours_follow_the_ground() -> None:
    assert colours(pyplot.subplots()[1]) is LIGHT
    with pyplot.style.context("dark_background"):
        assert colours(pyplot.subplots()[1]) is DARK


def test_five_rows_and_none_flagged() -> None:
    X = np.arange(5.0)[:, None]
    model = TrimmedLinearRegression(random_state=0).fit(X, X[:, 0] + [0.1, -0.1, 0.0, 0.1, -0.1])
    ax = plot_scores(model)
    assert [dots.get_label() for dots in ax.collections] == ["kept"] and len(ax.texts) == 5


def test_many_points_are_drawn_as_pixels() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 1))
    model = TrimmedPCA(1, random_state=0).fit(np.column_stack([X, X + 0.1 * rng.standard_normal((6000, 1))]))
    ax = plot_scores(model)
    assert ax.collections[0].get_rasterized()
    file = io.BytesIO()
    ax.figure.savefig(file, format="svg")
    assert file.tell() < 400_000
