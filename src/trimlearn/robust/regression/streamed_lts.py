"""Least trimmed squares of rows that are read from a disk, from a start that a sample of them gave."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import final

import numpy as np

from trimlearn._utils.threads import filled
from trimlearn.losses.exact import solve_symmetric
from trimlearn.robust.regression.streamed_rows import StreamedRows, Vector
from trimlearn.robust.trimming import ThresholdWeights, pieces_of, trimming
from trimlearn.weights.simplex import snap_h

STEPS = 30  # at most, a limit on time: from the fit to a sample four to eight are made
SETTLED = 1e-6  # share of the objective that the next step could gain, when it is not made any more
NEAR = 0.05  # of the threshold: rows this near to it tell how many cross when it moves
MOST = 0.95  # of the curvature that such rows may take away: a step is twenty times longer at most


@final
@dataclass(frozen=True)
class Concentrated:
    """A trimmed fit: coefficients u, residuals r, the weights of these, and F after each step."""

    u: np.ndarray
    r: Vector
    kept: ThresholdWeights
    objectives: list[float]

    def weights(self) -> Vector:
        """w of all rows."""
        return filled(np.empty_like(self.r), lambda at: self.kept.of(self.r[at]), pieces_of(len(self.r)))


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
        kept = trimming(r, h, _half_square)
        value = kept.value + 0.5 * float(rows.penalty @ u**2) / rows.n
        if value > best[0] * (1 + SETTLED) and longer:  # back, with the plain step
            u, longer = best[1] + best[2], False
            continue

        objectives.append(value)
        found = Concentrated(u, r, kept, objectives)
        if not value < best[0] * (1 - SETTLED):
            break
        G = rows.curvature(kept.of, r) if G is None else G  # that of other rows, as many, is about the same
        g = rows.slope(kept.of, r, u)
        step = solve_symmetric(G, g[:, None])[:, 0]
        rho = min(MOST, _near(r, kept.threshold) / (2 * NEAR) / h)
        if not 0.5 * float(g @ step) / rows.n / (1 - rho) > SETTLED * value:
            break
        best = (value, u, step)
        u, longer = u + step / (1 - rho), True
    return found


def _half_square(size: Vector) -> Vector:
    return np.asarray(0.5 * np.square(size, dtype=np.float64))


def _near(r: Vector, theta: float) -> int:
    """How many residuals lie within 5 % of the threshold."""
    sizes = (np.abs(r[at]) for at in pieces_of(len(r)))
    return sum(int(np.count_nonzero((a > (1 - NEAR) * theta) & (a < (1 + NEAR) * theta))) for a in sizes)
