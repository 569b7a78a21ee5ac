"""How a fit came to its end."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn.plots.canvas import axes, colours, even_axis, label_axes, legend
from trimlearn.plots.subject import subject
from trimlearn.solution import Solution

TINY = 1e-16  # where a logarithmic axis of relative numbers ends: rounding


def plot_convergence(estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """Draw how a fit came to its end: the objective, and how far model and weights were from stationary.

    The measures of stationarity are on the right axis, relative to the start of the fit; what fits by concentration
    steps has none. While the share that is trimmed still grows, the objective falls for that reason too.

    Parameters
    ----------
    estimator : a trimmed estimator, a Pipeline that ends in one, or a Solution
        After fit, or what `trimlearn.solve` returned.
    X, y : Ignored
        Not used: the course is that of the fit.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedPCA
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> plot_convergence(TrimmedPCA(2, random_state=0).fit(X)).get_xlabel()
    'passes over the data'
    """
    if isinstance(estimator, Solution):
        history, name = estimator.history, "solve"
    else:
        model = subject("plot_convergence", estimator).model
        history, name = model.history_, type(model).__name__
    ax = axes(ax)
    ink = colours(ax)
    passes, F = _trace(history, "passes"), _trace(history, "objective")
    ax.plot(passes, F, color=ink.accent, marker=".", label="objective")
    even_axis(ax, F)
    _draw_stationarity(ax, passes, history)
    end = f", F = {F[-1]:.4g}" if len(F) and np.isfinite(F[-1]) else ""
    steps = f"{len(F)} step{'' if len(F) == 1 else 's'}"
    label_axes(ax, "passes over the data", "objective", f"{name}: {steps}{end}")
    legend(ax)
    return ax


def _trace(history: Any, name: str) -> np.ndarray:
    return np.array([getattr(record, name) for record in history], dtype=np.float64)


def _draw_stationarity(ax: Any, passes: np.ndarray, history: Any) -> None:
    """On an axis of its own at the right, where it is known."""
    ink = colours(ax)
    curves = (("model", "stationarity_x", ink.doubt, "--"), ("weights", "stationarity_w", ink.good, ":"))
    known = [(word, _trace(history, name), color, style) for word, name, color, style in curves]
    known = [(word, np.where(values > TINY, values, np.nan), color, style) for word, values, color, style in known]
    known = [curve for curve in known if np.isfinite(curve[1]).any()]
    if not known:
        return
    right = ax.twinx()
    right.set_yscale("log")
    right.set_ylabel("how far from stationary")
    for word, values, color, style in known:
        there = np.isfinite(values)
        right.plot(passes[there], values[there], color=color, linestyle=style, marker=".", markersize=4)
        ax.plot([], [], color=color, linestyle=style, marker=".", markersize=4, label=f"{word} (right)")
