"""Two groups of normal rows of one covariance, where the half of least determinant would have rows of both.

A large cluster near the others and few rows per feature do that: some half with rows of both has the least determinant.
All rows tell more: of all splits, that into the groups has the least n/2 log det W − Σ n_g log(n_g/n), W the covariance
about the two means (Symons 1981; the criterion of Friedman and Rubin 1967, with a prior). From each of a few splits
along a direction rows go to the nearer group, until none does.

References: M. J. Symons, Clustering criteria and multivariate normal mixtures, Biometrics 37 (1981). H. P. Friedman and
J. Rubin, On some invariant criteria for grouping data, JASA 62 (1967).
"""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.scatter.starts import kurtosis_directions
from trimlearn.robust.scatter.steps import FLOOR, Moments, Shrinkage
from trimlearn.robust.scatter.units import RobustUnits

__all__ = ["two_groups"]

ROWS: Final = 2_000  # a limit on time: among more, each half of them a group, MCD's own starts find it
AXES: Final = 3  # leading principal ones to start from, besides directions of least and largest kurtosis
STEPS: Final = 15  # of moving rows to the nearer group, a limit on time


def two_groups(A: np.ndarray, s: np.ndarray) -> NDArray[np.bool_] | None:
    """The smaller of the two groups that the rows of A, which count s times, are split into best; None: they are too
    many to ask, or vary in fewer directions than there are features.

    >>> A = np.random.default_rng(0).normal(size=(50, 5))
    >>> A[:20] += 3.0
    >>> np.flatnonzero(two_groups(A, np.ones(50))).tolist() == list(range(20))
    True
    """
    Z = RobustUnits.of(A, s, False).into(A)
    values, axes = Shrinkage().eigen(Moments.of(Z, s[None]).S[0])
    if len(Z) > ROWS or values[0] <= FLOOR:
        return None
    directions = np.column_stack([axes[:, -AXES:], kurtosis_directions(Z - s @ Z / s.sum(), s)])
    splits = [_settled(Z, s, _cut(Z @ direction, s)) for direction in directions.T]
    off = min(splits, key=lambda split: split[0])[1]
    return off if 2.0 * float(s @ off) <= float(s.sum()) else ~off


def _cut(t: np.ndarray, s: np.ndarray) -> NDArray[np.bool_]:
    """The rows beyond the cut of a line that leaves the least squares in both parts."""
    order = np.argsort(t, kind="stable")
    n, below = float(s.sum()), np.cumsum(s[order])[:-1]
    sums = np.cumsum((s * t)[order])[:-1]
    between = (sums - below * float(s @ t) / n) ** 2 / np.maximum(below * (n - below), FLOOR)
    return np.asarray(t > t[order][int(np.argmax(between))])


def _settled(Z: np.ndarray, s: np.ndarray, off: NDArray[np.bool_]) -> tuple[float, NDArray[np.bool_]]:
    """The criterion, and the split, when no row is nearer to the other group any more."""
    n, value = float(s.sum()), inf
    for _ in range(STEPS):
        count = np.array([float(s @ ~off), float(s @ off)])
        if count.min() < 2.0:
            return inf, off
        at = Moments.of(Z, np.stack([s * ~off, s * off]))
        within = np.broadcast_to(np.tensordot(count / n, at.S, 1), at.S.shape)
        volume = float(np.sum(np.log(Shrinkage().eigen(within[0])[0])))
        value = 0.5 * n * volume - float(count @ np.log(count / n))
        d2 = Moments(at.mu, within).squared_distances(Z, Shrinkage()) - 2.0 * np.log(count / n)[:, None]
        before, off = off, d2[1] < d2[0]
        if np.array_equal(before, off):
            break
    return value, off
