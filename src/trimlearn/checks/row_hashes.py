"""The cells of a table as hashes whose sums say which rows are the same, with any column left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.checks.findings import DuplicateRows
from trimlearn.checks.numbers import days
from trimlearn.checks.spread import center_and_spread
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

Hashes = NDArray[np.uint64]
Groups = list[Ints]

RARE = 0.05  # pairs that differ by rounding and are there by chance, if columns were independent: the most


@final
@dataclass(frozen=True)
class RowHashes:
    """The columns compared, (n, p): each value as a number from 0 on, its hash, and how often it occurs (as log share).

    ``numbers``: of those columns in units of their robust spread, by column. ``target``: its column, −1 for none.
    """

    names: tuple[str, ...]
    codes: Ints
    hashes: Hashes
    log_share: Floats
    numbers: dict[int, Floats]
    target: int
    total: Hashes  # of the hashes of each row
    log_shares: Floats  # the sum of each row
    alike: Floats  # (p,): the probability that two values of a column are the same

    @classmethod
    def of(cls, table: Table, target: str | None) -> RowHashes:
        names = tuple(name for name in table.frame.columns if name not in table.of_kind("id", "constant", "empty"))
        n, p = len(table.frame), len(names)
        codes, log_share = np.zeros((p, n), dtype=np.int64).T, np.zeros((p, n)).T  # columns are written and read whole
        numbers: dict[int, Floats] = {}
        alike = np.zeros(p)
        for j, name in enumerate(names):
            column = table.frame[name]
            if column.dtype.kind in "fM":
                x = days(column)
                center, sigma = center_and_spread(x)
                numbers[j] = (x - center) / sigma
            elif column.dtype.kind not in "iub":
                column = _words(column)
            codes[:, j] = column.factorize()[0]
            counts = np.bincount(codes[:, j] + 1)
            others = np.maximum(counts[codes[:, j] + 1] - 1, 1)  # a row's own copy is no evidence of chance
            log_share[:, j] = np.where(codes[:, j] < 0, 0.0, np.log(others / max(n, 1)))  # gaps are no evidence
            alike[j] = np.sum((counts / max(n, 1)) ** 2)
        at = names.index(target) if target in names else -1
        hashes = cell_hashes(codes)
        total = hashes.sum(axis=1, dtype=np.uint64)
        return cls(names, codes, hashes, log_share, numbers, at, total, log_share.sum(axis=1), alike)

    def enough(self, without: tuple[int, ...] = ()) -> Ints:
        """The rows whose values, but for those columns, make it unlikely that another has the same by chance."""
        expected = self.log_shares - self.log_share[:, list(without)].sum(axis=1)
        return np.flatnonzero(expected + np.log(max(len(self.codes), 1)) < np.log(RARE))

    def sums(self, without: tuple[int, ...] = ()) -> Hashes:
        """A hash of each row, but for those columns."""
        return np.asarray(self.total - self.hashes[:, list(without)].sum(axis=1, dtype=np.uint64))

    def repeated(self, columns: slice) -> Ints:
        """The rows whose values in these columns another row has as well."""
        hashes = self.hashes[:, columns].sum(axis=1, dtype=np.uint64)
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *equal_rows(hashes, np.arange(len(hashes)))]))

    def differs(self, rows: Iterable[int]) -> tuple[str, ...]:
        """The columns in which rows are not all the same."""
        codes = self.codes[list(rows)]
        return tuple(name for name, off in zip(self.names, np.any(codes != codes[0], axis=0), strict=True) if off)

    def group(self, rows: Iterable[int], differs: tuple[str, ...]) -> DuplicateRows:
        """Rows that differ in these columns, and what they are to each other."""
        contradictory = self.target >= 0 and differs == (self.names[self.target],)
        return DuplicateRows(tuple(rows), "contradictory" if contradictory else "near" if differs else "exact", differs)


def _words(column: pd.Series) -> pd.Series:
    """Without differences of blanks and capitals; each word is looked at once."""
    import pandas as pd

    codes, words = column.factorize()
    plain = pd.Series(words).str.split().str.join(" ").str.casefold()
    return plain.reindex(codes)


def cell_hashes(codes: Ints) -> Hashes:
    """A hash of each cell: splitmix64 (Steele, Lea and Flood 2014) of its value and its column."""
    with np.errstate(over="ignore"):
        column = np.arange(1, codes.shape[1] + 1).astype(np.uint64)
        z: Hashes = codes.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * column
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def equal_rows(hashes: Hashes, rows: Ints) -> Groups:
    """The rows of equal hashes, at least two each, in order."""
    known = np.sort(hashes[rows])
    if not len(again := known[1:][known[1:] == known[:-1]]):  # as a rule; sorting values takes a tenth of placing them
        return []
    rows = rows[np.isin(hashes[rows], again)]
    order = rows[np.argsort(hashes[rows], kind="stable")]
    starts = np.flatnonzero(np.append(True, hashes[order][1:] != hashes[order][:-1])[: len(order)])
    sizes = np.diff(starts, append=len(order))
    return [order[at : at + size] for at, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
