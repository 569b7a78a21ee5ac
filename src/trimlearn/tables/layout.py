"""Where the table begins in a text, and what separates its fields: found in the first lines."""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import final

from trimlearn.tables.names import PLAIN, TWO_ROWS, has_names, two_rows_of_names

DELIMITERS = {
    "\t": "tabs",
    ";": "semicolons",
    "|": "bars",
    ",": "commas",
}  # commas stand in numbers too: they lose ties
NONE = "\x1f"  # the delimiter of a table of one column: it stands in no text
DECIMAL = re.compile(r"\s*-?(\d+),\d+\s*$")
HEAD = 1 << 18  # bytes looked at: some hundred lines even of wide tables
LINES = 1000  # looked at: more tell nothing new
PREAMBLE = 20  # lines that may stand above a table: titles, dates, sources
AGREE = 0.9  # of the lines must have as many fields for a text without names to be a table


@final
@dataclass(frozen=True)
class TextRecord:
    """The fields of a row, and the lines it stands in."""

    fields: list[str]
    first: int
    last: int

    @property
    def filled(self) -> bool:
        """Whether any field holds something."""
        return any(cell.strip() for cell in self.fields)

    @property
    def commented(self) -> bool:
        return self.fields[0].lstrip().startswith("#")

    @property
    def counts(self) -> bool:
        """Whether it says something on the number of fields: empty and commented lines do not."""
        return self.filled and not self.commented


@final
@dataclass
class TextLayout:
    """What the first lines tell: ``names`` is None where none stand there, ``row_names`` where they lack one."""

    delimiter: str
    count: int
    names: list[str] | None
    start: int  # the byte at which the rows begin
    first_line: int  # and the line
    row_names: bool = False
    notes: list[str] = field(default_factory=list)


def find_layout(text: bytes, name: str, suffix: str) -> TextLayout:
    """How the table in ``text`` (UTF-8) is laid out.

    >>> layout = find_layout(b"a;b\\n1,5;2\\n", "t.csv", ".csv")
    >>> layout.delimiter, layout.names, layout.first_line
    (';', ['a', 'b'], 2)
    """
    lines = _first_lines(text)
    told = _told(lines)
    delimiter = told or _sniff(lines, suffix)
    records = [r for r in records_of(lines, delimiter) if r.filled or len(r.fields) > 1]
    if told:
        records = records[1:]
    if not records:
        raise ValueError(f"{name} holds no table: its lines are empty.")
    at, count, notes = table_start(titles_cut(records))
    first = records[at]
    below = [r.fields for r in records[at + 1 :] if len(r.fields) == count]
    hash_mark = first.commented and len(first.fields) > 1
    fields = [first.fields[0].lstrip().lstrip("#").lstrip(), *first.fields[1:]] if hash_mark else first.fields
    if delimiter == NONE:
        if any(mark in line for mark in DELIMITERS for line in lines):
            notes.append("No character separates fields in all lines alike; the table was read as one column.")
    elif delimiter not in (",", "\t") or (delimiter == "\t" and suffix == ".csv"):
        notes.append(f"Fields are separated by {DELIMITERS.get(delimiter, 'spaces')}.")
    if has_names(fields, below):
        short = len(fields) == count - 1
        last = first.last
        if both := two_rows_of_names(fields, below):
            fields, last = both, records[at + 1].last
            notes.append(TWO_ROWS)
        return TextLayout(delimiter, count, fields, _offset(text, last), last + 1, short, notes)
    notes.append('No line holds the names of the columns; they are called "column 1", "column 2" and so on.')
    return TextLayout(delimiter, len(fields), None, _offset(text, first.first - 1), first.first, False, notes)


def records_of(lines: list[str], delimiter: str, spaced: bool = False, escaped: bool = False) -> list[TextRecord]:
    """The rows of lines of text, quoted line ends within them.

    >>> [r.fields for r in records_of(['a,"b', 'c"', "1,2"], ",")]
    [['a', 'b\\nc'], ['1', '2']]
    """
    reader = csv.reader(
        (line + "\n" for line in lines),
        delimiter=delimiter,
        skipinitialspace=spaced or delimiter == " ",
        escapechar="\\" if escaped else None,
        doublequote=not escaped,
    )
    found, line = [], 0
    limit = csv.field_size_limit(sys.maxsize >> 32)  # a cell may be longer than csv's 128 KiB
    try:
        for fields in reader:
            whole = fields[:-1] if delimiter == " " and fields and not fields[-1] else fields  # spaces at the end
            found.append(TextRecord(whole, line + 1, reader.line_num))
            line = reader.line_num
    finally:
        csv.field_size_limit(limit)
    return found


def _first_lines(text: bytes) -> list[str]:
    size = HEAD
    while size < len(text) and text.count(b"\n", 0, size) < 2:
        size *= 4
    lines = text[:size].decode("utf-8", errors="ignore").split("\n")
    whole = lines if size >= len(text) else lines[:-1]  # the last one may be cut
    return [line.removesuffix("\r") for line in whole[:LINES]]


def _told(lines: list[str]) -> str:
    """The delimiter of a first line "sep=;", as Excel writes it."""
    first = lines[0].strip().lower() if lines else ""
    return first[4:] if first.startswith("sep=") and first[4:] in DELIMITERS else ""


def _sniff(lines: list[str], suffix: str) -> str:
    """The delimiter that gives the most lines as many fields as the line of names has."""
    best, delimiter = (False, -PREAMBLE - 1, False, 0.0), ""
    for candidate in DELIMITERS:
        records = [r.fields for r in records_of(lines, candidate) if r.counts]
        rows = [len(fields) for fields in records]
        above = next((i for i, count in enumerate(rows) if count > 1), len(rows))
        several = Counter(count for count in rows[above:] if count > 1)
        if not several:
            continue
        if candidate == "\t" and suffix in (".tsv", ".tab"):
            return candidate
        count, times = several.most_common(1)[0]
        share = times / (len(rows) - above)
        score = (share >= AGREE, -above, rows[above] == count, round(share, 2))
        titled = above <= PREAMBLE and len(rows) > above + 1 and share >= AGREE and not _is_prose(records[above:])
        if candidate == "," and above == 1 and _are_decimals(lines):
            continue
        if (above == 0 or titled) and score > best:
            best, delimiter = score, candidate
    return delimiter or (" " if _spaces_separate(lines) else NONE)


def _is_prose(records: list[list[str]]) -> bool:
    """Whether a space follows most delimiters and no field is a number: commas in sentences."""
    cells = [cell for fields in records for cell in fields[1:]]
    return sum(cell.startswith(" ") for cell in cells) > len(cells) / 2 and not any(map(PLAIN.match, cells))


def _are_decimals(lines: list[str]) -> bool:
    """Whether most lines are one number with a decimal comma, and not a number and the row's."""
    found = [DECIMAL.match(line) for line in lines[1:] if line.strip()]
    wholes = [int(one[1]) for one in found if one is not None]
    return len(wholes) >= AGREE * len(found) and wholes[:3] != [1, 2, 3][: len(wholes)]


def _spaces_separate(lines: list[str]) -> bool:
    rows = [r.fields for r in records_of(lines, " ") if r.counts]
    if len(rows) < 2:
        return False
    count, times = Counter(map(len, rows[1:])).most_common(1)[0]
    numbers = sum(any(PLAIN.match(cell) for cell in row) for row in rows[1:])
    return count > 1 and len(rows[0]) in (count, count - 1) and times + numbers >= 2 * AGREE * (len(rows) - 1)


def table_start(records: list[TextRecord]) -> tuple[int, int, list[str]]:
    """Which record is the first of the table, how many fields its rows have, and notes on what stands above."""
    counts = Counter(len(r.fields) for r in records if r.counts) or Counter([len(records[0].fields)])
    usual = counts.most_common(1)[0][0]
    at = 0
    while at < min(PREAMBLE, len(records) - 1) and _is_above(records[at], records[at + 1 :], usual):
        at += 1
    first = records[at]
    short = len(first.fields) == usual - 1 and all(len(r.fields) == usual for r in records[at + 1 :])
    count = usual if short else len(first.fields)
    above = at and records[at].first - 1
    note = [f"{'Line 1 stands' if above == 1 else f'Lines 1 to {above} stand'} above the table; ignored."] if at else []
    return at, count, note


def titles_cut(records: list[TextRecord], least: int = 3) -> list[TextRecord]:
    """The records, those above the table without the empty cells that a spreadsheet adds to a title.

    least: columns from which on it may be one; "name," in a text of two columns is a line of names.

    >>> [r.fields for r in titles_cut([TextRecord(["Birds", "", ""], 1, 1), TextRecord(["name", "mm", "g"], 2, 2)])]
    [['Birds'], ['name', 'mm', 'g']]
    """
    several = (i for i, r in enumerate(records) if sum(bool(cell.strip()) for cell in r.fields) > 1)
    begins = next(several, 0)
    above = [TextRecord(r.fields[:1], r.first, r.last) if len(r.fields) >= least else r for r in records[:begins]]
    return above + records[begins:]


def _is_above(record: TextRecord, below: list[TextRecord], usual: int) -> bool:
    """Whether a record stands above the table: a comment, or a title of one field."""
    if len(record.fields) == usual and not (usual == 1 and record.commented):
        return False
    if record.commented:
        return True
    if len(record.fields) > 1 and any(cell.strip() for cell in record.fields[1:]):
        return False
    names = below[0].fields
    last_above = len(names) == usual > 1
    if not last_above:
        return len(names) <= 1 and _is_above(below[0], below[1:], usual) if len(below) > 1 else False
    regular = sum(len(r.fields) == usual for r in below) >= AGREE * sum(r.counts for r in below)
    return regular and (usual > 2 or (len(below) > 1 and not any(PLAIN.match(cell) for cell in names)))


def _offset(text: bytes, line: int) -> int:
    """The byte at which the line after ``line`` begins."""
    at = 0
    for _ in range(line):
        end = text.find(b"\n", at)
        if end < 0:
            return len(text)
        at = end + 1
    return at
