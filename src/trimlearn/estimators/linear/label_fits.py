"""The fits to all rows that logistic regression of many rows makes, wherever these lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, prod
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.blocks import slices_apart
from trimlearn.estimators.linear.label_rows import LabelJudge
from trimlearn.estimators.linear.problems import LinearFit
from trimlearn.losses import Logistic, Mislabelled, Softmax
from trimlearn.losses.storage import Storage, open_storage
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.streamed import TrimmedHere, WeighedHere, newton_streamed
from trimlearn.robust.streamed_newton import PER_PARAMETER, SLICES
from trimlearn.smart.method import FEW
from trimlearn.weights.simplex import snap_h

LEAD = 1 << 23  # numbers in the rows that go ahead: a limit on time and on memory, 34 MB in float32
STEPS = 2  # of EM for the share of wrong labels: each leaves a fifth of the error of a sample's, 0.3 points


@final
@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that stand for all of them, with the numbers of their classes, sample weights or None, and the seed they
    were drawn by."""

    X: Any
    codes: np.ndarray
    s: np.ndarray | None
    seed: int

    @property
    def mass(self) -> float:
        """Σs, or how many they are."""
        return float(len(self.codes) if self.s is None else self.s.sum())


@final
@dataclass(frozen=True, eq=False)
class LeadRows:
    """Rows that go ahead, in memory: where they lie among all, the numbers of their classes, and sample weights."""

    at: list[slice]
    storage: Storage
    codes: np.ndarray
    s: np.ndarray | None

    @classmethod
    def of(cls, at: list[slice], X: Any, codes: np.ndarray, s: np.ndarray | None) -> LeadRows:
        """Dense, whatever they were: they are few enough."""
        return cls(at, open_storage(X.toarray() if hasattr(X, "toarray") else X), codes, s)

    def weighed(self, loss: Any, w: np.ndarray | None = None) -> WeighedHere:
        """With the loss of these rows and weights w beside the sample weights; None: all are 1."""
        if self.s is not None:
            mean = self.s / np.mean(self.s)
            w = mean if w is None else w * mean
        return WeighedHere(loss, w)


class LabelFits(ABC):
    """All rows, whose labels are judged by the sample's model at first.

    Parameters
    ----------
    model : TrimmedLogisticRegression
        What is fitted; it knows its classes.
    shape : tuple of int
        Of all rows.
    mass : float
        Their sample weight, or how many they are.
    sample : Sample
        Some of them, which ``known`` is fitted to.
    known : TrimmedLogisticRegression
        The fit to the sample.
    """

    def __init__(self, model: Any, shape: tuple[int, int], mass: float, sample: Sample, known: Any) -> None:
        self.model, self.mass, self.sample, self.known = model, mass, sample, known
        (self.n, self.p), self.K = shape, len(model.classes_)
        self.ridge = 0.0 if model.penalty is None else 1 / (float(model.C) * mass)
        self.parameters = (self.p + bool(model.fit_intercept)) * (1 if self.K == 2 else self.K)

    # -- what depends on where they lie -------------------------------------------------------------------------------

    @abstractmethod
    def draw_in(self) -> None:
        """From now on wild cells count as the bounds of their columns, so that they steer no model."""

    @abstractmethod
    def hold(self, judge: LabelJudge | None) -> None:
        """Hold the judge's opinion of all rows, in place of that of any other; None: hold none."""

    @abstractmethod
    def counted(self, judge: LabelJudge, noise: LabelNoise) -> np.ndarray:
        """How many rows of each class have each label, (K, K)."""

    @abstractmethod
    def quantile(self, judge: LabelJudge, noise: LabelNoise, share: float) -> float:
        """The score that a share of the rows does not exceed."""

    @abstractmethod
    def trimmed(self, x: Array, share: float) -> LinearFit:
        """The trimmed fit that keeps a share of the rows, from x, with a weight for each as they were given. Warns of
        classes of which no row is kept."""

    @abstractmethod
    def fitted(self, judge: LabelJudge, noise: LabelNoise, x: Array, cut: float | None) -> Array:
        """The fit, from x, to the rows whose score is at most ``cut``; None: to all, with the classes that they have by
        their labels and by the judge."""

    @abstractmethod
    def publish(self, judge: LabelJudge, noise: LabelNoise) -> None:
        """Set what is known of every row."""

    @abstractmethod
    def _taken(self, slices: list[slice]) -> LeadRows:
        """Some rows, here."""

    # -- what does not ------------------------------------------------------------------------------------------------

    @cached_property
    def lead(self) -> LeadRows:
        """The rows that go ahead; enough of them where parameters are few."""
        few = PER_PARAMETER * self.parameters if self.parameters <= FEW else 1
        return self._taken(slices_apart(self.n, max(few, LEAD // self.p), SLICES))

    def loss(self, t: np.ndarray, storage: Storage) -> Logistic | Softmax:
        """Of rows with these targets: numbers of classes, or shares of them."""
        if self.K == 2:
            return Logistic(storage, t, intercept=self.model.fit_intercept, part=True)
        return Softmax(storage, t, self.K, intercept=self.model.fit_intercept)

    def trimmed_lead(self, share: float) -> TrimmedHere:
        """The rows that go ahead of a trimmed fit that keeps this share."""
        return TrimmedHere(self.loss(self.lead.codes, self.lead.storage), share, self.lead.s)

    def judge(self, noise: LabelNoise, ridge: float) -> Any:
        """The sample's model, fitted to the rows that go ahead, labels being mistaken as the noise says."""
        if self.parameters > FEW:
            return self.known
        loss = Mislabelled(self.lead.storage, self.lead.codes, noise.bounded, intercept=self.model.fit_intercept)
        assert prod(loss.x_shape) == self.parameters, "as it was counted"
        found, x = copy(self.known), as_x(self.known).astype(loss.like.dtype)
        found.coef_, found.intercept_ = self.model._parts(newton_streamed(self.lead.weighed(loss), x, ridge)[0])
        return found

    def renewed(self, noise: LabelNoise, judge: LabelJudge) -> LabelNoise:
        """The noise model after some steps of EM over all rows: T, and the share of wrong labels."""
        for _ in range(STEPS):
            N = self.counted(judge, noise)
            T = N / np.maximum(N.sum(axis=1, keepdims=True), 1e-300)
            noise = replace(noise, T=T, epsilon=float(1 - np.trace(N) / N.sum()))
        return noise


def kept_rows(share: float, n: float) -> float:
    """How many of n rows a share is, whole ones; one at least."""
    return float(max(1, floor(snap_h(share * n, n))))


def as_x(fitted: Any) -> Array:
    """The parameters of a fitted model, as a loss takes them."""
    x = fitted.coef_.T
    x = np.vstack([x, fitted.intercept_]) if fitted.fit_intercept else x
    return x[:, 0] if len(fitted.classes_) == 2 else x
