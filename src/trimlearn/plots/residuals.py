"""How badly rows are explained: against how far out they lie, against what was predicted, and in their order."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from trimlearn.plots.canvas import axes, label_axes, legend, line_at
from trimlearn.plots.distances import BEYOND
from trimlearn.plots.regression import predictions, robust_distances, signed_scores
from trimlearn.plots.rows import draw_rows
from trimlearn.plots.subject import SCORES, subject
from trimlearn.robust.scale import Chi


def plot_outlier_map(estimator: Any, X: Any = None, y: Any = None, *, label: Any = 5, ax: Any = None) -> Any:
    """Draw how badly each row is explained against how far out it lies.

    Regression: residual/scale against the robust distance of the features that are no categories, by
    `TrimmedCovariance` (Rousseeuw and Van Zomeren 1990): vertical outliers top and bottom left, bad leverage points top
    and bottom right, good ones right. PCA: orthogonal against score distance (Hubert, Rousseeuw and Vanden Branden
    2005). The dashed lines are what 97.5 % of good rows keep to. An axis that reaches far beyond its line is
    logarithmic from there on.

    Parameters
    ----------
    estimator : TrimmedPCA, a trimmed regressor, or a Pipeline that ends in one
        After fit.
    X, y : array-like, optional
        Rows to draw; None for those of the fit. After unpickling, give the training data again.
    label : int or list, default=5
        How many of the worst rows are named, or which ones: row numbers, or names of the index.
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
    'distance within the subspace'
    """
    of = subject("plot_outlier_map", estimator, X, y)
    if of.kind == "subspace":
        model = of.model
        far = model.score_distances_ if of.X is None else model.score_distance(of.X)
        off, limit, lines = of.scores, Chi(model.n_components_).upper(BEYOND), [of.threshold]
        words = "distance within the subspace"
    else:
        expected = predictions(of)
        distances, far = robust_distances(of)
        usual = Chi().upper(BEYOND)
        off, limit, lines = signed_scores(of, expected), distances.limit, [-usual, usual]
        words = "robust distance of the features"
    ax = axes(ax)
    line_at(ax, "x", limit)
    for line in lines:
        line_at(ax, "y", line)
    draw_rows(ax, of, far, off, label, (limit, abs(lines[-1])))
    label_axes(ax, words, SCORES[of.kind], of.title)
    legend(ax)
    return ax


def plot_residuals(estimator: Any, X: Any = None, y: Any = None, *, label: Any = 5, ax: Any = None) -> Any:
    """Draw the residuals, in units of their scale, against the predictions.

    A curve or a funnel among the rows kept says that the model is too simple, rather than rows wrong.

    Parameters
    ----------
    estimator : a trimmed regressor, or a Pipeline that ends in one
        After fit. Residuals of a generalised linear model are those of the deviance.
    X, y : array-like, optional
        Rows to draw; None for those of the fit. After unpickling, give the training data again.
    label : int or list, default=5
        How many of the worst rows are named, or which ones: row numbers, or names of the index.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegression
    >>> x = np.arange(20.0)
    >>> y = np.where(x == 3, 99.0, x + np.sin(x**2))
    >>> plot_residuals(TrimmedLinearRegression(random_state=0).fit(x[:, None], y)).get_xlabel()
    'predicted'
    """
    of = subject("plot_residuals", estimator, X, y)
    expected = predictions(of)
    off = signed_scores(of, expected)
    ax = axes(ax)
    for line in (-of.threshold, of.threshold):
        line_at(ax, "y", line, f"cut-off ±{of.threshold:.3g}" if line > 0 else None)
    line_at(ax, "y", 0.0)
    draw_rows(ax, of, expected, off, label, (nan, of.threshold))
    label_axes(ax, "predicted", SCORES[of.kind], of.title)
    legend(ax)
    return ax


def plot_scores(estimator: Any, X: Any = None, y: Any = None, *, label: Any = 5, ax: Any = None) -> Any:
    """Draw the outlier scores of the rows in increasing order, and the cut-off between kept and flagged ones.

    Parameters
    ----------
    estimator : any estimator of trimlearn, or a Pipeline that ends in one
        After fit; also what `trimlearn.label_errors` returned.
    X, y : array-like, optional
        Rows to draw; None for those of the fit.
    label : int or list, default=5
        How many of the worst rows are named, or which ones: row numbers, or names of the index.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegression
    >>> x = np.arange(20.0)
    >>> y = np.where(x == 3, 99.0, x + np.sin(x**2))
    >>> ax = plot_scores(TrimmedLinearRegression(random_state=0).fit(x[:, None], y), label=1)
    >>> ax.get_title(), ax.texts[0].get_text()
    ('TrimmedLinearRegression: 1 of 20 rows flagged', '3')
    """
    of = subject("plot_scores", estimator, X, y)
    ax = axes(ax)
    rank = np.empty(len(of.scores))
    rank[np.argsort(of.scores, kind="stable")] = np.arange(1, len(rank) + 1)
    line_at(ax, "y", of.threshold, f"cut-off {of.threshold:.3g}")
    draw_rows(ax, of, rank, of.scores, label, (None, None if of.kind == "labels" else of.threshold))
    label_axes(ax, f"{of.model._examples if of.kind == 'matches' else 'rows'}, from best to worst",
             f"outlier score: {SCORES[of.kind]}", of.title)  # fmt: skip
    legend(ax)
    return ax
