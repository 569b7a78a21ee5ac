"""Models by formula: "mpg ~ weight + C(fuel)" and a table, in place of matrices made by hand."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.intact import intact
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import Trimmed
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.inference.table import ColumnOrigins

__all__ = ["FormulaModel", "from_formula"]

NAMED = 5  # rows that a warning or an error names: enough to look them up
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
            left, right = _sides(self.formula, table)
            rows = _complete(table, left, right)
            kept = _without_unused(_plain(table.iloc[rows]))
            matrix = _matrix(lambda: right.get_model_matrix(kept, na_action="ignore"))
            self._spec, self.rows_ = matrix.model_spec, rows
            X = matrix.drop(columns="Intercept", errors="ignore")
            if not X.shape[1]:
                raise ValueError(f"formula {self.formula!r} has no feature on its right side: name a column there.")
            _check_finite(X, kept)
            self._origins = _origins(matrix.model_spec, list(X.columns))
            model = clone(TrimmedLinearRegression() if self.estimator is None else self.estimator)
            if "fit_intercept" in model.get_params(deep=False):
                model.set_params(fit_intercept="Intercept" in matrix.columns)
            if left is None and (is_regressor(model) or is_classifier(model)):
                raise ValueError(f"formula {self.formula!r} has no target: write 'target ~ features'.")
            weights = {} if sample_weight is None else {"sample_weight": _weights(sample_weight, len(table))[rows]}
            target = () if left is None else (_target(left, kept),)
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
        _columns_there(table, self._spec.required_variables)
        there = _whole(table, self._spec.required_variables)
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
            left, right = _sides(self.formula, table)
            rows = _complete(table, left, right)
            kept = _plain(table.iloc[rows])
            X, y = self._features(kept), None if left is None else _target(left, kept)
            names = np.asarray(table.index)[rows]
        elif names is not None and np.array_equal(names, rows):
            names = None
        found = self.estimator_._tabulate(X, y, None, self._origins, names)
        columns = {name: found[name] for name in found.columns}
        return OutlierTable(columns | {"row": rows[found["row"]]})

    def _given(self, table: Any, with_target: bool) -> tuple[Any, ...]:
        """The features of rows without gaps and, if there is one and it is asked for, their target."""
        left = _sides(self.formula, table)[0] if with_target else None
        wanted = set(self._spec.required_variables) | set(() if left is None else left.required_variables)
        _columns_there(table, wanted)
        gaps = np.flatnonzero(~_whole(table, wanted))
        if len(gaps):
            raise ValueError(f"the table has missing values in {_some(table, gaps)}: drop these rows.")
        X = self._features(table)
        return (X,) if left is None else (X, _target(left, _plain(table)))

    def _features(self, table: Any) -> Any:
        _columns_there(table, self._spec.required_variables)
        table = _plain(table)
        matrix = _matrix(lambda: self._spec.get_model_matrix(table, na_action="ignore"))
        X = matrix.drop(columns="Intercept", errors="ignore")
        _check_finite(X, table)
        return X


def _formulaic() -> Any:
    try:
        import formulaic
    except ImportError as error:
        raise ImportError("formulas need formulaic: pip install 'trimlearn[formula]'.") from error
    return formulaic


def _sides(formula: str, table: Any) -> tuple[Any, Any]:
    """The two sides of a formula, the left one None where there is none."""
    _check_table(table)
    formulaic = _formulaic()
    try:
        parsed = formulaic.Formula(formula, _context={"__formulaic_variables_available__": list(table.columns)})
    except Exception as error:  # formulaic has many kinds of its own
        raise ValueError(f"formula {formula!r} could not be read: {error}") from error
    sides = (parsed.lhs, parsed.rhs) if "~" in formula and not formula.lstrip().startswith("~") else (None, parsed)
    for side in sides:
        if side is not None:
            if not hasattr(side, "required_variables"):
                raise ValueError(f"formula {formula!r} has several parts: use + in place of |.")
            _columns_there(table, side.required_variables)
    return sides


def _check_table(table: Any) -> None:
    if not hasattr(table, "columns") or not hasattr(table, "iloc"):
        raise TypeError(f"table must be a pandas DataFrame, got {type(table).__name__}.")


def _plain(table: Any) -> Any:
    """Text of every kind as objects, which formulaic takes for categories."""
    text = [name for name, kind in table.dtypes.items() if str(kind).startswith("string")]
    return table.astype(dict.fromkeys(text, object)) if text else table


def _without_unused(table: Any) -> Any:
    """Categories that no row has are dropped: nothing can be known about them."""
    unused = [name for name, kind in table.dtypes.items() if str(kind) == "category"]
    return table.assign(**{name: table[name].cat.remove_unused_categories() for name in unused}) if unused else table


def _weights(sample_weight: Any, n: int) -> NDArray[Any]:
    weights = np.asarray(sample_weight)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must hold one number for each of the {n} rows, got shape {weights.shape}.")
    return weights


def _check_finite(X: Any, table: Any) -> None:
    """ValueError where the formula makes of numbers something else, such as the logarithm of 0."""
    numbers = X.select_dtypes("number").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"the formula gives infinite or undefined values in {_some(table, wrong)}: drop these rows, or mend them."
        )


def _whole(table: Any, wanted: Any) -> NDArray[np.bool_]:
    """Which rows have no missing values in these columns."""
    return np.asarray(table[sorted(str(name) for name in wanted)].notna().to_numpy().all(axis=1))


def _columns_there(table: Any, wanted: Any) -> None:
    _check_table(table)
    missing = sorted(str(name) for name in wanted if name not in table.columns)
    if missing:
        raise ValueError(f"the table has no column {', '.join(missing)}; it has {', '.join(map(str, table.columns))}.")


def _complete(table: Any, left: Any, right: Any) -> NDArray[np.int64]:
    """The numbers of the rows without missing values in the columns of the formula; the others are named."""
    wanted = {str(name) for side in (left, right) if side is not None for name in side.required_variables}
    whole = _whole(table, wanted)
    gaps = np.flatnonzero(~whole)
    if not len(table):
        raise ValueError("the table has no rows.")
    if len(gaps) == len(table):
        raise ValueError(
            "every row of the table has missing values in the columns of the formula: none is left to fit."
        )
    if len(gaps):
        warn(f"{len(gaps)} of {len(table)} rows have missing values and are left out: {_some(table, gaps)}.")
    return np.flatnonzero(whole)


def _some(table: Any, rows: NDArray[np.int64]) -> str:
    """A few rows by name."""
    shown = ", ".join(str(name) for name in table.index[rows[:NAMED]])
    return f"row{'s' if len(rows) > 1 else ''} {shown}" + (", …" if len(rows) > NAMED else "")


def _matrix(make: Any) -> Any:
    """A model matrix; a category that was not there in training is an error, not a row of zeros."""
    errors = _formulaic().errors
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # what is not finite is said by `_check_finite`
        warnings.filterwarnings("ignore", message="Constructing a Categorical")
        warnings.simplefilter("error", errors.DataMismatchWarning)
        try:
            return make()
        except errors.DataMismatchWarning as error:
            raise ValueError(
                f"the table holds a category that was not there when the model was fitted: {error}"
            ) from error
        except Exception as error:  # formulaic has many kinds of its own
            raise ValueError(f"the formula could not be worked out for this table: {error}") from error


def _target(left: Any, table: Any) -> Any:
    """The target: a column as it is, labels among them, or what the formula makes of columns."""
    name = str(left)
    if name in table.columns:
        return table[name]
    found = _matrix(lambda: left.get_model_matrix(table, na_action="ignore"))
    if found.shape[1] != 1:
        raise ValueError(f"the left side of the formula must be one column, got {list(found.columns)}.")
    _check_finite(found, table)
    return found.iloc[:, 0]


def _origins(spec: Any, columns: list[str]) -> ColumnOrigins:
    """For each column of the model matrix the variable of the table that it is made of; an interaction is its own."""
    of = {}
    for term, where in spec.term_slices.items():
        variables = [str(name) for name in spec.term_variables[term] if name in spec.required_variables]
        for column in spec.column_names[where]:
            of[column] = variables[0] if len(variables) == 1 else str(term)
    names = tuple(dict.fromkeys(of[column] for column in columns))
    return ColumnOrigins(names, np.array([names.index(of[column]) for column in columns], dtype=np.int64))
