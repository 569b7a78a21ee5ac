"""The forward search: from a robust start to all rows, one at a time, with everything that moves on the way."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_X_y

from trimlearn._utils.validation import check_magnitude
from trimlearn._utils.warn import warn
from trimlearn.estimators.base import row_names
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.regression.forward import DistanceSearch, RegressionSearch, Search, Trace, signal
from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.scatter.mcd import mcd

# Share of copies from which on they are told (a choice): of 8 clean samples of 60 rows none has outliers where a fifth
# are copies, and two have more than 20 where half are.
COPIES = 0.25

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@final
@dataclass(frozen=True)
class ForwardSearch:
    """A forward search: what was fitted to subsets of growing size.

    Parameters
    ----------
    sizes : ndarray of shape (k,)
        Of the subsets, up to n.
    coef : ndarray of shape (k, c)
        The coefficients at each size, the intercept first where there is one; without a target the means.
    scale : ndarray of shape (k,)
        √(RSS/(m − c)) of each fit, which grows with m; without a target the 2p-th root of the determinant.
    min_deletion_residual : ndarray of shape (k,)
        The least deletion residual of the rows outside each subset, NaN for the last, which has all rows; without a
        target the least Mahalanobis distance.
    entry : ndarray of shape (n,)
        The size from which on a row belongs to the subset: the last to come in are the oddest.
    monitored : ndarray of shape (m,)
        The sizes for which residuals were kept: all of them up to 2,000 rows.
    residuals : ndarray of shape (m, n)
        Residuals of all rows at each of these, in units of the final scale; distances without a target.
    outliers : ndarray
        The numbers of the rows that the envelopes call outliers, the oddest first.
    names : ndarray of shape (n,) or None
        The index of the data frame.

    See Also
    --------
    forward_search : Makes it.
    trimlearn.plots.plot_forward_search : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import forward_search
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = X @ [1, 2] + rng.normal(size=60)
    >>> y[:4] += 9
    >>> np.sort(forward_search(X, y).outliers)
    array([0, 1, 2, 3])
    """

    sizes: Ints
    coef: Floats
    scale: Floats
    min_deletion_residual: Floats
    entry: Ints
    monitored: Ints
    residuals: Floats
    outliers: Ints
    names: NDArray[Any] | None
    _search: Search

    def envelope(self, level: float) -> Floats:
        """The level that the least deletion residual of clean normal data stays below, with this probability.

        Parameters
        ----------
        level : float
            Between 0 and 1, such as 0.01, 0.5 or 0.99.

        Returns
        -------
        ndarray of shape (k,)
            At each size; NaN for the last.
        """
        if not isinstance(level, Real) or not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        n = self._search.n
        return np.append(self._search.upper(self.sizes[:-1], level, n), np.nan)

    def table(self) -> OutlierTable:
        """The rows in the order in which they came in, the last first.

        Returns
        -------
        OutlierTable
            Columns: row (and name), entry, outlier, residual (the last that was monitored before the row came in).
        """
        n = len(self.entry)
        before = np.maximum(np.searchsorted(self.monitored, self.entry) - 1, 0)
        columns: dict[str, Any] = {"row": np.arange(n)}
        if self.names is not None:
            columns["name"] = self.names
        columns |= {"entry": self.entry, "outlier": np.isin(np.arange(n), self.outliers)}
        columns["residual"] = self.residuals[before, np.arange(n)]
        return OutlierTable(columns).chosen(np.lexsort((-np.abs(columns["residual"]), -self.entry)))


def forward_search(X: Any, y: Any = None, *, fit_intercept: bool = True, seed: int = 0) -> ForwardSearch:
    """Fit few rows that agree, then one more, and so on to all of them, and see what moves when.

    The start is the least trimmed squares fit (without a target, the minimum covariance determinant), cut down to the
    fewest rows of smallest residuals that determine a fit. Each next subset holds the rows that the last fit explains
    best. Outliers come in at the end, and the moment they do, residuals, coefficients and scale move.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The features.
    y : array-like of shape (n,), optional
        The target. Without one, rows are judged by their Mahalanobis distances.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    seed : int, default=0
        Of the search for the start.

    Returns
    -------
    ForwardSearch
        Everything that was monitored, and the outliers by its envelopes.

    See Also
    --------
    trim_path : The same model for every contamination, from the other end.

    References
    ----------
    A. C. Atkinson and M. Riani (2000), Robust diagnostic regression analysis, Springer. M. Riani, A. C. Atkinson and A.
    Cerioli (2009), Finding an unknown number of multivariate outliers, J. R. Statist. Soc. B 71.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import forward_search
    >>> x = np.arange(30.0)
    >>> y = x + np.sin(x**2)
    >>> y[3] = 25.0
    >>> search = forward_search(x[:, None], y)
    >>> search.outliers, search.table()[0]["row"]
    (array([3]), 3)
    """
    names = row_names(X)
    if y is None:
        X = check_array(X, dtype=np.float64, ensure_min_samples=4)
        check_magnitude(X, "X")
        if not np.any(np.ptp(X, axis=0)):
            raise ValueError("all rows of X are the same: there are no distances to search by.")
        search, order, unit = _distances(X, seed)
    else:
        X, y = check_X_y(X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=4)
        check_magnitude(X, "X")
        check_magnitude(y, "y")
        centre = np.median(X, axis=0) if fit_intercept else np.zeros(X.shape[1])  # or offsets would cost digits
        search, order, unit = _regression(X - centre, np.asarray(y, dtype=np.float64), fit_intercept, seed)
    if search.p + 2 > len(X):
        raise ValueError(f"{len(X)} rows are too few for {search.p} coefficients: give at least {search.p + 2}.")
    _warn_of_copies(X if y is None else np.column_stack([X, y]))
    trace = search.run(order)
    if y is not None and fit_intercept:
        trace.coef[:, 0] -= trace.coef[:, 1:] @ centre
    return _made(search, trace, names, unit)


def _warn_of_copies(rows: Floats) -> None:
    """UserWarning where so many rows are copies of others that envelopes, which are for independent rows, are left."""
    copies = 1 - len(distinct_rows(rows)[0]) / len(rows)
    if copies > COPIES:
        warn(
            f"{copies:.0%} of the rows are copies of others, which agree by design: where the first ones end, the "
            "envelopes are left, and rows may be called outliers that are none. Search among the distinct rows.",
        )


def _made(search: Search, trace: Trace, names: NDArray[Any] | None, in_scale: bool) -> ForwardSearch:
    unit = trace.scale[-1] if in_scale and trace.scale[-1] > 0 else 1.0
    clean = signal(search, trace)
    rows = np.flatnonzero(trace.entry > clean)
    last = np.abs(trace.residuals[max(int(np.searchsorted(trace.monitored, clean)) - 1, 0)])
    outliers = rows[np.argsort(-last[rows], kind="stable")]
    found = trace.coef, trace.scale, trace.deletion, trace.entry, trace.monitored, trace.residuals / unit
    return ForwardSearch(trace.sizes, *found, outliers, names, search)


def _regression(X: Floats, y: Floats, fit_intercept: bool, seed: int) -> tuple[Search, Ints, bool]:
    A = np.column_stack([np.ones(len(X)), X]) if fit_intercept else X
    n, q = A.shape
    fit = least_trimmed_squares(A, y, min(n, (n + q + 1) // 2), seed=seed)
    r = np.abs(y - A @ fit.coef)
    return RegressionSearch(A, y, fit.w > 0), np.argsort(r, kind="stable"), True


def _distances(X: Floats, seed: int) -> tuple[Search, Ints, bool]:
    n, p = X.shape
    fit = mcd(X, np.ones(n), float(min(n, (n + p + 1) // 2)), shrinkage=None if n < 5 * p else 0.0, seed=seed)
    return DistanceSearch(X, fit.w > 0), np.argsort(fit.squared_distances(X), kind="stable"), False
