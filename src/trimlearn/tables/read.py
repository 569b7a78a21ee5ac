"""`read_table`: a file, a DataFrame or an array as a table whose columns are understood."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from trimlearn._utils.text import plural
from trimlearn.tables.cells import pieces
from trimlearn.tables.delimited import read_delimited
from trimlearn.tables.fingerprint import fingerprint
from trimlearn.tables.footer import without_footer
from trimlearn.tables.formats import read_excel, read_numpy, read_parquet
from trimlearn.tables.frames import from_array, from_frame
from trimlearn.tables.layout import DELIMITERS
from trimlearn.tables.names import find_names
from trimlearn.tables.table import Column, Kind, Raw, Table, arrow, pandas, shown_words
from trimlearn.tables.understand import understand
from trimlearn.tables.words import Reading

EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
WORKBOOKS = (b"PK", b"\xd0\xcf\x11\xe0")  # how they begin: zip archives, and Microsoft's older compound files
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # how text begins in which bytes may be 0
HEAD = 512  # bytes that tell text from another kind of file: a sector of a compound file


def read_table(
    source: Any,
    *,
    categorical: str | Iterable[str] = (),
    date: str | Iterable[str] = (),
    number: str | Iterable[str] = (),
    drop: str | Iterable[str] = (),
    id: str | None = None,
    least_rows: int = 2,
) -> Table:
    """Read a table, and find out what its columns hold.

    Parameters
    ----------
    source : path, DataFrame or array
        A file (CSV and other delimited text, also .gz; Parquet; Excel; .npz, .npy), a DataFrame of pandas (or anything
        with ``to_pandas``), or a 2-D array.
    categorical, date, number : str or iterable of str
        Columns that are of this kind whatever they look like.
    drop : str or iterable of str
        Columns to leave out.
    id : str, optional
        The column that names the rows.
    least_rows : int, default=2
        Fewer rows are an error. One is enough to predict.

    Returns
    -------
    Table
        What is written in each cell, what it means, and notes on what was assumed.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"Price": ["£21,995", "£8,250", "n/a"], "Sold": ["31.12.2015", "1.2.2016", "3.2.2016"]})
    >>> table = read_table(frame)
    >>> [(column.name, column.kind, column.how) for column in table.columns]
    [('Price', 'number', 'whole numbers with £ and thousands commas'), ('Sold', 'date', 'dates, day first')]
    >>> table.frame["Price"].tolist()
    [21995.0, 8250.0, nan]
    """
    raw = _raw(source)
    _trim(raw)
    without_footer(raw)
    _empty_repeated_names(raw)
    _check_size(raw, least_rows)
    forced = _forced(raw.names, {"category": categorical, "date": date, "number": number, "id": id or ()})
    mark = fingerprint(raw.names, raw.columns)
    dropped = set(find_names(drop, raw.names, "drop"))
    for name in forced:
        if name in dropped:
            kind = f"{'an' if forced[name] == 'id' else 'a'} {forced[name]}"
            raise ValueError(f'drop: "{name}" cannot be left out and be {kind} too; name it once.')
    kept = [j for j, name in enumerate(raw.names) if name not in dropped]
    if not kept:
        raise ValueError("drop: no column would be left; name fewer.")
    readings = understand(raw, kept, forced)
    found = dict(zip((raw.names[j] for j in kept), readings, strict=True))
    notes = [f"{name}: {note}." for name, one in found.items() for note in (*one.notes, one.doubt) if note]
    pd = pandas()
    return Table(
        frame=pd.DataFrame({name: pd.Series(one.values, dtype=one.values.dtype) for name, one in found.items()}),
        written=_written(list(found), [raw.columns[j] for j in kept]),
        columns=tuple(Column(name, one.kind, one.how, one.missing, one.unreadable) for name, one in found.items()),
        source=raw.source,
        first_line=raw.first_line,
        fingerprint=mark,
        notes=(*raw.notes, *_missing_note(readings), *notes),
    )


def _raw(source: Any) -> Raw:
    if isinstance(source, (str, os.PathLike)):
        return _of_file(Path(source).expanduser())
    if not hasattr(source, "iloc") and hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if hasattr(source, "iloc"):
        return _of_frame(source if hasattr(source, "columns") else source.to_frame())
    if isinstance(source, (dict, list, tuple)):
        lengths = {len(row) for row in source if isinstance(row, (list, tuple))}
        if len(lengths) > 1:
            raise ValueError(
                f"source is ragged: its rows have {min(lengths)} to {max(lengths)} cells; give as many each."
            )
        try:
            frame = pandas().DataFrame(source)
        except (ValueError, TypeError) as error:
            raise ValueError(f"source cannot be made a table: {error}") from error
        numbered = list(frame.columns) == list(range(frame.shape[1]))
        return from_frame(frame.add_prefix("x") if numbered else frame, "table")
    if hasattr(source, "toarray"):
        raise ValueError("source is sparse; give source.toarray().")
    array = np.asarray(np.ma.filled(source.astype(object), None) if np.ma.is_masked(source) else source)
    if array.ndim == 0:
        raise ValueError(f"source must be a path, a DataFrame or a 2-D array, got {type(source).__name__}.")
    return from_array(array, "source")


def _of_frame(frame: Any) -> Raw:
    raw = from_frame(frame, "table")
    for delimiter, name in DELIMITERS.items():
        if len(raw.names) == 1 and delimiter in raw.names[0]:
            raw.notes.append(f"The only column is called {shown_words(raw.names)}: were its {name} to part columns?")
    return raw


def _of_file(path: Path) -> Raw:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file, or --labels with a folder of images.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; check the name.")
    suffix = path.suffix.lower()
    try:
        if suffix in (".parquet", ".pq"):
            return read_parquet(path)
        if suffix in EXCEL and not _is_text(path):
            return read_excel(path)
        if suffix in (".npz", ".npy"):
            return read_numpy(path)
        raw = _of_text(path, suffix)
        if suffix in EXCEL:
            raw.notes.insert(0, "The file is text, not a workbook as its name says, and was read as that.")
        return raw
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror or error}.") from error


def _is_text(path: Path) -> bool:
    """Whether a file that is called a workbook is none: many programs export text, or a web page, as .xls."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    return bool(head) and not head.startswith(WORKBOOKS) and (b"\0" not in head or head.startswith(WIDE))


def _of_text(path: Path, suffix: str) -> Raw:
    raw = path.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        try:
            raw, suffix = gzip.decompress(raw), Path(path.stem).suffix.lower()
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path.name} is a damaged gzip archive; copy it again.") from error
    return read_delimited(raw, path.name, suffix)


def _trim(raw: Raw) -> None:
    """Leave out what spreadsheets add: empty rows at the end of a file, and columns without heading and cells."""
    compute = arrow().compute
    rows = raw.rows
    while rows and all(column[rows - 1].as_py() == "" for column in raw.columns):
        rows -= 1
    if rows == 0 < raw.rows:
        raise ValueError(f"{raw.source} holds no values: all cells are empty.")
    if raw.rows > rows and raw.first_line:  # the rows of a DataFrame are all meant
        many = plural(raw.rows - rows, "empty row at the end was", "empty rows at the end were")
        raw.notes.append(f"{many} left out.")
        raw.columns = [column[:rows] for column in raw.columns]
    unnamed = [j for j, name in enumerate(raw.names) if name == f"Unnamed: {j}"]
    empty = {j for j in unnamed if rows and compute.all(compute.equal(raw.columns[j], "")).as_py()}
    if empty:
        _leave_out(raw, empty, len(empty) == len(unnamed))


def _empty_repeated_names(raw: Raw) -> None:
    """Take lines that repeat the names of the columns for empty ones, as where files were put together."""
    compute = arrow().compute
    same = [compute.equal(column, name) for column, name in zip(raw.columns, raw.names, strict=True)]
    repeats = reduce(compute.and_, same) if len(same) > 1 and raw.first_line else None
    lines = np.flatnonzero([] if repeats is None else np.asarray(repeats))
    if len(lines):
        first = f"Line {lines[0] + raw.first_line}"
        who = f"{first} repeats" if len(lines) == 1 else f"{first} and {len(lines) - 1} more repeat"
        raw.notes.append(f"{who} the names of the columns: taken for empty.")
        raw.columns = [compute.if_else(repeats, "", column) for column in raw.columns]


def _leave_out(raw: Raw, empty: set[int], all_unnamed: bool) -> None:
    kept = [j for j in range(len(raw.names)) if j not in empty]
    raw.notes = [note for note in raw.notes if not all_unnamed or "no heading" not in note]
    raw.notes.append(f"Left out, having neither heading nor values: column {', '.join(str(j + 1) for j in empty)}.")
    raw.typed = {kept.index(j): values for j, values in raw.typed.items() if j in kept}
    raw.names, raw.columns = [raw.names[j] for j in kept], [raw.columns[j] for j in kept]


def _check_size(raw: Raw, least: int) -> None:
    if not raw.names:
        raise ValueError(f"{raw.source} has no columns; give a table with at least one.")
    if raw.rows == 0:
        raise ValueError(f"{raw.source} has names of columns but no rows; give at least {least}.")
    if raw.rows < least:
        raise ValueError(f"{raw.source} has {raw.rows} row; give at least {least}, better some hundred.")


def _forced(names: list[str], asked: dict[Kind, Any]) -> dict[str, Kind]:
    """The kind of each column that the user told."""
    options = {"category": "categorical"}
    forced: dict[str, Kind] = {}
    for kind, given in asked.items():
        for name in find_names(given, names, options.get(kind, kind)):
            if forced.get(name, kind) != kind:
                raise ValueError(f'"{name}" cannot be both {forced[name]} and {kind}; name it once.')
            forced[name] = kind
    return forced


def _missing_note(readings: list[Reading]) -> list[str]:
    """Which words counted as missing in the whole table."""
    words = sum((found.words for found in readings), Counter[str]())
    if not words:
        return []
    listed = [f'"{word}" ({plural(count, "cell")})' for word, count in sorted(words.items())[:6]]
    more = ", …" if len(words) > 6 else ""
    return [f"Counted as missing, besides empty cells: {', '.join(listed)}{more}."]


def _written(names: list[str], columns: list[Any]) -> Any:
    """The cells as strings in Arrow's memory: a tenth of what Python's strings take."""
    pd = pandas()
    dtype = "str" if int(pd.__version__.split(".")[0]) >= 3 else pd.StringDtype("pyarrow")
    chunked = [arrow().chunked_array(pieces(column)) for column in columns]
    made = [pd.Series(pd.array(column, dtype=dtype)) for column in chunked]
    return pd.DataFrame(dict(zip(names, made, strict=True)), copy=False)
