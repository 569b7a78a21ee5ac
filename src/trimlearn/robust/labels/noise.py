"""Which labels are wrong: a calibrated label-noise model around the predictions of several classifiers.

Predictions z⁽¹⁾ … z⁽ᵐ⁾ are log-probabilities of the classes, made by models for rows they were not fitted on. They are
calibrated, added, and confronted with the labels ỹ in the model

    P(ỹ = j | x) = Σₖ pₖ(x) T[k, j],      p = softmax(Σ βᵢz⁽ⁱ⁾ + b),

T[k, j] the share of rows of class k that are labelled j (Bootkrajang and Kabán 2012; Patrini et al. 2017). The share of
wrong labels is Σₖ πₖ(1 − T[k, k]), and Bayes' rule gives each row's probability of being one of them.
β, b and T are those of largest posterior density, found by EM.

Models that were fitted to wrong labels predict wrong labels: sharper classes with more noise, and blurred classes with
less, explain what was seen almost equally well. So the level is the largest that the labels do not contradict
(`AGREES`); whether they speak for noise at all is for `trimlearn.robust.labels.verdict` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from array_api_compat import is_numpy_array
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, to_numpy
from trimlearn._utils.residence import sent
from trimlearn.robust.labels.noise_on_device import NoiseRows

__all__ = [
    "Floats",
    "LabelNoise",
    "Labels",
    "NoiseLevel",
    "Predictions",
    "estimate_noise",
    "noise_levels",
    "two_columns",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Predictions = Sequence[Any]  # of arrays (n, K)

# Share of wrong labels that follow no pattern: what a score falls back on where T has no error to explain it. Ten times
# as many or as few change the verdict on 1 of 500 wrong labels (python -m benchmarks.calibration labels).
BACKGROUND = 1e-3
FREE = 0.5  # rows by which an entry of T off the diagonal must pay for itself (Figueiredo and Jain 2002)
# Rows by which a class is drawn to the common rate of errors, because a rare class has too few of its own. With a third
# or three times as many the level is off by half a point less or more (python -m benchmarks.calibration labels).
SHRINK = 10.0
AGREES = 0.5  # a log-likelihood this far below the best is within one standard error of it (Wilks 1938)
# The shares tried first, a point apart at the lower end and four at the upper. HALVINGS of the interval between the
# last that agrees and the first that does not leave half a point, one standard error of a share of 20 % in 6,400 rows.
LEVELS = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.34, 0.38, 0.42, 0.46)
HALVINGS = 3  # of an interval of four points: half a point is left
HOPELESS = 20.0  # a likelihood that is e²⁰ times less than the best is not made up for at a higher level
SURE = 20_000  # rows that are enough: a share of 20 % has a standard error of 0.3 points, and all that agree are one
MAX_ITERATIONS, TOL = 200, 3e-6  # of EM, limits on time: the log-likelihood per row that an iteration must gain
SOME, MANY = 2_500, 4  # rows that are searched first where there are so many times as many, a limit on time
LOOSE = 0.05  # share of the first guess of T in what some rows have found: EM needs a step or two to forget it
STEP = 0.5  # the most a temperature changes by in a Newton step, which overshoots where p is 0 or 1; b by twice that


@dataclass(frozen=True)
class LabelNoise:
    """T[k, j] = P(labelled j | of class k), the calibration p = softmax(Σ βᵢz⁽ⁱ⁾ + b), and the share of wrong labels.

    >>> from scipy.special import expit
    >>> noise = LabelNoise(np.array([[0.8, 0.2], [0.0, 1.0]]), np.ones(1), np.zeros(2), epsilon=0.1)
    >>> z = np.array([[4.0, 0.0], [4.0, 0.0]])  # both look like class 0
    >>> expit(noise.score([z], np.array([0, 1]))).round(2)
    array([0.  , 0.92])
    """

    T: Floats
    temperatures: Floats  # β: below 1 where a prediction is too sure of itself
    bias: Floats
    epsilon: float
    floor: float = 0.0  # of a probability: n rows say nothing about one below 1/n (Laplace)

    @property
    def bounded(self) -> Floats:
        """T, no error quite impossible."""
        return np.asarray((1 - BACKGROUND) * self.T + BACKGROUND / len(self.T))

    def log_probabilities(self, predictions: Predictions) -> Floats:
        """log p, calibrated: of the classes before labels went wrong."""
        return to_numpy(self._log_p(predictions))

    def doubt(self, predictions: Predictions) -> Floats:
        """1 − max p: how often the class of such a row is not the most likely one."""
        return np.asarray(1 - np.exp(self.log_probabilities(predictions).max(axis=1)))

    def score(self, predictions: Predictions, labels: Labels) -> Floats:
        """log P(label wrong | x, label) − log P(label right | x, label): larger is worse, 0 is undecided."""
        right, others = self._joint(predictions, labels)
        return to_numpy(_log_sum(others) - right)

    def log_likelihood(self, predictions: Predictions, labels: Labels) -> Floats:
        """log P(label | x) of every row."""
        right, others = self._joint(predictions, labels)
        return to_numpy(namespace(right).logaddexp(right, _log_sum(others)))

    def classes(self, predictions: Predictions, labels: Labels) -> Floats:
        """P(class | x, label), (n, K): what the labels should have been."""
        right, joint = self._joint(predictions, labels)
        joint[index_like(np.arange(len(labels)), joint), index_like(labels, joint)] = right
        return to_numpy(_softmax(joint))

    def suggest(self, predictions: Predictions, labels: Labels) -> Labels:
        """The label itself where it is more likely right than wrong, else the most likely of the others."""
        right, others = self._joint(predictions, labels)
        wrong = to_numpy(_log_sum(others) > right)
        return np.where(wrong, to_numpy(namespace(others).argmax(others, axis=1)), labels)

    def _log_p(self, predictions: Predictions) -> Array:
        """`log_probabilities`, where a fit takes place."""
        there = [_centred(sent(prediction)) for prediction in predictions]
        z: Any = sum(float(beta) * prediction for beta, prediction in zip(self.temperatures, there, strict=True))
        a = z + asarray_like(self.bias, z)
        log_p = a - _log_sum(a)[:, None]
        least = asarray_like(np.log(max(self.floor, 1e-300)), a)
        return namespace(a).logaddexp(log_p + float(np.log1p(-self.floor * len(self.T))), least)

    def _joint(self, predictions: Predictions, labels: Labels) -> tuple[Array, Array]:
        """log P(class k, label | x): for the label's own class (n,), and for all others (n, K), it being −inf there."""
        log_p = self._log_p(predictions)
        rows, at = index_like(np.arange(len(labels)), log_p), index_like(labels, log_p)
        joint = log_p + namespace(log_p).take(asarray_like(np.log(self.bounded).T, log_p), at, axis=0)
        right = joint[rows, at] + 0.0  # a copy
        joint[rows, at] = -np.inf
        return right, joint


def two_columns(z: Any) -> Floats:
    """Predictions (n, K) as they are; those of a binary model, (n, 1), as the log-odds (0, z) of both classes."""
    z = np.asarray(z, dtype=np.float64)
    return np.column_stack([np.zeros(len(z)), z[:, 0]]) if z.shape[1] == 1 else z


def _centred(z: Any) -> Array:
    """z less its mean in every row: β and b must not depend on a constant per row."""
    xp = namespace(z)
    z = xp.astype(z, xp.float64, copy=False)
    return z - xp.mean(z, axis=1, keepdims=True)


# -- its estimate -----------------------------------------------------------------------------------------------------


def estimate_noise(
    predictions: Predictions, labels: Labels, s: Floats | None = None, *, noisy: bool = True, largest: bool = True
) -> LabelNoise:
    """The noise model of labels in 0..K−1, given predictions, each (n, K), by models that have not seen their rows.

    The prior: off the diagonal of T an entry must explain ½ row before it counts, and the rates of the classes are
    alike; βᵢ ~ N(1/m, 1) and b ~ N(0, 1), which only matter where there are few rows. EM starts from 30 % of wrong
    labels. noisy=False: T = I, and only the calibration is found. largest=False: the most likely level, not the largest
    that agrees with the labels.

    >>> z = 8.0 * np.eye(2)[np.repeat([0, 1], 100)]
    >>> labels = np.repeat([0, 1], 100)
    >>> labels[:20] = 1  # a fifth of class 0, nobody of class 1
    >>> estimate_noise([z], labels, largest=False).T.round(2)
    array([[0.81, 0.19],
           [0.01, 0.99]])
    """
    n, K = np.shape(predictions[0])
    s = np.ones(n) if s is None else np.asarray(s, dtype=np.float64)
    there = np.flatnonzero(s > 0)
    if len(there) > SURE:
        there = there[np.linspace(0, len(there) - 1, SURE).astype(np.int64)]
    z = np.stack([_centred(np.asarray(prediction)[there]) for prediction in predictions])
    em = _NoiseFit(z, np.asarray(labels)[there], s[there])
    start = _State(np.full(len(z), 1 / len(z)), np.zeros(K), _Matrix.clean(K))
    if not noisy:
        return em.model(em.maximise(start, None))
    found = em.search()
    return em.model(_largest(em, start, found) if largest and len(there) < SURE else found)


# -- the matrix -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Matrix:
    """T = pattern + random: a wrong label follows a pattern, or is any of the others, at a rate per class.

    Every rate and every entry of the pattern must explain `FREE` rows before it counts. Without the rates, noise that
    is spread thinly over the entries would be missed; without the pattern, most of what T can tell.
    """

    pattern: Floats
    random: Floats

    @classmethod
    def clean(cls, K: int) -> _Matrix:
        return cls(np.eye(K), np.zeros((K, K)))

    @classmethod
    def start(cls, K: int) -> _Matrix:
        off = 1 - np.eye(K)
        pattern, random = (0.0, 0.3) if K == 2 else (0.15, 0.15)  # for two classes they are the same
        return cls(0.7 * np.eye(K) + pattern / (K - 1) * off, random / (K - 1) * off)

    @property
    def T(self) -> Floats:
        return self.pattern + self.random

    @property
    def free(self) -> tuple[int, int]:
        """How many classes err at random, and how many entries the pattern has."""
        off = ~np.eye(len(self.pattern), dtype=bool)
        return int(np.count_nonzero(np.any(off & (self.random > 0), axis=1))), int(np.count_nonzero(self.pattern[off]))

    def loosened(self) -> _Matrix:
        """A little of every entry: what the rows seen so far have ruled out, others may show."""
        start = _Matrix.start(len(self.pattern))
        return _Matrix(
            (1 - LOOSE) * self.pattern + LOOSE * start.pattern, (1 - LOOSE) * self.random + LOOSE * start.random
        )

    def renewed(self, N: Floats, price: float) -> _Matrix:
        """The best, where N[k, j] rows of class k were labelled j and an entry costs ``price`` rows."""
        K, T = len(N), self.T
        off = 1 - np.eye(K)
        at_random = off * N * self.random / np.where(T > 0, T, 1.0)
        pattern = np.maximum(off * N - at_random - price, 0.0)
        spread = np.maximum(at_random.sum(axis=1) - price, 0.0)
        wrong, total = pattern.sum(axis=1) + spread, np.diag(N).sum() + pattern.sum() + spread.sum()
        common = wrong.sum() / max(total, 1e-300)
        rate = (wrong + SHRINK * common) / (np.diag(N) + wrong + SHRINK)
        # what a class errs by as its rows say, and where they say nothing at random
        some = np.where(wrong > 0, wrong, 1.0)
        by_pattern = (rate / some)[:, None] * pattern
        at_random = np.where(wrong > 0, spread / some, 1.0) * rate / (K - 1)
        return _Matrix(np.diag(1 - rate) + by_pattern, at_random[:, None] * off)

    def scaled(self, factor: float) -> _Matrix:
        """``factor`` times as many errors; a class stays right in a tenth of its rows at least."""
        off = 1 - np.eye(len(self.pattern))
        rate = (off * self.T).sum(axis=1)
        factors = np.minimum(factor, 0.9 / np.where(rate > 0, rate, 1.0))[:, None]
        return _Matrix(np.diag(1 - factors[:, 0] * rate) + factors * off * self.pattern, factors * off * self.random)


def _largest(em: _NoiseFit, clean: _State, found: _State) -> _State:
    """The largest level that the labels do not contradict, of errors in the shape that EM found or at random."""
    uniform = replace(found, matrix=_Matrix.start(len(clean.b)))
    shapes = [uniform, found] if found.epsilon > LEVELS[1] / 5 else [uniform]
    tried = [_climb(em, clean, shape) for shape in shapes]
    best = max(most for most, _ in tried)
    return max((state for most, state in tried if most >= best - AGREES), key=lambda state: state.epsilon)


def _at_levels(em: _NoiseFit, clean: _State, shape: _State) -> dict[float, _State]:
    """The best states at `LEVELS` of errors of one shape, as far as there is hope."""
    unit = shape.matrix.scaled(1 / max(shape.epsilon, 1e-12))
    states: dict[float, _State] = {}
    state, most = clean, -np.inf
    for level in LEVELS:
        begin = [state] if level == 0 else [state, shape]  # at 0 the likelihood has one maximum
        tried = [em.maximise(replace(at, matrix=unit.scaled(level)), None) for at in begin]
        state = states[level] = max(tried, key=lambda found: found.posterior)
        most = max(most, state.posterior)
        if state.posterior < most - HOPELESS:
            break
    return states


@dataclass(frozen=True)
class NoiseLevel:
    """What the labels say of one level of noise: the model, its log-posterior, and how often the class of a row is not
    its most likely one there. ``rates``, ``entries``: classes with a rate of random errors of their own, and entries of
    the pattern; both 0 where errors are at random, at one rate."""

    noise: LabelNoise
    log_posterior: float
    doubt: float
    rates: int = 0
    entries: int = 0

    @property
    def at_random(self) -> bool:
        """Whether errors are at random, at one rate for all classes."""
        return self.rates + self.entries == 0


def noise_levels(predictions: Predictions, labels: Labels) -> list[NoiseLevel]:
    """What the labels say of each level of noise.

    Errors at random first, then those of the shape that EM finds, where it finds any; each from 0 on, a point apart
    near the best and a few elsewhere.

    >>> z = 8.0 * np.eye(2)[np.repeat([0, 1], 100)]
    >>> found = noise_levels([z], np.where(np.arange(200) % 10 == 0, 0, np.repeat([0, 1], 100)))
    >>> best = max(found, key=lambda level: level.log_posterior)
    >>> round(best.noise.epsilon, 2), found[0].noise.epsilon, found[0].at_random
    (0.05, 0.0, True)
    """
    z = np.stack([_centred(prediction) for prediction in predictions])
    em, K = _NoiseFit(z, np.asarray(labels), np.ones(z.shape[1])), z.shape[2]
    clean = _State(np.full(len(z), 1 / len(z)), np.zeros(K), _Matrix.clean(K))
    found = em.search()
    levels = []
    for shape in (replace(found, matrix=_Matrix.start(K)), found):
        if shape.epsilon <= LEVELS[1] / 5:
            continue
        states = _at_levels(em, clean, shape)
        unit = shape.matrix.scaled(1 / max(shape.epsilon, 1e-12))
        for _ in range(HALVINGS - 1):
            known = sorted(states)
            best = max(range(len(known)), key=lambda i: states[known[i]].posterior)
            for a, b in zip(known[max(best - 1, 0) : best + 1], known[max(best, 1) : best + 2], strict=False):
                middle = (a + b) / 2
                states[middle] = em.maximise(replace(states[known[best]], matrix=unit.scaled(middle)), None)
        free = shape.matrix.free if shape is found else (0, 0)
        for level in sorted(states):
            noise = em.model(states[level])
            doubt = float(noise.doubt(predictions).mean())
            levels.append(NoiseLevel(noise, states[level].posterior, doubt, *free))
    return levels


def _climb(em: _NoiseFit, clean: _State, shape: _State) -> tuple[float, _State]:
    """The best log-posterior over the levels of one shape of T, and the state at the largest level that agrees."""
    unit = shape.matrix.scaled(1 / max(shape.epsilon, 1e-12))
    states = _at_levels(em, clean, shape)
    most = max(state.posterior for state in states.values())
    agrees = [level for level in states if states[level].posterior >= most - AGREES]
    low = max(agrees)
    high = min((level for level in states if level > low), default=low)
    for _ in range(HALVINGS if high > low > 0 else 0):
        middle = (low + high) / 2
        state = em.maximise(replace(states[low], matrix=unit.scaled(middle)), None)
        if state.posterior >= most - AGREES:
            low, states[middle] = middle, state
        else:
            high = middle
    return most, states[low]


# -- EM ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _State:
    beta: Floats
    b: Floats
    matrix: _Matrix
    pi: Floats = field(default_factory=lambda: np.ones(1))  # shares of the classes, known after a step
    posterior: float = -np.inf  # log-density, before the last step

    @property
    def epsilon(self) -> float:
        return float(self.pi @ (1 - np.diag(self.matrix.T)))


@dataclass(frozen=True)
class _NoiseFit:
    """Predictions (m, n, K), labels and sample weights, and EM on them."""

    z: Floats
    labels: Labels
    s: Floats

    @cached_property
    def _there(self) -> NoiseRows | None:
        """The rows on a device, where the fit takes place on one."""
        z = sent(self.z)
        return None if is_numpy_array(z) else NoiseRows(z, self.labels, self.s)

    def search(self) -> _State:
        """T, β and b of largest posterior density, from 30 % of wrong labels; of many rows, some are searched first."""
        if len(self.labels) > MANY * SOME:
            some = slice(None, None, len(self.labels) // SOME)
            found = _NoiseFit(self.z[:, some], self.labels[some], self.s[some]).search()
            return self._shaped(replace(found, matrix=found.matrix.loosened()))
        m, K = len(self.z), self.z.shape[2]
        # All predictions alike, and the first alone: one that has learnt the noise itself leaves none to find beside.
        first = [np.full(m, 1 / m), np.eye(m)[0]][:m]
        found_from = (self._shaped(_State(beta, np.zeros(K), _Matrix.start(K))) for beta in first)
        return max(found_from, key=lambda state: state.posterior)

    def _shaped(self, state: _State) -> _State:
        """EM from here: first which entries T has, then how large they are."""
        return self.maximise(self.maximise(state, FREE), 0.0)

    def maximise(self, state: _State, price: float | None) -> _State:
        """EM until it gains no more; T as it is where there is no ``price`` of its entries."""
        last = -np.inf
        for _ in range(MAX_ITERATIONS):
            state = self._step(state, price)
            if state.posterior - last <= TOL * len(self.labels):
                break
            last = state.posterior
        return state

    def model(self, state: _State) -> LabelNoise:
        floor = 1 / (float(self.s.sum()) + self.z.shape[2])
        return LabelNoise(state.matrix.T, state.beta, state.b, state.epsilon, floor)

    def _step(self, state: _State, price: float | None) -> _State:
        m, T = len(state.beta), state.matrix.T
        sums = self._sums if self._there is None else self._there.sums
        N, H, g, likelihood = sums(state.beta, state.b, T)
        beta, b = _calibrated(H, g, state.beta, state.b)
        pull = state.beta - 1 / m
        posterior = likelihood - 0.5 * float(pull @ pull) - 0.5 * float(state.b @ state.b)
        matrix = state.matrix if price is None else state.matrix.renewed(N, price)
        return _State(beta, b, matrix, N.sum(axis=1) / N.sum(), posterior)

    def _sums(self, beta: Floats, b: Floats, T: Floats) -> tuple[Floats, Floats, Floats, float]:
        """What a step needs of all rows: how many of class k are labelled j; curvature and slope of the expected
        complete log-likelihood in (β, b); and the log-likelihood."""
        # sums over classes and rows are products: NumPy sums short rows slowly, and this is most of the time
        K, s = len(b), self.s
        p = _softmax(np.tensordot(beta, self.z, 1) + b)
        joint = p * T.T[self.labels]
        seen = np.maximum(joint @ np.ones(K), 1e-300)
        r = joint / seen[:, None]  # P(class | x, label)
        N: Floats = np.stack([np.bincount(self.labels, s * r[:, k], K) for k in range(K)]).astype(np.float64)
        return N, *self._derivatives(p, r), float(s @ np.log(seen))

    def _derivatives(self, p: Floats, r: Floats) -> tuple[Floats, Floats]:
        z, s, m, K = self.z, self.s, len(self.z), p.shape[1]
        weighted, H = p * s[:, None], np.empty((m + K, m + K))
        parts = [weighted * zi for zi in z]
        means = [(part @ np.ones(K)) / s for part in parts]
        for i, part in enumerate(parts):
            for j in range(i, m):
                H[i, j] = H[j, i] = np.vdot(part, z[j]) - s @ (means[i] * means[j])
            H[i, m:] = H[m:, i] = np.ones(len(s)) @ part - means[i] @ weighted
        H[m:, m:] = np.diag(s @ p) - weighted.T @ p
        off = (r - p) * s[:, None]
        return H, np.concatenate([[np.vdot(off, zi) for zi in z], off.T @ np.ones(len(s))])


def _calibrated(H: Floats, g: Floats, beta: Floats, b: Floats) -> tuple[Floats, Floats]:
    """One Newton step on β ≥ 0 and b for the expected complete log-likelihood, which is concave in them, and the
    prior, whose curvature is 1."""
    m = len(beta)
    d = np.linalg.solve(H + np.eye(len(g)), g - np.concatenate([beta - 1 / m, b]))
    return np.maximum(beta + np.clip(d[:m], -STEP, STEP), 0.0), b + np.clip(d[m:], -2 * STEP, 2 * STEP)


def _softmax(a: Array) -> Array:
    if not is_numpy_array(a):
        xp = namespace(a)
        p = xp.exp(a - xp.max(a, axis=1, keepdims=True))
        return p / xp.sum(p, axis=1, keepdims=True)
    p = np.exp(a - reduce(np.maximum, a.T)[:, None])
    p /= (p @ np.ones(a.shape[1]))[:, None]
    return p


def _log_sum(a: Array) -> Array:
    """log Σₖ exp(aₖ) of every row, of which one entry at least is finite."""
    if not is_numpy_array(a):
        xp = namespace(a)
        most = xp.max(a, axis=1)
        return most + xp.log(xp.sum(xp.exp(a - most[:, None]), axis=1))
    most = reduce(np.maximum, a.T)
    return most + np.log(np.exp(a - most[:, None]) @ np.ones(a.shape[1]))
