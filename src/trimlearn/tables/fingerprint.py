"""One hash for a table: the same however it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from trimlearn.tables.cells import lengths, letters, pieces
from trimlearn.tables.table import arrow

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
        for piece in cells:  # of all pieces: another number of them is the same column
            digest.update(lengths(piece).astype("<u4").tobytes())
        for piece in cells:
            digest.update(letters(piece))
    return digest.hexdigest()


def _without_words(column: Any) -> Any:
    pa = arrow()
    compute = pa.compute
    written = bytes(letters(column))
    if b"N" not in written and b"n" not in written:
        return column  # each of the words has one of them
    missing = compute.is_in(column, value_set=pa.array(NO_VALUE, pa.large_string()))
    if not compute.any(missing).as_py():
        return column
    return compute.if_else(missing, pa.scalar("", pa.large_string()), column)
