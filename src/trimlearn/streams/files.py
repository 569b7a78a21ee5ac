"""Which files a path, a pattern, a folder, a list of them or an Arrow dataset stand for, and of what kind they are."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trimlearn.streams.csv import COMPRESSED
from trimlearn.streams.tables import TABLES

__all__ = ["find_files", "is_path", "kind_of"]

KINDS = (*TABLES, ".npy", ".npz")
OTHER_NAMES = {".pq": ".parquet", ".parq": ".parquet", ".tsv": ".csv", ".ipc": ".arrow"}  # that people give these kinds
SAID = ".parquet, .arrow, .feather, .csv (or .csv.gz), .npy or .npz"


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
