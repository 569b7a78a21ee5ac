"""The outlier table of a pipeline, in the words of the table that went into it."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from trimlearn.estimators.base import Trimmed, row_names
from trimlearn.estimators.origins import column_names, trace
from trimlearn.inference.outlier_table import OutlierTable


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
