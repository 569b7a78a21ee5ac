"""The forward search: a fit to few rows that agree, then to one more, and so on to all; what is monitored on the way.

The subset of size m + 1 holds the rows that the fit to the subset of size m explains best. Outliers come in last, and
the moment they do everything moves. The row that is next to come in is judged by its deletion residual, which for clean
data is an order statistic: its envelopes are known in advance.

A. C. Atkinson and M. Riani (2000), Robust diagnostic regression analysis, Springer. A. C. Atkinson and M. Riani (2006),
Distribution theory and simulations for tests of outliers in regression, J. Comput. Graph. Statist. 15. M. Riani, A. C.
Atkinson and A. Cerioli (2009), Finding an unknown number of multivariate outliers, J. R. Statist. Soc. B 71.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, chdtr, chdtri, fdtri, ndtri, stdtrit

__all__ = ["DistanceSearch", "RegressionSearch", "Search", "Trace", "signal"]

KEPT = 4_000_000  # numbers that the monitored residuals may take: 32 MB, all of them up to 2,000 rows
AFRESH = 64  # steps between sums made afresh: a rank-one update loses less than a digit in as many
SINGULAR = 1e-12  # relative eigenvalue of a subset's sums of squares below which it does not determine the fit
# The rule of Riani, Atkinson and Cerioli (2009) by levels of the envelope: in the middle of the search three values in
# a row beyond the first, or one beyond the second; at its last step, one beyond the third. Then the size is sought at
# which the envelope of a sample of that size is left at the fourth. Simulated, at most 1 % of clean samples give a
# signal.
IN_A_ROW, ALONE, LAST, CONFIRMED = 0.9999, 0.99999, 0.999, 0.99

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@final
@dataclass(frozen=True)
class Trace:
    """What was monitored. ``sizes`` (k,): of the subsets; ``deletion`` (k,): the least deletion residual outside each,
    NaN for the last; ``entry`` (n,): the size from which on a row belongs to the subset; ``monitored``: the sizes for
    which ``residuals`` (·, n) were kept."""

    sizes: Ints
    monitored: Ints
    residuals: Floats
    coef: Floats
    scale: Floats
    deletion: Floats
    entry: Ints


class Search(ABC):
    """A forward search among n rows, with p numbers fitted."""

    n: int
    p: int

    @abstractmethod
    def fit(self, inside: NDArray[np.bool_], m: int) -> tuple[Floats, Floats, float, Floats]:
        """Of the fit to a subset of size m: residuals (or distances) of all rows, coefficients, scale, and deletion
        residuals of all rows."""

    @abstractmethod
    def upper(self, m: Ints, level: float, n: int) -> Floats:
        """The envelope of the least deletion residual for subsets of size m of n clean rows."""

    def run(self, order: Ints) -> Trace:
        """From the smallest subset of the rows in this order, best first, that determines the fit."""
        m = self._first(order)
        inside = np.zeros(self.n, dtype=bool)
        inside[order[:m]] = True
        sizes = np.arange(m, self.n + 1)
        step = max(1, -(-len(sizes) * self.n // KEPT))
        monitored = np.unique(np.append(sizes[::step], self.n))
        entry, kept = np.full(self.n, m), list[Floats]()
        coef, scale, deletion = list[Floats](), np.zeros(len(sizes)), np.full(len(sizes), np.nan)
        for k, m in enumerate(sizes.tolist()):
            r, x, scale[k], off = self.fit(inside, m)
            coef.append(x)
            if len(kept) < len(monitored) and m == monitored[len(kept)]:
                kept.append(r)
            if m < self.n:
                deletion[k] = float(np.min(off, where=~inside, initial=np.inf))
                inside = np.zeros(self.n, dtype=bool)
                inside[np.argpartition(np.abs(r), m)[: m + 1]] = True
                entry[~inside] = m + 2
        return Trace(sizes, monitored, np.array(kept), np.array(coef), scale, deletion, entry)

    def _first(self, order: Ints) -> int:
        return min(self.n, max(self.p + 1, self._determined(order)))

    @abstractmethod
    def _determined(self, order: Ints) -> int:
        """How many rows, in this order, determine the fit."""


class _SubsetGram:
    """Aᵀ A over a subset that changes by a few rows at a time."""

    def __init__(self, A: Floats) -> None:
        self.A, self.steps = A, 0
        self.inside = np.zeros(len(A), dtype=bool)
        self.total = np.zeros((A.shape[1], A.shape[1]))

    def of(self, inside: NDArray[np.bool_]) -> Floats:
        changed = np.flatnonzero(inside != self.inside)
        if self.steps % AFRESH == 0 or 2 * len(changed) > np.count_nonzero(inside):
            self.total = self.A[inside].T @ self.A[inside]
        else:
            B = self.A[changed]
            self.total = self.total + (B * np.where(inside[changed], 1.0, -1.0)[:, None]).T @ B
        self.steps, self.inside = self.steps + 1, inside
        return self.total


def _determines(A: Floats, order: Ints) -> int:
    """The least number of rows, in this order, that have the rank of all."""
    rank = int(np.linalg.matrix_rank(A))
    low, high = min(rank, len(A)), len(A)
    while low < high:
        middle = (low + high) // 2
        if np.linalg.matrix_rank(A[order[:middle]]) >= rank:
            high = middle
        else:
            low = middle + 1
    return low


def _inverse(S: Floats) -> Floats:
    """The inverse, of the regular part where there is no other."""
    values, V = np.linalg.eigh(S)
    good = values > SINGULAR * max(float(values[-1]), np.finfo(np.float64).tiny)
    return np.asarray((V[:, good] / values[good]) @ V[:, good].T)


@final
class RegressionSearch(Search):
    """Least squares of t on A (n, q). Deletion residuals: |e|/(s√(1 + h)), h = aᵀ(Aᵀ A)⁻¹a, s² = RSS/(m − q).

    The rows come in coordinates in which the first ones are of size 1, so that far rows do not cost digits.
    """

    def __init__(self, A: Floats, t: Floats, trusted: NDArray[np.bool_]) -> None:
        self.n, self.p = A.shape
        S = A[trusted].T @ A[trusted] / max(int(trusted.sum()), 1)
        scale = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))
        values, V = np.linalg.eigh(S / np.outer(scale, scale))
        good = values > SINGULAR * values[-1]
        self.T = (V[:, good] / np.sqrt(values[good])) / scale[:, None]
        self.U, self.t = A @ self.T, t
        self.p = self.U.shape[1]
        self.sums = _SubsetGram(np.column_stack([self.U, t]))
        self.floor = 2.0**12 * np.finfo(np.float64).eps * float(np.median(np.abs(t)))

    def fit(self, inside: NDArray[np.bool_], m: int) -> tuple[Floats, Floats, float, Floats]:
        G = self.sums.of(inside)
        inverse = _inverse(G[:-1, :-1])
        u = inverse @ G[:-1, -1]
        r = self.t - self.U @ u
        u = u + inverse @ ((r * inside) @ self.U)  # once more on what is left: sums of squares lose half the digits
        r = self.t - self.U @ u
        s = float(np.sqrt(float((r * inside) @ r) / max(m - self.p, 1)))
        h = np.einsum("ij,ij->i", self.U @ inverse, self.U)
        with np.errstate(over="ignore"):
            off = np.abs(r) / (max(s, self.floor, np.finfo(np.float64).tiny) * np.sqrt(1.0 + h))
        return r, self.T @ u, s, off

    def upper(self, m: Ints, level: float, n: int) -> Floats:
        """t quantiles of the (m + 1)-th of n, over the σ of the m smallest of n normal residuals."""
        u = betaincinv(m + 1.0, n - m, level)
        a = ndtri((n + m) / (2.0 * n))
        variance = 1.0 - 2.0 * n / m * a * np.exp(-0.5 * a * a) / np.sqrt(2.0 * np.pi)
        return np.asarray(stdtrit(np.maximum(m - self.p, 1), 0.5 * (1.0 + u)) / np.sqrt(np.maximum(variance, 1e-12)))

    def _determined(self, order: Ints) -> int:
        return _determines(self.U, order)


@final
class DistanceSearch(Search):
    """Mean and covariance of rows X (n, p). Distances are Mahalanobis', which are the deletion residuals as well."""

    def __init__(self, X: Floats, trusted: NDArray[np.bool_]) -> None:
        self.n = len(X)
        self.mean = X[trusted].mean(axis=0)
        Z = X - self.mean
        S = Z[trusted].T @ Z[trusted] / max(int(trusted.sum()) - 1, 1)
        scale = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))
        values, V = np.linalg.eigh(S / np.outer(scale, scale))
        good = values > SINGULAR * max(float(values[-1]), np.finfo(np.float64).tiny)
        self.T = (V[:, good] / np.sqrt(values[good])) / scale[:, None]
        self.U = np.column_stack([np.ones(self.n), Z @ self.T])
        self.p = self.U.shape[1] - 1
        self.sums = _SubsetGram(self.U)

    def fit(self, inside: NDArray[np.bool_], m: int) -> tuple[Floats, Floats, float, Floats]:
        G = self.sums.of(inside)
        mean = G[0, 1:] / m
        covariance = (G[1:, 1:] - m * np.outer(mean, mean)) / max(m - 1, 1)
        Z = self.U[:, 1:] - mean
        d = np.sqrt(np.maximum(np.einsum("ij,ij->i", Z @ _inverse(covariance), Z), 0.0))
        back = np.linalg.pinv(self.T)
        scale = float(np.exp(0.5 * np.mean(np.log(np.maximum(np.linalg.eigvalsh(covariance), 1e-300)))))
        return d, self.mean + mean @ back, scale, d

    def upper(self, m: Ints, level: float, n: int) -> Floats:
        """F quantiles of the (m + 1)-th of n, over the σ of the m nearest of n normal rows."""
        p = self.p
        u = np.clip(betaincinv(m + 1.0, n - m, level), 0.0, 1.0 - 1e-15)
        size = p * (m**2 - 1.0) / (m * np.maximum(m - p, 1.0)) * fdtri(p, np.maximum(m - p, 1.0), u)
        variance = np.where(m < n, chdtr(p + 2, chdtri(p, np.maximum(1.0 - m / n, 1e-15))) / (m / n), 1.0)
        return np.asarray(np.sqrt(size / variance))

    def _determined(self, order: Ints) -> int:
        return max(_determines(self.U, order), self.p + 2)


def signal(search: Search, trace: Trace) -> int:
    """How many rows are clean, by the least deletion residuals: n where there is no signal.

    The search is looked at from n/2 + p rows on: the half of the rows that the start was optimised for look too good.
    """
    n, m, d = search.n, trace.sizes[:-1], trace.deletion[:-1]
    looked = m >= n / 2 + search.p
    m, d = m[looked], d[looked]
    if not len(m):
        return n
    beyond = d > search.upper(m, IN_A_ROW, n)
    in_a_row = beyond & np.append(beyond[1:], False) & np.append(beyond[2:], [False, False])
    alone, last = d > search.upper(m, ALONE, n), (d > search.upper(m, LAST, n)) & (m == n - 1)
    found = np.flatnonzero(in_a_row | alone | last)
    if not len(found):
        return n
    for size in range(int(m[found[0]]), n):  # the envelopes of samples that end here, superimposed one after the other
        upto = m < size
        if np.any(d[upto] > search.upper(m[upto], CONFIRMED, size)):
            return size - 1
    return int(m[found[0]])
