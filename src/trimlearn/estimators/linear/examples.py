"""The data of a linear model: checked, each distinct row once, and results spread over all rows again."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.validation import is_sparse
from trimlearn.estimators import streamed
from trimlearn.estimators.inputs import check_counts, check_data
from trimlearn.robust.distinct import distinct_rows
from trimlearn.smart.method import SMALL


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

    def weighed(self, w: np.ndarray) -> Examples:
        """The same rows, each counted wᵢ times as much, in the dtype of X."""
        return replace(self, s=(w if self.s is None else w * self.s).astype(self.X.dtype))


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

    def given(self, values: np.ndarray) -> np.ndarray:
        """What is said of the distinct rows, for each of the given rows that count."""
        return values if self.where is None else np.asarray(values[self.where[self.where >= 0]])

    def spread(self, *columns: tuple[np.ndarray, Any]) -> list[np.ndarray]:
        """One entry for each given row, from pairs: the entries of the distinct rows, and of those that are gone."""
        if self.where is None:
            return [values for values, _ in columns]
        spread = [np.asarray(values[self.where]) for values, _ in columns]
        for entries, (_, elsewhere) in zip(spread, columns, strict=True):
            entries[self.where < 0] = elsewhere
        return spread


def check_examples(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool, y_numeric: bool = False, relative: bool = False
) -> Examples:
    """Training data as scikit-learn checks them; small ones dense. y_numeric: the target holds numbers, not labels.
    relative: only the ratios of weights matter."""
    X, t = check_data(
        estimator, X, y, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32), y_numeric=y_numeric,
        ensure_min_samples=2,
    )  # fmt: skip
    s = None if sample_weight is None else check_counts(sample_weight, X, X.dtype, relative=relative)
    data = Examples(X, t, s)
    return data if data.large or not is_sparse(X) else Examples(X.toarray(), t, s)


def check_features(estimator: Any, X: Any) -> Any:
    """Rows to be predicted by a fitted model."""
    check_is_fitted(estimator, "coef_")
    if isinstance(X, (str, os.PathLike)):
        raise ValueError(f"X is the path {X}: open it by open_dataset(path, like=the dataset of the fit).")
    return check_data(estimator, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
