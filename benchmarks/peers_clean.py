"""peers, clean normal rows: how many rows, or cells, are called bad where none is, and whether a word is said.

A third of the samples each has independent features, features of correlation 0.9, and common factors beside units of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from warnings import catch_warnings, simplefilter

import numpy as np

from benchmarks.common import Part, Table, Target, say
from trimlearn import CellwiseOutliers, TrimmedCovariance, TrimmedGraphicalLasso, TrimmedPCA

__all__ = ["clean_rows", "unharmed"]

MEAN, RARELY = 3.0, 20.0  # per cent of the rows flagged, at most: in the mean, and in 99 of 100 samples
ENTRIES: Final = 200_000  # of X in all samples of a shape, a limit on time; but a tenth of the samples
MODELS: Final[dict[str, Callable[[], Any]]] = {
    "TrimmedCovariance": lambda: TrimmedCovariance(random_state=0),
    "TrimmedPCA": lambda: TrimmedPCA(random_state=0),
    "TrimmedGraphicalLasso": lambda: TrimmedGraphicalLasso(random_state=0),
    "CellwiseOutliers": CellwiseOutliers,
}


def clean_rows(n: int, p: int, k: int, seed: int = 0) -> np.ndarray:
    """The k-th sample of normal rows."""
    rng = np.random.default_rng([seed, n, p, k])
    Z = rng.standard_normal((n, p))
    if k % 3 == 0:
        return Z
    if k % 3 == 1:
        return np.sqrt(0.1) * Z + np.sqrt(0.9) * rng.standard_normal((n, 1))
    factors = max(1, min(3, p // 3))
    Z = 0.5 * Z + rng.standard_normal((n, factors)) @ rng.standard_normal((factors, p))
    return np.asarray(Z * np.exp(rng.standard_normal(p)))


def unharmed(shapes: Sequence[tuple[int, int]], samples: int) -> Part:
    """The share flagged, in the mean and at the 99th percentile of the samples, and of samples with a warning."""
    head = ["method", "n", "p", "samples", "flagged, %, mean", "99th percentile", "warned, %"]
    table = Table("clean normal rows: flagged", head)
    for name, model in MODELS.items():
        for n, p in shapes:
            say(f"peers: clean rows, {name}, n = {n:,}, p = {p}")
            count = int(np.clip(ENTRIES // (n * p), samples // 10 or 1, samples))
            flagged, warned = np.array([_flagged(model(), clean_rows(n, p, k)) for k in range(count)]).T
            row = [100 * float(np.mean(flagged)), 100 * float(np.quantile(flagged, 0.99)), 100 * float(np.mean(warned))]
            table.rows.append([name, n, p, count, *row])
    worst = [max(row[column] for row in table.rows) for column in (4, 5, 6)]
    told = "clean normal rows, worst shape:"
    return Part(
        [table],
        [
            Target(f"{told} flagged in the mean, %", worst[0], MEAN),
            Target(f"{told} flagged at the 99th percentile, %", worst[1], RARELY),
            Target(f"{told} samples with a warning, %", worst[2], 0.0, goal=True),
        ],
    )


def _flagged(model: Any, X: np.ndarray) -> tuple[float, bool]:
    with catch_warnings(record=True) as told:
        simplefilter("always")
        model.fit(X)
    off = model.cell_mask_ if isinstance(model, CellwiseOutliers) else ~model.inlier_mask_
    return float(np.mean(off)), bool(told)
