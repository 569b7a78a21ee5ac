"""The data's fault, or the model's? Whether opinions that disagree with labels prove the labels wrong.

A noise model fitted to the opinions says how many labels could be wrong. They are taken to be wrong where

- the model that allows for noise explains the labels significantly better than one that trusts them all, or
- the classes are clear once the noise is taken away: few rows between them are left to be explained by chance.

Else blurred classes explain what was seen as well as noise does, and every label is taken to be right; the share that
may be wrong all the same is kept, to be told. The first opinion may be asked again for models that allow for the noise
found (`corrected`): it never learns the labels of the rows it is asked about, T being all that it is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trimlearn.robust.labels.noise_model import Floats, LabelNoise, Labels, estimate_noise
from trimlearn.robust.order import weighted_quantile

__all__ = ["Verdict", "significant", "weigh"]

CLEAR = 0.12  # share of rows in doubt below which classes are clear: the best of 0.1 … 0.15 on benchmarks trust
ONE_SIDED = 1.645  # standard errors by which noise must explain labels better than none does: a test at 5 %
NOT_WORSE = ONE_SIDED**2 / 2  # a log-likelihood that is less by this is not significantly worse (Wilks 1938)
FEW = 0.03  # a share up to which the most likely level is taken: the largest that agrees would be a matter of n alone
CORRECTIONS, SETTLED = 3, 0.01  # times that the first opinion is asked again, unless the level changes by less
ENOUGH = 50  # rows, of fewer nobody expects to be told
MATERIAL = 0.1  # a share of labels that is worth a warning


@dataclass(frozen=True)
class Verdict:
    """The noise model, T = I where all labels are taken to be right, and the opinions on all rows it is based on."""

    noise: LabelNoise
    opinions: list[Floats]
    labels: Labels
    s: Floats
    undecided: float = 0.0  # the share of labels that may be wrong, where it is not proven
    misfit: float = 0.0  # the share that the first opinion alone would call wrong, the others not

    @property
    def clean(self) -> bool:
        """Whether all labels are taken to be right."""
        return self.noise.epsilon == 0

    @cached_property
    def scores(self) -> Floats:
        """Log-odds that a label is wrong."""
        return self.noise.score(self.opinions, self.labels)

    @cached_property
    def suggested(self) -> Labels:
        """The label itself, unless it is more likely wrong than right."""
        return self.labels if self.clean else self.noise.suggest(self.opinions, self.labels)

    @property
    def log_likelihood(self) -> Floats:
        """log P(label | x) of every row."""
        return self.noise.log_likelihood(self.opinions, self.labels)

    @property
    def classes(self) -> Floats:
        """P(class | x, label), (n, K)."""
        return self.noise.classes(self.opinions, self.labels)

    @property
    def probability(self) -> Floats:
        """P(label wrong | x, label)."""
        return self.noise.wrong(self.opinions, self.labels)

    def cut(self, share: float | None = None) -> float:
        """The score up to which labels are kept: those more likely right than wrong, and the best ``share`` of them."""
        if share is None:
            return np.inf if self.clean else 0.0
        return max(0.0, weighted_quantile(self.scores, self.s, share))

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
        if self.misfit >= MATERIAL:
            return (
                f"{self.misfit:.0%} of the labels look like a model that is too simple, not like wrong labels: a "
                "flexible one explains them. All are taken to be right; try TrimmedEstimator around a flexible model."
            )
        if self.undecided >= MATERIAL and self.s.sum() >= ENOUGH:
            return (
                f"up to {self.undecided:.0%} of the labels may be wrong, but overlapping classes would explain them as "
                "well: all are taken to be right. Give contamination if you know better."
            )
        return None


def weigh(
    opinions: list[Floats],
    labels: Labels,
    s: Floats,
    corrected: Callable[[Floats], Floats] | None = None,
    trusting: Floats | None = None,
) -> Verdict:
    """Judge labels by opinions on them, each (n, K). corrected: from T, the first opinion of a model that knows it.
    trusting: the log-likelihood of every label that noise has to beat, else that of the same opinions without noise;
    where it is given, models are heard that trust few labels and are sure of themselves: clear classes prove nothing.

    >>> rng = np.random.default_rng(0)
    >>> classes = np.repeat([0, 1], 200)
    >>> z = 6.0 * np.eye(2)[classes] + rng.standard_normal((400, 2))
    >>> labels = np.where(np.arange(400) % 5 == 0, 1 - classes, classes)
    >>> verdict = weigh([z], labels, np.ones(400))
    >>> round(verdict.noise.epsilon, 1), bool(np.all(verdict.suggested == classes))
    (0.2, True)
    """
    plain = estimate_noise(opinions, labels, s, noisy=False)
    wary = trusting is not None
    trusting = plain.log_likelihood(opinions, labels) if trusting is None else trusting
    alone = estimate_noise(opinions[:1], labels, s, largest=False)
    noise, seen = _level(opinions, labels, s), opinions
    if corrected is not None:
        noise, seen = _corrected(noise, alone, opinions, labels, s, corrected)
    allowing = noise.log_likelihood(seen, labels)
    shares = np.bincount(labels, s, int(labels.max()) + 1) / s.sum()
    if s @ (allowing - np.log(np.maximum(shares[labels], 1e-300))) < NOT_WORSE:
        return Verdict(plain, opinions, labels, s)  # nobody can tell the labels from chance, right or wrong
    misfit = alone.epsilon - noise.epsilon if len(opinions) > 1 else 0.0
    if misfit >= MATERIAL and noise.epsilon < MATERIAL / 2:  # what is left is within the errors of flexible models
        return Verdict(plain, opinions, labels, s, misfit=misfit)
    clear = not wary and np.average(noise.doubt(seen), weights=s) < CLEAR
    if noise.epsilon > 0 and (clear or significant(allowing - trusting, s, ONE_SIDED)):
        return Verdict(noise, seen, labels, s)
    return Verdict(plain, opinions, labels, s, undecided=noise.epsilon)


def _corrected(
    noise: LabelNoise,
    alone: LabelNoise,
    opinions: list[Floats],
    labels: Labels,
    s: Floats,
    corrected: Callable[[Floats], Floats],
) -> tuple[LabelNoise, list[Floats]]:
    """The noise model and the opinions after the first was asked again, unless that explains the labels worse.

    Where all opinions together see no noise, but the first does, it is given a chance to show what it makes of it: the
    others may just have learnt the noise.
    """
    seen, best = opinions, float(s @ noise.log_likelihood(opinions, labels))
    T = noise.bounded if noise.epsilon > 0 else alone.bounded
    for _ in range(CORRECTIONS):
        if noise.epsilon == alone.epsilon == 0:
            break
        asked = [corrected(T), *opinions[1:]]
        found = _level(asked, labels, s)
        likelihood, more = float(s @ found.log_likelihood(asked, labels)), found.epsilon - noise.epsilon
        # Of what explains the labels equally well, the largest level is taken here too.
        if likelihood < best + (-NOT_WORSE if more > -SETTLED else NOT_WORSE):
            break
        noise, seen, best, T = found, asked, likelihood, found.bounded
        if abs(more) <= SETTLED:
            break
    return noise, seen


def _level(opinions: list[Floats], labels: Labels, s: Floats) -> LabelNoise:
    noise = estimate_noise(opinions, labels, s)
    return noise if noise.epsilon > FEW else estimate_noise(opinions, labels, s, largest=False)


def significant(d: Floats, s: Floats, deviations: float) -> bool:
    """Whether the mean of d is above 0 by more than chance: by so many standard errors."""
    mean = np.average(d, weights=s)
    variance = np.average((d - mean) ** 2, weights=s)
    return bool(mean > deviations * np.sqrt(variance / s.sum()))
