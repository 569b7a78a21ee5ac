"""Whether a model's file fits together, and what a table holds that its model has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn._utils.text import and_list
from trimlearn.checks.findings import Task
from trimlearn.tables.table import Kind

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.checks.design import Design

__all__ = ["check_document", "seen_values", "unseen_values"]

LINKS = {"regression": ("identity", "log"), "count": ("log",), "classification": ("logit",)}  # of each task
MOST = 1000  # values of a column that are kept; of more, new ones are nothing special
NAMED = 3  # values that a sentence lists


def check_document(document: Mapping[str, Any], design: Design, intercept: Floats, coefficients: Floats) -> None:
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


def seen_values(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The different values of columns that hold words, sorted; a column of very many values is left out."""
    found = {name: sorted(map(str, frame[name].dropna().unique())) for name in columns}
    return {name: tuple(values) for name, values in found.items() if len(values) <= MOST}


def unseen_values(frame: pd.DataFrame, seen: Mapping[str, Sequence[str]], design: Design) -> list[str]:
    """A sentence for each column with values that the model has not seen.

    >>> import pandas as pd
    >>> from trimlearn.checks.design import Design, Feature
    >>> frame = pd.DataFrame({"fuel": ["gas", "steam", None]})
    >>> unseen_values(frame, {"fuel": ("gas", "oil")}, Design((Feature("fuel", "level", ("oil",)),)))
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
