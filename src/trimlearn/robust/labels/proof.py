"""Whether rows prove that labels are wrong: of all classes, or of two of them.

Where models contradict labels, these are wrong, or classes overlap there. Two things speak for wrong labels: noise
explains the labels better, and it leaves few rows in doubt. Where classes overlap, rows stay in doubt however much
noise is allowed for; and that noise explains the labels better happens by chance, or where the models do not know the
law that the classes follow. Both are added up (`Odds`). By itself either is not enough, unless every single label
called wrong is unlikely.

Predictions that are asked must come from rows that they say something about. A class that lies far from two others
leaves few rows in doubt on average, and noise between the two, if they overlap, makes them fewer still: what proves
that labels of one are called the other's are the rows of these two, judged as if there were no other class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from trimlearn.robust.labels.few_values import told_by
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.noise_em import Floats, Labels, all_errors
from trimlearn.robust.labels.noise_level import estimate_noise

# What wrong labels and rows in doubt count for beside the likelihood, and the log-odds that prove noise. They trade
# clean samples that are accused for wrong labels that are found: 5 and 69 %; with half of the one 2.5 and 55 %, of the
# other 10 and 78 % (python -m benchmarks.calibration label_proof).
CLEARNESS, PROVEN = 6.0, 4.0
# Gain in log-likelihood for each label called wrong, from which on overlap is out of the question. Under the laws of
# `python -m benchmarks.calibration label_proof` in which none is wrong it was 0.35 at most where the gain was above 2.
SHARP = 1.0
# Labels called wrong for each row in doubt, from which on all rows at once prove noise between more than two classes:
# between 1.9, a forest's predictions of two classes that overlap beside a clear one, and 2.6, iris and wine with 10 to
# 30 % of the labels shifted (a choice).
CLEARLY = 2.2
ONE_SIDED = 1.645  # standard errors by which noise must explain labels better than none does: a test at 5 %
NOT_WORSE = ONE_SIDED**2 / 2  # a log-likelihood that is less by this is not significantly worse (Wilks 1938)
# Share up to which the most likely level is taken. The largest that agrees exceeds it by a standard error of a share,
# 0.7 points at 2 % of 400 rows: of so few that is a matter of n alone. With 0 the level is off by 0.3 points more, with
# 0.06 by as much (python -m benchmarks.calibration labels).
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
class Odds:
    """What some rows say of noise: by how much it explains their labels better, how many of them it calls wrong, and
    how many rows it leaves in doubt.

    >>> clear, blurred = Odds(gain=1.0, wrong=20.0, doubt=5.0), Odds(gain=1.0, wrong=20.0, doubt=40.0)
    >>> clear.proven, blurred.proven, Odds.together([clear, blurred]).proven
    (True, False, False)
    """

    gain: float
    wrong: float
    doubt: float

    @classmethod
    def together(cls, parts: Iterable[Odds]) -> Odds:
        """Those of rows that were asked in parts."""
        parts = list(parts)
        return cls(*(sum(getattr(each, name) for each in parts) for name in ("gain", "wrong", "doubt")))

    @property
    def log_odds(self) -> float:
        """Of noise against overlap."""
        if self.wrong <= 0:
            return -inf
        return self.gain + CLEARNESS * log(self.wrong / self.doubt) if self.doubt > 0 else inf

    @property
    def proven(self) -> bool:
        """Whether labels are wrong: a few are also where each of them is far less likely to be right, whatever else is
        in doubt."""
        return self.log_odds > PROVEN or self.gain > max(PROVEN, SHARP * self.wrong)


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

    def odds(self, noise: LabelNoise, plain: LabelNoise, overlap: Overlap) -> Odds:
        """Of the noise against ``plain``, some classes being known to overlap."""
        gain = noise.log_likelihood(self.predictions, self.labels) - plain.log_likelihood(self.trusting, self.labels)
        doubt = _doubt(noise.log_probabilities(self.predictions), overlap)
        return self._odds(float(self.s @ gain), noise.epsilon, doubt, plain)

    def _odds(self, gain: float, share: float, doubt: Floats, plain: LabelNoise) -> Odds:
        """Where columns of few values say which class is the likely one, classes look clear whatever chance makes of
        them, as they do to wary models: the share that noise calls wrong is in doubt too."""
        likely = plain.log_probabilities(self.trusting).argmax(axis=1)
        blind = self.wary or (self.cells is not None and told_by(self.cells, likely) > HALF)
        return Odds(gain, share * float(self.s.sum()), float(self.s @ (doubt + share * blind)))

    def overlap(self, noise: LabelNoise, plain: LabelNoise) -> Overlap:
        """Which classes overlap, of those whose labels ``noise`` calls each other's: those whose rows prove that. All
        of them, where neither the rows of the others together prove noise nor all rows at once do, against ``plain``,
        and clearly, as a class that lies far from two that overlap leaves few rows in doubt."""
        K = noise.T.shape[0]
        found = np.zeros((K, K), dtype=bool)
        if K == 2 or noise.epsilon == 0:
            return found
        log_p = noise.log_probabilities(self.predictions)
        asked = {pair: self._between(*pair, share, log_p) for pair, share in self._mistaken(noise).items()}
        noisy = {pair: both for pair, both in asked.items() if both[1].log_odds > -PROVEN}
        alone, seen = (Odds.together(both[which] for both in noisy.values()) for which in (0, 1))
        whole = self.odds(noise, plain, found)
        clear = whole.gain > NOT_WORSE and whole.wrong > CLEARLY * whole.doubt
        proven = alone.proven or (seen.proven and seen.gain > NOT_WORSE) or clear
        for a, b in asked.keys() - noisy.keys() if proven else asked:
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

    def _between(self, a: int, b: int, share: float, log_p: Floats) -> tuple[Odds, Odds]:
        """What rows that bear the labels a and b and look like one of them say of the two, as if there were no other
        class; and the same by the noise of all classes, as in log_p, where that of the two is far less, predictions
        having learnt it. Nothing, where they might as well have been drawn by chance."""
        rows = np.flatnonzero(np.isin(self.labels, (a, b)) & np.isin(log_p.argmax(axis=1), (a, b)) & (self.s > 0))
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), PAIR_ROWS)).astype(np.int64)]
        if not len(rows):
            return NOTHING, NOTHING
        two = Evidence(
            [z[rows][:, [a, b]] for z in self.predictions],
            [z[rows][:, [a, b]] for z in self.trusting],
            (self.labels[rows] == b).astype(np.int64),
            self.s[rows],
            None if self.cells is None else self.cells[rows],
            self.wary,
        )
        found = noise_level(two.predictions, two.labels, two.s)
        if is_chance(found.log_likelihood(two.predictions, two.labels), two.labels, two.s):
            return NOTHING, NOTHING
        plain = estimate_noise(two.trusting, two.labels, two.s, noisy=False)
        alone = two.odds(found, plain, NO_OVERLAP)
        if found.epsilon > share / 2:
            return alone, alone
        both = log_p[rows][:, [a, b]]
        doubt = _doubt(both - np.logaddexp.reduce(both, axis=1, keepdims=True), NO_OVERLAP)
        return alone, two._odds(alone.gain, share, doubt, plain)


NOTHING = Odds(0.0, 0.0, 0.0)  # by definition: what no row says


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


def is_chance(likelihood: Floats, labels: Labels, s: Floats) -> bool:
    """Whether labels are explained no better than by the shares of the classes. The temperatures that were fitted to
    these labels are not counted: among 20 % of wrong labels a rare class is worth little more, and where labels are
    drawn by chance nothing is clear anyway."""
    shares = np.bincount(labels, s) / s.sum()
    return bool(s @ (likelihood - np.log(np.maximum(shares[labels], 1e-300))) < NOT_WORSE)


def significant(d: Floats, s: Floats, deviations: float) -> bool:
    """Whether the mean of d is above 0 by more than chance: by so many standard errors."""
    mean = np.average(d, weights=s)
    variance = np.average((d - mean) ** 2, weights=s)
    return bool(mean > deviations * np.sqrt(variance / s.sum()))


def _doubt(log_p: Floats, overlap: Overlap) -> Floats:
    """How often the class of such a row is neither the most likely one nor one that overlaps with it."""
    same = overlap | np.eye(len(overlap), dtype=bool)
    return np.asarray(1 - np.sum(np.exp(log_p) * same[log_p.argmax(axis=1)], axis=1))
