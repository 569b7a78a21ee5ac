"""Data that need not fit in memory: pieces of files, and how they become a matrix and a target."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

import numpy as np

from trimlearn.streams.arrays import ArrayPiece
from trimlearn.streams.copy import OrderedCopy, ShuffledCopy, copy_name, ordered_copy, shuffled_copy
from trimlearn.streams.deal import Deal, deal_for
from trimlearn.streams.layout import MatrixColumns
from trimlearn.streams.pieces import Block, Piece

BLOCK_BYTES = 8 << 20  # of rows read at a time: a limit on memory, as three blocks are held, and long enough for disks


@final
class Dataset:
    """Rows of files that are read piece by piece, never as a whole. Made by `trimlearn.open_dataset`.

    Parameters
    ----------
    pieces : sequence of Piece
        What can be read alone, in order: row groups, batches, shards.
    layout : MatrixColumns
        How they become a matrix and a target.
    cache : path, optional
        The folder to keep shuffled copies in; None: an unnamed temporary file.
    in_memory : bool, optional
        Whether fits may read all rows into memory; None: where these are few enough.

    Attributes
    ----------
    n, p : int
        How many rows and columns there are, each category of text or a dictionary being a column.
    feature_names : list of str
        What the columns are called.
    has_target : bool
        Whether there is one.

    See Also
    --------
    trimlearn.open_dataset : Makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import open_dataset
    >>> data = open_dataset(np.arange(6.0).reshape(3, 2), target=np.array([1.0, 2.0, 3.0]))
    >>> data.shape, [len(X) for X, y in data.blocks()]
    ((3, 2), [3])
    """

    def __init__(self, pieces: Any, layout: MatrixColumns, cache: Any = None, in_memory: bool | None = None) -> None:
        self.pieces: tuple[Piece, ...] = tuple(pieces)
        self.layout, self.in_memory = layout, in_memory
        self.cache = None if cache is None else Path(os.fspath(cache))
        self.n = sum(piece.rows for piece in self.pieces)
        self.p = layout.width
        beside = isinstance(self.pieces[0], ArrayPiece) and self.pieces[0].t is not None
        self._stamps = {file: _stamp(file) for file in self._files}
        self.has_target = layout.target is not None or beside or getattr(self.pieces[0], "y", None) is not None

    @property
    def _files(self) -> list[str]:
        """The files that the rows lie in."""
        found = dict.fromkeys(str(vars(piece).get("file", "")) for piece in self.pieces)
        return [file for file in found if os.path.exists(file)]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p), as an array's."""
        return self.n, self.p

    @property
    def feature_names(self) -> list[str]:
        """What the columns are called."""
        return self.layout.names

    def __repr__(self) -> str:
        return f"Dataset({self.n:,} rows x {self.p} columns in {len(self.pieces)} pieces, {self.layout.dtype})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """No array is made in silence: who asks for one cannot stream."""
        raise ValueError(
            "X is a Dataset, which only TrimmedLinearRegression, TrimmedLogisticRegression and TrimmedGLM stream: give "
            "X and y from data.load() where they fit in memory, else a sample of the rows."
        )

    def read(self, piece: Piece) -> Block:
        """Matrix and target of one piece."""
        return piece.read(self.layout)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """All rows in order, as matrix and target of at most ``rows`` of them; the next is read meanwhile."""
        size = rows or max(1, BLOCK_BYTES // (self.p * self.layout.dtype.itemsize))
        parts = (block for piece in self.pieces for block in piece.blocks(self.layout, size))
        with ThreadPoolExecutor(1, "trimlearn-read") as reader:
            coming = reader.submit(next, parts, None)
            while (block := coming.result()) is not None:
                coming = reader.submit(next, parts, None)
                yield block
        for file, stamp in self._stamps.items():
            if _stamp(file) != stamp:
                raise ValueError(f"{file} has been written again since the dataset was opened: open it again.")

    def load(self) -> Block:
        """All rows in memory."""
        X = np.empty(self.shape, self.layout.dtype)
        t = np.empty(self.n, self.layout.target_dtype) if self.has_target else None
        row = 0
        for A, a in self.blocks():
            X[row : row + len(A)] = A
            if t is not None:
                t[row : row + len(A)] = a
            row += len(A)
        return X, t

    def deal(self, seed: int = 0) -> Deal:
        """Where each row goes in the shuffled copy."""
        return deal_for(self.n, self.p * self.layout.dtype.itemsize, seed)

    def shuffled(self, seed: int = 0) -> ShuffledCopy:
        """A copy whose rows are dealt at random into row blocks, in a file that is mapped into memory."""
        return shuffled_copy(self, self.deal(seed), self.cache)

    def copied(self) -> OrderedCopy:
        """A copy in the order of the rows, in a file that is mapped into memory, for sums over all of them."""
        return ordered_copy(self, self.cache)

    def lies_in(self) -> Block | None:
        """The array and the target that the rows lie in already, as they would be copied; None where they do not."""
        first = self.pieces[0]
        if not isinstance(first, ArrayPiece) or self.layout.target is not None:
            return None
        A, every = first.A, [feature.column for feature in self.layout.features] == list(range(first.A.shape[1]))
        if not every or A.dtype != self.layout.dtype or not A.flags.c_contiguous:
            return None
        return A, None if first.t is None else np.ascontiguousarray(first.t, self.layout.target_dtype)

    def fingerprint(self, seed: Any) -> str:
        """What tells a copy of these rows from others: files by name, size and time, columns, and the seed."""
        files = sorted(self._files)
        known: list[Any] = [(name, *_stamp(name)) for name in files]
        if not files:  # of an array there is no name: its content
            from hashlib import sha256

            digest = sha256()
            for X, t in self.blocks():
                digest.update(X.tobytes())
                digest.update(b"" if t is None else t.tobytes())
            known = [digest.hexdigest()]
        return copy_name([known, [piece.rows for piece in self.pieces], repr(self.layout), seed])


def _stamp(file: str) -> tuple[int, int]:
    """What tells a file from one that was written later under its name: its size and time."""
    known = os.stat(file)
    return known.st_size, known.st_mtime_ns
