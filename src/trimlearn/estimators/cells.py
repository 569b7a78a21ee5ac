"""Wrong cells of a table, the way scikit-learn's users look for them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from trimlearn._utils.intact import intact
from trimlearn._utils.validation import check_magnitude, is_sparse
from trimlearn._utils.warn import warn
from trimlearn.estimators.notebook import SHOWN, Notebook, NotebookVerdict, in_percent
from trimlearn.estimators.number_table import NumberTable
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.robust.cells.table import TableModel

__all__ = ["CellwiseOutliers"]

WHOLE = 0.9  # of the values of a column of whole numbers are whole: 0.1 of a wrong cell need not be

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class CellwiseOutliers(Notebook, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Which cells of a table do not fit to the others in their row, and what was to be expected there.

    Real tables have wrong cells, not wrong rows: a comma that slipped, a sign, two digits swapped. Each column is
    brought to about normal form (a power or a logarithm, chosen by its bulk). Then detection and estimation take
    turns: given centre and covariance, the cells of a row that explain most of its distance are set aside until the
    rest agrees; given those, centre and covariance are estimated as if they were missing. How far ordinary cells are
    off, and how heavy the tails of that are, is learnt for each column.

    Parameters
    ----------
    cutoff : "adaptive" or float, default="adaptive"
        From where on a cell deviates: as many cells as exceed what the law of the ordinary ones explains, hardly
        any where nothing is wrong; or the quantile of that law, 0.99 for 1 % of the ordinary cells.
    transform_columns : bool, default=True
        Whether skewed columns are transformed. Expected values are in the units of the table either way.

    Attributes
    ----------
    cell_mask_ : ndarray of shape (n_samples, n_features)
        True where a cell deviates; False where it is missing or its column is left out.
    cell_scores_ : ndarray of shape (n_samples, n_features)
        (value − expected)/its σ, of transformed values; beyond ±``threshold_`` a cell deviates.
    expected_ : table like X
        What the other cells of the row expect, in every cell. Columns left out are as they were.
    imputed_ : table like X
        X with the deviating and the missing cells replaced by what was expected; whole numbers stay whole.
    row_scores_ : ndarray of shape (n_samples,)
        How unlikely the cells of a row are taken together, about standard normal for ordinary rows.
    threshold_ : float
        Of the scores.
    left_out_ : dict
        The columns that were not judged, and why.
    row_names_ : ndarray of shape (n_samples,) or None
        The index of a data frame, unless it only numbers the rows.
    n_features_in_ : int
        The number of columns, those left out included.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X is a data frame.

    See Also
    --------
    TrimmedCovariance : Rows that are wrong as a whole.

    Notes
    -----
    Columns of text, dates and yes or no are left out; text that reads as numbers ("£21,250") is read. A value that more
    than half of a column share is left alone, and only the other values of that column are judged. Infinite cells
    deviate. Up to 20 % of all cells may be wrong, fewer than half of any column.

    References
    ----------
    P. J. Rousseeuw and W. Van den Bossche (2018), Detecting deviating data cells, Technometrics 60. J. Raymaekers and
    P. J. Rousseeuw (2021), Handling cellwise outliers by sparse regression and robust covariance; Transforming
    variables to central normality; (2023), The cellwise minimum covariance determinant estimator.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> size = rng.lognormal(size=200)
    >>> X = np.column_stack([size * 10, size**2, size * 3]) * rng.lognormal(sigma=0.1, size=(200, 3))
    >>> X[7, 1] *= 10
    >>> model = CellwiseOutliers().fit(X)
    >>> worst = model.table()[0]
    >>> worst["row"], worst["column"], bool(abs(worst["expected"] / (X[7, 1] / 10) - 1) < 0.2)
    (7, 'x1', True)
    """

    cell_mask_: Flags
    cell_scores_: Floats
    expected_: Any
    imputed_: Any
    row_scores_: Floats
    threshold_: float
    left_out_: dict[Any, str]
    row_names_: NDArray[Any] | None
    _table: OutlierTable
    _model: TableModel | None
    _used: NDArray[np.int64]
    _whole: Flags

    def __init__(self, *, cutoff: float | str = "adaptive", transform_columns: bool = True) -> None:
        self.cutoff = cutoff
        self.transform_columns = transform_columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what cells are like, and judge those of X.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The table; NaN where a value is missing.
        y : Ignored
            Not used, present for scikit-learn's pipelines.

        Returns
        -------
        object
            The fitted estimator.
        """
        with intact(self):
            level = _check_cutoff(self.cutoff)
            table = self._read(X, reset=True)
            self.left_out_ = {table.names[j]: why for j, why in enumerate(table.left_out) if why}
            self._used = np.array([j for j, why in enumerate(table.left_out) if not why], dtype=np.int64)
            self._model, self._whole = None, np.zeros(0, dtype=bool)
            if len(self._used):
                values = table.values[:, self._used]
                check_magnitude(np.where(np.isfinite(values), values, 0.0), "X")
                self._model = TableModel.fit(values, self.transform_columns, level)
                self._whole = np.array([_is_whole(x) for x in values.T])
                if not self._model.settled:
                    warn(
                        "which cells deviate had not settled when the rounds ended: doubt those near threshold_. "
                        "Columns that are not normal after any transform do that; leave them out.",
                        ConvergenceWarning,
                    )
            else:
                warn(f"no column of X could be judged: {_reasons(self.left_out_)}.")
            self.threshold_ = np.inf if self._model is None else self._model.threshold
            found = self._judged(table)
            self.cell_mask_, self.cell_scores_, self.row_scores_ = found.mask, found.scores, found.row_scores
            self.expected_ = table.like(self._used, found.expected, self._whole, np.ones_like(found.mask))
            self.imputed_ = table.like(self._used, found.expected, self._whole, found.replaced)
            self.row_names_, self._table = table.index, self._listed(table, found)
        return self

    def transform(self, X: Any) -> Any:
        """The table with its deviating and missing cells replaced by what was expected there.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows, seen or not.

        Returns
        -------
        table like X
            A data frame for a data frame, an array for an array.
        """
        check_is_fitted(self, "cell_mask_")
        table = self._read(X, reset=False)
        found = self._judged(table)
        return table.like(self._used, found.expected, self._whole, found.replaced)

    def predict(self, X: Any) -> Flags:
        """Which cells of rows deviate.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows, seen or not.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            True where a cell deviates.
        """
        check_is_fitted(self, "cell_mask_")
        return self._judged(self._read(X, reset=False)).mask

    def score_cells(self, X: Any) -> Floats:
        """How far the cells of rows are from what was expected, in σ and with their sign.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows, seen or not.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Beyond ±``threshold_`` a cell deviates; 0 where it is missing or its column is left out.
        """
        check_is_fitted(self, "cell_mask_")
        return self._judged(self._read(X, reset=False)).scores

    def table(self, X: Any = None) -> OutlierTable:
        """The deviating cells, worst first.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), default=None
            Rows, seen or not; None for those of the fit.

        Returns
        -------
        OutlierTable
            Columns: row (and name, where X has an index), column, value, expected, score.
        """
        check_is_fitted(self, "cell_mask_")
        if X is None:
            return self._table
        table = self._read(X, reset=False)
        return self._listed(table, self._judged(table))

    def _verdict(self) -> NotebookVerdict | None:
        if "cell_mask_" not in vars(self):
            return None
        wrong, rows = int(self.cell_mask_.sum()), int(self.cell_mask_.any(axis=1).sum())
        judged = len(self.cell_mask_) * len(self._used)
        part = f" ({in_percent(wrong / judged)})" if judged else ""
        sentence = f"{wrong:,} of {judged:,} cells deviate{part}, in {rows:,} of {len(self.cell_mask_):,} rows."
        names = [name for name in ("column", "value", "expected", "score") if name in self._table]
        row = self._table["name" if "name" in self._table else "row"]
        worst = OutlierTable({"row": row, **{name: self._table[name] for name in names}}).head(SHOWN)
        caveats = (f"columns that were not judged: {_reasons(self.left_out_)}.",) if self.left_out_ else ()
        return NotebookVerdict(sentence, worst, "The worst cells:", caveats)

    def _judged(self, table: NumberTable) -> _Found:
        """All columns, those left out with neither scores nor expectations."""
        shape = table.values.shape
        mask, scores, expected = np.zeros(shape, dtype=bool), np.zeros(shape), table.values.copy()
        row_scores = np.zeros(shape[0])
        if self._model is not None:
            cells = self._model.judge(table.values[:, self._used])
            mask[:, self._used], scores[:, self._used], row_scores = cells.mask, cells.scores, cells.row_scores
            expected[:, self._used] = cells.expected
        return _Found(mask, scores, expected, row_scores, mask | np.isnan(table.values))

    def _listed(self, table: NumberTable, found: _Found) -> OutlierTable:
        i, j = np.nonzero(found.mask)
        order = np.argsort(-np.abs(found.scores[i, j]), kind="stable")
        i, j = i[order], j[order]
        names = {} if table.index is None else {"name": table.index[i]}
        columns = np.array([str(table.names[k]) for k in j], dtype=np.str_)
        values = {"value": table.values[i, j], "expected": found.expected[i, j], "score": found.scores[i, j]}
        return OutlierTable({"row": i, **names, "column": columns, **values})

    def _read(self, X: Any, reset: bool) -> NumberTable:
        if is_sparse(X):
            raise TypeError("X is sparse, and CellwiseOutliers takes dense tables: give X.toarray().")
        if not hasattr(X, "iloc"):
            X = check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
            if X.dtype.kind == "c":
                raise ValueError("Complex data not supported: give real numbers.")
        elif not hasattr(X, "columns"):
            raise ValueError("Expected 2D array, got a Series instead: give X.to_frame().")
        elif 0 in X.shape:
            raise ValueError(f"X is empty: shape {X.shape}; give at least one row and one column.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return NumberTable.of(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@final
@dataclass(frozen=True)
class _Found:
    """What is known of each cell; ``replaced``: deviating or missing."""

    mask: Flags
    scores: Floats
    expected: Floats
    row_scores: Floats
    replaced: Flags


def _is_whole(x: Floats) -> bool:
    """Whether a column holds whole numbers, wrong cells apart."""
    known = x[np.isfinite(x)]
    return bool(np.mean(known == np.rint(known)) > WHOLE)


def _reasons(left_out: dict[Any, str]) -> str:
    shown = [f"{name}: {why}" for name, why in list(left_out.items())[:5]]
    return "; ".join(shown) + ("; …" if len(left_out) > 5 else "")


def _check_cutoff(cutoff: float | str) -> float | None:
    """The share of ordinary cells beyond; None to adapt it to the data."""
    if isinstance(cutoff, str) and cutoff == "adaptive":
        return None
    if isinstance(cutoff, Real) and 0.5 <= cutoff < 1.0:
        return 1.0 - float(cutoff)
    raise ValueError(f'cutoff must be "adaptive" or a quantile from 0.5 to below 1, got {cutoff!r}.')
