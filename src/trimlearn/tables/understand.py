"""All columns read together: what one leaves open, another may settle."""

from __future__ import annotations

from trimlearn.tables.cells import Cells
from trimlearn.tables.kinds import read_column, read_typed
from trimlearn.tables.numbers import Decimal
from trimlearn.tables.raw import Raw
from trimlearn.tables.table import Kind
from trimlearn.tables.words import Reading

__all__ = ["understand"]


def understand(raw: Raw, kept: list[int], forced: dict[str, Kind]) -> list[Reading]:
    """Read each of the columns ``kept``, as what it looks like or as what is ``forced``.

    >>> import pyarrow as pa
    >>> columns = [pa.array(["1,5", "2,5"], pa.large_string()), pa.array(["1.234", "5"], pa.large_string())]
    >>> raw = Raw(["a", "b"], columns, "t.csv", 2)
    >>> [found.values.tolist() for found in understand(raw, [0, 1], {})]
    [[1.5, 2.5], [1234.0, 5.0]]
    """
    cells = {j: Cells(raw.columns[j]) for j in kept}
    found = {j: _read(raw, j, cells[j], forced) for j in kept}
    _settle_decimals(raw, cells, found, forced)
    _settle_dates(raw, cells, found, forced)
    _one_id(raw, found, forced)
    return [found[j] for j in kept]


def _read(raw: Raw, j: int, cells: Cells, forced: dict[str, Kind]) -> Reading:
    name = raw.names[j]
    typed = raw.typed.get(j)
    if typed is None or (forced.get(name) == "date" and isinstance(typed, str)):
        return read_column(cells, name, forced.get(name))
    if forced.get(name) == "date" and typed.dtype.kind != "M":
        return read_column(cells, name, "date")
    return read_typed(typed, cells, name, forced.get(name))


def _settle_decimals(raw: Raw, cells: dict[int, Cells], found: dict[int, Reading], forced: dict[str, Kind]) -> None:
    """Cells that can be read in two ways ("1,234", "1.234") are read as the other columns write theirs."""
    proved = {reading.proved for reading in found.values()} - {None}
    open_ = [j for j, reading in found.items() if reading.kind == "number" and '"1,234"' in reading.doubt]
    if not open_ and "comma" not in proved and not raw.semicolons:
        return
    plain = [j for j, reading in found.items() if _has_fractions(reading) and j not in raw.typed]
    if any(not cells[j].only_ambiguous_points() for j in plain):
        proved.add("point")
    decimal: Decimal = "comma" if proved == {"comma"} or (proved != {"point"} and raw.semicolons) else "point"
    for j in open_:
        if decimal == "comma":
            found[j] = read_column(cells[j], raw.names[j], forced.get(raw.names[j]), decimal)
        if proved == {decimal}:
            found[j].doubt = ""
    if decimal == "comma":
        _settle_points(raw, cells, found, forced, sure=proved == {"comma"}, but=open_)


def _settle_points(
    raw: Raw, cells: dict[int, Cells], found: dict[int, Reading], forced: dict[str, Kind], *, sure: bool, but: list[int]
) -> None:
    """Points that may part thousands do, in a table that writes decimal commas.

    Where only its semicolons speak for that, "1.234" must stand beside whole numbers, which decimals would not.
    """
    for j, reading in found.items():
        settled = reading.kind != "number" or j in raw.typed or reading.proved is not None or j in but
        if settled or not cells[j].only_ambiguous_points() or not (sure or cells[j].has_whole_numbers()):
            continue
        found[j] = read_column(cells[j], raw.names[j], forced.get(raw.names[j]), "comma")
        if sure:
            found[j].notes.append('points part thousands, as other columns have decimal commas: "1.234" is 1234')
        else:
            found[j].doubt = '"1.234" could be 1.234 as well; it was read as 1234, since semicolons separate the fields'


def _has_fractions(reading: Reading) -> bool:
    """Whether a column holds plain numbers with points, read without a look at each."""
    return reading.kind == "number" and reading.proved is None and reading.how == "numbers"


def _settle_dates(raw: Raw, cells: dict[int, Cells], found: dict[int, Reading], forced: dict[str, Kind]) -> None:
    """Dates that could be the other way round are read as those of the other columns."""
    proved = {reading.day_first for reading in found.values()} - {None}
    if len(proved) != 1:
        return
    for j, reading in found.items():
        if reading.kind == "date" and reading.doubt:
            found[j] = read_column(cells[j], raw.names[j], forced.get(raw.names[j]), day_first=proved == {True})


def _one_id(raw: Raw, found: dict[int, Reading], forced: dict[str, Kind]) -> None:
    """Keep the column that names the rows best; the others are text, which no model uses either."""
    candidates = [j for j, reading in found.items() if reading.kind == "id"]
    if len(candidates) < 2:
        return
    told = [j for j in candidates if forced.get(raw.names[j]) == "id"]
    best = told[0] if told else max(candidates, key=lambda j: (found[j].names_rows, -j))
    for j in candidates:
        if j != best:
            found[j].kind = "text"
            found[j].how += f'; rows are named by "{raw.names[best]}"'
