"""A start from a sample of the rows: where rows are many, a few per cent of them lead to the same valley.

A continuation over all rows takes some 20 passes. Over a few hundred rows for each parameter it takes a fraction of
one, and ends within statistical error of where the other ends: (w, x) on all rows goes on from there.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from trimlearn._utils.arrays import Array
from trimlearn.losses.base import PredictionLoss
from trimlearn.smart.finish import continued, finisher
from trimlearn.smart.method import default_inner, start_sample_size
from trimlearn.smart.metrics import Euclidean

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

SURPRISE = 0.25  # share of F by which it may be higher on all rows: more, at 40 % wrong labels, led to worse minima


def from_sample(engine: Engine, seed: int) -> Array | None:
    """x where a continuation over a sample of the rows leads, with the best w for it in the engine; None where the rows
    are few, where the engine has none at hand, or where the sample says too little about all of them."""
    problem = engine.problem
    newton = isinstance(problem.loss, PredictionLoss) and default_inner(problem, hessians=True) == "newton"
    m = start_sample_size(problem) if newton and problem.r2.convex else None
    part = None if m is None else engine.sample(m, seed)
    if part is None:
        return None
    F, x = continued(part, finisher(part.problem, seed, Euclidean()))
    engine.counts.gradients += part.counts.gradients
    engine.evaluate(x)
    on_all = engine.reweigh(inf).value + problem.r2.value(x)
    return x if on_all - F <= SURPRISE * abs(F) else None
