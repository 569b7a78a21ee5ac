"""How many examples do not belong, for losses of which nothing is known but that small is good.

√(2 loss) of examples that no model has seen is read as a distance, of a law that is learnt from its smaller half: χ
with k degrees of freedom, 1 for a residual and many for a picture put together again. A tail that goes on as the body
begins is no contamination: it is extrapolated, and only what exceeds it is flagged (`trimlearn.robust.scale`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from trimlearn._utils.warn import warn
from trimlearn.robust.labels.proof import significant
from trimlearn.robust.labels.verdict import MATERIAL
from trimlearn.robust.scale import Chi, judge, judge_at
from trimlearn.robust.verdict import Verdict
from trimlearn.torch.epochs import Objective
from trimlearn.torch.halves import Halves, steady
from trimlearn.torch.trimming import Floats, TrimmedEpochs

FREEDOM = (0.3, 1e4)  # degrees of freedom that are tried: a ratio of quartile to median from 0.03 to 0.995
FAR = 1e-300  # the smallest tail that has a quantile: 37 standard deviations
# Standard errors, and the share, by which models must explain examples better. A tenth of the rows shifted makes it
# dozens and a half; errors whose size depends on x, nothing being bad, make it 2 to 5 and a few per cent.
SIGNIFICANT, SHARE = 4.0, 0.05
# The share from which on it is clear. Below, what is flagged must lie apart as well: without the end of a skewed tail a
# model moves towards the median, and errors that follow an exponential law are 5 % smaller from there.
CLEAR = 0.15  # a choice, between these 5 % and the half that a tenth of shifted rows makes
APART = 1.5  # times the cut-off: half of an exponential tail ends at 1.2 times, and Cauchy's at 2
HALF = 0.5  # of the examples that a wary model trusts: most are good, or nothing can be done


def judge_examples(halves: Halves, objective: Objective) -> tuple[Verdict, LossScale, np.ndarray]:
    """Which examples do not belong, by models that have not seen them; what scores are measured by; and the losses.

    1. Models that trust all examples, and models that trust the better half of them. Those are asked that explain the
       examples left out better.
    2. Models fitted to what they call good. Where these explain the examples left out better than those that trust all,
       their judgement counts, if they do so by far or what they flag lies apart. Else an example is wrong only where
       models that learnt from others like it do not explain it either, by far, and where the good ones are explained no
       worse without it; the others are hard, not wrong.
    """
    epochs, count = halves.run.epochs, halves.count
    all_rows, half = (TrimmedEpochs(epochs, objective, share, count).plan for share in (1.0, HALF))
    trusting = halves.evaluate(halves.train("judge {} of 2", all_rows)).losses
    wary = halves.evaluate(halves.train("judge {} of 2, wary", half)).losses
    losses = wary if _gain(wary, trusting) else trusting
    verdict, scale = judge_losses(losses)
    if not np.all(verdict.inliers):
        good = np.zeros(epochs.examples.n)
        good[halves.rows] = verdict.inliers
        again = halves.evaluate(halves.train("judge {} of 2, of the good", steady(epochs, objective, good))).losses
        if gain := _gain(again, trusting):
            verdict, scale = judge_losses(again)
            if gain >= CLEAR or _apart(verdict, scale.scores(again)):
                return verdict, scale, again
        verdict, scale = judge_losses(trusting)
        worse = _gain(trusting[verdict.inliers], again[verdict.inliers]) > 0
        if _apart(verdict, scale.scores(trusting)) and not worse:
            return verdict, scale, trusting
        if verdict.contamination >= MATERIAL:
            warn(
                f"up to {verdict.contamination:.0%} of the examples may be wrong, but may be hard to explain as well: "
                "all are taken to be right. Give contamination if you know better."
            )
    scale = LossScale.of(trusting)
    scores = scale.scores(trusting)
    return Verdict(scale.scale, float(np.max(scores)), np.ones(len(scores), dtype=bool), 0.0), scale, trusting


@final
@dataclass(frozen=True)
class LossScale:
    """What losses of good examples look like: √(2(f − least)) is ``scale`` times a distance that follows ``law``."""

    law: Chi
    scale: float
    least: float

    @classmethod
    def of(cls, f: Floats) -> LossScale:
        """Learnt from losses of which most are good; NaN counts as inf."""
        f = np.where(np.isnan(f), np.inf, f)
        least = min(0.0, float(f.min()))
        r = np.sqrt(2 * (f - least))
        law = fitted_law(r)
        return cls(law, judge(r, len(r) // 2 + 1, law=law).scale, least)

    def scores(self, f: Floats) -> Floats:
        """Deviations of a normal law with the same tail, so that 3 is rare whatever the law is; larger is worse."""
        f = np.where(np.isnan(f), np.inf, f)
        t = np.sqrt(2 * np.maximum(f - self.least, 0.0)) / self.scale
        beyond = np.maximum(np.asarray(self.law.survival(t), dtype=np.float64), FAR)
        far = -ndtri(FAR / 2) * np.maximum(t / self.law.upper(FAR), 1.0)  # in order even where the tail has no number
        return np.where(np.isinf(t), np.inf, np.where(beyond > FAR, np.maximum(-ndtri(beyond / 2), 0.0), far))


def fitted_law(r: Floats) -> Chi:
    """The χ whose lower quartile and median are to each other as those of r.

    Bad rows make both of them quantiles of more of the good ones, and the law wider than it is: fewer rows are flagged.

    >>> r = np.sqrt(np.random.default_rng(0).chisquare(5, 10_000))
    >>> round(fitted_law(r).k)
    5
    """
    low, middle = np.quantile(r, [0.25, 0.5])
    ratio = float(low / middle) if middle > 0 else 0.0

    def excess(log_k: float) -> float:
        law = Chi(float(np.exp(log_k)))
        return law.upper(0.75) / law.upper(0.5) - ratio

    least, most = np.log(FREEDOM)
    if excess(least) >= 0:
        return Chi(FREEDOM[0])
    return Chi(FREEDOM[1]) if excess(most) <= 0 else Chi(float(np.exp(brentq(excess, least, most))))


def judge_losses(f: Floats) -> tuple[Verdict, LossScale]:
    """Cut-off, inliers and the share of bad rows from losses out of sample, and what the scores are measured by.

    >>> f = np.random.default_rng(0).normal(size=500) ** 2
    >>> f[:50] += 400
    >>> verdict, _ = judge_losses(f)
    >>> bool(np.all(~verdict.inliers[:50])), round(verdict.contamination, 1)
    (True, 0.1)
    """
    measure = LossScale.of(f)
    scores = measure.scores(f)
    found = judge_at(_two_sided(scores), 1.0, tails=True, strict=True)
    return Verdict(measure.scale, found.cutoff, scores <= found.cutoff, found.contamination), measure


def _two_sided(scores: Floats) -> Floats:
    """Scores with signs, by turns from the largest on: tails are looked at side by side, and a loss has no side."""
    signs = np.empty(len(scores))
    signs[np.argsort(scores, kind="stable")] = np.where(np.arange(len(scores)) % 2, 1.0, -1.0)
    return np.asarray(signs * scores)


def _apart(verdict: Verdict, scores: np.ndarray) -> bool:
    """Whether most of the rows flagged are far beyond the cut-off, and not the end of a long tail."""
    off = ~verdict.inliers
    return bool(off.any()) and float(np.median(scores[off])) >= APART * verdict.cutoff


def _gain(f: np.ndarray, g: np.ndarray) -> float:
    """The share by which losses f are smaller than g, by the mean of their roots; 0 where that may be chance.

    A root grows like a distance: a bad example does not decide alone, and a hard one that only g explains counts.
    """
    low = min(0.0, float(np.nanmin(f)), float(np.nanmin(g)))
    both = np.isfinite(f) & np.isfinite(g)
    gain = np.sqrt(g[both] - low) - np.sqrt(f[both] - low)
    share = float(gain.mean()) / max(float(np.mean(np.sqrt(g[both] - low))), 1e-300)
    return share if share >= SHARE and significant(gain, np.ones(len(gain)), SIGNIFICANT) else 0.0
