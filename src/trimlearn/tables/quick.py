"""Many different numbers read at once: those of simple forms by Arrow, the few others one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn.tables.numbers import Decimal, ReadNumbers, read_numbers
from trimlearn.tables.raw import arrow

__all__ = ["read_many"]


MANY = 2000  # different cells from which on the detour pays: one takes about 10 µs, the detour 5 ms
SAMPLE = 500  # of the simple ones are read with the others, to learn how they are written


def read_many(cells: Sequence[str], counts: Sequence[int], decimal: Decimal | None = None) -> ReadNumbers:
    """What `read_numbers` gives, sooner.

    >>> read_many(["1", "£2,500", "x"], [1, 1, 1]).values.tolist()
    [1.0, 2500.0, nan]
    """
    if len(cells) <= MANY or decimal == "comma":
        return read_numbers(cells, counts, decimal)
    some = np.arange(0, len(cells), len(cells) // SAMPLE)
    mark = _of_some(cells, counts, some.tolist(), decimal).mark
    values = _simple(cells, mark)
    others = np.union1d(some, np.flatnonzero(np.isnan(values)))
    read = _of_some(cells, counts, others.tolist(), decimal)
    if read.proved == "comma":
        return read_numbers(cells, counts, decimal)
    values[others] = read.values
    return replace(read, values=values)


def _of_some(cells: Sequence[str], counts: Sequence[int], which: list[int], decimal: Decimal | None) -> ReadNumbers:
    return read_numbers([cells[i] for i in which], [counts[i] for i in which], decimal)


def _simple(cells: Sequence[str], mark: str) -> Floats:
    """Plain numbers, and those with one currency and commas between thousands; NaN of all others."""
    pa = arrow()
    compute = pa.compute
    array = pa.array(cells, pa.large_string())
    sign = re.escape(mark)
    pattern = (
        r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?$|"
        rf"^[-+]?(?:{sign})? ?([0-9]{{1,3}}(,[0-9]{{3}})+|[0-9]+)(\.[0-9]*)?$"
    )
    simple = compute.match_substring_regex(array, pattern)
    chosen = array.filter(simple)
    for part in (mark, ",", " "):
        chosen = compute.replace_substring(chosen, part, "") if part else chosen
    values = np.full(len(cells), np.nan)
    values[simple.to_numpy(zero_copy_only=False)] = compute.cast(chosen, pa.float64()).to_numpy(zero_copy_only=False)
    return values
