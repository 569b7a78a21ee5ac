"""What a check says as a whole: the headline, what to do next, and what to doubt."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from trimlearn._utils.text import and_list, plural
from trimlearn.checks.errors import SWAPPED
from trimlearn.checks.names import Names, clip
from trimlearn.checks.suspects import Suspect
from trimlearn.checks.why import error_words

if TYPE_CHECKING:
    from trimlearn.checks.parts import Parts
    from trimlearn.tables.table import Table

MANY = 0.4  # wrong targets: near one half, which part is the wrong one cannot be told
FEW = 50  # rows below which models of several columns say little: five to ten for each coefficient is the usual rule
NAMED = 5  # columns that caveats name, the worst ones
# Rows that look wrong, the share of them, and of the table the share in which these stand: of ten rows anywhere, eight
# are so near to one another in 0.9 % of 20,000 simulated tables, of twenty in none.
SEVERAL, MOST, NEAR = 10, 0.8, 0.25
SAME = 3  # wrong cells of one column that make a rule worth a sentence


def count_findings(parts: Parts, suspects: Sequence[Suspect]) -> dict[str, int]:
    """How many of everything."""
    judged = parts.target
    listed = [suspect.row for suspect in suspects if suspect.target]
    targets = [] if judged is None else [row for row in listed if judged.flagged[row]]
    return {
        "suspects": len(suspects),
        "wrong_rows": sum(suspect.probability is not None and not suspect.doubtful for suspect in suspects),
        "targets": len(targets),
        "doubtful": len(listed) - len(targets),
        "cells": sum(len(suspect.cells) for suspect in suspects),
        "cell_rows": sum(bool(suspect.cells) for suspect in suspects),
        "odd_rows": sum(suspect.odd is not None for suspect in suspects),
        "duplicates": sum(bool(suspect.duplicates) for suspect in suspects),
        "contradictory": sum(any(g.kind == "contradictory" for g in suspect.duplicates) for suspect in suspects),
        "same_id": sum(suspect.kind == "same id" for suspect in suspects),
        "agreed": 0 if judged is None else sum(bool(judged.by_linear[i] and judged.by_boosting[i]) for i in targets),
    }


def headline(parts: Parts, found: dict[str, int]) -> list[str]:
    """One to three sentences: what looks wrong, and who says so."""
    wrong = [*_targets(parts, found), *_cells(found)]
    sentences = []
    if wrong:
        one = found["targets"] + found["cells"] == 1
        start = " and ".join(wrong)
        sentences.append(f"{start[0].upper()}{start[1:]} {'looks' if one else 'look'} wrong.")
    if found["odd_rows"]:
        sentences.append(f"{plural(found['odd_rows'], 'row is', 'rows are')} unlike all others as a whole.")
    if found["targets"]:
        sentences.append(f"Two models agree on {found['agreed']} of {found['targets']}.")
    if not sentences:
        rows = f"these {len(parts.table.frame):,} rows"
        unread = sum(len(column.unreadable) for column in parts.table.columns)
        but = f", but {plural(unread, 'cell')} could not be read" if unread else ""
        sentences.append(f"Nothing looks wrong in {rows}{but}.")
    return sentences + _twins(found)


def _twins(found: dict[str, int]) -> list[str]:
    against, namesakes = found["contradictory"], found["same_id"]
    copies = max(found["duplicates"] - against - namesakes, 0)
    sentences = []
    if copies:
        sentences.append(f"{plural(copies, 'row repeats another row', 'rows repeat other rows')}.")
    if against:
        sentences.append(f"{plural(against, 'row contradicts', 'rows contradict')} rows that are the same otherwise.")
    if namesakes:
        sentences.append(f"{plural(namesakes, 'row has', 'rows have')} the id of another row.")
    return sentences


def _targets(parts: Parts, found: dict[str, int]) -> list[str]:
    judged = parts.target
    if judged is None or not found["targets"]:
        return []
    n = found["targets"]
    known = max(int(parts.table.frame[judged.name].notna().sum()), 1)
    share = max(judged.contamination, 0.0)
    if round(100 * share) >= 1 and n >= SAME:
        return [f"about {share:.0%}".replace("%", " %") + f" of the values of {judged.name}"]
    return [f"{n} of {known:,} values of {judged.name}"]


def _cells(found: dict[str, int]) -> list[str]:
    n, rows = found["cells"], found["cell_rows"]
    return [f"{plural(n, 'cell')} in {plural(rows, 'row')}"] if n else []


def next_steps(parts: Parts, found: dict[str, int]) -> list[str]:
    """What to do with it."""
    if not found["suspects"]:
        if any(column.unreadable for column in parts.table.columns):
            return ["See what is written in the cells that could not be read. clean.csv holds all rows of the table."]
        return ["Nothing has to be done. clean.csv holds the same rows as the table."]
    if not found["wrong_rows"]:
        return ["See whether rows that repeat others were entered twice. No value looks wrong; clean.csv has all rows."]
    steps = ["Go through the suspects in the report, the most probable first: keep, drop, relabel or correct each."]
    steps += [*_rules(parts), *_one_place(parts)]
    steps.append(
        "Export your decisions there, and run the check again with --decisions decisions.csv: all is fitted anew."
    )
    what = ["wrong cells are empty in it"] if found["cells"] else []
    left_out = found["targets"] or found["odd_rows"]
    if left_out:
        what.insert(0, "rows that look wrong are left out")
    if what:
        steps.append(f"If you have no time for that, clean.csv is the table for what comes next: {', '.join(what)}.")
    return steps


def _rules(parts: Parts) -> list[str]:
    """A sentence for each column whose wrong cells follow one rule."""
    sentences = []
    for column, error in parts.cells.typical.items():
        same = sum(cell.column == column and cell.error == error for cell in parts.cells.cells)
        if error not in ("", SWAPPED) and same >= SAME:  # digits are swapped by chance, whoever writes them
            what = f"{same} cells of {column} have the same error ({error_words(error)})"
            sentences.append(f"{what}: look for where they come from.")
    return sentences


def _one_place(parts: Parts) -> list[str]:
    """A sentence where most rows that look wrong stand close together: columns moved by a line, a new instrument."""
    flagged = [] if parts.target is None else np.flatnonzero(parts.target.flagged).tolist()
    odd = [] if parts.rows is None else [row.row for row in parts.rows.odd]
    rows = np.unique([*flagged, *odd, *(cell.row for cell in parts.cells.cells)]).astype(int)
    most = ceil(MOST * len(rows))
    if len(rows) < SEVERAL:
        return []
    reach = rows[most - 1 :] - rows[: len(rows) - most + 1]
    first = int(np.argmin(reach))
    if reach[first] >= NEAR * len(parts.table.frame):
        return []
    place = Names(parts.table).place
    where = f"{place(int(rows[first]))} to {place(int(rows[first + most - 1]))}"
    return [f"{most} of the {len(rows)} rows that look wrong stand close together, {where}: what happened there?"]


def caveats(parts: Parts) -> list[str]:
    """What was assumed, and what is doubtful: everything that the parts said, and what only the whole shows."""
    judged, rows = parts.target, parts.rows
    n = len(parts.table.frame)
    said = []
    if n < FEW:
        said.append(f"There are only {n} rows: too few to be sure of any verdict. Take them as questions.")
    level = 0.0 if rows is None else rows.contamination  # of targets their own judge speaks
    if level > MANY:
        share = f"{level:.0%}".replace("%", " %")
        said.append(f"{share} of the rows seem wrong: near a half, nobody can tell which part is the right one.")
    said += [*parts.cells.caveats, *(judged.caveats if judged else ()), *(rows.caveats if rows else ()), *parts.warned]
    if judged is not None and (missing := int(parts.table.frame[judged.name].isna().sum())):
        said.append(f"{plural(missing, 'row has', 'rows have')} no {judged.name}: there was nothing to judge.")
    said += unreadable(parts.table)
    unused = [name for name in parts.table.of_kind("text") if judged is None or name != judged.name]
    if unused:
        names = and_list(unused[:NAMED], more=len(unused) - NAMED, what="columns")
        said.append(f"Free text and codes were not looked at: {names}.")
    return list(dict.fromkeys(said))


def unreadable(table: Table, among: Container[str] | None = None) -> list[str]:
    """Cells that hold something else than the others in their column, all or one ``among`` these: the user may know
    what was meant."""
    names = Names(table)
    said = []
    columns = sorted(table.columns, key=lambda column: -len(column.unreadable))
    asked = [column for column in columns if column.unreadable and (among is None or column.name in among)]
    for column in asked[:NAMED]:
        n, example = len(column.unreadable), clip(names.written(column.unreadable[0], column.name))
        cells = f"{plural(n, 'cell')} of {column.name} ({example!r})"
        said.append(f"{cells} could not be read as a {column.kind}: taken for missing.")
    return said
