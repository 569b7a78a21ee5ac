"""What a person decided about suspects: read from the file that the page exports, put into the table, and what the
fit makes of it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

from trimlearn._utils.text import plural
from trimlearn.checks.findings import TargetFindings
from trimlearn.checks.options import OptionError, one_of
from trimlearn.checks.parts import Parts, Pins

if TYPE_CHECKING:
    from trimlearn.tables.table import Kind, Table

What = Literal["keep", "drop", "relabel", "correct"]
HEADER = ["fingerprint", "row", "what", "column", "value"]
DONE = {"keep": "kept", "drop": "dropped", "relabel": "relabelled", "correct": "corrected"}


@final
@dataclass(frozen=True)
class Decisions:
    """What was decided: rows and cells that are settled, and cells with other contents."""

    file: str
    pins: Pins
    written: Mapping[tuple[int, str], str]  # (row, column) → what is to stand there
    count: Mapping[str, int]  # what → how many
    settled: frozenset[int]  # rows that are no longer suspect, because a person kept or dropped them as a whole

    @property
    def dropped(self) -> frozenset[int]:
        """Rows that a person left out."""
        return frozenset(row for row, wrong in self.pins.rows.items() if wrong)

    def sentence(self) -> str:
        """What was decided, counted."""
        parts = [f"{self.count[what]} {words}" for what, words in DONE.items() if self.count.get(what)]
        if n := self.count.get("correct"):
            parts[-1] += " cell" if n == 1 else " cells"
        return f"You decided: {', '.join(parts)}." if parts else f"{self.file} holds no decisions."


def read_decisions(path: str | Path, table: Table, target: str | None) -> Decisions:
    """The decisions in a file; OptionError where it is none, or not for this table."""
    path = Path(path)
    lines = _lines(path)
    rows: dict[int, bool] = {}
    cells: set[tuple[int, str]] = set()
    written: dict[tuple[int, str], str] = {}
    count: Counter[str] = Counter()
    for number, line in lines:
        where = f"{path.name}, line {number}"
        row, what, column, value = _decision(line, where, table, target)
        count[what] += 1
        if what in ("keep", "drop") and not column:
            if rows.setdefault(row, what == "drop") is not (what == "drop"):
                raise OptionError(f"{where}: row {row} is kept and dropped, of which one must be meant.")
            continue
        cells.add((row, column))
        if what in ("relabel", "correct") and written.setdefault((row, column), value) != value:
            raise OptionError(f"{where}: row {row} gets two values for {column}, of which one must be meant.")
    settled = frozenset(rows)
    cells |= {(row, str(name)) for row, wrong in rows.items() if not wrong for name in table.frame.columns}
    for row in {row for row, column in written if column == target}:
        rows.setdefault(row, False)  # a person gave this label: the models may doubt it no more
    return Decisions(path.name, Pins(rows, frozenset(cells)), written, count, settled)


def _lines(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The numbered lines of the file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            mark = next((mark for mark in ",;\t" if mark in first), ",")  # a spreadsheet may have saved it again
            reader = csv.reader(file, delimiter=mark)
            header = next(reader, [])
            lines = [(reader.line_num, line) for line in reader if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise OptionError(f"{path} is no file of decisions: it cannot be read as a CSV in UTF-8.") from error
    if [name.strip().lower() for name in header] != HEADER:
        raise OptionError(f"{path} is no file of decisions: its first line must be {','.join(HEADER)}.")
    for number, line in lines:
        if len(line) != len(HEADER):
            raise OptionError(f"{path.name}, line {number}: {len(HEADER)} values are needed, there are {len(line)}.")
    return [(number, dict(zip(HEADER, line, strict=True))) for number, line in lines]


def _decision(line: dict[str, str], where: str, table: Table, target: str | None) -> tuple[int, What, str, str]:
    """One line, looked at from all sides."""
    if line["fingerprint"] != table.fingerprint:
        raise OptionError(f"{where}: this decision is about another table, or {table.source} has changed since.")
    if not line["row"].isdecimal() or int(line["row"]) >= len(table.frame):
        raise OptionError(f"{where}: row must be a number from 0 to {len(table.frame) - 1}, got {line['row']!r}.")
    row, column, value = int(line["row"]), line["column"], _plain(line["value"])
    if column not in table.frame.columns:
        column = _plain(column)
    what = line["what"]
    if what not in DONE:
        raise OptionError(f"{where}: what must be keep, drop, relabel or correct, got {what!r}.")
    if what == "relabel":
        column = column or target or ""
        if target is None or column != target:
            raise OptionError(f"{where}: a relabelled row needs a target; name its column with target.")
    if what == "correct" and not column:
        raise OptionError(f"{where}: which column is to be corrected?")
    if column and column not in table.frame.columns:
        raise OptionError(f"{where}: {table.source} has no column {column!r}; {one_of(table.frame.columns, column)}")
    if what == "relabel" and not value:
        raise OptionError(f"{where}: a relabelled row needs a label.")
    return row, what, column, value  # type: ignore[return-value]


def _plain(value: str) -> str:
    """A value without the sign that keeps a spreadsheet from taking it for a formula."""
    return value[1:] if re.match(r"'+[=+\-@\t\r]", value) else value


def apply(decisions: Decisions, table: Table, target: str | None, labels: tuple[str, ...] = ()) -> Table:
    """The table with what was decided in its cells. ``labels``: those that a target of classes may have."""
    if not decisions.written:
        return table
    frame, written = table.frame.copy(), table.written.copy()
    kinds: dict[str, Kind] = {column.name: column.kind for column in table.columns}
    for name in dict.fromkeys(column for _, column in decisions.written):
        rows = [row for row, column in decisions.written if column == name]
        texts = [decisions.written[row, name] for row in rows]
        at = written.columns.get_loc(name)
        written.iloc[rows, at] = texts
        values = _values(written[name], rows, kinds[name], frame[name])
        for row, text, value in zip(rows, texts, values, strict=True):
            if text and value is None:
                raise OptionError(
                    f"{decisions.file}: {text!r}, for row {row}, cannot be read as a {kinds[name]}, as {name} holds."
                )
            if name == target and labels and value not in labels:
                raise OptionError(f"{decisions.file}: {target} has no label {text!r}; {one_of(labels, text)}")
            frame.iloc[row, at] = value
    return replace(table, frame=frame, written=written)


def _values(column: Any, rows: list[int], kind: Kind, known: Any) -> list[Any]:
    """What the cells of a column mean, read as the table's own are; None for a cell that means nothing.

    Other columns may have told whether "1,234" is a thousand, or whether days come first: of all ways to read the
    column, the first is taken that leaves most of the ``known`` values of the other rows as they are.
    """
    import pandas as pd

    from trimlearn.tables.cells import Cells
    from trimlearn.tables.kinds import read_column
    from trimlearn.tables.table import arrow

    if kind not in ("number", "date"):
        return [text or None for text in column.iloc[rows]]
    cells = Cells(arrow().array(column.tolist(), arrow().large_string()))
    ways: list[dict[str, Any]] = [{"decimal": sign} for sign in (None, "point", "comma")]
    if kind == "date":
        ways = [{"day_first": first} for first in (None, True, False)]
    read = [pd.Series(read_column(cells, str(column.name), kind, **way).values) for way in ways]
    others = known.drop(index=known.index[rows])
    same = [int((values.drop(index=rows).to_numpy() == others.to_numpy()).sum()) for values in read]
    return [None if pd.isna(value) else value for value in read[same.index(max(same))].iloc[rows]]


def how_it_moved(before: Parts, after: Parts, flagged: tuple[int, int]) -> list[str]:
    """Sentences on what changed. ``flagged``: the suspects before and after."""
    was, now = flagged
    sentences = [
        f"Before your decisions {plural(was, 'row was', 'rows were')} suspect; now {plural(now, 'is', 'are')}."
    ]
    if before.target is not None and after.target is not None:
        sentences += _errors(before.target, after.target)
        sentences += _coefficients(before.target, after.target)
    return sentences


def _errors(before: TargetFindings, after: TargetFindings) -> list[str]:
    """One sentence for each trimmed model."""
    was = {(score.model, score.measure): score.value for score in before.scores if score.fit == "trimmed"}
    sentences = []
    for score in after.scores:
        old = was.get((score.model, score.measure))
        if score.fit == "trimmed" and old is not None and isfinite(old) and isfinite(score.value):
            was_, is_ = f"{old:.3g}", f"{score.value:.3g}"
            how = f"stayed at {is_}" if was_ == is_ else f"went from {was_} to {is_}"
            sentences.append(f"The {score.measure} of the {score.model} model {how}.")
    return sentences


def _coefficients(before: TargetFindings, after: TargetFindings) -> list[str]:
    """The coefficient that moved most, in units of the width of its interval where that is known."""
    was = {entry["name"]: entry["trimmed"] for entry in before.coefficients}
    moved = []
    for entry in after.coefficients:
        old, new = was.get(entry["name"]), entry["trimmed"]
        if old is None or new is None or not (isfinite(old) and isfinite(new)):
            continue
        moved.append((abs(new - old) / (_width(entry) or abs(old) or 1.0), entry["name"], old, new))
    if not moved:
        return []
    size, name, old, new = max(moved)
    if size == 0 or f"{old:.3g}" == f"{new:.3g}":
        return ["The coefficients of the linear model stayed as they were."]
    return [f"The coefficient that moved most is that of {name}: from {old:.3g} to {new:.3g}."]


def _width(entry: dict[str, Any]) -> float:
    """Of the interval of a coefficient; 0 where it has none."""
    low, high = entry.get("low"), entry.get("high")
    return 0.0 if low is None or high is None or not isfinite(high - low) else float(high - low)
