"""Points with their names, none of which covers another."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from numbers import Integral
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Flags, Floats, Ints
from trimlearn.inference.outlier_table import written
from trimlearn.plots.canvas import colours, one_line

SIZE = 8.0  # points of the letters: the size of matplotlib's "small", rounded
RINGS = (4.0, 12.0, 24.0, 40.0, 60.0, 85.0, 115.0)  # points from a point to its name: growing steps (a choice)
# Which way a name lies from its point: first the corners, which cover least.
SIDES = ((1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))
FAR = 10.0  # points from which on a line leads from a point to its name: one letter (a choice)
RING_COST = 0.8  # points covered that a ring nearer is worth (a choice)
CROSSING = 8.0  # points covered that a line across another name is worth (a choice)
MOST_COVERED = 10.0  # beyond, a crowd is a crowd (a choice)
SEEN = 20_000  # points that names try not to cover: a limit on time, 0.1 s
STEP = 4.0  # points between the places along a line: half a letter
GAP = 1.0  # points between two names: they read as two


def labelled_rows(label: Any, scores: Floats, names: Sequence[Any] | NDArray[Any] | None) -> Ints:
    """The rows to name: so many of the worst, or those that were asked for, by number or by name.

    >>> labelled_rows(2, np.array([1.0, 9.0, np.inf]), None)
    array([2, 1])
    >>> labelled_rows(["Ann", 0], np.array([1.0, 9.0]), ["Bob", "Ann"])
    array([1, 0])
    """
    n = len(scores)
    if label is None or label is False:
        return np.zeros(0, dtype=np.int64)
    if isinstance(label, Integral) and not isinstance(label, bool):
        if label < 0:
            raise ValueError(f"label must be how many rows to name, or a list of them, got {label}.")
        return np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[: int(label)].astype(np.int64)
    if isinstance(label, (bool, str)) or not isinstance(label, Iterable):
        raise ValueError(f"label must be how many rows to name, or a list of them, got {label!r}.")
    known: dict[Any, int] = {}
    for row, name in reversed(list(enumerate(() if names is None else names))):
        known[name] = known[written(name)] = row
    return np.array([_row(entry, known, n) for entry in label], dtype=np.int64)


def row_text(row: int, names: Sequence[Any] | NDArray[Any] | None) -> str:
    """What a row is called: by its name, or by its number."""
    return ("" if names is None else one_line(written(names[row]))) or str(row)


def name_points(
    ax: Any,
    x: Floats,
    y: Floats,
    rows: Iterable[int],
    texts: Sequence[str],
    bad: Any = None,
    *,
    color: str | None = None,
    avoid: Floats | None = None,
    sides: Sequence[tuple[int, int]] = SIDES,
) -> None:
    """Write texts beside the points of some rows, those of ``bad`` ones in the colour of what is flagged; or all in
    one ``color``. They cover no text that is there already, and as few points, lines and places to ``avoid`` as can be.
    ``sides``: where a text may lie."""
    ax.autoscale_view()
    unit = 72.0 / ax.figure.dpi
    places = _in_points(ax, np.column_stack([x, y]), unit)
    frame = np.asarray(ax.get_window_extent().extents, dtype=np.float64) * unit
    dots = [places[:: max(1, len(places) // SEEN)], *_across(ax, frame, unit)]
    if avoid is not None:
        dots.append(_in_points(ax, avoid, unit))
    seen = np.concatenate(dots)
    sheet = _Sheet(frame, seen[np.isfinite(seen).all(axis=1)], tuple(sides), _written(ax, unit))
    ink = colours(ax)
    for row, text in zip(rows, texts, strict=True):
        size = _text_size(text)
        offset = sheet.place(places[row], size) if np.isfinite(places[row]).all() else None
        if offset is None:  # no room that is free: no name is better than two that cannot be read
            continue
        far = float(np.hypot(*_nearest(offset, size))) > FAR
        line = {"arrowstyle": "-", "color": ink.muted, "linewidth": 0.6, "shrinkA": 0.0, "shrinkB": 2.0}
        ax.annotate(
            text,
            (x[row], y[row]),
            xytext=(float(offset[0]), float(offset[1])),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=SIZE,
            parse_math=False,
            zorder=5,
            color=color or (ink.bad if bad is not None and bad[row] else ink.muted),
            arrowprops={**line, "relpos": tuple((_nearest(offset, size) - offset) / size)} if far else None,
        )


@final
@dataclass
class _Sheet:
    """What lies where already, in points: boxes are (left, bottom, right, top)."""

    frame: Floats
    dots: Floats
    sides: tuple[tuple[int, int], ...]
    boxes: list[Floats]
    lines: list[Floats] = field(default_factory=list)  # (10, 2) points along each

    def place(self, at: Floats, size: tuple[float, float]) -> Floats | None:
        """Where the lower left corner of a text goes, from its point; None where there is no room."""
        best = self._best(at, size, self.sides)
        if best is None:
            best = self._best(at, size, SIDES)
        if best is not None:
            self.boxes.append(np.concatenate([at + best, at + best + size]))
            self.lines.append(np.linspace(at, at + _nearest(best, size), 10))
        return best

    def _best(self, at: Floats, size: tuple[float, float], sides: tuple[tuple[int, int], ...]) -> Floats | None:
        best, least = None, np.inf
        for number, (reach, side) in enumerate(product(RINGS, sides)):
            offset = _offset(side, reach, size)
            box = np.concatenate([at + offset, at + offset + size])
            cost = RING_COST * (number // len(sides))
            if cost >= least or self._taken(box):
                continue
            cost += self._covered(box, at, at + _nearest(offset, size))
            if cost < least:
                best, least = offset, cost
        return best

    def _taken(self, box: Floats) -> bool:
        outside = np.any(box[:2] < self.frame[:2]) or np.any(box[2:] > self.frame[2:])
        return bool(outside) or any(
            bool(np.all(box[:2] < other[2:] + GAP) and np.all(other[:2] < box[2:] + GAP)) for other in self.boxes
        )

    def _covered(self, box: Floats, start: Floats, end: Floats) -> float:
        cost = min(MOST_COVERED, float(np.count_nonzero(_inside(self.dots, box, 1.5))))
        line = np.linspace(start, end, 10)
        crossed = sum(bool(_inside(line, other).any()) for other in self.boxes)
        return cost + CROSSING * (crossed + sum(bool(_inside(other, box).any()) for other in self.lines))


def _in_points(ax: Any, places: Floats, unit: float) -> Floats:
    """Places of the picture, in points of the page."""
    with np.errstate(all="ignore"):
        return np.asarray(ax.transData.transform(np.asarray(places, dtype=np.float64)), dtype=np.float64) * unit


def _across(ax: Any, frame: Floats, unit: float) -> list[Floats]:
    """Places along the lines that go across the picture: `canvas.line_at`."""
    found = []
    for line in ax.lines:
        x, y = (np.asarray(values) for values in line.get_data())
        if line.get_transform() == ax.transData or len(x) != 2:
            continue
        at = _in_points(ax, np.array([[x[0], y[0]]]), unit)[0]
        upright = x[0] == x[1]
        along = np.arange(frame[1], frame[3], STEP) if upright else np.arange(frame[0], frame[2], STEP)
        across = np.full(len(along), at[0] if upright else at[1])
        found.append(np.column_stack([across, along] if upright else [along, across]))
    return found


def _written(ax: Any, unit: float) -> list[Floats]:
    """The boxes of the names that were written before."""
    found = []
    for text in ax.texts:
        at = getattr(text, "xyann", None)  # of an annotation, the offset of its text
        if at is not None and text.get_text():
            corner = _in_points(ax, np.array([text.xy]), unit)[0] + at
            found.append(np.concatenate([corner, corner + _text_size(text.get_text())]))
    return found


def _row(entry: Any, known: dict[Any, int], n: int) -> int:
    if isinstance(entry, Integral) and not isinstance(entry, bool):
        if not -n <= int(entry) < n:
            raise ValueError(f"label names row {entry}, and there are {n} rows, from 0 on.")
        return int(entry) % n
    if entry not in known:
        raise ValueError(f"label names {entry!r}, and no row is called so; give names of the index, or row numbers.")
    return known[entry]


def _offset(side: tuple[int, int], reach: float, size: tuple[float, float]) -> Floats:
    """The corner of a text that lies on one side of its point."""
    along = [reach * s * (0.75 if all(side) else 1.0) + w * (s - 1) / 2 for s, w in zip(side, size, strict=True)]
    return np.array(along)


def _nearest(offset: Floats, size: tuple[float, float]) -> Floats:
    """The place of the text that is nearest to its point."""
    return np.clip(np.zeros(2), offset, offset + size)


def _inside(points: Floats, box: Floats, margin: float = 0.0) -> Flags:
    return np.asarray(np.all((points > box[:2] - margin) & (points < box[2:] + margin), axis=1))


def _text_size(text: str) -> tuple[float, float]:
    """Width and height in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():  # of letters that the font does not have: to be drawn, they warn again
        warnings.simplefilter("ignore")
        width, height, _ = text_to_path.get_text_width_height_descent(text or " ", FontProperties(size=SIZE), False)
    return float(width) + 1.0, max(float(height), SIZE) + 1.0
