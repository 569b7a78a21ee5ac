"""One hash for a table: the same however it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Ints
from trimlearn.tables.cells import pieces
from trimlearn.tables.raw import arrow

__all__ = ["fingerprint"]

# What pandas.read_csv reads as no value: a DataFrame cannot tell these words from empty cells.
NO_VALUE = [
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
]


def fingerprint(names: Sequence[str], columns: Sequence[Any]) -> str:
    """SHA-256 over the names and the cells (Arrow arrays of strings), in hexadecimal digits.

    >>> import pyarrow as pa
    >>> one = fingerprint(["a"], [pa.array(["1", "NA"], pa.large_string())])
    >>> one == fingerprint(["a"], [pa.array(["1", ""], pa.large_string())]), len(one)
    (True, 64)
    """
    digest = hashlib.sha256()
    for name, column in zip(names, columns, strict=True):
        digest.update(f"{len(name)}:{name}:{len(column)}:".encode())
        cells = [_without_words(piece) for piece in pieces(column)]
        for parts in (_lengths, _letters):  # of all pieces: another number of them is the same column
            for piece in cells:
                digest.update(parts(piece))
    return digest.hexdigest()


def _without_words(column: Any) -> Any:
    pa = arrow()
    compute = pa.compute
    letters = column.buffers()[2]
    if letters is None or not letters.size or np.frombuffer(letters, np.uint8).max() < ord("N"):
        return column  # digits only, the quick way to see that
    if not any(letter in letters.to_pybytes() for letter in (b"N", b"n")):
        return column  # each of the words has one of them
    missing = compute.is_in(column, value_set=pa.array(NO_VALUE, pa.large_string()))
    if not compute.any(missing).as_py():
        return column
    return compute.if_else(missing, pa.scalar("", pa.large_string()), column)


def _ends(cells: Any) -> Ints:
    """Where each cell ends in the letters of all; first, where the first begins."""
    offsets = cells.buffers()[1]
    if not len(cells) or offsets is None:
        return np.zeros(1, dtype=np.int64)
    return np.frombuffer(offsets, dtype=np.int64)[cells.offset : cells.offset + len(cells) + 1]


def _lengths(cells: Any) -> bytes:
    return np.diff(_ends(cells)).astype("<u4").tobytes()


def _letters(cells: Any) -> memoryview:
    letters, ends = cells.buffers()[2], _ends(cells)
    return memoryview(b"" if letters is None else letters)[ends[0] : ends[-1]]
