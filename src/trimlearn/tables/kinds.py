"""What a column holds: numbers, dates, categories, or what no model uses."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Flags, Floats, Ints
from trimlearn._utils.text import plural
from trimlearn.tables.cells import Cells, is_missing_number
from trimlearn.tables.dates import COMPACT_YEARS, FEWEST_COMPACT, read_dates, read_times
from trimlearn.tables.numbers import Decimal, mixed_units, read_many, read_numbers
from trimlearn.tables.table import Kind, shown_words
from trimlearn.tables.words import (
    ID_HEADING,
    MOST_CATEGORIES,
    NAMED_ROWS,
    PER_CATEGORY,
    Reading,
    count_cells,
    nothing,
    read_words,
)

READ = 0.8  # of the cells must be numbers, or dates, for a column to hold them, as for CellwiseOutliers
MOSTLY = 0.8  # of the numbers of rows must be as they should be: a tenth of them may be wrong cells, at two steps each
FEW_VALUES = 10  # apart, whole numbers may be ratings or codes: their range is told, so that a reader can object
FEWEST_CODES = 10  # rows before two whole numbers are taken for yes and no
FEWEST_COUNTED = 20  # rows before 1, 2, 3, … under any heading is taken for their numbers
TIME_HEADING = re.compile(r"(?i).*(time|day|week|month|year|hour|date|period|age|trial|order|step|dose|rank).*|[tx]")


def read_column(
    cells: Cells, heading: str, forced: Kind | None, decimal: Decimal | None = None, day_first: bool | None = None
) -> Reading:
    """Read a column of strings as what it looks like, or as ``forced``.

    ``decimal`` and ``day_first`` are what the other columns tell.
    """
    if forced in (None, "number") and decimal is None:
        plain = cells.plain_numbers()
        if plain is not None and not (plain[1] and np.all(np.isnan(plain[0]))):  # words only are words
            return _of_plain(cells, *plain, heading, forced)
    if forced == "number":
        return _numbers(cells, heading, forced, decimal) or _times(cells, 0.0) or _nothing_like(cells, heading, forced)
    if forced == "date":
        return _dates(cells, 0.0, day_first, compact=True) or _nothing_like(cells, heading, forced)
    if forced in ("category", "id"):
        return read_words(cells, heading, forced)
    return _guessed(cells, heading, decimal, day_first) or _of_words(cells, heading)


def _of_words(cells: Cells, heading: str) -> Reading:
    """Words; of amounts in several currencies or units it is said that they are no numbers together."""
    found = read_words(cells, heading, None)
    if found.kind in ("id", "text") and (units := mixed_units(cells.sample())):
        listed = " and ".join(units)
        found.kind, found.how, found.names_rows = "text", f"numbers in {listed}", 0.0
        found.notes.append(f"numbers in {listed} are not judged together; give all in one unit")
    return found


def _guessed(cells: Cells, heading: str, decimal: Decimal | None, day_first: bool | None) -> Reading | None:
    """Numbers, dates or times, if some rows look like it; None for words."""
    some = cells.sample()
    likely = READ / 2 * len(some)
    found = None
    if some and np.sum(~np.isnan(read_numbers(some, [1] * len(some)).values)) >= likely:
        found = _numbers(cells, heading, None, decimal)
    if found is None and some and np.sum(~np.isnat(read_dates(some).values)) >= likely:
        found = _dates(cells, READ, day_first)
    if found is None and some and np.sum(~np.isnan(read_times(some))) >= likely:
        found = _times(cells, READ)
    return found


def _nothing_like(cells: Cells, heading: str, forced: Kind) -> Reading:
    """No values at all; or an error where there are some, but none as the user says."""
    others = [word for word in cells.words if not is_missing_number(word)]
    if others:
        raise ValueError(f'{forced}: no cell of the column "{heading}" is a {forced}: {shown_words(others)}.')
    return nothing(cells)


def read_typed(values: Any, cells: Cells, heading: str, forced: Kind | None) -> Reading:
    """Read a column whose values have a type already: float64, datetime64; "words" or "category" for strings."""
    if isinstance(values, str) and values == "category" and forced is None and len(cells.words) <= MOST_CATEGORIES:
        found = read_words(cells, heading, None)
        return found if found.kind in ("constant", "empty") else read_words(cells, heading, "category")
    if isinstance(values, str) or forced in ("category", "id"):
        return read_words(cells, heading, forced)
    if values.dtype.kind == "M":
        if forced == "number":
            raise ValueError(f'number: the column "{heading}" holds dates; give it as a date, or drop it.')
        timed = bool(np.any(values[~np.isnat(values)].astype("M8[D]") != values[~np.isnat(values)]))
        return Reading("date", values, "dates and times" if timed else "dates", int(np.isnat(values).sum()))
    found = _of_numbers(cells, values, heading, forced, "")
    if found.unreadable:
        found.notes.append(f"infinite numbers count as missing ({len(found.unreadable):,} cells)")
    return found


def _of_plain(cells: Cells, numbers: Floats, words: Counter[str], heading: str, forced: Kind | None) -> Reading:
    unknown = np.isnan(numbers)
    known = numbers[~unknown] if unknown.any() else numbers
    if not len(known):
        return nothing(cells)
    whole = _are_whole(known)
    if whole and forced is None:
        if cells.has_leading_zeros():
            return read_words(cells, heading, None, "codes with leading zeros")
        if _may_be_compact_dates(known) and (found := _dates(cells, 1.0, None, compact=True)):
            return found
    found = _of_numbers(cells, numbers, heading, forced, "")
    found.words = words
    return found


def _may_be_compact_dates(known: Floats) -> bool:
    low, high = COMPACT_YEARS[0] * 10_000, (COMPACT_YEARS[1] + 1) * 10_000
    if not (low < known.min() and known.max() < high):
        return False
    month, day = known // 100 % 100, known % 100
    different = len(np.unique(known)) >= FEWEST_COMPACT
    return different and bool(np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def _of_numbers(cells: Cells, numbers: Floats, heading: str, forced: Kind | None, how: str) -> Reading:
    """Numbers, unless they are all the same, yes and no, or number the rows."""
    finite = np.isfinite(numbers)
    known = numbers if finite.all() else numbers[finite]
    if not len(known):
        return nothing(cells)
    low, high = float(known.min()), float(known.max())
    whole = _are_whole(known)
    few = f" from {low:.0f} to {high:.0f}" if whole and not how and high - low <= FEW_VALUES else ""
    how = ("whole numbers" if whole else "numbers") + few + how
    found = Reading("number", numbers, how, int(np.sum(~finite)))
    if len(known) < len(numbers):
        found.unreadable = tuple(np.flatnonzero(np.isinf(numbers)).tolist())
        found.values = numbers = np.where(finite, numbers, np.nan)
    if forced is not None:
        return found
    if low == high:
        found.kind, found.how, found.values = "constant", "always the same", _as_words(numbers)
    elif (
        heading == "Unnamed: 0" and np.mean(known == np.rint(known)) >= MOSTLY and np.mean(np.diff(known) > 0) >= MOSTLY
    ):
        found.kind, found.how, found.values, found.names_rows = "id", "numbers the rows", _as_words(numbers), 1.0
    elif ID_HEADING.fullmatch(heading) and np.mean(known == np.rint(known)) >= MOSTLY:
        return _codes(cells, numbers, known, found)
    elif len(known) == cells.rows >= FEWEST_COUNTED and _counts_rows(known, heading):
        found.kind, found.how, found.values, found.names_rows = "id", "counts the rows", _as_words(numbers), 1.0
    elif whole and len(known) >= FEWEST_CODES and bool(np.all((known == low) | (known == high))):
        found.kind, found.values = "category", _as_words(numbers)
        found.how = f"two values, {low:.15g} and {high:.15g}"
    return found


def _are_whole(known: Floats) -> bool:
    return all(bool(np.all(some == np.rint(some))) for some in (known[:100], known))  # the first are a quick no


def _counts_rows(known: Floats, heading: str) -> bool:
    """Whether they are 0, 1, 2, … or 1, 2, 3, …, wrong cells apart; the first rows are a quick no for most columns."""
    for some in (known[:100], known):
        ahead = some - np.arange(len(some))
        if max(np.mean(ahead == 0), np.mean(ahead == 1)) < MOSTLY:
            return False
    return not TIME_HEADING.fullmatch(heading)


def _codes(cells: Cells, numbers: Floats, known: Floats, found: Reading) -> Reading:
    """Whole numbers under a heading such as "id": never quantities."""
    different = len(np.unique(known))
    found.values = _as_words(numbers)
    if different >= NAMED_ROWS * len(known):
        found.kind, found.how, found.names_rows = "id", "all different, by its heading an id", 1.0
    elif different <= min(MOST_CATEGORIES, len(known) / PER_CATEGORY):
        found.kind, found.how = "category", f"codes by its heading, {different} different"
    else:
        found.kind, found.how = "text", f"codes by its heading, {different:,} different"
    return found


def _as_words(numbers: Floats) -> NDArray[Any]:
    different, codes = np.unique(numbers, return_inverse=True)
    words = np.array([None if np.isnan(x) else f"{x:.15g}" for x in different.tolist()], dtype=object)
    return np.asarray(words[codes])


def _numbers(cells: Cells, heading: str, forced: Kind | None, decimal: Decimal | None) -> Reading | None:
    """The column as numbers, or None where too few cells are."""
    known = _Known.of(cells)
    read = read_many(known.words, known.counts.tolist(), decimal)
    readable = ~np.isnan(read.values)
    if not known.enough(readable, 0.0 if forced else READ):
        return None
    if forced is None and not read.how and cells.has_leading_zeros():
        return read_words(cells, heading, None, "codes with leading zeros")
    two = len(np.unique(read.values[readable])) == 2 and known.counts.sum() >= FEWEST_CODES
    if forced is None and read.how and two:
        return None  # "2WD" and "4WD" are no numbers
    found = _of_numbers(cells, known.spread(read.values, np.nan), heading, forced, read.how)
    known.note(found, readable & ~np.isinf(read.values), "numbers" if found.kind != "empty" else "")
    found.notes += list(read.notes)
    found.doubt, found.proved = read.doubt, read.proved
    return found


def _dates(cells: Cells, share: float, day_first: bool | None, compact: bool = False) -> Reading | None:
    known = _Known.of(cells)
    read = read_dates(known.words, day_first, compact)
    found = known.reading("date", read.values, np.datetime64("NaT", "us"), share, "dates", read.how)
    if found is not None:
        found.doubt, found.day_first = read.doubt, read.day_first
    return found


def _times(cells: Cells, share: float) -> Reading | None:
    known = _Known.of(cells)
    return known.reading("number", read_times(known.words), np.nan, share, "times", "times, in hours")


@final
@dataclass(frozen=True)
class _Known:
    """The different words of a column that say something, their places among all its words, and how often each is
    there."""

    cells: Cells
    places: Ints
    words: list[str]
    counts: Ints

    @classmethod
    def of(cls, cells: Cells) -> _Known:
        places = np.flatnonzero([not is_missing_number(word) for word in cells.words])
        return cls(cells, places, [cells.words[j] for j in places.tolist()], cells.counts[places])

    def enough(self, readable: Flags, share: float) -> bool:
        """Whether some could be read, and this share of the cells."""
        return bool(readable.any() and self.counts[readable].sum() >= share * self.counts.sum())

    def reading(
        self, kind: Kind, values: NDArray[Any], missing: Any, share: float, what: str, how: str
    ) -> Reading | None:
        """The column by the ``values`` of its words, NaN or NaT of what is none; None where too few can be read."""
        readable = values == values  # NaN and NaT are not the same as themselves
        if not self.enough(readable, share):
            return None
        cells = self.spread(values, missing)
        found = Reading(kind, cells, how, int(np.sum(cells != cells)))
        self.note(found, readable, what)
        return found

    def spread(self, values: NDArray[Any], missing: Any) -> NDArray[Any]:
        """The value of each cell, from those of the words."""
        by_word = np.full(len(self.cells.words), missing)
        by_word[self.places] = values
        return np.asarray(by_word[self.cells.codes])

    def note(self, found: Reading, readable: Flags, what: str) -> None:
        """Put down what counted as missing, and which cells could not be read as ``what``; "" where none should."""
        missing = np.ones(len(self.cells.words), dtype=bool)
        missing[self.places] = False
        found.words = count_cells(self.cells, missing.tolist())
        bad = np.zeros(len(self.cells.words), dtype=bool)
        bad[self.places[~readable]] = bool(what)
        if count := np.count_nonzero(bad[self.cells.codes]):
            found.unreadable = tuple(np.flatnonzero(bad[self.cells.codes]).tolist())
            words = [self.cells.words[j] for j in np.flatnonzero(bad).tolist()]
            are = plural(count, f"cell is no {what[:-1]} and counts", f"cells are no {what} and count")
            found.notes.append(f"{are} as missing: {shown_words(words)}")
