"""All that was found, put together row by row: what is the matter with it, how probably, and why.

The rows of a table that are most like a given one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from math import isfinite, prod
from typing import TYPE_CHECKING, Literal, final

import numpy as np
from numpy.typing import NDArray

from trimlearn.checks.findings import DOUBTFUL, DuplicateRows, OddRow, WrongCell
from trimlearn.checks.numbers import center_and_spread, days
from trimlearn.checks.why import Names
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.checks.parts import Parts

Finding = Literal["target", "cell", "row", "duplicate"]

DOUBTS = (["doubtful label"], ["doubtful number"])


@final
@dataclass(frozen=True)
class Suspect:
    """A row with which something is the matter."""

    row: int
    kind: str  # the main matter, in plain words
    kinds: tuple[Finding, ...]  # all of them, the main one first
    probability: float | None  # that something in the row is wrong; None for a mere copy, which need not be wrong
    score: float  # of the main matter
    target: bool  # whether its target looks wrong, or doubtful
    doubtful: bool  # whether nothing but its target is the matter, and that more likely right than wrong
    cells: tuple[WrongCell, ...]
    odd: OddRow | None
    duplicates: tuple[DuplicateRows, ...]


@final
@dataclass(frozen=True)
class _Matter:
    finding: Finding
    kind: str
    probability: float | None
    score: float


def find_suspects(parts: Parts, settled: Set[int] = frozenset()) -> list[Suspect]:
    """The rows with which something is the matter, most probable first; ``settled`` ones are left out.

    The findings of a row are taken as independent: the target and the row as a whole are judged with wrong cells
    emptied. So the probability that something is wrong is 1 − Π(1 − p).
    """
    names, flagged, cells = Names(parts.table), _targets(parts), _cells(parts)
    odd = {} if parts.rows is None else {odd.row: odd for odd in parts.rows.odd}
    duplicates = _duplicates(parts)
    suspects = []
    for row in sorted((flagged.keys() | cells.keys() | odd.keys() | duplicates.keys()) - settled):
        # In the order in which people ask: target, cells, row, duplicates.
        matters = [flagged[row]] if row in flagged else []
        if row in cells:
            matters.append(_of_cells(cells[row]))
        if row in odd:
            one = odd[row]
            matters.append(_Matter("row", "unlike all other rows", _number(one.probability), _number(one.score)))
        if row in duplicates:
            matters.append(_twin(names, row, duplicates[row][0]))  # one name is enough; the card shows all
        matters.sort(key=lambda matter: -1.0 if matter.probability is None else matter.probability, reverse=True)
        known = [matter.probability for matter in matters if matter.probability is not None]
        suspects.append(
            Suspect(
                row=row,
                kind=matters[0].kind,
                kinds=tuple(matter.finding for matter in matters),
                probability=1 - prod(1 - p for p in known) if known else None,
                score=matters[0].score,
                target=row in flagged,
                doubtful=[matter.kind for matter in matters] in DOUBTS,
                cells=tuple(cells[row]),
                odd=odd.get(row),
                duplicates=tuple(duplicates[row]),
            )
        )
    return sorted(suspects, key=_order)


def _order(suspect: Suspect) -> tuple[float, float, int]:
    """Most probable first, then the higher score; copies, of which nothing is known to be wrong, come last."""
    probability = -1.0 if suspect.probability is None else suspect.probability
    return -round(probability, 6), -abs(suspect.score), suspect.row


def _of_cells(cells: list[WrongCell]) -> _Matter:
    worst = max(cells, key=lambda cell: (cell.probability, abs(cell.score)))
    some = 1 - prod(1 - _number(cell.probability) for cell in cells)
    return _Matter("cell", "wrong cell" if len(cells) == 1 else "wrong cells", some, _number(worst.score))


def _twin(names: Names, row: int, group: DuplicateRows) -> _Matter:
    other = names.place(next(twin for twin in group.rows if twin != row))
    if group.kind == "contradictory":
        # Of m rows that are the same, at least one is wrong; nothing says which: each is as likely.
        return _Matter("duplicate", f"contradicts {other}", 1 / len(group.rows), 0.0)
    if names.share_only_an_id(group):
        return _Matter("duplicate", "same id", None, 0.0)
    return _Matter("duplicate", "duplicate" if group.kind == "exact" else "near-duplicate", None, 0.0)


def _targets(parts: Parts) -> dict[int, _Matter]:
    judged = parts.target
    if judged is None or not judged.flagged.any():
        return {}
    what = "label" if judged.task == "classification" else "number"
    listed = judged.flagged | (np.nan_to_num(judged.probability) >= DOUBTFUL)
    return {
        row: _Matter(
            "target",
            f"{'wrong' if judged.flagged[row] else 'doubtful'} {what}",
            _number(judged.probability[row]),
            _number(judged.score[row]),
        )
        for row in np.flatnonzero(listed).tolist()
    }


def _cells(parts: Parts) -> dict[int, list[WrongCell]]:
    found: dict[int, list[WrongCell]] = defaultdict(list)
    for cell in sorted(parts.cells.cells, key=lambda cell: (-cell.probability, -abs(cell.score))):
        found[cell.row].append(cell)
    return found


def _duplicates(parts: Parts) -> dict[int, list[DuplicateRows]]:
    """The groups in which a row is suspect. The first of rows that are the same is taken for the original."""
    found: dict[int, list[DuplicateRows]] = defaultdict(list)
    for group in sorted(parts.duplicates, key=lambda group: group.kind != "contradictory"):
        for row in group.rows if group.kind == "contradictory" else group.rows[1:]:
            found[row].append(group)
    return found


def _number(value: float) -> float:
    return float(value) if isfinite(value) else 0.0


FAR = 3.0  # in robust σ: values further out are as far as that, so that no single cell decides who is near
LEVELS = 20  # categories of a column up to which matrix products of 0 and 1 beat comparisons
HALF = np.float32(0.5)  # of a squared distance of 1, as all are halved here
HELD = 2_000_000  # distances in memory at a time, 8 MB

Floats = NDArray[np.float32]


def nearest_rows(
    table: Table, mended: pd.DataFrame, rows: Iterable[int], k: int = 3, target: str | None = None
) -> dict[int, tuple[int, ...]]:
    """The k rows nearest to each of these, nearest first.

    Numbers and dates differ by robust σ of their column, categories by 1 or 0; a missing value is taken for an ordinary
    one, the median. The target has no say: what it is in rows that are alike otherwise is what a reader wants to see.

    Parameters
    ----------
    table : Table
        Which columns are what.
    mended : DataFrame
        Its values, wrong cells missing.
    rows : iterable of int
        The rows whose neighbours are looked for.
    k : int, default=3
        How many.
    target : str or None, default=None
        A column that does not count.

    Returns
    -------
    dict of int to tuple of int
        For each of ``rows`` its neighbours, itself not among them; fewer than k where the table is shorter.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column, Table
    >>> frame = pd.DataFrame({"x": [1.0, 5.0, 1.1, 9.0, 5.2]})
    >>> table = Table(frame, frame.astype(str), (Column("x", "number"),), "made up", 0, "")
    >>> nearest_rows(table, frame, [0, 4], k=1)
    {0: (2,), 4: (1,)}
    """
    asked = np.array(sorted({int(i) for i in rows}), dtype=np.int64)
    n = len(mended)
    if k < 1 or n < 2 or not len(asked):
        return {int(i): () for i in asked}
    numbers, codes = _coordinates(table, mended, target)
    half = 0.5 * np.einsum("ij,ij->i", numbers, numbers)
    found: dict[int, tuple[int, ...]] = {}
    step = max(1, HELD // n)
    for start in range(0, len(asked), step):
        block = asked[start : start + step]
        distance = half - numbers[block] @ numbers.T  # half the squared distance, a constant of each row apart
        for code in codes:
            np.add(distance, HALF, out=distance, where=code[block][:, None] != code)
        distance[np.arange(len(block)), block] = np.inf
        found |= dict(zip(block.tolist(), _smallest(distance, min(k, n - 1)), strict=True))
    return found


def _smallest(distance: Floats, k: int) -> list[tuple[int, ...]]:
    """The k smallest of each row, the first ones of equals."""
    near = np.empty((len(distance), k), dtype=np.int64)
    for row, far in zip(near, distance, strict=True):  # a partition of values is much faster than one of places
        limit = np.partition(far, k - 1)[k - 1]
        close = np.flatnonzero(far <= limit)
        row[:] = close[np.argsort(far[close], kind="stable")[:k]]
    return [tuple(row) for row in near.tolist()]


def _coordinates(table: Table, mended: pd.DataFrame, target: str | None) -> tuple[Floats, Sequence[NDArray[np.int32]]]:
    """What Euclidean distances are taken of, (n, ·); and the categories with many values, as numbers."""
    columns: list[Floats] = []
    codes: list[NDArray[np.int32]] = []
    for name in table.of_kind("number", "date", "category"):
        if name == target:
            continue
        column = mended[name]
        if column.dtype.kind in "iufM":
            columns.append(_scaled(column)[:, None])
            continue
        code, levels = column.factorize()
        if len(levels) <= LEVELS:
            columns.append((code[:, None] == np.arange(len(levels))) * np.float32(np.sqrt(0.5)))
        else:
            codes.append(code.astype(np.int32))
    values = np.hstack(columns) if columns else np.zeros((len(mended), 0))
    return values.astype(np.float32), codes


def _scaled(column: pd.Series) -> Floats:
    """In robust σ about the median, at most FAR; missing values at the median."""
    x = days(column)
    center, sigma = center_and_spread(x)
    return np.asarray(np.clip(np.nan_to_num((x - center) / sigma), -FAR, FAR), dtype=np.float32)
