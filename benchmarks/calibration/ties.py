"""ties: how many rows may share one value of a column before robust distances mean nothing.

Clean rows: three normal columns, and one or three more, of which a share has the same value and the rest is normal, or
has one of four other values. A minimum covariance determinant that keeps half of the rows prefers those that are alike,
and finds no scatter among them. For each share: how many rows lie beyond the 97.5 % quantile, which 2.5 % should.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.calibration import summarise
from trimlearn import TrimmedCovariance
from trimlearn.robust.scale import Chi

__all__ = ["REST", "SHARES", "far", "run"]

REST = ("normal", "four values")  # what the rows hold that are not alike
SHARES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6)
SIZES = (100, 400)
TIED = (1, 3)  # columns
SEEDS = (0, 1, 2, 3)
BEYOND = 0.025  # the share of clean rows beyond the distance of a leverage point, as outlier tables have it


def far(rest: str, share: float, n: int, tied: int, seed: int) -> float:
    """The share of the rows that is called far."""
    rng = np.random.default_rng([seed, n, tied, REST.index(rest), int(100 * share)])
    other = rng.standard_normal((n, tied)) if rest == "normal" else rng.choice([1.0, 2.0, 3.0, 4.0], (n, tied))
    X = np.column_stack([rng.standard_normal((n, 3)), np.where(rng.random((n, tied)) < share, 0.0, other)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a covariance is singular
        d = np.sqrt(TrimmedCovariance(random_state=0).fit(X).mahalanobis(X))
    return float(np.mean(d > Chi(X.shape[1]).upper(BEYOND)))


def run() -> dict[str, Any]:
    """All kinds, shares and sizes."""
    rows = [
        {"rest": rest, "share": share, "n": n, "tied": tied, "seed": seed, "far": far(rest, share, n, tied, seed)}
        for rest in REST for share in SHARES for n in SIZES for tied in TIED for seed in SEEDS
    ]  # fmt: skip
    figures = {
        "far": lambda group: float(np.mean([row["far"] for row in group])),
        "worst": lambda group: float(max(row["far"] for row in group)),
    }
    return {"summary": summarise(rows, ["rest", "share"], figures), "rows": rows}
