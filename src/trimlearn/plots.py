"""Pictures of what a trimmed fit found. They need matplotlib, and take and return its Axes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from trimlearn.estimators.cells import CellwiseOutliers
from trimlearn.estimators.forward_search import ForwardSearch
from trimlearn.estimators.linear.distances import feature_distances
from trimlearn.estimators.path import TrimPath
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.robust.scale import Chi

__all__ = ["plot_cell_map", "plot_forward_search", "plot_outlier_map", "plot_scores", "plot_trim_path"]

BLUE, RED, GREY = "#2c6fbb", "#c0392b", "#7f8c8d"  # kept, trimmed, lines
LEVELS = (0.01, 0.5, 0.99)  # of the envelopes of a forward search, those of Atkinson and Riani (2000)
NAMED = 8  # rows that a forward search names: more names cover one another
SHOWN = 40  # rows of a cell map: more are too thin to be read
BEYOND = 0.025  # the share of inliers beyond a line of the outlier map (Rousseeuw and Van Zomeren 1990)


def plot_trim_path(path: TrimPath, ax: Sequence[Any] | None = None) -> Any:
    """Draw three panels along the contamination: the objective, the coefficients, and who leaves when.

    In the last panel each row that leaves is a dash at the contamination where it does, in the order of leaving; the
    dotted line is the path's elbow.

    Parameters
    ----------
    path : TrimPath
        What `trimlearn.trim_path` returned.
    ax : sequence of three Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    ndarray of three Axes
        Those drawn into.

    Examples
    --------
    >>> from trimlearn import TrimmedLinearRegression, trim_path
    >>> X = np.arange(20.0)[:, None]
    >>> y = np.where(X[:, 0] == 3, 99.0, X[:, 0] + np.sin(X[:, 0] ** 2))
    >>> path = trim_path(TrimmedLinearRegression(random_state=0), X, y)
    >>> len(plot_trim_path(path))
    3
    """
    panels = _pyplot().subplots(1, 3, figsize=(13, 4), layout="constrained")[1] if ax is None else np.asarray(ax)
    if np.shape(panels) != (3,):
        raise ValueError(f"ax must hold three Axes, got {ax!r}.")
    objective, coefficients, leaving = panels
    c = path.contamination
    objective.plot(c, path.objective, color=BLUE, marker=".")
    objective.set(ylabel="objective F", title="what is left to explain")
    coefficients.plot(c, path.coef)
    coefficients.set(ylabel="coefficient", title="the model")
    leaves = np.sort(path.leaves_at[np.isfinite(path.leaves_at)])
    leaving.plot(leaves, np.arange(1, len(leaves) + 1), linestyle="none", marker="_", color=RED)
    leaving.set(ylabel="rows that have left", title="who leaves when")
    for panel in panels:
        panel.set_xlabel("contamination")
        panel.axvline(path.elbow, color=GREY, linestyle=":", label="elbow")
    return panels


def plot_scores(estimator: Any, ax: Any = None) -> Any:
    """Draw the training rows' outlier scores in increasing order, and the cut-off between kept and trimmed ones.

    Parameters
    ----------
    estimator : a trimmed estimator
        After fit.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> from trimlearn import TrimmedLinearRegression
    >>> X = np.arange(20.0)[:, None]
    >>> model = TrimmedLinearRegression(random_state=0).fit(X, np.where(X[:, 0] == 3, 99.0, X[:, 0]))
    >>> plot_scores(model).get_ylabel()
    'outlier score'
    """
    check_is_fitted(estimator, "outlier_scores_")
    ax = _axes(ax)
    order = np.argsort(estimator.outlier_scores_, kind="stable")
    _kept_and_trimmed(ax, np.arange(len(order)), estimator.outlier_scores_[order], estimator.inlier_mask_[order])
    cutoff = estimator.threshold_
    if np.isfinite(cutoff):
        ax.axhline(cutoff, color=GREY, linestyle="--", label=f"cut-off {cutoff:.2f}")
    ax.set(xlabel="rows, by score", ylabel="outlier score", title=_title(estimator))
    ax.legend(frameon=False)
    return ax


def plot_outlier_map(estimator: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Draw how badly each training row is explained against how far out it lies.

    Regression: residual/scale against the robust distance of the features that are no categories, by
    `TrimmedCovariance` (Rousseeuw and Van Zomeren 1990): vertical outliers top and bottom left, bad leverage points top
    and bottom right, good ones right. PCA: orthogonal against score distance (Hubert, Rousseeuw and Vanden Branden
    2005).

    Parameters
    ----------
    estimator : TrimmedPCA or a trimmed regressor
        After fit.
    X, y : array-like, optional
        The training data again, for an estimator that was unpickled.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> from trimlearn import TrimmedPCA
    >>> from trimlearn.datasets import load_judges
    >>> model = TrimmedPCA(2, random_state=0).fit(load_judges().data)
    >>> plot_outlier_map(model).get_xlabel()
    'score distance'
    """
    check_is_fitted(estimator, "outlier_scores_")
    if isinstance(estimator, TrimmedPCA):
        far, off = estimator.score_distances_, estimator.outlier_scores_
        lines = Chi(estimator.n_components_).upper(BEYOND), [estimator.threshold_]
        names = "score distance", "orthogonal distance / scale"
    elif is_regressor(estimator):
        data = estimator._remembered(X, y)
        distances = feature_distances(data.X, data.s, estimator.random_state)
        if distances is None:
            raise ValueError("an outlier map needs distances, and X has none: it is sparse, small, or all categories.")
        far, off = distances.of(data.X), _signed(estimator, data)
        usual = Chi().upper(BEYOND)
        lines = distances.limit, [-usual, usual]
        names = "robust distance", "residual / scale"
    else:
        raise ValueError(f"an outlier map is for regressors and TrimmedPCA, not for {type(estimator).__name__}.")
    ax = _axes(ax)
    _kept_and_trimmed(ax, far, off, estimator.inlier_mask_)
    ax.axvline(lines[0], color=GREY, linestyle="--")
    for level in lines[1]:
        ax.axhline(level, color=GREY, linestyle="--")
    ax.set(xlabel=names[0], ylabel=names[1], title=_title(estimator))
    ax.legend(frameon=False)
    return ax


def plot_cell_map(model: CellwiseOutliers, rows: Any = None, ax: Any = None) -> Any:
    """Draw the cells of a table: red where a value is too high, blue where it is too low, the more so the further off.

    Cells that do not deviate are pale, those of columns left out are not drawn (Rousseeuw and Van den Bossche 2018).

    Parameters
    ----------
    model : CellwiseOutliers
        After fit.
    rows : array-like of int, optional
        Which rows to draw; None draws the 40 with the worst cells, in the order of the table.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> from trimlearn import CellwiseOutliers
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) + np.arange(50.0)[:, None]
    >>> X[4, 1] = 400.0
    >>> plot_cell_map(CellwiseOutliers().fit(X)).get_title()
    'CellwiseOutliers: 1 of 150 cells deviates'
    """
    check_is_fitted(model, "cell_mask_")
    pyplot = _pyplot()
    scores, mask = model.cell_scores_, model.cell_mask_
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(mask.shape[1])])]
    used = [j for j, name in enumerate(names) if name not in {str(out) for out in model.left_out_}]
    if rows is None:
        worst = np.max(np.where(mask, np.abs(scores), 0.0), axis=1, initial=0.0)
        rows = np.sort(np.argsort(-worst, kind="stable")[: min(SHOWN, len(worst))])
    rows = np.asarray(rows)
    shown = np.where(mask, np.clip(scores / model.threshold_ / 2.0, -1.0, 1.0), 0.15 * np.sign(scores))[rows][:, used]
    if ax is None:
        size = (2.0 + 0.6 * max(len(used), 3), 1.5 + 0.2 * max(len(rows), 5))
        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
    ax.imshow(shown, cmap="RdBu_r", vmin=-1.3, vmax=1.3, aspect="auto")
    labels = model.row_names_ if model.row_names_ is not None else np.arange(len(mask))
    ax.set_xticks(range(len(used)), [names[j] for j in used], rotation=60, ha="right")
    ax.set_yticks(range(len(rows)), [str(labels[row]) for row in rows], fontsize=8)
    ax.set_xticks(np.arange(-0.5, len(used)), minor=True)
    ax.set_yticks(np.arange(-0.5, len(rows)), minor=True)
    ax.grid(which="minor", color="white", linewidth=0.8)
    ax.tick_params(which="both", length=0)
    count = int(mask.sum())
    ax.set_title(f"CellwiseOutliers: {count} of {mask[:, used].size} cells deviate{'s' if count == 1 else ''}")
    return ax


def plot_forward_search(search: ForwardSearch, ax: Sequence[Any] | None = None) -> Any:
    """Draw two panels along the size of the subset: the rows' residuals, and the least deletion residual.

    Outliers, or where there are none the last rows to come in, are red and named at the left end of their lines. The
    dashed lines of the second panel are the 1, 50 and 99 % envelopes of clean normal data.

    Parameters
    ----------
    search : ForwardSearch
        What `trimlearn.forward_search` returned.
    ax : sequence of two Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    ndarray of two Axes
        Those drawn into.

    Examples
    --------
    >>> from trimlearn import forward_search
    >>> x = np.arange(30.0)
    >>> y = np.where(x == 3, 25.0, x + np.sin(x**2))
    >>> len(plot_forward_search(forward_search(x[:, None], y)))
    2
    """
    panels = _pyplot().subplots(1, 2, figsize=(12, 4.5), layout="constrained")[1] if ax is None else np.asarray(ax)
    if np.shape(panels) != (2,):
        raise ValueError(f"ax must hold two Axes, got {ax!r}.")
    lines, deletion = panels
    named = search.outliers if len(search.outliers) else np.argsort(-search.entry, kind="stable")[:3]
    red = np.isin(np.arange(len(search.entry)), named)
    lines.plot(search.monitored, search.residuals[:, ~red], color=BLUE, linewidth=0.5, alpha=0.4)
    lines.plot(search.monitored, search.residuals[:, red], color=RED, linewidth=0.9)
    labels = np.arange(len(red)) if search.names is None else search.names
    for row in named[:NAMED]:
        at = (search.monitored[0], search.residuals[0, row])
        lines.annotate(str(labels[row]), at, xytext=(-3, 0), textcoords="offset points", ha="right", fontsize=8)
    lines.set(xlabel="subset size m", ylabel="residual / final scale", title=f"{len(search.outliers)} outliers")
    deletion.plot(search.sizes, search.min_deletion_residual, color=BLUE)
    for level in LEVELS:
        deletion.plot(search.sizes, search.envelope(level), color=GREY, linestyle="--", linewidth=0.9)
    inside = search.sizes >= len(red) // 5  # before, envelopes of few rows are far out and hide the rest
    top = np.nanmax(np.append(search.min_deletion_residual[inside], search.envelope(LEVELS[-1])[inside]), initial=1.0)
    deletion.set(xlabel="subset size m", ylabel="least deletion residual", ylim=(0, 1.1 * top))
    return panels


def _signed(estimator: Any, data: Any) -> np.ndarray:
    with warnings.catch_warnings():  # the training data lost their feature names when they were validated
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        prediction = np.asarray(estimator.predict(data.X))
    if prediction.ndim > 1:
        raise ValueError("an outlier map is for one target; fit them one at a time.")
    return np.asarray(np.sign(data.t - prediction) * estimator.outlier_scores_)


def _kept_and_trimmed(ax: Any, x: np.ndarray, y: np.ndarray, kept: np.ndarray) -> None:
    ax.scatter(x[kept], y[kept], s=14, color=BLUE, label="kept")
    ax.scatter(x[~kept], y[~kept], s=22, color=RED, marker="s", label="trimmed")


def _title(estimator: Any) -> str:
    return f"{type(estimator).__name__}: {100 * estimator.contamination_:.1f} % bad"


def _axes(ax: Any) -> Any:
    return _pyplot().subplots(layout="constrained")[1] if ax is None else ax


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'trimlearn[cli]'.") from error
    return pyplot
