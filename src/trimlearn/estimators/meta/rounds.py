"""By turns: fit a model to the rows that count, and let count the rows that the model explains. For any model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trimlearn._utils.warn import warn
from trimlearn.estimators.meta.crossfit import (
    EncodedExamples,
    Splits,
    crossfit,
    spare_classes,
    weight_argument,
)
from trimlearn.estimators.meta.nets import check_shapes
from trimlearn.estimators.meta.targets import Judgement, TargetKind
from trimlearn.progress import stage
from trimlearn.smart.method import Record
from trimlearn.weights import WeightSet

CONTINUATION = 4  # rounds in which h falls from S to its target, a limit on time: each fits cv models
FALLS = 1e-3  # the share by which F must fall in a round to be worth another: out of sample it need not fall at all
DOUBTFUL = 5  # times tol: the share of rows, 2.5 % by default, that may come and go without end before a warning


@dataclass
class Alternation:
    """One fit's rounds. P belongs to w: predictions by models fitted with weights w on the other folds' rows."""

    estimator: Any
    rows: EncodedExamples
    target: TargetKind
    splits: Splits
    weight_set: Callable[[float], WeightSet]
    max_iter: int
    tol: float
    seed: int
    n_jobs: Any = None
    history: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.whole = weight_argument(self.estimator) is None  # rows count 0 or 1, nothing between
        self._predicted: tuple[np.ndarray, np.ndarray] | None = None

    def trim(self, h: float, f: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """The weights that keep h, and F; from the losses f, else from no trimming at all, h falling to its target."""
        steps = min(CONTINUATION, self.max_iter) if f is None and h < self.rows.S else 1
        levels = np.linspace(self.rows.S, h, steps + 1)[1:]
        w = np.ones(len(self.rows.s)) if f is None else self._w_step(f, h)
        best, least = w, np.inf
        for k in range(self.max_iter):
            level = float(levels[min(k, len(levels) - 1)])
            f = self.losses(w)
            before, w = w, self._w_step(f, level)
            objective, moved = self._record(level, f, before, w)
            if k < len(levels) - 1:
                continue
            done = moved <= self.tol or objective >= least * (1 - FALLS)
            if objective < least:
                best, least = w, objective
            if done:
                return best, least
        self._warn(self.max_iter > len(levels))
        return best, least

    def readmit(self, w: np.ndarray, h: float) -> tuple[np.ndarray, Judgement]:
        """The weights 1 of the rows that models fitted with these very weights explain; h as the trimmed fit kept.

        It is not `trimlearn.robust.verdict.readmit`, because a round here is recorded and costs cv fits of a model that
        may never settle: it ends before the last fit, and where rows come and go in circles.
        """
        seen, last = {w.tobytes()}, np.inf
        for _ in range(self.max_iter):
            found = self.judge(w, h)
            if found.all_labels_right and h >= self.rows.S:
                # Final: models fitted to the rows that a judgement leaves learn of a row's label through what was said
                # of others. That sharpens a verdict, and must not make one.
                return np.ones_like(w), found
            before, w = w, spare_classes(found.inliers.astype(np.float64), self.rows)
            _, moved = self._record(float(self.rows.s @ w), self.losses(before), before, w)
            # forests never settle: a few doubtful rows come and go, in circles or for ever
            aimless = w.tobytes() in seen or last <= moved <= DOUBTFUL * self.tol
            if moved <= self.tol or aimless:
                return w, found
            seen.add(w.tobytes())
            last = moved
        self._warn(moved > DOUBTFUL * self.tol)
        return w, found

    def judge(self, w: np.ndarray, h: float) -> Judgement:
        """What the models fitted with weights w say about all rows."""
        return self.target.judge(self.predictions(w), self.rows.t, self.rows.s, h)

    def losses(self, w: np.ndarray) -> np.ndarray:
        """f, out of sample."""
        return self.target.losses(self.predictions(w), self.rows.t)

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """P for weights w; the last ones are remembered."""
        if self._predicted is None or not np.array_equal(self._predicted[0], w):
            stage(f"round {len(self.history) + 1}: {len(self.splits)} models judge unseen rows")
            P = crossfit(self.estimator, self.rows, w, self.splits, self.target.predict, self.seed, self.n_jobs)
            if self.rows.classes is None:
                check_shapes(self.estimator, P, self.rows.t)
                _check_finite(self.estimator, P)
            self._predicted = w, P
        return self._predicted[1]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is predicted in the block is no round, and not the last prediction after it."""
        last = self._predicted
        yield
        self._predicted = last

    @property
    def last(self) -> np.ndarray:
        """The predictions made last."""
        assert self._predicted is not None
        return self._predicted[1]

    def _w_step(self, f: np.ndarray, h: float) -> np.ndarray:
        w = self.weight_set(h).minimise(f, self.rows.s)
        return spare_classes(np.ceil(w) if self.whole else w, self.rows)

    def _record(self, h: float, f: np.ndarray, before: np.ndarray, w: np.ndarray) -> tuple[float, float]:
        kept, s, S = w > 0, self.rows.s, self.rows.S
        objective = float(np.sum((s * w)[kept] * f[kept])) / S
        moved = float(s @ np.abs(w - before)) / S
        k = len(self.history) + 1
        self.history.append(Record(k, k, objective, nan, moved, h, nan))
        return objective, moved

    def _warn(self, short: bool) -> None:
        if short:
            warn(
                f"TrimmedEstimator stopped short: rows still come and go after max_iter={self.max_iter} rounds. "
                "Raise max_iter, or tol.",
                ConvergenceWarning,
            )


def _check_finite(estimator: Any, P: np.ndarray) -> None:
    """ValueError where a regressor predicts no number: a row would be judged by it."""
    strange = int(np.count_nonzero(~np.isfinite(P.reshape(len(P), -1)).all(axis=1)))
    if strange:
        raise ValueError(
            f"{type(estimator).__name__} predicts NaN or infinity for {strange} of {len(P)} rows it was not fitted on: "
            "scale X and y, or give estimator a stronger penalty."
        )
