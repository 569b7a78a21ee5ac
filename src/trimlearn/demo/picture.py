"""The demo's picture: labels the trimmed fit does not believe, and judges unlike the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from trimlearn.demo.digits import DigitsResult
from trimlearn.demo.judges import JudgesResult
from trimlearn.files import replacing

__all__ = ["draw"]

ROWS, COLUMNS = 4, 6
RED, GREY = "#c0392b", "#7f8c8d"


def draw(path: Path, digits: DigitsResult, judges: JudgesResult) -> Path:
    """Left: the digits with the largest losses, labels given → suggested. Right: the judges' trimmed PCA scores."""
    # Figure without pyplot: no display, no global state
    figure = Figure(figsize=(13, 5.6), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=[1.15, 1])
    _gallery(figure.add_subfigure(grid[0]), digits)
    _scatter(figure.add_subfigure(grid[1]).subplots(), judges)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    return path


def _gallery(figure: Any, result: DigitsResult) -> None:
    data = result.data
    flagged = np.flatnonzero(result.w <= 0)
    worst = flagged[np.argsort(-result.f[flagged])][: ROWS * COLUMNS]
    figure.suptitle(f"{data.name}: the labels least believed, given → suggested (red: wrong indeed)", fontsize=12)
    for i, axes in zip(worst, figure.subplots(ROWS, COLUMNS).flat, strict=False):
        axes.imshow(data.V[i].reshape(data.side, data.side), cmap="gray_r")
        axes.set_axis_off()
        # red: the demo knows that this label is wrong; grey: it is right, and trimmed all the same
        axes.set_title(
            f"{data.t[i]} → {result.suggestion[i]}", fontsize=11, pad=2, color=RED if data.is_wrong[i] else GREY
        )


def _scatter(axes: Any, result: JudgesResult) -> None:
    out = result.w <= 0
    axes.scatter(*result.scores[~out].T, c="#2c6fbb", s=28, label="kept")
    axes.scatter(*result.scores[out].T, c=RED, s=42, marker="s", label="trimmed (weight 0)")
    for i in np.flatnonzero(out):
        surname = re.split("[,.]", result.table.names[i])[0]  # "BRACKEN,J.J.", but also "SADEN.G.A."
        axes.annotate(surname, result.scores[i], xytext=(5, 4), textcoords="offset points", fontsize=8, color=RED)
    axes.set(title="US Judges: trimmed PCA, a fifth trimmed", xlabel="first component", ylabel="second component")
    axes.margins(0.12)
    axes.legend(frameon=False)
