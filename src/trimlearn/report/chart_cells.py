"""Charts of the cells: which are wrong, in which columns, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from trimlearn.report.chart_specs import RowNames, Spec, counted, say, share, table

if TYPE_CHECKING:
    from trimlearn.checks.findings import CellFindings, WrongCell
    from trimlearn.tables.table import Table

ROWS = 30  # of a cell map: more do not fit on a screen
COLUMNS = 20  # of a cell map and of the bars: more names cannot be read
PALE, STRONG = 2.0, 40.0  # scores of the palest and of the strongest colour: about the cut, and ten times too large
LEADING = 0.6  # of the wrong cells: columns with that many hold "most"


def column_bars(found: Table, cells: CellFindings) -> Iterator[Spec]:
    """How many cells of each column are wrong, cannot be read, or are missing."""
    wrong = Counter(cell.column for cell in cells.cells)
    counts = {
        column.name: (wrong[column.name], len(column.unreadable), max(0, int(column.missing) - len(column.unreadable)))
        for column in found.columns
    }
    there = sorted((name for name in counts if sum(counts[name])), key=lambda name: (-wrong[name], -sum(counts[name])))
    if not there:
        return
    roles = (("wrong", "wrong"), ("doubt", "unreadable"), ("missing", "missing"))
    used = [k for k in range(len(roles)) if any(counts[name][k] for name in there)]
    items = [
        {"name": name, "counts": [counts[name][k] for k in used], "note": cells.typical.get(name, "")}
        for name in there[:COLUMNS]
    ]
    rows = len(found.frame)
    more = f" The first {COLUMNS} of {len(there):,} such columns." if len(there) > COLUMNS else ""
    yield {
        "type": "bars",
        "key": "columns",
        "title": _columns_title(wrong, counts),
        "description": f"Cells that are {' or '.join(roles[k][1] for k in used)}, of {rows:,} in each column.{more}",
        "groups": [{"role": roles[k][0], "name": roles[k][1]} for k in used],
        "items": items,
        "table": table(["column", *(roles[k][1] for k in used), "typical error"],
                       [[i["name"], *i["counts"], i["note"] or "–"] for i in items], len(there)),
    }  # fmt: skip


def _columns_title(wrong: Counter[str], counts: dict[str, tuple[int, int, int]]) -> str:
    total = sum(wrong.values())
    if not total:
        missing = [name for name in counts if sum(counts[name])]
        if len(missing) == 1:
            return f"Only {missing[0]} has gaps"
        return f"{counted(len(missing), 'column', start=True)} have gaps"
    leading, held = 0, 0
    for _, count in wrong.most_common():
        leading, held = leading + 1, held + count
        if held >= LEADING * total:
            break
    first = wrong.most_common(1)[0][0]
    if len(wrong) == 1:
        return f"All wrong cells are in {first}" if total > 1 else f"The one wrong cell is in {first}"
    if len(wrong) <= 3:
        names = [name for name, _ in wrong.most_common()]
        return f"All wrong cells are in {', '.join(names[:-1])} and {names[-1]}"
    if leading == 1:
        return f"{first} holds {share(held / total)} of the wrong cells"
    if leading <= max(3, len(wrong) // 3):
        return f"{counted(leading, 'column', start=True)} hold {share(held / total)} of the wrong cells"
    return f"Wrong cells are spread over {counted(len(wrong), 'column')}"


def cell_map(found: Table, cells: CellFindings, names: RowNames) -> Iterator[Spec]:
    """The rows with wrong cells, by column: which values are too high, too low, or another word."""
    if not cells.cells:
        return
    worst: dict[int, float] = {}
    for cell in cells.cells:
        worst[cell.row] = max(worst.get(cell.row, 0.0), abs(cell.score))
    by_count = Counter(cell.column for cell in cells.cells)
    rows = sorted(sorted(worst, key=lambda row: -worst[row])[:ROWS])
    kept = {name for name, _ in by_count.most_common(COLUMNS)}
    columns = [column.name for column in found.columns if column.name in kept]
    row_at, column_at = {row: i for i, row in enumerate(rows)}, {name: j for j, name in enumerate(columns)}
    drawn = [
        {"row": row_at[cell.row], "column": column_at[cell.column], **_square(found, cell, names)}
        for cell in cells.cells
        if cell.row in row_at and cell.column in column_at
    ]
    words = ", ≠ is another word than expected" if any(square["sign"] == "≠" for square in drawn) else ""
    left = f" The {len(rows)} rows with the worst cells are drawn, of {len(worst):,}." if len(worst) > len(rows) else ""
    if len(by_count) > len(columns):
        left += f" The {len(columns)} columns with the most are drawn, of {len(by_count)}."
    gaps = _missing(found, rows, columns, names)
    grey = "; a grey one is missing" if gaps else ""
    listed = sorted(cells.cells, key=lambda c: -abs(c.score))[:200]
    yield {
        "type": "matrix",
        "key": "cells",
        "title": _cells_title(cells),
        "description": f"Each square is a cell: + is too high, − is too low for the rest of its row{words}, the "
        f"stronger the colour the further off{grey}.{left}",
        "rows": [names(row) for row in rows],
        "columns": columns,
        "cells": [*gaps, *drawn],
        "table": table(["row", "column", "value", "expected", "probability", "error"],
                       [_cell_line(found, cell, names) for cell in listed], len(cells.cells)),
    }  # fmt: skip


def _square(found: Table, cell: WrongCell, names: RowNames) -> Spec:
    """What a wrong cell looks like, and what it says when asked."""
    name, column, written, expected, probability, _ = _cell_line(found, cell, names)
    wordy = column in found.of_kind("category", "text")
    return {
        "role": "high" if wordy or cell.score > 0 else "low",
        "sign": "≠" if wordy else "+" if cell.score > 0 else "−",
        "strength": _strength(cell.score),
        "lines": [
            f"{column} of {name}",
            f"{written} → {expected} expected",
            *([cell.error] if cell.error else []),
            f"wrong with probability {probability}",
        ],
    }


def _strength(score: float) -> float:
    """From 0, barely off, to 1, on the scale of a logarithm."""
    return round(float(np.clip(np.log(max(abs(score), PALE) / PALE) / np.log(STRONG / PALE), 0.0, 1.0)), 2)


def _cell_line(found: Table, cell: WrongCell, names: RowNames) -> list[str]:
    written = str(found.written[cell.column].iloc[cell.row]) or _shown(cell.value)
    error = cell.error or "–"
    return [names(cell.row), cell.column, written, _shown(cell.expected), share(cell.probability), error]


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else say(value)


def _missing(found: Table, rows: list[int], columns: list[str], names: RowNames) -> list[Spec]:
    """The cells of these rows that have no value."""
    gaps = found.frame.iloc[rows][columns].isna().to_numpy()
    return [
        {"row": int(i), "column": int(j), "role": "missing", "strength": 0,
         "lines": [f"{columns[j]} of {names(rows[i])}", "missing"]}
        for i, j in np.argwhere(gaps)
    ]  # fmt: skip


def _cells_title(cells: CellFindings) -> str:
    count, rows = len(cells.cells), len({cell.row for cell in cells.cells})
    numeric = [cell for cell in cells.cells if not isinstance(cell.value, str)]
    high = sum(cell.score > 0 for cell in numeric)
    verb = "does" if count == 1 else "do"
    side = ""
    if len(numeric) == count > 3 and high >= 0.8 * count:
        side = ", mostly too high"
    elif len(numeric) == count > 3 and high <= 0.2 * count:
        side = ", mostly too low"
    return f"{counted(count, 'cell', start=True)} in {counted(rows, 'row')} {verb} not fit the rest of the row{side}"
