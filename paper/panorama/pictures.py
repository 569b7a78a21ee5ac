"""The picture of the panorama experiment: the error of every pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from paper.outcome import BLUE, GREY, RED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_comparison"]

MARKERS = "osDv^"


class Errors(Protocol):
    """What is drawn of a result."""

    @property
    def name(self) -> str: ...

    @property
    def errors(self) -> list[float]: ...


def draw_comparison(pairs: np.ndarray, results: Sequence[Errors], joint: str, rival: str) -> Figure:
    """The error of each way of fitting for each pair (i, j) of the reference, on a log scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots()
    colours = {joint: BLUE, rival: RED}
    for result, marker in zip(results, MARKERS, strict=False):
        colour = colours.get(result.name, GREY)
        filled = colour if result.name in colours else "none"
        axes.semilogy(result.errors, marker, color=colour, markerfacecolor=filled, label=result.name)
    axes.set_xticks(range(len(pairs)), [f"{i}→{j}" for i, j in pairs], rotation=90)
    axes.set_ylabel("error, px")
    axes.grid(axis="y", which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=3)
    return figure
