"""Tables in plain text: which character separates the fields, where the table begins, and its cells as strings.

Bytes of a text file as UTF-8, whatever they were.

Delimited text read line by line: for what Arrow does not take, and to say which line is wrong.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

from trimlearn._utils.text import plural
from trimlearn.tables.layout import (
    DELIMITERS,
    HEAD,
    TextLayout,
    TextRecord,
    are_remarks,
    below_the_table,
    find_layout,
    records_of,
)
from trimlearn.tables.names import unique_names
from trimlearn.tables.table import Raw, arrow


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
        rows = [r for r in records if _is_row(r, layout)]
        ragged = [r for r in rows if len(r.fields) != layout.count and not _only_spare(r, layout.count)]
        if records and not ragged:
            return _as_columns(rows, layout.count), [*_notes(records, rows, layout.count), *below]
        wrong = wrong or ragged
    raise ValueError(_what_is_wrong(wrong, layout, name, len(lines)))


def _above_remarks(records: list[TextRecord], layout: TextLayout) -> tuple[list[TextRecord], list[str]]:
    """The records without the remarks that stand below the table, and a note on these."""
    whole = [i for i, r in enumerate(records) if len(r.fields) == layout.count]
    end = whole[-1] + 1 if whole else len(records)
    remarks = [r for r in records[end:] if any(cell.strip() for cell in r.fields)]
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


def _is_row(record: TextRecord, layout: TextLayout) -> bool:
    if len(record.fields) == layout.count > 1:
        return True
    return any(cell.strip() for cell in record.fields) and not record.fields[0].lstrip().startswith("#")


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


BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
KNOWN_FILES = (
    (b"PK\x03\x04", "an Excel workbook or a zip archive; give it its own ending (.xlsx), or unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; give it its own ending (.xls)"),
    (b"PAR1", "a Parquet file; give it the ending .parquet"),
    (b"ARROW1", "an Arrow file; save it as Parquet or CSV"),
    (b"\x93NUMPY", "a NumPy array; give it the ending .npy"),
    (b"%PDF", "a PDF document; save the table as CSV"),
    (b"SQLite format 3", "a database; export the table as CSV"),
    (b"BZh", "a bzip2 archive; unpack it"),
    (b"\xfd7zXZ", "an xz archive; unpack it"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive; unpack it"),
    (b"\x89PNG", "an image; give the folder of images, and their labels by --labels"),
    (b"\xff\xd8\xff", "an image; give the folder of images, and their labels by --labels"),
)
CHUNK = 1 << 22  # bytes decoded at a time: a few MiB keep memory low and cost no speed
SNIFFED = 1 << 16  # bytes that are looked at to know what a file is: as many as `file` reads of most kinds
CONTROLS = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f]")  # bytes that no text has (tabs, line ends, escapes apart)


def as_utf8(raw: bytes, name: str) -> tuple[bytes, list[str]]:
    """The same text as UTF-8 without a byte order mark, and notes on how it was read.

    >>> as_utf8("a,ä\\n".encode("utf-16"), "t.csv")
    (b'a,\\xc3\\xa4\\n', ['The file is in UTF-16.'])
    >>> as_utf8("Größe\\n".encode("latin-1"), "t.csv")[1]
    ['The file is not UTF-8; it was read as Windows-1252. If letters look wrong, save it as UTF-8.']
    """
    raw = raw.removesuffix(b"\x1a")  # how DOS ended a text
    for start, what in KNOWN_FILES:
        if raw.startswith(start):
            raise ValueError(f"{name} is no text: it is {what}.")
    mark, encoding = next((bom for bom in BOMS if raw.startswith(bom[0])), (b"", _wide_without_mark(raw[:SNIFFED])))
    raw, notes = raw[len(mark) :] if mark else raw, []
    if encoding not in ("", "utf-8"):
        raw, notes = _decoded(raw, encoding, name), [f"The file is in {encoding[:6].upper()}."]
    many = not mark and len(CONTROLS.findall(raw[:SNIFFED])) > len(raw[:SNIFFED]) / 100
    if 0 in raw[:SNIFFED] or 0 in raw or (many and not encoding):
        raise ValueError(f"{name} is no text: it holds bytes that no table has; is it another kind of file?")
    return (raw, notes) if _is_utf8(raw) else _from_eight_bits(raw, name)


def _decoded(raw: bytes, encoding: str, name: str) -> bytes:
    try:
        return raw.decode(encoding).encode()
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1}"
        raise ValueError(f"{name} is damaged: it is {encoding[:6].upper()} but for {at}; save it as UTF-8.") from error


def _wide_without_mark(head: bytes) -> str:
    """UTF-16 that does not say so: every second byte of mostly Latin text is 0."""
    even, odd = head[0::2], head[1::2]
    if len(head) < 4:
        return ""
    if odd.count(0) > 0.7 * len(odd) and even.count(0) < 0.1 * len(even):
        return "utf-16-le"
    return "utf-16-be" if even.count(0) > 0.7 * len(even) and odd.count(0) < 0.1 * len(odd) else ""


def _is_utf8(raw: bytes) -> bool:
    if raw.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(raw), CHUNK):
            decoder.decode(raw[start : start + CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _from_eight_bits(raw: bytes, name: str) -> tuple[bytes, list[str]]:
    """Text of one byte a letter; or UTF-8 in which a few bytes are damaged."""
    text = raw.decode("utf-8", errors="replace")
    damaged, other = text.count("\ufffd"), sum(1 for letter in set(text) if letter > "\x7f") - 1
    if other and damaged <= sum(text.count(letter) for letter in set(text) if letter > "\x7f" and letter != "\ufffd"):
        where = text[: text.index("\ufffd")].count("\n") + 1
        letters = plural(damaged, "letter")
        return text.encode(), [f'{letters} could not be read as UTF-8 and became "\ufffd", first in line {where}.']
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{name} has an unknown encoding: line {line} is neither UTF-8 nor Windows-1252; save it as UTF-8."
        ) from error
    note = "The file is not UTF-8; it was read as Windows-1252. If letters look wrong, save it as UTF-8."
    return text.encode(), [note]


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
    _check_language(text[:4096], name)
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


def _check_language(head: bytes, name: str) -> None:
    for pattern, what in LANGUAGES:
        if pattern.match(head):
            raise ValueError(f"{name} holds {what}, not a table of delimited text; save the table as CSV.")


def _without_spare(columns: list[Any], layout: TextLayout) -> tuple[list[Any], list[str]]:
    """Without the column that stands there only because each line ends with a delimiter."""
    if not layout.row_names or not _is_blank(columns[-1]):
        return columns, []
    return columns[:-1], ["Each line ends with a spare delimiter, which was ignored."]


def _is_blank(column: Any) -> bool:
    pa = arrow()
    return not len(column) or bool(pa.compute.all(pa.compute.equal(column, "")).as_py())


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
