"""Trim, judge every row by the fit, readmit those it explains, fit again: what all trimmed estimators do after a fit.

What differs between models is given to it: how a model is fitted to some of the rows, and how rows are judged by a
model (the law of residuals, of distances, or the log-odds of labels).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

ROUNDS = 5  # of judging and fitting again, a limit on time: two are enough, as `robust.scale.judge` says

Mask = NDArray[np.bool_]
Model = TypeVar("Model")


@final
@dataclass(frozen=True)
class Verdict:
    """What a fit says about all rows.

    scale: σ of the inliers. cutoff: rows with score/σ ≤ cutoff are inliers, unseen ones too. inliers: the mask, every
    row judged by its score alone, whatever its sample weight. contamination: the estimated share of bad rows, which
    is not the share flagged: clean rows lie beyond any cut-off, and bad ones below it.
    """

    scale: float
    cutoff: float
    inliers: Mask
    contamination: float


def readmit(
    model: Model,
    verdict: Verdict,
    refit: Callable[[Mask, Model], Model | None],
    judge: Callable[[Model], Verdict],
    rounds: int,
) -> tuple[Model, Mask, Verdict]:
    """Fit to the rows that the last fit explains, until these are the same, ``rounds`` times at most.

    refit: the model of these rows, begun at another; None where they are too few for one, which ends it. Returned are
    the last model, the rows it was fitted to, and the verdict on all rows by it.

    >>> values = np.array([0.0, 1.0, 2.0, 3.0, 50.0])
    >>> near = lambda m: Verdict(1.0, 5.0, np.abs(values - m) <= 5.0, 0.0)
    >>> mean, rows, verdict = readmit(3.0, near(3.0), lambda rows, _: float(values[rows].mean()), near, rounds=5)
    >>> mean, rows.tolist()
    (1.5, [True, True, True, True, False])
    """
    fitted = verdict.inliers
    for _ in range(rounds):
        rows = verdict.inliers
        found = refit(rows, model)
        if found is None:
            break
        model, fitted = found, rows
        verdict = judge(model)
        if np.array_equal(verdict.inliers, fitted):
            break
    return model, fitted, verdict


def rounds_for(verdict: Verdict) -> int:
    """How often rows are to be judged and fitted again: where all are explained, none is left out again."""
    return 1 if verdict.inliers.all() else ROUNDS
