"""Newton's steps on sums over rows that are read from a disk, a piece at a time."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np
from scipy.linalg import eigh, eigvalsh

from trimlearn._utils.arrays import Array
from trimlearn._utils.blocks import slices_apart
from trimlearn._utils.threads import total
from trimlearn.losses.base import PredictionLoss
from trimlearn.losses.exact import solve_symmetric

Weigh = Callable[[Any], Any]  # the weights of some rows, or one for all

STEPS = 30  # at most, a limit on time: from the fit to a sample three to ten are made
LONGEST, SHORTEST = 10.0, 1e-3  # times Newton's step: limits for safety
CURVED, PER_PARAMETER = 200_000, 100  # rows for the Hessian, and at least so many for each parameter: known to a tenth
SLICES = 64  # that such rows lie in, at equal distances: of files in some order each holds its part
NEAR = 0.1  # of the threshold: rows this near to it tell how many cross when it moves
MOST = 0.9  # of the curvature that such rows may take away: a step is ten times longer at most, as LONGEST has it
ROUNDING = 1e-9  # of a diagonal of 1: more than sums in float64 are off by, less than a column counts for
PAGE = 4096  # bytes that are read for a row alone: those of a page of memory
TINY = 1e-300  # in place of a 0 to divide by: a normal number, whose inverse is still finite


class Newton:
    """Newton's steps with one Hessian, found from some of the rows.

    How much longer or shorter than that a step should be is read off two of them, as Barzilai and Borwein (1988) do in
    the plain metric: rows that change sides as x moves take curvature away, for instance. A step that does not lower F
    is made again, shorter.
    """

    def __init__(self, loss: PredictionLoss, ridge: float, settled: float) -> None:
        self.loss, self.settled, self.penalty = loss, settled, _penalty(loss, ridge)
        self._hessian: np.ndarray | None = None
        self._best, self._from, self._step, self._left = inf, np.zeros(0), np.zeros(0), np.zeros(prod(loss.x_shape))
        self._length, self._made = 1.0, 0

    def go_on_from(self, before: Newton, x: Array, weigh: Weigh, crossing: np.ndarray | None) -> None:
        """Take over from steps on some of the rows, which ended at x with these weights. crossing: the curvature that
        rows at the threshold take away; nine tenths of what there is at most."""
        H = _hessian(before.loss, x, weigh) + np.diag(self.penalty)
        if crossing is not None:
            unit = np.sqrt(np.maximum(np.diag(H), TINY))
            A = H / unit / unit[:, None]  # columns may say the same, and sums in float32 are off by more than ROUNDING
            A += (ROUNDING + 2 * max(0.0, -float(eigvalsh(A)[0]))) * np.eye(len(H))
            shares, U = eigh(crossing / unit / unit[:, None], A)
            H = (A - A @ (U * np.clip(shares, 0.0, MOST)) @ U.T @ A) * unit * unit[:, None]
        self._hessian = H

    def half_square(self, x: Array) -> float:
        """½ Σ penalty x²."""
        return 0.5 * float(self.penalty @ x.astype(np.float64).ravel() ** 2)

    def too_high(self, value: float) -> bool:
        """Whether the last step was too long, and another may be tried."""
        return not value <= self._best * (1 + self.settled) and self._length > SHORTEST

    def shorter(self) -> Array:
        """x after a shorter step."""
        self._length = min(1.0, self._length / 4)
        return self._moved(self._from)

    def step(self, x: Array, value: float, weigh: Weigh, slope: Callable[[], np.ndarray]) -> Array | None:
        """x after the next step; None: it is where it should be. slope: gives the gradient of the mean loss."""
        gradient = slope() + self.penalty * x.astype(np.float64).ravel()
        if self._hessian is None:
            self._hessian = _hessian(self.loss, x, weigh) + np.diag(self.penalty)
        step = solve_symmetric(self._hessian, -gradient[:, None])[:, 0]
        if self._made:
            before = self._hessian @ self._step
            left = float(before @ step) / max(float(before @ self._step), TINY)
            self._length = min(max(self._length / max(1 - left, 1 / LONGEST), 1 / LONGEST), LONGEST)
        gain, fell = -0.5 * float(gradient @ step), value < self._best * (1 - self.settled)
        self._made += 1
        self._left = step if gain <= self.settled * abs(value) else np.zeros_like(step)
        if not gain > self.settled * abs(value) or not fell or self._made > STEPS:
            return None
        self._best, self._from, self._step = value, x, step
        return self._moved(x)

    def last(self, x: Array) -> Array:
        """x after the step that was too small to be looked at again: with that, x is known to ten digits of F."""
        return (x + self._left.reshape(x.shape)).astype(x.dtype)

    def _moved(self, x: Array) -> Array:
        return (x + self._length * self._step.reshape(x.shape)).astype(x.dtype)


def evaluated(
    loss: PredictionLoss, x: Array, threshold: float, s: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The losses of all rows; and, in the same read of them, Σ (vᵢ, 1)rᵢ, (K, p + 1), over those with a loss below the
    threshold, each counted s times. NaN as a threshold: 0, and residuals are not looked at."""
    f, idle = np.empty(loss.n, loss.like.dtype), np.isnan(threshold)

    def part(at: tuple[slice, Any]) -> np.ndarray:
        f[at[1]], r = loss.evaluate(loss.linear.predict(x, at[1]), at[1])
        if idle:
            return np.zeros((loss.K, loss.linear.p + 1))
        return _weighted_sums(loss.linear.storage.fetch(at[1]), _below(f[at[1]], threshold, s, at[1]), r)

    return f, total(part, loss.linear.pieces(), np.zeros((loss.K, loss.linear.p + 1)))


def trimmed_gradient(
    loss: PredictionLoss,
    x: Array,
    f: np.ndarray,
    weigh: Weigh,
    thresholds: tuple[float, float],
    sums: np.ndarray,
    s: np.ndarray | None = None,
) -> np.ndarray:
    """1/n Σ wᵢ∇fᵢ as one vector, where w is 1 below the second threshold and 0 above it: from the sums up to the first
    one, and from the rows between both. Where these are so many that as many pages would be read as all rows lie in,
    all rows are read again."""
    least, most = min(thresholds), max(thresholds)
    between = np.flatnonzero((f >= least) & (f <= most))
    if np.isnan(least) or len(between) * PAGE > loss.n * loss.linear.storage.row_bytes:
        return value_gradient(loss, x, weigh)[1]
    if len(between):
        _, r = loss.evaluate(loss.linear.predict(x, between), between)
        more = np.asarray(weigh(between)) - _below(f[between], thresholds[0], s, between)
        V = loss.linear.storage.fetch(between)
        sums = sums + _weighted_sums(V, np.maximum(more, 0), r) - _weighted_sums(V, np.maximum(-more, 0), r)
    return _as_gradient(loss, sums)


def _below(f: np.ndarray, threshold: float, s: np.ndarray | None, rows: Any) -> np.ndarray:
    """What rows with losses f count where they are below the threshold; 0 where they are not."""
    w: np.ndarray = (f < threshold).astype(f.dtype)
    return w if s is None else w * s[rows]


def value_gradient(loss: PredictionLoss, x: Array, weigh: Weigh) -> tuple[float, np.ndarray]:
    """1/n Σ wᵢfᵢ and its gradient, in one read of the rows; of rows of weight 0 nothing is added."""

    def part(at: tuple[slice, Any]) -> np.ndarray:
        f, r = loss.evaluate(loss.linear.predict(x, at[1]), at[1])
        w = np.broadcast_to(np.asarray(weigh(at[1]), f.dtype), f.shape)
        found = np.zeros((loss.K + 1, loss.linear.p + 1))
        found[:-1] = _weighted_sums(loss.linear.storage.fetch(at[1]), w, r)
        found[-1, 0] = np.sum(f * w, dtype=np.float64, where=w > 0)
        return found

    sums = total(part, loss.linear.pieces(), np.zeros((loss.K + 1, loss.linear.p + 1)))
    return float(sums[-1, 0] / loss.n), _as_gradient(loss, sums[:-1])


def _weighted_sums(V: Any, w: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Σ wᵢrᵢ(vᵢ, 1), (K, p + 1)."""
    w = np.broadcast_to(w, (V.shape[0],))[:, None]
    wr = np.where(w > 0, r, 0) * w
    return np.column_stack([(wr.T @ V).astype(np.float64), wr.sum(axis=0, dtype=np.float64)])


def _as_gradient(loss: PredictionLoss, sums: np.ndarray) -> np.ndarray:
    return (_transform(loss) @ (sums / loss.n).T)[: loss.linear.p + loss.linear.intercept].ravel()


def _hessian(loss: PredictionLoss, x: Array, weigh: Weigh) -> np.ndarray:
    """1/m Σ wᵢAᵢᵀ∇²φᵢAᵢ over m rows, for x as one vector."""
    K, p, linear = loss.K, loss.linear.p, loss.linear
    pairs = [(k, m) for k in range(K) for m in range(k + 1)]
    units = np.eye(K, dtype=loss.like.dtype)
    m = min(loss.n, max(CURVED, PER_PARAMETER * prod(loss.x_shape)))

    def part(at: tuple[slice, Any]) -> np.ndarray:
        rows = at[1]
        V, Z = linear.storage.fetch(rows), linear.predict(x, rows)
        w = np.broadcast_to(np.asarray(weigh(rows), Z.dtype), (V.shape[0],))
        curves = [loss.phi_hessp(Z, np.broadcast_to(unit, Z.shape), rows) for unit in units]
        sums = np.empty((len(pairs), p + 1, p + 1))
        for H, (k, j) in zip(sums, pairs, strict=True):
            c = np.where(w > 0, curves[k][:, j], 0) * w
            H[:p, :p], H[:p, p], H[p, p] = (V * c[:, None]).T @ V, c @ V, c.sum(dtype=np.float64)
            H[p, :p] = H[:p, p]
        return sums

    some = slices_apart(loss.n, m, SLICES)
    pieces = [piece for at in some for piece in linear.pieces(at)]
    m = sum(at.stop - at.start for at in some)
    sums = total(part, pieces, np.zeros((len(pairs), p + 1, p + 1))) / m
    size, T = p + linear.intercept, _transform(loss)
    hessian = np.zeros((size, K, size, K))
    for H, (k, j) in zip(sums, pairs, strict=True):
        block = (T @ H @ T.T)[:size, :size]
        hessian[:, k, :, j], hessian[:, j, :, k] = block, block.T
    return hessian.reshape(size * K, size * K)


def crossing_curvature(
    loss: PredictionLoss, x: Array, f: np.ndarray, threshold: float, s: np.ndarray | None = None
) -> np.ndarray | None:
    """What rows that change sides as x moves take away from the Hessian of 1/n Σ wᵢfᵢ; s: sample weights of mean 1.

    The gradient of its minimum over w is 1/n Σ wᵢ∇fᵢ, so that it is the density of f at the threshold, times the
    covariance of ∇f there: from the rows near to it; None where there are none.
    """
    if not 0 < threshold < inf:
        return None
    near = np.flatnonzero(np.abs(f - threshold) < NEAR * threshold)
    if len(near) < PER_PARAMETER:
        return None
    linear, V = loss.linear, np.asarray(loss.linear.storage.fetch(near), dtype=np.float64)
    r = np.asarray(loss.evaluate(linear.predict(x, near), near)[1], dtype=np.float64)
    A = (np.column_stack([V, np.ones(len(V))]) @ _transform(loss).T)[:, : linear.p + linear.intercept]
    slopes = (A[:, :, None] * r[:, None, :]).reshape(len(A), -1)
    c = np.ones(len(near)) if s is None else s[near]
    slopes -= c @ slopes / max(c.sum(), TINY)
    return np.asarray((c[:, None] * slopes).T @ slopes / (2 * NEAR * threshold * loss.n))


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
