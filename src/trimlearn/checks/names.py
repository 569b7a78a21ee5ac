"""How rows and values of a table are called, in the user's own words and signs."""

from __future__ import annotations

import re
from functools import cached_property
from math import floor, isclose, isfinite, log10
from typing import TYPE_CHECKING, Any, final

import numpy as np

from trimlearn.checks.errors import MISSING
from trimlearn.checks.findings import DuplicateRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trimlearn.checks.findings import WrongCell
    from trimlearn.tables.table import Table

SEEN = 300  # cells in which the style of a column is looked for: a limit on time
MOST = 0.9  # of the cells of a column: its style is theirs
MORE = 3  # decimals of a number that was multiplied: a slip by a thousand moves the comma by so many
LONG = 60  # letters of a value within a sentence: half a line
DIGITS = 3  # of a value that is expected: more would say that it is known better than it is
EXACT = 9  # of one that is known but for a slip of the pen: as many as a float surely has


@final
class Names:
    """The words for the rows, cells and values of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._columns: dict[str, NDArray[Any]] = {}
        self._styles: dict[str, _Style] = {}

    @cached_property
    def id_column(self) -> str | None:
        """The column that names the rows, if one does."""
        return next(iter(self.table.of_kind("id")), None)

    def place(self, row: int) -> str:
        """Where a row is found: by its line in a file, by its number in a DataFrame.

        The first row of a file with a heading is line 2, as a spreadsheet numbers it.
        """
        return f"line {self.line(row)}" if self.table.first_line else f"row {row}"

    def line(self, row: int) -> int:
        """What the user calls a row."""
        return row + self.table.first_line

    def id(self, row: int) -> str | None:
        """What the column of ids says, if there is one."""
        return None if self.id_column is None else self.written(row, self.id_column) or None

    def share_only_an_id(self, group: DuplicateRows) -> bool:
        """Whether rows that are called nearly the same have little in common but the column that names them."""
        alike = len({self.id(row) for row in group.rows}) == 1 and self.id(group.rows[0]) is not None
        return alike and 2 * len(group.differs) > len(self.table.columns)

    def of_row(self, row: int) -> str:
        """A short name for a picture: the id, else the place."""
        return self.id(row) or self.place(row)

    def written(self, row: int, column: str) -> str:
        """A cell as it was written."""
        if column not in self._columns:
            self._columns[column] = self.table.written[column].to_numpy(dtype=object)
        value = self._columns[column][row]
        return value if isinstance(value, str) else ""

    def number(self, value: float, column: str, digits: int = DIGITS) -> str:
        """A number that the models expect in a column, with its signs: thousands, the decimal comma, few digits."""
        if not isfinite(value):
            return ""
        if column not in self._styles:
            self.written(0, column)
            self._styles[column] = _Style(self._columns[column][:SEEN], self.table.frame[column].to_numpy()[:SEEN])
        return self._styles[column].text(value, digits)

    def expected(self, cell: WrongCell) -> str:
        """What should stand in a wrong cell: the number before the slip of the pen, where one explains it."""
        if isinstance(cell.expected, str):
            return cell.expected
        known = bool(cell.error) and cell.error != MISSING  # then it is exact: the number before the slip
        return self.number(cell.expected, cell.column, EXACT if known else DIGITS)

    def value(self, value: Any, column: str) -> str:
        """A number or a label that the models expect in a column."""
        return self.number(float(value), column) if isinstance(value, (int, float, np.number)) else str(value)


@final
class _Style:
    """How numbers of a column are written: seen in its first cells."""

    def __init__(self, cells: NDArray[Any], values: NDArray[Any]) -> None:
        """Of the cells and what they mean, which tells what a point or a comma is for."""
        digits = [re.sub(r"[^\d.,]", "", cell) if isinstance(cell, str) else "" for cell in cells]
        signs = [_sign(cell, value) for cell, value in zip(digits, values, strict=True)]
        self.comma = signs.count(",") > signs.count(".")
        mark, other = (",", ".") if self.comma else (".", ",")
        digits = [cell for cell in digits if cell]
        grouped = re.compile(rf"\d{{1,3}}(\{other}\d{{3}})+(\{mark}|$)")
        self.thousands = any(grouped.match(cell) for cell in digits)
        decimals = sorted(len(cell.rpartition(mark)[2]) if mark in cell else 0 for cell in digits)
        self.decimals = decimals[int(MOST * (len(decimals) - 1))] if decimals else 0  # wild cells may have more

    def text(self, value: float, digits: int) -> str:
        """A number in this style, of so many digits that count."""
        size = floor(log10(abs(value))) if value else 0
        if not -6 <= size <= 15:
            return f"{value:.{digits}g}"
        decimals = min(self.decimals + (MORE if digits == EXACT else 0), max(0, digits - 1 - size))
        rounded = round(value, digits - 1 - size) if size >= digits else value
        text = f"{rounded:{',' if self.thousands else ''}.{decimals}f}"
        if digits == EXACT and "." in text:
            text = text.rstrip("0").rstrip(".")
        text = "0" if text.strip("-0.") == "" else text
        return text.translate(str.maketrans(".,", ",.")) if self.comma else text


def _sign(digits: str, value: Any) -> str:
    """The decimal sign by which digits mean a value, "" where there is no telling.

    >>> _sign("1.234", 1234.0), _sign("1.234", 1.234), _sign("12,5", 12.5), _sign("12", 12.0), _sign(".", np.nan)
    (',', '.', ',', '', '')
    """
    if not re.search(r"\d", digits) or not re.search("[.,]", digits) or not isinstance(value, (int, float, np.number)):
        return ""
    for sign, other in ((".", ","), (",", ".")):
        plain = digits.replace(other, "").replace(sign, ".")
        if plain.count(".") <= 1 and isclose(float(plain), abs(float(value))):
            return sign
    return ""


def clip(text: str) -> str:
    """A value that fits into a sentence; of a number with many digits those that count.

    >>> clip("3.7516349672663583"), clip("£21,995")
    ('3.75163', '£21,995')
    """
    text = " ".join(text.split())
    if re.fullmatch(r"-?\d+\.\d{7,}(e[-+]?\d+)?", text):
        return f"{float(text):.6g}"
    return text if len(text) <= LONG else text[: LONG - 1] + "…"
