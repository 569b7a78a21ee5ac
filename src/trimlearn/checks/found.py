"""What a check found: the table of suspects, the page, the files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from trimlearn._utils.files import replacing
from trimlearn.checks.parts import Parts
from trimlearn.checks.summary import summary
from trimlearn.checks.suspects import Suspect
from trimlearn.inference.outlier_table import OutlierTable

if TYPE_CHECKING:
    from trimlearn.checks.model import Model


@final
@dataclass(eq=False, repr=False)
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
    asked : dict of str to object
        The arguments of `check`, so that it can be asked for again; the table is None where it was in memory.
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

    results: dict[str, Any]
    parts: Parts
    suspects: list[Suspect]
    asked: dict[str, Any]
    dropped: frozenset[int] = frozenset()

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
        from trimlearn.checks.model import model_of_check

        return model_of_check(self.parts)

    def summary(self) -> str:
        """The headline, the first suspects, what to do next and what to doubt, for a terminal."""
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
        from trimlearn.report.page import make_page

        text = make_page(self.results)
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
