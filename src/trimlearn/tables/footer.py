"""What stands below a table in a file: remarks, and a row of totals. Neither is a row of it."""

from __future__ import annotations

import re

import numpy as np

from trimlearn.tables.cells import is_missing_number
from trimlearn.tables.layout import TextRecord
from trimlearn.tables.numbers import read_numbers
from trimlearn.tables.table import Raw, shown_words

FEWEST_COLUMNS = 3  # of a table, for a row with one filled cell to be a remark: in one of two it is half a row
MOST = 20  # rows that may stand below a table, as above it
# What a row of totals is called, in the languages of most spreadsheets; alone or with what it sums ("Total 2024").
TOTAL = re.compile(
    r"(?i)(?:(?:grand|overall)[\s-]+)?(?:totals?|sums?|summe|gesamt|insgesamt|somme|suma|totale|total general|итого|"
    r"всего|totaal|razem|yhteensä|合计|总计|合計|総計)(?:\s*[:.]|\s+\S+)?"
)
ROUNDED = 0.01  # of a sum: a total may have been taken of more digits than are shown, or before a cell went wrong


def are_remarks(records: list[TextRecord]) -> bool:
    """Whether records of another length, which end a text, are remarks: sentences, or set off by an empty line.

    >>> are_remarks([TextRecord([], 5, 5), TextRecord(["* provisional"], 6, 6)])
    True
    >>> are_remarks([TextRecord(["12.5"], 5, 5)])
    False
    """
    filled = [r for r in records if r.filled]
    set_off = bool(records) and not records[0].filled
    return len(filled) <= MOST and (set_off or all(_is_sentence(",".join(r.fields)) for r in filled))


def _is_sentence(text: str) -> bool:
    words = text.split()
    return len(words) > 2 and sum(any(map(str.isalpha, word)) for word in words) > 1


def below_the_table(lines: list[int], words: list[str]) -> str:
    """What is told of remarks in these lines."""
    stand = f"Line {lines[0]} stands" if len(lines) == 1 else f"Lines {lines[0]} to {lines[-1]} stand"
    return f"{stand} below the table ({shown_words(words)}); ignored."


def without_footer(raw: Raw) -> None:
    """Leave out, in place, remarks below the table of a file and a row of totals; each is told in a note.

    >>> import pyarrow as pa
    >>> cells = [["a", "b", "Total", "", "Printed on Monday"], ["1", "2", "3", "", ""], ["4", "5", "9", "", ""]]
    >>> raw = Raw(["name", "x", "y"], [pa.array(c, pa.large_string()) for c in cells], "t.csv", 2)
    >>> without_footer(raw)
    >>> raw.rows, raw.notes[1]
    (2, 'Line 4 ("Total") sums up the rows above; ignored.')
    """
    if not raw.first_line or len(raw.names) < FEWEST_COLUMNS:  # the rows of a DataFrame are all meant
        return
    end = _end_of_rows(raw)
    if end < raw.rows:
        remarks = [row for row in range(end, raw.rows) if any(_row(raw, row))]
        words = [next(filter(None, _row(raw, row))) for row in remarks]
        raw.notes.append(below_the_table([row + raw.first_line for row in remarks], words))
        _cut(raw, end)
    if end > 2 and _is_total(raw, end - 1):
        word = next(filter(None, _row(raw, end - 1)))
        raw.notes.append(f'Line {end - 1 + raw.first_line} ("{word}") sums up the rows above; ignored.')
        _cut(raw, end - 1)
        while raw.rows > 1 and not any(_row(raw, raw.rows - 1)):
            _cut(raw, raw.rows - 1)


def _row(raw: Raw, row: int) -> list[str]:
    return [str(column[row].as_py()).strip() for column in raw.columns]


def _end_of_rows(raw: Raw) -> int:
    """Where rows of one filled cell begin that end the table, if they are remarks; else the number of rows."""
    end = raw.rows
    while end > max(1, raw.rows - MOST) and sum(map(bool, _row(raw, end - 1))) <= 1:
        end -= 1
    below = [TextRecord(list(filter(None, _row(raw, row))), 0, 0) for row in range(end, raw.rows)]
    return end if end > 1 and any(record.fields for record in below) and are_remarks(below) else raw.rows


def _is_total(raw: Raw, row: int) -> bool:
    """Whether a row is called so, as no other is, and holds the sum of a column or has no other word."""
    cells = _row(raw, row)
    named = [j for j, cell in enumerate(cells) if TOTAL.fullmatch(cell)]
    if not named or any(TOTAL.fullmatch(str(raw.columns[named[0]][i].as_py()).strip()) for i in range(min(row, MOST))):
        return False
    return any(_is_sum(raw, j, row) for j, cell in enumerate(cells) if cell and j != named[0])


def _is_sum(raw: Raw, j: int, row: int) -> bool:
    words = [str(cell).strip() for cell in raw.columns[j].to_pylist()[: row + 1]]
    if is_missing_number(words[row]):
        return False
    values = read_numbers(words, [1] * len(words)).values
    total = float(np.nansum(values[:row]))
    return bool(abs(values[row] - total) <= ROUNDED * abs(total)) and bool(np.sum(~np.isnan(values[:row])) > 1)


def _cut(raw: Raw, rows: int) -> None:
    raw.columns = [column[:rows] for column in raw.columns]
    raw.typed = {j: values[:rows] if not isinstance(values, str) else values for j, values in raw.typed.items()}
