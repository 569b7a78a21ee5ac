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

from trimlearn.streams.layout import MatrixColumns

__all__ = ["ArrayPiece", "Block", "NpyPiece", "NpzPiece", "Piece", "naming"]

Block = tuple[np.ndarray, np.ndarray | None]  # rows of X, and their targets


class Piece(ABC):
    """Some rows of a dataset that can be read without the others."""

    rows: int

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it lies, in words for an error."""

    @abstractmethod
    def _blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        """Its rows in order, ``size`` at a time at most."""

    @final
    def blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        """Its rows in order, ``size`` at a time at most; ValueError where there are not as many as there were."""
        found = 0
        with naming(self.place):
            for X, t in self._blocks(layout, size):
                found += len(X)
                if found > self.rows:
                    raise ValueError(f"it has more rows now than the {self.rows} it had when it was opened")
                yield X, t
            if found < self.rows:
                raise ValueError(f"it has {found} rows now and had {self.rows} when it was opened")

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

    def _blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
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

    def _blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        A = np.load(self.file, mmap_mode="r", allow_pickle=False)
        for i in range(0, len(A), size):
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

    def _blocks(self, layout: MatrixColumns, size: int) -> Iterator[Block]:
        targets: Iterator[Any] = iter(lambda: None, 0) if self.y is None else npz_rows(self.file, self.y, size)
        first = 0
        for A, t in zip(npz_rows(self.file, self.X, size), targets, strict=False):
            yield layout.of_array(A, t, self.place, first)
            first += len(A)


def npz_headers(file: str) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape and dtype of the arrays of an .npz file, without reading them."""
    import zipfile

    found = {}
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as stream:
                shape, _, dtype = _header(stream)
            found[name.removesuffix(".npy")] = shape, dtype
    return found


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
