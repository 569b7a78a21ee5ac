"""All columns read together: what one leaves open, another may settle."""

from __future__ import annotations

from typing import final

from trimlearn.tables.cells import Cells
from trimlearn.tables.kinds import read_column, read_typed
from trimlearn.tables.numbers import Decimal
from trimlearn.tables.table import Kind, Raw
from trimlearn.tables.words import Reading


def understand(raw: Raw, kept: list[int], forced: dict[str, Kind]) -> list[Reading]:
    """Read each of the columns ``kept``, as what it looks like or as what is ``forced``.

    >>> import pyarrow as pa
    >>> columns = [pa.array(["1,5", "2,5"], pa.large_string()), pa.array(["1.234", "5"], pa.large_string())]
    >>> raw = Raw(["a", "b"], columns, "t.csv", 2)
    >>> [found.values.tolist() for found in understand(raw, [0, 1], {})]
    [[1.5, 2.5], [1234.0, 5.0]]
    """
    table = _Columns(raw, forced, {j: Cells(raw.columns[j]) for j in kept})
    table.settle_decimals()
    table.settle_dates()
    table.keep_one_id()
    return [table.found[j] for j in kept]


@final
class _Columns:
    """The columns of a table by number: what was told of them, their cells, and what they were read as."""

    def __init__(self, raw: Raw, forced: dict[str, Kind], cells: dict[int, Cells]) -> None:
        self.raw, self.cells = raw, cells
        self.forced = {j: forced.get(raw.names[j]) for j in cells}
        self.found = {j: self.read(j) for j in cells}

    def read(self, j: int, decimal: Decimal | None = None, day_first: bool | None = None) -> Reading:
        """A column as what it looks like or is forced to be, given what other columns tell."""
        name, kind, typed = self.raw.names[j], self.forced[j], self.raw.typed.get(j)
        if typed is None or (kind == "date" and (isinstance(typed, str) or typed.dtype.kind != "M")):
            return read_column(self.cells[j], name, kind, decimal, day_first)
        return read_typed(typed, self.cells[j], name, kind)

    def settle_decimals(self) -> None:
        """Cells that can be read in two ways ("1,234", "1.234") are read as the other columns write theirs."""
        found = self.found
        proved = {reading.proved for reading in found.values()} - {None}
        open_ = [j for j, reading in found.items() if reading.kind == "number" and '"1,234"' in reading.doubt]
        if not open_ and "comma" not in proved and not self.raw.semicolons:
            return
        plain = [j for j, reading in found.items() if _has_fractions(reading) and j not in self.raw.typed]
        if any(not self.cells[j].only_ambiguous_points() for j in plain):
            proved.add("point")
        decimal: Decimal = "comma" if proved == {"comma"} or (proved != {"point"} and self.raw.semicolons) else "point"
        for j in open_:
            if decimal == "comma":
                found[j] = self.read(j, decimal)
            if proved == {decimal}:
                found[j].doubt = ""
        if decimal == "comma":
            self._settle_points(sure=proved == {"comma"}, but=open_)

    def _settle_points(self, *, sure: bool, but: list[int]) -> None:
        """Points that may part thousands do, in a table that writes decimal commas.

        Where only its semicolons speak for that, "1.234" must stand beside whole numbers, which decimals would not.
        """
        for j, reading in self.found.items():
            settled = reading.kind != "number" or j in self.raw.typed or reading.proved is not None or j in but
            cells = self.cells[j]
            if settled or not cells.only_ambiguous_points() or not (sure or cells.has_whole_numbers()):
                continue
            again = self.found[j] = self.read(j, "comma")
            if sure:
                again.notes.append('points part thousands, as other columns have decimal commas: "1.234" is 1234')
            else:
                again.doubt = (
                    '"1.234" could be 1.234 as well; it was read as 1234, since semicolons separate the fields'
                )

    def settle_dates(self) -> None:
        """Dates that could be the other way round are read as those of the other columns."""
        proved = {reading.day_first for reading in self.found.values()} - {None}
        for j, reading in self.found.items():
            if len(proved) == 1 and reading.kind == "date" and reading.doubt:
                self.found[j] = self.read(j, day_first=proved == {True})

    def keep_one_id(self) -> None:
        """Keep the column that names the rows best; the others are text, which no model uses either."""
        candidates = [j for j, reading in self.found.items() if reading.kind == "id"]
        told = [j for j in candidates if self.forced[j] == "id"]
        best = told[0] if told else max(candidates, key=lambda j: (self.found[j].names_rows, -j), default=-1)
        for j in candidates:
            if j != best:
                self.found[j].kind = "text"
                self.found[j].how += f'; rows are named by "{self.raw.names[best]}"'


def _has_fractions(reading: Reading) -> bool:
    """Whether a column holds plain numbers with points, read without a look at each."""
    return reading.kind == "number" and reading.proved is None and reading.how == "numbers"
