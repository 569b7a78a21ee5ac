"""Figure 1: the outliers of MNIST as it is, the images whose labels a slightly trimmed fit believes least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper.mnist.fits import Digits, Labels, fit_paper, worst
from paper.outcome import GREY, RED, Picture
from trimlearn.weights import CappedSimplex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HEADER", "PAPER_LABELS", "Outliers", "find_outliers", "pictures"]

KEPT = 0.998  # the paper's h/n
PAPER_LABELS = (9, 3, 5, 9, 4, 8)  # of the six outliers that the paper shows, from left to right
COLUMNS, SHOWN = 8, 48  # a page of images
SIDE = 28  # pixels
HEADER = ("index", "given", "suggested", "loss")


@dataclass(frozen=True)
class Outliers:
    """Rows of weight 0, the largest loss first, with the label given, the likeliest by the fit, and the pixels."""

    index: NDArray[np.intp]
    given: Labels
    suggested: Labels
    loss: NDArray[Any]
    images: NDArray[Any]

    def rows(self) -> list[tuple[int, int, int, float]]:
        """What HEADER names, one line per outlier."""
        found = zip(self.index, self.given, self.suggested, self.loss, strict=True)
        return [(int(i), int(given), int(suggested), round(float(loss), 4)) for i, given, suggested, loss in found]

    def labelled(self, labels: Sequence[int]) -> list[int]:
        """For each label the worst outlier that was given it and was not yet taken, where there is one.

        >>> digits = np.array([9, 3, 9])
        >>> Outliers(np.arange(3), digits, digits, digits, digits).labelled([3, 9, 9, 9])
        [1, 0, 2]
        """
        left = list(range(len(self.given)))
        taken = []
        for label in labels:
            match = next((k for k in left if self.given[k] == label), None)
            if match is not None:
                left.remove(match)
                taken.append(match)
        return taken


def find_outliers(digits: Digits, passes: float, seed: int = 0) -> Outliers:
    """Fit the paper's problem to the true labels with h = 0.998 n; the outliers are the zeros of w."""
    solution = fit_paper(digits.V, digits.t, CappedSimplex(round(KEPT * digits.n)), passes, seed)
    index = worst(solution.losses, int(np.sum(solution.w <= 0)))
    suggested = np.argmax(digits.V[index] @ solution.x, axis=1)
    return Outliers(index, digits.t[index], suggested, solution.losses[index], digits.V[index])


def pictures(outliers: Outliers) -> list[Picture]:
    """The paper's figure, six outliers with the labels it names, and a larger gallery."""
    six = outliers.labelled(PAPER_LABELS)
    many = list(range(min(SHOWN, len(outliers.index))))
    asked = ", ".join(map(str, PAPER_LABELS))
    caption = (
        f"Figure 1: outliers of the true MNIST at h = {KEPT:g} n with the labels of the paper's six ({asked}), given → "
        "suggested: for each label the image whose loss is largest."
    )
    larger = (
        f"The {len(many)} largest losses of the {len(outliers.index)} outliers, row by row; label given → suggested, "
        "and the row (from 0) of the training set."
    )
    return [
        Picture("figure1", caption, _draw(outliers, six, len(PAPER_LABELS))),
        Picture("gallery", larger, _draw(outliers, many, COLUMNS)),
    ]


def _draw(outliers: Outliers, which: list[int], columns: int) -> Figure:
    from matplotlib.figure import Figure

    lines = max(1, -(-len(which) // columns))
    figure = Figure(figsize=(1.25 * columns, 1.65 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False)
    for axes in panels.flat:
        axes.set_axis_off()
    for k, axes in zip(which, panels.flat, strict=False):
        axes.imshow(outliers.images[k].reshape(SIDE, SIDE), cmap="gray_r", interpolation="nearest")
        axes.set_title(f"{outliers.given[k]} → {outliers.suggested[k]}", fontsize=12, pad=3, color=RED)
        below = {"transform": axes.transAxes, "ha": "center", "va": "top", "fontsize": 7}
        axes.text(0.5, -0.02, str(outliers.index[k]), color=GREY, **below)
    return figure
