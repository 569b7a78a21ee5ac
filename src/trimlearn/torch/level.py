"""How many examples do not belong, for losses of which nothing is known but that small is good.

√(2 loss) of examples that no model has seen is read as a distance, of a law that is learnt from its smaller half: χ
with k degrees of freedom, 1 for a residual and many for a picture put together again. A tail that goes on as the body
begins is no contamination: it is extrapolated, and only what exceeds it is flagged (`trimlearn.robust.scale`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from trimlearn.robust.scale import Chi, judge, judge_at
from trimlearn.robust.verdict import Verdict

__all__ = ["LossScale", "fitted_law", "judge_losses"]

Floats = NDArray[np.float64]

FREEDOM = (0.3, 1e4)  # degrees of freedom that are tried: a ratio of quartile to median from 0.03 to 0.995
FAR = 1e-300  # the smallest tail that has a quantile: 37 standard deviations


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
