"""mm: when the MM-estimate trusts the trimmed start, how wide its ψ is, and which tails are clean.

Normal and exponential errors around a linear model of two features and an intercept, clean or with a fifth of the rows
off by 3 to 6 σ; the least trimmed squares fit, the rows it explains, and the MM-estimate from both. Measured over
(law, n, level), for each constant as it is and on both sides of it: the mean squared error beside that of least squares
on the clean rows, and the share of clean rows that is flagged.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np

from benchmarks.calibration import summarise, with_constant
from trimlearn.robust import scale
from trimlearn.robust.regression import mm
from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.verdict import Verdict, readmit

__all__ = ["TRIED", "cell", "run"]

P = 2  # features, beside an intercept
CELLS = [(law, n, level) for law in ("normal", "exponential") for n in (20, 50, 200) for level in (0.0, 0.2)]
REPETITIONS = 20
TRIED: dict[str, tuple[Any, tuple[float, ...]]] = {  # a constant's module, and the values tried beside its own
    "FEW": (mm, (12.5, 50.0)),
    "MANY": (mm, (250.0, 1000.0)),
    "CHOSEN": (mm, (20.0, 200.0)),
    "EASY": (mm, (1.25, 2.0)),
    "ERRORS": (mm, (0.0, 2.0)),
    "CLEAR": (scale, (0.05, 0.4)),
    "SPREAD": (scale, (0.0, 3.0)),
    "PRIOR": (scale, (5.0, 80.0)),
    "DOUBT": (scale, (0.0, 1.0)),
}


@cache
def _sample(law: str, n: int, level: float, seed: int) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """A, t, of which the first ``bad`` are off, and the trimmed fit."""
    rng = np.random.default_rng([seed, n, round(100 * level), law == "normal"])
    A = np.column_stack([rng.standard_normal((n, P)), np.ones(n)])
    t = rng.standard_normal(n) if law == "normal" else rng.exponential(size=n) - 1
    bad = round(level * n)
    t[:bad] += rng.uniform(3, 6, bad)
    return A, t, bad, least_trimmed_squares(A, t, (n + P + 2) // 2, starts=50).coef


def _errors(law: str, n: int, level: float, seed: int) -> tuple[float, float, float]:
    """Squared errors of the slopes: of the MM-estimate and of least squares; and the share of clean rows flagged."""
    A, t, bad, raw = _sample(law, n, level, seed)

    def judge(x: np.ndarray) -> Verdict:
        return scale.judge(t - A @ x, (n + P + 2) // 2, P + 1, tails=True)

    def refit(rows: np.ndarray, _: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.lstsq(A[rows], t[rows], rcond=None)[0])

    first = judge(raw)
    x, _, verdict = readmit(raw, first, refit, judge, rounds=5)
    found = mm.mm_estimate(mm.WeightedRows(A, t, np.ones(n)), (raw, first), (x, verdict))
    clean = np.arange(n) >= bad
    fit, flagged = (x, ~verdict.inliers) if found is None else (found.x, found.w <= 0)
    return float(np.sum(fit[:P] ** 2)), float(np.sum(refit(clean, x)[:P] ** 2)), float(flagged[clean].mean())


def cell(law: str, n: int, level: float, repetitions: int = REPETITIONS) -> dict[str, float]:
    """Means over repetitions, with the constants as they are."""
    found = np.array([_errors(law, n, level, seed) for seed in range(repetitions)])
    own, least, flagged = found.mean(axis=0)
    most = float(np.quantile(found[:, 2], 0.99))
    return {"error": float(own / least), "clean_flagged": float(flagged), "clean_flagged_99": most}


def run() -> dict[str, Any]:
    """All cells with all constants as they are, and with each of them changed."""
    settings: list[tuple[str, Any, float | None]] = [("none", None, None)]
    settings += [(name, module, value) for name, (module, values) in TRIED.items() for value in values]
    rows = []
    for name, module, value in settings:
        with nullcontext() if module is None else with_constant(module, name, value):
            for law, n, level in CELLS:
                about = {"constant": name, "value": "as it is" if value is None else value}
                rows.append(about | {"law": law, "n": n, "level": level} | cell(law, n, level))

    def mean(name: str, law: str, level: float) -> Any:
        return lambda rows: float(np.mean([r[name] for r in rows if r["law"] == law and r["level"] == level]))

    figures = {
        "error_clean_normal": mean("error", "normal", 0.0),
        "error_dirty_normal": mean("error", "normal", 0.2),
        "flagged_clean_normal": mean("clean_flagged", "normal", 0.0),
        "flagged_clean_exponential": mean("clean_flagged", "exponential", 0.0),
    }
    return {
        "settings": {"features": P, "repetitions": REPETITIONS},
        "summary": summarise(rows, ("constant", "value"), figures),
        "rows": rows,
    }
