"""The parts of a check, run in their order: cells, then the target or the rows, then duplicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from threadpoolctl import threadpool_limits

from trimlearn.checks.cells import find_cells
from trimlearn.checks.duplicates import find_duplicates
from trimlearn.checks.findings import CellFindings, DuplicateRows, RowFindings, TargetFindings, Task
from trimlearn.checks.heard import heard
from trimlearn.checks.image_features import with_features
from trimlearn.checks.rows import odd_rows
from trimlearn.checks.target import judge_target
from trimlearn.checks.threads import threads_for
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    from trimlearn.tables.images import ImageTable

Progress = Callable[[str], None]

COMPARED = 4  # columns: of rows with fewer some are nearly the same by chance, one pair of 100 normal points in a plane


@final
@dataclass(frozen=True)
class Pins:
    """What a person has settled: rows that are wrong (True) or right (False), and cells that are right."""

    rows: Mapping[int, bool] = field(default_factory=dict)
    cells: frozenset[tuple[int, str]] = frozenset()


@final
@dataclass(frozen=True)
class Parts:
    """A table, and all that was found in it. Without a target its rows are judged as a whole."""

    table: Table
    cells: CellFindings
    target: TargetFindings | None
    rows: RowFindings | None
    duplicates: tuple[DuplicateRows, ...]
    warned: tuple[str, ...] = ()  # what the fits said in passing
    seen: Table | None = None  # what the models saw, where that is not the table itself: features of images

    @property
    def features(self) -> Table:
        """The table that the models saw."""
        return self.table if self.seen is None else self.seen


def run_parts(
    table: Table,
    *,
    target: str | None,
    images: ImageTable | None = None,
    task: Task | None = None,
    pins: Pins,
    seed: int,
    progress: Progress,
) -> Parts:
    """Run all parts. Cells come first, so that wild ones do not wreck the judgement of the target.

    Labels of ``images`` are judged by features of the pixels, as those of a table are by its columns.
    """
    warned: list[str] = []
    judged, rows, seen = None, None, table
    # On a busy machine the threads of BLAS wait for each other as those of boosting do.
    threads = threads_for(table.frame.size) if images is None else None
    with heard(warned, "the fits"), threadpool_limits(threads):
        if images is None:
            progress("looking at every cell")
            cells = find_cells(table, exclude=(target,) if target else (), keep=pins.cells)
        else:
            progress("looking at the pixels")
            seen = with_features(images, table, seed)
            cells = CellFindings((), seen.frame, {})
        if target is None:
            progress("looking at rows as a whole")
            rows = odd_rows(table, cells.mended.drop(columns=list(cells.reckoned)), pinned=pins.rows, seed=seed)
        else:
            progress(f"judging {'the labels' if images else target} by two models")
            judged = judge_target(
                seen,
                cells.mended,
                target,
                task=task,
                pinned=pins.rows,
                corrected=cells.corrected(),
                seed=seed,
                progress=progress,
            )
        progress(f"looking for {'images' if images else 'rows'} that occur twice")
        duplicates = find_duplicates(seen, target)
        if images is None and len(table.columns) - len(table.of_kind("id")) < COMPARED:
            duplicates = tuple(group for group in duplicates if group.kind != "near")
    return Parts(table, cells, judged, rows, duplicates, tuple(warned), None if images is None else seen)
