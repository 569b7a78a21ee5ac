"""How likely residuals are, if they come from one normal law, or from two groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_normal", "one_group", "two_groups"]

THINNEST = 0.25  # σ of the flagged group, at least, in that of the others: equal flagged rows would have none

Floats = NDArray[np.float64]


def one_group(r: Floats, c: Floats, rank: float = 0.0) -> float:
    """The logarithm of the likelihood of one normal law around 0 for residuals r, each of which counts c times, of a
    fit with so many coefficients.

    >>> round(one_group(np.array([-1.0, 1.0]), np.ones(2)), 3)
    -2.838
    """
    scale = np.sqrt(c @ r**2 / max(c.sum() - rank, 1.0))
    return float(c @ log_normal(r, scale))


def two_groups(r: Floats, c: Floats, off: NDArray[np.bool_], scale: float) -> float:
    """The same for two normal groups: one around 0 of this scale, and the rows ``off``, of a mean and scale of theirs.

    >>> r = np.array([-1.0, 1.0, 9.0, 9.5])
    >>> two_groups(r, np.ones(4), r > 5, 1.0) > one_group(r, np.ones(4))
    True
    """
    n, bad, count = c.sum(), r[off], c[off]
    mean = count @ bad / count.sum()
    spread = max(float(np.sqrt(count @ (bad - mean) ** 2 / count.sum())), THINNEST * scale)
    share = count.sum() / n
    groups = np.log(1 - share) + log_normal(r, scale), np.log(share) + log_normal(r - mean, spread)
    return float(c @ np.logaddexp(*groups))


def log_normal(r: Floats, scale: float) -> Floats:
    """The logarithm of the density of a normal law around 0 of this scale."""
    return np.asarray(-0.5 * (r / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi))
