"""Which labels are wrong, and how many: a calibrated label-noise model around a trimmed classifier.

A trimmed fit alone does not tell: over-trimmed, it disagrees with many right labels. So its predictions z, made for
rows it was not fitted on, are calibrated and confronted with the labels ỹ in the model

    P(ỹ = j | x) = Σₖ pₖ(x) T[k, j],      p = softmax(βz + b),

T[k, j] the share of rows of class k that are labelled j (Bootkrajang and Kabán 2012; Patrini et al. 2017). β, b and T
are those of largest posterior density, found by EM. The share of wrong labels is Σₖ πₖ(1 − T[k, k]), and Bayes' rule
gives each row's probability of being one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logsumexp

__all__ = ["LabelNoise", "estimate_noise", "two_columns"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

FREE = 0.5  # rows by which an entry of T off the diagonal must pay for itself (Figueiredo and Jain 2002)
BACKGROUND = 1e-3  # share of wrong labels of no pattern: what a score falls back on where T has no error to explain it
MAX_ITERATIONS, TOL = 200, 3e-6  # of EM; the log-likelihood per row that an iteration must gain
STEP = 0.5  # the most that β changes by in an iteration, as a share of it; b by twice that


@dataclass(frozen=True)
class LabelNoise:
    """T[k, j] = P(labelled j | of class k), the calibration p = softmax(βz + b), and the share of wrong labels.

    >>> noise = LabelNoise(T=np.array([[0.8, 0.2], [0.0, 1.0]]), temperature=1.0, bias=np.zeros(2), epsilon=0.1)
    >>> z = np.array([[4.0, 0.0], [4.0, 0.0]])  # both look like class 0
    >>> noise.wrong(z, np.array([0, 1])).round(2)
    array([0.  , 0.92])
    """

    T: Floats
    temperature: float  # β: below 1 where the model is too sure of itself
    bias: Floats
    epsilon: float

    def log_probabilities(self, z: Any) -> Floats:
        """log p, calibrated: of the classes before labels went wrong."""
        return np.asarray(log_softmax(self.temperature * _centred(z) + self.bias, axis=1), dtype=np.float64)

    def score(self, z: Any, labels: Labels) -> Floats:
        """log P(label wrong | x, label) − log P(label right | x, label): larger is worse, 0 is undecided."""
        right, others = self._joint(z, labels)
        return np.asarray(logsumexp(others, axis=1) - right, dtype=np.float64)

    def log_likelihood(self, z: Any, labels: Labels) -> Floats:
        """log P(label | x) of every row."""
        right, others = self._joint(z, labels)
        return np.asarray(np.logaddexp(right, logsumexp(others, axis=1)), dtype=np.float64)

    def suggest(self, z: Any, labels: Labels) -> Labels:
        """The label itself where it is more likely right than wrong, else the most likely of the others."""
        right, others = self._joint(z, labels)
        return np.where(logsumexp(others, axis=1) <= right, labels, others.argmax(axis=1))

    def _joint(self, z: Any, labels: Labels) -> tuple[Floats, Floats]:
        """log P(class k, label | x): for the label's own class (n,), and for all others (n, K), it being −inf there."""
        rows = np.arange(len(labels))
        T = (1 - BACKGROUND) * self.T + BACKGROUND / len(self.T)
        joint = self.log_probabilities(z) + np.log(T)[:, labels].T
        right = joint[rows, labels].copy()
        joint[rows, labels] = -np.inf
        return right, joint

    def wrong(self, z: Any, labels: Labels) -> Floats:
        """P(label wrong | x, label)."""
        return np.asarray(expit(self.score(z, labels)), dtype=np.float64)


def estimate_noise(z: Any, labels: Labels, s: Floats | None = None, *, noisy: bool = True) -> LabelNoise:
    """The noise model of labels in 0..K−1, given predictions z (n, K) by models that have not seen their rows.

    The prior: off the diagonal of T an entry must explain ½ row before it counts; β ~ N(1, 1) and b ~ N(0, 1), which
    only matter where there are few rows. EM starts from 30 % of wrong labels: where all rows are equally clear, noise
    that is the same for all classes and a low β explain the labels equally well, and the noise is what is meant.
    noisy=False: T = I, and only the calibration is found.

    >>> z = 8.0 * np.eye(2)[np.repeat([0, 1], 100)]
    >>> labels = np.repeat([0, 1], 100)
    >>> labels[:20] = 1  # a fifth of class 0, nobody of class 1
    >>> estimate_noise(z, labels).T.round(2)
    array([[0.8, 0.2],
           [0. , 1. ]])
    """
    z = _centred(z)
    s = np.ones(len(z)) if s is None else np.asarray(s, dtype=np.float64)
    sample = _Sample(z[s > 0], np.asarray(labels)[s > 0], s[s > 0])
    K = z.shape[1]
    state = _State(1.0, np.zeros(K), _Matrix.start(K) if noisy else _Matrix(np.eye(K), np.zeros((K, K))))
    for price in (FREE, 0.0):  # which entries are there; then, how large they are
        state = sample.maximise(state, price)
    T, pi = state.matrix.T, state.pi
    return LabelNoise(T, state.beta, state.b, float(pi @ (1 - np.diag(T))))


def two_columns(z: Any) -> Floats:
    """Predictions (n, K) as they are; those of a binary model, (n, 1), as the log-odds (0, z) of both classes."""
    z = np.asarray(z, dtype=np.float64)
    return np.column_stack([np.zeros(len(z)), z[:, 0]]) if z.shape[1] == 1 else z


def _centred(z: Any) -> Floats:
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(z - np.mean(z, axis=1, keepdims=True))  # β and b must not depend on a constant per row


@dataclass(frozen=True)
class _Matrix:
    """T = pattern + random: a wrong label follows a pattern, or is any of the others, at a rate per class.

    Every rate and every entry of the pattern must explain `FREE` rows before it counts. Without the rates, noise that
    is spread thinly over the entries would be missed; without the pattern, most of what T can tell.
    """

    pattern: Floats
    random: Floats

    @classmethod
    def start(cls, K: int) -> _Matrix:
        off = 1 - np.eye(K)
        pattern, random = (0.0, 0.3) if K == 2 else (0.15, 0.15)  # for two classes they are the same
        return cls(0.7 * np.eye(K) + pattern / (K - 1) * off, random / (K - 1) * off)

    @property
    def T(self) -> Floats:
        return self.pattern + self.random

    def renewed(self, N: Floats, price: float) -> _Matrix:
        """The best, where N[k, j] rows of class k were labelled j and an entry costs ``price`` rows."""
        K, T = len(N), self.T
        right, off = np.diag(np.diag(N)), 1 - np.eye(K)
        at_random = N * self.random / np.where(T > 0, T, 1.0)
        pattern = right + np.maximum(N - right - at_random - price, 0.0)
        rate = np.maximum(at_random.sum(axis=1, keepdims=True) - price, 0.0)
        total = pattern.sum(axis=1, keepdims=True) + rate
        some = np.where(total > 0, total, 1.0)
        return _Matrix(np.where(total > 0, pattern / some, np.eye(K)), rate / some / (K - 1) * off)


@dataclass(frozen=True)
class _State:
    beta: float
    b: Floats
    matrix: _Matrix
    pi: Floats = field(default_factory=lambda: np.ones(1))  # shares of the classes
    likelihood: float = -np.inf  # per row, before the last step


@dataclass(frozen=True)
class _Sample:
    """Predictions, labels and sample weights, and EM on them."""

    z: Floats
    labels: Labels
    s: Floats

    def maximise(self, state: _State, price: float) -> _State:
        """EM until it gains no more."""
        last = -np.inf
        for _ in range(MAX_ITERATIONS):
            state = self._step(state, price)
            if state.likelihood - last <= TOL:
                break
            last = state.likelihood
        return state

    def _step(self, state: _State, price: float) -> _State:
        # sums over classes and rows are products: NumPy sums short rows slowly, and this is most of the time
        K, s = len(state.b), self.s
        p = _probabilities(self.z, state.beta, state.b)
        joint = p * state.matrix.T.T[self.labels]
        seen = np.maximum(joint @ np.ones(K), 1e-300)
        r = joint / seen[:, None]  # P(class | x, label)
        N: Floats = (r * s[:, None]).T @ self.indicators
        beta, b = self._calibrate(p, r, state.beta, state.b)
        likelihood = float(s @ np.log(seen) / s.sum())
        return _State(beta, b, state.matrix.renewed(N, price), N.sum(axis=1) / N.sum(), likelihood)

    @cached_property
    def indicators(self) -> Floats:
        return np.eye(self.z.shape[1])[self.labels]

    def _calibrate(self, p: Floats, r: Floats, beta: float, b: Floats) -> tuple[float, Floats]:
        """One Newton step on β and b for the expected complete log-likelihood, which is concave in them."""
        z, s, ones = self.z, self.s, np.ones(len(b))
        pz, shares = p * z, s @ p
        mean = pz @ ones
        H = np.empty((len(b) + 1, len(b) + 1))
        H[0, 0] = s @ ((pz * z) @ ones - mean**2)
        H[0, 1:] = H[1:, 0] = s @ pz - (s * mean) @ p
        H[1:, 1:] = np.diag(shares) - (p * s[:, None]).T @ p
        g = np.concatenate([[s @ ((r * z) @ ones - mean) - (beta - 1)], s @ r - shares - b])
        d = np.linalg.solve(H + np.eye(len(g)), g)  # the prior's curvature is 1
        return beta * (1 + float(np.clip(d[0] / beta, -STEP, STEP))), b + np.clip(d[1:], -2 * STEP, 2 * STEP)


def _probabilities(z: Floats, beta: float, b: Floats) -> Floats:
    a = beta * z + b
    p: Floats = np.exp(a - reduce(np.maximum, a.T)[:, None])
    p /= (p @ np.ones(len(b)))[:, None]
    return p
