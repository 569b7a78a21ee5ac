"""Numbers as people write them: "£21,995", "12,5", "(1,234)", "12 km", "1.5k", "98 %"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
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
SAMPLE = 500  # of the simple ones are read with the others, to learn how they are written
FACTORS = {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "mn": 1e6, "mio": 1e6, "B": 1e9, "bn": 1e9, "b": 1e9}  # short scale
OWN_UNIT = frozenset("mb")  # metres and bits unless other factors stand beside them


@final
@dataclass(frozen=True)
class _Parsed:
    """A cell taken apart: its digits without groups of spaces, the sign that parts its decimals, its unit."""

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
    parsed = _without_bounds([_parse(cell) for cell in cells], counts)
    forms = Counter[str]()
    for one, count in zip(parsed, counts, strict=True):
        if one is not None:
            forms[one.form] += count
    proved: Decimal | None = None
    if forms["point"] or forms["comma"]:
        proved = "comma" if forms["comma"] > forms["point"] else "point"
    chosen: Decimal = proved or decimal or "point"
    mark, unit, factors = _usual_units(parsed, counts)
    values = np.full(len(cells), np.nan)
    for i, one in enumerate(parsed):
        if one is not None and one.mark in ("", mark):
            if factors:
                values[i] = one.value(chosen) * FACTORS.get(one.unit, 1.0 if not one.unit else np.nan)
            elif one.unit in ("", unit):
                values[i] = one.value(chosen)
    endless = [i for i, cell in enumerate(cells) if INFINITE.fullmatch(cell)]
    values[endless] = np.inf  # a number, but none that can be used
    how = _how(chosen, mark, unit, factors, _spaced(cells, parsed), parsed)
    return ReadNumbers(values, how, proved, mark, _doubt(forms, proved, chosen), _limits(parsed, counts))


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


def _without_bounds(parsed: list[_Parsed | None], counts: Sequence[int]) -> list[_Parsed | None]:
    """Limits such as "<0.5" are numbers among numbers only: ">50K" and "<=50K" alone are two classes."""
    numbers = sum(count for one, count in zip(parsed, counts, strict=True) if one is not None)
    limits = sum(count for one, count in zip(parsed, counts, strict=True) if one is not None and one.limit)
    return [one if one is None or not one.limit or 2 * limits < numbers else None for one in parsed]


def _parse(cell: str) -> _Parsed | None:
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
    return _Parsed(digits, form, found["exponent"] or "", negative, mark, _unit(after), bool(found["limit"]))


def _form(digits: str) -> Literal["whole", "point", "comma", "either point", "either comma"] | None:
    if digits.isdigit():
        return "whole" if digits.isascii() else None
    if EITHER.fullmatch(digits):
        return "either point" if "." in digits else "either comma"
    if POINTS.fullmatch(digits):
        return "point"
    return "comma" if COMMAS.fullmatch(digits) else None


def _unit(after: str) -> str:
    """One name of a unit: "years" is "year"."""
    return after[:-1] if len(after) > 3 and after.endswith("s") else after


def _usual_units(parsed: Sequence[_Parsed | None], counts: Sequence[int]) -> tuple[str, str, bool]:
    """The commonest currency and unit of a column, and whether its units are factors such as k and M."""
    marks, units = Counter[str](), Counter[str]()
    for one, count in zip(parsed, counts, strict=True):
        if one is not None:
            marks[one.mark] += count
            units[one.unit] += count
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
    parsed = [one for one in map(_parse, cells) if one is not None]
    units = Counter(one.mark or one.unit for one in parsed)
    often = sorted(unit for unit, count in units.items() if count >= OFTEN * len(cells))
    told = [unit for unit in often if len(unit) > 1 or not unit.isalpha()]  # one letter may be that of a seat
    return told if len(told) > 1 and len(parsed) >= MOST * len(cells) else []


def _commonest(counter: Counter[str]) -> str:
    named = [(count, name) for name, count in counter.items() if name]
    return max(named)[1] if named else ""


def _spaced(cells: Sequence[str], parsed: Sequence[_Parsed | None]) -> bool:
    some = [(cell, one) for cell, one in zip(cells, parsed, strict=True) if one is not None][:1000]
    return any(one.digits not in cell for cell, one in some)


def _how(decimal: Decimal, mark: str, unit: str, factors: bool, spaced: bool, parsed: Sequence[_Parsed | None]) -> str:
    some = [one.digits for one in parsed if one is not None and one.form in (decimal, "whole", *EITHERS)][:1000]
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


def _limits(parsed: Sequence[_Parsed | None], counts: Sequence[int]) -> tuple[str, ...]:
    limits = sum(count for one, count in zip(parsed, counts, strict=True) if one is not None and one.limit)
    cells = plural(limits, 'cell such as "<0.5" was', 'cells such as "<0.5" were')
    return (f"{cells} read as the number named",) if limits else ()
