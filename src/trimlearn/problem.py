"""The problem: F(w, x) = 1/S · Σ sᵢ wᵢ fᵢ(x) + r1(w) + r2(x), the paper's equation (2)."""

from __future__ import annotations

from copy import copy
from hashlib import sha256
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import device

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, sum64, to_numpy
from trimlearn._utils.validation import as_numeric, is_sparse
from trimlearn.losses.base import Loss, PredictionLoss, weighted
from trimlearn.regularizers import ExceptIntercept, Regularizer, Zero
from trimlearn.weights import WeightSet
from trimlearn.weights.base import total_weight

SAMPLE = 1000  # rows whose median stands for all: off by 1.25/√1000 = 0.04 standard deviations, which no step feels


class Problem:
    """The minimisation of F(w, x) = 1/S · Σ sᵢ wᵢ fᵢ(x) + r1(w) + r2(x) over the example weights w and the model x.

    Parameters
    ----------
    loss : Loss
        The losses f₁ … fₙ.
    r1 : WeightSet
        What is known about w: ``CappedSimplex(h)``, say.
    r2 : Regularizer, optional
        What is known about x; None: nothing. An intercept, which is the last row of x, is exempt from it.
    sample_weight : array of shape (n,), optional
        One number s ≥ 0 per row: 2 is the row twice, 0 its removal.

    Attributes
    ----------
    loss, r1, r2 : Loss, WeightSet, Regularizer
        The terms.
    s : array or None
        The sample weights.
    S : float
        Their sum, or n.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> V, t = np.ones((5, 1)), np.array([1.0, 1.2, 0.8, 1.0, 50.0])
    >>> problem = Problem(LeastSquares(V, t), CappedSimplex(4))
    >>> round(problem.objective(np.array([1, 1, 1, 1, 0]), np.array([1.0])), 6)
    0.008
    """

    def __init__(self, loss: Loss, r1: WeightSet, r2: Regularizer | None = None, sample_weight: Any = None) -> None:
        for name, value, kind in (("loss", loss, Loss), ("r1", r1, WeightSet)):
            if not isinstance(value, kind):
                raise ValueError(f"{name} must be a {kind.__name__}, got {type(value).__name__}.")
        r2 = Zero() if r2 is None else r2
        if not isinstance(r2, Regularizer):
            raise ValueError(f"r2 must be a Regularizer, got {type(r2).__name__}.")
        self.loss = loss
        self.s = None if sample_weight is None else asarray_like(as_numeric(sample_weight, "sample_weight"), loss.like)
        without = loss.without_loss()
        if without is not None:  # as rows of sample weight 0: neither a start nor a continuation counts them
            present = asarray_like(~without, loss.like)
            self.s = present if self.s is None else self.s * present
        self.S = total_weight(loss.n, self.s)
        r1.check(loss.n, self.s)
        self.r1 = r1
        self.r2 = ExceptIntercept(r2) if loss.intercept else r2
        loss.check(self.r2)
        self.r2.prox(self.r2.feasible(loss.start()), 1.0)  # a term that cannot take this shape of x says so now

    def centred(self, exact: bool) -> Problem:
        """The same problem about the medians of its columns: of all rows where ``exact``, else of a sample.

        An intercept is exempt from r2, so that (β, b) ↦ (β, b + ⟨c, β⟩) changes neither penalties nor optimum, and the
        linear layer subtracts c without copying V. For a step it changes everything: a column 2000 ± 7 is nearly the
        intercept's own. Medians, for a wild entry must not move them; exact ones where this is cheap, for then the
        outcome depends neither on the order of the rows nor on how often one is written down. Without an intercept
        there is nothing to change.
        """
        loss = self.loss
        if not (isinstance(loss, PredictionLoss) and loss.intercept):
            return self
        rows, s = _sample(self, exact)
        other = copy(self)
        other.loss = loss.recentred(lower_medians(loss.linear.storage.fetch(index_like(rows, loss.like)), s))
        return other

    def carried(self, x: Array, to: Problem) -> Array:
        """x of this problem as x of ``to``, the same about another centre."""
        if self is to or not (isinstance(self.loss, PredictionLoss) and isinstance(to.loss, PredictionLoss)):
            return x
        return self.loss.linear.carried(x, to.loss.linear)

    @property
    def n(self) -> int:
        """The number of examples."""
        return self.loss.n

    def mean(self, values: Array) -> float:
        """1/S · Σ sᵢ valuesᵢ, in float64."""
        return sum64(values if self.s is None else values * self.s) / self.S

    def weighted_mean(self, w: Array, f: Array) -> float:
        """1/S · Σ sᵢ wᵢ fᵢ, in float64. A row of weight 0 counts for nothing, even where its loss is inf or NaN."""
        return sum64(weighted(f, w if self.s is None else w * self.s)) / self.S

    def objective(self, w: Any, x: Any) -> float:
        """F(w, x), with r1 and r2 infinite outside their domains."""
        x = asarray_like(x, self.loss.like)
        w = asarray_like(w, x)
        if tuple(w.shape) != (self.n,):
            raise ValueError(f"w must have one entry per row, shape ({self.n},), got {tuple(w.shape)}.")
        if not self.r1.contain(w, self.s):
            return float("inf")
        return self.weighted_mean(w, self.loss.values(x)) + self.r2.value(x)

    def fingerprint(self) -> str:
        """A short text that tells this problem, data included, from others: what its terms do at one generic point."""
        x = self.loss.generic()
        f = self.loss.values(x)
        w = self.r1.minimise(f, self.s)
        seen = (w, self.r2.prox(x, 1.0)[0], f if self.s is None else self.s)
        digest = sha256(b"".join(np.ascontiguousarray(to_numpy(a)).tobytes() for a in seen))
        return f"{self.loss.fingerprint()}-{digest.hexdigest()[:16]}"

    def __repr__(self) -> str:
        return f"Problem({type(self.loss).__name__}, n={self.n}, x={self.loss.x_shape}, r1={self.r1!r}, r2={self.r2!r})"


def lower_medians(V: Any, s: np.ndarray) -> np.ndarray:
    """The medians of V's columns, row i counting sᵢ > 0 times: of the two in the middle the smaller.

    >>> lower_medians(np.array([[1.0, 0.0], [2.0, 0.0], [9.0, 5.0]]), np.ones(3))
    array([2., 0.])
    >>> lower_medians(sp.csr_array([[1.0, 0.0], [2.0, 0.0], [9.0, 5.0]]), np.array([1.0, 1.0, 3.0]))
    array([9., 5.])
    """
    if not is_sparse(V):
        xp = namespace(V)
        V = xp.astype(V, xp.float64)
        order = xp.argsort(V, axis=0, stable=True)
        held = xp.cumulative_sum(asarray_like(s, V)[order], axis=0)
        middle = xp.sum(held < 0.5 * float(np.sum(s)), axis=0)
        columns = xp.arange(V.shape[1], device=device(V))
        return to_numpy(V[order[middle, columns], columns])
    entries: Any = sp.csc_array(V)
    entries.sum_duplicates()
    found = np.zeros(entries.shape[1])
    filled = np.asarray(s @ (entries != 0)).ravel()
    for j in np.flatnonzero(filled >= 0.5 * np.sum(s)):  # elsewhere zeros are the majority
        at = slice(entries.indptr[j], entries.indptr[j + 1])
        values = np.append(entries.data[at], 0.0)
        counts = np.append(s[entries.indices[at]], np.sum(s) - np.sum(s[entries.indices[at]]))
        found[j] = lower_medians(values[:, None], counts)[0]
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
