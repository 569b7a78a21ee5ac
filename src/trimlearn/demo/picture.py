"""The demo's picture: labels that the fit does not believe, and judges unlike the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from trimlearn._utils.files import replacing
from trimlearn._utils.palette import LIGHT
from trimlearn.demo.digits import DigitsResult
from trimlearn.demo.judges import JudgesResult
from trimlearn.plots import plot_outlier_map
from trimlearn.plots.names import name_points

ROWS, COLUMNS = 4, 6  # of digits: as many as can be read beside the map


def draw_demo(path: Path, digits: DigitsResult, judges: JudgesResult) -> Path:
    """Left: the labels least believed, given → suggested. Right: the outlier map of the judges."""
    # Figure without pyplot: no display, no global state
    figure = Figure(figsize=(13, 5.6), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=[1.15, 1])
    _gallery(figure.add_subfigure(grid[0]), digits)
    _map(figure.add_subfigure(grid[1]).subplots(), judges)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return path


def _gallery(figure: Any, result: DigitsResult) -> None:
    data, worst = result.data, result.table[result.table["outlier"]].head(ROWS * COLUMNS)
    figure.suptitle(f"{data.name}: the labels least believed, given → suggested (red: wrong indeed)", fontsize=12)
    all_axes = figure.subplots(ROWS, COLUMNS).ravel()
    for axes in all_axes:
        axes.set_axis_off()
    for row, axes in zip(worst, all_axes, strict=False):
        i = row["row"]
        axes.imshow(data.X[i].reshape(data.side, data.side), cmap="gray_r")
        # red: the demo knows that this label is wrong; grey: it is right, and flagged all the same
        color = LIGHT.bad if data.is_wrong[i] else LIGHT.muted
        axes.set_title(f"{row['given']} → {row['suggested']}", fontsize=11, pad=2, color=color)


def _map(axes: Any, result: JudgesResult) -> None:
    model, flagged = result.model, result.table[result.table["outlier"]]["row"]
    plot_outlier_map(model, ax=axes, label=None)
    surnames = [re.split("[,.]", result.data.names[row])[0] for row in flagged]  # "BRACKEN,J.J.", also "SADEN.G.A."
    name_points(axes, model.score_distances_, model.outlier_scores_, flagged, surnames, ~model.inlier_mask_)
    axes.set(
        title="US Judges: who does not fit two components",
        xlabel="distance within the plane of the two components",
        ylabel="distance from it, in units of the others'",
    )
