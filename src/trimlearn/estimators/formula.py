"""Models by formula: "mpg ~ weight + C(fuel)" and a table, in place of matrices made by hand."""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.intact import intact
from trimlearn.estimators.base import Trimmed
from trimlearn.estimators.formula_matrices import (
    as_objects,
    both_sides,
    check_columns,
    check_formula_values,
    complete_rows,
    model_matrix,
    named_rows,
    origins_of,
    target_of,
    whole_rows,
    without_unused,
)
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.inference.table import ColumnOrigins

# Methods of estimators that take rows, and here those of a table; `outlier_score` of some takes their target as well.
OF_ROWS = (
    "decision_function",
    "mahalanobis",
    "orthogonal_distance",
    "outlier_score",
    "predict_log_proba",
    "predict_proba",
    "score_distance",
    "score_samples",
    "transform",
)


def from_formula(formula: str, table: Any, estimator: Any = None, *, sample_weight: Any = None) -> FormulaModel:
    """Fit an estimator to the columns of a table that a formula names.

    Parameters
    ----------
    formula : str
        As in R and formulaic: "mpg ~ weight + C(fuel)", "log(price) ~ bhp * fuel - 1", "~ a + b" for rows without a
        target.
    table : DataFrame
        Of pandas. Rows with missing values in the columns named are dropped, with a warning that names them.
    estimator : estimator, default=None
        What to fit; it is cloned. None is `TrimmedLinearRegression`. Whether there is an intercept is the formula's.
    sample_weight : array-like of shape (n,), default=None
        How many times each row of the table counts.

    Returns
    -------
    FormulaModel
        Fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from trimlearn import from_formula
    >>> table = pd.DataFrame({"weight": np.arange(40.0), "fuel": np.tile(["petrol", "diesel"], 20)})
    >>> table["mpg"] = 80 - table.weight + 5 * (table.fuel == "petrol") + np.sin(table.weight**2)
    >>> table.loc[7, "mpg"] = 8.0
    >>> model = from_formula("mpg ~ weight + C(fuel)", table)
    >>> model.feature_names_in_.tolist(), model.outlier_table()[0]["row"]
    (['weight', 'C(fuel)[T.petrol]'], 7)
    >>> model.predict(pd.DataFrame({"weight": [10.0], "fuel": ["diesel"]})).round()
    array([70.])
    """
    return FormulaModel(formula, estimator).fit(table, sample_weight=sample_weight)


class FormulaModel(BaseEstimator):  # type: ignore[misc]
    """An estimator that takes tables, by a formula.

    What it does not have itself (``coef_``, ``summary()``, ``inlier_mask_``, …) is that of ``estimator_``, the fitted
    estimator, whose rows are those of the table without the dropped ones (``rows_``). Methods that take rows
    (``predict_proba``, ``outlier_score``, …) take those of a table.

    Parameters
    ----------
    formula : str
        As in R and formulaic.
    estimator : estimator, default=None
        What to fit; None is `TrimmedLinearRegression`.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the model matrix, whose columns have names.
    rows_ : ndarray
        The numbers of the table's rows that were fitted.

    See Also
    --------
    from_formula : Makes one and fits it.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn import FormulaModel
    >>> table = pd.DataFrame({"x": range(10), "y": [2.0 * x for x in range(9)] + [99.0]})
    >>> FormulaModel("y ~ x").fit(table).coef_.round(3)
    array([2.])
    """

    estimator_: Any
    rows_: NDArray[np.int64]
    _spec: Any
    _origins: ColumnOrigins

    def __init__(self, formula: str, estimator: Any = None) -> None:
        self.formula = formula
        self.estimator = estimator

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}, or is not fitted yet.")
        found = getattr(self.estimator_, name)
        if name not in OF_ROWS:
            return found
        wants_target = "y" in signature(found).parameters
        return lambda table, y=None: found(*self._given(table, wants_target))  # y: the target is the formula's

    def fit(self, table: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        table : DataFrame
            With the columns that the formula names.
        y : Ignored
            The target is the formula's.
        sample_weight : array-like of shape (n,), default=None
            How many times each row of the table counts.

        Returns
        -------
        object
            The fitted model.
        """
        with intact(self):
            left, right = both_sides(self.formula, table)
            rows = complete_rows(table, left, right)
            kept = without_unused(as_objects(table.iloc[rows]))
            matrix = model_matrix(lambda: right.get_model_matrix(kept, na_action="ignore"))
            self._spec, self.rows_ = matrix.model_spec, rows
            X = matrix.drop(columns="Intercept", errors="ignore")
            if not X.shape[1]:
                raise ValueError(f"formula {self.formula!r} has no feature on its right side: name a column there.")
            check_formula_values(X, kept)
            self._origins = origins_of(matrix.model_spec, list(X.columns))
            model = clone(TrimmedLinearRegression() if self.estimator is None else self.estimator)
            if "fit_intercept" in model.get_params(deep=False):
                model.set_params(fit_intercept="Intercept" in matrix.columns)
            if left is None and (is_regressor(model) or is_classifier(model)):
                raise ValueError(f"formula {self.formula!r} has no target: write 'target ~ features'.")
            weights = {} if sample_weight is None else {"sample_weight": _weights(sample_weight, len(table))[rows]}
            target = () if left is None else (target_of(left, kept),)
            self.estimator_ = model.fit(X, *target, **weights)
        return self

    def predict(self, table: Any) -> NDArray[Any]:
        """Predictions for the rows of a table, which needs no column for the target.

        Parameters
        ----------
        table : DataFrame
            With the columns on the right of the formula.

        Returns
        -------
        ndarray of shape (n,)
            NaN for rows with missing values; a classifier refuses those.
        """
        check_is_fitted(self, "estimator_")
        check_columns(table, self._spec.required_variables)
        there = whole_rows(table, self._spec.required_variables)
        if there.all() or is_classifier(self.estimator_):
            return np.asarray(self.estimator_.predict(*self._given(table, False)))
        out = np.full(len(table), np.nan)
        if there.any():
            out[there] = self.estimator_.predict(self._features(table[there]))
        return out

    def score(self, table: Any, y: Any = None) -> float:
        """The estimator's score of the rows of a table.

        Parameters
        ----------
        table : DataFrame
            With all columns of the formula.
        y : Ignored
            The target is the formula's.

        Returns
        -------
        float
            R², the share of right labels, or what else the estimator calls its score.
        """
        check_is_fitted(self, "estimator_")
        return float(self.estimator_.score(*self._given(table, True)))

    def outlier_table(self, table: Any = None) -> OutlierTable:
        """What is known about each row, worst first, in the table's own words.

        Parameters
        ----------
        table : DataFrame, default=None
            Rows with their target, seen or not; None for those of the fit.

        Returns
        -------
        OutlierTable
            As the estimator's; ``row`` is the number of the row in the table, and the columns of a category count as
            one feature.
        """
        check_is_fitted(self, "estimator_")
        if not isinstance(self.estimator_, Trimmed):
            raise TypeError(f"outlier_table needs an estimator of trimlearn, not {type(self.estimator_).__name__}.")
        rows = self.rows_
        X, y, names = None, None, vars(self.estimator_).get("_row_names")
        if table is not None:
            left, right = both_sides(self.formula, table)
            rows = complete_rows(table, left, right)
            kept = as_objects(table.iloc[rows])
            X, y = self._features(kept), None if left is None else target_of(left, kept)
            names = np.asarray(table.index)[rows]
        elif names is not None and np.array_equal(names, rows):
            names = None
        found = self.estimator_._tabulate(X, y, None, self._origins, names)
        columns = {name: found[name] for name in found.columns}
        return OutlierTable(columns | {"row": rows[found["row"]]})

    def _given(self, table: Any, with_target: bool) -> tuple[Any, ...]:
        """The features of rows without gaps and, if there is one and it is asked for, their target."""
        left = both_sides(self.formula, table)[0] if with_target else None
        wanted = set(self._spec.required_variables) | set(() if left is None else left.required_variables)
        check_columns(table, wanted)
        gaps = np.flatnonzero(~whole_rows(table, wanted))
        if len(gaps):
            raise ValueError(f"the table has missing values in {named_rows(table, gaps)}: drop these rows.")
        X = self._features(table)
        return (X,) if left is None else (X, target_of(left, as_objects(table)))

    def _features(self, table: Any) -> Any:
        check_columns(table, self._spec.required_variables)
        table = as_objects(table)
        matrix = model_matrix(lambda: self._spec.get_model_matrix(table, na_action="ignore"))
        X = matrix.drop(columns="Intercept", errors="ignore")
        check_formula_values(X, table)
        return X


def _weights(sample_weight: Any, n: int) -> NDArray[Any]:
    weights = np.asarray(sample_weight)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must hold one number for each of the {n} rows, got shape {weights.shape}.")
    return weights
