"""Whether some rows lie apart from the others, or only seem to: how likely a verdict makes all rows.

A flat that is fitted to half of a few rows goes nearly through them, and the others seem to lie apart, also where no
row is bad. Distances from that flat alone cannot tell: had all rows been fitted, another flat would be as near to all
of them. So the likelihoods of two models of the rows themselves are compared. One takes all of them for normal about a
flat; the other takes only those kept for that, and the rest for a normal group, about the same centre or another one,
and pays for the choice of those rows, log C(n, b) nats. Each has the number of dimensions, and the variances along
them, that suit it best (probabilistic principal components, Tipping and Bishop 1999), at Schwarz' (1978) price.
"""

from __future__ import annotations

from math import log
from typing import Final, Self, final

import numpy as np
from scipy.special import gammaln

__all__ = ["log_evidence", "told_axes"]

MOST: Final = 10  # dimensions of a flat, as in ROBPCA (Hubert, Rousseeuw and Vanden Branden 2005)
ROUNDING: Final = 1e-12  # of the mean variance: less is left over by rows in a subspace
# Of the rows, the dimensions of a flat at most: with as many as rows the likelihood has no bound. With a half
# all of 15 × 10 rows have too few: six clean samples that were torn apart stayed so, and one with this value.
FULL: Final = 0.75


def log_evidence(A: np.ndarray, s: np.ndarray, kept: np.ndarray, p: int, most: int = MOST) -> float:
    """The log-likelihood of the rows A, which count s times, less what its parameters cost, where those not kept are a
    group of their own.

    A: coordinates of the rows in a span of all of them; p: the dimensions that they come from. most: dimensions of a
    flat at most. Only differences between verdicts on the same rows have a meaning.

    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(30, 4)) * [5.0, 1.0, 1.0, 1.0]
    >>> every, some = np.ones(30, dtype=bool), np.arange(30) >= 8
    >>> def gain(A):
    ...     return log_evidence(A, np.ones(30), some, 4) - log_evidence(A, np.ones(30), every, 4)
    >>> A[:8] *= 1.5
    >>> gain(A) > 0, gain(A + 6.0 * ~some[:, None] * [0.0, 0.0, 0.0, 1.0]) > 0
    (False, True)
    """
    model = _NormalFlat.of(A, np.where(kept, s, 0.0), p, most)
    off = ~kept & (s > 0)
    if not off.any():
        return model.value
    n, b = float(s.sum()), float(s[off].sum())
    choice = float(gammaln(n + 1.0) - gammaln(n - b + 1.0) - gammaln(b + 1.0))
    return model.value + model.group(A[off], s[off]) - choice


def told_axes(A: np.ndarray, c: np.ndarray, p: int) -> int:
    """How many dimensions the flat of the rows A, weighted by c, has: a group of bad rows must not be one more.

    >>> A = np.random.default_rng(0).normal(size=(60, 4)) * [9.0, 1.0, 1.0, 1.0]
    >>> told_axes(A, np.ones(60), 4)
    1
    """
    return len(_NormalFlat.of(A, c, p, MOST).variances)


@final
class _NormalFlat:
    """Normal rows about a flat: variances of their own along its axes, one variance in all other directions.

    ``value``: the log-likelihood of the rows fitted to, less its price; constants are left out.
    """

    def __init__(
        self, mean: np.ndarray, axes: np.ndarray, variances: np.ndarray, rest: float, p: int, N: float
    ) -> None:
        self.mean, self.axes, self.variances, self.rest, self.p = mean, axes, variances, rest, p
        k = len(variances)
        self.log_det = float(np.sum(np.log(variances))) + (p - k) * log(rest)
        self.value = -0.5 * N * (self.log_det + p) - 0.5 * log(N) * (p * (k + 1) - 0.5 * k * (k - 1) + 1.0)

    @classmethod
    def of(cls, A: np.ndarray, c: np.ndarray, p: int, most: int) -> Self:
        """The one of the best value for the rows A weighted by c."""
        N = float(c.sum())
        mean = c @ A / N
        _, roots, axes = np.linalg.svd(np.sqrt(c)[:, None] * (A - mean), full_matrices=False)
        variances = roots**2 / N
        total = float(variances.sum()) or 1.0
        found = []
        for k in range(max(0, min(most, p - 1, len(variances), int(FULL * N) - 2)) + 1):
            rest = max(total - float(variances[:k].sum()), ROUNDING * total) / (p - k)
            found.append(cls(mean, axes[:k], np.maximum(variances[:k], ROUNDING * total), rest, p, N))
        return max(found, key=lambda model: model.value)

    def group(self, A: np.ndarray, c: np.ndarray) -> float:
        """The same for other rows, which spread so much more within the flat, and so much more from it, about the same
        centre or another one."""
        b, k = float(c.sum()), len(self.variances)
        D = A - self.mean
        z = D @ self.axes.T
        beside, within = D - z @ self.axes, z / np.sqrt(self.variances)

        def value(centred: bool) -> float:
            spreads = [_spread(within, c, k, centred), _spread(beside, c, self.p - k, centred) / self.rest]
            wider = k * log(max(spreads[0], 1.0)) + (self.p - k) * log(max(spreads[1], 1.0))
            return -0.5 * b * (self.log_det + wider + self.p) - 0.5 * log(b) * (2.0 + self.p * centred)

        return max(value(False), value(True))


def _spread(V: np.ndarray, c: np.ndarray, k: int, centred: bool) -> float:
    """The mean square of a coordinate of the rows of V in k dimensions, about their mean where ``centred``."""
    b = float(c.sum())
    return float(c @ np.sum((V - (c @ V / b if centred else 0.0)) ** 2, axis=1)) / (b * k) if k else 1.0
