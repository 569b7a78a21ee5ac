"""EM for the noise model of labels: its matrix T, the calibration β and b of predictions, and a step on all of them.

`trimlearn.robust.labels.noise` says what they mean, `trimlearn.robust.labels.noise_level` chooses the level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import attrgetter
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, namespace
from trimlearn._utils.residence import sent
from trimlearn.robust.labels.on_device import NoiseRows

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

FREE = 0.5  # rows by which an entry of T off the diagonal must pay for itself (Figueiredo and Jain 2002)
# Rows by which a class is drawn to the common rate of errors, because a rare class has too few of its own. With a third
# of them the level is off by 0.9 points less, with three times as many by as much, on few repetitions of classes that
# are as large (python -m benchmarks.calibration labels).
SHRINK = 10.0
MAX_ITERATIONS, TOL = 200, 3e-6  # of EM, limits on time: the log-likelihood per row that an iteration must gain
SOME, MANY = 2_500, 4  # rows that are searched first where there are so many times as many, a limit on time
LOOSE = 0.05  # share of the first guess of T in what some rows have found: EM needs a step or two to forget it
STEP = 0.5  # the most a temperature changes by in a Newton step, which overshoots where p is 0 or 1; b by twice that


@dataclass(frozen=True)
class NoiseMatrix:
    """T = pattern + random: a wrong label follows a pattern, or is any of the others, at a rate per class.

    Every rate and every entry of the pattern must explain `FREE` rows before it counts. Without the rates, noise that
    is spread thinly over the entries would be missed; without the pattern, most of what T can tell. ``allowed``: 1 for
    the errors that there may be, else 0: there are none between classes that overlap.
    """

    pattern: Floats
    random: Floats
    allowed: Floats

    @classmethod
    def start(cls, allowed: Floats) -> NoiseMatrix:
        others = allowed.sum(axis=1, keepdims=True)
        each = allowed / np.maximum(others, 1.0)
        pattern = np.where(others > 1, 0.15, 0.0)  # of one other class, it is the same as at random
        return cls(np.diag(1 - 0.3 * each.sum(axis=1)) + pattern * each, (0.3 - pattern) * each, allowed)

    @property
    def T(self) -> Floats:
        return self.pattern + self.random

    @property
    def free(self) -> tuple[int, int]:
        """How many classes err at random, and how many entries the pattern has."""
        random, entries = self.allowed * self.random, self.allowed * self.pattern
        return int(np.count_nonzero(np.any(random > 0, axis=1))), int(np.count_nonzero(entries))

    def loosened(self) -> NoiseMatrix:
        """A little of every entry: what the rows seen so far have ruled out, others may show."""
        start = NoiseMatrix.start(self.allowed)
        pattern, random = (
            (1 - LOOSE) * mine + LOOSE * new
            for mine, new in ((self.pattern, start.pattern), (self.random, start.random))
        )
        return NoiseMatrix(pattern, random, self.allowed)

    def renewed(self, N: Floats, price: float) -> NoiseMatrix:
        """The best, where N[k, j] rows of class k were labelled j and an entry costs ``price`` rows."""
        T, allowed = self.T, self.allowed
        others = allowed.sum(axis=1)
        errs = others > 0  # which classes may
        at_random = allowed * N * self.random / np.where(T > 0, T, 1.0)
        pattern = np.maximum(allowed * N - at_random - price, 0.0)
        spread = np.maximum(at_random.sum(axis=1) - price, 0.0)
        wrong, total = pattern.sum(axis=1) + spread, errs @ np.diag(N) + pattern.sum() + spread.sum()
        common = wrong.sum() / max(total, 1e-300)
        rate = errs * (wrong + SHRINK * common) / (np.diag(N) + wrong + SHRINK)
        # what a class errs by as its rows say, and where they say nothing at random
        some = np.where(wrong > 0, wrong, 1.0)
        by_pattern = (rate / some)[:, None] * pattern
        at_random = np.where(wrong > 0, spread / some, 1.0) * rate / np.maximum(others, 1.0)
        return NoiseMatrix(np.diag(1 - rate) + by_pattern, at_random[:, None] * allowed, allowed)

    def scaled(self, factor: float) -> NoiseMatrix:
        """``factor`` times as many errors; a class stays right in a tenth of its rows at least."""
        rate = (self.allowed * self.T).sum(axis=1)
        factors = np.minimum(factor, 0.9 / np.where(rate > 0, rate, 1.0))[:, None]
        errors = factors * self.allowed
        return NoiseMatrix(
            np.diag(1 - factors[:, 0] * rate) + errors * self.pattern, errors * self.random, self.allowed
        )


@dataclass(frozen=True)
class NoiseState:
    beta: Floats
    b: Floats
    matrix: NoiseMatrix
    pi: Floats  # shares of the classes, all alike before the first step
    posterior: float = -np.inf  # log-density, before the last step

    @property
    def epsilon(self) -> float:
        return float(self.pi @ (1 - np.diag(self.matrix.T)))


@dataclass(frozen=True)
class NoiseFit:
    """Predictions (m, n, K), labels and sample weights, which errors there may be, and EM on them."""

    z: Floats
    labels: Labels
    s: Floats
    allowed: Floats

    @cached_property
    def _there(self) -> NoiseRows | None:
        """The rows on a device, where the fit takes place on one."""
        z = sent(self.z)
        return None if is_numpy_array(z) else NoiseRows(z, self.labels, self.s)

    @property
    def clean(self) -> NoiseState:
        """Where all labels are right, and all predictions count alike."""
        m, K = len(self.z), self.z.shape[2]
        right = NoiseMatrix(np.eye(K), np.zeros((K, K)), self.allowed)
        return NoiseState(np.full(m, 1 / m), np.zeros(K), right, np.full(K, 1 / K))

    def search(self) -> NoiseState:
        """T, β and b of largest posterior density, from 30 % of wrong labels; of many rows, some are searched first."""
        if len(self.labels) > MANY * SOME:
            some = slice(None, None, len(self.labels) // SOME)
            found = NoiseFit(self.z[:, some], self.labels[some], self.s[some], self.allowed).search()
            starts = [replace(found, matrix=found.matrix.loosened())]
        else:
            start = replace(self.clean, matrix=NoiseMatrix.start(self.allowed))
            # All predictions alike, and the first alone: one that has learnt the noise itself leaves none beside it.
            starts = [start, replace(start, beta=np.eye(len(self.z))[0])][: len(self.z)]
        # first which entries T has, then how large they are
        return max((self.maximise(self.maximise(at, FREE), 0.0) for at in starts), key=attrgetter("posterior"))

    def maximise(self, state: NoiseState, price: float | None) -> NoiseState:
        """EM until it gains no more; T as it is where there is no ``price`` of its entries."""
        last = -np.inf
        for _ in range(MAX_ITERATIONS):
            state = self._step(state, price)
            if state.posterior - last <= TOL * len(self.labels):
                break
            last = state.posterior
        return state

    def _step(self, state: NoiseState, price: float | None) -> NoiseState:
        """A new T by the rows expected of each class; for β ≥ 0 and b one Newton step on the expected complete
        log-likelihood, which is concave in them, and the prior, whose curvature is 1."""
        beta, b, matrix, m = state.beta, state.b, state.matrix, len(state.beta)
        sums = self._sums if self._there is None else self._there.sums
        N, H, g, likelihood = sums(beta, b, matrix.T)
        pull = np.concatenate([beta - 1 / m, b])
        d = _bounded_step(H + np.eye(len(g)), g - pull, np.concatenate([-beta, np.full(len(b), -np.inf)]))
        return NoiseState(
            np.maximum(beta + np.clip(d[:m], -STEP, STEP), 0.0),
            b + np.clip(d[m:], -2 * STEP, 2 * STEP),
            matrix if price is None else matrix.renewed(N, price),
            N.sum(axis=1) / N.sum(),
            likelihood - 0.5 * float(pull[:m] @ pull[:m]) - 0.5 * float(b @ b),
        )

    def _sums(self, beta: Floats, b: Floats, T: Floats) -> tuple[Floats, Floats, Floats, float]:
        """What a step needs of all rows: how many of class k are labelled j; curvature and slope of the expected
        complete log-likelihood in (β, b); and the log-likelihood."""
        # sums over classes and rows are products: NumPy sums short rows slowly, and this is most of the time
        z, s, m, K = self.z, self.s, len(self.z), len(b)
        flat, classes, rows = z.reshape(m, -1), np.ones(K), np.ones(len(s))
        p = softmax((beta @ flat).reshape(-1, K) + b)
        joint = p * T.T[self.labels]
        seen = np.maximum(joint @ classes, 1e-300)
        r = joint / seen[:, None]  # P(class | x, label)
        N: Floats = np.stack([np.bincount(self.labels, s * r[:, k], K) for k in range(K)]).astype(np.float64)
        weighted, H = p * s[:, None], np.empty((m + K, m + K))
        parts = z * weighted
        means = (parts @ classes) / s
        H[:m, :m] = parts.reshape(m, -1) @ flat.T - (s * means) @ means.T
        H[:m, m:] = rows @ parts - means @ weighted
        H[m:, :m] = H[:m, m:].T
        H[m:, m:] = np.diag(s @ p) - weighted.T @ p
        off = (r - p) * s[:, None]
        g = np.concatenate([flat @ off.ravel(), rows @ off])
        return N, H, g, float(s @ np.log(seen))


def _bounded_step(A: Floats, g: Floats, least: Floats) -> Floats:
    """Newton's step d, A d = g, no entry of which is below ``least``: those that would be are there, and the others are
    the best beside them (Bertsekas 1982). Cut off one by one, they would be best beside entries that are not allowed.

    >>> _bounded_step(np.array([[2.0, 1.9], [1.9, 2.0]]), np.array([2.0, 1.0]), np.array([-1.0, 0.0]))
    array([1., 0.])
    """
    d, free = np.linalg.solve(A, g), np.ones(len(g), dtype=bool)
    while np.any(beyond := free & (d < least)):
        free &= ~beyond
        d[beyond], fixed = least[beyond], ~free
        d[free] = np.linalg.solve(A[np.ix_(free, free)], g[free] - A[np.ix_(free, fixed)] @ d[fixed])
    return np.asarray(d)


def all_errors(K: int) -> Floats:
    """Which errors K classes may have: all."""
    return np.asarray(1 - np.eye(K))


def row_centred(z: Any) -> Array:
    """z less its mean in every row: β and b must not depend on a constant per row."""
    xp = namespace(z)
    z = xp.astype(z, xp.float64, copy=False)
    return z - xp.mean(z, axis=1, keepdims=True)


def softmax(a: Array) -> Array:
    if not is_numpy_array(a):
        xp = namespace(a)
        p = xp.exp(a - xp.max(a, axis=1, keepdims=True))
        return p / xp.sum(p, axis=1, keepdims=True)
    p = np.exp(a - reduce(np.maximum, a.T)[:, None])
    p /= (p @ np.ones(a.shape[1]))[:, None]
    return p


def log_sum(a: Array) -> Array:
    """log Σₖ exp(aₖ) of every row, of which one entry at least is finite."""
    if not is_numpy_array(a):
        xp = namespace(a)
        most = xp.max(a, axis=1)
        return most + xp.log(xp.sum(xp.exp(a - most[:, None]), axis=1))
    most = reduce(np.maximum, a.T)
    return most + np.log(np.exp(a - most[:, None]) @ np.ones(a.shape[1]))
