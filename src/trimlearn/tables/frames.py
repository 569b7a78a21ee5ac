"""DataFrames and arrays as tables: what would have been written, and the values they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from trimlearn.tables.names import unique_names
from trimlearn.tables.table import Raw, arrow, pandas


def from_array(array: Any, source: str) -> Raw:
    """A table of a 2-D array, its columns called x0, x1, …; or of a structured one.

    >>> from_array(np.eye(2), "array").names
    ['x0', 'x1']
    """
    pd = pandas()
    if array.dtype.names:
        return from_frame(pd.DataFrame.from_records(array), source)
    if array.ndim != 2:
        raise ValueError(f"{source} must have rows and columns (2 dimensions), got shape {array.shape}.")
    if array.dtype.kind == "c":
        raise ValueError(f"{source} holds complex numbers; give real ones.")
    names = [f"x{j}" for j in range(array.shape[1])]
    as_it_is = object if array.dtype.kind == "O" else None
    return from_frame(pd.DataFrame(array, columns=names, dtype=as_it_is), source)


def from_frame(frame: Any, source: str) -> Raw:
    """A table of a DataFrame; an index that is more than 0, 1, 2, … becomes its first column.

    >>> import pandas as pd
    >>> raw = from_frame(pd.DataFrame({"a": [1.0, 2.5]}, index=["u", "v"]), "frame")
    >>> raw.names, [column.to_pylist() for column in raw.columns]
    (['index', 'a'], [['u', 'v'], ['1', '2.5']])
    """
    series = [*_index_columns(frame), *((frame.columns[j], frame.iloc[:, j]) for j in range(frame.shape[1]))]
    names, notes = unique_names([_heading(name) for name, _ in series])
    raw = Raw(names, [], source, first_line=0, notes=notes)
    for j, (_, column) in enumerate(series):
        cells, values = _written(column)
        raw.columns.append(cells)
        if values is not None:
            raw.typed[j] = values
    return raw


def _heading(name: Any) -> str:
    if isinstance(name, tuple):
        return " ".join(str(part) for part in name if part not in (None, ""))
    return "" if name is None or name != name else str(name)


def _index_columns(frame: Any) -> list[tuple[Any, Any]]:
    index = frame.index
    if index.nlevels > 1:
        levels = [index.get_level_values(level) for level in range(index.nlevels)]
        names = [level.name if level.name is not None else f"index {j}" for j, level in enumerate(levels)]
        return [(name, level.to_series()) for name, level in zip(names, levels, strict=True)]
    whole = index.dtype.kind in "iu"
    if whole and (not index.is_unique or np.array_equal(index, np.arange(len(index)))):
        return []
    return [(index.name if index.name is not None else "index", index.to_series())] if len(index) else []


def _written(column: Any) -> tuple[Any, Any]:
    """The cells of a Series as strings (an Arrow array), and their values where these have a type, else None."""
    pa = arrow()
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if str(dtype) == "category":
        return _of_categories(column)
    if kind in "bc":
        return _strings([cell_text(x) for x in column.tolist()]), "words"
    if kind in "iuf":
        values = np.array(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        return _number_strings(column, values), values
    if kind == "M":
        return _date_strings(column)
    if kind == "m":
        hours = column.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan) / 3600
        return _number_strings(None, hours), hours
    try:
        if str(dtype) in ("str", "string") or str(dtype).startswith(("string", "large_string")):
            cells = pa.array(column, from_pandas=True)
            cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
            return pa.compute.fill_null(cells.cast(pa.large_string()), ""), None
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError):
        pass  # letters that no encoding has: taken one by one
    return _strings([cell_text(x) for x in column.tolist()]), None


def _of_categories(column: Any) -> tuple[Any, Any]:
    words = np.array([*(cell_text(x) for x in column.cat.categories.tolist()), ""], dtype=object)
    return _strings(words[column.cat.codes.to_numpy()].tolist()), "category"


def _number_strings(column: Any, values: Any) -> Any:
    """Numbers as repr writes them, without ".0" where they are whole; "" for NaN."""
    pa = arrow()
    numbers = values
    if column is not None and column.dtype in (np.dtype(np.float32), *map(np.dtype, ("i8", "u8", "i4", "i2", "i1"))):
        numbers = column.to_numpy()  # 0.1 of 32 bits is "0.1", and large integers keep all digits
    cells = pa.array(numbers, from_pandas=True).cast(pa.large_string())
    return pa.compute.fill_null(cells, "")


def _date_strings(column: Any) -> tuple[Any, Any]:
    pa = arrow()
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_localize(None)  # as the clock showed it there
    values = column.to_numpy(dtype="datetime64[us]")
    known = values[~np.isnat(values)]
    days = bool(np.all(known.astype("M8[D]") == known))
    text = values.astype("M8[D]" if days else "M8[s]").astype(np.str_)
    cells = np.where(np.isnat(values), "", np.char.replace(text, "T", " "))
    return pa.array(cells.tolist(), pa.large_string()), values


def cell_text(value: Any) -> str:
    """What would have been written for a value."""
    if isinstance(value, str):
        return value
    if value is None or value is pandas().NA or value is pandas().NaT or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (float, np.floating)):
        return repr(float(value)).removesuffix(".0")
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value).removesuffix(" 00:00:00")  # a Timestamp that is a day


def _strings(cells: list[str]) -> Any:
    pa = arrow()
    try:
        return pa.array(cells, pa.large_string())
    except UnicodeEncodeError:  # lone surrogates
        return pa.array([cell.encode(errors="replace").decode() for cell in cells], pa.large_string())
