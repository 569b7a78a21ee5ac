"""What all charts of the report share: words, numbers that are short, axes, and points that are few enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trimlearn._utils.arrays import Flags, Floats, Ints

Spec = dict[str, Any]
RowNames = Callable[[int], str]  # what a row is called

DIGITS = 4  # significant ones of a number in a chart: a pixel is a thousandth of its width
WIDE = 10.0  # times the median: from there on, half of the points would share a tenth of a linear axis
DRAWN = 2_000  # points that fit: more only make the cloud darker, and the file larger
FLAGGED = 4_000  # points that are flagged and drawn, at most: some 200 kB a chart
WORST = 1_000  # of these, the worst: those that one looks for by name
FAR = 100  # of the points that fit, the furthest out: each can be seen alone, and a sample would miss most of them
NAMED = 40  # points that may be named: a screen has room for about 15 of them
OTHERS = 3  # points that are not flagged and may be named: one wants to know what is furthest out
LISTED = 50  # lines of the table of a chart: more are not read, and the page has the whole list of suspects
NAME = 40  # letters of a column's name in a sentence: more push the sentence out of sight
PERCENT = "\N{NO-BREAK SPACE}%"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")  # numbers spelled out in English


def say(value: float | None, digits: int = 3) -> str:
    """A number for people.

    >>> say(21995.4), say(0.01234), say(-2.5), say(None)
    ('21,995', '0.0123', '−2.5', '–')
    """
    if value is None or not np.isfinite(value):
        return "–"
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e9:
        text = f"{value:.{digits - 1}e}"
    else:
        text = f"{value:,.0f}" if size >= 10 ** (digits - 1) else f"{float(f'{value:.{digits}g}'):,.12g}"
    return text.replace("-", "−")


def share(value: float) -> str:
    """A share in percent.

    The sign stays on the line of its number.

    >>> [share(value).replace(PERCENT, " %") for value in (0.125, 0.075, 0.004, 1.0, 0.0001, 0.9999)]
    ['12 %', '7.5 %', '0.4 %', '100 %', 'under 0.1 %', 'over 99.9 %']
    """
    if 0 < value < 0.001:
        return f"under 0.1{PERCENT}"
    if 0.999 < value < 1:
        return f"over 99.9{PERCENT}"
    if 0.9905 < value < 1:
        return f"{100 * value:.1f}{PERCENT}"
    return f"{100 * value:.2g}{PERCENT}" if value < 0.0995 else f"{100 * value:.0f}{PERCENT}"


def short(name: object, most: int = NAME) -> str:
    """A name that fits into a sentence.

    >>> short("species"), short("what the keeper wrote down on the day", 20)
    ('species', 'what the keeper wro…')
    """
    text = str(name)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def counted(count: int, one: str, many: str | None = None, *, start: bool = False) -> str:
    """A number of things in words; ``start``: at the start of a sentence.

    >>> counted(1, "cell"), counted(2, "row", start=True), counted(1200, "cell"), counted(0, "row", start=True)
    ('one cell', 'Two rows', '1,200 cells', 'No row')
    """
    word = WORDS[count] if count < len(WORDS) else f"{count:,}"
    thing = one if count <= 1 else many or f"{one}s"
    return f"{word[0].upper()}{word[1:]} {thing}" if start else f"{word} {thing}"


def numbers(values: ArrayLike) -> list[float | int | None]:
    """Numbers as JSON has them, rounded to the digits that can be seen; None for what is not finite.

    >>> numbers([1 / 3, np.nan, 123456.0, 2.0])
    [0.3333, None, 123500, 2]
    """
    rounded = [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=np.float64).ravel().tolist()]
    return [None if not np.isfinite(v) else int(v) if v.is_integer() and abs(v) < 1e15 else v for v in rounded]


@final
@dataclass(frozen=True)
class Cloud:
    """Rows as points: what each is called, whether it is flagged, how bad it is, and what its mark means."""

    names: RowNames
    flagged: Flags
    worst: Floats
    role: NDArray[np.str_]
    words: Mapping[str, str]  # role → what it says; the order is that of the key

    def points(self, x: Floats, y: Floats, rows: Ints, far: Floats) -> tuple[Spec, str]:
        """Of these rows the points at (x, y), their groups and which to name; and a sentence on those left out.

        The worst of the flagged ones are named first. ``x``, ``y`` and ``far``, how far out they lie: of all rows.
        """
        rows, note = rows_to_draw(rows, self.flagged, far, self.worst)
        there = [role for role in self.words if np.any(self.role[rows] == role)]
        groups = [{"role": r, "name": self.words[r], "count": int(np.sum(self.role == r))} for r in there]
        group = [there.index(str(role)) for role in self.role[rows]]
        name = [self.names(row) for row in rows.tolist()]
        drawn = {"x": numbers(x[rows]), "y": numbers(y[rows]), "group": group, "name": name}
        marked, order = self.role[rows] != "fits", np.argsort(-self.worst[rows], kind="stable")
        label = np.concatenate([order[marked[order]][:NAMED], order[~marked[order]][:OTHERS]])
        return {"points": drawn, "groups": groups, "label": label.tolist()}, note

    def ranks(self, rows: Ints) -> Floats:
        """The place of each of these rows, the worst first; NaN of all others."""
        rank = np.full(len(self.worst), np.nan)
        rank[rows[np.argsort(-self.worst[rows], kind="stable")]] = np.arange(1, len(rows) + 1)
        return rank


def axis(label: str, values: ArrayLike, wide: float = WIDE, **more: Any) -> Spec:
    """An axis for these values: logarithmic, or so on both sides of 0, where few of them are far beyond the others.

    >>> axis("price", [1.0, 2.0, 3.0])["shape"], axis("price", [1.0, 2.0, 900.0])["shape"]
    ('linear', 'log')
    >>> axis("residual", [-1.0, 0.5, 900.0])
    {'label': 'residual', 'shape': 'signed', 'unit': 1}

    ``zero=True``: the axis shows 0, which a logarithm never does.
    """
    v = np.asarray(values, dtype=np.float64)
    size = np.abs(v[np.isfinite(v)])
    middle = float(np.median(size[size > 0])) if np.any(size > 0) else 1.0
    if size.size == 0 or size.max() <= wide * middle:
        return {"label": label, "shape": "linear", **more}
    if np.min(v[np.isfinite(v)]) > middle / WIDE**2 and not more.get("zero"):
        return {"label": label, "shape": "log", **more}
    return {"label": label, "shape": "signed", "unit": numbers([middle])[0], **more}


def rows_to_draw(rows: Ints, flagged: Flags, far: Floats, worst: Floats) -> tuple[Ints, str]:
    """The rows to draw, and a sentence on those that are not, "" where all are.

    Parameters
    ----------
    rows : ndarray of int
        Those that could be drawn.
    flagged : ndarray of bool, one per row of the table
        All of them are drawn, unless they are more than a page can hold: then the worst.
    far, worst : ndarray of float, one per row of the table
        How far out a row lies, and how bad it is.

    Returns
    -------
    rows : ndarray of int
        Increasing.
    note : str
        What was left out.
    """
    bad, good = rows[flagged[rows]], rows[~flagged[rows]]
    notes = []
    if len(bad) > FLAGGED:
        notes.append(f"{FLAGGED:,} of {len(bad):,} flagged rows")
        bad = _first_and_some(bad, worst, WORST, FLAGGED)
    if len(good) > DRAWN:
        notes.append(f"{DRAWN:,} of {len(good):,} others")
        good = _first_and_some(good, np.abs(far), FAR, DRAWN)
    note = f"Drawn are {' and '.join(notes)}: the outermost, and some by chance." if notes else ""
    return np.sort(np.concatenate([bad, good])), note


def _first_and_some(rows: Ints, size: Floats, first: int, count: int) -> Ints:
    """The first rows by size, and as many others by chance as make the count."""
    order = rows[np.argsort(-size[rows], kind="stable")]
    lot = np.random.default_rng(0).choice(order[first:], count - first, replace=False)
    return np.concatenate([order[:first], lot])


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], total: int | None = None) -> Spec:
    """The numbers of a chart, as text; no more lines than anybody reads."""
    shown = [[say(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in rows[:LISTED]]
    spec: Spec = {"head": list(head), "rows": shown}
    if (total or len(rows)) > len(shown):
        spec["note"] = f"The first {len(shown)} of {total or len(rows):,}."
    return spec
