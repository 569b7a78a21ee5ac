"""Shards of NumPy: folders of .npy and .npz files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from trimlearn._utils.validation import is_integer
from trimlearn.streams.layout import MatrixColumns, SourceColumn
from trimlearn.streams.pieces import NpyPiece, NpzPiece, Piece, naming, npz_headers

__all__ = ["array_layout", "npy_pieces", "npz_pieces", "some", "target_dtype", "whole", "working_dtype"]

Found = tuple[list[Piece], MatrixColumns]
AnyPiece = TypeVar("AnyPiece", bound=Piece)


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


def working_dtype(kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """float32 where that holds every number of these types, as `trimlearn.losses.Linear` has it, else float64."""
    single = all(kind.itemsize <= 2 or kind.newbyteorder("=") == np.float32 for kind in kinds)
    return np.dtype(np.float32 if single else np.float64)


def whole(kind: np.dtype[Any]) -> np.dtype[Any] | None:
    """The type of a target that is whole numbers; None for others."""
    return kind if kind.kind in "iub" else None


def target_dtype(kind: np.dtype[Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """That of the target: of X, unless labels may be large whole numbers."""
    return np.dtype(np.float64) if kind.kind in "iu" and kind.itemsize > 2 else dtype


def _same(file: str, before: str, found: Any, first: Any) -> Any:
    """What the first file has, which this one must have too."""
    if first is not None and found != first:
        raise ValueError(
            f"{file} has {found[0]} columns of {found[1]}, and {before} has {first[0]} of {first[1]}: write them alike."
        )
    return found if first is None else first


def some(pieces: list[AnyPiece], files: Sequence[str]) -> list[AnyPiece]:
    """The pieces; ValueError where there are none."""
    if not pieces:
        raise ValueError(f"{files[0]} {'and the others have' if len(files) > 1 else 'has'} no rows.")
    return pieces
