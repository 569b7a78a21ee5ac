"""What the constants of robust/cells decide: `python -m benchmarks.calibration cells`.

Normal tables with a common factor of weight ``factor``, of which a share of the cells is replaced by ±``size`` σ: the
shares of wrong cells found and of clean cells flagged, means over the repetitions.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.calibration import with_constant
from trimlearn import CellwiseOutliers
from trimlearn.robust.cells import fit, tails

__all__ = ["cells", "dirty_normal", "run"]

REPETITIONS = 8
REACHES = (3.0, 3.5, 4.0, 5.0)
SMALLS = (0.0, 3.0, 10.0, 20.0)
# n, p, factor, share of wrong cells, their size.
WILD = ((400, 8, 0.0, 0.1, 4.0), (400, 8, 0.0, 0.1, 5.0), (100, 5, 1.5, 0.2, 5.0), (100, 5, 1.5, 0.05, 8.0))
CLEAN = ((10, 4, 2.0, 0.0, 0.0), (15, 4, 2.0, 0.0, 0.0), (30, 4, 2.0, 0.0, 0.0), (100, 8, 1.0, 0.0, 0.0))


def dirty_normal(
    n: int, p: int, factor: float, share: float, size: float, seed: int, freedom: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """A table, and which of its cells are wrong. ``freedom``: of Student's law, normal for ∞."""
    rng = np.random.default_rng(seed)
    X = factor * rng.standard_normal((n, 1)) + rng.standard_normal((n, p))
    if np.isfinite(freedom):
        X = factor * rng.standard_normal((n, 1)) + rng.standard_t(freedom, (n, p))
    wrong = rng.random(X.shape) < share
    X[wrong] = size * np.sqrt(1.0 + factor**2) * rng.choice([-1.0, 1.0], wrong.sum())
    return X, wrong


def cells(case: Sequence[float], repetitions: int = REPETITIONS, freedom: float = np.inf) -> dict[str, float]:
    """The shares found and flagged, in %."""
    found, flagged = [], []
    n, p, factor, share, size = case
    for seed in range(repetitions):
        X, wrong = dirty_normal(int(n), int(p), factor, share, size, seed, freedom)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            mask = CellwiseOutliers().fit(X).cell_mask_
        flagged.append(100 * float(mask[~wrong].mean()))
        if wrong.any():
            found.append(100 * float(mask[wrong].mean()))
    return {"found": float(np.mean(found)) if found else 100.0, "flagged": float(np.mean(flagged))}


def _rows(module: Any, name: str, values: Sequence[float], cases: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    out = []
    for value in values:
        tails._log_shares.cache_clear()
        with with_constant(module, name, value):
            out += [{name: value, "case": list(case), **cells(case)} for case in cases]
            if name == "REACH":
                heavy = (400, 8, 1.0, 0.0, 0.0)
                out.append({name: value, "case": [*heavy, "t3"], **cells(heavy, freedom=3.0)})
    tails._log_shares.cache_clear()
    return out


def run() -> dict[str, Any]:
    """How far in tails are judged, and by how much small samples widen scales."""
    return {
        "case": "n, p, weight of the factor, share of wrong cells, their size in σ",
        "REACH": _rows(tails, "REACH", REACHES, WILD),
        "SMALL": _rows(fit, "SMALL", SMALLS, CLEAN),
    }
