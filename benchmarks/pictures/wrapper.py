"""The pictures of docs/wrapper.md and docs/path.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trimlearn._utils.palette import LIGHT

__all__ = ["draw_outlier_map", "draw_path", "draw_wrapper"]

RED, BLUE, GREY = LIGHT.bad, LIGHT.accent, LIGHT.muted


def draw_wrapper(path: Path) -> None:
    """A forest on a noisy sine of which a quarter of the targets is wrong: as it is, and trimmed."""
    from matplotlib.figure import Figure
    from sklearn.ensemble import RandomForestRegressor

    from trimlearn.estimators.meta.wrapper import TrimmedEstimator

    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 10, 300))[:, None]
    y = np.sin(X[:, 0]) + 0.15 * rng.standard_normal(300)
    bad = rng.random(300) < 0.25
    y[bad] = 3 + 0.5 * rng.standard_normal(bad.sum())
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)
    model = TrimmedEstimator(forest, random_state=0).fit(X, y)
    grid = np.linspace(0, 10, 500)[:, None]
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    kept = model.inlier_mask_
    axes.scatter(X[kept], y[kept], s=9, color=GREY, label="kept")
    axes.scatter(X[~kept], y[~kept], s=14, color=RED, marker="s", label="trimmed")
    axes.plot(grid, forest.fit(X, y).predict(grid), color=RED, linewidth=1, label="random forest")
    axes.plot(grid, model.predict(grid), color=BLUE, linewidth=2, label="the same, trimmed")
    axes.plot(grid, np.sin(grid), color="black", linestyle=":", label="truth")
    title = f"{100 * bad.mean():.0f} % wrong, estimated {100 * model.contamination_:.0f} %"
    axes.set(xlabel="x", ylabel="y", ylim=(-1.7, 5.6), title=title)
    axes.legend(frameon=False, ncols=3)
    figure.savefig(path, dpi=110)


def _shifted() -> tuple[np.ndarray, np.ndarray]:
    """The regression of docs/path.md, five of the wrong rows far out as well, and five good ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X[35:45] += 6
    y = X @ [1, 2, 3] + 0.3 * rng.standard_normal(200)
    y[:40] += 20
    return X, y


def draw_path(path: Path) -> None:
    """The trimming path of a regression a fifth of whose targets is wrong."""
    from matplotlib.figure import Figure

    from trimlearn import TrimmedLinearRegression
    from trimlearn.estimators.path import trim_path
    from trimlearn.plots import plot_trim_path

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    plot_trim_path(trim_path(TrimmedLinearRegression(random_state=0), *_shifted()), ax=figure.subplots(1, 3))
    figure.savefig(path, dpi=110)


def draw_outlier_map(path: Path) -> None:
    """The outlier map and the scores of the same regression."""
    from matplotlib.figure import Figure

    from trimlearn import TrimmedLinearRegression
    from trimlearn.plots import plot_outlier_map, plot_scores

    model = TrimmedLinearRegression(random_state=0).fit(*_shifted())
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_outlier_map(model, ax=left)
    plot_scores(model, ax=right)
    figure.savefig(path, dpi=110)
