"""How bad every row is."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn.plots.canvas import axes, describe, legend, level
from trimlearn.plots.points import draw_rows
from trimlearn.plots.subject import SCORES, subject

__all__ = ["plot_scores"]


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
    level(ax, "y", of.threshold, f"cut-off {of.threshold:.3g}")
    draw_rows(ax, of, rank, of.scores, label, (None, None if of.kind == "labels" else of.threshold))
    describe(ax, f"{of.model._examples if of.kind == 'matches' else 'rows'}, from best to worst",
             f"outlier score: {SCORES[of.kind]}", of.title)  # fmt: skip
    legend(ax)
    return ax
