"""The pictures of docs/cells.md and docs/forward_search.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trimlearn import CellwiseOutliers, forward_search
from trimlearn.datasets import load_judges
from trimlearn.plots import plot_cell_map, plot_forward_search

__all__ = ["draw_cells", "draw_forward_search"]


def draw_cells(path: Path) -> None:
    """US Judges with six cells made wrong: digits swapped, points lost."""
    import pandas as pd
    from matplotlib.figure import Figure

    judges = load_judges()
    table = pd.DataFrame(judges.data, columns=judges.feature_names, index=[name.title() for name in judges.names])
    for row, column, factor in ((3, 2, 0.1), (10, 6, 10), (17, 8, 0.5), (25, 4, 10), (31, 11, 0.1), (40, 1, 0.5)):
        table.iloc[row, column] *= factor
    figure = Figure(figsize=(8, 8.5), layout="constrained")
    plot_cell_map(CellwiseOutliers().fit(table), rows=np.arange(len(table)), ax=figure.subplots())
    figure.savefig(path, dpi=100)


def draw_forward_search(path: Path) -> None:
    """Eight outliers among eighty rows."""
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X @ [1, 2, 3] + rng.standard_normal(80)
    y[:8] += 7
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    plot_forward_search(forward_search(X, y), ax=figure.subplots(1, 2))
    figure.savefig(path, dpi=100)
