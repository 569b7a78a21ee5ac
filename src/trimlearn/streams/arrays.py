"""Arrays: in memory, memory-mapped, and the shards of folders of .npy and .npz files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from trimlearn._utils.validation import is_integer
from trimlearn.streams.layout import MatrixColumns, SourceColumn
from trimlearn.streams.pieces import Block, Piece, naming, some, target_dtype, whole, working_dtype


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


def array_layout(
    width: int, kind: np.dtype[Any], target: Any, columns: Any, dtype: np.dtype[Any] | None, beside: Any = None
) -> MatrixColumns:
    """The layout of rows of ``width`` numbers of one ``kind``; ``beside``: the type of a target that is no column."""

    def number(column: Any, name: str) -> int:
        if not is_integer(column) or not -width <= int(column) < width:
            raise ValueError(f"{name} must be the number of a column, from {-width} to {width - 1}, got {column!r}.")
        return int(column) % width

    at = None if target is None else number(target, "target")
    chosen = [j for j in range(width) if j != at] if columns is None else [number(j, "columns") for j in columns]
    if not chosen:
        raise ValueError("columns is empty: X must have at least one column.")
    dtype = working_dtype([kind]) if dtype is None else dtype
    mine = np.dtype(beside if beside is not None else kind)
    features = tuple(SourceColumn(j) for j in chosen)
    return MatrixColumns(features, at, None, dtype, target_dtype(mine, dtype), named=False, written=whole(mine))


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


Found = tuple[list[Piece], MatrixColumns]


def npy_pieces(files: Sequence[str], target: Any, columns: Any, dtype: np.dtype[Any] | None) -> Found:
    """One piece for each file; all must have as many columns of the same type."""
    pieces: list[Piece] = []
    first: tuple[int, np.dtype[Any]] | None = None
    for file in files:
        with naming(file):
            A = np.load(file, mmap_mode="r", allow_pickle=False)
            if A.ndim != 2 or A.dtype.kind not in "fiub":
                raise ValueError(f"holds {A.dtype} of shape {A.shape}, not rows of numbers")
        first = _same(file, files[0], (A.shape[1], A.dtype), first)
        if len(A):
            pieces.append(NpyPiece(file, len(A)))
    assert first is not None
    return some(pieces, files), array_layout(*first, target, columns, dtype)


def npz_pieces(files: Sequence[str], target: Any, columns: Any, dtype: np.dtype[Any] | None) -> Found:
    """One piece for each file: its only 2-D array, or the one called X; and the target's, called ``target``."""
    pieces: list[Piece] = []
    first: tuple[int, np.dtype[Any], Any] | None = None
    for file in files:
        with naming(file):
            shapes = npz_headers(file)
        matrices = [name for name, (shape, _) in shapes.items() if len(shape) == 2]
        X = "X" if "X" in matrices else matrices[0] if len(matrices) == 1 else None
        y = ("y" if "y" in shapes else None) if target is None else target
        if X is None:
            raise ValueError(f"{file} holds the arrays {sorted(shapes)}: call the one of rows and columns X.")
        if y is not None and y not in shapes:
            raise ValueError(f"{file} has no array {y!r}; it holds {sorted(shapes)}.")
        (rows, width), kind = shapes[X]
        if y is not None and shapes[y][0] != (rows,):
            raise ValueError(f"{file}: {y!r} has shape {shapes[y][0]}, and {X!r} has {rows} rows.")
        first = _same(file, files[0], (width, kind, None if y is None else shapes[y][1]), first)
        if rows:
            pieces.append(NpzPiece(file, rows, X, y))
    assert first is not None
    return some(pieces, files), array_layout(first[0], first[1], None, columns, dtype, first[2])


def _same(file: str, before: str, found: Any, first: Any) -> Any:
    """What the first file has, which this one must have too."""
    if first is not None and found != first:
        raise ValueError(
            f"{file} has {found[0]} columns of {found[1]}, and {before} has {first[0]} of {first[1]}: write them alike."
        )
    return found if first is None else first
