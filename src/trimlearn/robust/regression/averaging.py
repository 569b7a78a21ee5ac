"""The mean of all fits that the rows allow, each weighted by its evidence.

Of few rows it cannot be told which law their errors follow, nor which rows are wrong: several fits explain them about
as well, and to choose one of them is a gamble. Bayesian model averaging (Hoeting, Madigan, Raftery and Volinsky 1999,
Statist. Sci. 14) does not choose: x is the mean of the `modes` of the likelihood, found from several starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.regression.error_laws import LAWS
from trimlearn.robust.regression.features import FeatureOdds, feature_odds
from trimlearn.robust.regression.mm import SmoothFit, WeightedRows, grams
from trimlearn.robust.regression.modes import BEHIND, Likelihood, Modes
from trimlearn.robust.verdict import Verdict

__all__ = ["NEAREST", "average_of_fits", "between", "likelier"]

Floats = NDArray[np.float64]

USUAL = 2.5  # the score above which a row is called wrong where none was, as in `judge`
NEAREST = 2.0  # no row is called wrong below: one right row in twenty lies beyond (customary)
# Trimmed fits far from one another, the likeliest, from which EM begins. The first alone gives the same errors to 3 %,
# 40 % of bad leverage points among 100 rows included (python -m benchmarks.calibration averaging).
BASINS = 6
SIMPLE = np.array([0, 1])  # of LAWS, by which it is told how likely they are: normal errors, wrong rows a group or not
SEEN = 2_000  # rows on which that is told, a limit on time: where they decide anything, a tenth of them would do
ABSOLUTE = 30  # steps of a fit by least absolute residuals, of which only a start is asked
NEGLIGIBLE = 1e-6  # belief, beside the largest, that changes no digit that is known


def average_of_fits(
    rows: WeightedRows, raw: Floats, basins: Floats, odds: FeatureOdds, floor: float, *, intercept: bool
) -> SmoothFit:
    """The mean of the fits that EM finds from the trimmed fit ``raw``, those of other ``basins`` and other starts.

    odds: by which features make rows likelier to be wrong. floor: the least σ. intercept:
    whether a constant is fitted: then skewed errors have mean 0, as others have.

    >>> rng = np.random.default_rng(0)
    >>> A, t = np.column_stack([np.arange(20.0), np.ones(20)]), np.arange(20.0) + rng.normal(size=20)
    >>> t[:3] += 12.0
    >>> rows, odds = WeightedRows(A, t, np.ones(20)), FeatureOdds(np.zeros(20))
    >>> found = average_of_fits(rows, np.zeros(2), np.eye(2), odds, 0.0, intercept=True)
    >>> found.x.round(1), np.flatnonzero(found.w == 0)
    (array([ 1. , -0.1]), array([0, 1, 2]))
    """
    t = rows.residuals(raw)
    likelihood = Likelihood(rows, t, odds, floor)
    first = np.argsort(-_evidence(likelihood, basins - raw), kind="stable")[:BASINS]
    starts = np.vstack([raw, basins[first], _starts(rows, odds.overall <= 0)])
    modes = likelihood.settled(likelihood.begun(t - (starts - raw) @ rows.A.T))
    evidence = likelihood.evidence(modes)
    belief = np.exp(evidence - evidence.max())
    belief /= belief.sum()
    some = belief > NEGLIGIBLE * belief.max()
    modes, belief = modes.take(np.flatnonzero(some)), belief[some] / belief[some].sum()
    found = _mean(rows, t, modes, belief, intercept)
    return replace(found, x=raw + found.x)


def likelier(rows: WeightedRows, raw: Floats, basins: Floats, floor: float) -> Floats | None:
    """The one of ``basins`` around which right rows and wrong ones are likeliest, if that is far likelier than around
    the trimmed fit ``raw``. floor: the least σ.

    >>> A, t = np.column_stack([np.arange(20.0), np.ones(20)]), np.sin(np.arange(20.0))
    >>> t[12:] += 99.0
    >>> likelier(WeightedRows(A, t, np.ones(20)), np.array([7.5, -40.0]), np.zeros((1, 2)), 0.0)
    array([0., 0.])
    """
    some = np.argsort(rows.t, kind="stable")[:: -(-len(rows.t) // SEEN)]
    rows = WeightedRows(rows.A[some], rows.t[some], rows.c[some])
    likelihood = Likelihood(rows, rows.residuals(raw), feature_odds(rows.A, rows.c, None), floor)
    found = _evidence(likelihood, np.vstack([raw, basins]) - raw)
    best = int(np.argmax(found[1:]))
    return basins[best] if found[1 + best] > found[0] + BEHIND else None


def between(rows: WeightedRows, mean: SmoothFit, other: SmoothFit, share: float) -> SmoothFit:
    """Two fits as one: the ``mean`` by this share, and the ``other``. Covariances are those of a mixture."""
    assert mean.scatter is not None, "a mean is one of several fits"
    c = rows.c

    def mixed(values: Callable[[SmoothFit], Any]) -> Any:
        return share * values(mean) + (1 - share) * values(other)

    x = mixed(lambda fit: fit.x)
    scale = sqrt(mixed(lambda fit: fit.verdict.scale**2))
    cutoff = exp(mixed(lambda fit: log(fit.verdict.cutoff * fit.verdict.scale))) / scale
    inliers = np.abs(rows.residuals(x)) <= cutoff * scale
    verdict = Verdict(scale, cutoff, inliers, mixed(lambda fit: fit.verdict.contamination))
    w = np.where(inliers, mixed(lambda fit: fit.w), 0.0)
    noise = sqrt(mixed(lambda fit: fit.noise**2 / (c @ fit.w)) * (c @ w))
    scatter = np.vstack([sqrt(share) * mean.scatter, sqrt(share * (1 - share)) * (mean.x - other.x)])
    spared = mean.spared | (other.spared & inliers)
    return SmoothFit(x, w, verdict, noise, mixed(lambda fit: fit.bread), spared, scatter, mean.wrong)


def _evidence(likelihood: Likelihood, moves: Floats) -> Floats:
    """For each fit (B, q), as a difference from the one that left the targets of this likelihood."""
    begun = likelihood.begun(likelihood.t - moves @ likelihood.rows.A.T, LAWS.take(SIMPLE))
    return np.asarray(likelihood.evidence(begun).reshape(len(SIMPLE), -1).max(axis=0))


def _starts(rows: WeightedRows, near: NDArray[np.bool_]) -> Floats:
    """Coefficients from which EM begins (3, q), besides trimmed fits: least squares, that of the rows ``near`` by their
    features, and least absolute residuals."""
    c, t = rows.c, rows.t
    plain = rows.step(np.ones(len(t)), t)[0]
    x, unit = plain, float(np.sqrt(c @ rows.residuals(plain) ** 2 / c.sum()))
    for _ in range(ABSOLUTE):
        r = rows.residuals(x)
        x = x + rows.step(1 / np.hypot(r, 1e-3 * unit), r)[0] if unit > 0 else x
    inner = rows.step(near.astype(np.float64), t)[0] if c @ near > rows.rank else plain
    return np.vstack([plain, inner, x])


def _mean(rows: WeightedRows, t: Floats, modes: Modes, belief: Floats, intercept: bool) -> SmoothFit:
    """x, for the targets t, and what is known of it and of the rows, as a mean of the modes."""
    c, q = rows.c, rows.rank
    u, mass = modes.u, modes.right * c
    if intercept:
        offset = np.sum(mass * (t - u @ rows.Q.T), axis=1) / mass.sum(axis=1)
        u = u + np.where(modes.laws.skew == 1.0, 0.0, offset)[:, None] * (c @ rows.Q)
    squares = np.sum(mass * (t - u @ rows.Q.T) ** 2, axis=1) / np.maximum(mass.sum(axis=1) - q, 1.0)
    scale, centre = sqrt(float(belief @ squares)), belief @ u
    right = belief @ modes.right
    r = t - rows.Q @ centre
    cutoff = _parting(np.abs(r) / scale, right, c)
    inliers = np.abs(r) / scale <= cutoff
    verdict = Verdict(scale, cutoff, inliers, float(c @ (1 - right) / c.sum()))
    weight = belief @ modes.weight
    weight = np.where(inliers, weight / weight[inliers].max(initial=1e-300), 0.0)
    variance = modes.scale**2 * modes.laws.variance
    V = np.einsum("b,bij->ij", belief * variance, np.linalg.inv(grams(modes.weight * c, rows.Q)))
    noise = sqrt(float(np.trace(grams((weight * c)[None], rows.Q)[0] @ V)) / max(q, 1))
    scatter = (np.sqrt(belief)[:, None] * (u - centre)) @ rows.back.T
    bread = float(belief @ modes.laws.variance)
    none = np.zeros(len(c), dtype=bool)
    return SmoothFit(rows.back @ centre, weight, verdict, noise, bread, none, scatter, 1 - right)


def _parting(scores: Floats, right: Floats, c: Floats) -> float:
    """The cut-off that parts right rows from wrong ones with the fewest errors to be expected; of those that do, the
    one nearest to the usual."""
    order = np.argsort(scores, kind="stable")
    gain = np.append(0.0, np.cumsum((c * (right - 0.5))[order]))  # of the rows up to each score
    gain[: int(np.count_nonzero(scores <= NEAREST))] = -np.inf
    last = int(np.argmax(gain + 1e-12 * np.arange(len(gain))))
    ends = np.concatenate([[0.0], scores[order], [np.inf]])
    return float(max(ends[last], min(USUAL, np.nextafter(ends[last + 1], 0.0))))
