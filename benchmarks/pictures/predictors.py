"""The pictures of docs/linear.md, docs/glm.md and docs/logistic.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.linear_model import LinearRegression, PoissonRegressor

from trimlearn import TrimmedGLM, TrimmedLinearRegression, TrimmedLogisticRegression
from trimlearn.datasets import load_digits_contaminated

__all__ = ["draw_glm", "draw_linear", "draw_logistic"]

DPI = 110


def draw_linear(path: Path) -> None:
    """A line through the majority, with a third of the rows elsewhere."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 90)
    y = 1 + 0.8 * x + 0.5 * rng.standard_normal(90)
    x[:25], y[:25] = rng.normal(14, 0.7, 25), rng.normal(1.5, 0.7, 25)
    X = x[:, None]
    _curves(
        path, X, y, TrimmedLinearRegression(random_state=0).fit(X, y), LinearRegression().fit(X, y), "least squares"
    )


def draw_glm(path: Path) -> None:
    """Counts, of which some were added up over a longer time."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, 200)
    y = rng.poisson(np.exp(0.5 + x)).astype(float)
    y[:30] += rng.poisson(35, 30)
    X = x[:, None]
    plain = PoissonRegressor(alpha=0.0, max_iter=1000).fit(X, y)
    _curves(path, X, y, TrimmedGLM("poisson", random_state=0).fit(X, y), plain, "Poisson regression")


def _curves(path: Path, X: np.ndarray, y: np.ndarray, ours: TrimmedLinearRegression, plain: object, name: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    kept = ours.inlier_mask_
    axes.plot(X[kept, 0], y[kept], "o", color="0.6", markersize=4, label="kept")
    axes.plot(X[~kept, 0], y[~kept], "x", color="tab:red", markersize=6, label="flagged")
    grid = np.linspace(X.min(), X.max(), 200)[:, None]
    axes.plot(grid, plain.predict(grid), "--", color="tab:red", label=name)  # type: ignore[attr-defined]
    axes.plot(grid, ours.predict(grid), color="tab:blue", label=type(ours).__name__)
    axes.set(xlabel="x", ylabel="y")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=DPI)


def draw_logistic(path: Path) -> None:
    """The digits whose labels are most suspicious, with the labels given and suggested."""
    from matplotlib.figure import Figure

    digits = load_digits_contaminated(fraction=0.2)
    table = TrimmedLogisticRegression(random_state=0).fit(digits.X, digits.y).outlier_table().head(24)
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    for axes, row in zip(figure.subplots(3, 8).ravel(), table, strict=True):
        axes.imshow(digits.X[row["row"]].reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{row['given']} → {row['suggested']}", fontsize=8)
        axes.set_axis_off()
    figure.savefig(path, dpi=DPI)
