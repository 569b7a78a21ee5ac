"""``trimlearn.check``: from a table to what is wrong with it, in one call."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, final

import numpy as np

from trimlearn._utils.files import replacing
from trimlearn.checks.decisions import apply, read_decisions
from trimlearn.checks.document import document
from trimlearn.checks.findings import Task
from trimlearn.checks.images import image_parts
from trimlearn.checks.moved import how_it_moved
from trimlearn.checks.options import check_target, check_task, names, no_more_options, of_option
from trimlearn.checks.parts import Parts, Pins, Progress, run_parts
from trimlearn.checks.suspects import Suspect, find_suspects
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.tables.images import read_images
from trimlearn.tables.read import read_table

if TYPE_CHECKING:
    from trimlearn.checks.model_file import Model
    from trimlearn.tables.table import Table

__all__ = ["Asked", "Check", "check"]


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
    progress = progress or (lambda sentence: None)
    progress("reading the table")
    target = None if target is None else str(target)
    told = {"categorical": names(categorical), "date": names(date), "number": names(number), "drop": names(drop)}
    path = table if isinstance(table, (str, Path)) else None
    asked = Asked(path, target, told, id, task, labels, features, decisions, seed)
    with of_option():
        images = None if labels is None else read_images(table, labels, features)
        read = _read(table, told, id) if images is None else images.table
    if images is not None:
        target = images.label
    check_target(read, target, id)
    decided = None if decisions is None else read_decisions(decisions, read, target)

    def run(table: Table, pins: Pins) -> Parts:
        if images is not None:
            return image_parts(images, table, task=task, pins=pins, seed=seed, progress=progress)
        return run_parts(table, target, task=task, pins=pins, seed=seed, progress=progress)

    parts = run(read, Pins())
    suspects = find_suspects(parts)
    moved = None
    if decided is not None:
        progress("fitting again with your decisions")
        classes = () if parts.target is None else parts.target.classes
        before, parts = parts, run(apply(decided, read, target, classes), decided.pins)
        was, suspects = len(suspects), find_suspects(parts, decided.settled)
        sentences = [decided.sentence(), *how_it_moved(before, parts, (was, len(suspects)))]
        moved = {"file": decided.file, "count": sum(decided.count.values()), "sentences": sentences}
    progress("writing it down")
    results = document(parts, suspects, seed=seed, decisions=moved, images=images)
    return Check(results, parts, suspects, asked, frozenset() if decided is None else decided.dropped)


def _read(table: Any, told: dict[str, tuple[str, ...]], id: str | None) -> Table:
    return read_table(
        table, categorical=told["categorical"], date=told["date"], number=told["number"], drop=told["drop"], id=id
    )


@final
@dataclass(frozen=True)
class Asked:
    """What a check was asked for, so that it can be asked for again."""

    path: str | Path | None
    target: str | None
    told: dict[str, tuple[str, ...]]  # of columns: categorical, date, number, drop
    id: str | None
    task: Task | None
    labels: str | Path | None
    features: str | Path | None
    decisions: str | Path | None
    seed: int

    def options(self) -> dict[str, Any]:
        """The keywords of `check`, without those that say nothing."""
        every = {"target": self.target, **self.told, "id": self.id, "task": self.task}
        told = {name: list(value) if isinstance(value, tuple) else value for name, value in every.items() if value}
        files = {"labels": self.labels, "features": self.features, "decisions": self.decisions}
        named = {name: str(Path(path).absolute()) for name, path in files.items() if path is not None}
        return told | named | {"seed": self.seed}


@final
class Check:
    """What `check` found.

    ``print(found.summary())`` says it in words, ``found.table`` lists the suspects, ``found.to_html("report.html")``
    writes the page, and ``found.write(folder)`` all files.

    Parameters
    ----------
    results : dict
        The document: everything that was found, as JSON's own types.
    parts : Parts
        What each part found.
    suspects : list of Suspect
        Rows with which something is the matter, most probable first.
    asked : object
        What was asked for.
    dropped : frozenset of int
        Rows that a person left out.

    Attributes
    ----------
    table : OutlierTable
        The suspects, most probable first.
    model : Model or None
        The trimmed linear model of the target, which predicts for other tables; None without a target.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import check
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> print(check(x).summary().splitlines()[0])
    Nothing looks wrong in these 100 rows.
    """

    def __init__(
        self,
        results: dict[str, Any],
        parts: Parts,
        suspects: list[Suspect],
        asked: Asked,
        dropped: frozenset[int] = frozenset(),
    ) -> None:
        self.results = results
        self.parts = parts
        self.suspects = suspects
        self.asked = asked
        self.dropped = dropped

    @cached_property
    def table(self) -> OutlierTable:
        """The suspects, most probable first."""
        entries = self.results["suspects"]
        columns: dict[str, Any] = {"row": np.array([entry["row"] for entry in entries], dtype=np.int64)}
        if any(entry["id"] for entry in entries):
            columns["id"] = np.array([entry["id"] or "" for entry in entries], dtype=object)
        columns["kind"] = np.array([entry["kind"] for entry in entries], dtype=object)
        for name in ("probability", "score"):
            columns[name] = np.array([entry[name] for entry in entries], dtype=np.float64)
        columns["why"] = np.array([entry["why"] for entry in entries], dtype=object)
        return OutlierTable(columns)

    @cached_property
    def model(self) -> Model | None:
        """The trimmed linear model of the target; None without a target."""
        from trimlearn.checks.model_file import model_of

        return model_of(self.parts)

    def summary(self) -> str:
        """The headline, the first suspects, what to do next and what to doubt, for a terminal."""
        from trimlearn.checks.summary import summary

        return summary(self.results)

    def to_html(self, path: str | Path | None = None) -> str | None:
        """The report, one HTML page that needs nothing else: into a file, or returned where no path is given.

        Parameters
        ----------
        path : path, optional
            The file to write; it is whole or not there.

        Returns
        -------
        str or None
            The page, where no path was given.

        Examples
        --------
        >>> import numpy as np
        >>> from trimlearn import check
        >>> page = check(np.random.default_rng(0).normal(size=(100, 2))).to_html()
        >>> page[:15]
        '<!doctype html>'
        """
        from trimlearn.report.page import page

        text = page(self.results)
        if path is None:
            return text
        with replacing(Path(path)) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return None

    def write(self, folder: str | Path) -> dict[str, Path]:
        """Write all files into a folder, all of them or none.

        Parameters
        ----------
        folder : path
            Made where it is not there. Files of an earlier check are replaced.

        Returns
        -------
        dict of str to Path
            The files by name: report.html, flagged.csv, clean.csv, results.json, repeat.py, and model.json where there
            is a target.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from trimlearn import check
        >>> found = check(np.random.default_rng(0).normal(size=(100, 2)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(found.write(folder))
        ['clean.csv', 'flagged.csv', 'repeat.py', 'report.html', 'results.json']
        """
        from trimlearn.checks.write import write

        return write(self, Path(folder))

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """The headline and the first suspects. The whole page would be megabytes in every notebook that shows it."""
        said = "".join(f"<p><b>{escape(sentence)}</b></p>" for sentence in self.results["headline"][:1])
        said += "".join(f"<p>{escape(sentence)}</p>" for sentence in self.results["headline"][1:])
        doubts = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.results["caveats"])
        doubts = f"<p>To bear in mind:</p><ul>{doubts}</ul>" if doubts else ""
        rows = self.table._repr_html_() if len(self.table) else ""
        return f'<div>{said}{rows}{doubts}<p>The whole report: <code>.to_html("report.html")</code></p></div>'
