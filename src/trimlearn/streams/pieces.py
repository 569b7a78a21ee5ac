"""Files, and the pieces of them that can be read alone: a row group of Parquet, a batch of Arrow, a shard of NumPy.

A piece knows how many rows it has and where it lies, so that an error can name the place, and so that a worker of a
cluster can be given its own. It is read in blocks of bounded size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from trimlearn.streams.csv import CsvForm
from trimlearn.streams.layout import MatrixColumns

__all__ = [
    "ArrayPiece",
    "ArrowPiece",
    "Block",
    "CsvPiece",
    "NpyPiece",
    "NpzPiece",
    "ParquetPiece",
    "Piece",
    "TablePiece",
]

BUFFER = 1 << 20  # bytes of a column of Parquet that are held: else all of it in a row group, which may be the file

Block = tuple[np.ndarray, np.ndarray | None]  # rows of X, and their targets


class Piece(ABC):
    """Some rows of a dataset that can be read without the others."""

    rows: int

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it lies, in words for an error."""

    @abstractmethod
    def blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        """Its rows in order, ``size`` at a time at most."""

    @final
    def read(self, layout: MatrixColumns) -> Block:
        """All its rows."""
        found = list(self.blocks(layout, max(1, self.rows)))
        if len(found) == 1:
            return found[0]
        X = np.concatenate([X for X, _ in found]) if found else np.empty((0, layout.width), layout.dtype)
        targets = [t for _, t in found if t is not None]
        return X, np.concatenate(targets) if targets else None


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Errors of Arrow, NumPy and the file system say where they happened, in one line."""
    import zipfile
    import zlib

    try:
        yield
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:  # or Arrow's
        if str(error).startswith(place):
            raise
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{place} cannot be read: {what}") from error


@final
@dataclass(frozen=True)
class ArrayPiece(Piece):
    """Rows of an array, in memory or memory-mapped, and of a target beside it."""

    A: np.ndarray
    t: np.ndarray | None
    start: int
    stop: int

    @property
    def rows(self) -> int:  # type: ignore[override]
        return self.stop - self.start

    @property
    def place(self) -> str:
        return f"X, rows {self.start} to {self.stop - 1}"

    def blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        for i in range(self.start, self.stop, size):
            at = slice(i, min(i + size, self.stop))
            yield layout.of_array(self.A[at], None if self.t is None else self.t[at], self.place, i)


@final
@dataclass(frozen=True)
class NpyPiece(Piece):
    """A file of one array: X with the target among its columns."""

    file: str
    rows: int

    @property
    def place(self) -> str:
        return self.file

    def blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        with naming(self.place):
            A = np.load(self.file, mmap_mode="r", allow_pickle=False)
            for i in range(0, self.rows, size):
                yield layout.of_array(A[i : i + size], None, self.place, i)


@final
@dataclass(frozen=True)
class NpzPiece(Piece):
    """A file of several arrays: X, and y beside it. Read row by row, compressed or not."""

    file: str
    rows: int
    X: str
    y: str | None

    @property
    def place(self) -> str:
        return self.file

    def blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        with naming(self.place):
            targets: Iterator[Any] = iter(lambda: None, 0) if self.y is None else npz_rows(self.file, self.y, size)
            first = 0
            for A, t in zip(npz_rows(self.file, self.X, size), targets, strict=False):
                yield layout.of_array(A, t, self.place, first)
                first += len(A)


def npz_header(file: str, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of one array of an .npz file, without reading it."""
    import zipfile

    with zipfile.ZipFile(file) as archive, archive.open(f"{name}.npy") as stream:
        shape, _, dtype = _header(stream)
    return shape, dtype


def npz_names(file: str) -> list[str]:
    """The arrays of an .npz file."""
    import zipfile

    with zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def npz_rows(file: str, name: str, size: int) -> Iterator[np.ndarray]:
    """The rows of one array of an .npz file, ``size`` at a time."""
    import zipfile

    with zipfile.ZipFile(file) as archive, archive.open(f"{name}.npy") as stream:
        shape, fortran, dtype = _header(stream)
        if fortran and len(shape) > 1:
            raise ValueError(f"{name} is stored column by column; save np.ascontiguousarray({name})")
        row = int(np.prod(shape[1:], dtype=np.int64))
        for start in range(0, shape[0], size):
            count = min(size, shape[0] - start)
            data = stream.read(count * row * dtype.itemsize)
            if len(data) < count * row * dtype.itemsize:
                raise EOFError(f"{name} ends after row {start + len(data) // max(1, row * dtype.itemsize)}")
            yield np.frombuffer(data, dtype=dtype).reshape((count, *shape[1:]))


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject or not shape:
        raise ValueError(f"holds {dtype} of shape {shape}, not rows of numbers")
    return shape, bool(fortran), dtype


class TablePiece(Piece):
    """Rows of a table with named columns, read by Arrow."""

    file: str

    @abstractmethod
    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        """Record batches with these columns."""

    @abstractmethod
    def schema(self) -> Any:
        """The columns of the file, and their types."""

    @final
    def blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        first = 0
        with naming(self.place):
            for batch in self.batches(layout.columns, size):
                for start in range(0, batch.num_rows, size):
                    part = batch.slice(start, size)
                    yield layout.of_table(part, self.place, first)
                    first += part.num_rows
            if first != self.rows:
                raise ValueError(f"it has {first} rows now and had {self.rows} when it was opened")


@final
@dataclass(frozen=True)
class ParquetPiece(TablePiece):
    """A row group of a Parquet file."""

    file: str
    group: int
    rows: int

    @property
    def place(self) -> str:
        return f"{self.file}, row group {self.group}"

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.file, buffer_size=BUFFER) as opened:
            yield from opened.iter_batches(size, row_groups=[self.group], columns=columns)

    def schema(self) -> Any:
        import pyarrow.parquet as pq

        return pq.read_schema(self.file)


@final
@dataclass(frozen=True)
class ArrowPiece(TablePiece):
    """A record batch of an Arrow (Feather) file, which is mapped into memory."""

    file: str
    number: int
    rows: int

    @property
    def place(self) -> str:
        return f"{self.file}, batch {self.number}"

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        import pyarrow as pa

        with pa.memory_map(self.file) as mapped:
            yield pa.ipc.open_file(mapped).get_batch(self.number).select(columns)

    def schema(self) -> Any:
        import pyarrow as pa

        with pa.memory_map(self.file) as mapped:
            return pa.ipc.open_file(mapped).schema


@final
@dataclass(frozen=True)
class CsvPiece(TablePiece):
    """A CSV file; its columns hold what the first rows of the first file do, as the types of ``kinds`` say."""

    file: str
    rows: int
    kinds: Any
    form: CsvForm

    @property
    def place(self) -> str:
        return self.file

    def batches(self, columns: list[str], size: int) -> Iterator[Any]:
        types = {name: self.kinds.field(name).type for name in columns}
        with self.form.opened(self.file, types) as reader:
            yield from reader

    def schema(self) -> Any:
        return self.kinds
