"""The same model for every contamination: what it costs, how the coefficients move, and who leaves when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from trimlearn._utils.threads import jobs
from trimlearn.estimators.base import row_names
from trimlearn.estimators.origins import column_names

PARAMETERS = ("coef_", "components_", "precision_", "covariance_")  # what a model's coefficients are called


@final
@dataclass(frozen=True)
class TrimPath:
    """A trimmed model along ``contamination``, which increases from row to row.

    Parameters
    ----------
    contamination : ndarray of shape (m,)
        The shares trimmed.
    objective : ndarray of shape (m,)
        F at each.
    coef : ndarray of shape (m, c)
        The coefficients, flattened; c = 0 for a model that has none.
    weights : ndarray of shape (m, n)
        Those of the trimmed fits.
    scale : ndarray of shape (m,)
        The robust scale, NaN for a model that has none.
    auto : float, optional
        What the same estimator finds with contamination="auto".
    names : ndarray of shape (n,), optional
        What the rows are called: the index of a data frame.
    features : tuple of str, optional
        What the coefficients are called, where there is one for each column of X.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegression, trim_path
    >>> X = np.arange(10.0)[:, None]
    >>> y = np.append(X[:9, 0] + 0.1 * np.sin(X[:9, 0]), 50.0)
    >>> path = trim_path(TrimmedLinearRegression(random_state=0), X, y, grid=[0, 0.1, 0.2])
    >>> float(path.leaves_at[-1])
    0.1
    """

    contamination: np.ndarray
    objective: np.ndarray
    coef: np.ndarray
    weights: np.ndarray
    scale: np.ndarray
    auto: float | None = None
    names: np.ndarray | None = None
    features: tuple[str, ...] | None = None

    @property
    def leaves_at(self) -> np.ndarray:
        """The contamination from which on a row has weight 0; inf if it never leaves."""
        out = self.weights <= 0
        stays_out = np.logical_and.accumulate(out[::-1], axis=0)[::-1]
        first = np.argmax(stays_out, axis=0)
        return np.where(stays_out[-1], self.contamination[first], np.inf)

    @property
    def elbow(self) -> float:
        """The contamination of the path to choose: the one nearest to ``auto``.

        What "auto" asks is how many of the residuals of a fit to half of the rows no law of good ones explains. Where
        that was not asked, the elbow is where √F stops falling steeply, the point of its graph furthest below the line
        between its ends (Satopää et al. 2011): a poor substitute, for √F falls fastest with the few worst outliers,
        and goes on falling, more slowly, with all the others.
        """
        c, r = self.contamination, np.sqrt(np.maximum(self.objective - min(0.0, self.objective.min()), 0.0))
        if self.auto is not None:
            return float(c[np.argmin(np.abs(c - self.auto))])
        if len(c) < 3 or r[0] <= r[-1]:
            return float(c[0])
        below = (r[0] - r) / (r[0] - r[-1]) - (c - c[0]) / (c[-1] - c[0])
        return float(c[np.argmax(below)])


def trim_path(
    estimator: Any,
    X: Any,
    y: Any = None,
    grid: ArrayLike | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> TrimPath:
    """Fit ``estimator``, any of this package, for every contamination of a grid.

    The most trimmed model is fitted first, with all the starts that the estimator has; each of the others starts from
    the last one (`rethreshold`). In this direction the path is robust: outliers are out before they can pull, while
    an untrimmed fit may be captured by bad leverage points for good. Then the path is walked back, and of the two
    models for a contamination the one of lower objective is kept. The fits are the trimmed ones, without reweighting.
    One more fit, with contamination="auto" and otherwise as the estimator is, says where on the path to stay.

    Parameters
    ----------
    estimator : trimmed estimator
        What to fit; it is cloned.
    X : array-like or sparse matrix of shape (n, p)
        The rows.
    y : array-like of shape (n,), optional
        The target, where the estimator has one.
    grid : array-like, optional
        The shares to trim, by default 0, 0.025, …, 0.45.
    sample_weight : array-like of shape (n,), optional
        How many times each row counts.
    n_jobs : int or None
        2 walks the path and makes the fit with contamination="auto" at the same time, in two processes; None does one
        after the other.

    Returns
    -------
    TrimPath
        The models, by increasing contamination.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import TrimmedLinearRegression, trim_path
    >>> X = np.arange(40.0)[:, None]
    >>> y = 2 * X[:, 0] + np.sin(7 * X[:, 0])
    >>> y[:8] += 100
    >>> path = trim_path(TrimmedLinearRegression(random_state=0), X, y)
    >>> path.elbow, bool((path.leaves_at[:8] <= 0.2).all()), path.coef[-1].round(1)
    (0.2, True, array([2.]))
    """
    shares, weighted = _grid(grid), {} if sample_weight is None else {"sample_weight": sample_weight}
    given = (estimator, X, y, weighted)
    auto, best = jobs(_called, [(_auto, *given), (_walked, *given, shares)], n_jobs, processes=True)
    objective, coef, weights, scale = map(np.array, zip(*(best[float(share)] for share in shares), strict=True))
    columns = column_names(X)
    features = tuple(columns) if columns is not None and len(columns) == coef.shape[1] else None
    return TrimPath(shares, objective, coef, weights, scale, float(auto), row_names(X), features)


def _called(part: Callable[..., Any], *given: Any) -> Any:
    return part(*given)


def _auto(estimator: Any, X: Any, y: Any, weighted: dict[str, Any]) -> float:
    """The share that the estimator itself takes to be bad."""
    return float(clone(estimator).set_params(contamination="auto").fit(X, y, **weighted).contamination_)


def _walked(estimator: Any, X: Any, y: Any, weighted: dict[str, Any], shares: np.ndarray) -> dict[float, Any]:
    """The better of the two models for each share: from the most trimmed to the least, and back."""
    fitted = clone(estimator).set_params(contamination=float(shares[-1]), reweight=False).fit(X, y, **weighted)
    best = {float(shares[-1]): _seen(fitted)}
    for share in (*map(float, shares[-2::-1]), *map(float, shares[1:])):
        seen = _seen(fitted.rethreshold(share))
        best[share] = min(best.get(share, seen), seen, key=lambda model: model[0])
    return best


def _seen(fitted: Any) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Objective, coefficients, weights and scale of a model on the path."""
    scale = float(vars(fitted).get("scale_", np.nan))
    return float(fitted.objective_), _coefficients(fitted), np.array(fitted.weights_), scale


def _grid(grid: ArrayLike | None) -> np.ndarray:
    shares = np.unique(np.linspace(0, 0.45, 19).round(3) if grid is None else np.asarray(grid, dtype=np.float64))
    if shares.ndim != 1 or len(shares) == 0 or not np.all((shares >= 0) & (shares < 1)):
        raise ValueError(f"grid must hold shares from 0 to below 1, got {grid!r}.")
    return shares


def _coefficients(fitted: Any) -> np.ndarray:
    """The coefficients as one vector; a wrapper's are those of the model it wraps."""
    known = vars(fitted)
    inner = known.get("estimator_")
    if inner is not None:
        return _coefficients(inner)
    name = next((name for name in PARAMETERS if known.get(name) is not None), None)
    return np.zeros(0) if name is None else np.ravel(np.asarray(known[name], dtype=np.float64))
