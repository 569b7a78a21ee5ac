"""The charts of the report, as plain data that charts.js draws in the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trimlearn._utils.arrays import Floats
from trimlearn.report.chart_cells import cell_map, column_bars
from trimlearn.report.chart_duplicates import duplicate_bars
from trimlearn.report.chart_models import coefficients, convergence, who_leaves
from trimlearn.report.chart_predictions import calibration, noise_matrix
from trimlearn.report.chart_rows import row_charts
from trimlearn.report.chart_specs import RowNames, Spec
from trimlearn.report.chart_target import JudgedTarget, outlier_map, probabilities, sorted_scores

if TYPE_CHECKING:
    from trimlearn.checks.findings import CellFindings, DuplicateRows, RowFindings, TargetFindings
    from trimlearn.tables.table import Table


def charts(
    *,
    table: Table,
    cells: CellFindings,
    target: TargetFindings | None,
    rows: RowFindings | None,
    names: RowNames,
    duplicates: Sequence[DuplicateRows] = (),
    path: Any = None,
    distances: Floats | None = None,
    distance_limit: float | None = None,
    predicted: Floats | None = None,
) -> list[Spec]:
    """The charts that a check allows, in the order in which they tell the story.

    A chart that does not apply (no wrong cell, no distances, a fit without history) is left out. Where an argument is
    not given, the entry of the same name in ``target.fits`` is taken, if there is one.

    Parameters
    ----------
    table : Table
        The table that was checked.
    cells : CellFindings
        Its wrong cells.
    target : TargetFindings or None
        What was found in the target, if there is one.
    rows : RowFindings or None
        What was found in rows as a whole.
    names : callable
        What a row is called.
    duplicates : sequence of DuplicateRows
        Rows that are the same.
    path : TrimPath, optional
        What `trimlearn.trim_path` found for the linear model: who leaves when.
    distances : ndarray of float, optional
        The robust distance of each row's predictors, NaN where it has none; by default the scores of ``rows``.
    distance_limit : float, optional
        Beyond it a row is far from the others; by default the threshold of ``rows``.
    predicted : ndarray of float, optional
        Cross-validated predictions, one line per row of the table: numbers, or a probability for each class. By default
        the suggested values, where they are numbers.

    Returns
    -------
    list of dict
        JSON values. Each has "type", "key" (what it shows, in one word), "title" (the finding, as a sentence),
        "description", "table" (its numbers), and what its type needs.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.checks.findings import CellFindings, WrongCell
    >>> from trimlearn.tables.table import Column, Table
    >>> frame = pd.DataFrame({"price": [1.0, 2.0, 300.0]})
    >>> table = Table(frame, frame.astype(str), (Column("price", "number"),), "cars.csv", 2, "f00")
    >>> wrong = WrongCell(2, "price", 300.0, 3.0, 9.0, 0.98, "100 times too large")
    >>> cells = CellFindings((wrong,), frame, {"price": "100 times too large"})
    >>> for chart in charts(table=table, cells=cells, target=None, rows=None, names="row {}".format):
    ...     print(chart["type"], "-", chart["title"])
    matrix - One cell in one row does not fit the rest of the row
    bars - The one wrong cell is in price
    """
    fits = {} if target is None else target.fits
    extra = {"path": path, "distances": distances, "distance_limit": distance_limit, "predicted": predicted}
    known = {name: fits.get(name) if given is None else given for name, given in extra.items()}
    return [
        *([] if target is None else _of_target(table, target, rows, names, known)),
        *cell_map(table, cells, names),
        *column_bars(table, cells),
        *([] if rows is None else row_charts(rows, names)),
        *duplicate_bars(duplicates, names),
    ]


def _of_target(
    table: Table, target: TargetFindings, rows: RowFindings | None, names: RowNames, known: Mapping[str, Any]
) -> Iterator[Spec]:
    judged = JudgedTarget.of(table, target, names)
    far, limit = known["distances"], known["distance_limit"]
    if far is None and rows is not None:
        far, limit = rows.scores, rows.threshold
    yield from outlier_map(judged, far, limit)
    yield from sorted_scores(judged)
    yield from probabilities(judged)
    yield from calibration(judged, known["predicted"])
    yield from noise_matrix(target)
    yield from coefficients(target, [column.name for column in table.columns])
    yield from who_leaves(judged, known["path"])
    yield from convergence(target)
