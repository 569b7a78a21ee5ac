"""The model of a target, in a file that people can read: ``trimlearn.load`` reads it again. No pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn._version import __version__
from trimlearn.checks.design import Design
from trimlearn.checks.findings import Task
from trimlearn.checks.model import FORMAT, NUMBER, Model
from trimlearn.tables.table import Kind

LINKS = {"regression": ("identity", "log"), "count": ("log",), "classification": ("logit",)}  # of each task


def load(path: str | Path) -> Model:
    """The model that a check wrote.

    Parameters
    ----------
    path : path
        A model.json.

    Returns
    -------
    Model
        It has ``predict(table)``.

    Raises
    ------
    ValueError
        If the file is no model, or was written by a later version; one line says which.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from trimlearn import check, load
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> table = pd.DataFrame({"a": x[:, 0], "y": 2 * x[:, 0] + 0.1 * x[:, 1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = load(check(table, target="y").write(folder)["model.json"])
    >>> bool(abs(model.predict(pd.DataFrame({"a": [1.0]}))[0] - 2) < 0.2)
    True
    """
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no model: it is not JSON. A check writes model.json.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is no model of trimlearn. A check with a target writes model.json.")
    if document.get("format_number") != NUMBER:
        raise ValueError(
            f"{path} has format {document.get('format_number')}, this is trimlearn {__version__}, which reads format "
            f"{NUMBER}: it was written by trimlearn {document.get('version')}."
        )
    try:
        return _read(document)
    except (KeyError, TypeError, ValueError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{path} is a model, but damaged: {what}.") from error


def _read(document: dict[str, Any]) -> Model:
    """The model of which `Model.to_json` gave this; KeyError, TypeError or ValueError where something is missing."""
    design = Design.from_json(document["design"])
    coefficients = np.array([entry["values"] for entry in document["coefficients"]], dtype=np.float64).T
    intercept = np.array(document["intercept"], dtype=np.float64)
    if coefficients.shape != (len(intercept), len(design.features)) and design.features:
        raise ValueError("its coefficients and its design do not fit to each other")
    _check_document(document, design, intercept, coefficients)
    return Model(
        target=document["target"],
        task=document["task"],
        classes=tuple(document["classes"]),
        kinds={str(entry["name"]): str(entry["kind"]) for entry in document["columns"]},
        design=design,
        link=document["link"],
        intercept=intercept,
        coefficients=coefficients.reshape(len(intercept), len(design.features)),
        intervals=tuple(document.get("intervals", ())),
        seen={name: tuple(values) for name, values in document.get("values", {}).items() if name in design.columns},
    )


def _check_document(document: Mapping[str, Any], design: Design, intercept: Floats, coefficients: Floats) -> None:
    """Raise a ValueError, the end of a sentence, where the parts of a model's file do not fit to each other.

    A file may have been edited by hand: what it says must still be one model.
    """
    task, classes, columns = document["task"], document["classes"], document["columns"]
    if task not in get_args(Task):
        raise ValueError(f"its task is {task!r}, which is none of {', '.join(get_args(Task))}")
    if document["link"] not in LINKS[task]:
        raise ValueError(f"its link is {document['link']!r}, which is not for the task {task}")
    _check_classes(task, classes, len(intercept))
    names = [entry["name"] for entry in columns]
    target = document["target"]
    if not isinstance(target, str) or not target:
        raise ValueError("its target has no name")
    if target in names:
        raise ValueError(f"its target {target!r} is among the columns that it predicts by")
    if any(entry["kind"] not in get_args(Kind) for entry in columns):
        raise ValueError("a column is of a kind that does not exist")
    if set(names) != set(design.columns):
        raise ValueError("its columns and its design do not fit to each other")
    if [entry["feature"] for entry in document["coefficients"]] != list(design.feature_names):
        raise ValueError("its coefficients are not those of its design")
    if not (np.all(np.isfinite(coefficients)) and np.all(np.isfinite(intercept))):
        raise ValueError("a coefficient is no number")


def _check_classes(task: str, classes: Any, rules: int) -> None:
    if not isinstance(classes, Sequence) or isinstance(classes, str) or not all(isinstance(c, str) for c in classes):
        raise ValueError("its classes are no list of names")
    expected = 0 if task != "classification" else 2 if rules == 1 else rules
    if len(classes) != expected or len(set(classes)) != expected:
        raise ValueError(f"it has {len(set(classes))} different classes, where its coefficients tell {expected} apart")
