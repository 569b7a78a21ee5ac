"""How many labels are wrong: the noise model of largest posterior density, found by EM, at a level that labels decide.

Models that were fitted to wrong labels predict wrong labels: sharper classes with more noise, and blurred classes with
less, explain what was seen almost equally well. So the level is the largest that the labels do not contradict
(`AGREES`); whether they speak for noise at all is for `trimlearn.robust.labels.verdict` to say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from trimlearn.robust.labels.noise import LabelNoise, Predictions
from trimlearn.robust.labels.noise_em import (
    Floats,
    Labels,
    NoiseFit,
    NoiseMatrix,
    NoiseState,
    all_errors,
    row_centred,
)

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


def estimate_noise(
    predictions: Predictions,
    labels: Labels,
    s: Floats | None = None,
    *,
    noisy: bool = True,
    largest: bool = True,
    allowed: Floats | None = None,
) -> LabelNoise:
    """The noise model of labels in 0..K−1, given predictions, each (n, K), by models that have not seen their rows.

    The prior: off the diagonal of T an entry must explain ½ row before it counts, and the rates of the classes are
    alike; βᵢ ~ N(1/m, 1) and b ~ N(0, 1), which only matter where there are few rows. EM starts from 30 % of wrong
    labels. noisy=False: T = I, and only the calibration is found. largest=False: the most likely level, not the largest
    that agrees with the labels. allowed: 1 for the errors that there may be, else 0, of T off its diagonal.

    >>> z = 8.0 * np.eye(2)[np.repeat([0, 1], 100)]
    >>> labels = np.repeat([0, 1], 100)
    >>> labels[:20] = 1  # a fifth of class 0, nobody of class 1
    >>> estimate_noise([z], labels, largest=False).T.round(2)
    array([[0.81, 0.19],
           [0.01, 0.99]])
    """
    s = np.ones(len(labels)) if s is None else np.asarray(s, dtype=np.float64)
    there = np.flatnonzero(s > 0)
    if len(there) > SURE:
        there = there[np.linspace(0, len(there) - 1, SURE).astype(np.int64)]
    z = np.stack([row_centred(np.asarray(prediction)[there]) for prediction in predictions])
    em = NoiseFit(z, np.asarray(labels)[there], s[there], all_errors(z.shape[2]) if allowed is None else allowed)
    if not noisy:
        return _model(em, em.maximise(em.clean, None))
    found = em.search()
    return _model(em, _largest(em, found) if largest and len(there) < SURE else found)


def _largest(em: NoiseFit, found: NoiseState) -> NoiseState:
    """The largest level that the labels do not contradict, of errors in the shape that EM found or at random."""
    tried = [_climb(em, shape) for shape in _shapes(found)]
    best = max(most for most, _ in tried)
    return max((state for most, state in tried if most >= best - AGREES), key=attrgetter("epsilon"))


def _shapes(found: NoiseState) -> list[NoiseState]:
    """Errors at random, and those of the shape that EM found, if it found any."""
    uniform = replace(found, matrix=NoiseMatrix.start(found.matrix.allowed))
    return [uniform, found] if found.epsilon > LEVELS[1] / 5 else [uniform]


def _climb(em: NoiseFit, shape: NoiseState) -> tuple[float, NoiseState]:
    """The best log-posterior over the levels of one shape of T, and the state at the largest level that agrees."""
    unit, states = _at_levels(em, shape)
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


def _at_levels(em: NoiseFit, shape: NoiseState) -> tuple[NoiseMatrix, dict[float, NoiseState]]:
    """T of this shape, in which every label is wrong; and the best states at `LEVELS` of such errors, as far as there
    is hope."""
    unit = shape.matrix.scaled(1 / max(shape.epsilon, 1e-12))
    states: dict[float, NoiseState] = {}
    state, most = em.clean, -np.inf
    for level in LEVELS:
        begin = [state] if level == 0 else [state, shape]  # at 0 the likelihood has one maximum
        tried = [em.maximise(replace(at, matrix=unit.scaled(level)), None) for at in begin]
        state = states[level] = max(tried, key=attrgetter("posterior"))
        most = max(most, state.posterior)
        if state.posterior < most - HOPELESS:
            break
    return unit, states


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


def noise_levels(predictions: Predictions, labels: Labels, allowed: Floats | None = None) -> list[NoiseLevel]:
    """What the labels say of each level of noise.

    Errors at random first, then those of the shape that EM finds, where it finds any; each from 0 on, a point apart
    near the best and a few elsewhere. allowed: as in `estimate_noise`.

    >>> z = 8.0 * np.eye(2)[np.repeat([0, 1], 100)]
    >>> found = noise_levels([z], np.where(np.arange(200) % 10 == 0, 0, np.repeat([0, 1], 100)))
    >>> best = max(found, key=lambda level: level.log_posterior)
    >>> round(best.noise.epsilon, 2), found[0].noise.epsilon, found[0].at_random
    (0.05, 0.0, True)
    """
    z = np.stack([row_centred(prediction) for prediction in predictions])
    em = NoiseFit(z, np.asarray(labels), np.ones(z.shape[1]), all_errors(z.shape[2]) if allowed is None else allowed)
    found, levels = em.search(), []
    for shape in _shapes(found):
        unit, states = _at_levels(em, shape)
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
