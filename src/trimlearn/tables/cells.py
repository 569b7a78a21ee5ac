"""The cells of one column: trimmed, each different one once, and which of them say that there is no value."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.tables.table import arrow

# Words that pandas.read_csv takes for no value, in any capitals that people use; and "?" of the UCI archive.
MISSING = frozenset(["", "na", "n/a", "n.a.", "#n/a", "#na", "<na>", "nan", "-nan", "nat", "null", "?", "??"])
# Words that are missing among numbers and dates, but may be a value among words: "-" beside "+", "none" beside "some".
NO_NUMBER = frozenset(
    [
        "-",
        "--",
        "---",
        "–",
        "—",
        ".",
        "..",
        "...",
        "…",
        "none",
        "nil",
        "n/k",
        "not available",
        "missing",
        "unknown",
        "unk",
        "x",
        "*",
        "#",
    ]
)
SPELLINGS = sorted({f(word) for word in MISSING | NO_NUMBER for f in (str, str.upper, str.capitalize, str.title)})
PROBE = 1000  # cells tried first: enough to meet what stands in one of a hundred
ONLY_SO = "None"  # as Python writes it, and pandas reads it: missing among words too


def says_missing(word: str) -> bool:
    """Whether a trimmed cell says everywhere that there is no value.

    >>> says_missing("N/A"), says_missing("none"), says_missing("None")
    (True, False, True)
    """
    return word == ONLY_SO or (len(word) <= 5 and word.lower() in MISSING)


def is_missing_number(word: str) -> bool:
    """Whether it says so in a column of numbers or dates.

    >>> is_missing_number("-"), is_missing_number("n/a"), is_missing_number("0")
    (True, True, False)
    """
    return says_missing(word) or (len(word) <= 13 and word.lower() in NO_NUMBER)


@final
class Cells:
    """A column of strings (an Arrow array, in one piece or several), looked at as seldom as possible."""

    def __init__(self, column: Any) -> None:
        self.chunks = pieces(column)
        self.rows = len(column)

    @cached_property
    def array(self) -> Any:
        """All cells in one piece."""
        return self.chunks[0] if len(self.chunks) == 1 else arrow().concat_arrays(self.chunks)

    @cached_property
    def _encoded(self) -> tuple[Ints, list[str]]:
        pa = arrow()
        coded = pa.compute.utf8_trim_whitespace(self.array).dictionary_encode()
        return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()

    @property
    def codes(self) -> Ints:
        """Which of the words stands in each row."""
        return self._encoded[0]

    @property
    def words(self) -> list[str]:
        """The different cells, trimmed, in the order in which they first come."""
        return self._encoded[1]

    @cached_property
    def counts(self) -> Ints:
        """How often each of them is there."""
        return np.bincount(self.codes, minlength=len(self.words))

    def plain_numbers(self) -> tuple[Floats, Counter[str]] | None:
        """All cells as numbers, NaN of missing ones, and the words that these hold.

        None where any other cell is more than digits, point and exponent.
        """
        return self._plain(words=False) or self._plain(words=True)

    def _plain(self, words: bool) -> tuple[Floats, Counter[str]] | None:
        compute = arrow().compute
        numbers, seen, at = np.empty(self.rows), Counter[str](), 0
        if _cast(self.chunks[0][:PROBE], words) is None:
            return None  # Arrow goes on after an error, and each takes it 1 µs
        for chunk in self.chunks:
            read = _cast(chunk, words)
            if read is None:
                return None
            numbers[at : at + len(chunk)] = read
            at += len(chunk)
            if words:
                found = compute.value_counts(chunk.filter(_says_missing(chunk))).to_pylist()
                seen.update({entry["values"]: entry["counts"] for entry in found if entry["values"]})
        return numbers, seen

    def has_leading_zeros(self) -> bool:
        """Whether whole numbers of one length begin with 0: they are codes, as of places or telephones."""
        if not self._any_like(r"^\s*0[0-9]+\s*$"):
            return False
        compute = arrow().compute
        lengths = compute.value_counts(compute.utf8_length(compute.utf8_trim_whitespace(self.array))).to_pylist()
        known = sum(entry["counts"] for entry in lengths if entry["values"])
        return bool(max(entry["counts"] for entry in lengths if entry["values"]) >= 0.9 * known)

    def only_ambiguous_points(self) -> bool:
        """Whether every point could part thousands: "1.234" and whole numbers only."""
        compute = arrow().compute
        pointed = self.array.filter(compute.match_substring(self.array, "."))
        return len(pointed) > 0 and bool(
            compute.all(compute.match_substring_regex(pointed, r"^\s*-?[1-9][0-9]{0,2}(\.[0-9]{3})+\s*$")).as_py()
        )

    def has_whole_numbers(self) -> bool:
        """Whether some cells are digits only, of up to three."""
        return self._any_like(r"^\s*-?[0-9]{1,3}\s*$")

    def _any_like(self, pattern: str) -> bool:
        compute = arrow().compute
        return bool(compute.any(compute.match_substring_regex(self.array, pattern)).as_py())

    def sample(self, size: int = 500) -> list[str]:
        """The words of some rows, all over the column, those apart that say that there is no value."""
        rows = self.codes[:: max(1, self.rows // size)]
        return [word for word in (self.words[j] for j in rows.tolist()) if not is_missing_number(word)]


def pieces(column: Any) -> list[Any]:
    """The arrays that a column is made of, at least one."""
    chunks = getattr(column, "chunks", [column])
    return chunks or [arrow().array([], arrow().large_string())]


def _cast(cells: Any, words: bool) -> Floats | None:
    """The cells as floats, NaN where they are empty (or ``words`` for that); None where another is no finite number."""
    pa = arrow()
    gone = _says_missing(cells) if words else pa.compute.equal(cells, "") if not lengths(cells).all() else None
    if gone is not None:
        cells = pa.compute.if_else(gone, pa.scalar(None, pa.large_string()), cells)
    try:
        read = pa.compute.cast(cells, pa.float64())
    except pa.ArrowInvalid:
        return None
    numbers: Floats = read.to_numpy(zero_copy_only=False)
    return numbers if np.count_nonzero(np.isfinite(numbers)) == len(read) - read.null_count else None


def _says_missing(cells: Any) -> Any:
    pa = arrow()
    return pa.compute.is_in(cells, value_set=pa.array(SPELLINGS, pa.large_string()))


def lengths(cells: Any) -> Ints:
    """Of the cells of an Arrow array without gaps, in bytes."""
    return np.diff(_ends(cells))


def letters(cells: Any) -> memoryview:
    """All that is written in them, one cell after the other, without a copy."""
    text, ends = cells.buffers()[2], _ends(cells)
    return memoryview(b"" if text is None else text)[ends[0] : ends[-1]]


def _ends(cells: Any) -> Ints:
    """Where each cell ends in Arrow's memory; first, where the first begins."""
    offsets = cells.buffers()[1]
    if not len(cells) or offsets is None:
        return np.zeros(1, dtype=np.int64)
    return np.frombuffer(offsets, dtype=np.int64)[cells.offset : cells.offset + len(cells) + 1]
