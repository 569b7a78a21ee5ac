"""Delimited text read line by line: for what Arrow does not take, and to say which line is wrong."""

from __future__ import annotations

from typing import Any

from trimlearn._utils.text import plural
from trimlearn.tables.footer import are_remarks, below_the_table
from trimlearn.tables.layout import DELIMITERS, TextLayout, TextRecord, records_of
from trimlearn.tables.table import arrow


def read_records(text: bytes, layout: TextLayout, name: str) -> tuple[list[Any], list[str]]:
    """The cells of the rows, and notes; a ValueError names the first ragged line.

    Tried as it is, then with spaces after delimiters ignored, then with quotation marks written \\": what gives all
    rows as many fields as there are names is right.

    >>> from trimlearn.tables.layout import find_layout
    >>> text = b"a,b\\n1,2\\n3\\n"
    >>> read_records(text, find_layout(text, "t.csv", ".csv"), "t.csv")
    Traceback (most recent call last):
    ValueError: t.csv: line 3 has 1 field where 2 were expected (separated by commas); add or remove delimiters there.
    """
    lines = plain_line_ends(text[layout.start :]).decode("utf-8", errors="replace").split("\n")
    wrong: list[TextRecord] = []
    for spaced, escaped in ((False, False), (True, False), (False, True)):
        records = records_of(lines, layout.delimiter, spaced, escaped)
        records, below = _above_remarks(records, layout)
        rows = [r for r in records if len(r.fields) == layout.count > 1 or r.counts]
        ragged = [r for r in rows if len(r.fields) != layout.count and not _only_spare(r, layout.count)]
        if records and not ragged:
            return _as_columns(rows, layout.count), [*_notes(records, rows, layout.count), *below]
        wrong = wrong or ragged
    raise ValueError(_what_is_wrong(wrong, layout, name, len(lines)))


def _above_remarks(records: list[TextRecord], layout: TextLayout) -> tuple[list[TextRecord], list[str]]:
    """The records without the remarks that stand below the table, and a note on these."""
    whole = [i for i, r in enumerate(records) if len(r.fields) == layout.count]
    end = whole[-1] + 1 if whole else len(records)
    remarks = [r for r in records[end:] if r.filled]
    if not remarks or not are_remarks(records[end:]):
        return records, []
    lines = [layout.first_line - 1 + r.first for r in remarks]
    return records[:end], [below_the_table(lines, [" ".join(r.fields) for r in remarks])]


def plain_line_ends(text: bytes) -> bytes:
    """Lines ended by line feeds, however they were: also as the first Macintosh did.

    >>> plain_line_ends(b"a\\r\\nb\\rc\\n")
    b'a\\nb\\nc\\n'
    """
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _only_spare(record: TextRecord, count: int) -> bool:
    """Whether a row is too long by empty fields only."""
    return len(record.fields) > count and not any(cell.strip() for cell in record.fields[count:])


def _as_columns(rows: list[TextRecord], count: int) -> list[Any]:
    pa = arrow()
    return [pa.array([row.fields[j] for row in rows], pa.large_string()) for j in range(count)]


def _notes(records: list[TextRecord], rows: list[TextRecord], count: int) -> list[str]:
    notes = []
    longer = sum(len(row.fields) > count for row in rows)
    if longer:
        notes.append(f"{longer:,} line{'s end' if longer > 1 else ' ends'} with spare delimiters, which were ignored.")
    last = max((row.last for row in rows), default=0)
    passed = sum(record.last < last for record in records) - sum(row.last < last for row in rows)
    return notes + passed_over(passed)


def passed_over(lines: int) -> list[str]:
    """A note where lines were passed over, since lines are then not numbered as in the file."""
    what = plural(lines, "empty or commented line was", "empty or commented lines were")
    return [f"{what} passed over, and not counted in line numbers."] if lines > 0 else []


def _what_is_wrong(wrong: list[TextRecord], layout: TextLayout, name: str, lines: int) -> str:
    if not wrong:
        return f"{name}: a quotation mark in line {layout.first_line} or later is never closed; close or remove it."
    first = wrong[0]
    line = layout.first_line - 1 + first.first
    if first.last - first.first > 0 and first.last >= lines - 1:
        return f"{name}: a quotation mark that opens in line {line} is never closed; close or remove it."
    more = f", and {len(wrong) - 1:,} more lines are ragged" if len(wrong) > 1 else ""
    fields, separated = plural(len(first.fields), "field"), DELIMITERS.get(layout.delimiter, "spaces")
    return (
        f"{name}: line {line} has {fields} where {layout.count} were expected (separated by {separated}){more}; "
        "add or remove delimiters there."
    )
