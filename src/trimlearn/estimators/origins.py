"""Where the columns that a pipeline's last step sees come from, in terms of the table that went in."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder

from trimlearn.inference.table import ColumnOrigins

Names = list[str]
Branch = tuple[str, Names | None, Names | None]  # its name, what it makes, what it was given


def column_names(X: Any) -> Names | None:
    """The names of a data frame's columns, "x0", "x1", … where there are none; None of what is no table."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    shape = getattr(X, "shape", None) or np.shape(X)
    return [f"x{j}" for j in range(shape[1])] if len(shape) == 2 else None


def trace(step: Any, names: Names | None, width: int) -> ColumnOrigins:
    """Of each of the ``width`` columns that a fitted transformer makes of those called ``names``, where it is from.

    A column that belongs to a single one that went in (scaled, imputed, one category of it, a spline of it) is
    called after that one, any other (a principal component) by the name scikit-learn gives it.

    >>> encoder = OneHotEncoder().fit(np.array([["red", "7"], ["blue", "7"]], dtype=object))
    >>> origins = trace(encoder, ["colour", "size"], 3)
    >>> origins.names, origins.column
    (('colour', 'size'), array([0, 0, 1]))
    """
    found = _outputs(step, names)
    if found is None or len(found) != width:  # some transformer does not say what it makes
        found = [f"x{j}" for j in range(width)]
    place = {name: j for j, name in enumerate(dict.fromkeys(found))}
    return ColumnOrigins(tuple(place), np.array([place[name] for name in found], dtype=np.int64))


def _outputs(step: Any, names: Names | None) -> Names | None:
    """The origin of each column that a step makes, given those of the columns that go in; None: nobody knows."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return names
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            names = _outputs(part, names)
        return names
    if isinstance(step, ColumnTransformer) and names is not None:
        return _of_branches(step, names)
    if isinstance(step, FeatureUnion):
        return _joined([(name, _outputs(part, names), names) for name, part in step.transformer_list if part != "drop"])
    if isinstance(step, OneHotEncoder) and names is not None:
        step = copy(step)  # its own rule for names can be set: the name of the feature alone
        step.feature_name_combiner = lambda feature, category: str(feature)
        place = dict(zip(_seen(step, names), names, strict=False))
        return [place.get(name, name) for name in step.get_feature_names_out().tolist()]
    if not hasattr(step, "get_feature_names_out"):  # scikit-learn's own convention for what a transformer can say
        return None
    made = [str(name) for name in step.get_feature_names_out()]
    seen = _seen(step, names)
    return made if names is None else [_after(name, seen, names) for name in made]


def _seen(step: Any, names: Names | None) -> Names:
    """What a step itself calls the columns that went in: as in the data frame it saw, or x0, x1, …"""
    known = getattr(step, "feature_names_in_", None)
    return [f"x{j}" for j in range(len(names or ()))] if known is None else [str(name) for name in known]


def _after(made: str, seen: Names, names: Names) -> str:
    """The origin of the column that is called ``made``, or begins with the name of, the longest that fits."""
    rest = made.removeprefix("missingindicator_")
    fits = [j for j, name in enumerate(seen) if rest == name or rest.startswith(f"{name}_")]
    return names[max(fits, key=lambda j: len(seen[j]))] if fits else made


def _of_branches(step: ColumnTransformer, names: Names) -> Names | None:
    order = sorted(
        (where.start, name, part, columns)
        for name, part, columns in step.transformers_
        if (where := step.output_indices_[name]).start < where.stop
    )
    parts: list[Branch] = []
    for _, name, part, columns in order:
        chosen = _chosen(columns, names)
        parts.append((name, _outputs(part, chosen), chosen))
    return _joined(parts)


def _joined(parts: list[Branch]) -> Names | None:
    """The branches beside each other; a name that a branch made up is led by the branch's, as scikit-learn has it."""
    joined: Names = []
    for branch, made, given in parts:
        if made is None:
            return None
        joined += [name if name in (given or ()) else f"{branch}__{name}" for name in made]
    return joined


def _chosen(columns: Any, names: Names) -> Names:
    """The names of the columns that one branch of a ColumnTransformer takes, in any of the ways to say it."""
    if isinstance(columns, slice) and any(isinstance(end, str) for end in (columns.start, columns.stop)):
        first = 0 if columns.start is None else names.index(columns.start)
        last = len(names) if columns.stop is None else names.index(columns.stop) + 1  # names: the last is meant too
        return names[first:last]
    if isinstance(columns, slice):
        return names[columns]
    wanted = np.atleast_1d(np.asarray(columns))
    if wanted.dtype.kind in "OU":
        return [str(name) for name in wanted]
    return [str(name) for name in np.asarray(names)[wanted]]
