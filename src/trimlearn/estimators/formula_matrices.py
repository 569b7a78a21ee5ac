"""The matrices that a formula makes of a table: its two sides, the rows without gaps, the model matrix, the target."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.warn import warn
from trimlearn.inference.table import ColumnOrigins

COLOURS = re.compile("\x1b\\[[0-9;]*m|[⧛⧚]")  # for a terminal, and what formulaic puts around the place it means
NAMED = 5  # rows that a warning or an error names: enough to look them up


def _formulaic() -> Any:
    try:
        import formulaic
    except ImportError as error:
        raise ImportError("formulas need formulaic: pip install 'trimlearn[formula]'.") from error
    return formulaic


def _plain(error: Exception) -> str:
    """What formulaic says, in one line."""
    return " ".join(COLOURS.sub("", str(error)).split())


def both_sides(formula: str, table: Any) -> tuple[Any, Any]:
    """The two sides of a formula, the left one None where there is none."""
    _check_table(table)
    formulaic = _formulaic()
    try:
        parsed = formulaic.Formula(formula, _context={"__formulaic_variables_available__": list(table.columns)})
    except Exception as error:  # formulaic has many kinds of its own
        raise ValueError(f"formula {formula!r} could not be read: {_plain(error)}") from error
    sides = (parsed.lhs, parsed.rhs) if "~" in formula and not formula.lstrip().startswith("~") else (None, parsed)
    for side in sides:
        if side is not None:
            if not hasattr(side, "required_variables"):
                raise ValueError(f"formula {formula!r} has several parts: use + in place of |.")
            check_columns(table, side.required_variables)
    return sides


def _check_table(table: Any) -> None:
    if not hasattr(table, "columns") or not hasattr(table, "iloc"):
        raise TypeError(f"table must be a pandas DataFrame, got {type(table).__name__}.")


def as_objects(table: Any) -> Any:
    """Text of every kind as objects, which formulaic takes for categories."""
    text = [name for name, kind in table.dtypes.items() if str(kind).startswith("string")]
    return table.astype(dict.fromkeys(text, object)) if text else table


def without_unused(table: Any) -> Any:
    """Categories that no row has are dropped: nothing can be known about them."""
    unused = [name for name, kind in table.dtypes.items() if str(kind) == "category"]
    return table.assign(**{name: table[name].cat.remove_unused_categories() for name in unused}) if unused else table


def check_formula_values(X: Any, table: Any) -> None:
    """ValueError where the formula makes of numbers something else, such as the logarithm of 0."""
    numbers = X.select_dtypes("number").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"the formula gives infinite or undefined values in {named_rows(table, wrong)}: "
            "drop these rows, or mend them."
        )


def whole_rows(table: Any, wanted: Any) -> NDArray[np.bool_]:
    """Which rows have no missing values in these columns."""
    return np.asarray(table[sorted(str(name) for name in wanted)].notna().to_numpy().all(axis=1))


def check_columns(table: Any, wanted: Any) -> None:
    _check_table(table)
    missing = sorted(str(name) for name in wanted if name not in table.columns)
    if missing:
        raise ValueError(f"the table has no column {', '.join(missing)}; it has {', '.join(map(str, table.columns))}.")


def complete_rows(table: Any, left: Any, right: Any) -> NDArray[np.int64]:
    """The numbers of the rows without missing values in the columns of the formula; the others are named."""
    wanted = {str(name) for side in (left, right) if side is not None for name in side.required_variables}
    whole = whole_rows(table, wanted)
    gaps = np.flatnonzero(~whole)
    if not len(table):
        raise ValueError("the table has no rows.")
    if len(gaps) == len(table):
        raise ValueError(
            "every row of the table has missing values in the columns of the formula: none is left to fit."
        )
    if len(gaps):
        warn(f"{len(gaps)} of {len(table)} rows have missing values and are left out: {named_rows(table, gaps)}.")
    return np.flatnonzero(whole)


def named_rows(table: Any, rows: NDArray[np.int64]) -> str:
    """A few rows by name."""
    shown = ", ".join(str(name) for name in table.index[rows[:NAMED]])
    return f"row{'s' if len(rows) > 1 else ''} {shown}" + (", …" if len(rows) > NAMED else "")


def model_matrix(make: Any) -> Any:
    """A model matrix; a category that was not there in training is an error, not a row of zeros."""
    errors = _formulaic().errors
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # what is not finite is said by `check_formula_values`
        warnings.filterwarnings("ignore", message="Constructing a Categorical")
        warnings.simplefilter("error", errors.DataMismatchWarning)
        try:
            return make()
        except errors.DataMismatchWarning as error:
            raise ValueError(
                f"the table holds a category that was not there when the model was fitted: {error}"
            ) from error
        except Exception as error:  # formulaic has many kinds of its own
            raise ValueError(f"the formula could not be worked out for this table: {_plain(error)}") from error


def target_of(left: Any, table: Any) -> Any:
    """The target: a column as it is, labels among them, or what the formula makes of columns."""
    name = str(left)
    if name in table.columns:
        return table[name]
    found = model_matrix(lambda: left.get_model_matrix(table, na_action="ignore"))
    if found.shape[1] != 1:
        raise ValueError(f"the left side of the formula must be one column, got {list(found.columns)}.")
    check_formula_values(found, table)
    return found.iloc[:, 0]


def origins_of(spec: Any, columns: list[str]) -> ColumnOrigins:
    """For each column of the model matrix the variable of the table that it is made of; an interaction is its own."""
    of = {}
    for term, where in spec.term_slices.items():
        variables = [str(name) for name in spec.term_variables[term] if name in spec.required_variables]
        for column in spec.column_names[where]:
            of[column] = variables[0] if len(variables) == 1 else str(term)
    names = tuple(dict.fromkeys(of[column] for column in columns))
    return ColumnOrigins(names, np.array([names.index(of[column]) for column in columns], dtype=np.int64))
