"""The graphical lasso: over Θ ≻ 0, minimise tr(SΘ) − log det Θ + α Σ_{j≠k} |Θⱼₖ|.

Its dual: maximise log det W over W that differ from S by at most α off the diagonal, and not on it; W = Θ⁻¹ at both
optima. By a primal-dual interior point method (M. H. Wright, The interior-point revolution in optimization, Bull. AMS
42, 2005), in units in which S has unit diagonal. With W = R + V, and Θ = P − N off the diagonal, P(A − V) and N(A + V)
are to be μ for every pair of features, and μ → 0, while Newton steps make Θ and W⁻¹ the same. A step is a linear
system in V for all pairs, solved by conjugate gradients.

Where rows are as few as features Θ has condition numbers of thousands. Steps along gradients or coordinates take as
many as the square of that, and scikit-learn's coordinate descent loses positive definiteness. Here twenty or thirty
steps are enough, from any start: covariances that bad rows spoil, which a robust fit meets on its way, are no harder.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final, final

import numpy as np

__all__ = ["SparseNormal", "graphical_lasso", "penalised"]

WIDE: Final = 10.0  # P and N at the start: solves of 20 × 30 take 27, 23 and 22 steps with 3, 10 and 30
SHORT: Final = 0.95  # of the way to where an unknown would leave its range: customary for interior points
CENTRING: Final = 0.05, 0.5  # of μ, that a step aims at: less the farther the last one went, as Mehrotra (1992) does
FORCING: Final = 0.05  # of the residual, left in a Newton equation: customary (inexact Newton, Dembo et al. 1982)
SOLVES: Final = 500  # conjugate gradients in a Newton step, a limit on time: five are usual
# Where S has unit diagonal: without a penalty the dual has no interior; and W, of unit diagonal, is within 2 of S.
PENALTIES: Final = 1e-10, 2.0
ROUNDING: Final = 1e-8  # of the gap asked for: the least that the products sum up to, so that no unknown becomes 0


@final
@dataclass(frozen=True)
class SparseNormal:
    """Weights w, location μ and precision Θ; J, and J after each concentration step."""

    w: np.ndarray
    location: np.ndarray
    precision: np.ndarray
    solved: bool  # whether the graphical lasso had converged
    objective: float = inf
    history: tuple[float, ...] = ()
    converged: bool = False

    @property
    def covariance(self) -> np.ndarray:
        return np.asarray(np.linalg.inv(self.precision), dtype=np.float64)

    @property
    def log_det(self) -> float:
        """Of the covariance."""
        return -float(np.linalg.slogdet(self.precision)[1])

    def squared_distances(self, X: np.ndarray) -> np.ndarray:
        D = X - self.location
        return np.asarray(np.maximum(np.einsum("np,np->n", D @ self.precision, D), 0.0))


def penalised(S: np.ndarray, theta: np.ndarray, alpha: np.ndarray | float) -> float:
    """tr(SΘ) − log det Θ + Σ_{j≠k} αⱼₖ|Θⱼₖ|; inf unless Θ is positive definite."""
    penalty = alpha * np.abs(theta)
    off = float(np.sum(penalty) - np.trace(penalty))
    return float(np.sum(S * theta)) - _log_det(theta) + off


def graphical_lasso(S: np.ndarray, alpha: float, tol: float = 1e-4, max_iter: int = 1000) -> tuple[np.ndarray, bool]:
    """Θ, and whether its duality gap fell to ``tol`` within so many steps.

    >>> S = np.array([[2.0, 0.5, 0.05], [0.5, 1.0, 0.0], [0.05, 0.0, 1.0]])
    >>> theta, done = graphical_lasso(S, 0.1)
    >>> int(np.count_nonzero(theta)), done, round(float(np.linalg.inv(theta)[0, 1]), 2)
    (5, True, 0.4)
    """
    unit = np.sqrt(np.diag(S))
    units = np.outer(unit, unit)
    R, A = S / units, np.clip(alpha / units, *PENALTIES)
    at, aim = _Interior.start(len(S)), CENTRING[1]
    best, solved = np.eye(len(S)), False
    for _ in range(max_iter):
        at, length = at.step(R, A, aim, ROUNDING * tol)
        aim = float(np.clip((1.0 - length) ** 2, *CENTRING))
        sparse = at.sparse(A)
        value = penalised(R, sparse, A)
        if value < inf:
            best, solved = sparse, value - len(S) - _log_det(R + at.V) <= tol
        if solved or _log_det(at.theta) == -inf:  # rounding
            break
    return best / units, solved


@final
@dataclass(frozen=True)
class _Interior:
    """Positive definite Θ; V, less than A; and P, N, positive. But for Θ they are 0 on the diagonal."""

    theta: np.ndarray
    V: np.ndarray
    P: np.ndarray
    N: np.ndarray

    @classmethod
    def start(cls, p: int) -> _Interior:
        wide = WIDE * (1.0 - np.eye(p))
        return cls(np.eye(p), np.zeros((p, p)), wide, wide)

    def sparse(self, A: np.ndarray) -> np.ndarray:
        """Θ without the entries that a proximal step, of a length for each, would make 0."""
        deviations = np.sqrt(np.diag(self.theta))
        nonzero = A * np.abs(self.theta) > (A - np.abs(self.V)) * np.outer(deviations, deviations)
        return np.where(nonzero | np.eye(len(A), dtype=bool), self.theta, 0.0)

    def products(self, A: np.ndarray) -> np.ndarray:
        """P(A − V) + N(A + V), which sum up to the duality gap where Θ is P − N and W⁻¹."""
        return np.asarray(self.P * (A - self.V) + self.N * (A + self.V))

    def step(self, R: np.ndarray, A: np.ndarray, aim: float, least: float) -> tuple[_Interior, float]:
        """A Newton step towards products that are alike and sum up to ``aim`` times what they do now, but to ``least``
        at least; and what share of it stays in range."""
        theta, P, N = self.theta, self.P, self.N
        above, below, pairs = A - self.V, A + self.V, ~np.eye(len(A), dtype=bool)
        mu = 0.5 * max(aim * float(np.sum(self.products(A))), least) / max(1.0, float(np.sum(pairs)))
        missing = 2.0 * theta - theta @ (R + self.V) @ theta - mu / above + mu / below
        dV = _conjugate_gradients(theta, P / above + N / below, np.where(pairs, missing, 0.0))
        dP, dN = ((mu + P * dV) / above - P) * pairs, ((mu - N * dV) / below - N) * pairs
        L = np.linalg.cholesky(theta)
        most = float(np.linalg.eigvalsh(L.T @ (R + self.V + dV) @ L)[-1])  # Θ + tdΘ is L(I + t(I − LᵀWL))Lᵀ
        t = min(_reach(P, dP), _reach(N, dN), SHORT / max(most - 1.0, SHORT))
        r = min(_reach(above, -dV), _reach(below, dV))
        d_theta = theta - theta @ (R + self.V + dV) @ theta
        moved = _Interior(_symmetric(theta + t * d_theta), self.V + r * dV, P + t * dP, N + t * dN)
        return moved, min(r, t)


def _conjugate_gradients(theta: np.ndarray, D: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """V, 0 on the diagonal, with ΘVΘ + D∘V = ``rest`` off it; the equations' diagonal is the preconditioner."""
    diagonal = np.diag(theta)
    scale = 1.0 / (np.outer(diagonal, diagonal) + theta * theta + D)
    np.fill_diagonal(scale, 0.0)
    V, along = np.zeros_like(theta), scale * rest
    size = float(np.sum(rest * along))
    least = FORCING**2 * size
    for _ in range(SOLVES):
        if not size > least:
            break
        curved = theta @ along @ theta + D * along
        length = size / float(np.sum(along * curved))
        V, rest = V + length * along, rest - length * curved
        last, size = size, float(np.sum(rest * scale * rest))
        along = scale * rest + size / last * along
    return _symmetric(V)


def _reach(x: np.ndarray, dx: np.ndarray) -> float:
    """The largest share of a step dx, 1 at most, that keeps x positive, but for a margin."""
    down = dx < 0.0
    return float(np.min(-SHORT * x[down] / dx[down], initial=1.0))


def _log_det(W: np.ndarray) -> float:
    """log det W; −inf unless W is positive definite, which the sign of its determinant does not tell."""
    try:
        return 2.0 * float(np.sum(np.log(np.diag(np.linalg.cholesky(W)))))
    except np.linalg.LinAlgError:
        return -inf


def _symmetric(M: np.ndarray) -> np.ndarray:
    """M without what rounding has put on one side only."""
    return np.asarray(0.5 * (M + M.T))
