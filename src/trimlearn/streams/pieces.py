"""The pieces of data that can be read alone, such as a row group of Parquet, a batch of Arrow, or a shard of NumPy.

A piece knows how many rows it has and where it lies, so that an error can name the place, and so that a worker of a
cluster can be given its own. It is read in blocks of bounded size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, final

import numpy as np

from trimlearn.streams.layout import MatrixColumns

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


AnyPiece = TypeVar("AnyPiece", bound=Piece)


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


def some(pieces: list[AnyPiece], files: Sequence[str]) -> list[AnyPiece]:
    """The pieces; ValueError where there are none."""
    if not pieces:
        raise ValueError(f"{files[0]} {'and the others have' if len(files) > 1 else 'has'} no rows.")
    return pieces
