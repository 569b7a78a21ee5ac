"""appeals: how far models come towards rows that a trimmed fit has left out, if these are wrong and if they are misfit.

Wrong numbers lie anywhere, up and down or all up; misfit is a step, a spike, a corner, a rare group or a curve, without
a wrong number. For each fit: the excess of the way that a model of all rows goes towards the rows left out, over
the way it goes where the same errors are scattered, as a share of what is left; its standard errors; and how much
the error of all rows grows once the rows that are heard count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from benchmarks.calibration import summarise
from trimlearn import TrimmedEstimator
from trimlearn.estimators.meta.appeal import MORE, SURE, Appeal

__all__ = ["MODELS", "appeals", "run"]

MODELS: dict[str, Any] = {
    "tree": DecisionTreeRegressor(min_samples_leaf=3, random_state=0),
    "neighbours": KNeighborsRegressor(5),
    "kernel ridge": make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", alpha=0.1, gamma=0.5)),
}
WRONG = (("both", 0.05), ("both", 0.15), ("up", 0.1), ("up", 0.2), ("up", 0.3))
MISFIT: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # of columns uniform on (0, 1)
    "step": lambda X: 8.0 * (X[:, 0] > 0.9),
    "corner": lambda X: X[:, 2] + 6.0 * ((X[:, 0] > 0.7) & (X[:, 1] > 0.6)),
    "spike": lambda X: 10 * np.exp(-(((X[:, 0] - 0.5) / 0.05) ** 2)),
    "group": lambda X: X[:, 1] + 8.0 * (X[:, 2] == 5),
    "curve": lambda X: np.exp(4 * X[:, 0]) / 3,
}
SIZES = (60, 200)
SEEDS = tuple(range(10))


def _wrong(rng: np.random.Generator, n: int, kind: tuple[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """A wave and a slope, and wrong numbers anywhere."""
    X = rng.uniform(size=(n, 3))
    y = 3 * np.sin(5 * X[:, 0]) + 4 * X[:, 1] + 0.5 * rng.standard_normal(n)
    bad = rng.permutation(n)[: int(kind[1] * n)]
    sign = rng.choice([-1, 1], len(bad)) if kind[0] == "both" else 1.0
    y[bad] += y.std() * sign * (rng.uniform(4, 10, len(bad)) if kind[0] == "both" else 6.0)
    return X, y


def _misfit(rng: np.random.Generator, n: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows without a wrong number."""
    X = rng.uniform(size=(n, 3))
    if kind == "group":
        X[:, 2] = np.where(rng.random(n) < 0.06, 5.0, 0.0)
    return X, MISFIT[kind](X) + 0.3 * rng.standard_normal(n)


def appeals(X: np.ndarray, y: np.ndarray, model: Any) -> dict[str, float] | None:
    """What the first appeal of a fit is about; None where nobody is left out."""
    seen: dict[str, float] = {}

    class Watched(Exception):
        """The fit goes no further."""

    def watch(self: Appeal, w: np.ndarray, found: Any) -> Any:
        out = w <= 0
        if out.any():
            way, chance = self._way(self.run.rows, out), self._way(*self._scattered(w, out))
            error = np.sqrt((way.var() + chance.var()) / max(len(way) - 1, 1))
            excess = float(way.mean() - chance.mean())
            heard = self.heard(w)
            grows = self.error(np.where(heard, 1.0, w)) / self.error(w) if heard.any() else 1.0
            seen.update(share=excess / (1 - chance.mean()), errors=excess / max(error, 1e-9), grows=float(grows))
        raise Watched

    decide, Appeal.decide = Appeal.decide, watch  # type: ignore[method-assign]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TrimmedEstimator(model, random_state=0).fit(X, y)
    except Watched:
        return seen or None
    finally:
        Appeal.decide = decide  # type: ignore[method-assign]
    return None


def run() -> dict[str, Any]:
    """All kinds, models and sizes."""
    kinds = [("wrong", kind, _wrong) for kind in WRONG] + [("misfit", kind, _misfit) for kind in MISFIT]  # type: ignore[list-item]
    rows = []
    for (what, kind, draw), n, seed in ((k, n, s) for k in kinds for n in SIZES for s in SEEDS):
        X, y = draw(np.random.default_rng([seed, n]), n, kind)  # type: ignore[operator]
        for name, model in MODELS.items():
            found = appeals(X, y, model)
            if found is not None:
                rows.append({"what": what, "kind": str(kind), "n": n, "model": name, "seed": seed, **found})
    figures = {
        "heard": lambda group: float(np.mean([r["share"] > MORE and r["errors"] > SURE for r in group])),
        "share": lambda group: float(np.median([r["share"] for r in group])),
        "grows": lambda group: float(np.median([r["grows"] for r in group if r["grows"] != 1.0] or [1.0])),
    }
    return {"summary": summarise(rows, ["what", "n", "model"], figures), "rows": rows}
