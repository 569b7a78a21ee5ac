"""Dates as people write them, day or month first by the evidence of the whole column."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Floats

TIME = (
    r"(?:[T\s]+|,\s*)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp])?\.?[Mm]?\.?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)
# How dates are written: ISO 8601 and its slack forms, day and month first, months alone, without separators, clocks.
# a and b: month and day; where the year is last, day and month in an order that the whole column tells.
YEAR_LAST = re.compile(rf"(?P<a>\d{{1,2}})([-/.]|\s|\.\s)(?P<b>\d{{1,2}})\2(?P<year>\d{{4}}|\d{{2}})(?:{TIME})?")
DIGITS = (
    re.compile(rf"(?P<year>\d{{4}})([-/.\s])(?P<a>\d{{1,2}})\2(?P<b>\d{{1,2}})(?:{TIME})?"),
    YEAR_LAST,
    re.compile(r"(?P<year>\d{4})[-/](?P<a>\d{1,2})"),
    re.compile(r"(?P<a>\d{1,2})[-/](?P<year>\d{4})"),
)
COMPACT = re.compile(r"(?P<year>\d{4})(?:(?P<a>\d{2})(?P<b>\d{2}))?")
NAMED = re.compile(
    rf"(?:[A-Za-z]{{2,9}}\.?,?\s+)?(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.?[-\s/]+)?(?P<month>[A-Za-zäéûç]{{3,9}})"
    rf"\.?[-\s/]*(?:(?P<later>\d{{1,2}})(?:st|nd|rd|th)?,?\s+)?(?:,\s*)?[-\s/]*(?P<year>\d{{4}}|\d{{2}})(?:{TIME})?"
)
CLOCK = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*([AaPp][Mm])?")
MONTHS = {
    word: number  # English, German, French, Spanish, Italian, Dutch, by their first letters
    for number, words in enumerate(
        [
            "jan ene gen",
            "feb fév fev",
            "mar mär mrz maa",
            "apr avr abr",
            "may mai mag mei",
            "jun juin giu",
            "jul juil lug",
            "aug aoû ago",
            "sep set",
            "oct okt ott",
            "nov",
            "dec dez déc dic",
        ],
        start=1,
    )
    for word in words.split()
}
EPOCH = datetime.date(1970, 1, 1).toordinal()  # where NumPy's dates begin
NAT = int(np.datetime64("NaT", "us").view(np.int64))  # a date that is none
PIVOT = 69  # two-digit years from 69 on are of the 20th century, as POSIX has it
EARLIEST, LATEST = 1000, 2999  # years a date may have: others are numbers that look like dates
COMPACT_YEARS = (1900, 2099)  # of dates without separators: ordinary numbers seldom fall in there day after day
FEWEST_COMPACT = 5  # different ones before 20150131 is taken for a date: by chance one number in 1,000 is


@final
@dataclass(frozen=True)
class Dates:
    """Different cells read as dates, NaT where one is none; how; whether days came first, None where it is unknown."""

    values: NDArray[np.datetime64]
    how: str
    day_first: bool | None = None
    doubt: str = ""


@final
@dataclass
class _Part:
    """A cell taken apart: year, first and second of day and month (or month and day), seconds after midnight."""

    year: int
    first: int
    second: int
    either: bool  # whether it is not known which of both is the day
    seconds: float = 0.0
    timed: bool = False


def read_dates(cells: Sequence[str], day_first: bool | None = None, compact: bool = False) -> Dates:
    """Read the different cells of a column, in the order in which they first come.

    ``day_first`` is what other columns tell where this one does not; ``compact`` also takes 20150131 and 2015.

    >>> dates = read_dates(["31.01.2015", "01.02.2015"])
    >>> dates.values.astype("M8[D]").tolist()[1].isoformat(), dates.how
    ('2015-02-01', 'dates, day first')
    """
    parts = [_take_apart(cell, compact) for cell in cells]
    either = [part for part in parts if part is not None and part.either]
    first, doubt = _day_first(either, cells, day_first) if either else (None, "")
    values = np.array([_date(part, bool(first)) for part in parts], dtype=np.int64).view("datetime64[us]")
    timed = any(part.timed for part in parts if part is not None)
    kind = "dates and times" if timed else "dates"
    order = "" if not either else ", day first" if first else ", month first"
    return Dates(values, kind + order, None if doubt else first, doubt)


def read_times(cells: Sequence[str]) -> Floats:
    """Times of day or durations "h:mm" and "h:mm:ss" in hours; NaN of anything else.

    >>> read_times(["1:30", "13:00:00", "1:30 pm", "x"]).tolist()
    [1.5, 13.0, 13.5, nan]
    """
    return np.array([_hours(CLOCK.fullmatch(cell)) for cell in cells], dtype=np.float64)


def _hours(found: re.Match[str] | None) -> float:
    if found is None or int(found[2]) > 59 or float(found[3] or 0) >= 60:
        return np.nan
    hours = int(found[1])
    if found[4]:
        hours = hours % 12 + 12 * (found[4][0] in "pP")
    return hours + int(found[2]) / 60 + float(found[3] or 0) / 3600


def _take_apart(cell: str, compact: bool) -> _Part | None:
    for pattern in (*DIGITS, COMPACT) if compact else DIGITS:
        if found := pattern.fullmatch(cell):
            part = found.groupdict()
            year = _year(part["year"])
            if pattern is COMPACT and part["a"] and not COMPACT_YEARS[0] <= year <= COMPACT_YEARS[1]:
                return None
            return _with_time(year, int(part["a"] or 1), int(part.get("b") or 1), pattern is YEAR_LAST, part)
    return _named(cell)


def _named(cell: str) -> _Part | None:
    """ "12 Mar 2015", "March 12, 2015", "12-Mar-15", "Mar 2015"."""
    found = NAMED.fullmatch(cell)
    if found is None:
        return None
    day, word, later, year = found["day"], found["month"], found["later"], found["year"]
    month = MONTHS.get(word[:4].lower()) or MONTHS.get(word[:3].lower())
    if month is None or (day and later) or (len(year) == 2 and not (day or later)):
        return None
    return _with_time(_year(year), month, int(day or later or 1), False, found.groupdict())


def _year(text: str) -> int:
    return int(text) if len(text) == 4 else int(text) + (1900 if int(text) >= PIVOT else 2000)


def _with_time(year: int, first: int, second: int, either: bool, found: Mapping[str, str | None]) -> _Part | None:
    if not found.get("hour"):
        return _Part(year, first, second, either)
    hours, minutes, whole = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if half := found["half"]:
        hours = hours % 12 + 12 * (half in "pP")
    if hours > 24 or minutes > 59 or whole > 60:
        return None
    seconds = 3600 * hours + 60 * minutes + whole + float(f"0.{found['fraction'] or 0}")
    if (zone := found["zone"]) and zone[0] in "+-":
        seconds -= int(f"{zone[0]}1") * (3600 * int(zone[1:3]) + 60 * int(zone[-2:]))
    return _Part(year, first, second, either, seconds, True)


def _date(part: _Part | None, day_first: bool) -> int:
    """Microseconds since 1970, or NaT as a number: ten times quicker than dates of NumPy, one by one."""
    if part is None or not EARLIEST <= part.year <= LATEST:
        return NAT
    month, day = (part.second, part.first) if part.either and day_first else (part.first, part.second)
    try:
        days = datetime.date(part.year, month, day).toordinal() - EPOCH
    except ValueError:  # 30 February
        return NAT
    return days * 86_400_000_000 + round(part.seconds * 1e6)


def _day_first(either: Sequence[_Part], cells: Sequence[str], told: bool | None) -> tuple[bool, str]:
    """Whether days come first, and what was assumed where the column does not tell."""
    days = sum(part.first > 12 >= part.second for part in either)
    months = sum(part.second > 12 >= part.first for part in either)
    if days != months:
        return days > months, ""
    if any(re.match(r"\d{1,2}\.", cell) for cell in cells):  # nobody puts the month first between points
        return True, ""
    firsts, seconds = {part.first for part in either}, {part.second for part in either}
    if len(either) > 2 and (firsts == {1}) != (seconds == {1}):  # the first of each month
        return firsts == {1}, ""
    if told is not None:
        return told, ""
    as_days = _in_order([(part.year, part.second, part.first) for part in either])
    as_months = _in_order([(part.year, part.first, part.second) for part in either])
    if len(either) > 2 and as_days != as_months:
        return as_days, ""
    return False, "day and month could be the other way round: no number above 12 tells; read with the month first"


def _in_order(dates: Sequence[tuple[int, int, int]]) -> bool:
    pairs = list(itertools.pairwise(dates))
    return all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs)
