"""``trimlearn.check``: from a table to what is wrong with it, in one call."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Never

from trimlearn.checks.decisions import apply, how_it_moved, read_decisions
from trimlearn.checks.document import document
from trimlearn.checks.findings import Task
from trimlearn.checks.found import Check
from trimlearn.checks.options import check_seed, check_target_column, check_task, names, no_more_options, of_option
from trimlearn.checks.parts import Pins, Progress, run_parts
from trimlearn.checks.suspects import find_suspects
from trimlearn.tables.images import read_images
from trimlearn.tables.read import read_table


def check(
    table: Any,
    target: str | None = None,
    *,
    categorical: str | Sequence[str] = (),
    date: str | Sequence[str] = (),
    number: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    id: str | None = None,
    task: Task | None = None,
    labels: str | Path | None = None,
    features: str | Path | None = None,
    decisions: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **unknown: Never,
) -> Check:
    """Find what is wrong with a table: cells, targets, rows and duplicates.

    Cells come first, so that wild ones do not wreck the judgement of the target. This is judged by a trimmed linear
    model and by trimmed boosting. Without a target, rows are judged as a whole.

    Parameters
    ----------
    table : path, DataFrame or array of shape (n, p)
        A file (CSV, TSV, Parquet, Excel, npz), or a table in memory; or a folder of images, with ``labels``.
    target : str, optional
        The column to predict. None: there is none.
    categorical, date, number : str or sequence of str, default=()
        Columns that are of this kind, whatever they look like.
    drop : str or sequence of str, default=()
        Columns that are not used.
    id : str, optional
        The column that names the rows.
    task : {"regression", "count", "classification"}, optional
        What the target is. None: it is seen from its values.
    labels : path, optional
        For a folder of images: the table of their labels, which are judged by the pixels.
    features : path, optional
        For images: an .npy with a row of numbers for each row of ``labels``, to judge by instead of pixels.
    decisions : path, optional
        The file of decisions that the report exports. They are put into the table, and all is fitted again.
    seed : int, default=0
        Of all that is random.
    progress : callable, optional
        It is called with a sentence whenever something new begins.
    **unknown : Never
        No other option is taken; a word that is none of these is refused, and the nearest one named.

    Returns
    -------
    Check
        What was found.

    Raises
    ------
    ValueError
        Where the table cannot be read, or its target not be judged; one line says why.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from trimlearn import check
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x.sum(axis=1) + 0.1 * rng.normal(size=200)})
    >>> table.loc[7, "y"] = 30
    >>> found = check(table, target="y")
    >>> found.table[0]["row"], found.table[0]["kind"]
    (7, 'wrong number')
    """
    known = [name for name in inspect.signature(check).parameters if name != "unknown"]
    no_more_options(unknown, known)
    check_task(task)
    check_seed(seed)
    progress = progress or (lambda sentence: None)
    progress("reading the table")
    target = None if target is None else str(target)
    told: dict[str, Any] = {"categorical": categorical, "date": date, "number": number, "drop": drop}
    told = {kind: names(columns) for kind, columns in told.items()}
    asked = {"table": table if isinstance(table, (str, Path)) else None, "target": target, **told, "id": id}
    asked |= {"task": task, "labels": labels, "features": features, "decisions": decisions, "seed": seed}
    with of_option():
        images = None if labels is None else read_images(table, labels, features)
        read = read_table(table, id=id, **told) if images is None else images.table
    if images is not None:
        target = images.label
    check_target_column(read, target, id)
    decided = None if decisions is None else read_decisions(decisions, read, target)

    run = partial(run_parts, target=target, images=images, task=task, seed=seed, progress=progress)
    parts = run(read, pins=Pins())
    suspects = find_suspects(parts)
    moved = None
    if decided is not None:
        progress("fitting again with your decisions")
        classes = () if parts.target is None else parts.target.classes
        before, parts = parts, run(apply(decided, read, target, classes), pins=decided.pins)
        was, suspects = len(suspects), find_suspects(parts, decided.settled)
        sentences = [decided.sentence(), *how_it_moved(before, parts, (was, len(suspects)))]
        moved = {"file": decided.file, "count": sum(decided.count.values()), "sentences": sentences}
    progress("writing it down")
    results = document(parts, suspects, seed=seed, decisions=moved, images=images)
    return Check(results, parts, suspects, asked, frozenset() if decided is None else decided.dropped)
