"""Distances beside what is expected of good rows, and beside the classical ones."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from scipy.special import chdtri, fdtri

from trimlearn._utils.arrays import Floats
from trimlearn.estimators.meta.wrapper import TrimmedEstimator
from trimlearn.plots.canvas import axes, colours, label_axes, legend, line_at
from trimlearn.plots.regression import robust_distances
from trimlearn.plots.rows import draw_rows
from trimlearn.plots.subject import SCORES, Subject, subject
from trimlearn.robust.scale import Chi
from trimlearn.robust.scatter.tails import TailLaw

BEYOND = 0.025  # the share of inliers beyond a line of the outlier map (Rousseeuw and Van Zomeren 1990)


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
