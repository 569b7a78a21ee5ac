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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, index_like, namespace, to_numpy
from trimlearn._utils.residence import sent
from trimlearn.robust.labels.noise_em import (
    Floats,
    Labels,
    NoiseFit,
    NoiseMatrix,
    NoiseState,
    log_sum,
    row_centred,
    softmax,
)

__all__ = [
    "Floats",
    "LabelNoise",
    "Labels",
    "NoiseLevel",
    "Predictions",
    "anchor_noise",
    "estimate_noise",
    "noise_levels",
    "two_columns",
]

Predictions = Sequence[Any]  # of arrays (n, K)

# Share of wrong labels that follow no pattern: what a score falls back on where T has no error to explain it. Ten times
# as many or as few change the verdict on 1 of 500 wrong labels (python -m benchmarks.calibration labels).
BACKGROUND = 1e-3
AGREES = 0.5  # a log-likelihood this far below the best is within one standard error of it (Wilks 1938)
# The shares tried first, a point apart at the lower end and four at the upper. HALVINGS of the interval between the
# last that agrees and the first that does not leave half a point, one standard error of a share of 20 % in 6,400 rows.
LEVELS = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.34, 0.38, 0.42, 0.46)
HALVINGS = 3  # of an interval of four points: half a point is left
HOPELESS = 20.0  # a likelihood that is e²⁰ times less than the best is not made up for at a higher level
SURE = 20_000  # rows that are enough: a share of 20 % has a standard error of 0.3 points, and all that agree are one
# Of the examples that a model takes for a class, the share that is surest. On 8,000 digits of which 40 % are shifted by
# one, 0.5, 0.2 and 0.05 give 43, 44 and 44 % of wrong labels, and 0.1, 0.1 and 0 % on the same digits as they are.
SUREST = 0.2
ANCHORS = 20  # anchors of a class: a share of 20 % then has a standard error of 9 points
MOST_WRONG = 0.5  # of a class: with more, what is called its label would be another one's


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
    floor: float = 0.0  # of a probability: n rows say nothing about less than 1/n, shared by K classes (Perks 1947)

    @property
    def bounded(self) -> Floats:
        """T, no error quite impossible."""
        return np.asarray((1 - BACKGROUND) * self.T + BACKGROUND / len(self.T))

    @property
    def as_it_is(self) -> LabelNoise:
        """The same for predictions of one model that is as sure of itself as it is."""
        return replace(self, temperatures=np.ones(1), bias=np.zeros(len(self.T)))

    def log_probabilities(self, predictions: Predictions) -> Floats:
        """log p, calibrated: of the classes before labels went wrong."""
        return to_numpy(self._log_p(predictions))

    def doubt(self, predictions: Predictions) -> Floats:
        """1 − max p: how often the class of such a row is not the most likely one."""
        return np.asarray(1 - np.exp(self.log_probabilities(predictions).max(axis=1)))

    def score(self, predictions: Predictions, labels: Labels) -> Floats:
        """log P(label wrong | x, label) − log P(label right | x, label): larger is worse, 0 is undecided."""
        right, others = self._joint(predictions, labels)
        return to_numpy(log_sum(others) - right)

    def log_likelihood(self, predictions: Predictions, labels: Labels) -> Floats:
        """log P(label | x) of every row."""
        right, others = self._joint(predictions, labels)
        return to_numpy(namespace(right).logaddexp(right, log_sum(others)))

    def classes(self, predictions: Predictions, labels: Labels) -> Floats:
        """P(class | x, label), (n, K): what the labels should have been."""
        right, joint = self._joint(predictions, labels)
        joint[index_like(np.arange(len(labels)), joint), index_like(labels, joint)] = right
        return to_numpy(softmax(joint))

    def suggest(self, predictions: Predictions, labels: Labels) -> Labels:
        """The label itself where it is more likely right than wrong, else the most likely of the others."""
        right, others = self._joint(predictions, labels)
        wrong = to_numpy(log_sum(others) > right)
        return np.where(wrong, to_numpy(namespace(others).argmax(others, axis=1)), labels)

    def _log_p(self, predictions: Predictions) -> Array:
        """`log_probabilities`, where a fit takes place."""
        there = [row_centred(sent(prediction)) for prediction in predictions]
        z: Any = sum(float(beta) * prediction for beta, prediction in zip(self.temperatures, there, strict=True))
        a = z + asarray_like(self.bias, z)
        log_p = a - log_sum(a)[:, None]
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
    z = np.stack([row_centred(np.asarray(prediction)[there]) for prediction in predictions])
    em = NoiseFit(z, np.asarray(labels)[there], s[there])
    start = NoiseState(np.full(len(z), 1 / len(z)), np.zeros(K), NoiseMatrix.clean(K))
    if not noisy:
        return _model(em, em.maximise(start, None))
    found = em.search()
    return _model(em, _largest(em, start, found) if largest and len(there) < SURE else found)


def _largest(em: NoiseFit, clean: NoiseState, found: NoiseState) -> NoiseState:
    """The largest level that the labels do not contradict, of errors in the shape that EM found or at random."""
    uniform = replace(found, matrix=NoiseMatrix.start(len(clean.b)))
    shapes = [uniform, found] if found.epsilon > LEVELS[1] / 5 else [uniform]
    tried = [_climb(em, clean, shape) for shape in shapes]
    best = max(most for most, _ in tried)
    return max((state for most, state in tried if most >= best - AGREES), key=lambda state: state.epsilon)


def _at_levels(em: NoiseFit, clean: NoiseState, shape: NoiseState) -> dict[float, NoiseState]:
    """The best states at `LEVELS` of errors of one shape, as far as there is hope."""
    unit = shape.matrix.scaled(1 / max(shape.epsilon, 1e-12))
    states: dict[float, NoiseState] = {}
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
    z = np.stack([row_centred(prediction) for prediction in predictions])
    em, K = NoiseFit(z, np.asarray(labels), np.ones(z.shape[1])), z.shape[2]
    clean = NoiseState(np.full(len(z), 1 / len(z)), np.zeros(K), NoiseMatrix.clean(K))
    found = em.search()
    levels = []
    for shape in (replace(found, matrix=NoiseMatrix.start(K)), found):
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
            noise = _model(em, states[level])
            doubt = float(noise.doubt(predictions).mean())
            levels.append(NoiseLevel(noise, states[level].posterior, doubt, *free))
    return levels


def _climb(em: NoiseFit, clean: NoiseState, shape: NoiseState) -> tuple[float, NoiseState]:
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


def anchor_noise(log_p: Floats, labels: Labels, s: Floats) -> Floats:
    """A first T, from log-probabilities (n, K) out of sample: T[k, j] is the share of labels j among the anchors of
    class k, the examples that a model is surest of; s: the weights of the rows.

    A model that was fitted to wrong labels predicts them, with the right odds: blurred classes and wrong labels explain
    its predictions equally well. What tells them apart are its anchors. If labels are right, theirs are; if a share of
    all labels is wrong, so is a share of theirs, however clear the example (Patrini et al. 2017; Northcutt et al. 2021
    count labels as well). Their labels are counted, because what a model says about its own errors is too good.

    >>> rng = np.random.default_rng(0)
    >>> classes = np.repeat([0, 1, 2], 200)
    >>> labels = np.where(np.arange(600) % 5 == 0, (classes + 1) % 3, classes)
    >>> z = rng.uniform(1, 3, 600)[:, None] * np.eye(3)[classes]
    >>> float((1 - np.diag(anchor_noise(z, labels, np.ones(600)))).mean().round(1))
    0.2
    """
    K = log_p.shape[1]
    T, taken = np.eye(K), log_p.argmax(axis=1)
    for k in range(K):
        own = np.flatnonzero((taken == k) & (s > 0))
        surest = own[np.argsort(-log_p[own, k], kind="stable")][: max(ANCHORS, int(SUREST * len(own)))]
        if len(surest) < ANCHORS:
            continue
        counts = np.bincount(labels[surest], s[surest], K)
        T[k] = counts / counts.sum()
        wrong = 1 - T[k, k]
        if wrong > MOST_WRONG:
            T[k] *= MOST_WRONG / wrong
            T[k, k] = 1 - MOST_WRONG
    return T


def _model(em: NoiseFit, state: NoiseState) -> LabelNoise:
    floor = 1 / (em.z.shape[2] * (float(em.s.sum()) + 1))
    return LabelNoise(state.matrix.T, state.beta, state.b, state.epsilon, floor)
