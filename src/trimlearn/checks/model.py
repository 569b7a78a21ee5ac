"""The model of a target: a linear one, fitted to rows that look right, which predicts for other tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Floats
from trimlearn._utils.text import and_list
from trimlearn._utils.warn import warn
from trimlearn._version import __version__
from trimlearn.checks.design import Design
from trimlearn.checks.document import plain_values
from trimlearn.checks.findings import Task
from trimlearn.checks.words import unreadable

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.checks.parts import Parts
    from trimlearn.tables.table import Table

Link = Literal["identity", "log", "logit"]

FORMAT = "trimlearn-model"
LARGEST = 700.0  # whose exponential is still a number in double precision
INTERVAL = ("name", "trimmed", "low", "high")
NUMBER = 1  # the first format of its kind; a file of a later one is refused
# Times as far from the middle as all that the model has seen: beyond, a number is told. Of 1,000 more rows of the law
# of the 300 that it has seen, normal, exponential or t₃, at most 0.4 are in the mean of 400 simulations.
BEYOND = 2.0
MOST = 1000  # values of a column that are kept; of more, new ones are nothing special
NAMED = 3  # values that a sentence lists


@final
@dataclass(frozen=True)
class Model:
    """A linear model of a column, fitted to rows that look right; what `load` gives.

    Parameters
    ----------
    target : str
        The column that it predicts.
    task : {"regression", "count", "classification"}
        What this column holds.
    classes : tuple of str
        Of labels; () for numbers.
    kinds : mapping of str to str
        The columns that it needs, and which kind each is of.
    design : Design
        How their cells become numbers.
    link : {"identity", "log", "logit"}
        What is linear in these: the value, its logarithm, or the log-odds of the classes.
    intercept : ndarray of shape (k,)
        One for numbers and two classes, else one a class.
    coefficients : ndarray of shape (k, p)
        Likewise, for each feature of the design.
    intervals : tuple of dict
        For each coefficient its name, its value and its interval of 95 %, as far as known.
    seen : mapping of str to tuple of str
        The values of each column of words that the model has seen.
    """

    target: str
    task: Task
    classes: tuple[str, ...]
    kinds: Mapping[str, str]
    design: Design
    link: Link
    intercept: Floats
    coefficients: Floats
    intervals: tuple[dict[str, Any], ...] = ()
    seen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def predict(self, table: Any) -> NDArray[Any]:
        """What the target should be in the rows of another table.

        Parameters
        ----------
        table : path, DataFrame or array
            It has the columns of the table that the model was fitted to; others do not matter. Values of a category
            that the model has not seen count as rare ones, missing numbers as medians. A warning tells such values, and
            numbers and dates far from all that it has seen.

        Returns
        -------
        ndarray of shape (n,)
            Labels or numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from trimlearn.checks.design import Design, Feature
        >>> design = Design((Feature("x", "number", fill=0.0),))
        >>> model = Model("y", "regression", (), {"x": "number"}, design, "identity", np.ones(1), np.full((1, 1), 2.0))
        >>> model.predict(pd.DataFrame({"x": [1.0, 2.5]}))
        array([3., 6.])
        """
        return self.predict_table(self.read(table))

    def read(self, table: Any) -> Table:
        """A table, its columns read as those of the model's own table were."""
        from trimlearn.tables.read import read_table

        number, date = ([name for name, kind in self.kinds.items() if kind == wanted] for wanted in ("number", "date"))
        categorical = [name for name in self.kinds if name not in (*number, *date)]
        try:
            return read_table(table, number=number, date=date, categorical=categorical, least_rows=1)
        except ValueError:
            there = read_table(table, least_rows=1)
            lacking = [name for name in self.kinds if name not in there.frame.columns]
            if not lacking:
                raise
            some = and_list([repr(name) for name in lacking[:5]], more=len(lacking) - 5)
            raise ValueError(f"{there.source} lacks {some}, which the model of {self.target} needs.") from None

    def predict_table(self, table: Table) -> NDArray[Any]:
        """The same for a table that has been read."""
        frame, matrix = table.frame, self.design.transform(table.frame[list(self.kinds)])
        unseen = (*_unseen_values(frame, self.seen, self.design), *_unseen_numbers(table.written, matrix, self.design))
        for sentence in (*unreadable(table, self.kinds), *unseen):
            warn(sentence)
        z = matrix @ self.coefficients.T + self.intercept
        if self.link == "identity":
            return np.asarray(z[:, 0])
        if self.link == "log":
            return np.asarray(np.exp(np.minimum(z[:, 0], LARGEST)))
        best = (z[:, 0] > 0).astype(int) if z.shape[1] == 1 else np.argmax(z, axis=1)
        return np.asarray(np.array(self.classes, dtype=object)[best])

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON's own types."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "format_number": NUMBER,
            "version": __version__,
            "about": f"Predicts {self.target}: trimlearn predict model.json TABLE, or trimlearn.load('model.json').",
            "target": self.target,
            "task": self.task,
            "classes": list(self.classes),
            "columns": [{"name": name, "kind": kind} for name, kind in self.kinds.items()],
            "link": self.link,
            "intercept": self.intercept,
            "coefficients": [
                {"feature": name, "values": self.coefficients[:, j]} for j, name in enumerate(self.design.feature_names)
            ],
            "intervals": list(self.intervals),
            "values": {name: list(values) for name, values in self.seen.items()},
            "design": self.design.to_json(),
        }
        kept: dict[str, Any] = plain_values(document)
        return kept


def model_of_check(parts: Parts) -> Model | None:
    """The trimmed linear model of a check, where there is one."""
    judged = parts.target
    if judged is None or parts.seen is not None or not {"linear", "design", "link"} <= judged.fits.keys():
        return None
    fit, design = judged.fits["linear"], judged.fits["design"]
    kinds = {column.name: column.kind for column in parts.table.columns}
    classes = tuple(judged.classes[int(code)] for code in fit.classes_) if judged.task == "classification" else ()
    words = [name for name in design.columns if kinds[name] not in ("number", "date")]
    return Model(
        target=judged.name,
        task=judged.task,
        classes=classes,
        kinds={name: kinds[name] for name in design.columns},
        design=design,
        link=judged.fits["link"],
        intercept=np.atleast_1d(np.asarray(fit.intercept_, dtype=np.float64)),
        coefficients=np.atleast_2d(np.asarray(fit.coef_, dtype=np.float64)),
        intervals=tuple({key: entry.get(key) for key in INTERVAL} for entry in judged.coefficients),
        seen=_seen_values(parts.cells.mended, words),
    )


def with_predictions(model: Model, table: Table) -> pd.DataFrame:
    """A table as it was written, with one more column: what the model expects."""
    predicted = model.predict_table(table)
    name = f"predicted {model.target}"
    written = table.written.copy()
    while name in written.columns:
        name += " (2)"
    written[name] = predicted
    return written


def _seen_values(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The different values of columns that hold words, sorted; a column of very many values is left out."""
    found = {name: sorted(map(str, frame[name].dropna().unique())) for name in columns}
    return {name: tuple(values) for name, values in found.items() if len(values) <= MOST}


def _unseen_values(frame: pd.DataFrame, seen: Mapping[str, Sequence[str]], design: Design) -> list[str]:
    """A sentence for each column with values that the model has not seen.

    >>> import pandas as pd
    >>> from trimlearn.checks.design import Design, Feature
    >>> frame = pd.DataFrame({"fuel": ["gas", "steam", None]})
    >>> _unseen_values(frame, {"fuel": ("gas", "oil")}, Design((Feature("fuel", "level", ("oil",)),)))
    ["1 of 3 rows has a fuel that the model has not seen ('steam'), which it takes for the most frequent one."]
    """
    said = []
    for name, values in seen.items():
        column = frame[name].dropna().astype(str)
        new = column[~column.isin(values)]
        if not len(new):
            continue
        kinds = new.value_counts().index.tolist()
        listed = and_list([repr(value) for value in kinds[:NAMED]], more=len(kinds) - NAMED)
        rare = any(feature.column == name and feature.how == "other" for feature in design.features)
        have, like = "has" if len(new) == 1 else "have", "a rare one" if rare else "the most frequent one"
        said.append(
            f"{len(new):,} of {len(frame):,} rows {have} a {name} that the model has not seen ({listed}), which it "
            f"takes for {like}."
        )
    return said


def _unseen_numbers(written: pd.DataFrame, matrix: Floats, design: Design) -> list[str]:
    """A sentence for each column of numbers or dates far from all that the model has seen, as in another unit.

    >>> import pandas as pd
    >>> from trimlearn.checks.design import Design, Feature
    >>> design = Design((Feature("x", "number", (), 170, 170, 8, reach=3),))
    >>> _unseen_numbers(pd.DataFrame({"x": ["1.7", "171"]}), np.array([[-21.0], [0.1]]), design)
    ['1 of 2 rows has a x far from all that the model has seen (1.7): is its unit the same? Its prediction is a guess.']
    """
    said = []
    for feature, z in zip(design.features, matrix.T, strict=True):
        far = [] if feature.reach is None else np.flatnonzero(np.abs(z) > BEYOND * feature.reach).tolist()
        if not far:
            continue
        listed = and_list([written[feature.column].iloc[i] for i in far[:NAMED]], more=len(far) - NAMED)
        have, whose = (
            ("has", "Its prediction is a guess") if len(far) == 1 else ("have", "Their predictions are guesses")
        )
        end = "." if feature.how == "date" else ": is its unit the same?"
        said.append(
            f"{len(far):,} of {len(written):,} rows {have} a {feature.column} far from all that the model has seen "
            f"({listed}){end} {whose}."
        )
    return said
