"""peers, sparse regression: outliers where columns may outnumber rows, and the penalty that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.linear_model import LassoCV, lasso_path
from threadpoolctl import threadpool_limits

from benchmarks.common import Part, Table, Target, say
from trimlearn import TrimmedLinearRegression, TrimmedLinearRegressionCV

__all__ = ["Sparse", "sparse"]

DETECTED, FALSE, ERROR, CHOSEN, CLEAN, SECONDS = 0.95, 0.05, 1.3, 1.3, 0.03, 5.0  # asked for
SHIFT, AWAY = 30.0, 5.0  # of targets and of features of bad rows, in σ
RELEVANT, SIZE = 5, 2.0  # how many coefficients are not zero, and how large they are
TEST = 2_000  # fresh rows on which predictions are compared
COLUMNS = ["n", "p", "kind", "bad", "alpha", "detected", "false", "error / LassoCV on the clean rows",
           "chosen / best on the path", "seconds"]  # fmt: skip


@dataclass(frozen=True)
class Sparse:
    """Rows of which some are wrong, and the coefficients of the others."""

    X: np.ndarray
    y: np.ndarray
    bad: np.ndarray
    coef: np.ndarray

    @classmethod
    def draw(cls, n: int, p: int, kind: str, share: float, seed: int) -> Sparse:
        """vertical: targets off by 30 σ. leverage: all features off by 5, targets about 30. both: relevant features off
        by 5, targets off by 30."""
        rng = np.random.default_rng(seed)
        X, coef = rng.standard_normal((n, p)), np.zeros(p)
        coef[:RELEVANT] = SIZE * np.where(np.arange(min(RELEVANT, p)) % 2, -1, 1)
        y, bad = X @ coef + rng.standard_normal(n), np.arange(n) < int(share * n)
        if kind == "leverage":
            X[bad] += AWAY
            y[bad] = rng.standard_normal(int(bad.sum()))
        if kind == "both":
            X[bad, :RELEVANT] += AWAY
        y[bad] += SHIFT
        return cls(X, y, bad, coef)

    def error(self, coef: np.ndarray, intercept: float, seed: int = 0) -> float:
        """The mean squared error of predictions of the mean on fresh rows."""
        fresh = np.random.default_rng(seed).standard_normal((TEST, len(coef)))
        return float(np.mean((fresh @ (coef - self.coef) + intercept) ** 2))


def sparse(shapes: Sequence[tuple[int, int]], cases: Sequence[tuple[str, float]], seeds: Sequence[int]) -> Part:
    """Detection and error for each shape and kind of bad rows, alpha given (LassoCV's on the clean rows) or chosen."""
    table = Table("sparse regression: alpha given, or chosen by cross-validation", COLUMNS)
    for n, p in shapes:
        for kind, share in cases:
            say(f"peers: sparse, n = {n}, p = {p}, {share:.0%} {kind}")
            found = np.array([_figures(Sparse.draw(n, p, kind, share, seed)) for seed in seeds])
            for k, alpha in enumerate(("given", "chosen")):
                table.rows.append([n, p, kind, share, alpha, *found[:, k].mean(axis=0)])
    return Part([table], _targets(table))


def _figures(data: Sparse) -> list[list[float]]:
    good = ~data.bad
    oracle = LassoCV(cv=5).fit(data.X[good], data.y[good])
    least = data.error(oracle.coef_, float(oracle.intercept_))
    given = TrimmedLinearRegression(penalty="l1", alpha=float(oracle.alpha_), random_state=0)
    rows = []
    for model in (given, TrimmedLinearRegressionCV(random_state=0)):
        start = perf_counter()
        with threadpool_limits(1):
            model.fit(data.X, data.y)
        seconds = perf_counter() - start
        flagged, error = ~model.inlier_mask_, data.error(model.coef_, float(model.intercept_))
        best = _best_on_path(data, model) if isinstance(model, TrimmedLinearRegressionCV) else error
        detected = float(flagged[data.bad].mean()) if data.bad.any() else 1.0
        rows.append([detected, float(flagged[good].mean()), error / least, error / best, seconds])
    return rows


def _best_on_path(data: Sparse, model: TrimmedLinearRegressionCV) -> float:
    """The least error of the lassos of the rows kept on the path."""
    X, y = data.X[model.inlier_mask_], data.y[model.inlier_mask_]
    centre, middle = X.mean(axis=0), float(y.mean())
    _, path, _ = lasso_path(X - centre, y - middle, alphas=model.alphas_)
    return min(data.error(coef, middle - float(centre @ coef)) for coef in path.T)


def _targets(table: Table) -> list[Target]:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in table.rows]
    dirty, clean = [r for r in rows if r["bad"] > 0], [r for r in rows if r["bad"] == 0]
    wide = [r for r in dirty if r["p"] >= r["n"]]
    found = []
    if wide:
        found += [
            Target("sparse, p >= n: bad rows missed, worst cell", max(1 - r["detected"] for r in wide), 1 - DETECTED),
            Target("sparse, p >= n: clean rows flagged, worst cell", max(r["false"] for r in wide), FALSE),
            Target("sparse, p >= n: error / LassoCV on the clean rows, mean", _mean(wide, COLUMNS[7]), ERROR),
        ]
    if clean:
        found.append(Target("sparse, no bad rows: flagged, worst cell", max(r["false"] for r in clean), CLEAN))
    chosen = [r for r in rows if r["alpha"] == "chosen"]
    found.append(Target("sparse: chosen / best on the path, mean", _mean(chosen, COLUMNS[8]), CHOSEN))
    small = [r["seconds"] for r in chosen if r["n"] <= 100 and r["p"] <= 150]
    return [*found, *[Target("sparse: seconds up to 100 x 150, worst cell", max(small), SECONDS)] * bool(small)]


def _mean(rows: Sequence[dict[str, float]], column: str) -> float:
    return float(np.mean([row[column] for row in rows]))
