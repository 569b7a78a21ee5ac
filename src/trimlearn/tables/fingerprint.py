"""One hash for a table: the same however it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

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
        _add(digest, _without_words(column))
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


def _add(digest: Any, column: Any) -> None:
    """The lengths and the letters of all cells: two buffers, whatever their number."""
    _, offsets, letters = column.buffers()
    if not len(column) or offsets is None:
        return
    ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    digest.update(np.diff(ends).astype("<u4").tobytes())
    if letters is not None:
        digest.update(memoryview(letters)[ends[0] : ends[-1]])
