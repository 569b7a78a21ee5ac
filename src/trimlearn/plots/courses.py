"""How something moves: a model along the contamination, a search from few rows to all."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn.estimators.base import Trimmed
from trimlearn.estimators.forward_search import ForwardSearch
from trimlearn.estimators.path import TrimPath, trim_path
from trimlearn.plots.canvas import colours, even_axis, label_axes, one_line, panels, wide
from trimlearn.plots.names import labelled_rows, name_points, row_text
from trimlearn.plots.subject import check_picture, subject

LEVELS = (0.01, 0.5, 0.99)  # of the envelopes of a forward search, those of Atkinson and Riani (2000)
LEFT = ((-1, 0), (-1, 1), (-1, -1))  # where the name of a line stands that begins at the left: see `names.SIDES`
MOST_LINES = 12  # coefficients that have colours of their own and names: more cannot be told apart


def plot_trim_path(path: Any, X: Any = None, y: Any = None, *, label: Any = 5, ax: Any = None) -> Any:
    """Draw three panels along the contamination: the objective, the coefficients, and who leaves when.

    In the last panel each row that leaves is a dash at the contamination where it does, in the order of leaving; the
    first ones are named. The dotted line is the path's elbow.

    Parameters
    ----------
    path : TrimPath, a trimmed estimator, or a fitted Pipeline that ends in one
        What `trimlearn.trim_path` returned; or what to fit along the path, with X and y.
    X, y : array-like, optional
        The data, where ``path`` is an estimator.
    label : int or list, default=5
        How many of the rows are named, the first to leave; or which ones: row numbers, or names of the index.
    ax : sequence of three Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    ndarray of three Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegression, trim_path
    >>> x = np.arange(20.0)
    >>> y = np.where(x == 3, 99.0, x + np.sin(x**2))
    >>> len(plot_trim_path(trim_path(TrimmedLinearRegression(random_state=0), x[:, None], y)))
    3
    """
    if not isinstance(path, TrimPath):
        path = _fitted_path(path, X, y)
    shown = panels(ax, 3, (13, 4))
    objective, coefficients, leaving = shown
    ink, c = colours(objective), path.contamination
    objective.plot(c, path.objective, color=ink.accent, marker=".")
    even_axis(objective, path.objective)
    _draw_coefficients(coefficients, path)
    _draw_leaving(leaving, path, label)
    words = {
        "what is left to explain": "objective",
        "the model": "coefficient",
        "who leaves when": "rows that have left",
    }
    for panel, (title, ylabel) in zip(shown, words.items(), strict=True):
        label_axes(panel, "share of the rows that is trimmed", ylabel, title)
        panel.set_xlim(left=path.contamination[0] - 0.02)
        panel.axvline(path.elbow, color=ink.muted, linestyle=":", zorder=1)
    return shown


def plot_forward_search(search: ForwardSearch, *, label: Any = 8, ax: Any = None) -> Any:
    """Draw two panels along the size of the subset: the rows' residuals, and the least deletion residual.

    Outliers, or where there are none the last rows to come in, are red and named at the left end of their lines. The
    dashed lines of the second panel are the 1, 50 and 99 % envelopes of clean normal data.

    Parameters
    ----------
    search : ForwardSearch
        What `trimlearn.forward_search` returned.
    label : int or list, default=8
        How many of the outliers are named, or which rows: numbers, or names of the index.
    ax : sequence of two Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    ndarray of two Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import forward_search
    >>> x = np.arange(30.0)
    >>> y = np.where(x == 3, 25.0, x + np.sin(x**2))
    >>> len(plot_forward_search(forward_search(x[:, None], y)))
    2
    """
    if not isinstance(search, ForwardSearch):
        raise TypeError(f"plot_forward_search takes what forward_search returned, got {type(search).__name__}.")
    shown = panels(ax, 2, (12, 4.5))
    lines, deletion = shown
    ink, n = colours(lines), len(search.entry)
    odd = search.outliers if len(search.outliers) else np.argsort(-search.entry, kind="stable")[:3]
    rank = np.full(n, -np.inf)
    rank[odd] = -np.arange(len(odd), dtype=np.float64)
    rows = labelled_rows(min(label, len(odd)) if isinstance(label, int) else label, rank, search.names)
    red = np.isin(np.arange(n), [*odd, *rows])
    many = n > 500  # lines are drawn as pixels then, in a file of lines as well
    lines.plot(search.monitored, search.residuals[:, ~red], color=ink.accent, linewidth=0.5, alpha=0.4, rasterized=many)
    lines.plot(search.monitored, search.residuals[:, red], color=ink.bad, linewidth=0.9)
    first, last = float(search.monitored[0]), float(search.monitored[-1])
    lines.set_xlim(first - 0.3 * (last - first), last + 0.03 * (last - first))  # names stand at the left
    start = np.full(n, first)
    words = [row_text(row, search.names) for row in rows.tolist()]
    name_points(lines, start, search.residuals[0], rows, words, red, sides=LEFT)
    count = len(search.outliers)
    label_axes(lines, "rows in the subset", "residual / final scale", f"{count} outlier{'' if count == 1 else 's'}")
    deletion.plot(search.sizes, search.min_deletion_residual, color=ink.accent)
    for share in LEVELS:
        deletion.plot(search.sizes, search.envelope(share), color=ink.muted, linestyle="--", linewidth=0.9)
    inside = search.sizes >= n // 5  # before, envelopes of few rows are far out and hide the rest
    top = np.nanmax(np.append(search.min_deletion_residual[inside], search.envelope(LEVELS[-1])[inside]), initial=1.0)
    deletion.set_ylim(0, 1.1 * top)
    label_axes(deletion, "rows in the subset", "least deletion residual", "the next row, and where clean data would be")
    return shown


def _fitted_path(estimator: Any, X: Any, y: Any) -> TrimPath:
    if X is None:
        raise ValueError("plot_trim_path takes what trim_path returned, or an estimator with X (and y).")
    if isinstance(estimator, Trimmed):
        check_picture("plot_trim_path", estimator)
        return trim_path(estimator, X, y)
    of = subject("plot_trim_path", estimator, X, y)
    found = trim_path(of.model, of.X, y)
    return TrimPath(**{**vars(found), "names": of.names})


def _draw_coefficients(ax: Any, path: TrimPath) -> None:
    ink, count = colours(ax), path.coef.shape[1]
    few = count <= MOST_LINES
    for j in range(count):
        color = ink.categories[j % len(ink.categories)] if few else ink.accent
        ax.plot(
            path.contamination, path.coef[:, j], color=color, alpha=1.0 if few else 0.4, linewidth=1.3 if few else 0.7
        )
    wide(ax, "y", path.coef, np.nan)
    if not count:
        ax.text(0.5, 0.5, "it has no coefficients", transform=ax.transAxes, ha="center", color=ink.muted)
        return
    if few and path.features is not None:
        ends = np.full(count, path.contamination[-1])
        ax.margins(x=0.02)
        ax.set_xlim(right=path.contamination[-1] * 1.25)  # names stand at the right
        words = [one_line(name) for name in path.features]
        name_points(ax, ends, path.coef[-1], range(count), words, sides=[(-x, y) for x, y in LEFT])


def _draw_leaving(ax: Any, path: TrimPath, label: Any) -> None:
    at = path.leaves_at
    gone = np.flatnonzero(np.isfinite(at))
    gone = gone[np.argsort(at[gone], kind="stable")]
    ink, height = colours(ax), np.full(len(at), np.nan)
    height[gone] = np.arange(1, len(gone) + 1)
    ax.plot(at[gone], height[gone], linestyle="none", marker="_", color=ink.bad)
    ax.margins(0.12)
    rows = labelled_rows(label, -at, path.names)
    rows = rows[np.isfinite(at[rows])]
    name_points(ax, at, height, rows, [row_text(row, path.names) for row in rows.tolist()], np.isfinite(at))
