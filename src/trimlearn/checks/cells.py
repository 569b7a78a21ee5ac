"""Cells that are wrong: numbers and dates that do not fit to the others in their row, and categories spelt wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn._utils.text import and_list, plural
from trimlearn.checks.cell_odds import CellOdds, cell_odds
from trimlearn.checks.errors import BREAKS, EXCHANGED, MISSING, RULES, Writing, typical_errors
from trimlearn.checks.findings import CellFindings, WrongCell
from trimlearn.checks.missing_codes import CODES
from trimlearn.checks.names import Names
from trimlearn.checks.numbers import NumberColumns
from trimlearn.checks.spelling import misspelt
from trimlearn.checks.spread import center_and_spread
from trimlearn.checks.target_rules import BROKEN, CLOSE, COLUMNS, FAR, Rule, find_rule
from trimlearn.robust.cells.table import TableModel, why_left_out
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

WRONG = 0.5  # the probability from which on a cell is called wrong: as many are called so in vain as are missed
FEWEST = 10  # rows: of fewer, no cell can be told to be wrong
CODED = 0.1  # of the cells of a column: where more hold a code for missing values, that is how the table was made
SEVERAL, HALF = 4, 0.5  # numbers of a row, and which share of them: where more deviate, it is the row that does
MIXED = 1 / 3  # of the cells of a column: more are no errors of a few, and which part is right cannot be told
UNSURE = 0.8  # a probability that other steps of the model might have brought below one half
# A score beyond which cells are told that are not called wrong, as they are off by about the same: of 21 tables as they
# are (`python -m benchmarks.calibration cell_odds`), 6 hold such cells, 8 at 15 and 3 at 30, where two dates that were
# exchanged pass; of 36 made of clean cells with tails of up to t₂ in 100 to 10,000 rows, 1 does, 2 at 15.
FAR_OUT = 20.0
SMALL_GROUP = 0.02  # of the rows: larger groups are how the table is, smaller ones can be looked at (a choice)
NAMED = 5  # rows that a sentence names
CERTAIN = 0.99  # the probability that −999 among ages stands for missing: nobody knows better
FINITE = 1e100  # numbers beyond are as good as infinite: nothing is counted in them, and their squares overflow
LARGEST = 1e6  # of a score: what is further off, or infinite, is as far as that


def find_cells(table: Table, *, exclude: Sequence[str] = (), keep: Iterable[tuple[int, str]] = ()) -> CellFindings:
    """The wrong cells of a table, what was to be expected there, and by which error they came about.

    Parameters
    ----------
    table : Table
        What is judged: its numbers and dates by what the others in their row expect, its categories by their spelling.
    exclude : sequence of str, default=()
        Columns that are left alone and have no say: the target.
    keep : iterable of (int, str), default=()
        Cells (row, column) that are known to be right.

    Returns
    -------
    CellFindings
        The wrong cells, most probable first, and the table without them.

    See Also
    --------
    trimlearn.CellwiseOutliers : The model of the table, as an estimator.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column
    >>> rng = np.random.default_rng(0)
    >>> size = rng.lognormal(sigma=0.5, size=(200, 1))
    >>> frame = pd.DataFrame((100 * size * rng.lognormal(sigma=0.1, size=(200, 3))).round(1), columns=["a", "b", "c"])
    >>> right = frame.loc[7, "b"]
    >>> frame.loc[7, "b"] *= 10
    >>> table = Table(frame, frame.astype(str), tuple(Column(c, "number") for c in frame), "made up", 0, "")
    >>> [(c.row, c.column, c.error, bool(c.expected == right)) for c in find_cells(table).cells]
    [(7, 'b', '10 times too large', True)]
    """
    numbers, kept = NumberColumns.of(table, exclude), {(int(row), column) for row, column in keep}
    caveats: list[str] = []
    cells = _coded(numbers, caveats) + _infinite(numbers)
    if not len(numbers.names):
        pass
    elif len(table.frame) < FEWEST:
        caveats.append(f"{len(table.frame)} rows are too few to tell which numbers are wrong.")
    else:
        cells += _deviating(numbers, kept, caveats, Names(table).place)
    rules = _rules(numbers)
    cells = _by_rules(rules, numbers, cells)
    cells += misspelt(table, exclude)
    cells = [cell for cell in cells if (cell.row, cell.column) not in kept]
    cells.sort(key=lambda cell: (-cell.probability, -abs(cell.score), cell.row, cell.column))
    mended = _mended(table, numbers, cells, kept)
    return CellFindings(tuple(cells), mended, typical_errors(cells), tuple(caveats), tuple(rules))


def _coded(numbers: NumberColumns, caveats: list[str]) -> list[WrongCell]:
    """The cells that hold a code for missing values; a caveat instead where a column has many."""
    found = []
    for j, name in enumerate(numbers.names):
        codes = [code for code in numbers.codes if code.column == j]
        if not codes:
            continue
        x = numbers.X[:, j]
        if len(codes) > CODED * (np.isfinite(x).sum() + len(codes)):
            values = sorted({numbers.shown(j, code.value) for code in codes}, key=str)
            listed = " and ".join(value if isinstance(value, str) else f"{value:g}" for value in values)
            caveats.append(f'{len(codes)} cells of "{name}" hold {listed}, which was taken for a missing value.')
            continue
        center, sigma = center_and_spread(x)
        expected = numbers.shown(j, _rounded(center, Writing.of(x[np.isfinite(x)])))
        for code in codes:
            score = float(np.clip((code.value - center) / sigma, -LARGEST, LARGEST))
            found.append(WrongCell(code.row, name, numbers.shown(j, code.value), expected, score, CERTAIN, MISSING))
    return found


def _infinite(numbers: NumberColumns) -> list[WrongCell]:
    """Cells that nobody can mean."""
    found = []
    endless = np.abs(numbers.X) > FINITE
    endless[:, endless.sum(axis=0) > MIXED * len(endless)] = False  # such numbers are ordinary there
    for i, j in np.argwhere(endless).tolist():
        value = float(numbers.X[i, j])
        expected = center_and_spread(numbers.X[:, j])[0]
        found.append(WrongCell(i, numbers.names[j], value, expected, float(np.sign(value)) * LARGEST, 1.0))
    return found


def _deviating(
    numbers: NumberColumns, kept: set[tuple[int, str]], caveats: list[str], place: Callable[[int], str]
) -> list[WrongCell]:
    """The cells that do not fit to the others in their row."""
    finite = np.where(np.abs(numbers.X) <= FINITE, numbers.X, np.nan)
    used = [j for j in range(len(numbers.names)) if not why_left_out(finite[:, j])]
    if not used:
        return []
    X = finite[:, used]
    model = TableModel.fit(X)
    if len(X) > model.rows:
        caveats.append(f"How numbers hang together was learnt from {model.rows:,} rows; all were judged by that.")
    cells = model.judge(X)
    writings = [Writing.of(x[np.isfinite(x)], bool(numbers.dates[j])) for x, j in zip(X.T, used, strict=True)]
    odds, names = cell_odds(model, X, cells, writings).beyond(WRONG), [numbers.names[j] for j in used]
    told = set(odds.row.tolist())
    odds = _without_columns(_without_rows(odds, X, caveats), X, names, caveats)
    for name, scores in zip(names, cells.scores.T, strict=True):
        far = [i for i in np.flatnonzero(np.abs(scores) > FAR_OUT).tolist() if i not in told and (i, name) not in kept]
        if 0 < len(far) <= SMALL_GROUP * len(X):
            where = and_list([place(i) for i in far[:NAMED]], more=len(far) - NAMED, what="rows")
            caveats.append(
                f"{name} is far from what the rest of the row suggests in {where}: it is not called wrong, as these "
                "may be a group of their own, but look at it."
            )
            told |= set(far)
    found = []
    for k, (i, j) in enumerate(zip(odds.row.tolist(), odds.column.tolist(), strict=True)):
        error, expected = _explained(odds, k, X, float(cells.expected[i, j]), writings[j])
        if error == EXCHANGED:
            error = f"in the place of {names[odds.partner[k]]}"
        score = float(np.clip(cells.scores[i, j], -LARGEST, LARGEST))
        value, instead = (numbers.shown(used[j], x) for x in (float(X[i, j]), expected))
        found.append(WrongCell(i, names[j], value, instead, score, float(odds.probability[k]), error))
    if not model.settled and any(cell.probability < UNSURE for cell in found):
        caveats.append("Which numbers are wrong had not quite settled: doubt those of a probability near 0.5.")
    return found


def _rules(numbers: NumberColumns) -> dict[str, Rule]:
    """The columns that follow from others, a sum or a product, and how.

    A rule may be read in several ways: the column that stands last is taken for the one that was reckoned.
    """
    columns = {name: numbers.X[:, j] for j, name in enumerate(numbers.names) if not numbers.dates[j]}
    found = {}
    for name in list(columns)[: -COLUMNS - 1 : -1]:
        x = columns.pop(name)
        rule = find_rule(x, columns) if columns else None
        if rule is None:
            columns[name] = x
        else:
            found[name] = rule
    return found


def _by_rules(rules: dict[str, Rule], numbers: NumberColumns, cells: Sequence[WrongCell]) -> list[WrongCell]:
    """The cells without those that follow a rule exactly, and with those that break one which nearly all rows keep, in
    rows where nothing else is wrong."""
    found = [cell for cell in cells if cell.column not in rules or not rules[cell.column].holds[cell.row]]
    told = {cell.row for cell in found}
    for name, rule in rules.items():
        x = numbers.X[:, numbers.names.index(name)]
        writing = Writing.of(x[np.isfinite(x)])
        broken = rule.accuses & rule.broken & (np.abs(x - rule.value) > CLOSE * (writing.step or 0.0))
        for i in sorted(set(np.flatnonzero(broken).tolist()) - told):
            value, expected = float(x[i]), _rounded(float(rule.value[i]), writing)
            score = float(np.copysign(FAR, value - expected))
            found.append(WrongCell(i, name, value, expected, score, BROKEN, f"{BREAKS}{rule.words}"))
            told.add(i)
    return found


def _without_columns(odds: CellOdds, X: Floats, names: Sequence[str], caveats: list[str]) -> CellOdds:
    """The wrong cells of columns that are right otherwise: where many deviate, the column holds groups or units."""
    known = np.isfinite(X).sum(axis=0)
    wrong = np.bincount(odds.column, minlength=X.shape[1])
    groups = wrong > MIXED * known
    for j in np.flatnonzero(groups).tolist():
        caveats.append(
            f"{wrong[j]:,} of {known[j]:,} numbers of {names[j]} do not fit to their rows: it may hold several groups "
            "or units, so that they are not listed one by one."
        )
    return odds.among(~groups[odds.column])


def _without_rows(odds: CellOdds, X: Floats, caveats: list[str]) -> CellOdds:
    """The wrong cells of rows that are right otherwise: where most cells deviate, it is the row that does."""
    known = np.isfinite(X).sum(axis=1)
    wrong = np.bincount(odds.row, minlength=len(X))
    whole = (known >= SEVERAL) & (wrong > HALF * known)
    count = np.count_nonzero(whole)
    if count:
        told = plural(count, "row deviates in most of its", "rows deviate in most of their")
        caveats.append(f"{told} numbers, which are not listed one by one.")
    return odds.among(~whole[odds.row])


def _explained(odds: CellOdds, k: int, X: Floats, expected: float, writing: Writing) -> tuple[str, float]:
    """The error that explains a cell, "" for none, and what was to be expected there."""
    rule = int(odds.rule[k])
    if rule >= 0:
        return RULES[rule], _rounded(float(odds.truth[k]), writing, strict=False)
    value = X[odds.row[k], odds.column[k]]
    coded = value in CODES and not writing.date and np.count_nonzero(X[:, odds.column[k]] == value) > 1
    return MISSING if coded else "", _rounded(expected, writing)


def _rounded(x: float, writing: Writing, strict: bool = True) -> float:
    """With as many decimals as the others have; not ``strict``: a few more, so that 10 × 0.1 is 1."""
    if writing.decimals is None:
        return float(f"{x:.12g}") if not strict else x
    return float(round(x, writing.decimals + (0 if strict else 3)))


def _mended(
    table: Table, numbers: NumberColumns, cells: Sequence[WrongCell], kept: set[tuple[int, str]]
) -> pd.DataFrame:
    """The table's values without the wrong ones; categories are spelt as usual."""
    mended = table.frame.copy()
    rows: dict[str, list[int]] = {}
    missing = {str(name) for name in mended.columns if mended[name].dtype.kind in "fM"}
    for cell in cells:
        if cell.column in missing:
            rows.setdefault(cell.column, []).append(cell.row)
        else:
            mended.loc[mended.index[cell.row], cell.column] = cell.expected
    for code in numbers.codes:
        if (code.row, numbers.names[code.column]) not in kept:
            rows.setdefault(numbers.names[code.column], []).append(code.row)
    for name, wrong in rows.items():
        mended.loc[mended.index[wrong], name] = None
    return mended
