"""Tables in files that are no text: Parquet, Excel, NumPy."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from trimlearn._utils.text import plural
from trimlearn.tables.frames import cell_text, from_array, from_frame
from trimlearn.tables.layout import TextRecord, table_start, titles_cut
from trimlearn.tables.names import TWO_ROWS, has_names, two_rows_of_names, unique_names
from trimlearn.tables.table import Raw, arrow, pandas

LEAST = 2  # rows of several cells that a table has more than, its names among them: a cover sheet has fewer
NAMES = ("feature_names", "columns", "names")  # what arrays of names are called in .npz files


def read_parquet(path: Path) -> Raw:
    """The table in a Parquet file."""
    pa = arrow()
    from pyarrow import parquet

    try:
        frame = parquet.read_table(path).to_pandas()
    except (pa.ArrowException, ValueError, NotImplementedError) as error:
        raise ValueError(f"{path.name} cannot be read as Parquet: it is damaged or another kind of file.") from error
    return from_frame(frame, path.name)


def read_numpy(path: Path) -> Raw:
    """The table in a .npy or .npz file: a 2-D array, also with 1-D columns beside it; or 1-D columns."""
    loaded: Any = None
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"": loaded} if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded.files}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        with path.open("rb") as file:
            numpy = file.read(6) == b"\x93NUMPY" or isinstance(loaded, np.lib.npyio.NpzFile)
        why = "it holds Python objects; save plain arrays" if numpy else "it is damaged or another kind of file"
        raise ValueError(f"{path.name} cannot be read as a NumPy file: {why}.") from error
    if "" in arrays:
        return from_array(arrays[""], path.name)
    matrices = {key: a for key, a in arrays.items() if a.ndim == 2}
    if len(matrices) > 1 and "X" in matrices:
        matrices = {"X": matrices["X"]}
    singles = {key: a for key, a in arrays.items() if a.ndim == 1 and key not in NAMES}
    rows = {len(a) for a in (matrices or singles).values()}
    if len(matrices) > 1 or len(rows) != 1:
        shapes = ", ".join(f"{key} {a.shape}" for key, a in list(arrays.items())[:6])
        raise ValueError(
            f"{path.name} holds no single table: {shapes}; save one 2-D array, or X and y, or columns of one length."
        )
    return _joined(arrays, matrices, rows.pop(), path.name)


def _joined(arrays: dict[str, Any], matrices: dict[str, Any], rows: int, name: str) -> Raw:
    pd = pandas()
    parts, notes = [], []
    for key, matrix in matrices.items():
        told = [arrays[other] for other in NAMES if other in arrays and arrays[other].shape == (matrix.shape[1],)]
        names = [str(x) for x in told[0]] if told else [f"x{j}" for j in range(matrix.shape[1])]
        parts.append(pd.DataFrame(matrix, columns=names))
        notes += [f'"{key}" gave the columns {names[0]} to {names[-1]}.'] if len(arrays) > 1 and names else []
    singles = {key: a for key, a in arrays.items() if a.ndim == 1 and len(a) == rows and key not in NAMES}
    singles |= {key: a[:, 0] for key, a in arrays.items() if a.shape == (rows, 1) and key not in matrices}
    parts.append(pd.DataFrame(singles))
    left = [key for key in arrays if key not in matrices and key not in singles and key not in NAMES]
    notes += [f"Left out, being of another length: {', '.join(left)}."] if left else []
    raw = from_frame(pd.concat(parts, axis=1), name)
    raw.notes += notes
    return raw


def read_excel(path: Path) -> Raw:
    """The first sheet of an Excel workbook that holds a table; else the first that holds anything."""
    try:
        import python_calamine
    except ImportError as error:
        raise ImportError('Excel needs python-calamine: pip install "trimlearn[check]".') from error
    try:
        book = python_calamine.CalamineWorkbook.from_path(path)
        sheets, merged = {}, {}
        for name in book.sheet_names:
            sheet = book.get_sheet_by_name(name)
            sheets[name], merged[name] = sheet.to_python(skip_empty_area=False), sheet.merged_cell_ranges or []
    except OSError:
        raise
    except Exception as error:  # calamine's own errors, of many classes
        raise ValueError(
            f"{path.name} cannot be read as an Excel workbook: it is damaged, locked by a password, or of another kind."
        ) from error
    filled = {name: rows for name, rows in sheets.items() if any(cell_text(cell) for row in rows for cell in row)}
    if not filled:
        raise ValueError(f"{path.name} is empty: no sheet holds anything.")
    chosen = next((name for name, rows in filled.items() if _several(rows) > LEAST), next(iter(filled)))
    rows = filled[chosen]
    filled_down = _fill_merged(rows, merged[chosen])
    raw = _of_rows([[cell_text(cell) for cell in row] for row in rows], path.name)
    if filled_down:
        raw.notes.append(f"{plural(filled_down, 'cell')} merged with the one above got its value.")
    if len(filled) > 1:
        which = "the first" if chosen == next(iter(filled)) else "the first with a table"
        raw.notes.insert(0, f'Of {len(filled)} sheets {which}, "{chosen}", was read.')
    return raw


def _several(rows: list[list[Any]]) -> int:
    """How many rows hold several cells."""
    return sum(sum(map(bool, map(cell_text, row))) > 1 for row in rows)


def _fill_merged(rows: list[list[Any]], ranges: Any) -> int:
    """Give cells merged with one above its value, in place: how many. A title over several columns stays as it is.

    >>> rows = [["north", 1], ["", 2], ["", 3]]
    >>> _fill_merged(rows, [((0, 0), (2, 0))]), rows
    (2, [['north', 1], ['north', 2], ['north', 3]])
    """
    done = 0
    for (top, column), (bottom, _) in ranges:
        for row in rows[top + 1 : bottom + 1]:
            if column < len(row) and not cell_text(row[column]):
                row[column] = rows[top][column]
                done += 1
    return done


def _of_rows(rows: list[list[str]], name: str) -> Raw:
    """The table in the cells of a sheet: without empty margins, and without the titles above it."""
    used = [j for j in range(max(map(len, rows))) if any(len(row) > j and row[j].strip() for row in rows)]
    full = [(i, [row[j] if j < len(row) else "" for j in range(used[0], used[-1] + 1)]) for i, row in enumerate(rows)]
    filled = [record for i, row in full if (record := TextRecord(row, i + 1, i + 1)).filled]
    at, _, notes = table_start(titles_cut(filled, least=2))
    first = filled[at].first - 1
    body = [row for i, row in full if first < i < filled[-1].last]
    head = full[first][1]
    if has_names(head, body):
        both = two_rows_of_names(head, body)
        names, changed = unique_names(both or head)
        if both:
            body, first, notes = body[1:], first + 1, [*notes, TWO_ROWS]
    else:
        body, changed = [head, *body], ['No row holds names; the columns are called "column 1" and so on.']
        names, first = [f"column {j + 1}" for j in range(len(head))], first - 1
    pa = arrow()
    columns = [pa.array([row[j] for row in body], pa.large_string()) for j in range(len(names))]
    return Raw(names, columns, name, first + 2, notes + changed)
