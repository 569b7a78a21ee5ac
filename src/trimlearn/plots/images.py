"""Pictures of pictures: a gallery of suspicious images, and matches between two photographs."""

from __future__ import annotations

from math import ceil, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Flags, Floats, Ints
from trimlearn.estimators.inputs import filled_numbers
from trimlearn.estimators.wrong_labels import LabelErrors
from trimlearn.geometry.mosaic.images import read_image
from trimlearn.geometry.panorama.estimator import TrimmedPanorama
from trimlearn.plots.canvas import axes, colours, label_axes, legend, one_line
from trimlearn.plots.names import labelled_rows, name_points, row_text
from trimlearn.plots.regression import dense
from trimlearn.plots.subject import Subject, subject

COLUMNS = 8  # of a gallery: as many as can be read in a notebook
CAPTION = 0.32  # of the height of an image, above it (a choice)
GAP = 0.12  # of the width of an image, between two (a choice)
MOST_LINES = 100  # matches of each kind that are drawn: more hide the photographs
APART = 0.03  # of the width of the first photograph, between the two (a choice)


def plot_gallery(
    estimator: Any, X: Any = None, y: Any = None, *, images: Any = None, label: Any = 24, ax: Any = None
) -> Any:
    """Draw the images that are least believed, with the label given → the label suggested.

    Parameters
    ----------
    estimator : a trimmed estimator of rows that are images, or a Pipeline that ends in one
        After fit; also what `trimlearn.label_errors` returned, with ``images``.
    X, y : array-like, optional
        Rows to judge; None for those of the fit.
    images : array-like of shape (n, height, width) or (n, height, width, 3), optional
        One for each row. None: the rows themselves, which must have height × height columns.
    label : int or list, default=24
        How many of the worst rows are drawn, or which ones: row numbers, or names of the index.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> from trimlearn import TrimmedLogisticRegression
    >>> from trimlearn.datasets import load_digits_contaminated
    >>> digits = load_digits_contaminated(fraction=0.1)
    >>> rows = digits.y < 3
    >>> model = TrimmedLogisticRegression(random_state=0).fit(digits.X[rows], digits.y[rows])
    >>> ax = plot_gallery(model, label=6)
    >>> len(ax.images), ax.texts[0].get_text()[1:4]
    (6, ' → ')
    """
    of = subject("plot_gallery", estimator, X, y)
    rows = labelled_rows(label, of.scores, of.names)
    if not len(rows):
        raise ValueError("label names no row: a gallery shows one at least.")
    seen = _images(of, images, rows)
    captions = _captions(of, rows)
    across = min(COLUMNS, len(rows))
    down = ceil(len(rows) / across)
    height, width = seen.shape[1] / max(seen.shape[1:3]), seen.shape[2] / max(seen.shape[1:3])
    ax = axes(ax, (0.85 * across + 0.4, (height + CAPTION) * 0.85 * down + 0.5))
    ink = colours(ax)
    low, high = float(np.nanmin(seen)), float(np.nanmax(seen))
    for k, (row, image, caption) in enumerate(zip(rows.tolist(), seen, captions, strict=True)):
        x, top = (k % across) * (width + GAP), (k // across) * (height + CAPTION)
        ax.imshow(image, cmap="gray_r", vmin=low, vmax=high, extent=(x, x + width, top + height, top))
        color = ink.muted if of.kept[row] else ink.bad
        ax.text(x + width / 2, top - 0.05, caption, ha="center", va="bottom", fontsize=8, color=color, parse_math=False)
    ax.set_xlim(-0.05, across * (width + GAP))
    ax.set_ylim(down * (height + CAPTION) - CAPTION + 0.05, -CAPTION)
    ax.set_aspect("equal")
    ax.set_axis_off()
    count = f"{int(np.count_nonzero(~of.kept)):,} of {len(of.kept):,} rows flagged"
    label_axes(ax, title=f"{count}: given → suggested" if of.kind == "labels" else of.title)
    return ax


def plot_matches(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    images: Any = None,
    pair: tuple[int, int] | None = None,
    label: Any = 0,
    ax: Any = None,
) -> Any:
    """Draw two photographs side by side, with lines between the matches: those that agree, and those that do not.

    Parameters
    ----------
    estimator : TrimmedHomography or TrimmedPanorama
        After fit.
    X, y : array-like of shape (n, 2), optional
        Matches to draw: src and dst, or the pairs of a panorama; None for those of the fit.
    images : sequence of paths or arrays, optional
        The two photographs; of a panorama, all of them. None: the points alone.
    pair : tuple of two ints, optional
        Which two images of a panorama; None for those with most matches.
    label : int or list, default=0
        How many of the worst matches are numbered, or which ones, among those of the two images.
    ax : Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    Axes
        Those drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.geometry import TrimmedHomography
    >>> rng = np.random.default_rng(0)
    >>> src, dst = rng.uniform(0, 1000, (2, 100, 2))
    >>> dst[:60] = src[:60] + 10.0 + rng.standard_normal((60, 2))
    >>> plot_matches(TrimmedHomography().fit(src, dst)).get_title()
    'TrimmedHomography: 41 of 100 matches flagged'
    """
    of = subject("plot_matches", estimator, X, y)
    src, dst, these, which, sizes = _pair(of, pair)
    kept = of.kept[these]
    left, right = _photographs(images, which, (src, dst), sizes)
    (h1, w1), (h2, w2) = left[0], right[0]
    shift = np.array([w1 * (1 + APART), 0.0])
    ax = axes(ax, (9.0, 0.6 + 9.0 * max(h1, h2) / (w1 * (1 + APART) + w2)))
    ink = colours(ax)
    for (size, pixels), x in ((left, 0.0), (right, float(shift[0]))):
        extent = (x - 0.5, x + size[1] - 0.5, size[0] - 0.5, -0.5)
        if pixels is not None:
            ax.imshow(pixels, cmap="gray", extent=extent)
        else:
            ax.plot([extent[0], extent[1], extent[1], extent[0], extent[0]],
                    [extent[2], extent[2], extent[3], extent[3], extent[2]], color=ink.line, linewidth=1.0)  # fmt: skip
    drawn = 0
    for word, chosen, color, alpha in (("flagged", ~kept, ink.bad, 0.5), ("kept", kept, ink.categories[5], 0.8)):
        drawn += _lines(ax, src[chosen], dst[chosen] + shift, color, alpha, word)
    ax.set_xlim(-1.0, float(shift[0]) + w2)
    ax.set_ylim(max(h1, h2), -1.0)
    ax.set_aspect("equal")
    ax.set_axis_off()
    rows = labelled_rows(label, of.scores[these], None)
    name_points(ax, src[:, 0], src[:, 1], rows, [str(row) for row in rows], ~kept)
    count = f"{int((~kept).sum()):,} of {len(kept):,} matches flagged"
    some = f" ({drawn} drawn)" if drawn < len(kept) else ""
    label_axes(ax, title=f"{type(of.model).__name__}: {count}{some}")
    legend(ax, below=0.4)
    return ax


# ---- the gallery ----


def _images(of: Subject, images: Any, rows: Ints) -> NDArray[Any]:
    """The images of some rows, (m, height, width) or with three colours."""
    n = len(of.scores)
    if images is not None:
        if len(images) != n:
            raise ValueError(f"images must be one for each of the {n} rows, got {len(images)}.")
        seen = np.stack([np.asarray(images[row]) for row in rows.tolist()])
        if seen.ndim not in (3, 4):
            raise ValueError(f"images must be (n, height, width) or (n, height, width, 3), got {np.shape(images)}.")
        return seen
    if isinstance(of.model, LabelErrors):
        raise ValueError("label_errors has not seen the images: give images=, one for each row.")
    data = filled_numbers(of.data.X)
    side = 0 if data is None else isqrt(data.shape[1])
    if data is None or side < 2 or side * side != data.shape[1]:
        raise ValueError("the rows are no square images: give images=, one for each row.")
    return dense(data[rows]).reshape(-1, side, side)


def _captions(of: Subject, rows: Ints) -> list[str]:
    if of.kind != "labels":
        return [row_text(row, of.names) for row in rows.tolist()]
    model = of.model
    table = model.table() if isinstance(model, LabelErrors) else model.outlier_table(of.X, of.y)
    place = {row: k for k, row in enumerate(table["row"].tolist())}
    pairs = [(table["given"][place[row]], table["suggested"][place[row]]) for row in rows.tolist()]
    return [f"{one_line(given)} → {one_line(suggested)}" for given, suggested in pairs]


# ---- matches ----


def _pair(of: Subject, pair: tuple[int, int] | None) -> tuple[Floats, Floats, Flags, tuple[int, int], Any]:
    """src, dst, which of all matches these are, the numbers of the two images, and their sizes (w, h) if known."""
    if not isinstance(of.model, TrimmedPanorama):
        return of.data.src, of.data.dst, np.ones(len(of.kept), dtype=bool), (0, 1), None
    pairs = of.data.pairs
    edges = pairs.edges
    if pair is None:
        number = int(np.argmax([len(p) for p in pairs.pairs]))
    elif tuple(pair) in edges:
        number = edges.index(tuple(pair))
    else:
        raise ValueError(f"pair must be two images that overlap, one of {edges}, got {pair!r}.")
    found = pairs.pairs[number]
    sizes = pairs.sizes[found.i], pairs.sizes[found.j]
    return found.src, found.dst, of.data.pair == number, edges[number], sizes


def _photographs(images: Any, which: tuple[int, int], points: tuple[Floats, Floats], sizes: Any) -> list[Any]:
    """((height, width), pixels or None) of both."""
    if images is not None:
        if len(images) <= max(which):
            raise ValueError(f"images must hold {max(which) + 1} photographs at least, got {len(images)}.")
        read = [read_image(images[k]) for k in which]
        return [(pixels.shape[:2], pixels) for pixels in read]
    if sizes is not None:
        return [((h, w), None) for w, h in sizes]
    return [((float(p[:, 1].max()) + 1.0, float(p[:, 0].max()) + 1.0), None) for p in points]


def _lines(ax: Any, start: Floats, end: Floats, color: str, alpha: float, word: str) -> int:
    """At most `MOST_LINES` of them, evenly chosen; how many."""
    from matplotlib.collections import LineCollection

    chosen = np.unique(np.linspace(0, max(len(start) - 1, 0), min(len(start), MOST_LINES)).astype(int))
    if len(chosen):
        segments = np.stack([start[chosen], end[chosen]], axis=1)
        ax.add_collection(
            LineCollection(list(segments), colors=color, linewidths=0.8, alpha=alpha, label=word), autolim=False
        )
        for points in (start[chosen], end[chosen]):
            ax.plot(*points.T, linestyle="none", marker="o", markersize=1.8, color=color, alpha=alpha)
    return len(chosen)
