"""Least trimmed squares of rows that are read from a disk, from a start that a sample of them gave."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import final

import numpy as np

from trimlearn._utils.digits import kth_by_digits
from trimlearn.losses.exact import solve_symmetric
from trimlearn.robust.regression.streamed_rows import PIECE, StreamedRows, Vector
from trimlearn.robust.streamed import kept_share
from trimlearn.weights.simplex import snap_h

__all__ = ["Concentrated", "concentrated"]

STEPS = 30  # at most, a limit on time: from the fit to a sample four to eight are made
SETTLED = 1e-6  # share of the objective that the next step could gain, when it is not made any more
NEAR = 0.05  # of the threshold: rows this near to it tell how many cross when it moves
MOST = 0.95  # of the curvature that such rows may take away: a step is twenty times longer at most


@final
@dataclass(frozen=True)
class Concentrated:
    """A trimmed fit: coefficients u, residuals r, and the threshold |r| up to which rows are kept, those at it in part.

    objectives: F after each step.
    """

    u: np.ndarray
    r: Vector
    threshold: float
    share: float
    objectives: list[float]

    def weights(self) -> Vector:
        """w: 1 below the threshold, the share that is left at it, 0 beyond."""
        w: Vector = np.empty_like(self.r)
        for start in range(0, len(w), 1 << 20):
            at = slice(start, start + (1 << 20))
            w[at] = kept_share(self.r[at], self.threshold, self.share)
        return np.asarray(w)


def concentrated(rows: StreamedRows, u: np.ndarray, h: float) -> Concentrated:
    """Least trimmed squares that keep h, from u.

    The best w for u, then the best u for w, in turn. Such steps fall short where many rows lie at the threshold, for
    those change sides as u moves: if ρ is the share of the curvature that they take away, θ f(θ) n/h for a density f
    of |r| at the threshold θ, the step is 1/(1 − ρ) of that. Where the objective rises, it was too long, and the plain
    one is made instead, after which it cannot.
    """
    h = snap_h(h, rows.n)
    objectives: list[float] = []
    best: tuple[float, np.ndarray, np.ndarray] = (inf, u, np.zeros_like(u))  # the objective at u, and its plain step
    longer, G = True, None
    for _ in range(STEPS):
        r = rows.residuals(u)
        theta, share, value, near = _trim(r, h)
        value += 0.5 * float(rows.penalty @ u**2) / rows.n
        if value > best[0] * (1 + SETTLED) and longer:  # back, with the plain step
            u, longer = best[1] + best[2], False
            continue

        def weigh(a: Vector, theta: float = theta, share: float = share) -> Vector:
            return kept_share(a, theta, share)

        objectives.append(value)
        found = Concentrated(u, r, theta, share, objectives)
        if not value < best[0] * (1 - SETTLED):
            break
        G = rows.curvature(weigh, r) if G is None else G  # that of other rows, as many, is about the same
        g = rows.slope(weigh, r, u)
        step = solve_symmetric(G, g[:, None])[:, 0]
        rho = min(MOST, near / (2 * NEAR) / h) if theta > 0 else 0.0
        if not 0.5 * float(g @ step) / rows.n / (1 - rho) > SETTLED * value:
            break
        best = (value, u, step)
        u, longer = u + step / (1 - rho), True
    return found


def _trim(r: Vector, h: float) -> tuple[float, float, float, float]:
    """θ with |r| ≤ θ for h of the rows, the share of those at it, 1/n Σ wᵢ½rᵢ², and how many lie within 5 % of θ."""
    theta = kth_by_digits(r, ceil(h) - 1)
    below = tied = near = 0
    energy = 0.0
    for start in range(0, len(r), PIECE):
        a = np.abs(r[start : start + PIECE])
        inside = a < theta
        below += int(np.count_nonzero(inside))
        tied += int(np.count_nonzero(a == theta))
        near += int(np.count_nonzero((a > (1 - NEAR) * theta) & (a < (1 + NEAR) * theta)))
        energy += float(np.sum(np.square(a, dtype=np.float64), where=inside))
    share = min(max((h - below) / max(tied, 1), 0.0), 1.0)
    return theta, share, (energy + (h - below) * theta * theta) / 2 / len(r), float(near)
