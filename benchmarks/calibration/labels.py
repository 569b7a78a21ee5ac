"""labels: the constants of `trimlearn.robust.labels`, where a verdict is based on predictions that are given.

K classes, normal and more or less far apart, labels of which a share is wrong, and two predictions, of models that have
learnt part of the noise. For each constant as it is and on both sides of it: by how much the share of wrong labels is
off, and the share of right labels that is called wrong, and of wrong ones that is called right.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from benchmarks.calibration import summarise, with_constant
from trimlearn.robust.labels import noise, noise_em, noise_level, proof, verdict

__all__ = ["TRIED", "cell", "run"]

SIZES = ((200, 2), (600, 4))  # rows, classes
APART = (2.0, 3.0, 5.0)  # σ between the means of two classes: 16, 7 and 1 % of the rows are nearer to another class
LEVELS = (0.0, 0.1, 0.3)
LEARNT = (0.3, 0.7)  # how much of the noise the models have learnt, each
REPETITIONS = 2
TRIED: dict[str, tuple[Any, tuple[float, ...]]] = {
    "INNOCENT": (verdict, (0.05, 0.1, 0.2)),
    "FEW": (proof, (0.0, 0.03, 0.06)),
    "FREE": (noise_em, (0.25, 0.5, 1.0)),
    "SHRINK": (noise_em, (3.0, 10.0, 30.0)),
    "AGREES": (noise_level, (0.1, 0.5, 2.0)),
    "BACKGROUND": (noise, (1e-4, 1e-3, 1e-2)),
}


def cell(n: int, K: int, apart: float, level: float, constant: str, value: float) -> dict[str, Any]:
    """The means over repetitions, with one constant set to a value."""
    with with_constant(TRIED[constant][0], constant, value):
        found = np.array([_judged(n, K, apart, level, seed) for seed in range(REPETITIONS)])
    figures = dict(zip(("level_bias", "right_flagged", "wrong_kept"), found.mean(axis=0).tolist(), strict=True))
    return {"constant": constant, "value": value, "n": n, "K": K, "apart": apart, "level": level} | figures


def _judged(n: int, K: int, apart: float, level: float, seed: int) -> tuple[float, float, float]:
    rng = np.random.default_rng([seed, n, K, round(10 * apart), round(100 * level)])
    truth = np.arange(n) % K
    X = rng.standard_normal((n, K)) + apart / np.sqrt(2) * np.eye(K)[truth]
    P = softmax(apart / np.sqrt(2) * X, axis=1)
    labels = truth.copy()
    bad = rng.permutation(n)[: round(level * n)]
    labels[bad] = (truth[bad] + rng.integers(1, K, len(bad))) % K
    noisy = P @ ((1 - level) * np.eye(K) + level / (K - 1) * (1 - np.eye(K)))
    predictions = [np.log((1 - a) * P + a * noisy) + 0.3 * rng.standard_normal(P.shape) for a in LEARNT]
    found = verdict.label_verdict(predictions, labels, np.ones(n))
    flagged, wrong = found.keep() == 0, labels != truth
    kept = float(np.mean(~flagged[wrong])) if len(bad) else 0.0
    return found.noise.epsilon - level, float(np.mean(flagged[~wrong])), kept


def run() -> dict[str, Any]:
    """All constants, values and cells; the summary is over cells."""

    def cells(constant: str, value: float) -> list[dict[str, Any]]:
        return [cell(n, K, apart, level, constant, value) for n, K in SIZES for apart in APART for level in LEVELS]

    as_it_is = cells("FEW", proof.FEW)
    rows = []
    for constant, (module, values) in TRIED.items():
        for value in values:
            known = value == getattr(module, constant)
            found = as_it_is if known else cells(constant, value)
            rows += [row | {"constant": constant, "value": value} for row in found]

    def mean(name: str, rows: Any) -> float:
        return float(np.mean([abs(row[name]) for row in rows]))

    figures = {name: partial(mean, name) for name in ("level_bias", "right_flagged", "wrong_kept")}
    settings = {"learnt": list(LEARNT), "repetitions": REPETITIONS}
    return {"settings": settings, "summary": summarise(rows, ("constant", "value"), figures), "rows": rows}
