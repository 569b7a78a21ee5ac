"""What a column holds: numbers, dates, categories, or what no model uses."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.tables.cells import Cells, is_missing, is_missing_number
from trimlearn.tables.dates import COMPACT_YEARS, FEWEST_COMPACT, read_dates, read_times
from trimlearn.tables.numbers import Decimal, read_numbers
from trimlearn.tables.raw import shown_words
from trimlearn.tables.table import Kind

__all__ = ["Reading", "read_column", "read_typed"]

Floats = NDArray[np.float64]

READ = 0.8  # of the cells must be numbers, or dates, for a column to hold them, as for CellwiseOutliers
MOST_CATEGORIES = 255  # as many as scikit-learn's histogram boosting takes; beyond, words are text
PER_CATEGORY = 2  # rows that a category has on average: otherwise the words name rows
NAMED_ROWS = 0.95  # of the cells must differ for words to name the rows: a few rows may be there twice
LONGEST_NAME = 60  # letters of a typical name; longer ones are sentences
FEWEST_CODES = 10  # rows before two whole numbers are taken for yes and no
FEWEST_COUNTED = 20  # rows before 1, 2, 3, … under any heading is taken for their numbers
YES_NO = [{"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"}, {"ja", "nein"}, {"oui", "non"}, {"on", "off"}]
ID_HEADING = re.compile(
    r"(?i:id|index|idx|nr|no\.?|#|row|row ?names?|row.?id|obs|observation|case|key|uuid|guid|.*[_\s.-]id|id[_\s.-].*|"
    r"unnamed: \d+)|.*[a-z](Id|ID)"
)
TIME_HEADING = re.compile(r"(?i).*(time|day|week|month|year|hour|date|period|age|trial|order|step|dose|rank).*|[tx]")
DIGITS = re.compile(r"\d")


@final
@dataclass
class Reading:
    """What a column was read as. ``words``: what counted as missing, and how often, empty cells apart."""

    kind: Kind
    values: Any
    how: str
    missing: int
    unreadable: tuple[int, ...] = ()
    words: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    doubt: str = ""  # what other columns may settle
    proved: Decimal | None = None
    day_first: bool | None = None
    names_rows: float = 0.0  # how well it names them: the best column becomes the id


def read_column(
    cells: Cells, heading: str, forced: Kind | None, decimal: Decimal | None = None, day_first: bool | None = None
) -> Reading:
    """Read a column of strings as what it looks like, or as ``forced``.

    ``decimal`` and ``day_first`` are what the other columns tell.
    """
    if forced in (None, "number") and decimal is None:
        plain = cells.plain_numbers()
        if plain is not None:
            return _of_plain(cells, plain, heading, forced)
    if forced == "number":
        return _numbers(cells, heading, forced, decimal) or _nothing(cells)
    if forced == "date":
        return _dates(cells, 0.0, day_first, compact=True) or _nothing(cells)
    if forced in ("category", "id"):
        return _words(cells, heading, forced)
    if cells.looks_like(DIGITS, READ / 2):
        found = _numbers(cells, heading, None, decimal) or _dates(cells, READ, day_first) or _times(cells)
        if found is not None:
            return found
    return _words(cells, heading, None)


def read_typed(values: Any, cells: Cells, heading: str, forced: Kind | None) -> Reading:
    """Read a column whose values have a type already: float64, datetime64, or "words" for strings as they are."""
    if isinstance(values, str) or forced in ("category", "id"):
        return _words(cells, heading, forced)
    if values.dtype.kind == "M":
        if forced == "number":
            raise ValueError(f'number: the column "{heading}" holds dates; give it as a date, or drop it.')
        timed = bool(np.any(values[~np.isnat(values)].astype("M8[D]") != values[~np.isnat(values)]))
        return _settled("date", values, "dates and times" if timed else "dates", np.isnat(values))
    return _of_numbers(cells, values, heading, forced, "")


def _nothing(cells: Cells) -> Reading:
    return Reading("empty", np.full(cells.rows, None, dtype=object), "no values", cells.rows, words=_counted(cells))


def _counted(cells: Cells, missing: list[bool] | None = None) -> Counter[str]:
    flags = [is_missing(word) for word in cells.words] if missing is None else missing
    found = zip(cells.words, cells.counts.tolist(), flags, strict=True)
    return Counter({word: count for word, count, flag in found if flag and word})


def _of_plain(cells: Cells, numbers: Floats, heading: str, forced: Kind | None) -> Reading:
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return _nothing(cells)
    whole = bool(np.all(known == np.rint(known)))
    if whole and forced is None:
        if cells.has_leading_zeros():
            return _words(cells, heading, None, "codes with leading zeros")
        if _may_be_compact_dates(known) and (found := _dates(cells, 1.0, None, compact=True)):
            return found
    return _of_numbers(cells, numbers, heading, forced, "")


def _may_be_compact_dates(known: Floats) -> bool:
    low, high = COMPACT_YEARS[0] * 10_000, (COMPACT_YEARS[1] + 1) * 10_000
    if not (low < known.min() and known.max() < high):
        return False
    month, day = known // 100 % 100, known % 100
    different = len(np.unique(known)) >= FEWEST_COMPACT
    return different and bool(np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def _of_numbers(cells: Cells, numbers: Floats, heading: str, forced: Kind | None, how: str) -> Reading:
    """Numbers, unless they are all the same, yes and no, or number the rows."""
    lost = np.isinf(numbers)
    numbers = np.where(lost, np.nan, numbers)
    known = numbers[~np.isnan(numbers)]
    if not len(known):
        return _nothing(cells)
    low, high = float(known.min()), float(known.max())
    whole = bool(np.all(known == np.rint(known)))
    how = how or ("whole numbers" if whole else "numbers")
    found = _settled("number", numbers, how, np.isnan(numbers))
    found.unreadable = tuple(np.flatnonzero(lost).tolist())
    if forced is not None:
        return found
    if low == high:
        found.kind, found.how, found.values = "constant", "always the same", _as_words(numbers)
    elif whole and ID_HEADING.fullmatch(heading):
        return _codes(cells, numbers, known, found)
    elif whole and len(known) == cells.rows >= FEWEST_COUNTED and _counts_rows(known, heading):
        found.kind, found.how, found.values, found.names_rows = "id", "counts the rows", _as_words(numbers), 1.0
    elif whole and len(known) >= FEWEST_CODES and bool(np.all((known == low) | (known == high))):
        found.kind, found.values = "category", _as_words(numbers)
        found.how = f"two values, {low:.15g} and {high:.15g}"
    return found


def _counts_rows(known: Floats, heading: str) -> bool:
    return known[0] in (0, 1) and bool(np.all(np.diff(known) == 1)) and not TIME_HEADING.fullmatch(heading)


def _codes(cells: Cells, numbers: Floats, known: Floats, found: Reading) -> Reading:
    """Whole numbers under a heading such as "id": never quantities."""
    different = len(np.unique(known))
    found.values = _as_words(numbers)
    if different == len(known):
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


def _settled(kind: Kind, values: Any, how: str, missing: NDArray[np.bool_]) -> Reading:
    return Reading(kind, values, how, int(missing.sum()))


def _numbers(cells: Cells, heading: str, forced: Kind | None, decimal: Decimal | None) -> Reading | None:
    """The column as numbers, or None where too few cells are."""
    missing = [is_missing_number(word) for word in cells.words]
    known = [j for j, flag in enumerate(missing) if not flag]
    if not known:
        return None
    counts = cells.counts[known]
    read = read_numbers([cells.words[j] for j in known], counts.tolist(), decimal)
    readable = np.isfinite(read.values)
    if not readable.any() or (forced is None and counts[readable].sum() < READ * counts.sum()):
        return None
    whole = bool(np.all(read.values[readable] == np.rint(read.values[readable])))
    if forced is None and whole and read.how == "whole numbers" and cells.has_leading_zeros():
        return _words(cells, heading, None, "codes with leading zeros")
    by_word = np.full(len(cells.words), np.nan)
    by_word[known] = read.values
    numbers = by_word[cells.codes]
    found = _of_numbers(cells, numbers, heading, forced, read.how)
    found.words = _counted(cells, missing)
    if found.kind != "empty":
        _note_unreadable(cells, known, readable, found, "numbers")
    found.notes += list(read.notes)
    found.doubt, found.proved = read.doubt, read.proved
    return found


def _note_unreadable(cells: Cells, known: list[int], readable: NDArray[np.bool_], found: Reading, what: str) -> None:
    bad = np.zeros(len(cells.words), dtype=bool)
    bad[[j for j, good in zip(known, readable.tolist(), strict=True) if not good]] = True
    found.unreadable = tuple(np.flatnonzero(bad[cells.codes]).tolist())
    if found.unreadable:
        count = len(found.unreadable)
        words = [cells.words[j] for j in np.flatnonzero(bad).tolist()]
        cell = "1 cell is" if count == 1 else f"{count:,} cells are"
        found.notes.append(f"{cell} not {what} and count{'s' * (count == 1)} as missing: {shown_words(words)}")


def _dates(cells: Cells, share: float, day_first: bool | None, compact: bool = False) -> Reading | None:
    missing = [is_missing_number(word) for word in cells.words]
    known = [j for j, flag in enumerate(missing) if not flag]
    if not known:
        return None
    read = read_dates([cells.words[j] for j in known], day_first, compact)
    readable = ~np.isnat(read.values)
    counts = cells.counts[known]
    if not readable.any() or counts[readable].sum() < share * counts.sum():
        return None
    by_word = np.full(len(cells.words), np.datetime64("NaT", "us"))
    by_word[known] = read.values
    dates = by_word[cells.codes]
    found = _settled("date", dates, read.how, np.isnat(dates))
    found.words, found.doubt, found.day_first = _counted(cells, missing), read.doubt, read.day_first
    _note_unreadable(cells, known, readable, found, "dates")
    return found


def _times(cells: Cells) -> Reading | None:
    missing = np.array([is_missing_number(word) for word in cells.words])
    hours = read_times(cells.words)
    known = np.flatnonzero(~missing)
    readable = np.isfinite(hours[known])
    if not readable.any() or cells.counts[known][readable].sum() < READ * cells.counts[known].sum():
        return None
    found = _settled("number", hours[cells.codes], "times, in hours", np.isnan(hours[cells.codes]))
    found.words = _counted(cells, missing.tolist())
    _note_unreadable(cells, known.tolist(), readable, found, "times")
    return found


def _words(cells: Cells, heading: str, forced: Kind | None, how: str = "") -> Reading:
    """Categories, text, names of rows, or always the same."""
    missing = _missing_words(cells.words)
    by_word = np.array([None if gone else word for word, gone in zip(cells.words, missing, strict=True)], dtype=object)
    known = int(cells.counts[~np.array(missing)].sum()) if cells.words else 0
    different = missing.count(False)
    if not different:
        return _nothing(cells)
    found = Reading("text", by_word[cells.codes], how, cells.rows - known, words=_counted(cells, missing))
    if forced is not None:
        found.kind, found.names_rows = forced, float(forced == "id")
        found.how = how or ("names the rows" if forced == "id" else f"{different:,} different values")
    elif different == 1:
        found.kind, found.how = "constant", "always the same"
    elif different <= min(MOST_CATEGORIES, known / PER_CATEGORY):
        found.kind = "category"
        found.how = how or (_yes_no(by_word) or f"{different} different values")
    elif different >= NAMED_ROWS * cells.rows and _typical_length(by_word) <= LONGEST_NAME:
        found.kind, found.names_rows = "id", _names_rows(heading, different == cells.rows)
        found.how = "all different" if different == known else "nearly all different"
    else:
        found.how = how or f"{different:,} different values"
    return found


def _missing_words(words: list[str]) -> list[bool]:
    """Which words say that there is no value; "None" and "-" only where enough other values are left."""
    missing = [is_missing(word) for word in words]
    if missing.count(False) == 1 and "None" in words:  # "None" and one other: yes or no
        missing[words.index("None")] = False
    others = missing.count(False) - sum(word in ("-", "--", "—", "–", ".") for word in words)
    if others >= 2 and "+" not in words:
        missing = [flag or word in ("-", "--", "—", "–", ".") for flag, word in zip(missing, words, strict=True)]
    return missing


def _yes_no(words: NDArray[Any]) -> str:
    lower = {word.lower() for word in words.tolist() if word is not None}
    return "yes or no" if any(lower == pair for pair in YES_NO) else ""


def _typical_length(words: NDArray[Any]) -> float:
    return float(np.median([len(word) for word in words[:1000].tolist() if word is not None]))


def _names_rows(heading: str, unique: bool) -> float:
    """How well words name rows: the best are all different, under a heading that says so."""
    told = bool(ID_HEADING.fullmatch(heading)) or "name" in heading.lower()
    return 2.0 + 2.0 * unique + told
