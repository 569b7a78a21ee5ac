"""Pictures of what a trimmed fit found. They need matplotlib, and take and return its Axes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from trimlearn.estimators.linear.distances import feature_distances
from trimlearn.estimators.path import TrimPath
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.robust.scale import Chi

__all__ = ["plot_outlier_map", "plot_scores", "plot_trim_path"]

BLUE, RED, GREY = "#2c6fbb", "#c0392b", "#7f8c8d"  # kept, trimmed, lines
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
