"""Headings of columns: whether a first line holds them, each one unique, and those that a user meant."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from trimlearn.tables.cells import is_missing_number

PLAIN = re.compile(r"^\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*%?\s*$")  # a number in a first line
YEARS = (1800, 2200)  # headings of wide tables: years, not values
MOSTLY = 0.8  # of the cells of a column are numbers, so that a word above them is part of the heading (a choice)
TWO_ROWS = "The names of the columns stand in two rows, and were joined."
BELOW = 3  # rows below a second heading, at least: one odd cell above one or two numbers may be a value
LOOKED = 100  # rows that tell which columns hold numbers


def has_names(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first line names the columns: no numbers stand in it, or numbers that can only be names.

    Numbers are names where they are 0, 1, 2, … as pandas counts columns, or go up in equal steps, as years and
    wavelengths do. Words beside other numbers are names unless they come again below, as the labels of
    "5.1,3.5,setosa" do, or are fewer than the numbers.

    >>> has_names(["x", "2001", "2002"], [["3", "4", "5"]]), has_names(["5.1", "setosa"], [["4.9", "setosa"]])
    (True, False)
    """
    numbers = [cell for cell in first if PLAIN.match(cell)]
    words = [j for j, cell in enumerate(first) if cell.strip() and not PLAIN.match(cell)]
    if not numbers:
        return True
    again = sum(any(j < len(row) and row[j] == first[j] for row in below) for j in words)
    if 2 * again > len(words) or not below:
        return False
    return _are_names(numbers, bool(words), below[0]) or len(words) > len(numbers)


def two_rows_of_names(first: Sequence[str], below: Sequence[Sequence[str]]) -> list[str] | None:
    """The headings that stand in two rows, each pair as one; None where the second row is one of values.

    It is part of the heading where words stand in it above numbers: units, or names below the name of a group, which is
    written once, over the first of its columns.

    >>> below = [["", "mm", "mm"], ["a", "3", "4"], ["b", "5", "6"], ["c", "7", "8"]]
    >>> two_rows_of_names(["bird", "length", "depth"], below)
    ['bird', 'length mm', 'depth mm']
    >>> two_rows_of_names(["", "size", ""], [["bird", "length", "depth"], *below[1:]])
    ['bird', 'size length', 'size depth']
    """
    second, rows = [cell.strip() for cell in below[0]] if below else [], below[1 : LOOKED + 1]
    if len(rows) < BELOW or len(second) != len(first):
        return None
    numeric = [j for j in range(len(first)) if _holds_numbers([row[j] for row in rows if j < len(row)])]
    words = [j for j in numeric if second[j]]
    if not words or 2 * len(words) < len(numeric):
        return None
    if any(PLAIN.match(second[j]) or is_missing_number(second[j]) for j in words):
        return None
    names, group = [], ""
    for above, name in zip(first, second, strict=True):
        group = above.strip() or (group if name else "")
        names.append(f"{group} {name}".strip())
    return names


def _holds_numbers(cells: Sequence[str]) -> bool:
    known = [cell for cell in cells if cell.strip() and not is_missing_number(cell.strip())]
    return len(known) >= BELOW and sum(bool(PLAIN.match(cell)) for cell in known) >= MOSTLY * len(known)


def _are_names(numbers: Sequence[str], among_words: bool, second: Sequence[str]) -> bool:
    """Whether numbers name columns: 0, 1, 2, …; years above something else; equal steps beside words."""
    values = [float(cell.strip().rstrip("%").replace(",", ".")) for cell in numbers]
    if values == list(range(len(values))):
        return len(values) > 1
    steps = {round(b - a, 9) for a, b in itertools.pairwise(values)}
    if steps and (len(steps) > 1 or min(steps) <= 0):
        return False
    if all(_is_year(cell) for cell in numbers):
        return not all(_is_year(cell) for cell in second)
    return among_words and len(values) > 2


def _is_year(cell: str) -> bool:
    return cell.strip().isdigit() and YEARS[0] <= int(cell) <= YEARS[1]


def unique_names(headings: Iterable[object]) -> tuple[list[str], list[str]]:
    """Each heading once, on one line; and notes on those that were changed.

    >>> unique_names(["a", " a", ""])[0]
    ['a', 'a (2)', 'Unnamed: 2']
    """
    plain = [" ".join(str(heading).split()) for heading in headings]
    taken, names, again = set(plain), [], Counter[str]()
    for j, heading in enumerate(plain):
        name = heading or f"Unnamed: {j}"
        again[name] += 1
        if again[name] > 1 or (not heading and name in taken):
            number = max(again[name], 2)
            while f"{name} ({number})" in taken:
                number += 1
            name = f"{name} ({number})"
        taken.add(name)
        names.append(name)
    notes = []
    for heading in dict.fromkeys(name for name, times in Counter(filter(None, plain)).items() if times > 1):
        others = [f'"{name}"' for name, same in zip(names, plain, strict=True) if same == heading != name]
        notes.append(
            f'{len(others) + 1} columns are called "{heading}"; all but the first are {", ".join(others)} here.'
        )
    empty = [name for name, heading in zip(names, plain, strict=True) if not heading]
    if empty:
        listed = ", ".join(f'"{name}"' for name in empty[:3]) + (", …" if len(empty) > 3 else "")
        notes.append(f"{len(empty)} column{'s have' if len(empty) > 1 else ' has'} no heading, here called {listed}.")
    return names, notes


def find_names(asked: str | Iterable[str], names: Sequence[str], option: str) -> list[str]:
    """The columns a user named, or a ValueError with those that are written much like it.

    >>> find_names(["Pirce"], ["Price", "Fuel"], "number")
    Traceback (most recent call last):
    ValueError: number: there is no column "Pirce"; did you mean "Price"?
    """
    found = []
    for name in [asked] if isinstance(asked, str) else list(asked):
        if name not in names:
            raise ValueError(f'{option}: there is no column "{name}"; {_close(str(name), names)}')
        found.append(name)
    return found


def near_names(name: str, known: Sequence[str]) -> list[str]:
    """Those of the known names that are written much like this one, the nearest first; three at most.

    >>> near_names(" pirce", ["Price", "Fuel"])
    ['Price']
    """
    folded = {other.casefold().strip(): other for other in reversed(known)}
    return [folded[word] for word in difflib.get_close_matches(name.casefold().strip(), folded, n=3)]


def _close(name: str, names: Sequence[str]) -> str:
    if close := near_names(name, names):
        return "did you mean " + " or ".join(f'"{other}"' for other in close) + "?"
    shown = ", ".join(f'"{other}"' for other in names[:8]) + (", …" if len(names) > 8 else "")
    return f"the columns are {shown}."
