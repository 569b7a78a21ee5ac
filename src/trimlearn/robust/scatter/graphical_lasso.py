"""The graphical lasso: over Θ ≻ 0, minimise tr(SΘ) − log det Θ + α Σ_{j≠k} |Θⱼₖ|.

By proximal gradient steps with Barzilai–Borwein lengths and backtracking (Rolfs, Rajaratnam, Guillot, Wong and Maleki
2012, G-ISTA), in units in which S has unit diagonal, a few of them followed by a Newton step among the Θ of the same
signs and zeros (Oztoprak, Nocedal, Rennie and Olsen 2012). scikit-learn's block coordinate descent fails on
covariances that bad rows make nearly singular, which is what a robust fit meets on its way; here every iterate is
positive definite, the objective falls, and a start near the solution is worth something. Gradient steps find out which
entries are 0; alone they take as many as the square of Θ's condition number, a thousand and more where rows are as few
as features.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final, final

import numpy as np

__all__ = ["SparseNormal", "graphical_lasso", "penalised"]

HALVINGS: Final = 60  # of a step, a limit on time: 2⁻⁶⁰ of a Barzilai–Borwein step changes nothing but rounding errors
NEAR: Final = 5.0  # of the logarithms of a start's diagonal: one that is e⁵ = 148 times off is of another scale
FORCING: Final = 0.1  # of the gradient, left in a Newton equation: customary (inexact Newton, Dembo et al. 1982)
GRADIENTS: Final = 5  # steps before a Newton step: with 1 a solve of 14 × 30 takes four times as long, with 10 as long
ARMIJO: Final = 1e-4  # of the decrease that a step promises, to be accepted (Nocedal and Wright 2006, section 3.1)


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
    try:
        L = np.linalg.cholesky(theta)
    except np.linalg.LinAlgError:
        return inf
    penalty = alpha * np.abs(theta)
    off = float(np.sum(penalty) - np.trace(penalty))
    return float(np.sum(S * theta)) - 2.0 * float(np.sum(np.log(np.diag(L)))) + off


def graphical_lasso(
    S: np.ndarray, alpha: float, start: np.ndarray | None = None, tol: float = 1e-4, max_iter: int = 1000
) -> tuple[np.ndarray, bool]:
    """Θ, and whether its duality gap fell to ``tol``. ``start``: a positive definite Θ.

    >>> S = np.array([[2.0, 0.5, 0.05], [0.5, 1.0, 0.0], [0.05, 0.0, 1.0]])
    >>> theta, done = graphical_lasso(S, 0.1)
    >>> int(np.count_nonzero(theta)), done, round(float(np.linalg.inv(theta)[0, 1]), 2)
    (5, True, 0.4)
    """
    d = np.sqrt(np.diag(S))
    R, A = S / np.outer(d, d), alpha / np.outer(d, d)
    np.fill_diagonal(A, 0.0)
    theta = np.eye(len(S)) if start is None else start * np.outer(d, d)
    if not np.all(np.abs(np.log(np.diag(theta))) < NEAR):  # of another scale, as where a variance has collapsed
        theta = np.eye(len(S))
    value, inverse, step = penalised(R, theta, A), np.linalg.inv(theta), 1.0
    for k in range(max_iter):
        if value - _lower_bound(R, A, inverse) <= tol:
            return theta / np.outer(d, d), True
        new, new_value = _descend(R, A, theta, inverse, value, step)
        if not new_value < value:  # rounding
            break
        new_inverse = np.linalg.inv(new)
        moved = new - theta
        step = float(np.sum(moved * moved)) / max(float(np.sum(moved * (inverse - new_inverse))), 1e-300)
        theta, inverse, value = new, new_inverse, new_value
        if k % GRADIENTS < GRADIENTS - 1:
            continue
        new, new_value = _newton(R, A, theta, inverse, value)
        if new_value < value:
            theta, inverse, value = new, np.linalg.inv(new), new_value
    return theta / np.outer(d, d), value - _lower_bound(R, A, inverse) <= tol


def _lower_bound(R: np.ndarray, A: np.ndarray, inverse: np.ndarray) -> float:
    """log det W + p for the nearest dual feasible W: |W − R| ≤ A, equal on the diagonal."""
    W = R + np.clip(inverse - R, -A, A)
    sign, log_det = np.linalg.slogdet(W)
    return float(log_det) + len(R) if sign > 0 else -inf


def _descend(
    R: np.ndarray, A: np.ndarray, theta: np.ndarray, inverse: np.ndarray, value: float, step: float
) -> tuple[np.ndarray, float]:
    """One proximal gradient step, the first of ``step``, ``step``/2, … that lowers the objective."""
    gradient = R - inverse
    new, new_value = theta, inf
    for _ in range(HALVINGS):
        moved = theta - step * gradient
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * A, 0.0)
        new = 0.5 * (new + new.T)
        new_value = penalised(R, new, A)
        decrease = float(np.sum((new - theta) ** 2)) / step
        if new_value <= value - ARMIJO * decrease:
            break
        step *= 0.5
    return new, new_value


def _newton(
    R: np.ndarray, A: np.ndarray, theta: np.ndarray, inverse: np.ndarray, value: float
) -> tuple[np.ndarray, float]:
    """One Newton step among the Θ of the same signs and zeros, the first of 1, ½, … that lowers the objective.

    There the objective is smooth, with the gradient G = R − Θ⁻¹ + A sign Θ. What changes its sign becomes 0.
    """
    free, sign = theta != 0.0, np.sign(theta)
    gradient = np.where(free, R - inverse + A * sign, 0.0)
    direction = _newton_direction(gradient, free, theta, inverse)
    new, new_value, step = theta, inf, 1.0
    for _ in range(HALVINGS):
        new = theta + step * direction
        new[new * sign < 0.0] = 0.0
        new_value = penalised(R, new, A)
        if new_value <= value + ARMIJO * float(np.sum(gradient * (new - theta))):
            break
        step *= 0.5
    return new, new_value


def _newton_direction(gradient: np.ndarray, free: np.ndarray, theta: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """D, 0 where not ``free``, with Θ⁻¹DΘ⁻¹ = −G where free, by conjugate gradients, p steps at most: a
    limit on time, any of them is a descent.

    Were all entries free, D would be −ΘGΘ: the same with the others set to 0 is the preconditioner.
    """
    D, residual = np.zeros_like(theta), -gradient
    ahead = np.where(free, theta @ residual @ theta, 0.0)
    along, size = ahead, float(np.sum(residual * ahead))
    least = FORCING**2 * size
    for _ in range(len(theta)):
        if not size > least:
            break
        curved = np.where(free, inverse @ along @ inverse, 0.0)
        length = size / float(np.sum(along * curved))
        D = D + length * along
        residual = residual - length * curved
        ahead = np.where(free, theta @ residual @ theta, 0.0)
        last, size = size, float(np.sum(residual * ahead))
        along = ahead + size / last * along
    return np.asarray(0.5 * (D + D.T))
