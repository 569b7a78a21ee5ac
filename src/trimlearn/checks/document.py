"""The document of a check: results.json, and what the page is drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn._version import __version__
from trimlearn.checks.chart_inputs import chart_inputs
from trimlearn.checks.names import Names
from trimlearn.checks.neighbours import nearest_rows
from trimlearn.checks.suspects import Suspect
from trimlearn.checks.why import Reasons
from trimlearn.checks.words import caveats, count_findings, headline, next_steps
from trimlearn.report.charts import charts

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.checks.findings import TargetFindings, WrongCell
    from trimlearn.checks.parts import Parts
    from trimlearn.tables.images import ImageTable

FORMAT = "trimlearn-check/1"  # the first of its kind
SHOWN = 2000  # suspects whose cells and neighbours are in the document: the page with them stays below 5 MB
PICTURES = 500  # suspects with a picture: some 3 kB each, as the page is to stay below 5 MB
CANDIDATES = 10_000  # rows among which neighbours are looked for: a limit on time; as near as makes no difference
LOOKED = 1000  # rows among which examples of values are looked for: a limit on time
EXAMPLES = 3  # of the values of a column: as many as fit into a cell of the page's table
FIRST = 20  # suspects in the short form: one screen


def document(
    parts: Parts,
    suspects: Sequence[Suspect],
    *,
    seed: int,
    decisions: dict[str, Any] | None,
    images: ImageTable | None = None,
) -> dict[str, Any]:
    """All that a check found, as JSON's own types; numbers are finite or None."""
    table, judged, names = parts.table, parts.target, Names(parts.table)
    found = count_findings(parts, suspects)
    written: dict[str, Any] = plain_values(
        {
            "format": FORMAT,
            "version": __version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": seed,
            "source": {
                "name": table.source,
                "rows": len(table.frame),
                "columns": len(table.columns),
                "fingerprint": table.fingerprint,
                "first_line": table.first_line,
            },
            "target": judged and {"name": judged.name, "task": judged.task, "classes": judged.classes},
            "headline": headline(parts, found),
            "next": next_steps(parts, found),
            "caveats": caveats(parts),
            "notes": table.notes,
            "columns": _columns(parts, suspects),
            "models": [] if judged is None else [vars(score) for score in judged.scores],
            "counts": found,
            "suspects": _suspects(parts, names, suspects),
            "charts": charts(
                table=table,
                cells=parts.cells,
                target=judged,
                rows=parts.rows,
                names=names.of_row,
                duplicates=parts.duplicates,
                **({} if judged is None else chart_inputs(judged, parts.cells.mended, seed)),
            ),
            "decisions": decisions,
        }
    )
    if images is not None:
        shown = written["suspects"][:PICTURES]
        for suspect, picture in zip(shown, images.thumbnails(s["row"] for s in shown), strict=True):
            suspect["image"] = picture or None
    return written


def abridged(results: dict[str, Any]) -> dict[str, Any]:
    """A document without its long parts: of the suspects the first few, and of these what fits on a line."""
    left = {key: value for key, value in results.items() if key not in ("suspects", "charts", "columns")}
    kept = ("row", "line", "id", "kind", "probability", "why")
    return left | {"suspects": [{key: suspect[key] for key in kept} for suspect in results["suspects"][:FIRST]]}


def plain_values(value: Any) -> Any:
    """The same with Python's own types, None for numbers that are not finite."""
    if type(value) in (str, int, bool, NoneType):
        return value
    if type(value) is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain_values(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):  # most hold the cells of a row, which are strings
        return list(value) if all(type(entry) is str for entry in value) else [plain_values(entry) for entry in value]
    return plain_values(value.tolist()) if isinstance(value, (np.ndarray, np.generic)) else value


def _columns(parts: Parts, suspects: Sequence[Suspect]) -> list[dict[str, Any]]:
    wrong = Counter(cell.column for suspect in suspects for cell in suspect.cells)
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "how": column.how,
            "missing": column.missing,
            "unreadable": len(column.unreadable),
            "wrong_cells": wrong[column.name],
            "typical_error": parts.cells.typical.get(column.name, ""),
            "examples": _examples(parts.table.written[column.name].iloc[:LOOKED]),
        }
        for column in parts.table.columns
    ]


def _examples(written: pd.Series) -> list[str]:
    """The first three different values, as written."""
    return [text for text in written.unique() if isinstance(text, str) and text][:EXAMPLES]


def _neighbours(parts: Parts, rows: list[int], target: str | None) -> dict[int, tuple[int, ...]]:
    """The rows that are most like each of these; of a long table, among some drawn at random."""
    mended = parts.cells.mended
    if not rows:
        return {}
    if len(mended) <= CANDIDATES:
        return nearest_rows(parts.features, mended, rows, k=3, target=target)
    drawn = np.random.default_rng(0).choice(len(mended), CANDIDATES, replace=False)
    among = np.union1d(drawn, rows)
    places = np.searchsorted(among, rows)
    near = nearest_rows(parts.features, mended.iloc[among].reset_index(drop=True), places, k=3, target=target)
    return {row: tuple(among[list(near[int(place)])].tolist()) for row, place in zip(rows, places, strict=True)}


def _suspects(parts: Parts, names: Names, suspects: Sequence[Suspect]) -> list[dict[str, Any]]:
    """Every suspect; of the first ones also all their cells and their neighbours."""
    shown, reasons = [suspect.row for suspect in suspects[:SHOWN]], Reasons(parts, names)
    near = _neighbours(parts, shown, None if parts.target is None else parts.target.name)
    needed = sorted({*shown, *(row for rows in near.values() for row in rows)})
    cells = parts.table.written.iloc[needed].to_numpy(dtype=object)
    texts = [[cell if isinstance(cell, str) else "" for cell in line] for line in cells]
    values = dict(zip(needed, texts, strict=True))
    return [
        {
            "row": suspect.row,
            "line": names.line(suspect.row),
            "id": names.id(suspect.row),
            "kind": suspect.kind,
            "kinds": suspect.kinds,
            "probability": suspect.probability,
            "score": suspect.score,
            "why": reasons.why(suspect),
            "target": _target(parts.target, names, suspect.row) if parts.target and suspect.target else None,
            "cells": [_cell(cell, names) for cell in suspect.cells],
            "odd": suspect.odd and {key: getattr(suspect.odd, key) for key in ("score", "probability", "columns")},
            "duplicates": [vars(group) for group in suspect.duplicates],
            "values": values.get(suspect.row),
            "neighbours": [
                {"row": row, "line": names.line(row), "values": values[row]} for row in near.get(suspect.row, ())
            ],
            "image": None,
        }
        for suspect in suspects
    ]


def _cell(cell: WrongCell, names: Names) -> dict[str, Any]:
    return {
        "column": cell.column,
        "value": names.written(cell.row, cell.column),
        "expected": names.expected(cell),
        "probability": cell.probability,
        "score": cell.score,
        "error": cell.error,
    }


def _target(judged: TargetFindings, names: Names, row: int) -> dict[str, Any]:
    return {
        "given": names.written(row, judged.name),
        "suggested": names.value(judged.suggested[row], judged.name),
        "probability": judged.probability[row],
        "linear": judged.by_linear[row],
        "boosting": judged.by_boosting[row],
    }
