"""Rows that are in a table twice, or nearly so, or with two different targets.

Rows are compared by sums of hashes of their cells, so that leaving a column out is one subtraction: rows that differ in
column j only have the same sum without it. Rows that differ by rounding in several columns are found by the same hash
of a few coarse columns (locality-sensitive hashing, Indyk and Motwani 1998), and then compared cell by cell.

Where a table has little content, rows are the same by chance. How many are to be expected is told by the rows that are
the same but for one column: of these, a share q falls together in that column too, with q the probability that two
values of it do.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.checks.findings import DuplicateRows
from trimlearn.checks.row_hashes import RARE, Groups, Hashes, RowHashes, cell_hashes, equal_rows
from trimlearn.tables.table import Table

NEAR = 1e-3  # of a column's robust σ, and of the value: closer numbers differ by rounding
CHANCE = 0.1  # of the pairs found: if more are to be expected by chance, none is reported
DESIGN = 0.05  # of the rows: if more differ from another in one and the same column only, the table is made so
REPLICATES = 0.2  # the same of the target: measurements that were repeated on purpose are no contradictions
MOST = 12  # columns that chance is judged by, from those of most to those of fewest values: a limit on time
UPPER = 0.75  # the quartile of what these expect
TELLING = 10  # pairs: fewer do not tell a chance
SAME = 0.99  # the most that is believed of the probability that two values of a column are the same
WIDER = 4.0  # times the tolerance, in which pairs are counted that may be there by chance
ENOUGH = 2.0  # of the log odds that rows fall together in the columns of a coarse hash, beyond log n
LIMIT = 10**9  # of a coarse cell: further out all are in the same one
UNIQUE = 0.9  # of the entries of an id: if fewer are different, it names groups, not rows
TRIALS = 8  # of coarse hashes: rows that differ by rounding fall together in each with a probability of 0.8 or so
COARSE = 0.05  # of a robust σ: the grid of coarse hashes, 50 times what rounding may change
GRIDS = 4  # twice as wide as that of rounded numbers, each moved by 0 or 1 step: their mean is taken
DEPENDENT = 3  # columns whose steps count each for itself: of more, numbers that depend on each other move together
FAR_APART = 10  # places for each row: as much memory as a few columns take
FEW = 20  # rows of a coarse cell that are compared with each other: larger ones tell nothing


def find_duplicates(table: Table, target: str | None = None) -> tuple[DuplicateRows, ...]:
    """Groups of rows that are the same, but for at most one cell or rounding.

    Parameters
    ----------
    table : Table
        What is compared: all columns but ids, texts by their words. Wrong cells are compared as they are: that two rows
        have the same one says more than that it is wrong.
    target : str or None, default=None
        The column of the target. Rows that are the same but for it are contradictory.

    Returns
    -------
    tuple of DuplicateRows
        Exact ones first, then contradictory and near ones. Rows with the same id are near ones if they differ. Nothing
        is reported of a kind of which as many are to be expected by chance.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column
    >>> x = np.random.default_rng(0).normal(size=(50, 2)).round(6)
    >>> frame = pd.DataFrame(x[[*range(50), 7, 9]], columns=["a", "b"]).assign(y=["yes", "no"] * 26)
    >>> frame.loc[50, "y"] = "no"
    >>> columns = Column("a", "number"), Column("b", "number"), Column("y", "category")
    >>> find_duplicates(Table(frame, frame.astype(str), columns, "made up", 0, ""), "y")
    (DuplicateRows(rows=(7, 50), kind='exact', differs=()), DuplicateRows(rows=(9, 51), kind='exact', differs=()))
    """
    cells = RowHashes.of(table, target)
    found: dict[tuple[int, ...], DuplicateRows] = {}
    for group in (*_exact(cells), *_but_one(cells), *_rounded(cells), *_same_id(table, cells)):
        found.setdefault(group.rows, group)
    order = ("exact", "contradictory", "near")
    return tuple(sorted(found.values(), key=lambda group: (order.index(group.kind), group.rows)))


def _pairs(groups: Groups) -> int:
    return sum(len(group) * (len(group) - 1) // 2 for group in groups)


def _exact(cells: RowHashes) -> list[DuplicateRows]:
    """Rows that are the same in every column."""
    groups = equal_rows(cells.sums(), cells.enough())
    if not groups or _by_chance(cells, groups, ()):
        return []
    return [cells.group(group.tolist(), ()) for group in groups]


def _but_one(cells: RowHashes) -> list[DuplicateRows]:
    """Rows that are the same in every column but one: in all columns of that half in which this one is not."""
    found = []
    half = len(cells.names) // 2
    left, right = cells.repeated(slice(half)), cells.repeated(slice(half, None))
    for j in range(len(cells.names)):
        alike = right if j < half else left
        if not len(alike):
            continue
        rows = np.intersect1d(cells.enough((j,)), alike, assume_unique=True)
        groups = [g for g in equal_rows(cells.sums((j,)), rows) if np.any(cells.codes[g, j] != cells.codes[g[0], j])]
        design = REPLICATES if j == cells.target else DESIGN
        if not groups or sum(map(len, groups)) > max(design * len(cells.codes), FEW) or _by_chance(cells, groups, (j,)):
            continue
        found += [cells.group(group.tolist(), (cells.names[j],)) for group in groups]
    return found


def _by_chance(cells: RowHashes, groups: Groups, without: tuple[int, ...]) -> bool:
    """Whether as many rows may be the same, but for some columns, without being duplicates.

    Of the pairs that are the same but for one more column, a share falls together in that too: each such column tells
    how many pairs are to be expected. The upper quartile of these is believed, since a column with errors in true
    duplicates tells too many. Where columns depend on each other all tell too few. So pairs that differ in exactly one
    and in exactly two more columns are counted, t₁ and t₂: if each of m columns has the same odds to differ, pairs that
    differ in none are t₁²(m − 1)/(2m t₂).
    """
    rows = cells.enough(without)
    same = _count(cells, without, rows)
    order = [k for k in np.argsort(cells.alike).tolist() if k not in without]
    some = order[:: -(-len(order) // MOST)] if order else []
    one = {k: _count(cells, (*without, k), rows) - same for k in some}
    odds = {k: min(float(cells.alike[k]), SAME) for k in some}
    expected = [one[k] * odds[k] / (1.0 - odds[k]) for k in some]
    found = CHANCE * _pairs(groups)
    if not some or float(np.quantile(expected, UPPER)) > found or _of_rounding(cells, without, rows, same) > found:
        return True
    two = sum(_count(cells, (*without, j, k), rows) - same - one[j] - one[k] for j, k in combinations(some, 2))
    m = len(some)
    return two >= TELLING and sum(one.values()) ** 2 * (m - 1) / (2 * m * two) > found


def _of_rounding(cells: RowHashes, without: tuple[int, ...], rows: Ints, same: int) -> float:
    """How many pairs are the same because numbers were rounded.

    On a grid twice as wide pairs that differ by one step fall together too. Where rows are the same by chance, each
    cell of that grid, 2 × 2 of two columns, has pairs in each of its parts and between them; copies are in one part.
    """
    columns = [j for j in cells.numbers if j not in without]
    if not columns or not same or len(columns) > MOST:  # of so many columns no two rows are the same by rounding
        return 0.0
    steps = {j: _in_steps(cells.numbers[j]) for j in columns}
    rng, wide, found = np.random.default_rng(0), cells.codes.copy(), []
    for _ in range(GRIDS):
        for j in columns:
            wide[:, j] = (steps[j] + rng.integers(2)) // 2
        hashes = cell_hashes(wide)
        sums = hashes.sum(axis=1, dtype=np.uint64) - hashes[:, list(without)].sum(axis=1, dtype=np.uint64)
        found.append(_pairs_of(sums[rows]) - same)
    return float(np.mean(found)) / (2.0 ** min(len(columns), DEPENDENT) - 1.0)


def _in_steps(z: Floats) -> Ints:
    """Numbers in steps of the grid that they were rounded to, from the least on; negative where there is none."""
    known = z[np.isfinite(z)]
    gaps = np.diff(np.unique(known))
    step = float(gaps.min()) if len(gaps) else 1.0
    grid = np.rint((z - known.min()) / step) if len(known) else z
    return np.where(np.isfinite(z), np.clip(grid, 0, LIMIT), -3).astype(np.int64)


def _count(cells: RowHashes, without: tuple[int, ...], rows: Ints) -> int:
    """The pairs of rows that are the same but for these columns."""
    return _pairs_of(cells.sums(without)[rows])


def _pairs_of(hashes: Hashes) -> int:
    """The pairs of equal ones."""
    sizes = np.unique(hashes, return_counts=True)[1]
    return int(np.sum(sizes * (sizes - 1) // 2))


def _rounded(cells: RowHashes) -> list[DuplicateRows]:
    """Rows that differ by rounding in some columns, and at most in one by more."""
    pairs = _candidates(cells)
    if not len(pairs):
        return []
    a, b = pairs.T
    beyond = {width: np.zeros(len(pairs), dtype=np.int64) for width in (NEAR, WIDER * NEAR)}
    equal = np.zeros(len(pairs), dtype=np.int64)
    chance = np.full(len(pairs), 2 * np.log(len(cells.codes)))  # log of the pairs, if columns were independent
    for j in range(len(cells.names)):
        same = cells.codes[a, j] == cells.codes[b, j]
        equal += same
        for width, count in beyond.items():
            close = np.abs(cells.numbers[j][a] - cells.numbers[j][b]) <= width if j in cells.numbers else same
            count += ~(same | close)
            if width == NEAR:
                chance += np.where(same | close, np.log(max(float(cells.alike[j]), NEAR)), 0.0)
    found = []
    for off in (0, 1):
        near = (beyond[NEAR] == off) & (equal < len(cells.names) - off) & (chance < np.log(RARE))
        wider = (beyond[WIDER * NEAR] == off) & (equal < len(cells.names) - off)
        # By chance there would be WIDER times as many in the wider neighbourhood, or more in several dimensions.
        if np.count_nonzero(wider & ~near) > CHANCE * (WIDER - 1) * np.count_nonzero(near):
            continue
        for i, k in pairs[near].tolist():
            found.append(cells.group((i, k), cells.differs((i, k))))
    return found


def _candidates(cells: RowHashes) -> Ints:
    """Pairs of rows that fall together in a few coarse columns, (m, 2), by TRIALS choices of these."""
    n, p = cells.codes.shape
    if not cells.numbers or n < 2:
        return np.empty((0, 2), dtype=np.int64)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(TRIALS):
        content, chosen = 0.0, []
        for j in rng.permutation(p).tolist():
            coarse = cells.codes[:, j]
            if j in cells.numbers:
                grid = np.floor(cells.numbers[j] / COARSE + rng.random())
                coarse = np.where(np.isfinite(grid), np.clip(grid, -LIMIT, LIMIT), -LIMIT - 1).astype(np.int64)
            shares = _how_many(coarse) / n
            content -= float(np.log(np.sum(shares**2)))
            chosen.append(coarse)
            if content > np.log(n) + ENOUGH:
                break
        hashes = cell_hashes(np.column_stack(chosen)).sum(axis=1, dtype=np.uint64)
        for group in equal_rows(hashes, np.arange(n)):
            if len(group) <= FEW:
                i, k = np.triu_indices(len(group), 1)
                found.append(np.sort(np.column_stack([group[i], group[k]]), axis=1))
    return np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 2), dtype=np.int64)


def _how_many(values: Ints) -> Ints:
    """How often each of the different values occurs, in their order; sorted only where they are far apart."""
    least = int(values.min())
    if int(values.max()) - least > FAR_APART * len(values):
        return np.unique(values, return_counts=True)[1]
    counts = np.bincount(values - least)
    return np.asarray(counts[counts > 0])


def _same_id(table: Table, cells: RowHashes) -> list[DuplicateRows]:
    """Rows with the same id, where ids name rows."""
    found = []
    for name in table.of_kind("id"):
        column = table.frame[name]
        known = column[column.notna()]
        if known.nunique() < UNIQUE * len(known):
            continue
        again = known[known.duplicated(keep=False)]
        for _, group in again.groupby(again):
            at = group.index.tolist()
            found.append(cells.group(at, cells.differs(at)))
    return found
