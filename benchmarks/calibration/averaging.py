"""averaging: what the mean of all fits costs and gains in few rows, with its constants and with others in their place.

Errors of the slopes beside least squares on the right rows, right rows flagged, and wrong ones found: 20 and 40 rows of
two features, and 20 of 15, clean and with a fifth of the rows wrong, 100 of five with 40 % of bad leverage, and 200 of
two, clean, under normal, exponential and uniform errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.calibration import summarise
from trimlearn import TrimmedLinearRegression
from trimlearn.estimators.linear import linear
from trimlearn.robust.regression import averaging, error_laws, features, modes

__all__ = ["KINDS", "TRIED", "cell", "run"]

KINDS = ("none", "vertical", "near", "leverage", "much leverage")
SHARES = {"none": 0.0, "much leverage": 0.4}  # of wrong rows; else a fifth
LAWS = ("normal", "exponential", "uniform")
SHAPES = ((20, 2), (40, 2), (20, 15), (200, 2), (100, 5))  # rows and features
SEEDS = range(4)


# What is set in place of what is there.
TRIED: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "as it is": (modes, "RIGHT", lambda: modes.RIGHT),
    "prior (1, 4)": (modes, "RIGHT", lambda: 4.0),
    "prior (1, 19)": (modes, "RIGHT", lambda: 19.0),
    "skew 2 alone": (modes, "LAWS", lambda: error_laws.all_laws((2.0,))),
    "skews 1.5 and 3": (modes, "LAWS", lambda: error_laws.all_laws((1.5, 3.0))),
    "apart 0.1": (modes, "APART", lambda: 0.1),
    "behind 1,000": (modes, "BEHIND", lambda: 1_000.0),
    "reach 60": (modes, "REACH", lambda: 60.0),
    "widest 1,000": (error_laws, "WIDEST", lambda: 1_000.0),
    "basins 1": (averaging, "BASINS", lambda: 1),
    "fewest 1": (linear, "FEWEST", lambda: 1),
    "no odds": (features, "SURE", lambda: 0.0),
}

MANY_FEATURES = ("as it is", "fewest 1")  # what is asked of 15 of them


def _asked(tried: str, law: str, kind: str, n: int, p: int) -> bool:
    """Clean rows of all laws where there are many of them, much leverage where there are enough, and else of two."""
    if n == 200:
        return kind == "none"
    if (n == 100) != (kind == "much leverage"):
        return False
    if n == 100:
        return law != "uniform"
    return law != "uniform" and (p == SHAPES[0][1] or tried in MANY_FEATURES)


@contextmanager
def _set(tried: str) -> Iterator[None]:
    where, name, value = TRIED[tried]
    before = getattr(where, name)
    setattr(where, name, value())
    try:
        yield
    finally:
        setattr(where, name, before)


def _sample(law: str, kind: str, n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows whose true slopes are 0, the first of them wrong."""
    rng = np.random.default_rng([seed, n, p, LAWS.index(law), KINDS.index(kind)])
    X, bad = rng.standard_normal((n, p)), round(SHARES.get(kind, 0.2) * n)
    y = {
        "normal": rng.standard_normal(n), "exponential": rng.exponential(size=n) - 1, "uniform": rng.uniform(-2, 2, n),
    }[law]  # fmt: skip
    if kind == "vertical":
        y[:bad] += rng.uniform(10, 15, bad)
    elif kind == "near":
        y[:bad] = rng.uniform(3, 6, bad)
    elif kind.endswith("leverage"):
        X[:bad], y[:bad] = 10 / np.sqrt(p) + X[:bad] / 2, 20 + y[:bad]
    return X, y, bad


def cell(tried: str, law: str, kind: str, n: int, p: int, seed: int) -> dict[str, float]:
    """Squared errors of the slopes, ours and of least squares on the right rows; rows flagged of both kinds."""
    X, y, bad = _sample(law, kind, n, p, seed)
    with _set(tried), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what is measured here
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    A = np.column_stack([X, np.ones(n)])[bad:]
    least = np.linalg.lstsq(A, y[bad:], rcond=None)[0][:p]
    off = ~model.inlier_mask_
    found = float(off[:bad].mean()) if bad else 1.0
    return {
        "ours": float(np.sum(model.coef_**2)), "least": float(np.sum(least**2)),
        "flagged": float(off[bad:].mean()), "found": found,
    }  # fmt: skip


def run() -> dict[str, Any]:
    """All constants, laws, kinds and sizes."""
    rows = [
        {"tried": tried, "law": law, "kind": kind, "n": n, "p": p, "seed": seed, **cell(tried, law, kind, n, p, seed)}
        for tried in TRIED for law in LAWS for kind in KINDS for n, p in SHAPES for seed in SEEDS
        if _asked(tried, law, kind, n, p)
    ]  # fmt: skip

    def mean(name: str) -> Callable[[list[dict[str, Any]]], float]:
        return lambda group: float(np.mean([row[name] for row in group]))

    figures = {
        "error": lambda group: mean("ours")(group) / mean("least")(group),
        "right flagged, %": lambda group: 100 * mean("flagged")(group),
        "wrong found, %": lambda group: 100 * mean("found")(group),
    }
    return {"summary": summarise(rows, ["tried", "n", "p", "law", "kind"], figures), "rows": rows}
