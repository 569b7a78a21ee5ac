"""The probability that a row is wrong, and lists of rows with a known share of innocents.

The two-groups model (Efron, Tibshirani, Storey and Tusher 2001; Efron 2004): of all rows a share is wrong, the others
follow the law of the model. Under that law t = −log(p-value) is exponential with mean 1. The t of wrong rows is taken
for a mixture of exponentials that begin at `BEGIN` and have mean `REACH`, in shares w that the data tell (by the EM
algorithm of Dempster, Laird and Rubin 1977, from a likelihood that is concave in w). Then

    P(wrong | t) = 1 − w₀ / (w₀ + Σ wⱼ fⱼ(t) eᵗ),       fⱼ(t) = exp(−(t − beginⱼ)/REACH)/REACH for t ≥ beginⱼ,

one minus the local false discovery rate, never falls as t grows. Below the first beginning nobody can be told from an
innocent. `python -m benchmarks probability` measures how well it is calibrated, with the constants below and with
others in their place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Where wrong rows may begin, as −log p: 2.4, 3.0, 3.9, 5.0 and 6.7 standard deviations of a normal error. What lies
# further out is wrong whatever the shares. On simulated normal scores (n = 50 to 5,000) the share of wrong rows differs
# from their mean probability by 3 points with these, by 18 with the first alone, by 4 or 5 with four others.
BEGIN = np.array([4.0, 6.0, 9.0, 14.0, 25.0])
# The mean of −log p beyond the beginning. The same difference is 6 points for 2, and 2 points for 8 and for 15; from 5
# on the mean squared error of the probabilities changes by 2 %.
REACH = 5.0
# Innocent rows added in thought: a few rows a little far out are chance, unless more say otherwise. The same difference
# is 5 points for 0 and 1 point for 80; the squared error is least from 20 to 40, and 1 % larger for 0 and for 80.
PRIOR = 20.0
MOST = 700.0  # of t: its exponential is finite, and nothing is less likely
ROUNDING = 64.0  # shares are found from t rounded to 1/64, on a few hundred different values, however many rows
STEPS, PRECISE = 1000, 1e-7  # of EM, limits on time: shares are known to seven digits, or nearly so


def row_probabilities(p_values: ArrayLike, sample_weight: ArrayLike | None = None) -> Vector:
    """The probability that each row is wrong, from its p-value under the model of the right ones.

    It is never smaller for a row of smaller p-value. sample_weight: 2 is the row twice; a row of weight 0 is judged by
    what the others tell.

    >>> p_values = np.append(np.linspace(0.005, 1, 200), [1e-3, 1e-5, 1e-12])
    >>> row_probabilities(p_values)[-3:].round(2)
    array([0.4 , 0.98, 1.  ])
    >>> float(row_probabilities(np.linspace(0.005, 1, 200)).max().round(1))
    0.0
    """
    p = np.asarray(p_values, dtype=np.float64)
    s = np.ones(p.shape) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if p.ndim != 1 or s.shape != p.shape:
        raise ValueError(f"p_values and sample_weight must be vectors of one length, got {p.shape} and {s.shape}.")
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("p_values must be numbers from 0 to 1; repair those that are not.")
    with np.errstate(divide="ignore"):
        t = np.minimum(-np.log(p), MOST)
    levels, index = np.unique(np.round(t * ROUNDING) / ROUNDING, return_inverse=True)
    odds = _odds(levels) if len(levels) else np.empty((len(BEGIN), 0))
    w = _shares(odds, np.bincount(index, s, minlength=len(levels)).astype(np.float64))
    wrong, far = np.zeros(p.shape), t >= BEGIN[0]  # nearer, the odds are 0
    wrong[far] = w[1:] @ _odds(t[far])
    return np.asarray(wrong / (w[0] + wrong))


def flag(probability: ArrayLike, fdr: float = 0.1) -> Mask:
    """The longest list, worst first, of which the expected share of innocents, the mean of 1 − probability, is at most
    ``fdr``. Rows of equal probability are on it together or not at all.

    >>> flag(np.array([0.99, 0.2, 0.9, 0.9, 0.0]), fdr=0.1)
    array([ True, False,  True,  True, False])
    """
    p = _checked(probability)
    if isinstance(fdr, bool) or not 0 <= fdr < 1:
        raise ValueError(f"fdr must be a number from 0 to below 1, the share of innocents to put up with, got {fdr!r}.")
    values, index, count = np.unique(-p, return_inverse=True, return_counts=True)
    innocent, listed = np.cumsum(count * (1.0 + values)), np.cumsum(count)
    allowed = np.flatnonzero(innocent <= fdr * listed + 1e-12)  # rounding of the sums
    return np.asarray(index <= allowed[-1]) if len(allowed) else np.zeros(p.shape, dtype=bool)


def false_discovery_rate(probability: ArrayLike, flagged: ArrayLike) -> float:
    """The expected share of innocents among the rows flagged: the mean of 1 − probability; 0 where nobody is.

    >>> round(false_discovery_rate(np.array([0.99, 0.2, 0.9]), np.array([True, False, True])), 3)
    0.055
    """
    p, chosen = _checked(probability), np.asarray(flagged, dtype=bool)
    if chosen.shape != p.shape:
        raise ValueError(f"flagged must have one entry per row, shape {p.shape}, got {chosen.shape}.")
    return float(np.mean(1.0 - p[chosen])) if chosen.any() else 0.0


def _odds(t: Vector) -> Vector:
    """fⱼ(t)eᵗ, how much likelier t is for a wrong row of each kind than for a right one: (kinds, rows)."""
    beyond = t - BEGIN[:, None]
    return np.where(beyond >= 0, np.exp(np.minimum(t - beyond / REACH, MOST)) / REACH, 0.0)


def _shares(odds: Vector, s: Vector) -> Vector:
    """w₀ of the right rows and wⱼ of each kind of wrong ones, the most likely given ``s`` rows of each ``odds``."""
    likelihood = np.vstack([np.ones(odds.shape[1]), odds])
    w = np.append(0.9, np.full(len(BEGIN), 0.1 / len(BEGIN)))
    prior = np.append(PRIOR, np.zeros(len(BEGIN)))
    for _ in range(STEPS):
        joint = w[:, None] * likelihood
        counts = joint @ (s / joint.sum(axis=0)) + prior
        before, w = w, counts / counts.sum()
        if np.abs(w - before).max() <= PRECISE:
            break
    return w


def _checked(probability: ArrayLike) -> Vector:
    p = np.asarray(probability, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError("probability must be a vector of numbers from 0 to 1, one per row.")
    return p
