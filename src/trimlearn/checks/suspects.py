"""All that was found, put together row by row: what is the matter with it, how probably, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass
from math import isfinite, prod
from typing import TYPE_CHECKING, Literal, NamedTuple, final

import numpy as np

from trimlearn.checks.findings import DOUBTFUL, DuplicateRows, OddRow, WrongCell
from trimlearn.checks.names import Names

if TYPE_CHECKING:
    from trimlearn.checks.findings import TargetFindings
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


class _Matter(NamedTuple):
    finding: Finding
    kind: str
    probability: float | None
    score: float


def find_suspects(parts: Parts, settled: Set[int] = frozenset()) -> list[Suspect]:
    """The rows with which something is the matter, most probable first; ``settled`` ones are left out.

    The findings of a row are taken as independent: the target and the row as a whole are judged with wrong cells
    emptied. So the probability that something is wrong is 1 − Π(1 − p).
    """
    targets, cells, duplicates = _targets(parts.target), _cells(parts), _duplicates(parts)
    odd = {} if parts.rows is None else {one.row: one for one in parts.rows.odd}
    names, suspects = Names(parts.table), []
    for row in sorted((targets.keys() | cells.keys() | odd.keys() | duplicates.keys()) - settled):
        # In the order in which people ask: target, cells, row, duplicates.
        matters = [targets[row]] if row in targets else []
        if row in cells:
            matters.append(_of_cells(cells[row]))
        if row in odd:
            probability, score = _number(odd[row].probability), _number(odd[row].score)
            matters.append(_Matter("row", "unlike all other rows", probability, score))
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
                target=row in targets,
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


def _targets(judged: TargetFindings | None) -> dict[int, _Matter]:
    if judged is None or not judged.flagged.any():
        return {}
    what, found = "label" if judged.task == "classification" else "number", {}
    for row in np.flatnonzero(judged.flagged | (np.nan_to_num(judged.probability) >= DOUBTFUL)).tolist():
        kind = f"{'wrong' if judged.flagged[row] else 'doubtful'} {what}"
        found[row] = _Matter("target", kind, _number(judged.probability[row]), _number(judged.score[row]))
    return found


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
