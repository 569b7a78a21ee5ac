"""Trimmed models of a linear prediction: regression, generalised linear models, classification."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.intact import intact
from trimlearn.estimators.base import SETTLED, Trimmed, check_counts, row_names, warn_if_short
from trimlearn.estimators.inputs import check_data
from trimlearn.inference.design import design
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.progress import stage
from trimlearn.regularizers import Regularizer
from trimlearn.robust.distinct import distinct_rows
from trimlearn.smart.method import Method, Record
from trimlearn.smart.sizes import FEW, SMALL
from trimlearn.solution import Status
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex, WeightSet

__all__ = ["Data", "Fit", "TrimmedPredictor"]


@dataclass(frozen=True)
class Data:
    """Validated training data: X, the target t in the form the loss wants, sample weights s or None."""

    X: Any
    t: np.ndarray
    s: np.ndarray | None

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def S(self) -> float:
        return float(self.n if self.s is None else self.s.sum(dtype=np.float64))

    @property
    def large(self) -> bool:
        """Whether it pays to leave X as it is, sparse where it is sparse."""
        return self.n * int(self.X.shape[1]) > SMALL

    def distinct(self) -> tuple[Data, np.ndarray]:
        """The different rows of positive weight, sorted, with the weight of all their copies; and where each row went
        among them, −1 for those of weight 0.

        Fitted to these, a model depends neither on the order of the rows nor on how weights are spelled.
        """
        kept, s, where = distinct_rows(np.column_stack([self.X, self.t]), self.s)
        return Data(self.X[kept], self.t[kept], None if np.all(s == 1) else s.astype(self.X.dtype)), where


@dataclass(frozen=True)
class Fit:
    """A model x, the weights w it was fitted with, and how that went."""

    x: Array
    w: np.ndarray
    objective: float
    history: list[Record]
    status: Status


class TrimmedPredictor(Trimmed):
    """Fits of one model to one set of data: trimmed, and to rows as they are weighted."""

    fit_intercept: bool
    method: Method | None
    max_passes: float | None
    tol: float | None
    warm_start: bool

    raw_weights_: np.ndarray
    enough: ClassVar[float] = 200  # passes over large data, unless max_passes says otherwise
    falling: ClassVar[float] = SETTLED  # share of F whose loss in the last quarter of these is a fit stopped short
    _x: Array  # of the trimmed fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X (n, p), dense or CSR, and y (n,); sample_weight: 2 is the row twice, 0 its removal."""
        with intact(self):
            data = self._validate(X, y, sample_weight, reset=True)
            self._row_names = row_names(X)
            return self._refit(data, self.contamination, warm=self.warm_start and self._resumes(data))

    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Data:
        X, y = check_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32), **self._checks()
        )
        s = None
        if sample_weight is not None:
            s = check_counts(sample_weight, X, X.dtype)
        data = Data(X, self._target(y, X.dtype, reset), s)
        return data if data.large else replace(data, X=design(X, intercept=False).astype(X.dtype, copy=False))

    def _fit(self, data: Data, h: float | None, warm: bool) -> Self:
        self._training = data
        if data.large:
            self._fit_rows(data, h, warm)
            return self
        work, where = data.distinct()
        self._fit_rows(work, h, warm)
        gone = where < 0
        scores = self._scores(Data(data.X[gone], data.t[gone], None)) if gone.any() else np.empty(0)
        self.outlier_scores_ = _spread_out(self.outlier_scores_, where, scores)
        self.weights_ = _spread_out(self.weights_, where, scores <= self.threshold_)
        self.raw_weights_ = _spread_out(self.raw_weights_, where, 0.0)
        self._spread_out(data, where)
        return self

    @abstractmethod
    def _fit_rows(self, data: Data, h: float | None, warm: bool) -> None:
        """Fit, and set all attributes."""

    def _spread_out(self, data: Data, where: np.ndarray) -> None:
        """Spread what else has one entry for every distinct row over all rows."""
        return

    def _resumes(self, data: Data) -> bool:
        """Whether there was a fit to data of this kind."""
        return hasattr(self, "_x") and self._x.shape[0] == data.X.shape[1] + self.fit_intercept

    def _publish(self, raw: Fit, x: Array, weights: np.ndarray, contamination: float) -> None:
        """Set the attributes that every such model has."""
        self._x, self.objective_ = raw.x, raw.objective
        self.history_, self.n_iter_ = raw.history, max(1, len(raw.history) - 1)
        self.raw_coef_, self.raw_intercept_ = self._parts(raw.x)
        self.coef_, self.intercept_ = self._parts(x)
        self.raw_weights_, self.weights_, self.contamination_ = raw.w, weights, contamination

    # -- what a model is --------------------------------------------------------------------------------------------

    @abstractmethod
    def _checks(self) -> dict[str, Any]:
        """Options of scikit-learn's validation."""

    @abstractmethod
    def _target(self, y: np.ndarray, dtype: Any, reset: bool) -> np.ndarray:
        """y in the form the loss wants; ``reset``: learn from it what there is to learn."""

    @abstractmethod
    def _loss(self, data: Data) -> PredictionLoss:
        """f."""

    @abstractmethod
    def _r2(self, kept: float, S: float) -> Regularizer:
        """The penalty, scaled so that the optimum is scikit-learn's on the rows kept, whose weight is ``kept``."""

    @abstractmethod
    def _parts(self, x: Array) -> tuple[Any, Any]:
        """coef and intercept in scikit-learn's shapes."""

    def _starts(self, data: Data, h: float) -> list[str | Array]:
        """Where to start: a start by name, or x. The best objective wins."""
        return ["continuation"]

    def _method(self) -> Method | None:
        """How to solve; None: as `solve` sees fit."""
        return self.method

    def _weight_set(self, data: Data, h: float) -> WeightSet:
        return CappedSimplex(h)

    # -- fits ---------------------------------------------------------------------------------------------------------

    def _trimmed(self, data: Data, h: float, x0: Array | None) -> Fit:
        """The trimmed fit that keeps h."""
        stage(f"trimmed fit, keeping {h:.0f} of {data.S:.0f} rows")
        problem = Problem(self._loss(data), self._weight_set(data, h), self._r2(h, data.S), data.s)
        starts = [x0] if x0 is not None else self._starts(data, h)
        best = min((self._solve(problem, start) for start in starts), key=lambda fit: fit.objective)
        self._warn(best)
        return best

    def _solve(self, problem: Problem, start: str | Array) -> Fit:
        where = {"start": start} if isinstance(start, str) else {"x0": start}
        max_passes, tol = self._limits(problem)
        found = solve(problem, self._method(), max_passes=max_passes, tol=tol, seed=self._seed(), **where)
        return Fit(found.x, np.asarray(found.w), found.objective, found.history, found.status)

    def _limits(self, problem: Problem) -> tuple[float, float]:
        """max_passes and tol, where they are left open: the closer, the less a pass costs."""
        parameters = prod(problem.loss.x_shape)
        small = problem.n * parameters <= SMALL
        passes, tol = (2000, 1e-9) if small and parameters <= FEW else (1000, 1e-5) if small else (self.enough, 1e-3)
        return passes if self.max_passes is None else self.max_passes, tol if self.tol is None else self.tol

    def _warn(self, fit: Fit) -> None:
        """ConvergenceWarning where a fit stopped while F was still falling: by a thousandth in the last quarter of the
        passes, or by ``falling`` where it was ours to say how many are enough for large data."""
        ours = self.max_passes is None and len(fit.w) * fit.x.size > SMALL
        warn_if_short(fit.status, fit.history, type(self).__name__, self.falling if ours else SETTLED)

    def _untrimmed(self, data: Data, weights: np.ndarray, x0: Array) -> Fit:
        """The fit to rows as they are weighted."""
        s = weights if data.s is None else weights * data.s
        kept = float(s.sum(dtype=np.float64))
        stage(f"fit to the {kept:.0f} rows explained")
        fit = self._solve(Problem(self._loss(data), AllOnes(), self._r2(kept, kept), s), x0)
        self._warn(fit)
        return fit


def _spread_out(values: np.ndarray, where: np.ndarray, elsewhere: Any) -> np.ndarray:
    """values[where], and ``elsewhere`` where that is negative."""
    spread = np.asarray(values[where])
    spread[where < 0] = elsewhere
    return spread
