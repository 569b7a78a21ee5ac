"""Where the columns that a pipeline's last step sees come from, in terms of the table that went in.

The outlier table of a pipeline, in the words of the table that went into it.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from trimlearn.estimators.base import Trimmed, row_names
from trimlearn.inference.outlier_table import OutlierTable
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


def outlier_table(model: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> OutlierTable:
    """What is known about each row of X, worst first, by a trimmed estimator or a Pipeline that ends in one.

    The index of X names the rows, its columns the features, whatever the pipeline makes of them: the dummies of a
    category count as one feature. If X and y are what the model was fitted to, the verdicts are those of the fit; other
    rows are judged as new ones.

    Parameters
    ----------
    model : trimmed estimator, Pipeline or search
        A fitted model. Of a search (GridSearchCV) the best estimator is asked.
    X : array-like or DataFrame of shape (n, p), optional
        The table as it goes into the pipeline. None: the rows it was fitted to, by number.
    y : array-like of shape (n,), optional
        The target, where the model has one.
    sample_weight : array-like of shape (n,), optional
        How many times each row counts.

    Returns
    -------
    OutlierTable
        One row for each row of X.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from trimlearn import TrimmedLinearRegression, outlier_table
    >>> X = np.column_stack([np.arange(60.0), np.arange(60) % 3])
    >>> y = X[:, 0] + 10 * X[:, 1] + np.sin(np.arange(60))
    >>> y[8] += 40
    >>> columns = make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(), [1]))
    >>> pipeline = make_pipeline(columns, TrimmedLinearRegression(penalty="l2", random_state=0))
    >>> table = outlier_table(pipeline.fit(X, y), X, y)
    >>> table[0]["row"], table[0]["features"]
    (8, 'y is 43.4 sigma too high')
    """
    model = getattr(model, "best_estimator_", model)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(last, Trimmed):
        raise TypeError(
            "outlier_table takes a fitted estimator of trimlearn, or a Pipeline that ends in one, "
            f"got {type(last).__name__}."
        )
    if not isinstance(model, Pipeline):
        return last.outlier_table(X, y, sample_weight)
    check_is_fitted(last, "weights_")
    made, names = model[:-1], column_names(X)
    if X is None:
        known = getattr(model, "feature_names_in_", None)
        names = [f"x{j}" for j in range(model.n_features_in_)] if known is None else [str(name) for name in known]
        return last._tabulate(None, None, None, trace(made, names, last.n_features_in_), None)
    inner = made.transform(X) if len(made) else X
    return last._tabulate(inner, y, sample_weight, trace(made, names, inner.shape[1]), row_names(X))


def unwrapped(model: Any, X: Any = None) -> tuple[Any, Any, list[str] | None]:
    """The last step of a fitted Pipeline or search, X as that step sees it, and what it calls the columns, where the
    Pipeline says so.

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from trimlearn import TrimmedPCA
    >>> X = np.random.default_rng(0).normal(5.0, 2.0, size=(30, 3))
    >>> last, seen, columns = unwrapped(make_pipeline(StandardScaler(), TrimmedPCA(1, random_state=0)).fit(X), X)
    >>> type(last).__name__, bool(abs(seen.mean()) < 1e-9), columns
    ('TrimmedPCA', True, ['x0', 'x1', 'x2'])
    """
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, Pipeline):
        return model, X, None
    made, last = model[:-1], model.steps[-1][1]
    check_is_fitted(model)
    try:
        columns = [str(name) for name in made.get_feature_names_out()] if len(made) else None
    except (AttributeError, ValueError):  # a step that does not say what it makes
        columns = None
    last, inner, own = unwrapped(last, made.transform(X) if len(made) and X is not None else X)
    return last, inner, columns if own is None else own
