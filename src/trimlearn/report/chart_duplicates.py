"""A chart of rows that are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trimlearn.report.chart_specs import RowNames, Spec, counted, table

if TYPE_CHECKING:
    from trimlearn.checks.findings import DuplicateRows

SHOWN = 15  # groups of rows: more belong into the list of suspects
ROLES = {"contradictory": "wrong", "near": "doubt", "exact": "fits"}  # worst first
NAMED = 3  # rows of a group that are named in full


def duplicate_bars(duplicates: Sequence[DuplicateRows], names: RowNames) -> Iterator[Spec]:
    """How many rows are the same, group by group."""
    if len(duplicates) < 2:  # one group is a sentence, not a chart
        return
    order = sorted(duplicates, key=lambda group: (list(ROLES).index(group.kind), -len(group.rows)))
    kinds = [kind for kind in ROLES if any(group.kind == kind for group in duplicates)]
    items = [
        {
            "name": _named(group, names),
            "counts": [len(group.rows) if group.kind == kind else 0 for kind in kinds],
            "note": f"differ in {', '.join(group.differs)}" if group.differs else "",
        }
        for group in order[:SHOWN]
    ]
    against = sum(group.kind == "contradictory" for group in duplicates)
    title = f"{counted(len(duplicates), 'group', start=True)} of rows repeat each other"
    more = f" The first {SHOWN} of {len(order):,} groups are drawn." if len(order) > SHOWN else ""
    yield {
        "type": "bars",
        "key": "duplicates",
        "title": f"{title}, {counted(against, 'of them', 'of them')} with contradictory targets" if against else title,
        "description": "Each bar is a group of rows that are the same, nearly so, or the same but for the target "
        f"(contradictory); its length is the number of rows.{more}",
        "groups": [{"role": ROLES[kind], "name": kind} for kind in kinds],
        "items": items,
        "table": table(["rows", *kinds, "note"],
                       [[i["name"], *i["counts"], i["note"] or "–"] for i in items], len(order)),
    }  # fmt: skip


def _named(group: DuplicateRows, names: RowNames) -> str:
    first = ", ".join(map(names, group.rows[:NAMED]))
    return f"{first} and {len(group.rows) - NAMED} more" if len(group.rows) > NAMED else first
