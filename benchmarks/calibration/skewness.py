"""skewness: how much more likely two groups are than one skewed law, for skewed errors and for bad rows.

y = Σx + errors, three features. Of each sample in which enough rows are flagged on one side, the difference of the
logarithms of the likelihoods, one law less two groups. Skewed errors should be above −EVIDENCE, bad rows below.
Rows are flagged by the sharp fit (efficiency="reweight"), which does not ask for EVIDENCE itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.calibration import summarise
from trimlearn import TrimmedLinearRegression
from trimlearn.robust.regression import one_law

__all__ = ["ERRORS", "cell", "run"]

Errors = Callable[[np.random.Generator, int], np.ndarray]


def _mixed(share: float, bad: Errors) -> Errors:
    return lambda rng, n: np.where(rng.random(n) < share, bad(rng, n), rng.normal(size=n))


def _shifted(share: float, by: float) -> Errors:
    return lambda rng, n: rng.normal(size=n) + by * (rng.random(n) < share)


ERRORS: dict[str, Errors] = {
    "lognormal": lambda rng, n: np.exp(rng.normal(size=n)),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "chi-squared 1": lambda rng, n: rng.chisquare(1, size=n),
    "Pareto 3": lambda rng, n: rng.pareto(3, size=n),
    "20 % at 4": _shifted(0.2, 4),
    "20 % at 5": _shifted(0.2, 5),
    "30 % at 8": _shifted(0.3, 8),
    "20 % from 3 to 20": _mixed(0.2, lambda rng, n: rng.uniform(3, 20, size=n)),
    "20 % half-normal": _mixed(0.2, lambda rng, n: 10 * np.abs(rng.normal(size=n))),
}
SIZES = (60, 100, 400)
SEEDS = range(25)


def cell(errors: str, n: int, seed: int) -> float | None:
    """One law less two groups; None where too few rows are flagged on one side to ask."""
    rng = np.random.default_rng([seed, n, list(ERRORS).index(errors)])
    X = rng.normal(size=(n, 3))
    y = X.sum(axis=1) + ERRORS[errors](rng, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what is measured here
        model = TrimmedLinearRegression(efficiency="reweight", random_state=0).fit(X, y)
    off = ~model.inlier_mask_
    return one_law.skewness_evidence((y - model.predict(X)) / model.scale_, off)


def run() -> dict[str, Any]:
    """All errors, sizes and seeds."""
    rows = [
        {"errors": errors, "n": n, "seed": seed, "difference": cell(errors, n, seed)}
        for errors in ERRORS for n in SIZES for seed in SEEDS
    ]  # fmt: skip

    def asked(group: list[dict[str, Any]]) -> list[float]:
        return [row["difference"] for row in group if row["difference"] is not None]

    figures = {
        "asked": lambda group: float(len(asked(group))),
        "skewed": lambda group: float(sum(d > -one_law.EVIDENCE for d in asked(group))),
        "median": lambda group: float(np.median(asked(group))) if asked(group) else 0.0,
    }
    return {"summary": summarise(rows, ["errors", "n"], figures), "rows": rows}
