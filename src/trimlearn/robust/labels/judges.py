"""The models that judge labels: each is fitted to rows that it does not judge, where these rows lie.

The rows of a fit are taken out of V, so that no pass looks at others. Where there are many, a fit begins with some of
them; and of very many, some are all that it sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, asarray_like, index_like, to_numpy
from trimlearn._utils.residence import copy_on_device
from trimlearn.losses import Logistic, Mislabelled, Softmax
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.regularizers import Ridge
from trimlearn.robust.distinct import taken_rows
from trimlearn.robust.labels.noise import two_columns
from trimlearn.robust.labels.noise_em import Floats, Labels
from trimlearn.smart import alternating, svrg
from trimlearn.smart.method import FEW, SMALL, Method, small
from trimlearn.solve import solve
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

Start = tuple[float, bool]  # the share of its rows that a model trusts, and whether that is the share of every class
Rows = NDArray[np.int64]
COPIED = 1 << 28  # bytes of V that are taken out of it for one fit, a limit on memory: 85,000 rows of MNIST
MEDIUM = 20 * SMALL  # n·dim(x) up to which a fit of 40 passes takes a second: a limit on time
SAMPLE = 8_000  # rows that a fit to many begins with, a limit on time: a seventh of MNIST


def is_large(loss: PredictionLoss) -> bool:
    """Whether a pass takes long, and is many steps: of few rows with many parameters it is few."""
    return loss.n > 2 * SAMPLE and loss.n * prod(loss.x_shape) > MEDIUM


@dataclass(frozen=True)
class _Passes:
    """How many passes over its rows a fit may take. Limits on time: docs/performance.md, MNIST.

    ``start`` is for the first models, h falling to its target; half of it is enough where h need not fall.
    ``further`` is for all rows, from a model of some; ``correction`` for a model that allows for noise, from one that
    does not, or that knew another T.
    """

    start: float
    further: float
    correction: float


# On MNIST, twice the passes change the share found and the likelihood of labels left out by less than 0.3 points.
LARGE_PASSES = _Passes(start=20.0, further=5.0, correction=8.0)
MEDIUM_PASSES = _Passes(start=40.0, further=10.0, correction=20.0)  # where these are fractions of a second
SMALL_PASSES = _Passes(start=30.0, further=30.0, correction=60.0)  # where passes cost next to nothing


class Judges:
    """Fits that minimise C·Σ sᵢwᵢfᵢ(x) + ½‖x‖², to rows that are named; x is a NumPy array.

    V: the rows, on a device where they have a copy there, which is where the fits take place. K: how many classes there
    are. small: whether passes cost next to nothing, over all rows, so that fits to few of them are like those to many.
    most: rows that a fit may see.
    """

    def __init__(
        self,
        loss: Softmax | Logistic,
        labels: Labels,
        s: Floats,
        C: float,
        method: Method | None,
        seed: int,
        tol: float,
    ) -> None:
        there = copy_on_device(loss.linear.storage.V)
        self.loss = loss if there is None else other_rows_loss(loss, there, labels)
        self.labels, self.s, self.C, self.method, self.seed = labels, s, C, method, seed
        self.V, self.K = self.loss.linear.storage.V, loss.linear.K or 2
        self.small = loss.n * prod(loss.x_shape) <= SMALL
        self.most = max(SAMPLE, COPIED // self.loss.linear.storage.row_bytes)
        self._passes = SMALL_PASSES if self.small else LARGE_PASSES if is_large(loss) else MEDIUM_PASSES
        self._solve = partial(solve, tol=tol, seed=seed)

    def trimmed(self, start: Start, rows: Rows, x0: Array | None = None) -> Array:
        """The model that fits the best of these rows, the share and how as ``start`` says; from x0, if given."""
        share, balanced = start
        h = share * float(self.s[rows].sum())
        r1 = GroupCappedSimplex(self.labels[rows], h) if balanced else CappedSimplex(h)
        most = self._passes.start if share < 1 or self.small else self._passes.start / 2
        problem = self._problem(other_rows_loss(self.loss, self._taken(rows), self.labels[rows]), r1, rows)
        passes = most if x0 is None else self._passes.further
        return to_numpy(self._solve(problem, self._chosen(problem), x0=x0, max_passes=passes).x)

    def corrected(self, T: Floats, rows: Rows, x0: Array) -> Array:
        """The model of these rows, from x0, by a likelihood in which labels are mistaken as T says."""
        loss = Mislabelled(self._taken(rows), self.labels[rows], T, intercept=self.loss.linear.intercept)
        problem = self._problem(loss, AllOnes(), rows)
        return to_numpy(self._solve(problem, self._chosen(problem), x0=x0, max_passes=self._passes.correction).x)

    def predict(self, x: Array, rows: Rows) -> Floats:
        """Predictions (m, K) of these rows."""
        z = self.loss.linear.predict(asarray_like(x, self.loss.like), index_like(rows, self.loss.like))
        return two_columns(to_numpy(z))

    def some(self, rows: Rows, most: int) -> Rows:
        """At most about so many of these rows, each class with the same share of its own, and with one at least."""
        if len(rows) <= most:
            return rows
        by_class = rows[np.argsort(self.labels[rows], kind="stable")]
        first = np.unique(self.labels[by_class], return_index=True)[1]
        evenly = np.linspace(0, len(rows) - 1, most).astype(np.int64)
        return np.sort(by_class[np.union1d(first, evenly)])

    def _taken(self, rows: Rows) -> Any:
        return self.V if len(rows) == self.loss.n else taken_rows(self.V, rows)

    def _problem(self, loss: PredictionLoss, r1: WeightSet, rows: Rows) -> Problem:
        s = self.s[rows]
        return Problem(loss, r1, Ridge(1.0 / (self.C * float(s.sum()))), None if np.all(s == 1) else s)

    def _chosen(self, problem: Problem) -> Method | None:
        """How to fit: None leaves it to `trimlearn.solve`, which would take few rows of many for a small problem."""
        if self.method is not None or not small(problem):
            return self.method
        if not self.small:
            return svrg()
        # A prediction needs few digits, and there are dozens of fits.
        return alternating(inner="lbfgs") if prod(problem.loss.x_shape) > FEW else None


def other_rows_loss(loss: Softmax | Logistic, V: Any, labels: Labels) -> Softmax | Logistic:
    """The losses of other rows."""
    linear = loss.linear
    if linear.K is None:
        return Logistic(V, labels, part=True, intercept=linear.intercept)
    return Softmax(V, labels, linear.K, intercept=linear.intercept)
