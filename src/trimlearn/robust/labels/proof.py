"""Whether rows prove that labels are wrong: of all classes, or of two of them.

Predictions that are asked must come from rows that they say something about. A class that lies far from two others
makes classes clear and apart on average, and noise between the two, if they overlap, makes it clearer still: what
proves that labels of one are called the other's are the rows of these two, judged as if there were no other class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from trimlearn.robust.labels.few_values import told_by
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.noise_em import Floats, Labels, all_errors
from trimlearn.robust.labels.noise_level import estimate_noise
from trimlearn.robust.order import weighted_quantile

# Share of rows in doubt below which classes are clear: the best of 0.1 … 0.15 on the tables of `python -m benchmarks
# trust`. It trades right labels called wrong (0.6 % with 0.05, 1.1 % with 0.2) for wrong ones that are believed (47 %,
# 32 %): see `python -m benchmarks.calibration labels`.
CLEAR = 0.12
ONE_SIDED = 1.645  # standard errors by which noise must explain labels better than none does: a test at 5 %
BETTER = ONE_SIDED**2 / 2  # a log-likelihood more by this is better: a share of errors is not below 0 (Chernoff 1954)
SECOND = 2.0  # standard errors as ONE_SIDED, where two are asked, and one of them is enough: each at 2.3 %
# Share of a class below which rows are few that are less than half as clear as its median. Of a uniform law it is a
# quarter, and more where rows get rarer away from the other class; of normal classes 4 and 5 σ apart 16 and 11 %. For
# what else was tried see `python -m benchmarks.calibration label_gaps`.
BETWEEN = 0.22
MEMBERS = 10  # rows of a class that is asked: of so few of a uniform law, a quarter seem so by chance (binomial)
# Share up to which the most likely level is taken. The largest that agrees exceeds it by a standard error of a share,
# 0.7 points at 2 % of 400 rows: of so few that is a matter of n alone. With 0 or 0.06 the level is off by as much
# (python -m benchmarks.calibration labels).
FEW = 0.03
HALF = 0.5  # by definition: where more labels look wrong, the model agrees with fewer than it contradicts
PAIR_ROWS = 2_000  # of two classes that are asked, a limit on time: their doubt is then known to a point

Overlap = NDArray[np.bool_]  # (K, K), symmetric: which classes overlap

NO_OVERLAP: Overlap = np.zeros((2, 2), dtype=bool)  # of two classes that are asked


def allowed_errors(overlap: Overlap) -> Floats:
    """1 for the errors that there may be, else 0: between classes that overlap there are none.

    >>> allowed_errors(np.array([[False, True, False], [True, False, False], [False, False, False]]))
    array([[0., 0., 1.],
           [0., 0., 1.],
           [1., 1., 0.]])
    """
    return np.asarray(all_errors(len(overlap)) * ~overlap)


@dataclass(frozen=True)
class Evidence:
    """Labels, and what is predicted of them.

    predictions: by models that allow for noise, where there are such; trusting: by those that trust the labels, which
    noise has to beat. cells: which rows agree in the columns of few values. wary: the predictions are those of models
    that trust few labels and are sure of themselves, so that clear classes prove nothing.
    """

    predictions: list[Floats]
    trusting: list[Floats]
    labels: Labels
    s: Floats
    cells: Labels | None = None
    wary: bool = False

    def proves(self, noise: LabelNoise, plain: LabelNoise, overlap: Overlap) -> bool:
        """Whether labels are wrong as ``noise`` says, some classes being known to overlap."""
        if noise.epsilon == 0:
            return False
        gain = self._gain(noise, plain)
        if significant(gain, self.s, self._deviations()):
            return True
        log_p = plain.log_probabilities(self.trusting)
        clear = np.average(_doubt(noise.log_probabilities(self.predictions), overlap), weights=self.s) < CLEAR
        if self.wary or not clear or self.told(log_p.argmax(axis=1)):
            return False
        return float(self.s @ gain) > BETTER or lie_apart(log_p, self.s, overlap)

    def overlap(self, noise: LabelNoise) -> Overlap:
        """Which classes overlap, of those whose labels ``noise`` calls each other's: those that are not clear of each
        other once it is taken away, unless their rows prove it significantly. All of them, where it is not proven by
        the rows of any two."""
        log_p = noise.log_probabilities(self.predictions)
        K = log_p.shape[1]
        found = np.zeros((K, K), dtype=bool)
        if K == 2 or noise.epsilon == 0:
            return found
        asked = {pair: self._of(pair, log_p, share) for pair, share in self._mistaken(noise).items()}
        pairs = {at: pair for at, pair in asked.items() if len(pair.alone.s)}
        unclear = {at for at, pair in pairs.items() if not (pair.clear or pair.significant(K * (K - 1) // 2))}
        clear = [pair for at, pair in pairs.items() if at not in unclear]
        proven = any(pair.proven for pair in clear) or self._together(clear)
        for a, b in unclear if proven else pairs:
            found[a, b] = found[b, a] = True
        return found

    def _mistaken(self, noise: LabelNoise) -> dict[tuple[int, int], float]:
        """The pairs of classes of which more than `FEW` of the labels are the other's, as ``noise`` says, and how many
        are."""
        classes = noise.classes(self.predictions, self.labels) * self.s[:, None]
        K = classes.shape[1]
        count = np.stack([classes[self.labels == j].sum(axis=0) for j in range(K)], axis=1)  # of class k, labelled j
        both, own = count + count.T, np.diag(count)
        shares = {(a, b): both[a, b] / (both[a, b] + own[a] + own[b]) for a, b in combinations(range(K), 2)}
        return {pair: float(share) for pair, share in shares.items() if share > FEW}

    def _of(self, pair: tuple[int, int], log_p: Floats, share: float) -> _Pair:
        """What is known of two classes by the rows that bear their labels and look like one of them."""
        a, b = pair
        rows = np.flatnonzero(np.isin(self.labels, pair) & np.isin(log_p.argmax(axis=1), pair) & (self.s > 0))
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), PAIR_ROWS)).astype(np.int64)]
        of_both = log_p[rows][:, [a, b]]
        return _Pair(self._only(rows, a, b), of_both - np.logaddexp.reduce(of_both, axis=1, keepdims=True), share)

    def _only(self, rows: Labels, a: int, b: int) -> Evidence:
        """What these rows, of labels a and b, say of the two classes, as if there were no other."""
        return Evidence(
            [z[rows][:, [a, b]] for z in self.predictions],
            [z[rows][:, [a, b]] for z in self.trusting],
            (self.labels[rows] == b).astype(np.int64),
            self.s[rows],
            None if self.cells is None else self.cells[rows],
            self.wary,
        )

    def _together(self, pairs: list[_Pair]) -> bool:
        """Whether noise explains the labels of all these pairs significantly better."""
        if not pairs:
            return False
        gain, s = (np.concatenate(parts) for parts in zip(*[(pair.gain, pair.alone.s) for pair in pairs], strict=True))
        return significant(gain, s, self._deviations())

    def _gain(self, noise: LabelNoise, plain: LabelNoise) -> Floats:
        """By how much noise explains each label better."""
        with_noise = noise.log_likelihood(self.predictions, self.labels)
        return np.asarray(with_noise - plain.log_likelihood(self.trusting, self.labels))

    def _deviations(self, tests: int = 1) -> float:
        """Standard errors by which noise must be better where so many are asked (Bonferroni)."""
        one = SECOND if self.wary else ONE_SIDED
        return one if tests == 1 else float(norm.isf(norm.sf(one) / tests))

    def told(self, likely: Labels) -> bool:
        """Whether columns of few values say which class is the likely one."""
        return self.cells is not None and told_by(self.cells, likely) > HALF


@dataclass(frozen=True)
class _Pair:
    """Two classes: their rows, as if there were no other class; log P of both by the noise model of all, and the share
    of their labels that it calls the other's."""

    alone: Evidence
    log_p: Floats
    share: float

    @property
    def clear(self) -> bool:
        """Whether the rows may be clear once the noise is taken away: by the model of all classes, and by that of the
        two, unless it sees far less noise, its predictions having learnt it."""
        noise = self._models[0]
        alone = noise.log_probabilities(self.alone.predictions)
        told = self.alone.told(self.log_p.argmax(axis=1))
        return not (told or self._unclear(self.log_p) or (noise.epsilon > self.share / 2 and self._unclear(alone)))

    def _unclear(self, log_p: Floats) -> bool:
        """Whether more rows are in doubt than may be, significantly: where others prove noise, chance hides none."""
        return significant(_doubt(log_p, NO_OVERLAP) - CLEAR, self.alone.s, ONE_SIDED)

    @cached_property
    def _models(self) -> tuple[LabelNoise, LabelNoise]:
        """Of these rows, with noise and without it."""
        rows = self.alone
        plain = estimate_noise(rows.trusting, rows.labels, rows.s, noisy=False)
        return noise_level(rows.predictions, rows.labels, rows.s), plain

    @property
    def gain(self) -> Floats:
        return self.alone._gain(*self._models)

    def significant(self, tests: int) -> bool:
        """Whether noise explains the labels significantly better, as one of so many pairs that may be asked."""
        return significant(self.gain, self.alone.s, self.alone._deviations(tests))

    @property
    def proven(self) -> bool:
        return self.alone.proves(*self._models, NO_OVERLAP)


def blinded(z: Floats, likely: Labels, overlap: Overlap) -> Floats:
    """A prediction (n, K) that says nothing between the class a row looks like and those that overlap with it. How sure
    it is of others is then not judged by how well it tells these apart.

    >>> overlap = np.array([[False, True, False], [True, False, False], [False, False, False]])
    >>> blinded(np.log([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]]), np.array([0, 2]), overlap).round(2)
    array([[-0.92, -0.92, -1.61],
           [-1.61, -1.61, -0.51]])
    """
    same = (overlap | np.eye(len(overlap), dtype=bool))[likely]
    mean = np.logaddexp.reduce(np.where(same, z, -np.inf), axis=1, keepdims=True) - np.log(same.sum(axis=1))[:, None]
    return np.where(same, mean, z)


def noise_level(predictions: list[Floats], labels: Labels, s: Floats, allowed: Floats | None = None) -> LabelNoise:
    """The largest level of noise that the labels do not contradict; or the most likely one, where that is low."""
    noise = estimate_noise(predictions, labels, s, allowed=allowed)
    return noise if noise.epsilon > FEW else estimate_noise(predictions, labels, s, largest=False, allowed=allowed)


def significant(d: Floats, s: Floats, deviations: float) -> bool:
    """Whether the mean of d is above 0 by more than chance: by so many standard errors."""
    mean = np.average(d, weights=s)
    variance = np.average((d - mean) ** 2, weights=s)
    return bool(mean > deviations * np.sqrt(variance / s.sum()))


def lie_apart(log_p: Floats, s: Floats, overlap: Overlap) -> bool:
    """Whether classes lie apart: in each of them few rows are less than half as clear as the median. Between classes
    that overlap nobody expects a gap.

    >>> classes, spread, overlap = np.arange(100) % 2, np.linspace(0, 3, 100), np.zeros((2, 2), dtype=bool)
    >>> lie_apart((1 + spread)[:, None] * np.eye(2)[classes], np.ones(100), overlap)
    True
    >>> lie_apart(spread[:, None] * np.eye(2)[classes], np.ones(100), overlap)
    False
    """
    K, likely = log_p.shape[1], log_p.argmax(axis=1)
    others = ~(overlap | np.eye(K, dtype=bool))
    margin = log_p.max(axis=1) - np.where(others[likely], log_p, -np.inf).max(axis=1)
    between = []
    for rows in (np.flatnonzero((likely == k) & (s > 0)) for k in np.flatnonzero(others.any(axis=1))):
        if len(rows) >= MEMBERS:
            near = margin[rows] < weighted_quantile(margin[rows], s[rows], 0.5) / 2
            between.append(np.average(near, weights=s[rows]))
    return bool(len(between) > 1 and max(between) < BETWEEN)


def _doubt(log_p: Floats, overlap: Overlap) -> Floats:
    """How often the class of such a row is neither the most likely one nor one that overlaps with it."""
    same = overlap | np.eye(len(overlap), dtype=bool)
    return np.asarray(1 - np.sum(np.exp(log_p) * same[log_p.argmax(axis=1)], axis=1))
