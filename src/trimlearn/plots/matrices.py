"""Tables as pictures: the cells of a table, and which labels are mistaken for which."""

from __future__ import annotations

from math import ceil
from numbers import Integral
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.estimators.cells import CellwiseOutliers
from trimlearn.plots.canvas import axes, colours, label_axes, one_line, tick_text
from trimlearn.plots.names import labelled_rows, row_text
from trimlearn.plots.subject import subject

SHOWN = 40  # rows of a cell map: more are too thin to be read
LARGEST = 12.0  # inches of a new figure: what fits on a screen
MOST_NAMES = 60  # at an axis of the largest figure: more would touch
PALE = 0.12  # of the full colour, for cells that do not deviate: one sees the sign, and no alarm (a choice)
MOST_NUMBERS = 15  # classes up to which the noise matrix has numbers: more would touch
RARE = 0.1  # a share of mistakes that has the full colour, unless there are larger ones: rare ones are pale (a choice)
DARK_CELL = 0.6  # of the full colour, from which on numbers are written in light letters: then they have contrast


def plot_cell_map(
    estimator: Any, X: Any = None, y: Any = None, *, rows: Any = SHOWN, label: Any = None, ax: Any = None
) -> Any:
    """Draw the cells of a table: red where a value is too high, blue where it is too low, the more so the further off.

    Cells that do not deviate are pale, those of columns left out are not drawn (Rousseeuw and Van den Bossche 2018).

    Parameters
    ----------
    estimator : CellwiseOutliers, or a Pipeline that ends in one
        After fit.
    X : array-like or DataFrame, optional
        Rows to judge; None for those of the fit.
    y : Ignored
        Not used, present for scikit-learn's pipelines.
    rows : int or array-like of int, default=40
        How many rows to draw, those with the worst cells in the order of the table; or which ones.
    label : int or list, optional
        How many of these are named, those with the worst cells; or which ones. None: all.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import CellwiseOutliers
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) + np.arange(50.0)[:, None]
    >>> X[4, 1] = 400.0
    >>> plot_cell_map(CellwiseOutliers().fit(X)).get_title()
    'CellwiseOutliers: 1 of 150 cells deviates'
    """
    of = subject("plot_cell_map", estimator, X, y)
    model: CellwiseOutliers = of.model
    scores, mask = of.cells
    names = of.features(mask.shape[1])
    used = [j for j, name in enumerate(names) if name not in {str(out) for out in model.left_out_}]
    worst = np.max(np.where(mask, np.abs(scores), 0.0), axis=1, initial=0.0)
    chosen = _rows(rows, worst)
    if not used:
        raise ValueError("no column was judged, see left_out_: there are no cells to draw.")
    size = (2.2 + 0.55 * max(len(used), 5), 1.5 + 0.2 * max(len(chosen), 5))
    ax = axes(ax, (min(size[0], LARGEST), min(size[1], LARGEST)))
    strong = np.where(mask, np.clip(scores / model.threshold_ / 2.0, -1.0, 1.0), PALE * np.sign(scores))
    ink = colours(ax)
    shown = strong[chosen][:, used]
    ax.imshow(shown, cmap=_shades(ink.accent, ink.raised, ink.bad), vmin=-1.0, vmax=1.0, aspect="auto")
    _ticks(ax, "x", [one_line(names[j]) for j in used], turned=True)
    named = chosen if label is None else labelled_rows(label, worst, of.names)
    _ticks(ax, "y", [row_text(int(row), of.names) if row in named else "" for row in chosen], every=label is not None)
    _grid(ax, shown.shape, ink.paper)
    count, total = int(mask.sum()), mask[:, used].size
    title = f"CellwiseOutliers: {count:,} of {total:,} cells deviate{'s' if count == 1 else ''}"
    label_axes(ax, title=title)
    return ax


def plot_noise_matrix(estimator: Any, X: Any = None, y: Any = None, *, label: int | None = None, ax: Any = None) -> Any:
    """Draw which labels are mistaken for which: P(labelled so | of that class), in per cent.

    The diagonal, labels that are right, is left white: the shades are for the mistakes.

    Parameters
    ----------
    estimator : a trimmed classifier, or a Pipeline that ends in one
        After fit; also what `trimlearn.label_errors` returned.
    X, y : Ignored
        Not used: the matrix is that of the fit.
    label : int, optional
        How many mistakes are written as numbers, the most frequent ones; None: all shares, of up to 15 classes.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import label_errors
    >>> y = np.repeat([0, 1], 50)
    >>> p = np.where(y[:, None] == [0, 1], 0.99, 0.01)
    >>> y[[3, 20, 70, 90]] = 1, 1, 0, 0
    >>> ax = plot_noise_matrix(label_errors(y, p))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('labelled', 'is in truth')
    """
    of = subject("plot_noise_matrix", estimator)
    T: Floats = np.asarray(of.model.noise_matrix_, dtype=np.float64)
    classes = [one_line(name) for name in of.model.classes_]
    K = len(T)
    side = min(2.4 + 0.42 * max(K, 4), LARGEST)
    ax = axes(ax, (side + 0.6, side))
    wrong = np.where(np.eye(K, dtype=bool), 0.0, T)
    top = max(float(wrong.max()), RARE)
    ink = colours(ax)
    ax.imshow(wrong, cmap=_shades(ink.raised, ink.bad), vmin=0.0, vmax=top)
    if label is None:
        numbered = np.full((K, K), K <= MOST_NUMBERS)
    else:
        numbered = np.isin(np.arange(K * K), labelled_rows(label, wrong.ravel(), None)).reshape(K, K)
    for k, j in np.argwhere(numbered).tolist():
        if T[k, j] >= 0.0005:
            color = ink.muted if k == j else ink.raised if wrong[k, j] > DARK_CELL * top else ink.ink
            ax.text(j, k, f"{100 * T[k, j]:.2g}", ha="center", va="center", fontsize=8, color=color)
    _ticks(ax, "x", classes, turned=max(len(name) for name in classes) > 2)
    _ticks(ax, "y", classes)
    _grid(ax, T.shape, ink.line)
    share = float(of.model.contamination_)
    label_axes(ax, "labelled", "is in truth", f"{100 * share:.3g} % of the labels look wrong")
    return ax


def _rows(rows: Any, worst: Floats) -> Ints:
    if rows is None or (isinstance(rows, Integral) and not isinstance(rows, bool)):
        count = SHOWN if rows is None else int(rows)
        if count < 1:
            raise ValueError(f"rows must be how many rows to draw, at least 1, or which ones, got {rows!r}.")
        return np.sort(np.argsort(-worst, kind="stable")[:count]).astype(np.int64)
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.shape == worst.shape:
        return np.flatnonzero(chosen).astype(np.int64)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or np.any((chosen < -len(worst)) | (chosen >= len(worst))):
        raise ValueError(f"rows must be numbers of rows, from 0 to {len(worst) - 1}, got {rows!r}.")
    return (chosen % len(worst)).astype(np.int64)


def _ticks(ax: Any, which: str, texts: list[str], turned: bool = False, every: bool = False) -> None:
    """Names at the cells; of many cells at every second, third, …, unless ``every`` name was asked for."""
    step = 1 if every else ceil(len(texts) / MOST_NAMES)
    look: dict[str, Any] = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    place = ax.set_xticks if which == "x" else ax.set_yticks
    place(range(0, len(texts), step), [tick_text(text) for text in texts[::step]], fontsize=8, **look)


def _shades(*ends: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("trimlearn", ends)


def _grid(ax: Any, shape: tuple[int, ...], color: str) -> None:
    """Lines between the cells."""
    ax.set_xticks(np.arange(-0.5, shape[1]), minor=True)
    ax.set_yticks(np.arange(-0.5, shape[0]), minor=True)
    ax.grid(which="minor", color=color, linewidth=0.8 if max(shape) <= MOST_NAMES else 0.0)
    ax.tick_params(which="both", length=0)
    for side in ax.spines.values():
        side.set_visible(False)
