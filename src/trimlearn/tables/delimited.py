"""Tables in plain text: which character separates the fields, where the table begins, and its cells as strings."""

from __future__ import annotations

import re
from typing import Any

from trimlearn.tables.encoding import as_utf8
from trimlearn.tables.layout import HEAD, TextLayout, find_layout
from trimlearn.tables.names import unique_names
from trimlearn.tables.records import passed_over, plain_line_ends, read_records
from trimlearn.tables.table import Raw, arrow

LANGUAGES = (
    (re.compile(rb"\s*<(!doctype|html|\?xml|table|svg)", re.I), "a web page or XML"),
    (re.compile(rb'\s*(\{\s*"|\[\s*[\[{])'), "JSON"),
    (re.compile(rb"(\s*%[^\n]*\n)*\s*@relation", re.I), "ARFF"),
)
BLOCK = 1 << 22  # bytes that Arrow parses at a time: larger ones took more memory, smaller ones more time


def read_delimited(raw: bytes, name: str, suffix: str = ".csv") -> Raw:
    """The table in the bytes of a text file.

    >>> table = read_delimited("Größe;n\\n12,5;3\\n".encode("latin-1"), "t.csv")
    >>> table.names, [column.to_pylist() for column in table.columns], table.first_line
    (['Größe', 'n'], [['12,5'], ['3']], 2)
    """
    text, notes = as_utf8(raw, name)
    del raw
    if b"\r" in text[:HEAD] and text.count(b"\r") != text.count(b"\r\n"):
        text = plain_line_ends(text)
    if _is_bare(text[:4096]) and _is_bare(text):
        raise ValueError(f"{name} is empty; give a file with a line of names and lines of values.")
    for pattern, what in LANGUAGES:
        if pattern.match(text[:4096]):
            raise ValueError(f"{name} holds {what}, not a table of delimited text; save the table as CSV.")
    layout = find_layout(text, name, suffix)
    columns, more = _columns(text, layout, name)
    columns, spare = _without_spare(columns, layout)
    names, changed = _names(layout, len(columns))
    return Raw(
        names=names,
        columns=columns,
        source=name,
        first_line=layout.first_line,
        notes=notes + layout.notes + changed + more + spare,
        semicolons=layout.delimiter == ";",
    )


def _names(layout: TextLayout, count: int) -> tuple[list[str], list[str]]:
    if layout.names is None:
        return [f"column {j + 1}" for j in range(count)], []
    return unique_names(["", *layout.names] if count > len(layout.names) else layout.names)


def _is_bare(text: bytes) -> bool:
    """Whether there is nothing but delimiters, quotation marks and line ends."""
    return not text.translate(None, b',;|\t" \r\n')


def _without_spare(columns: list[Any], layout: TextLayout) -> tuple[list[Any], list[str]]:
    """Without the column that stands there only because each line ends with a delimiter."""
    if layout.row_names and arrow().compute.all(arrow().compute.equal(columns[-1], ""), min_count=0).as_py():
        return columns[:-1], ["Each line ends with a spare delimiter, which was ignored."]
    return columns, []


def _columns(text: bytes, layout: TextLayout, name: str) -> tuple[list[Any], list[str]]:
    """The cells, one array of strings for each column: by Arrow, or line by line where it finds a ragged one."""
    if layout.start >= len(text) and text.count(b'"') % 2:
        raise ValueError(f"{name}: a quotation mark among the names is never closed; close or remove it.")
    if layout.delimiter == " " or layout.start >= len(text):
        return read_records(text, layout, name)
    try:
        table, comments = _by_arrow(text, layout)
    except arrow().ArrowInvalid:
        return read_records(text, layout, name)
    columns = table.columns
    _check_closed(columns, text, name)
    return columns, _skipped(text, layout, len(table), comments)


def _by_arrow(text: bytes, layout: TextLayout) -> tuple[Any, int]:
    pa = arrow()
    from pyarrow import csv

    comments = 0

    def handle(row: Any) -> str:
        nonlocal comments
        if row.text.lstrip().startswith("#") or not row.text.strip():
            comments += 1
            return "skip"
        return "error"

    body = pa.py_buffer(text)[layout.start :]
    fields = [f"f{j}" for j in range(layout.count)]
    quoted = b'"' in text
    # The longest row must fit into a block, and a quoted text may be of any length; 256 MiB at once are still little.
    block = max(BLOCK, len(text) if quoted and len(text) < 1 << 28 else 0)
    table = csv.read_csv(
        pa.BufferReader(body),
        read_options=csv.ReadOptions(column_names=fields, block_size=block),
        parse_options=csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=quoted, invalid_row_handler=handle
        ),
        convert_options=csv.ConvertOptions(
            column_types={field: pa.large_string() for field in fields}, strings_can_be_null=False, check_utf8=False
        ),
    )
    return table, comments


def _end(text: bytes) -> int:
    """Where the last line that is not empty ends; without a copy, as rstrip would make."""
    end = len(text)
    while end and text[end - 1 : end].isspace():
        end -= 1
    return end


def _check_closed(columns: list[Any], text: bytes, name: str) -> None:
    """ValueError where a quotation mark was never closed: everything after it is one cell."""
    last = [column[len(column) - 1].as_py() for column in columns if len(column)]
    swallowed = max((cell.count("\n") for cell in last), default=0)
    if swallowed and text.count(b'"') % 2:
        line = text.count(b"\n") - swallowed + 1
        raise ValueError(f"{name}: a quotation mark that opens in line {line} is never closed; close or remove it.")


def _skipped(text: bytes, layout: TextLayout, rows: int, comments: int) -> list[str]:
    """A note where there are more lines than rows."""
    if b'"' in text:
        lines = rows + comments  # line ends within cells cannot be told from empty lines here
    else:
        end = _end(text)
        lines = text.count(b"\n", layout.start, end) + (end > layout.start)
    return passed_over(lines - rows)
