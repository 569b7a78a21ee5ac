"""`open_dataset`: from a path, a pattern, a list of files, an Arrow dataset or an array to a `Dataset`."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trimlearn._utils.validation import as_numeric, is_collection, is_sparse
from trimlearn.streams.arrays import ArrayPiece, array_layout, npy_pieces, npz_pieces
from trimlearn.streams.csv import COMPRESSED
from trimlearn.streams.dataset import Dataset
from trimlearn.streams.layout import MatrixColumns
from trimlearn.streams.pieces import Piece
from trimlearn.streams.tables import TABLES, held_pieces, table_pieces

PIECE_ROWS = 1 << 20  # rows of an array that make a piece: a choice, some row groups' worth
KINDS = (*TABLES, ".npy", ".npz")
OTHER_NAMES = {".pq": ".parquet", ".parq": ".parquet", ".tsv": ".csv", ".ipc": ".arrow"}  # that people give these kinds
SAID = ".parquet, .arrow, .feather, .csv (or .csv.gz), .npy or .npz"


def open_dataset(
    source: Any,
    target: Any = None,
    *,
    columns: Sequence[Any] | None = None,
    dtype: Any = None,
    cache: str | os.PathLike[str] | None = None,
    in_memory: bool | None = None,
    like: Dataset | None = None,
) -> Dataset:
    """Data that need not fit in memory, to be given to ``fit`` in place of X and y.

    Parameters
    ----------
    source : path, pattern, list of paths, pyarrow Dataset, table, or array
        Files of one kind: .parquet, .arrow or .feather, .csv (also .csv.gz, .csv.bz2, .csv.zst), .npy or .npz. A folder
        stands for all files of that kind in it; a pattern ("part-*.parquet") for those it matches. Or what is in memory
        already: a table of pyarrow, pandas or polars, a memory map or an array.
    target : str, int or array, optional
        The column of y: a name in tables and .npz files, a number in .npy files and arrays; beside an array, y itself.
    columns : list, optional
        The columns of X, by name or number. None: all but the target.
    dtype : {"float32", "float64"}, optional
        Of X. None: float32 where all columns are of at most 16 bits or float32 themselves, else float64.
    cache : path, optional
        A folder in which the shuffled copy is kept, for the next fit to the same files. None: it lies in an unnamed
        file of the folder for temporary files (``TMPDIR``), which is gone when it is no longer needed.
    in_memory : bool, optional
        Whether a fit may read all rows into memory. None: up to 2²⁶ numbers. The fit is the same (docs/scale.md).
    like : Dataset, optional
        Another one whose columns, categories and types these files have: to predict for new files.

    Returns
    -------
    Dataset
        What ``fit``, ``predict`` and ``outlier_score`` of the linear models accept.

    Notes
    -----
    Text columns and dictionaries become one column for each category. Missing entries, NaN and infinity are errors
    that name file, row group, row and column.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from trimlearn import TrimmedLinearRegression, open_dataset
    >>> folder = tempfile.TemporaryDirectory()
    >>> for k in range(3):
    ...     x = np.arange(20.0) + 20 * k
    ...     t = 3 * x + 2 * np.sin(x) + 0.1 * np.sin(x**2)
    ...     np.save(Path(folder.name) / f"shard-{k}.npy", np.column_stack([x, np.sin(x), t]))
    >>> data = open_dataset(folder.name, target=-1)
    >>> data
    Dataset(60 rows x 2 columns in 3 pieces, float64)
    >>> TrimmedLinearRegression(random_state=0).fit(data).coef_.round(1)
    array([3., 2.])
    >>> folder.cleanup()
    """
    if isinstance(source, Dataset):
        return source
    if is_collection(source):
        raise ValueError("source is a Dask collection, which is not streamed: give it to fit as X, with y beside it.")
    given = _dtype(dtype)
    if columns is not None:
        columns = _column_list(columns)
    if (table := _as_table(source, target)) is not None:
        known = None if like is None else like.layout
        return Dataset(*held_pieces(table, target, columns, given, known), cache, in_memory)
    if not is_path(source) and not isinstance(source, (list, tuple)) and not hasattr(source, "files"):
        return Dataset(*_of_array(source, target, columns, given), cache, in_memory)
    files = find_files(source)
    kind = kind_of(files)
    if kind in TABLES:
        found = table_pieces(files, kind, target, columns, given, None if like is None else like.layout)
        return Dataset(*found, cache, in_memory)
    pieces, layout = (npy_pieces if kind == ".npy" else npz_pieces)(files, target, columns, given)
    if like is not None and like.p != layout.width:
        raise ValueError(f"{files[0]} has {layout.width} columns, and like has {like.p}.")
    return Dataset(pieces, layout, cache, in_memory)


def _dtype(dtype: Any) -> np.dtype[Any] | None:
    if dtype is None:
        return None
    found: np.dtype[Any] = np.dtype(dtype)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be 'float32', 'float64' or None, got {dtype!r}.")
    return found


def _column_list(columns: Any) -> list[Any]:
    """The columns as a list; ValueError unless it is one, and names each of them once."""
    if isinstance(columns, (str, bytes)) or not hasattr(columns, "__iter__"):
        raise ValueError(f"columns must be a list of names or numbers, got {columns!r}.")
    found = list(columns)
    twice = [column for k, column in enumerate(found) if column in found[:k]]
    if twice:
        raise ValueError(f"columns names {twice[0]!r} twice: name it once.")
    return found


def _as_table(source: Any, target: Any) -> Any:
    """An Arrow table of a data frame, a table or a dataset that is in memory; None of anything else, and where the
    target is no name: then it is rows of numbers."""
    known = any(hasattr(source, name) for name in ("__arrow_c_stream__", "iloc", "to_table"))
    if not known or hasattr(source, "files") or not (target is None or isinstance(target, str)):
        return None
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("source is a table, which is read by pyarrow: pip install pyarrow") from error
    if hasattr(source, "to_table"):  # a dataset in memory, or one that is filtered
        return source.to_table()
    if hasattr(source, "iloc"):  # pandas, whose index is no column
        return pa.Table.from_pandas(source, preserve_index=False)
    return pa.table(source)


def _of_array(source: Any, target: Any, columns: Any, dtype: Any) -> tuple[list[Piece], MatrixColumns]:
    """The pieces of an array or a memory map."""
    if is_sparse(source):
        raise ValueError("source is a sparse matrix: give it to fit as X, with y beside it; it is not streamed.")
    if not hasattr(source, "__array__"):
        raise ValueError(
            "source must be a path, a pattern, a list of paths, a table or a NumPy array of rows and columns, got "
            f"{type(source).__name__}."
        )
    A = as_numeric(source, "source")
    if not isinstance(A, np.ndarray) or A.ndim != 2 or 0 in A.shape:
        raise ValueError(f"source must be paths, or a NumPy array of rows and columns, got {type(source).__name__}.")
    beside = None
    if target is not None and np.ndim(target) > 0:
        beside, target = np.asarray(as_numeric(target, "target")), None
        if beside.shape != (len(A),):
            raise ValueError(f"target must have one entry for each of the {len(A)} rows, got shape {beside.shape}.")
    layout = array_layout(A.shape[1], A.dtype, target, columns, dtype, None if beside is None else beside.dtype)
    starts = range(0, len(A), PIECE_ROWS)
    return [ArrayPiece(A, beside, i, min(i + PIECE_ROWS, len(A))) for i in starts], layout


def is_path(source: Any) -> bool:
    """Whether this is one path or pattern."""
    return isinstance(source, (str, os.PathLike))


def find_files(source: Any) -> list[str]:
    """The files that a path, a pattern, a list of them or an Arrow dataset stand for, sorted unless listed."""
    if hasattr(source, "files"):  # a pyarrow dataset
        return _files_of(source)
    if isinstance(source, (list, tuple)):
        if not source:
            raise ValueError("source is an empty list; give at least one file.")
        odd = next((part for part in source if not is_path(part)), None)
        if odd is not None:
            raise ValueError(f"source is a list that holds {type(odd).__name__}; list paths, or give an array.")
        return [file for part in source for file in find_files(part)]
    path = os.path.expanduser(os.fspath(source))
    if "://" in path:
        raise ValueError(f"{path} is an address: only files of this machine are read. Copy it here first.")
    if os.path.isdir(path):
        return _files_in(path)
    pattern = glob.has_magic(path) and not os.path.isfile(path)  # brackets may be part of a name
    found = _matched(path) if pattern else [path]
    if not found or not all(os.path.isfile(file) for file in found):
        raise FileNotFoundError(f"{path}: there is no such file.")
    return found


def kind_of(files: Sequence[str]) -> str:
    """The one kind of all files, by how their names end; ValueError where there are several, or it is not known."""
    kinds = {_kind(file): file for file in reversed(files)}
    if len(kinds) > 1:
        raise ValueError(f"source holds files of several kinds, {' and '.join(sorted(kinds.values()))}; give one kind.")
    kind = _kind(files[0])
    if kind not in KINDS:
        raise ValueError(f"{files[0]} is no {SAID} file.")
    return kind


def _kind(file: str) -> str:
    stem, suffix = os.path.splitext(file)
    suffix = suffix.lower()
    if suffix in COMPRESSED and _kind(stem) == ".csv":
        return ".csv"
    return OTHER_NAMES.get(suffix, suffix)


def _files_in(folder: str) -> list[str]:
    """All files of a folder that may hold data."""
    found = sorted(str(file) for file in Path(folder).rglob("*") if file.is_file() and not _is_hidden(file, folder))
    keyed = [file for file in found if "=" in os.path.relpath(os.path.dirname(file), folder)]
    if keyed:
        raise ValueError(
            f"{keyed[0]} lies in a folder that stands for a column (key=value): such columns are not read. Write "
            "it into the files, or list the files to do without it."
        )
    known = [file for file in found if _kind(file) in KINDS]
    if not known:
        raise ValueError(f"{folder} holds no {SAID} files.")
    return known


def _matched(pattern: str) -> list[str]:
    """The files that a pattern matches; of names that it leaves open, those that may hold data."""
    found = sorted(file for file in glob.glob(pattern, recursive=True) if os.path.isfile(file))
    if os.path.basename(pattern).startswith("*"):
        found = [file for file in found if not os.path.basename(file).startswith("_")]
    known = [file for file in found if _kind(file) in KINDS]
    return known or found


def _is_hidden(file: Path, folder: str) -> bool:
    """Whether a name says that it is no data, as _SUCCESS and .crc do."""
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _files_of(dataset: Any) -> list[str]:
    """The files of a pyarrow dataset; ValueError where it knows a column that they do not hold, or fewer rows."""
    files = [str(file) for file in dataset.files]
    if not files:
        raise ValueError("source is a dataset without files.")
    if dataset.filesystem.type_name not in ("local", "subtree"):
        raise ValueError(f"{files[0]} is not a file of this machine: copy it here first.")
    try:
        inside = set(next(dataset.get_fragments()).physical_schema.names)
    except ValueError as error:
        raise ValueError(
            "source is a filtered dataset, of which files know nothing: give dataset.to_table() where that fits in "
            "memory, or write it to files."
        ) from error
    beside = [name for name in dataset.schema.names if name not in inside]
    if beside:
        raise ValueError(
            f"the column {beside[0]!r} of the dataset is not in {files[0]} but in the names of folders: such columns "
            "are not read. Write it into the files, or list the files to do without it."
        )
    return files
