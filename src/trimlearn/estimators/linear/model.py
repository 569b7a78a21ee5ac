"""What linear models share: a fit to rows wherever they lie, and what a regression says about rows, seen or unseen.

What a linear regression says where the rows it flags may be right.

The data of a linear model: checked, each distinct row once, and results spread over all rows again.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Self, final

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.arrays import Array
from trimlearn._utils.validation import is_collection, is_sparse
from trimlearn._utils.warn import warn
from trimlearn.estimators import streamed
from trimlearn.estimators.base import Trimmed
from trimlearn.estimators.inputs import check_counts, check_data, check_numbers
from trimlearn.estimators.on_dask import OnDask, is_on_dask, lazily
from trimlearn.estimators.streamed import by_blocks, opened, read_whole, set_column_names
from trimlearn.inference.infer import IntervalMixin
from trimlearn.robust.distinct import distinct_rows
from trimlearn.robust.regression.averaging import NEAREST
from trimlearn.robust.regression.misfit import bends, looks_like_misfit, looks_skewed, widens
from trimlearn.robust.verdict import Verdict
from trimlearn.smart.method import SMALL
from trimlearn.streams import Dataset


@final
@dataclass(frozen=True)
class Examples:
    """Rows X (n, p), dense or CSR, the target t in the form the loss wants, and sample weights s; None: all are 1.

    S: the total weight of the n rows. large: whether X is left as it is, sparse where it is sparse, rows in any order.
    many: whether labels may be judged as those of rows on a disk are, where few rows stand for all.
    """

    X: Any
    t: np.ndarray
    s: np.ndarray | None = None
    n: int = field(init=False)
    S: float = field(init=False)
    large: bool = field(init=False)
    many: bool = field(init=False)

    def __post_init__(self) -> None:
        n, p = self.X.shape
        total = n if self.s is None else self.s.sum(dtype=np.float64)
        # derived once: the class is frozen
        vars(self).update(n=int(n), S=float(total), large=n * p > SMALL, many=n * p > streamed.WHOLE)


@final
@dataclass(frozen=True)
class Distinct:
    """The distinct ``rows`` of positive weight, sorted, with the weight of all their copies; and ``where`` each of the
    given rows went among them, −1 for those of weight 0, which are ``gone``.

    Fitted to these, a model depends neither on the order of the rows nor on how weights are spelled. Large data are not
    sorted: rows are as given, and ``where`` is None.
    """

    rows: Examples
    where: np.ndarray | None
    gone: Examples

    @classmethod
    def of(cls, data: Examples) -> Distinct:
        if data.large:
            return cls(data, None, Examples(data.X[:0], data.t[:0]))
        kept, s, where = distinct_rows(np.column_stack([data.X, data.t]), data.s)
        counts = None if np.all(s == 1) else s.astype(data.X.dtype)
        gone = where < 0
        return cls(
            Examples(data.X.take(kept, axis=0), data.t[kept], counts), where, Examples(data.X[gone], data.t[gone])
        )

    def spread(self, *columns: tuple[np.ndarray, Any]) -> list[np.ndarray]:
        """One entry for each given row, from pairs: the entries of the distinct rows, and of those that are gone."""
        if self.where is None:
            return [values for values, _ in columns]
        spread = [np.asarray(values[self.where]) for values, _ in columns]
        for entries, (_, elsewhere) in zip(spread, columns, strict=True):
            entries[self.where < 0] = elsewhere
        return spread


def check_examples(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool, y_numeric: bool = False
) -> Examples:
    """Training data as scikit-learn checks them; small ones dense. y_numeric: the target holds numbers, not labels."""
    X, t = check_data(
        estimator, X, y, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32), y_numeric=y_numeric,
        ensure_min_samples=2,
    )  # fmt: skip
    s = None if sample_weight is None else check_counts(sample_weight, X, X.dtype)
    data = Examples(X, t, s)
    return data if data.large or not is_sparse(X) else Examples(X.toarray(), t, s)


def check_features(estimator: Any, X: Any) -> Any:
    """Rows to be predicted by a fitted model."""
    check_is_fitted(estimator, "coef_")
    if isinstance(X, (str, os.PathLike)):
        raise ValueError(f"X is the path {X}: open it by open_dataset(path, like=the dataset of the fit).")
    return check_data(estimator, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))


class LinearModel(Trimmed):
    """A model that is fitted to rows wherever they lie: in memory, in files, or on the workers of a cluster."""

    warm_start: bool
    _takes_dask = True
    _x: Array  # of the trimmed fit

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None, resume: bool = True
    ) -> Self:
        """Fit to X (n, p), dense or CSR, and y (n,); sample_weight: 2 is the row twice, 0 its removal.

        X may be a dataset (`trimlearn.open_dataset`), or a path, y then being the name of the target's column: see
        docs/scale.md. X and y may be Dask collections, or X files on a cluster (`trimlearn.on_dask`): see docs/dask.md.
        checkpoint, resume: as in `trimlearn.solve`; the same call goes on where a fit was interrupted.
        """
        with self._fitting(X, y, sample_weight, checkpoint=checkpoint, resume=resume):
            if lies_elsewhere(X, y):
                data = self._from_elsewhere(X, y, sample_weight)
            else:
                data = self._validate(X, y, sample_weight, reset=True)
            if data is None:
                return self
            h = self._h(self.contamination, data.S)
            if not self._fit_many(data, h):
                self._fit(data, h, warm=self.warm_start and hasattr(self, "_x"))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _from_elsewhere(self, X: Any, y: Any, sample_weight: Any) -> Examples | None:
        """Training data that `lies_elsewhere`, where they are few enough to be read as a whole. To any others the model
        is fitted where they lie; None says so."""
        if is_on_dask(X):
            self._fit_on_dask(X, y, sample_weight)
            return None
        stream = opened(X, y, sample_weight, fit_of=self)
        if stream is None:
            return self._validate(X, y, sample_weight, reset=True)
        whole = read_whole(stream, labels=is_classifier(self))
        if whole is None:
            self._fit_stream(stream, self._h(self.contamination, stream.n))
            return None
        data = self._validate(*whole, sample_weight, reset=True)
        set_column_names(self, stream)
        return data

    @abstractmethod
    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Examples:
        """The data as `_fit` wants them."""

    @abstractmethod
    def _fit_many(self, data: Examples, h: float | None) -> bool:
        """Whether rows in memory were so many that the model was fitted to them in another way than by `_fit`."""

    @abstractmethod
    def _fit_on_dask(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit to rows on a cluster."""

    @abstractmethod
    def _fit_stream(self, data: Dataset, h: float | None) -> None:
        """Fit to a dataset that is larger than memory, keeping h; None: find out."""


class LinearRegressor(IntervalMixin, RegressorMixin, LinearModel):  # type: ignore[misc]
    """Predictions, and judgements of targets, by ``coef_``, ``intercept_`` and the scale that a fit has found."""

    coef_: np.ndarray
    intercept_: float

    def predict(self, X: Any) -> np.ndarray:
        """The mean of y for every row of X, which may be a dataset, or Dask's."""
        if is_on_dask(X):
            return lazily(self, X, "predict", self.coef_.dtype)
        if isinstance(X, Dataset):
            return by_blocks(self, X, lambda rows, _: self._means(rows))
        return self._means(check_features(self, X))

    def outlier_score(self, X: Any, y: Any = None) -> np.ndarray:
        """|residual|/scale_ for rows seen or unseen: by how many standard deviations they are off. Larger is worse.

        Where the model is of a family, residuals are those of the deviance.
        """
        if is_on_dask(X):
            return lazily(self, X, "outlier_score", self.coef_.dtype, y=y)
        if (stream := opened(X, y)) is not None:
            return by_blocks(self, stream, lambda rows, t: self._scores(Examples(rows, t)))
        X = check_features(self, X)
        kind = np.result_type(X.dtype, self.coef_.dtype)
        return self._scores(Examples(X, check_numbers(np.asarray(y), kind, type(self).__name__)))

    @abstractmethod
    def _means(self, X: Any) -> np.ndarray:
        """The means of rows that were checked."""

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Examples:
        return check_examples(self, X, y, sample_weight, reset=reset, y_numeric=True)

    def _fit_many(self, data: Examples, h: float | None) -> bool:
        return False


def lies_elsewhere(X: Any, y: Any) -> bool:
    """Whether X and y are more than arrays in memory: files, a table and the name of its target, rows on a cluster, or
    an array that is so large that it may be streamed."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    named = isinstance(first, (str, os.PathLike)) or isinstance(y, str) or hasattr(X, "files")
    large = isinstance(X, np.ndarray) and X.size > streamed.STREAMED
    return named or large or isinstance(X, (Dataset, OnDask)) or is_collection(X)


DOUBTFUL = 0.1  # share of bad rows from which on it is asked whether they are misfit: routine data hold 1 to 10 %
FEWEST = 3  # rows on one side, of which it is asked whether errors are skewed: it changes no fit (a choice)
# Share of rows on an exact fit, below which the others are too many to be mere outliers: routine data hold 1 to 10 % of
# gross errors (Hampel, Ronchetti, Rousseeuw and Stahel 1986, section 1.2c), and some room.
EXACT = 0.85
# Share of the rows, and one at least, that is expected to be judged wrongly, from which on that is told: of 5 % of bad
# rows that is all of them (a choice).
MISTAKEN = 0.05
MAJORITY = 1.0  # standard errors by which right rows must be more than half: else both groups may be right (a choice)


def warn_of_doubt(
    rows: Examples,
    kept: float,
    coefficients: int,
    residuals: np.ndarray,
    weights: np.ndarray,
    verdict: Verdict,
    wrong: np.ndarray | None = None,
) -> None:
    """UserWarning where contamination="auto" cannot tell which rows are wrong, or where those that are flagged may be
    the model's fault: a curve, skewed errors, or errors that grow. For a fit that is not exact. wrong: how probable it
    is that each row is wrong, where the fit tells."""
    warn_of_no_trimming(rows, kept, coefficients, exact=False)
    scores, flagged = residuals / verdict.scale, weights <= 0
    about = rows.X, rows.t - residuals, scores, ~flagged
    if verdict.contamination > DOUBTFUL and looks_like_misfit(rows.X, rows.t, scores, verdict.cutoff):
        warn(
            f"{verdict.contamination:.0%} of the rows do not follow the linear fit, but seem to follow a rule of their "
            "own: the model may be too simple (a curve, a step, two groups) rather than these rows wrong. Look at the "
            "residuals over the features, or give a contamination.",
        )
    elif verdict.contamination > DOUBTFUL and verdict.contamination + MAJORITY / (2 * sqrt(rows.n)) > 0.5:
        warn(
            f"{verdict.contamination:.0%} of the rows do not follow the linear fit: nearly as many as do, so that it "
            "cannot be told which of them are right. Look at both groups, or give a contamination.",
        )
    elif bends(*about):
        warn(
            "The residuals of the rows that count bend along the fit: the model may be too simple (a curve, an "
            "interaction), or rows far out in the features pull at it. Look at the residuals over the predictions; add "
            "squares or products of features, or transform y.",
        )
    elif looks_skewed(scores, flagged, fewest=FEWEST):
        cure = "fit log(y), or a TrimmedGLM," if rows.t.min() > 0 else "transform y,"
        warn(
            f"{flagged.mean():.0%} of the rows lie far off on one side of the linear fit, but one skewed law explains "
            f"all residuals about as well: the errors may be skewed rather than these rows wrong. Then {cure} or give "
            "a contamination.",
        )
    elif flagged.any() and widens(*about):
        cure = "fit log(y), or give sample_weight," if rows.t.min() > 0 else "give sample_weight,"
        warn(
            f"{flagged.mean():.1%} of the rows are flagged, but the errors of the others change their size along the "
            f"fit: rows may be flagged because they lie where errors are large. Then {cure} or a contamination.",
        )
    elif wrong is not None and (mistakes := _expected_mistakes(scores, flagged, wrong)) > max(1.0, MISTAKEN * rows.n):
        warn(
            "It is in doubt which rows are wrong: several fits explain them about as well, and of "
            f"{flagged.sum()} rows flagged and {rows.n - flagged.sum()} others some {mistakes:.0f} are likely to be "
            "judged wrongly. Look at outlier_probability_, or give a contamination.",
        )


def _expected_mistakes(scores: np.ndarray, flagged: np.ndarray, wrong: np.ndarray) -> float:
    """How many rows are expected to be flagged though right, or not though wrong, of those that may be either."""
    return float(np.where(flagged, 1 - wrong, wrong)[np.abs(scores) > NEAREST].sum())


def warn_of_exact_fit(weights: np.ndarray) -> None:
    """UserWarning where many rows lie on the fit up to rounding, and many do not."""
    share = float(np.mean(weights > 0))
    if share < EXACT:
        warn(
            f"{share:.0%} of the rows lie exactly on the fit, the others count as outliers. If y is rounded, or holds "
            "few values, give a contamination, or use another model.",
        )


def warn_of_no_trimming(rows: Examples, kept: float, coefficients: int, *, exact: bool) -> None:
    """UserWarning where contamination="auto" has to keep all rows: a fit needs more rows than it has coefficients, and
    of these most. Where one more row than that lies exactly on the fit, none is wrong. Sample weights that sum to too
    little are warned of elsewhere."""
    agree = exact and rows.n > coefficients
    if kept >= rows.S and rows.n <= coefficients + 1 and not agree:
        warn(
            f"{rows.n} rows are too few for {coefficients} coefficients to tell which of them are wrong: nothing is "
            "trimmed. Give a contamination, with a penalty, or fewer features.",
        )
