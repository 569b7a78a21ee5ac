"""Offsets: a problem with an intercept is solved about the medians of its columns, and x carried there and back.

An intercept is exempt from r2, so that (β, b) ↦ (β, b + ⟨c, β⟩) changes neither penalties nor optimum, and the linear
layer subtracts c without copying V. For a step it changes everything: a column 2000 ± 7 is nearly the intercept's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.sparse as sp

from trimlearn._utils.arrays import Array, index_like, to_numpy
from trimlearn._utils.validation import is_sparse
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem

__all__ = ["Centred", "centred"]

SAMPLE = 1000  # rows whose median stands for all: off by 1.25/√1000 = 0.04 standard deviations, which no step feels


@final
@dataclass(frozen=True)
class Centred:
    """A problem as given, and the one to solve in its place."""

    given: Problem
    problem: Problem

    def there(self, x: Array) -> Array:
        """x of the given problem as x of the other."""
        return _carried(x, self.given, self.problem)

    def back(self, x: Array) -> Array:
        """x of the other problem as x of the given one."""
        return _carried(x, self.problem, self.given)


def centred(problem: Problem, exact: bool) -> Centred:
    """The problem about the medians of its columns: of all rows where ``exact``, else of a sample.

    Medians, for a wild entry must not move them; exact ones where this is cheap, for then the outcome depends neither
    on the order of the rows nor on how often one is written down. Without an intercept there is nothing to change.
    """
    loss = problem.loss
    if not (isinstance(loss, PredictionLoss) and loss.intercept):
        return Centred(problem, problem)
    rows, s = _sample(problem, exact)
    center = medians(loss.linear.storage.fetch(index_like(rows, loss.like)), s)
    return Centred(problem, problem.recentred(center))


def medians(V: Any, s: np.ndarray) -> np.ndarray:
    """The medians of V's columns, row i counting sᵢ > 0 times: of the two in the middle the smaller.

    >>> medians(np.array([[1.0, 0.0], [2.0, 0.0], [9.0, 5.0]]), np.ones(3))
    array([2., 0.])
    >>> medians(sp.csr_array([[1.0, 0.0], [2.0, 0.0], [9.0, 5.0]]), np.array([1.0, 1.0, 3.0]))
    array([9., 5.])
    """
    if not is_sparse(V):
        V = to_numpy(V).astype(np.float64)
        order = np.argsort(V, axis=0, kind="stable")
        middle = np.argmax(np.cumsum(s[order], axis=0) >= 0.5 * np.sum(s), axis=0)
        return np.asarray(np.take_along_axis(V, np.take_along_axis(order, middle[None], axis=0), axis=0)[0])
    columns: Any = sp.csc_array(V)
    columns.sum_duplicates()
    found = np.zeros(columns.shape[1])
    filled = np.asarray(s @ (columns != 0)).ravel()
    for j in np.flatnonzero(filled >= 0.5 * np.sum(s)):  # elsewhere zeros are the majority
        at = slice(columns.indptr[j], columns.indptr[j + 1])
        values = np.append(columns.data[at], 0.0)
        counts = np.append(s[columns.indices[at]], np.sum(s) - np.sum(s[columns.indices[at]]))
        found[j] = medians(values[:, None], counts)[0]
    return found


def _sample(problem: Problem, exact: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers, and how often each of them counts."""
    s = None if problem.s is None else to_numpy(problem.s).astype(np.float64)
    if exact:
        rows = np.arange(problem.n) if s is None else np.flatnonzero(s > 0)
        return rows, np.ones(problem.n) if s is None else s[rows]
    draw = np.random.Generator(np.random.Philox(key=0))
    if s is None:
        drawn = draw.integers(0, problem.n, SAMPLE)
    else:
        total = np.cumsum(s)
        drawn = np.minimum(np.searchsorted(total, draw.random(SAMPLE) * total[-1], side="right"), problem.n - 1)
    rows, times = np.unique(drawn, return_counts=True)
    return rows, times.astype(np.float64)


def _carried(x: Array, here: Problem, there: Problem) -> Array:
    if not (isinstance(here.loss, PredictionLoss) and isinstance(there.loss, PredictionLoss)) or here is there:
        return x
    return here.loss.linear.carried(x, there.loss.linear)
