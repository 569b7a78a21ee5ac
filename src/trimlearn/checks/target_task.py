"""What is asked of a target: numbers, counts or labels, and which rows have one that can be judged; and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from trimlearn._utils.arrays import Array, Flags, Floats
from trimlearn.checks.findings import Task

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.tables.table import Kind, Table

LEAST_ROWS = 20  # with a target: fewer leave four rows in a fold of five, and no model tells wrong from odd
LEAST_MEMBERS = 3  # of a class: with fewer, whoever judges one has seen one other at most
MOST_CLASSES = 100  # a limit on time: boosting grows a tree per class and round
FEW_VALUES = 12  # different integers up to which they may be the numbers of classes: months are the longest such list
MOST_COUNTS = 100  # different values up to which integers may be counts: more are as good as continuous
ZEROS = 0.01  # share of zeros from which on integers may be counts: a Poisson law of mean 4.6 has as many
NAMES = 5  # that a sentence lists before it ends with "and others"


@final
@dataclass(frozen=True)
class Target:
    """The target of the rows that are judged.

    Parameters
    ----------
    name : str
        Of its column.
    task : str
        "regression", "count" or "classification".
    rows : ndarray of int
        The rows that are judged.
    y : ndarray
        Their targets: floats, or the numbers of their classes.
    classes : tuple of str
        Of labels, sorted.
    pinned_right, pinned_wrong : ndarray of bool
        Of these rows, what a person has said of them.
    asked : bool
        Whether the user has given the task.
    caveats : tuple of str
        What the user must be told.
    """

    name: str
    task: Task
    rows: Array
    y: Array
    classes: tuple[str, ...]
    pinned_right: Array
    pinned_wrong: Array
    asked: bool = False
    caveats: tuple[str, ...] = ()

    @property
    def may_be_counts(self) -> bool:
        """Whether these are integers as counts are; whether they behave like counts is for a model to say."""
        if self.classes or np.any(self.y < 0) or np.any(self.y != np.round(self.y)):
            return False
        return len(np.unique(self.y)) <= MOST_COUNTS and float(np.mean(self.y == 0)) >= ZEROS

    @property
    def may_be_classes(self) -> bool:
        """Whether these are a few whole numbers: grades, ratings, or the numbers of classes."""
        return not self.classes and _few_whole(self.y, FEW_VALUES)

    @property
    def may_name_classes(self) -> bool:
        """Whether these are whole numbers that could be classes, if there is nothing else in them than a name."""
        return self.task == "regression" and not self.asked and _few_whole(self.y, MOST_CLASSES)


@final
@dataclass(frozen=True)
class TargetJudgement:
    """What models say of the targets that are judged. One entry per row.

    Parameters
    ----------
    score : ndarray
        Of a label the log-odds that it is wrong; of a number |residual| in units of the size of errors there.
    probability : ndarray
        That the target is wrong.
    contamination : float
        The share of wrong targets.
    expected : ndarray
        What was predicted of a number. Of labels the number of the most likely class given label and features; of a
        doubted label, the most likely other one.
    noise_matrix : ndarray or None
        Of labels: [k, j] = P(labelled j | of class k).
    caveats : tuple of str
        What the user must be told.
    """

    score: Floats
    probability: Floats
    contamination: float
    expected: Array
    noise_matrix: Floats | None = None
    caveats: tuple[str, ...] = ()

    @property
    def flagged(self) -> Flags:
        """More likely wrong than right."""
        return np.asarray(self.probability > 0.5)


def read_target(table: Table, name: str, task: Task | None, pinned: Mapping[int, bool]) -> Target:
    """The target column as numbers or labels; ValueError, in one line, where nothing can be learnt from it.

    Counts are regression until `Target.may_be_counts` and a model say otherwise, unless ``task`` asks for them.
    """
    if name not in table.frame.columns:
        near = ", ".join(map(str, table.frame.columns[:NAMES]))
        raise ValueError(f"There is no column {name!r} to take for the target; the columns are {near}, …")
    if task not in (None, "regression", "count", "classification"):
        raise ValueError(f"task must be 'regression', 'count' or 'classification', got {task!r}.")
    column = table.frame[name]
    infinite = np.isinf(column.to_numpy(dtype=np.float64)) if column.dtype.kind == "f" else np.zeros(len(column), bool)
    known = np.flatnonzero(column.notna().to_numpy() & ~infinite)
    if len(known) == 0:
        raise ValueError(f"The target {name!r} has no value in any row: choose another column.")
    if column.iloc[known].nunique() < 2:
        raise ValueError(f"The target {name!r} is {_shown(column.iloc[known[0]])} in every row: nothing can be learnt.")
    if len(known) < LEAST_ROWS:
        raise ValueError(
            f"Only {len(known)} rows have a target {name!r}; at least {LEAST_ROWS} are needed to judge it."
        )
    kind = next(column.kind for column in table.columns if column.name == name)
    chosen = task or _task(column, kind, name)
    if chosen == "classification" and kind == "number":
        _check_classes(column.iloc[known], name)
    rows, y, classes, caveats = (
        _labels(column, known, name) if chosen == "classification" else _numbers(column, kind, known, name, chosen)
    )
    if infinite.any():
        caveats = (*caveats, f"{infinite.sum():,} targets of {name} are infinite, which is wrong, and were not judged.")
    if chosen == "regression" and task is None:
        caveats = (*caveats, *_maybe_classes(y, name))
    right, wrong = (np.array([pinned.get(int(row)) is said for row in rows], dtype=bool) for said in (False, True))
    return Target(
        name=name,
        task=chosen,
        rows=rows,
        y=y,
        classes=classes,
        pinned_right=right,
        pinned_wrong=wrong,
        asked=task is not None,
        caveats=caveats,
    )


def _task(column: pd.Series, kind: Kind, name: str) -> Task:
    if kind == "number":
        return "classification" if column.nunique() == 2 else "regression"
    if kind == "date":
        raise ValueError(f"The target {name!r} holds dates, which no model here predicts: choose another column.")
    return "classification"


def _check_classes(values: pd.Series, name: str) -> None:
    """Raise for numbers that cannot be the names of classes: they are not whole, and most occur but once or twice."""
    counts = values.value_counts()
    rare = int(counts[counts < LEAST_MEMBERS].sum())
    if 2 * rare > len(values) and np.any(values.to_numpy() != np.round(values.to_numpy())):
        raise ValueError(
            f"The target {name!r} holds {len(counts):,} different numbers in {len(values):,} rows, which are no "
            "classes: leave the task out, or cut the numbers into ranges."
        )


def _numbers(
    column: pd.Series, kind: Kind, known: Array, name: str, task: Task
) -> tuple[Array, Array, tuple[str, ...], tuple[str, ...]]:
    if kind != "number":
        raise ValueError(f"The target {name!r} does not hold numbers, so that task={task!r} is not for it.")
    y = column.to_numpy(dtype=np.float64)[known]
    if task == "count" and (np.any(y < 0) or np.any(y != np.round(y))):
        raise ValueError(f"The target {name!r} holds more than whole numbers >= 0, so that task='count' is not for it.")
    return known, y, (), ()


def _labels(column: pd.Series, known: Array, name: str) -> tuple[Array, Array, tuple[str, ...], tuple[str, ...]]:
    labels = np.array([_shown(value) for value in column.iloc[known]], dtype=object)
    names, codes, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    if len(names) > MOST_CLASSES:
        raise ValueError(
            f"The target {name!r} has {len(names):,} different labels in {len(known):,} rows, more than the "
            f"{MOST_CLASSES} that can be judged: choose a coarser column, or merge labels."
        )
    judged = counts >= LEAST_MEMBERS
    if judged.sum() < 2:
        raise ValueError(
            f"The target {name!r} has less than two labels that occur {LEAST_MEMBERS} times: nothing to compare."
        )
    caveats = () if judged.all() else (_rare(names[~judged], name),)
    kept = judged[codes]
    place = np.cumsum(judged) - 1
    return known[kept], place[codes[kept]], tuple(map(str, names[judged])), caveats


def _rare(names: Array, target: str) -> str:
    listed = ", ".join(map(repr, map(str, names[:NAMES]))) + (" and others" if len(names) > NAMES else "")
    return f"Labels of {target} that occur once or twice are not judged: {listed}."


def _few_whole(y: Array, most: int) -> bool:
    values = np.unique(y)
    return len(values) <= most and bool(np.all(values == np.round(values)))


def _maybe_classes(y: Array, name: str) -> tuple[str, ...]:
    if not _few_whole(y, FEW_VALUES):
        return ()
    return (
        f"{name} holds {len(np.unique(y))} different whole numbers and is taken for a quantity; if they are the "
        "numbers of classes, ask for the task classification.",
    )


def told_as_classes(target: Target) -> str:
    """The sentence for numbers that are names."""
    return (
        f"{target.name} holds {len(np.unique(target.y))} different whole numbers, which are taken for the numbers of "
        "classes: the other columns tell them apart, but not by more or less. If they are a quantity, ask for the task "
        "regression."
    )


def _shown(value: object) -> str:
    """As it was written: a whole number without a decimal point."""
    return f"{value:g}" if isinstance(value, float) else str(value)
