"""Trimmed fits of any loss of linear predictions to rows that are read from a disk, from a start that a sample gave.

Newton's steps: x is near its place already, and a pass over the rows gives value, gradient and Hessian at once. One
number for each row is kept, its loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, prod
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn._utils.digits import kth_by_digits
from trimlearn._utils.threads import each, total
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.exact import solve_symmetric
from trimlearn.weights.simplex import snap_h

__all__ = ["Trimming", "kept_share", "newton_streamed", "trimmed_newton", "trimming"]

Weigh = Callable[[slice], Any]  # the weights of some rows, or one for all

STEPS = 30  # at most, a limit on time: from the fit to a sample three to ten are made
SETTLED = 1e-8  # share of F that the next step could gain, when it is not made any more
HALVINGS = 20  # of a step at most, against cycles: one or two are made, if any
PIECE = 1 << 18  # losses compared with a threshold in one go: a limit on memory, 2 MB


@final
@dataclass(frozen=True)
class Trimming:
    """Weight 1 below a threshold, ``share`` at it, 0 above; and the mean of the weighted losses."""

    threshold: float
    share: float
    value: float

    def of(self, f: np.ndarray) -> np.ndarray:
        """The weights of losses f ≥ 0."""
        return kept_share(f, self.threshold, self.share)


def kept_share(a: np.ndarray, threshold: float, share: float) -> np.ndarray:
    """1 where |a| is below the threshold, ``share`` at it, 0 above and where a is NaN."""
    size = np.abs(a)
    w: np.ndarray = (size < threshold).astype(a.dtype)
    w[size == threshold] = share
    return w


def trimming(f: np.ndarray, h: float) -> Trimming:
    """The weights that keep the h smallest of the losses f ≥ 0."""
    n, h = len(f), snap_h(h, len(f))
    theta = inf if h >= n else kth_by_digits(f, ceil(h) - 1)
    below = tied = 0
    total_loss = 0.0
    for start in range(0, n, PIECE):
        a = f[start : start + PIECE]
        inside = a < theta
        below += int(np.count_nonzero(inside))
        tied += int(np.count_nonzero(a == theta))
        total_loss += float(np.sum(a, dtype=np.float64, where=inside))
    left = h - below
    return Trimming(
        theta, min(max(left / max(tied, 1), 0.0), 1.0), (total_loss + (left * theta if left > 0 else 0)) / n
    )


def trimmed_newton(loss: PredictionLoss, x: Array, h: float, ridge: float) -> tuple[Array, np.ndarray, list[float]]:
    """min over x and w of 1/n Σ wᵢfᵢ(x) + ½ ridge ‖x‖², Σ wᵢ = h, the intercept exempt: x, the losses there, and F
    after each step.

    The best w for x, then Newton's step for this w, in turn: F falls in each, for a step that does not lower it is
    halved.
    """
    penalty, objectives = _penalty(loss, ridge), list[float]()
    f, best, step, length, halvings = _losses(loss, x), inf, np.zeros(x.shape), 1.0, 0
    for _ in range(STEPS):
        found = trimming(f, h)
        value = found.value + _half_square(penalty, x)
        if not value <= best * (1 + SETTLED) and halvings < HALVINGS:
            length, halvings = length / 2, halvings + 1
            x = (x - length * step).astype(x.dtype)
            f = _losses(loss, x)
            continue
        objectives.append(value)
        _, gradient, hessian = _derivatives(loss, x, lambda at, found=found, f=f: found.of(f[at]), penalty)  # type: ignore[misc]
        step = solve_symmetric(hessian, -gradient[:, None])[:, 0].reshape(x.shape)
        gain = -0.5 * float(gradient @ step.ravel())
        if not gain > SETTLED * abs(value) or not value < best:
            break
        best, length, halvings = value, 1.0, 0
        x = (x + step).astype(x.dtype)
        f = _losses(loss, x)
    return x, f, objectives


def newton_streamed(loss: PredictionLoss, x: Array, weigh: Weigh, ridge: float) -> Array:
    """min over x of 1/n Σ wᵢfᵢ(x) + ½ ridge ‖x‖², the intercept exempt, w as given."""
    penalty, best, step, length = _penalty(loss, ridge), inf, np.zeros(x.shape), 1.0
    good = x
    for _ in range(STEPS):
        value, gradient, hessian = _derivatives(loss, x, weigh, penalty)
        if not value <= best * (1 + SETTLED):
            length /= 2
            x = (good + length * step).astype(x.dtype)
            continue
        step = solve_symmetric(hessian, -gradient[:, None])[:, 0].reshape(x.shape)
        good, improved = x, value < best
        if not -0.5 * float(gradient @ step.ravel()) > SETTLED * abs(value) or not improved:
            break
        best, length = value, 1.0
        x = (x + step).astype(x.dtype)
    return good


def _losses(loss: PredictionLoss, x: Array) -> np.ndarray:
    f = np.empty(loss.n, loss.like.dtype)

    def part(at: tuple[slice, Any]) -> None:
        f[at[1]] = loss.phi(loss.linear.predict(x, at[1]), at[1])

    each(part, loss.linear.pieces())
    return f


def _derivatives(
    loss: PredictionLoss, x: Array, weigh: Weigh, penalty: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, gradient and Hessian of 1/n Σ wᵢfᵢ + ½ Σ penalty x², x as one vector."""
    K, p, linear = loss.K, loss.linear.p, loss.linear
    pairs = [(k, m) for k in range(K) for m in range(k + 1)]
    units = np.eye(K, dtype=loss.like.dtype)

    def part(at: tuple[slice, Any]) -> np.ndarray:
        rows = at[1]
        V, Z, w = linear.storage.fetch(rows), linear.predict(x, rows), weigh(rows)
        f, r = loss.evaluate(Z, rows)
        w = np.broadcast_to(np.asarray(w, f.dtype), f.shape)
        f, r = np.where(w > 0, f, 0) * w, np.where(w[:, None] > 0, r, 0) * w[:, None]
        sums = np.zeros((1 + K + len(pairs), p + 1, p + 1))
        sums[0, 0, 0] = f.sum(dtype=np.float64)
        sums[1 : K + 1, 0, :p], sums[1 : K + 1, 0, p] = r.T @ V, r.sum(axis=0, dtype=np.float64)
        curves = [loss.phi_hessp(Z, np.broadcast_to(unit, Z.shape), rows) for unit in units]
        for number, (k, m) in enumerate(pairs):
            c = np.where(w > 0, curves[k][:, m], 0) * w
            H = sums[1 + K + number]
            H[:p, :p], H[:p, p], H[p, p] = (V * c[:, None]).T @ V, c @ V, c.sum(dtype=np.float64)
            H[p, :p] = H[:p, p]
        return sums

    sums = total(part, linear.pieces(), np.zeros((1 + K + len(pairs), p + 1, p + 1))) / loss.n
    size, T = p + linear.intercept, _transform(loss)
    gradient = np.stack([(T @ g[0])[:size] for g in sums[1 : K + 1]], axis=1)  # (size, K), as x is
    hessian = np.zeros((size, K, size, K))
    for number, (k, m) in enumerate(pairs):
        H = (T @ sums[1 + K + number] @ T.T)[:size, :size]
        hessian[:, k, :, m], hessian[:, m, :, k] = H, H.T
    flat = x.astype(np.float64).ravel()
    value = float(sums[0, 0, 0]) + _half_square(penalty, x)
    return value, gradient.ravel() + penalty * flat, hessian.reshape(size * K, size * K) + np.diag(penalty)


def _transform(loss: PredictionLoss) -> np.ndarray:
    """T with aᵢ = T(vᵢ, 1), for centre and scale."""
    linear, p = loss.linear, loss.linear.p
    T = np.eye(p + 1)
    if linear.scale is not None:
        T[:p, :p] = np.diag(1.0 / linear.scale.astype(np.float64))
    if linear.center is not None:
        T[:p, p] = -T[:p, :p] @ linear.center.astype(np.float64)
    return T


def _penalty(loss: PredictionLoss, ridge: float) -> np.ndarray:
    """What stands before ½x² of every parameter."""
    penalty = np.full(loss.x_shape, ridge)
    if loss.intercept:
        penalty[-1] = 0.0
    return penalty.reshape(prod(loss.x_shape))


def _half_square(penalty: np.ndarray, x: Array) -> float:
    return 0.5 * float(penalty @ x.astype(np.float64).ravel() ** 2)
