"""A table as it came, the numbers in it, and how what is expected is put in their place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.estimators.base import row_names
from trimlearn.robust.cells.table import why_left_out

__all__ = ["NumberTable"]

READ = 0.8  # of the entries of a text column must read as numbers for it to be one: a few may be "n/a" or dirt
NUMBER = re.compile(
    r"^[^\w\s.,+-]?\s*([+-]?)\s*[^\w\s.,+-]?\s*(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(e[+-]?\d+)?\s*%?$", re.I
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@final
@dataclass(frozen=True)
class NumberTable:
    """A table as it came, its numbers (NaN elsewhere), and why a column has no cells to be judged ("" where it has)."""

    given: Any
    values: Floats
    names: list[Any]
    index: NDArray[Any] | None
    left_out: list[str]

    @classmethod
    def of(cls, X: Any) -> NumberTable:
        frame = hasattr(X, "iloc")
        names = list(X.columns) if frame else [f"x{j}" for j in range(X.shape[1])]
        read = [_numbers(X.iloc[:, j] if frame else X[:, j]) for j in range(X.shape[1])]
        values = np.column_stack([x if x is not None else np.full(X.shape[0], np.nan) for x in read])
        left_out = ["no numbers" if x is None else why_left_out(x) for x in read]
        return cls(X, values, names, row_names(X), left_out)

    def like(self, used: NDArray[np.int64], expected: Floats, whole: Flags, where: Flags) -> Any:
        """The table as it came, with what was expected in the used columns, where it is asked for."""
        frame = hasattr(self.given, "iloc")
        out: Any = self.given.copy() if frame else _writable(self.given)
        for j, is_whole in zip(used.tolist(), whole.tolist(), strict=True):
            x = np.where(where[:, j] & ~np.isnan(expected[:, j]), expected[:, j], self.values[:, j])
            x = np.where(where[:, j] & is_whole, np.rint(x), x)
            if frame:
                column = self.given.iloc[:, j]
                kind = getattr(column.dtype, "kind", "O")
                kept = kind == "f" or (kind in "iu" and is_whole)
                out.isetitem(j, type(column)(x, index=column.index, dtype=column.dtype if kept else np.float64))
            else:
                out[:, j] = x
        return out


def _writable(X: NDArray[Any]) -> NDArray[Any]:
    """A copy that can hold what is expected: floats, unless X holds text beside numbers."""
    if X.dtype.kind == "f":
        return X.copy()
    return X.astype(np.float64) if X.dtype.kind in "iub" else X.astype(object)


def _numbers(x: Any) -> Floats | None:
    """A column as numbers, NaN where missing; None of text, dates and truth values."""
    kind = getattr(x.dtype, "kind", "O")
    if kind in "iuf":
        return np.asarray(x.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(x, "iloc") else x, dtype=np.float64)
    if kind not in "OUT" or str(x.dtype) == "category":
        return None
    entries = x.tolist()
    there = [entry is not None and str(entry) not in ("nan", "NaT", "<NA>", "") for entry in entries]
    read = [_number(entry) if known else np.nan for entry, known in zip(entries, there, strict=True)]
    return np.array(read) if sum(there) and np.isfinite(read).sum() >= READ * sum(there) else None


def _number(entry: Any) -> float:
    """A number, or text that is one, with a currency sign, commas between thousands or %; NaN of anything else."""
    if isinstance(entry, Real):
        return np.nan if isinstance(entry, (bool, np.bool_)) else float(entry)
    found = NUMBER.match(str(entry).strip())
    if found is None:
        return np.nan
    sign, digits, rest, exponent = (part or "" for part in found.groups())
    return float(f"{sign}{digits.replace(',', '')}{rest}{exponent}")
