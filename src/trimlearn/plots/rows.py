"""Rows as points: kept and flagged ones, infinite ones at the edge, the worst by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn._utils.arrays import Flags, Floats
from trimlearn.plots.canvas import colours, drawable, wide
from trimlearn.plots.names import labelled_rows, name_points, row_text
from trimlearn.plots.subject import Subject

MANY = 5_000  # points from which on they are drawn as pixels in a vector file, which would grow too large
SMALLER = 1_000  # points from which on they are drawn smaller, so that they can be told apart (a choice)


def draw_rows(
    ax: Any,
    of: Subject,
    x: Floats,
    y: Floats,
    label: Any,
    units: tuple[float | None, float | None],
    *,
    together: bool = False,
    avoid: Floats | None = None,
) -> None:
    """Draw rows at (x, y), and name some. ``units``: up to where each axis is linear for certain; None: all of it, NaN:
    some times the median.
    ``together``: both axes are logarithmic if one has to be. ``avoid``: places that no name shall cover."""
    scores, kept = of.scores, of.kept
    rows = labelled_rows(label, scores, of.names)
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    (x, off_x), (y, off_y) = (drawable(v, unit or 1.0) for v, unit in zip((x, y), units, strict=True))
    beyond = off_x | off_y
    ink, small = colours(ax), len(kept) > SMALLER
    looks: tuple[tuple[str, Flags, dict[str, Any]], ...] = (
        ("kept", kept & ~beyond, {"color": ink.accent, "s": 6 if small else 16, "alpha": 0.5 if small else 0.8}),
        ("flagged", ~kept & ~beyond, {"color": ink.bad, "s": 14 if small else 24, "marker": "s"}),
        ("infinitely far", beyond, {"color": ink.bad, "s": 34, "marker": "^"}),
    )
    for name, these, look in looks:
        if these.any():
            crowd = int(these.sum()) > MANY
            ax.scatter(x[these], y[these], label=name, linewidths=0, rasterized=crowd, zorder=2, **look)
    for which, values, unit in (("x", x, units[0]), ("y", y, units[1])):
        if unit is not None:
            wide(ax, which, values, unit, np.concatenate([x, y]) if together else None)
    ax.margins(0.08)
    name_points(ax, x, y, rows, [row_text(row, of.names) for row in rows.tolist()], ~kept, avoid=avoid)
