"""lts: how hard the search for least trimmed squares tries.

Tables on which concentration has many ends: bad rows that are shifted, lie in a direction of X, are spread in X or form
a cluster, and targets that have nothing to do with X, where every subset is as good as any. For each constant as it is
and on both sides of it: on how many tables the least objective that any setting found is found, and by how much it
is missed on average.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from benchmarks.calibration import with_constant
from trimlearn.robust.regression import elemental, exchange, lts

__all__ = ["KINDS", "TRIED", "objective", "run"]

KINDS = ("shifted", "direction", "spread", "cluster", "nothing")
SIZES = ((40, 3), (150, 8), (400, 20), (4_000, 6))  # (n, p): the last is searched on a sample first
SEEDS = (0, 1)
SAME = 1e-9  # relative difference of two objectives that is rounding
TRIED: dict[str, tuple[Any, tuple[Any, ...]]] = {  # a constant's module, and the values tried beside its own
    "SAMPLES": (lts, ((400, 4_000),)),
    "FOLLOWED": (lts, (3, 30)),
    "APART": (lts, (5, 30)),
    "BASINS": (lts, (1, 8)),
    "BEST": (lts, ((0, 0), (10, 0))),
    "ENDS": (lts, (1, 20)),
    "MOST": (lts, (50, 2_000)),
    "DIRECTIONS": (elemental, (5, 40)),
    "PAIRED": (exchange, (30, 600)),
}


def table(kind: str, n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(A, t), the first rows bad."""
    rng = np.random.default_rng([seed, n, p, KINDS.index(kind)])
    X, x, towards = rng.standard_normal((n, p)), rng.standard_normal(p), rng.standard_normal(p)
    towards /= np.linalg.norm(towards)
    bad = slice(0, int({"shifted": 0.45, "direction": 0.4, "spread": 0.4, "cluster": 0.2, "nothing": 0.0}[kind] * n))
    if kind == "direction":
        X[bad] += 5 * towards
    elif kind == "spread":
        X[bad] *= 5
    elif kind == "cluster":
        X[bad] = 50 * towards + 0.1 * X[bad]
    t = rng.standard_normal(n) + (0.0 if kind == "nothing" else X @ x)
    t[bad] += 50
    return np.column_stack([X, np.ones(n)]), t


def objective(kind: str, n: int, p: int, seed: int) -> float:
    """The objective found on this table."""
    A, t = table(kind, n, p, seed)
    return lts.least_trimmed_squares(A, t, (n + p + 2) // 2).objective


def run() -> dict[str, Any]:
    """All tables with all constants as they are, and with each of them changed."""
    tables = [(kind, *size, seed) for kind in KINDS for size in SIZES for seed in SEEDS]
    settings = [("none", None, None)]
    settings += [(name, module, value) for name, (module, values) in TRIED.items() for value in values]
    found = []
    for name, module, value in settings:
        with nullcontext() if module is None else with_constant(module, name, value):
            found.append([objective(*table) for table in tables])
    F = np.array(found)
    over = F / F.min(axis=0) - 1
    summary = [
        {
            "constant": name,
            "value": "as it is" if value is None else value,
            "found": int(np.sum(row <= SAME)),
            "of": len(tables),
            "excess": float(row.mean()),
        }
        for (name, _, value), row in zip(settings, over, strict=True)
    ]
    rows = [dict(zip(("kind", "n", "p", "seed"), t, strict=True)) | {"F": f} for t, f in zip(tables, F[0], strict=True)]
    return {"summary": summary, "rows": rows}
