"""What a model is made of: coefficients beside those of the plain fit, and the axes of a PCA."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from trimlearn._utils.arrays import Floats
from trimlearn.plots.canvas import axes, colours, label_axes, legend, one_line, tick_text
from trimlearn.plots.names import labelled_rows, name_points
from trimlearn.plots.regression import dense
from trimlearn.plots.rows import draw_rows
from trimlearn.plots.subject import Subject, nameless, subject

MOST = 20  # coefficients in one picture: more lines are too thin to be read
ARROWS = 12  # features of a biplot that are drawn, the longest arrows: more names cover one another
REACH = 0.85  # of the picture, that the longest arrow takes (a choice)
TINY = 1e-300  # a length that one may divide by
QUARTILES = 1.349  # between the quartiles of a normal law, in standard deviations


def plot_coefficients(
    estimator: Any, X: Any = None, y: Any = None, *, label: Any = MOST, level: float = 0.95, ax: Any = None
) -> Any:
    """Draw the coefficients of the trimmed fit beside those of the plain one, which trusts every row.

    Each is multiplied by the spread of its feature (that of the middle half of the rows), so that features of
    different units can be compared. Where the model has confidence intervals, they are drawn too. The plain fit is
    the same estimator with ``contamination=0``.

    Parameters
    ----------
    estimator : a trimmed linear model (regression, GLM, logistic), or a Pipeline that ends in one
        After fit.
    X, y : array-like, optional
        The training data again, for an estimator that was unpickled.
    label : int or list, default=20
        How many coefficients are drawn at most, those that moved most; or which ones: by number, or by name.
    level : float, default=0.95
        Of the intervals.
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
    >>> ax = plot_coefficients(TrimmedLinearRegression(random_state=0).fit(x[:, None], y))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0']
    """
    of = subject("plot_coefficients", estimator, X, y)
    model, data = of.model, of.data
    plain = _plain(model, data)
    spread = _spread(data.X)
    before, after = (np.atleast_2d(fit.coef_) * spread for fit in (plain, model))
    names = _coefficient_names(of, after.shape)
    shown = np.sort(labelled_rows(label, np.abs(after - before).ravel(), names))
    if not len(shown):
        raise ValueError("label names no coefficient: a picture shows one at least.")
    place = np.arange(len(shown))[::-1]
    ax = axes(ax, (6.4, 1.6 + 0.28 * max(len(shown), 3)))
    ink = colours(ax)
    ax.axvline(0.0, color=ink.line, zorder=0)
    b, a = before.ravel()[shown], after.ravel()[shown]
    for fit, values, shift, color, marker, word in (
        (plain, b, -0.14, ink.muted, "o", "plain fit"), (model, a, 0.14, ink.accent, "D", "trimmed fit"),
    ):  # fmt: skip
        given = {"X": of.X, "y": of.y} if fit is model else {}
        ends = _intervals(fit, given, level, spread, after.shape)
        if ends is not None:
            ax.hlines(place + shift, *ends[shown].T, color=color, linewidth=1.2)
        ax.plot(values, place + shift, linestyle="none", marker=marker, markersize=4.5, color=color, label=word)
    ax.set_yticks(place, [tick_text(names[j]) for j in shown], fontsize=8)
    ax.set_ylim(-0.7, len(shown) - 0.3)
    left = f", {len(shown)} of {after.size}" if len(shown) < after.size else ""
    label_axes(ax, "coefficient × spread of its feature", title=f"{type(model).__name__}: coefficients{left}")
    legend(ax)
    return ax


def plot_biplot(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    components: tuple[int, int] = (0, 1),
    label: Any = 5,
    ax: Any = None,
) -> Any:
    """Draw the rows along two principal components, and the features as arrows.

    An arrow points to where a feature grows; rows far along it have much of that feature (Gabriel 1971). The longest
    arrows are drawn.

    Parameters
    ----------
    estimator : TrimmedPCA, or a Pipeline that ends in one
        After fit, with two components at least.
    X, y : array-like, optional
        Rows to draw; None for those of the fit. y is not used.
    components : tuple of two ints, default=(0, 1)
        Which components.
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
    >>> plot_biplot(TrimmedPCA(2, random_state=0).fit(load_judges().data)).get_xlabel()
    'component 1 (87 %)'
    """
    of = subject("plot_biplot", estimator, X, y)
    model = of.model
    i, j = _components(components, model.n_components_)
    with nameless():
        z = np.asarray(model.transform(of.data.X), dtype=np.float64)[:, [i, j]]
    ax = axes(ax)
    ink = colours(ax)
    arrows = (model.components_[[i, j]] * np.sqrt(model.explained_variance_[[i, j]])[:, None]).T
    length = np.hypot(*arrows.T)
    chosen = np.argsort(-length, kind="stable")[:ARROWS]
    kept = z[of.kept] if of.kept.any() else z
    tips = arrows * REACH * float(np.abs(kept).max(initial=0.0)) / max(float(length.max(initial=0.0)), TINY)
    for tip in tips[chosen]:
        ax.annotate(
            "", tip, (0.0, 0.0), zorder=3, arrowprops={"arrowstyle": "->", "color": ink.doubt, "linewidth": 1.1}
        )
    ax.update_datalim(tips[chosen])
    along = np.concatenate([np.linspace(0.0, tip, 40) for tip in tips[chosen]])
    draw_rows(ax, of, z[:, 0], z[:, 1], label, (None, None), avoid=along)
    names = [one_line(name) for name in of.features(len(arrows))]
    words = [names[feature] for feature in chosen]
    name_points(ax, tips[:, 0], tips[:, 1], chosen, words, color=ink.doubt, avoid=np.vstack([along, z]))
    part = 100 * model.explained_variance_ratio_
    label_axes(ax, f"component {i + 1} ({part[i]:.2g} %)", f"component {j + 1} ({part[j]:.2g} %)", of.title)
    legend(ax)
    return ax


def _plain(model: Any, data: Any) -> Any:
    """The same model fitted to all rows as they are."""
    plain = clone(model).set_params(contamination=0.0)
    target = data.t if "classes_" not in vars(model) else model.classes_[data.t]
    with warnings.catch_warnings():  # what it would warn of is not the user's model
        warnings.simplefilter("ignore")
        return plain.fit(data.X, target, sample_weight=data.s)


def _spread(X: Any) -> Floats:
    """Of each column, between the quartiles; its standard deviation where these are equal."""
    A = dense(X)
    low, high = np.quantile(A, [0.25, 0.75], axis=0)
    middle = (high - low) / QUARTILES
    return np.asarray(np.where(middle > 0, middle, np.std(A, axis=0)))


def _intervals(fit: Any, given: dict[str, Any], level: float, spread: Floats, shape: tuple[int, ...]) -> Floats | None:
    """The ends of the intervals of all coefficients, without the intercepts; None where there are none."""
    try:
        found = fit.inference(**given).conf_int(level)
    except ValueError:  # a penalty that selects, a loss that is no likelihood, as many coefficients as rows
        return None
    rows, columns = shape
    if rows == 1 and len(found) not in (columns, columns + 1):
        return None
    ends = found.reshape(rows, -1, 2)[:, -columns:]
    return np.where(np.isfinite(ends), ends * spread[:, None], np.nan).reshape(-1, 2)


def _coefficient_names(of: Subject, shape: tuple[int, ...]) -> list[str]:
    features = [one_line(name) for name in of.features(shape[1])]
    if shape[0] == 1:
        return features
    return [f"{name} → {one_line(label)}" for label in of.model.classes_ for name in features]


def _components(components: Any, count: int) -> tuple[int, int]:
    if count < 2:
        raise ValueError("a biplot needs two components, and the PCA has one: fit TrimmedPCA(2), or use plot_scores.")
    i, j = components
    if not (0 <= i < count and 0 <= j < count and i != j):
        raise ValueError(f"components must be two different numbers from 0 to {count - 1}, got {components!r}.")
    return int(i), int(j)
