"""The data's fault, or the model's? Whether predictions that disagree with labels prove the labels wrong.

A noise model fitted to the predictions says how many labels could be wrong. They are taken to be wrong where noise
explains the labels so much better, and leaves so few rows in doubt, that overlapping classes are out of the question
(`trimlearn.robust.labels.proof`). Else blurred classes explain what was seen as well as noise does, and every label is
taken to be right; the share that may be wrong all the same is kept, to be told.

Of more than two classes some may overlap that others are clear of. So each two of which labels of the one seem to be
the other's are asked first, as if they were alone. Where their rows prove overlap no label of the one is called the
other's, and what is asked above is asked of the other errors.

The first prediction may be made again by models that allow for the noise found (`corrected`): they never learn the
labels of the rows they predict, T being all that they are told. Where the predictions are clear of no row, they may
have learnt the noise themselves: then the labels of their clearest rows say what T to try (`anchor_noise`).

Of the labels taken to be wrong those are named that are more likely wrong than right, and of these no more than a list
of which a tenth at most, or one in a hundred of all labels, is expected to be right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.noise_em import Floats, Labels
from trimlearn.robust.labels.noise_level import anchor_noise, estimate_noise
from trimlearn.robust.labels.proof import (
    HALF,
    NOT_WORSE,
    Evidence,
    Overlap,
    allowed_errors,
    blinded,
    is_chance,
    noise_level,
)
from trimlearn.robust.order import weighted_quantile

# Times that the first prediction is made again, a limit on time, unless the level changes by less than a point, which
# is half a standard error of a share of 20 % in 400 rows.
CORRECTIONS, SETTLED = 3, 0.01
ENOUGH = 50  # rows: the standard error of a share of 10 % is 4 points here, and of fewer rows nobody expects to be told
# Quantile, over the rows, of the probability of the most likely class: so clear are the clearest rows (Patrini, Rozza,
# Menon, Nock and Qu 2017, section 4.1, who take it in place of the maximum, which is a matter of chance).
CLEAREST = 0.97
# Right labels that may be expected among those named: a tenth of these, the default of `flag`; or of all rows one in a
# hundred, which only matters where few are named. With 0.05 and 0.2 of those named 0.4 and 1.4 % of the right labels
# are named, and 42 and 32 % of the wrong ones are not (python -m benchmarks.calibration labels).
INNOCENT, MISTAKEN = 0.1, 0.01
# Share of the labels that a simple model calls wrong, and a flexible one does not, which the latter may still fail to
# explain without any being wrong (a choice): a rule of two among 45 columns leaves boosting with a fifth.
UNEXPLAINED = 0.25
UNCLEAR = 0.2  # blur worth a warning: where 40 % are wrong, the clearest rows of noisy predictions look twice as clear
MATERIAL = 0.1  # a share of labels worth a warning: as much is off the accuracy that is measured on these labels


@dataclass(frozen=True)
class LabelVerdict:
    """The noise model, T = I where all labels are taken to be right, and the predictions for all rows behind it."""

    noise: LabelNoise
    predictions: list[Floats]
    labels: Labels
    s: Floats
    undecided: float = 0.0  # the share of labels that may be wrong, where it is not proven, beside those that are
    misfit: float = 0.0  # the share that the first prediction alone calls wrong, or contradicts, but all do not
    blur: float = 0.0  # how often the label of the clearest rows is not the most likely one, as if all were right
    chance: bool = False  # whether the labels might as well have been drawn by chance: nobody can tell right from wrong
    overlap: Overlap | None = None  # (K, K), which classes do, so that no label of the one is called the other's

    @property
    def clean(self) -> bool:
        """Whether all labels are taken to be right."""
        return self.noise.epsilon == 0

    def gathered(self, copies: NDArray[np.int64], labels: Labels, s: Floats) -> LabelVerdict:
        """The same for rows that were written out, copies[i] being the row that the i-th is a copy of: a row's
        predictions are the mean of those of its copies."""
        count = np.maximum(np.bincount(copies, minlength=len(labels)), 1)[:, None]
        means = [np.zeros((len(labels), z.shape[1])) for z in self.predictions]
        for mean, z in zip(means, self.predictions, strict=True):
            np.add.at(mean, copies, z)
        return replace(self, predictions=[mean / count for mean in means], labels=labels, s=s)

    def may_replace(self, before: LabelVerdict) -> bool:
        """Whether this verdict, by one more model, stands instead of that one. Where nothing was proven, no further
        model proves it: it may only show that nothing was wrong."""
        return self.clean or not before.clean

    @cached_property
    def scores(self) -> Floats:
        """Log-odds that a label is wrong."""
        return self.noise.score(self.predictions, self.labels)

    @cached_property
    def suggested(self) -> Labels:
        """The label itself, unless it is more likely wrong than right."""
        return self.labels if self.clean else self.noise.suggest(self.predictions, self.labels)

    @property
    def log_likelihood(self) -> Floats:
        """log P(label | x) of every row."""
        return self.noise.log_likelihood(self.predictions, self.labels)

    @property
    def anchored(self) -> Floats:
        """T as the labels of the clearest rows say, no error quite impossible."""
        log_p = self.noise.log_probabilities(self.predictions)
        return replace(self.noise, T=anchor_noise(log_p, self.labels, self.s)).bounded

    @property
    def classes(self) -> Floats:
        """P(class | x, label), (n, K)."""
        return self.noise.classes(self.predictions, self.labels)

    @property
    def probability(self) -> Floats:
        """P(label wrong | x, label)."""
        return np.asarray(expit(self.scores), dtype=np.float64)

    def cut(self, share: float | None = None) -> float:
        """The score up to which labels are kept: those more likely right than wrong, and the best ``share`` of them."""
        if share is None:
            return np.inf if self.clean else self._surely_wrong
        return max(0.0, weighted_quantile(self.scores, self.s, share))

    @cached_property
    def _surely_wrong(self) -> float:
        """The score above which labels are more likely wrong than right, and few of them are expected to be right."""
        doubted = np.flatnonzero((self.scores > 0) & (self.s > 0))
        worst = doubted[np.argsort(-self.scores[doubted], kind="stable")]
        bound = np.maximum(INNOCENT * np.cumsum(self.s[worst]), MISTAKEN * self.s.sum())
        allowed = np.cumsum(self.s[worst] * (1 - self.probability[worst])) <= bound
        length = int(np.max(np.flatnonzero(allowed), initial=-1)) + 1
        return 0.0 if length == len(worst) else float(self.scores[worst[length]])

    def keep(self, share: float | None = None) -> Floats:
        """1 for every row that is kept, else 0. A class that would lose all its rows keeps its better half."""
        scores, labels, s = self.scores, self.labels, self.s
        keep = scores <= self.cut(share)
        for label in np.unique(labels[s > 0]):
            rows = (labels == label) & (s > 0)
            if not keep[rows].any():
                keep |= rows & (scores <= weighted_quantile(scores[rows], s[rows], 0.5))
        return keep.astype(np.float64)

    @property
    def warning(self) -> str | None:
        """What the user must be told."""
        few, wrong = self.s.sum() < ENOUGH, self.noise.epsilon
        unproven = max(self.undecided, self.blur if self.clean and self.blur >= UNCLEAR else 0.0)
        if unproven >= MATERIAL and not (few or self.chance):
            beside, taken = ("", "all") if self.clean else (" beside those that are named", "they")
            return (
                f"up to {unproven:.0%} of the labels may be wrong{beside}, but overlapping classes would "
                f"explain them as well: {taken} are taken to be right. Give contamination if you know better."
            )
        if self.misfit >= MATERIAL:
            return (
                f"{self.misfit:.0%} of the labels look like a model that is too simple, not like wrong labels: a "
                "flexible one explains them. "
                + ("All" if self.clean else "They")
                + " are taken to be right; try TrimmedEstimator around a flexible model."
            )
        named = float(np.average(self.keep() == 0, weights=self.s))
        doubted = max(wrong, float(np.average(self.scores > 0, weights=self.s)))
        if doubted > HALF and not (few or self.clean):
            return (
                f"{doubted:.0%} of the labels look wrong, more than half: the model may be too simple "
                "instead. Look at some of them, or try TrimmedEstimator around a flexible model."
            )
        if wrong - named >= MATERIAL and not few:
            return (
                f"about {wrong:.0%} of the labels look wrong, but the classes overlap: only {named:.0%} can be named. "
                "outlier_probability_ says how probable it is of every row."
            )
        if self.chance and not few:
            return (
                "the features explain the labels no better than chance does: nobody can tell which of them are wrong. "
                "All are taken to be right."
            )
        return None


def label_verdict(
    predictions: list[Floats],
    labels: Labels,
    s: Floats,
    corrected: Callable[[Floats], Floats] | None = None,
    to_beat: LabelVerdict | None = None,
    cells: Labels | None = None,
) -> LabelVerdict:
    """Judge labels by predictions of them, each (n, K).

    corrected: given T, the first prediction made by a model that knows T. to_beat: the verdict that trusts all labels
    and that noise has to beat, else that of the same predictions. Where it is given, the predictions are those of
    models that trust few labels and are sure of themselves, so that clear classes prove nothing. cells: which rows
    agree in the columns of few values (`trimlearn.robust.labels.few_values.cells_of`).

    >>> rng = np.random.default_rng(0)
    >>> classes = np.repeat([0, 1], 200)
    >>> z = 6.0 * np.eye(2)[classes] + rng.standard_normal((400, 2))
    >>> labels = np.where(np.arange(400) % 5 == 0, 1 - classes, classes)
    >>> verdict = label_verdict([z], labels, np.ones(400))
    >>> round(verdict.noise.epsilon, 1), bool(np.all(verdict.suggested == classes))
    (0.2, True)
    """
    plain = estimate_noise(predictions, labels, s, noisy=False)
    alone = estimate_noise(predictions[:1], labels, s, largest=False)
    blur = 1 - weighted_quantile(1 - plain.doubt(predictions), s, CLEAREST)
    trusting = LabelVerdict(plain, predictions, labels, s, blur=blur)
    noise, final = _searched(trusting, alone, corrected)
    if is_chance(noise.log_likelihood(final, labels), labels, s):
        return replace(trusting, chance=True)
    misfit = alone.epsilon - noise.epsilon if len(predictions) > 1 else 0.0
    left = max(MATERIAL / 2, misfit * UNEXPLAINED)  # what is left is within the errors of flexible models
    if misfit >= MATERIAL and noise.epsilon < left:
        return replace(trusting, misfit=misfit)
    without = trusting if to_beat is None else to_beat
    evidence = Evidence(final, without.predictions, labels, s, cells, to_beat is not None)
    seen, plain = noise.epsilon, without.noise
    overlap = evidence.overlap(noise, plain)
    allowed = allowed_errors(overlap)
    if overlap.any():
        blind = partial(blinded, likely=noise.log_probabilities(final).argmax(axis=1), overlap=overlap)
        again = None if corrected is None else lambda T: blind(corrected(T))
        shown, compared = ([blind(z) for z in each.predictions] for each in (trusting, without))
        alone = estimate_noise(shown[:1], labels, s, largest=False, allowed=allowed)
        noise, final = _searched(replace(trusting, predictions=shown), alone, again, allowed)
        if noise.epsilon > 0:
            evidence = replace(evidence, predictions=final, trusting=compared)
            plain = estimate_noise(compared, labels, s, noisy=False)
        else:  # what is left to be seen says too little
            final = evidence.predictions
            noise = noise_level(final, labels, s, allowed)
    if not evidence.odds(noise, plain, overlap).proven:
        return replace(trusting, undecided=seen, overlap=overlap)
    if len(final) > 1:
        alone = estimate_noise(final[:1], labels, s, largest=False, allowed=allowed)
        misfit = _contradicted(alone, final[:1], labels, s) - _contradicted(noise, final, labels, s)
    undecided = max(seen - noise.epsilon, 0.0) if overlap.any() else 0.0
    return LabelVerdict(noise, final, labels, s, undecided, misfit, overlap=overlap)


def _searched(
    trusting: LabelVerdict,
    alone: LabelNoise,
    corrected: Callable[[Floats], Floats] | None,
    allowed: Floats | None = None,
) -> tuple[LabelNoise, list[Floats]]:
    """The noise model, and the predictions behind it: the first is made again by models that allow for noise where
    there is some, or where the predictions are clear of no row. ``alone``: the noise that the first one sees."""
    predictions = trusting.predictions
    noise = noise_level(predictions, trusting.labels, trusting.s, allowed)
    final = predictions
    if corrected is None:
        return noise, final
    # Where all predictions together see no noise, but the first does, it is given a chance to show what it makes of
    # it: the others may just have learnt the noise.
    seen = noise if noise.epsilon > 0 else alone
    if seen.epsilon > 0:
        noise, final = _corrected(noise, predictions, seen.bounded, trusting, corrected, allowed)
    if noise.epsilon < trusting.blur and trusting.blur >= MATERIAL:
        noise, final = _corrected(noise, final, trusting.anchored, trusting, corrected, allowed)
    return noise, final


def _corrected(
    noise: LabelNoise,
    predictions: list[Floats],
    T: Floats,
    trusting: LabelVerdict,
    corrected: Callable[[Floats], Floats],
    allowed: Floats | None,
) -> tuple[LabelNoise, list[Floats]]:
    """The noise model and the predictions after the first was made again by models that know T, unless that explains
    the labels worse."""
    labels, s = trusting.labels, trusting.s
    final, best = predictions, float(s @ noise.log_likelihood(predictions, labels))
    for _ in range(CORRECTIONS):
        again = [corrected(T), *predictions[1:]]
        found = noise_level(again, labels, s, allowed)
        likelihood, more = float(s @ found.log_likelihood(again, labels)), found.epsilon - noise.epsilon
        # Of what explains the labels equally well, the largest level is taken here too.
        if likelihood < best + (-NOT_WORSE if more > -SETTLED else NOT_WORSE):
            break
        noise, final, best, T = found, again, likelihood, found.bounded
        if abs(more) <= SETTLED or found.epsilon == 0:
            break
    return noise, final


def _contradicted(noise: LabelNoise, predictions: list[Floats], labels: Labels, s: Floats) -> float:
    """The share of labels that are not the most likely class."""
    likely = noise.log_probabilities(predictions).argmax(axis=1)
    return float(np.average(likely != labels, weights=s))
