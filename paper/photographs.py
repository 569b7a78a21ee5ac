"""The paper's Figures 4 and 5: matches drawn between two images, mosaics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.outcome import BLUE, RED
from trimlearn.geometry import Matches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_matches", "draw_mosaics"]

WIDTH = 11.0  # inches


def draw_matches(first: np.ndarray, second: np.ndarray, matches: Matches, kept: np.ndarray) -> Figure:
    """Four panels: the images, all matches between them, the kept ones."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 13), layout="constrained")
    panels = figure.subplot_mosaic([["first", "second"], ["all", "all"], ["kept", "kept"]])
    for name, image in (("first", first), ("second", second)):
        panels[name].imshow(image)
        panels[name].set_title(f"{name} image")
    every = np.ones(len(kept), dtype=bool)
    _lines(panels["all"], first, second, matches, every, RED, f"{len(kept)} tentative matches")
    _lines(panels["kept"], first, second, matches, kept, BLUE, f"{kept.sum()} matches kept")
    for panel in panels.values():
        panel.set_axis_off()
    return figure


def _lines(
    axes: Any, first: np.ndarray, second: np.ndarray, matches: Matches, rows: np.ndarray, colour: str, title: str
) -> None:
    from matplotlib.collections import LineCollection

    axes.imshow(_side_by_side(first, second))
    ends = matches.dst[rows] + [first.shape[1], 0]
    lines = list(np.stack([matches.src[rows], ends], axis=1))
    axes.add_collection(LineCollection(lines, colors=colour, lw=0.5, alpha=0.7))
    axes.set_title(title)


def _side_by_side(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    height = max(len(first), len(second))
    return np.hstack(
        [np.pad(image, ((0, height - len(image)), (0, 0), (0, 0)), constant_values=255) for image in (first, second)]
    )


def draw_mosaics(images: Mapping[str, np.ndarray]) -> Figure:
    """One panel each, below one another."""
    from matplotlib.figure import Figure

    heights = [len(image) / image.shape[1] for image in images.values()]
    figure = Figure(figsize=(WIDTH, WIDTH * sum(heights) + 0.4 * len(heights)), layout="constrained")
    panels = figure.subplots(len(images), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, image) in zip(panels, images.items(), strict=True):
        axes.imshow(image)
        axes.set_title(name)
        axes.set_axis_off()
    return figure
