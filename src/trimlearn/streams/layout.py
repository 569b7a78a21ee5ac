"""What the columns of files become: which are features, which is the target, and how categories are written out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

STRIP = 4096  # rows written at a time into a row-major matrix: 20 columns of them, 0.3 MB, stay in a level-2 cache


@final
@dataclass(frozen=True)
class SourceColumn:
    """A column by its name, or its number in an array; ``categories`` of text and dictionaries, one column for each."""

    column: str | int
    categories: tuple[str, ...] | None = None

    @property
    def names(self) -> list[str]:
        """What the columns of the matrix are called: as scikit-learn's OneHotEncoder does it."""
        return [str(self.column)] if self.categories is None else [f"{self.column}_{c}" for c in self.categories]


@final
@dataclass(frozen=True)
class MatrixColumns:
    """How a piece of a file becomes a matrix and a target.

    features: the columns, in order. target: that of y; None: there is none, or it lies beside X. classes: of a target
    that is text, whose numbers the target then holds. dtype, target_dtype: of matrix and target. named: whether columns
    have names; those of arrays have numbers.
    """

    features: tuple[SourceColumn, ...]
    target: str | int | None
    classes: tuple[str, ...] | None
    dtype: np.dtype[Any]
    target_dtype: np.dtype[Any]
    named: bool
    written: np.dtype[Any] | None = None  # the type of a target that is whole numbers in the files

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for feature in self.features for name in feature.names]

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def columns(self) -> list[Any]:
        """What is read of a file: the features' columns and the target's."""
        return [f.column for f in self.features] + ([] if self.target is None else [self.target])

    def of_table(self, batch: Any, place: str, first: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Matrix and target of a record batch, the rows of which begin at ``first`` in ``place``."""
        X = np.empty((batch.num_rows, self.width), dtype=self.dtype)
        at, plain = 0, []
        for feature in self.features:
            column = _complete(batch, feature.column, place, first)
            if feature.categories is None:
                plain.append((at, _numbers(column, feature.column, place)))
                at += 1
                continue
            codes = codes_of(column, feature.categories, feature.column, place)
            X[:, at : at + len(feature.categories)] = codes[:, None] == np.arange(len(feature.categories))
            at += len(feature.categories)
        for start in range(0, len(X), STRIP):
            strip = X[start : start + STRIP]
            for j, values in plain:
                strip[:, j] = values[start : start + STRIP]
        check_finite(X, self.names, place, first)
        if self.target is None:
            return X, None
        column = _complete(batch, self.target, place, first)
        if self.classes is not None:
            t = codes_of(column, self.classes, self.target, place)
        else:
            t = _numbers(column, self.target, place)
        return X, self.checked_target(t, place, first)

    def of_array(self, A: np.ndarray, t: np.ndarray | None, place: str, first: int) -> tuple[np.ndarray, Any]:
        """The same of rows of an array, and of a target that lies beside it."""
        numbers = [int(f.column) for f in self.features]
        if self.target is not None:
            t = A[:, int(self.target)]
        every = numbers == list(range(A.shape[1]))
        X = np.ascontiguousarray(A if every else A[:, numbers], dtype=self.dtype)
        check_finite(X, self.names, place, first)
        return X, None if t is None else self.checked_target(t, place, first)

    def checked_target(self, t: np.ndarray, place: str, first: int) -> np.ndarray:
        t = np.ascontiguousarray(t, dtype=self.target_dtype)
        check_finite(t[:, None], ["the target" if self.target is None else str(self.target)], place, first)
        return t


def check_finite(X: np.ndarray, names: list[str], place: str, first: int) -> None:
    """ValueError that names the place, the row and the column of the first number that is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(
            X.sum(dtype=X.dtype)
        ):  # three times faster than looking at each, and seldom not finite by itself
            return
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        i, j = bad[0]
        raise ValueError(
            f"{place}, row {first + i}, column {names[j]!r} holds {X[i, j]} (as {X.dtype}): drop the row or impute it."
        )


def codes_of(column: Any, categories: Iterable[Any], name: Any, place: str) -> np.ndarray:
    """The number of every entry's category."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.cast("string").to_pylist()
    number = {category: k for k, category in enumerate(categories)}
    table = np.array([number.get(value, -1) for value in values] or [-1], dtype=np.int64)
    codes: np.ndarray = table[column.indices.to_numpy(zero_copy_only=False).astype(np.intp, copy=False)]
    if len(codes) and codes.min() < 0:
        unknown = sorted(value for value in values if value not in number)[:3]
        raise ValueError(f"{place}, column {name!r} holds {', '.join(unknown)}, which the data that came first do not.")
    return codes


def is_categorical(kind: Any) -> bool:
    """Whether an Arrow type is text or a dictionary."""
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_decimal(kind: Any, name: Any, place: str) -> bool:
    """Whether an Arrow type of numbers is one that NumPy lacks; ValueError where it is none of numbers."""
    import pyarrow as pa

    is_a = pa.types
    if not (is_a.is_decimal(kind) or is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_boolean(kind)):
        raise ValueError(f"{place}, column {name!r} holds {kind}: leave it out by columns=, or turn it into numbers.")
    return bool(is_a.is_decimal(kind))


def categories_in(batches: Iterator[Any], columns: list[str], place: str, found: dict[str, set[Any]]) -> None:
    """Add the categories of ``columns`` in these record batches to those found."""
    import pyarrow.compute as pc

    for batch in batches:
        for name in columns:
            found[name].update(pc.unique(_complete(batch, name, place, 0).cast("string")).to_pylist())


def _complete(batch: Any, name: Any, place: str, first: int) -> Any:
    """A column of a record batch, without missing entries."""
    column = batch.column(name)
    if column.null_count:
        row = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"{place}, row {row}, column {name!r} is missing: drop the row or impute it.")
    return column


def _numbers(column: Any, name: Any, place: str) -> np.ndarray:
    """A column of an Arrow type as a NumPy array of numbers."""
    import pyarrow as pa

    if is_decimal(column.type, name, place):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))
