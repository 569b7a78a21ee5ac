"""The pictures of docs/covariance.md and docs/graphical_lasso.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.covariance import GraphicalLasso

from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.covariance.graphical_lasso import TrimmedGraphicalLasso

__all__ = ["draw_covariance", "draw_graphical_lasso"]

GOOD, BAD = "tab:blue", "tab:red"


def draw_covariance(path: Path) -> None:
    """Two features of which 30 % of the rows are wrong: the ellipses that hold 97.5 % by both covariances."""
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2)) @ [[2.0, 1.0], [0.0, 0.7]]
    X[:60] = rng.normal((5.0, -4.0), size=(60, 2))
    model = TrimmedCovariance(random_state=0).fit(X)
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    flagged = ~model.inlier_mask_
    for rows, color, label in ((~flagged, "0.5", "inliers"), (flagged, BAD, "outliers")):
        left.scatter(*X[rows].T, s=12, color=color, label=label)
        right.scatter(np.flatnonzero(rows), model.outlier_scores_[rows], s=12, color=color)
    _ellipse(left, model.location_, model.covariance_, GOOD, "TrimmedCovariance")
    _ellipse(left, X.mean(axis=0), np.cov(X.T), "0.2", "mean and covariance")
    right.axhline(model.threshold_, color=GOOD, linewidth=1)
    left.set_title("97.5 % ellipses")
    right.set(xlabel="row", ylabel="robust distance")
    right.set_title(f"estimated contamination {model.contamination_:.2f}")
    left.legend(frameon=False, fontsize=8)
    _save(figure, path)


def draw_graphical_lasso(path: Path) -> None:
    """A chain of ten features, 20 % of the rows wrong: who depends on whom, by three fits."""
    from matplotlib.figure import Figure

    X, bad, theta = chain()
    fits = {
        "truth": theta,
        "GraphicalLasso": GraphicalLasso(alpha=0.2).fit(X).precision_,
        "TrimmedGraphicalLasso": TrimmedGraphicalLasso(alpha=0.2, random_state=0).fit(X).precision_,
        "GraphicalLasso, clean rows": GraphicalLasso(alpha=0.2).fit(X[~bad]).precision_,
    }
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axes, (name, precision) in zip(figure.subplots(1, 4), fits.items(), strict=True):
        size = np.sqrt(np.diag(precision))
        axes.imshow(precision / np.outer(size, size), vmin=-1, vmax=1, cmap="RdBu")
        axes.set(title=name, xticks=[], yticks=[])
    _save(figure, path)


def chain() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, which of them are bad, and the precision of the others."""
    rng = np.random.default_rng(0)
    theta = np.eye(10) + 0.4 * (np.eye(10, k=1) + np.eye(10, k=-1))
    X = rng.standard_normal((300, 10)) @ np.linalg.cholesky(np.linalg.inv(theta)).T
    bad = np.arange(300) < 60
    X[bad] = rng.standard_normal((60, 10)) + 3.0 * np.sign(rng.standard_normal(10))
    return X, bad, theta


def _ellipse(axes: Any, centre: np.ndarray, covariance: np.ndarray, color: str, label: str) -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.sqrt(7.3778) * np.column_stack([np.cos(angle), np.sin(angle)])  # χ²₂ at 0.975
    axes.plot(*(centre + circle @ np.linalg.cholesky(covariance).T).T, color=color, label=label)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    images = Path(__file__).parents[1] / "docs" / "img"
    draw_covariance(images / "covariance.png")
    draw_graphical_lasso(images / "graphical_lasso.png")
