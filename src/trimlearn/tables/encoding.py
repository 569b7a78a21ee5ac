"""Bytes of a text file as UTF-8, whatever they were."""

from __future__ import annotations

import codecs
import re

from trimlearn._utils.text import plural
from trimlearn.tables.table import arrow

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
    """Whether Arrow, which makes no copy of it, takes it for one string."""
    pa = arrow()
    ends = pa.array([0, len(raw)], pa.int64()).buffers()[1]
    try:
        pa.LargeStringArray.from_buffers(1, ends, pa.py_buffer(raw)).validate(full=True)
    except pa.ArrowInvalid:
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
