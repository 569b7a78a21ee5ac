"""Distances beside what is expected of good rows, and beside the classical ones.

How badly rows are explained: against how far out they lie, against what was predicted, and in their order.
"""

from __future__ import annotations

from math import isfinite, nan
from typing import Any

import numpy as np
from scipy.special import chdtri, fdtri

from trimlearn._utils.arrays import Floats
from trimlearn.estimators.meta.wrapper import TrimmedEstimator
from trimlearn.plots.canvas import axes, colours, label_axes, legend, line_at
from trimlearn.plots.names import draw_rows
from trimlearn.plots.subject import SCORES, Subject, predictions, robust_distances, signed_scores, subject
from trimlearn.robust.scale import Chi
from trimlearn.robust.scatter.tails import TailLaw

BEYOND = 0.025  # the share of inliers beyond a line of the outlier map (Rousseeuw and Van Zomeren 1990)


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


def plot_qq(estimator: Any, X: Any = None, y: Any = None, *, label: Any = 5, ax: Any = None) -> Any:
    """Draw the distances of the rows, in increasing order, against those that good rows would have.

    Good rows lie on the line; outliers leave it at the upper end. Many outliers push all others below it, since each
    quantile is then that of a better row.

    Parameters
    ----------
    estimator : a covariance, PCA, regressor or homography of trimlearn, or a Pipeline that ends in one
        After fit.
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
    >>> from trimlearn import TrimmedCovariance
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> plot_qq(TrimmedCovariance(random_state=0).fit(X)).get_xlabel()
    'distance expected of a good row'
    """
    of = subject("plot_qq", estimator, X, y)
    law, unit = _law(of)
    n = len(of.scores)
    expected = np.empty(n)
    expected[np.argsort(of.scores, kind="stable")] = unit * _quantiles(law, 1 - (np.arange(n) + 0.5) / n)
    ax = axes(ax)
    line_at(ax, "y", of.threshold, f"cut-off {of.threshold:.3g}")
    draw_rows(ax, of, expected, of.scores, label, (of.threshold, of.threshold), together=True)
    _diagonal(ax, float(expected.max(initial=unit)))
    what = "match" if of.kind == "matches" else "row"
    label_axes(ax, f"{'residual' if of.kind == 'numbers' else 'distance'} expected of a good {what}",
             SCORES[of.kind], of.title)  # fmt: skip
    legend(ax)
    return ax


def plot_distances(estimator: Any, X: Any = None, y: Any = None, *, label: Any = 5, ax: Any = None) -> Any:
    """Draw robust distances against classical ones, by the plain mean and covariance.

    On the line both agree. Rows high above it are masked: they have bent the classical covariance towards themselves
    (Rousseeuw and Van Zomeren 1990). The dashed lines are what 97.5 % of good rows keep to.

    Parameters
    ----------
    estimator : TrimmedCovariance, TrimmedGraphicalLasso, a trimmed regressor, or a Pipeline that ends in one
        After fit. Of a regressor the features are drawn.
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
    >>> from trimlearn import TrimmedCovariance
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> plot_distances(TrimmedCovariance(random_state=0).fit(X)).get_ylabel()
    'robust distance'
    """
    of = subject("plot_distances", estimator, X, y)
    if of.kind == "scatter":
        robust, columns = of.scores, np.arange(of.data.X.shape[1])
    else:
        found, robust = robust_distances(of)
        columns = found.columns
    classical = _classical(np.asarray(of.data.X, dtype=np.float64)[:, columns], of.data.s)
    limit = Chi(len(columns)).upper(BEYOND)
    ax = axes(ax)
    line_at(ax, "x", limit)
    line_at(ax, "y", limit)
    draw_rows(ax, of, classical, robust, label, (limit, limit), together=True)
    _diagonal(ax, float(np.max(classical, initial=limit)))
    words = "distance" if of.kind == "scatter" else "distance of the features"
    label_axes(ax, f"classical {words}", f"robust {words}", of.title)
    legend(ax)
    return ax


def _diagonal(ax: Any, top: float) -> None:
    """Where both distances are the same."""
    ax.plot([0.0, top], [0.0, top], color=colours(ax).muted, linewidth=1.0, zorder=1, scalex=False, scaley=False)


def _classical(X: Floats, s: Floats | None) -> Floats:
    """Mahalanobis distances by the plain mean and covariance, in the directions in which X varies."""
    c = np.ones(len(X)) if s is None else np.asarray(s, dtype=np.float64)
    Z = X - np.average(X, axis=0, weights=c)
    S = (Z * c[:, None]).T @ Z / max(c.sum() - 1.0, 1.0)
    return np.asarray(np.sqrt(np.maximum(np.sum(Z @ np.linalg.pinv(S, hermitian=True) * Z, axis=1), 0.0)))


def _quantiles(law: Chi | TailLaw, beyond: Floats) -> Floats:
    """``law.upper`` of many shares at once."""
    if isinstance(law, TailLaw) and isfinite(law.m):
        return np.asarray(np.sqrt(law.k * fdtri(law.k, law.m, 1.0 - beyond)))
    return np.asarray(np.sqrt(chdtri(law.k, beyond)))


def _law(of: Subject) -> tuple[Chi | TailLaw, float]:
    """The law of a good row's score, and its unit."""
    if of.kind == "subspace":
        return of.model._law, 1.0
    if of.kind == "scatter":
        return Chi(of.model.n_features_in_), 1.0
    if of.kind == "matches":
        return Chi(2), float(of.model.scale_)
    targets = np.shape(of.model._P)[1:] if isinstance(of.model, TrimmedEstimator) else ()
    return Chi(float(np.prod(targets))), 1.0
