"""The fits to all rows of a dataset larger than memory that logistic regression makes."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from scipy.special import expit

from trimlearn._utils.arrays import Array
from trimlearn._utils.blocks import slices_apart, taken
from trimlearn._utils.threads import each, total
from trimlearn._utils.warn import warn
from trimlearn.estimators.linear.streamed_classes import StreamedLabels, label_pieces
from trimlearn.losses import Logistic, Mislabelled, Softmax
from trimlearn.losses.storage import Storage, open_storage
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.labels.flexible_models import FlexibleModels, calibrated
from trimlearn.robust.labels.noise import LabelNoise, two_columns
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.robust.streamed import newton_streamed, trimmed_newton
from trimlearn.robust.streamed_newton import PER_PARAMETER, SLICES
from trimlearn.smart import svrg
from trimlearn.smart.sizes import FEW
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex

__all__ = ["LabelFits", "score_quantile"]

LEAD = 1 << 23  # numbers in the rows that go ahead: a limit on time and on memory, 34 MB in float32
STEPS = 2  # of EM for the share of wrong labels: each leaves a fifth of the error of a sample's, 0.3 points
TINY = 1e-300  # in place of odds of 0, whose logarithm is none: a normal number, whose inverse is still finite
ENOUGH = 20.0  # passes for a model of many parameters: what TrimmedLogisticRegression takes for large arrays


class LabelFits:
    """The fits to all rows, which some of them, held in memory, go ahead of."""

    def __init__(self, model: Any, X: np.ndarray, labels: StreamedLabels, ridge: float) -> None:
        self.model, self.X, self.labels, self.ridge = model, X, labels, ridge
        self.n, self.K = len(X), len(labels.classes)
        self.some = slices_apart(self.n, max(1, LEAD // X.shape[1]), SLICES)
        self.storage = open_storage(X)
        self.asked = False  # whether flexible models were asked about all rows
        self._opinion: np.ndarray | None = None  # of all rows: by the flexible models too, or of two classes

    @cached_property
    def lead(self) -> Storage:
        """The rows that go ahead, in memory."""
        return open_storage(taken(self.X, self.some))

    def loss(self, t: np.ndarray, storage: Storage) -> Logistic | Softmax:
        if self.K == 2:
            return Logistic(storage, t, intercept=self.model.fit_intercept, part=True)
        return Softmax(storage, t, self.K, intercept=self.model.fit_intercept)

    def losses(self, t: np.ndarray) -> tuple[Logistic | Softmax, Logistic | Softmax | None]:
        """That of all rows, and that of those which go ahead; None where they would be too few."""
        loss = self.loss(t, self.storage)
        rows, parameters = sum(at.stop - at.start for at in self.some), prod(loss.x_shape)
        ahead = PER_PARAMETER * parameters <= rows and parameters <= FEW
        return loss, self.loss(taken(t, self.some), self.lead) if ahead else None

    def trimmed(self, x: Array, h: float) -> tuple[Array, np.ndarray, list[float]]:
        """The trimmed fit that keeps h, from x; the losses of all rows, and F after each step."""
        loss, lead = self.losses(self.labels.target())
        x = x.astype(loss.like.dtype)
        if prod(loss.x_shape) <= FEW:
            return trimmed_newton(loss, x, h, self.ridge, lead)
        problem = Problem(loss, CappedSimplex(h), Ridge(self.ridge))
        found = solve(problem, self._method, x0=x, max_passes=self._passes, tol=1e-3, seed=self.model._seed())
        return found.x, np.asarray(found.losses), [record.objective for record in found.history]

    def corrected(self, noise: LabelNoise, known: Any, share: float | None) -> Array:
        """The fit to the classes that rows have by their labels and by the sample's model; or to the best ``share``."""
        x = _as_x(known).astype(self.storage.like.dtype)
        if share is None:
            P = np.empty((self.n, 1 if self.K == 2 else self.K), self.storage.like.dtype)

            def note(at: slice) -> None:
                P[at] = self.classes(known, noise, at)[:, -P.shape[1] :]

            each(note, label_pieces(self.n))
            self._opinion = self._opinion if self.asked else None
            return self._fit(P[:, 0] if self.K == 2 else P, x, None)
        scores, _ = self.scores(known, noise)
        return self._fit(self.labels.target(), x, scores <= max(0.0, score_quantile(scores, share)))

    def _fit(self, t: np.ndarray, x: Array, w: np.ndarray | None) -> Array:
        loss, lead = self.losses(t)
        if prod(loss.x_shape) <= FEW:
            if w is None:
                return newton_streamed(loss, x, _all, self.ridge, None if lead is None else (lead, _all))
            ahead = None if lead is None else (lead, taken(w, self.some).__getitem__)
            return newton_streamed(loss, x, w.__getitem__, self.ridge, ahead)
        if w is not None:
            raise ValueError("contamination must be 'auto' for so many columns and classes, or reweight=False.")
        problem = Problem(loss, AllOnes(), Ridge(self.ridge))
        return solve(problem, self._method, x0=x, max_passes=self._passes, tol=1e-3, seed=self.model._seed()).x

    @property
    def _method(self) -> Any:
        return svrg(sampling="blocks") if self.model.method is None else self.model.method

    @property
    def _passes(self) -> float:
        return ENOUGH if self.model.max_passes is None else float(self.model.max_passes)

    def judge(self, known: Any, noise: LabelNoise) -> Any:
        """The sample's model, fitted to the rows that go ahead, labels being mistaken as the noise says."""
        codes = np.concatenate([self.labels.codes(at) for at in self.some])
        loss = Mislabelled(self.lead, codes, noise.bounded, intercept=self.model.fit_intercept)
        x = _as_x(known).astype(loss.like.dtype)
        if prod(loss.x_shape) > FEW:
            return known
        found = copy(known)
        found.coef_, found.intercept_ = self.model._parts(newton_streamed(loss, x, _all, self.ridge))
        return found

    def ask(self, flexible: FlexibleModels, coef: np.ndarray, intercept: np.ndarray, noise: LabelNoise) -> None:
        """Hold what the linear model and the flexible ones, calibrated as the noise model has it, make of all rows."""
        z = np.empty((self.n, 1 if self.K == 2 else self.K), np.float32)

        def note(at: slice) -> None:
            linear = two_columns(self._predicted(coef, intercept, at))
            z[at] = calibrated(noise, [linear, *flexible.predictions(self.X[at])])

        each(note, label_pieces(self.n))
        self._opinion, self.asked = z, True

    def verdict(self, noise: LabelNoise) -> LabelVerdict:
        """On all rows, by all opinions or by the final model."""
        every = label_pieces(self.n)
        codes = np.concatenate([self.labels.codes(at) for at in every])
        z = np.concatenate([self._judging(self.model, at) for at in every])
        return LabelVerdict(noise, [two_columns(z)], codes, np.ones(self.n))

    def renewed(self, noise: LabelNoise, known: Any) -> LabelNoise:
        """The noise model after some steps of EM over all rows: T, and the share of wrong labels."""
        if self.K == 2 and not self.asked:
            z = np.empty((self.n, 1), self.X.dtype)

            def note(at: slice) -> None:
                z[at] = self._predicted(known.coef_, known.intercept_, at)

            each(note, label_pieces(self.n))
            self._opinion = z
        for _ in range(STEPS):
            noise = self._step(noise, known)
        return noise

    def _step(self, noise: LabelNoise, known: Any) -> LabelNoise:
        K = self.K

        def counted(at: slice) -> np.ndarray:
            P, codes = self.classes(known, noise, at), self.labels.codes(at)
            return np.stack([np.bincount(codes, column, K) for column in P.T])

        N = total(counted, label_pieces(self.n), np.zeros((K, K)))
        T = N / np.maximum(N.sum(axis=1, keepdims=True), 1e-300)
        return replace(noise, T=T, epsilon=float(1 - np.trace(N) / self.n))

    def scored(self, z: np.ndarray, noise: LabelNoise, at: slice) -> tuple[np.ndarray, np.ndarray]:
        """The log-odds that the labels of some rows are wrong, by predictions z for them, and the classes suggested."""
        codes = self.labels.codes(at)
        if self.K > 2:
            verdict = LabelVerdict(noise, [two_columns(z)], codes, np.ones(len(codes)))
            return verdict.scores, verdict.suggested
        # The same in fewer steps, for two classes: P(other class)T[other, label] over P(class)T[class, label].
        p, T = expit(np.where(codes == 1, -z[:, 0], z[:, 0]).astype(np.float64)), noise.bounded
        odds = (p * (1 - 2 * noise.floor) + noise.floor) / ((1 - p) * (1 - 2 * noise.floor) + noise.floor)
        scores = np.log(np.maximum(odds, TINY)) + np.log([T[1, 0] / T[0, 0], T[0, 1] / T[1, 1]])[codes]
        return scores, codes if noise.epsilon == 0 else np.where(scores <= 0, codes, 1 - codes)

    def opinion(self, known: Any, at: slice) -> np.ndarray:
        """Predictions for some rows, those that are held or those of a model."""
        if self._opinion is not None:
            return self._opinion[at]
        return self._predicted(known.coef_, known.intercept_, at)

    def _judging(self, fitted: Any, at: slice) -> np.ndarray:
        """The opinion of all models where they were asked, else that of the one given."""
        return self.opinion(fitted, at) if self.asked else self._predicted(fitted.coef_, fitted.intercept_, at)

    def _predicted(self, coef: np.ndarray, intercept: np.ndarray, at: slice) -> np.ndarray:
        kind = self.X.dtype
        return np.asarray(self.X[at] @ coef.T.astype(kind) + intercept.astype(kind))

    def classes(self, known: Any, noise: LabelNoise, at: slice) -> np.ndarray:
        """P(class | x, label) of some rows, (m, K)."""
        z, codes = self.opinion(known, at), self.labels.codes(at)
        if self.K > 2:
            return LabelVerdict(noise, [two_columns(z)], codes, np.ones(len(codes))).classes
        wrong = expit(self.scored(z, noise, at)[0])
        first = np.where(codes == 1, wrong, 1 - wrong)
        return np.column_stack([first, 1 - first])

    def scores(self, fitted: Any, noise: LabelNoise) -> tuple[np.ndarray, np.ndarray]:
        """The log-odds that labels are wrong, by all opinions or by the fitted model, and the classes suggested."""
        scores = np.empty(self.n, np.float32)
        suggested = np.empty(self.n, np.int8 if self.K <= np.iinfo(np.int8).max else np.int32)

        def note(at: slice) -> None:
            scores[at], suggested[at] = self.scored(self._judging(fitted, at), noise, at)

        each(note, label_pieces(self.n))
        return scores, suggested

    def warn_of_lost_classes(self, w: np.ndarray) -> None:
        kept = np.zeros(self.K)
        for at in label_pieces(self.n):
            kept += np.bincount(self.labels.codes(at), w[at], self.K)
        lost = self.model.classes_[np.asarray(kept) == 0]
        if len(lost):
            warn(
                f"the trimmed fit keeps no row of {', '.join(map(str, lost[:5]))}: more is trimmed than such a class "
                "has. Lower contamination.",
            )


def _as_x(fitted: Any) -> Array:
    """The parameters of a fitted model, as a loss takes them."""
    x = fitted.coef_.T
    x = np.vstack([x, fitted.intercept_]) if fitted.fit_intercept else x
    return x[:, 0] if len(fitted.classes_) == 2 else x


def _all(at: slice) -> float:
    """Every row counts once."""
    return 1.0


def score_quantile(scores: np.ndarray, share: float) -> float:
    return float(np.partition(scores, min(len(scores) - 1, int(share * len(scores))))[int(share * len(scores)) - 1])
