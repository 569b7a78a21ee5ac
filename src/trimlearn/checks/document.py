"""The document of a check: results.json, and what the page is drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from trimlearn._version import __version__
from trimlearn.checks.chart_inputs import chart_inputs
from trimlearn.checks.names import Names
from trimlearn.checks.neighbours import nearest_rows
from trimlearn.checks.suspects import Suspect
from trimlearn.checks.why import Reasons
from trimlearn.checks.words import caveats, counts, headline, next_steps
from trimlearn.report.charts import charts

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.checks.parts import Parts
    from trimlearn.tables.images import ImageTable

__all__ = ["FORMAT", "document", "finite", "short"]

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
    found = counts(parts, suspects)
    written: dict[str, Any] = finite(
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
            "target": None
            if judged is None
            else {"name": judged.name, "task": judged.task, "classes": list(judged.classes)},
            "headline": headline(parts, found),
            "next": next_steps(parts, found),
            "caveats": caveats(parts),
            "notes": list(table.notes),
            "columns": _columns(parts, suspects),
            "models": [] if judged is None else [vars(score).copy() for score in judged.scores],
            "counts": found,
            "suspects": _SuspectWriter(parts, names).all(suspects),
            "charts": charts(
                table=table,
                cells=parts.cells,
                target=judged,
                rows=parts.rows,
                names={row: names.of_row(row) for row in range(len(table.frame))},
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


def short(results: dict[str, Any]) -> dict[str, Any]:
    """A document without its long parts: of the suspects the first few, and of these what fits on a line."""
    left = {key: value for key, value in results.items() if key not in ("suspects", "charts", "columns")}
    kept = ("row", "line", "id", "kind", "probability", "why")
    return left | {"suspects": [{key: suspect[key] for key in kept} for suspect in results["suspects"][:FIRST]]}


def finite(value: Any) -> Any:
    """The same with Python's own types, None for numbers that are not finite."""
    if type(value) in (str, int, bool, NoneType):
        return value
    if type(value) is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):  # most hold the cells of a row, which are strings
        return list(value) if all(type(entry) is str for entry in value) else [finite(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not isfinite(value) else value


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


@final
class _SuspectWriter:
    """Writes suspects, each as a dict."""

    def __init__(self, parts: Parts, names: Names) -> None:
        self.parts = parts
        self.names = names
        self.reasons = Reasons(parts, names)

    def all(self, suspects: Sequence[Suspect]) -> list[dict[str, Any]]:
        """Every suspect; of the first ones also all their cells and their neighbours."""
        parts = self.parts
        shown = [suspect.row for suspect in suspects[:SHOWN]]
        target = None if parts.target is None else parts.target.name
        near = _neighbours(parts, shown, target)
        needed = sorted({*shown, *(row for rows in near.values() for row in rows)})
        cells = parts.table.written.iloc[needed].to_numpy(dtype=object)
        texts = [[cell if isinstance(cell, str) else "" for cell in line] for line in cells]
        values = dict(zip(needed, texts, strict=True))
        return [self._one(suspect, values.get(suspect.row), self._near(near.get(suspect.row, ()), values))
                for suspect in suspects]  # fmt: skip

    def _near(self, rows: Sequence[int], values: dict[int, list[str]]) -> list[dict[str, Any]]:
        return [{"row": row, "line": self.names.line(row), "values": values[row]} for row in rows]

    def _one(self, suspect: Suspect, values: list[str] | None, near: list[dict[str, Any]]) -> dict[str, Any]:
        row, odd = suspect.row, suspect.odd
        return {
            "row": row,
            "line": self.names.line(row),
            "id": self.names.id(row),
            "kind": suspect.kind,
            "kinds": list(suspect.kinds),
            "probability": suspect.probability,
            "score": suspect.score,
            "why": self.reasons.why(suspect),
            "target": self._target(row) if suspect.target else None,
            "cells": [
                {
                    "column": cell.column,
                    "value": self.names.written(row, cell.column),
                    "expected": self.names.expected(cell),
                    "probability": cell.probability,
                    "score": cell.score,
                    "error": cell.error,
                }
                for cell in suspect.cells
            ],
            "odd": None
            if odd is None
            else {"score": odd.score, "probability": odd.probability, "columns": list(odd.columns)},
            "duplicates": [
                {"rows": list(group.rows), "kind": group.kind, "differs": list(group.differs)}
                for group in suspect.duplicates
            ],
            "values": values,
            "neighbours": near,
            "image": None,
        }

    def _target(self, row: int) -> dict[str, Any] | None:
        judged = self.parts.target
        if judged is None:
            return None
        return {
            "given": self.names.written(row, judged.name),
            "suggested": self.names.value(judged.suggested[row], judged.name),
            "probability": float(judged.probability[row]),
            "linear": bool(judged.by_linear[row]),
            "boosting": bool(judged.by_boosting[row]),
        }
