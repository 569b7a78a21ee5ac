"""How heavy the tails of ordinary residuals are: a heavy tail is no dirt.

What the other cells of a row expect is missed by Student's t law, of which the normal is the one with ν = ∞. Its scale
and ν are those of the greatest likelihood of the residuals within REACH of the middle, given that they are within:
what lies further out, wild or not, has no say. A column has few residuals to tell its ν by, so that it borrows from
all the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

from trimlearn.robust.scale import EXPECTED, Chi

__all__ = ["Tail", "adaptive_level", "tails"]

FREEDOMS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, np.inf)  # ν: from Cauchy's law to the normal one
SCALES = np.linspace(0.6, 1.4, 33)  # of the law, in units of the robust scale of the residuals
REACH = 3.5  # in the same units: at 4 and 5 wrong cells as far out pass for tails, at 3 tails do for wrong cells
BINS = 35  # up to REACH: a tenth of σ each, so that n hardly counts
BORROWED = 1000  # residuals of all columns that a column's ν is judged by beside its own
GAIN = Chi().upper(0.01) ** 2 / 2  # of the log-likelihood, before tails are held to be heavier than normal
RARE = 1e-12  # the least share of a bin: beyond 6 σ the normal law has no digits left
LEVEL = 0.01  # the share of clean cells beyond the least cut-off: customary in the papers on cells

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Tail:
    """Student's law with ν = ``freedom`` and this scale."""

    freedom: float
    scale: float

    def p_value(self, r: Floats) -> Floats:
        """P(|T| > |r|)."""
        a = np.abs(r) / self.scale
        return np.asarray(2.0 * (stdtr(self.freedom, -a) if np.isfinite(self.freedom) else ndtr(-a)))

    def density(self, r: Floats) -> Floats:
        """Of T at r."""
        a, nu = (r / self.scale) ** 2, self.freedom
        if not np.isfinite(nu):
            return np.asarray(np.exp(-a / 2) / (np.sqrt(2 * np.pi) * self.scale))
        constant = np.exp(gammaln((nu + 1) / 2) - gammaln(nu / 2)) / np.sqrt(nu * np.pi)
        return np.asarray(constant * (1 + a / nu) ** (-(nu + 1) / 2) / self.scale)

    def upper(self, level: float) -> float:
        """The size beyond which a share ``level`` lies."""
        t = -stdtrit(self.freedom, level / 2) if np.isfinite(self.freedom) else -ndtri(level / 2)
        return float(t) * self.scale


def tails(columns: Sequence[Floats]) -> list[Tail]:
    """The law of the residuals of each column, which are in units of their robust scale.

    >>> rng = np.random.default_rng(0)
    >>> tails([rng.normal(size=500)])[0].freedom, tails([rng.standard_t(2, size=500) / 1.2])[0].freedom < 5
    (inf, True)
    """
    edges = np.linspace(0.0, REACH, BINS + 1)
    counts = np.array([np.histogram(np.abs(r), edges)[0] for r in columns], dtype=np.float64)
    logs = counts @ _log_shares().reshape(-1, BINS).T
    logs = logs.reshape(len(columns), len(FREEDOMS), len(SCALES))
    shared = logs.max(axis=2).sum(axis=0)  # each with a scale of its own
    prior = shared * min(1.0, BORROWED / max(counts.sum(), 1.0))
    found = []
    for column in logs:
        fits = column.max(axis=1) + prior
        best = len(FREEDOMS) - 1 if fits[-1] >= fits.max() - GAIN else int(fits.argmax())
        found.append(Tail(FREEDOMS[best], float(SCALES[column[best].argmax()])))
    return found


@cache
def _log_shares() -> Floats:
    """log P(bin | within REACH), for every ν, scale and bin."""
    edges = np.linspace(0.0, REACH, BINS + 1)
    inside = 1.0 - np.array([[Tail(nu, scale).p_value(edges) for scale in SCALES] for nu in FREEDOMS])
    return np.asarray(np.log(np.maximum(np.diff(inside, axis=2), RARE) / inside[:, :, -1:]))


def adaptive_level(p: Floats) -> float:
    """The p-value below which cells deviate: as many as exceed what the laws explain (Gervini and Yohai 2002), and at
    most LEVEL. Where none does, that of which fewer than EXPECTED clean cells are below.

    It lies between the p-values of two cells, not on one: else rounding would decide about that cell.

    >>> round(adaptive_level(np.linspace(0.0005, 1.0, 1000)), 4), adaptive_level(np.append(np.zeros(50), np.ones(50)))
    (0.0004, 0.004)
    >>> p = np.append(np.linspace(1e-6, 1e-3, 20), np.full(980, 0.5))
    >>> bool(p[18] < adaptive_level(p) < p[19])
    True
    """
    p = np.sort(p)
    count = np.arange(1, len(p) + 1)
    tail = p <= LEVEL
    excess = float(np.max(count[tail] - len(p) * p[tail], initial=0.0))
    flagged = p[tail][count[tail] <= max(excess + EXPECTED, 0.0)] if excess > 0 else p[:0]
    least = EXPECTED / max(len(p), 1)
    if not len(flagged) or flagged[-1] <= least:
        return min(LEVEL, least)
    beyond = p[p > flagged[-1]]
    return float(np.sqrt(flagged[-1] * min(LEVEL, beyond[0] if len(beyond) else LEVEL)))
