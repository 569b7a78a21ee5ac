"""Numbers as people write them: "£21,995", "12,5", "(1,234)", "12 km", "1.5k", "98 %"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn._utils.text import and_list, plural
from trimlearn.tables.table import arrow

Decimal = Literal["point", "comma"]

SPACES = " '’\u00a0\u202f\u2009"  # between thousands: spaces of all widths, and the Swiss apostrophe
# Of the cells: a unit that fewer are in is a slip, and where fewer are numbers these are words with numbers in them.
OFTEN, MOST = 0.1, 0.8
SIGNS = "$¢£¤¥฿₠-⃀＄￡￥￦"  # Unicode's currency signs
CODES = "USD EUR GBP JPY CHF CAD AUD NZD SEK NOK DKK INR CNY RMB BRL ZAR PLN CZK HUF RUB KRW MXN SGD HKD TRY ILS"
CURRENCY = rf"(?:(?:US|A|AU|C|CA|NZ|HK|S|R)?\$|[{SIGNS}]|(?:{'|'.join(CODES.split())})\b|Rs\.?|kr\.?|Kč|zł|Fr\.?)"
NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<limit>[<>≤≥~≈]=?)?\s*(?P<sign>[-+−–])?\s*(?P<before>{CURRENCY})?\s*(?P<sign2>[-+−–])?\s*"
    rf"(?P<digits>\d(?:[\d.,{SPACES}]*\d)?\.?|[.,]\d+)(?P<exponent>[eE][-+]?\d{{1,3}}(?![\w.]))?"
    r"(?P<after>(?:\s*|-)[^\d\s.,()+−<>=:;|-][^\d()<>=:;|]{0,11}|)\s*(?P<minus>-)?(?P<close>\))?",
)
# Thousands in groups of three, or of two as in India (CLDR), with a space, a comma or a point between them.
GROUPED = re.compile(rf"\d{{1,3}}(?:[{SPACES}]\d{{3}})+(?:[.,]\d+)?")
POINTS = re.compile(r"\d{1,3}(?:,\d{3})+\.\d*|\d{1,3}(?:,\d{3}){2,}|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d*)?|\d*\.\d*")
COMMAS = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d*,\d+")
EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")  # a thousand or three decimals
EITHERS = ("either point", "either comma")  # the forms of those
INFINITE = re.compile(r"[-+−]?(inf|infinity|∞)", re.I)
MANY = 2000  # different cells from which on the detour pays: one takes about 10 µs, the detour 5 ms
LOOKED = 1000  # cells that tell how a column is written: more tell nothing new
SAMPLE = 500  # of the simple ones are read with the others, to learn how they are written
FACTORS = {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "mn": 1e6, "mio": 1e6, "B": 1e9, "bn": 1e9, "b": 1e9}  # short scale
OWN_UNIT = frozenset("mb")  # metres and bits unless other factors stand beside them


@final
@dataclass(frozen=True)
class _Parsed:
    """A cell taken apart: its digits without groups of spaces, the sign that parts its decimals, its unit.

    ``at``: its place among the different cells; ``count``: how often it is there.
    """

    at: int
    count: int
    digits: str
    form: Literal["whole", "point", "comma", "either point", "either comma"]
    exponent: str
    negative: bool
    mark: str
    unit: str
    limit: bool

    def value(self, decimal: Decimal) -> float:
        comma = self.form == "comma" or (self.form.startswith("either") and decimal == "comma")
        digits = self.digits.replace(".", "").replace(",", ".") if comma else self.digits.replace(",", "")
        number = float(digits + self.exponent)
        return -number if self.negative else number


@final
@dataclass(frozen=True)
class ReadNumbers:
    """Different cells read as numbers, NaN where one is none; how; and which decimal sign is proved or assumed."""

    values: Floats
    how: str  # " with £ and thousands commas": what to say after "numbers"
    proved: Decimal | None
    mark: str = ""  # the currency most of them are in
    doubt: str = ""  # what could be read in two ways
    notes: tuple[str, ...] = ()


def read_numbers(cells: Sequence[str], counts: Sequence[int], decimal: Decimal | None = None) -> ReadNumbers:
    """Read the different cells of a column, each there ``counts`` times.

    ``decimal`` is what other columns tell of cells that can be read in two ways, such as "1,234".

    >>> read_numbers(["£21,995", "£1,250,000", "(£300)"], [1, 1, 1]).values.tolist()
    [21995.0, 1250000.0, -300.0]
    >>> read_numbers(["12,5", "1.234"], [1, 1]).values.tolist()
    [12.5, 1234.0]
    """
    parsed = [one for i, cell in enumerate(cells) if (one := _parse(cell, i, counts[i])) is not None]
    limits = _count(one for one in parsed if one.limit)
    if 2 * limits >= _count(parsed):  # "<0.5" is a number among numbers only: ">50K" and "<=50K" alone are two classes
        parsed, limits = [one for one in parsed if not one.limit], 0
    forms = Counter[str]()
    for one in parsed:
        forms[one.form] += one.count
    proved: Decimal | None = None
    if forms["point"] or forms["comma"]:
        proved = "comma" if forms["comma"] > forms["point"] else "point"
    chosen: Decimal = proved or decimal or "point"
    mark, unit, factors = _usual_units(parsed)
    sizes = {unit: 1.0} | (FACTORS if factors else {}) | {"": 1.0}
    values = np.full(len(cells), np.nan)
    for one in parsed:
        if one.mark in ("", mark):
            values[one.at] = one.value(chosen) * sizes.get(one.unit, np.nan)
    endless = [i for i, cell in enumerate(cells) if INFINITE.fullmatch(cell)]
    values[endless] = np.inf  # a number, but none that can be used
    spaced = any(one.digits not in cells[one.at] for one in parsed[:LOOKED])
    how = _how(chosen, mark, unit, factors, spaced, parsed)
    named = plural(limits, 'cell such as "<0.5" was', 'cells such as "<0.5" were')
    notes = (f"{named} read as the number named",) if limits else ()
    return ReadNumbers(values, how, proved, mark, _doubt(forms, proved, chosen), notes)


def _count(parsed: Iterable[_Parsed]) -> int:
    return sum(one.count for one in parsed)


def read_many(cells: Sequence[str], counts: Sequence[int], decimal: Decimal | None = None) -> ReadNumbers:
    """What `read_numbers` gives, sooner.

    >>> read_many(["1", "£2,500", "x"], [1, 1, 1]).values.tolist()
    [1.0, 2500.0, nan]
    """
    if len(cells) <= MANY or decimal == "comma":
        return read_numbers(cells, counts, decimal)
    some = np.arange(0, len(cells), len(cells) // SAMPLE)
    mark = _of_some(cells, counts, some.tolist(), decimal).mark
    values = _simple(cells, mark)
    others = np.union1d(some, np.flatnonzero(np.isnan(values)))
    read = _of_some(cells, counts, others.tolist(), decimal)
    if read.proved == "comma":
        return read_numbers(cells, counts, decimal)
    values[others] = read.values
    return replace(read, values=values)


def _of_some(cells: Sequence[str], counts: Sequence[int], which: list[int], decimal: Decimal | None) -> ReadNumbers:
    return read_numbers([cells[i] for i in which], [counts[i] for i in which], decimal)


def _simple(cells: Sequence[str], mark: str) -> Floats:
    """Plain numbers, and those with one currency and commas between thousands; NaN of all others."""
    pa = arrow()
    compute = pa.compute
    array = pa.array(cells, pa.large_string())
    sign = re.escape(mark)
    pattern = (
        r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?$|"
        rf"^[-+]?(?:{sign})? ?([0-9]{{1,3}}(,[0-9]{{3}})+|[0-9]+)(\.[0-9]*)?$"
    )
    simple = compute.match_substring_regex(array, pattern)
    chosen = array.filter(simple)
    for part in (mark, ",", " "):
        chosen = compute.replace_substring(chosen, part, "") if part else chosen
    values = np.full(len(cells), np.nan)
    values[simple.to_numpy(zero_copy_only=False)] = compute.cast(chosen, pa.float64()).to_numpy(zero_copy_only=False)
    return values


def _parse(cell: str, at: int, count: int) -> _Parsed | None:
    found = NUMBER.fullmatch(cell)
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    signs = [found[group] for group in ("sign", "sign2", "minus", "open") if found[group]]
    if len(signs) > 1:
        return None
    digits = found["digits"]
    if any(space in digits for space in SPACES):
        if not GROUPED.fullmatch(digits):
            return None
        digits = re.sub(f"[{SPACES}]", "", digits)
    after = found["after"].strip().lstrip("-").strip()
    mark = re.sub(r"[\s.]", "", found["before"] or "")
    if after and re.fullmatch(CURRENCY, after):
        mark, after = mark or after.strip(". "), ""
    form = _form(digits)
    if form is None:
        return None
    if mark and form == "either comma":
        form = "point"  # a comma in money parts thousands; a point need not: "$3.459" a gallon
    if after.count(" ") > 1:  # "3 blind mice went" is no unit
        return None
    negative = bool(signs) and signs[0] != "+"
    unit = after[:-1] if len(after) > 3 and after.endswith("s") else after  # "years" is "year"
    return _Parsed(at, count, digits, form, found["exponent"] or "", negative, mark, unit, bool(found["limit"]))


def _form(digits: str) -> Literal["whole", "point", "comma", "either point", "either comma"] | None:
    if digits.isdigit():
        return "whole" if digits.isascii() else None
    if EITHER.fullmatch(digits):
        return "either point" if "." in digits else "either comma"
    if POINTS.fullmatch(digits):
        return "point"
    return "comma" if COMMAS.fullmatch(digits) else None


def _usual_units(parsed: Sequence[_Parsed]) -> tuple[str, str, bool]:
    """The commonest currency and unit of a column, and whether its units are factors such as k and M."""
    marks, units = Counter[str](), Counter[str]()
    for one in parsed:
        marks[one.mark] += one.count
        units[one.unit] += one.count
    named = [unit for unit in units if unit]
    factors = bool(named) and all(unit in FACTORS for unit in named)
    if factors and set(named) <= OWN_UNIT and not any(mark for mark in marks):
        factors = False
    return _commonest(marks), _commonest(units), factors


def mixed_units(cells: Sequence[str]) -> list[str]:
    """The currencies or units of cells that are numbers in one of several each; none where they are words, or in one.

    >>> mixed_units(["€5", "$7", "€9", "$1"]), mixed_units(["€5", "€7"]), mixed_units(["12A", "13B", "14A", "15B"])
    (['$', '€'], [], [])
    """
    parsed = [one for cell in cells if (one := _parse(cell, 0, 1)) is not None]
    units = Counter(one.mark or one.unit for one in parsed)
    often = sorted(unit for unit, count in units.items() if count >= OFTEN * len(cells))
    told = [unit for unit in often if len(unit) > 1 or not unit.isalpha()]  # one letter may be that of a seat
    return told if len(told) > 1 and len(parsed) >= MOST * len(cells) else []


def _commonest(counter: Counter[str]) -> str:
    named = [(count, name) for name, count in counter.items() if name]
    return max(named)[1] if named else ""


def _how(decimal: Decimal, mark: str, unit: str, factors: bool, spaced: bool, parsed: Sequence[_Parsed]) -> str:
    some = [one.digits for one in parsed if one.form in (decimal, "whole", *EITHERS)][:LOOKED]
    commas, points = any("," in digits for digits in some), any("." in digits for digits in some)
    parts = [mark] if mark else []
    if factors:
        parts.append("k, M or bn for thousands, millions or billions")
    if decimal == "comma":
        parts += ["decimal commas"] * commas + ["thousands points"] * points
    elif commas:
        parts.append("thousands commas")
    if spaced:
        parts.append("spaces between thousands")
    told = f" with {and_list(parts)}" if parts else ""
    return told if factors or not unit else told + (" in percent" if unit == "%" else f", in {unit}")


def _doubt(forms: Counter[str], proved: Decimal | None, chosen: Decimal) -> str:
    """What was assumed of cells that can be read in two ways."""
    if proved or not forms["either comma"]:
        return ""
    if chosen == "comma":
        return '"1,234" could be 1234 as well; it was read as 1.234'
    return '"1,234" could be 1.234 as well; it was read as 1234'
