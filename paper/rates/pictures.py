"""The pictures of the rates: Figure 2, and evaluations over n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.rates.counts import Row
from paper.rates.level import CONTINUED, Level

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_counts", "draw_levels"]

# Okabe and Ito's colours, told apart by the colour-blind too, and a dash for each.
STYLES: dict[str, dict[str, Any]] = {
    "SMART-SVRG": {"color": "#0072B2", "linewidth": 2.2},
    "SMART-SAGA": {"color": "#56B4E9", "linewidth": 2.2, "linestyle": (0, (5, 1))},
    CONTINUED: {"color": "#000000", "linewidth": 1.2, "linestyle": (0, (1, 1))},
    "alternating": {"color": "#009E73", "linewidth": 1.6, "marker": "o", "markersize": 3},
    "SG": {"color": "#E69F00", "linewidth": 1.6, "linestyle": (0, (6, 2))},
    "PALM": {"color": "#D55E00", "linewidth": 1.6, "linestyle": "-."},
}
COUNT_STYLES = {
    "SMART (SVRG)": STYLES["SMART-SVRG"]["color"],
    "SMART (SAGA)": STYLES["SMART-SAGA"]["color"],
    "PALM": STYLES["PALM"]["color"],
}


def draw_levels(levels: Sequence[Level], passes: float) -> Figure:
    """One panel per share of wrong labels: (F − F*)/F* over passes; same axes."""
    from matplotlib.figure import Figure

    columns = 2 if len(levels) > 1 else 1
    rows = -(-len(levels) // columns)
    figure = Figure(figsize=(4 * columns, 3.1 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for panel, level in zip(panels.flat, levels, strict=False):
        for name, style in STYLES.items():
            x, error = level.errors(name)
            seen = (error > 0) & np.isfinite(error)  # one curve may hold F* itself
            panel.plot(x[seen], error[seen], label=name, **style)
        panel.set(title=f"{level.wrong:.0%} of the labels wrong", yscale="log", xlim=(0, passes))
        _tidy(panel)
    for panel in panels.flat[len(levels) :]:
        panel.set_axis_off()
    for panel in panels[:, 0]:
        panel.set_ylabel("(F − F*) / F*")
    for panel in panels[-1]:
        panel.set_xlabel("passes through the data")
    handles = panels.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns + 1, frameon=False, fontsize=9)
    return figure


def draw_counts(rows: Sequence[Row]) -> Figure:
    """Gradient evaluations over n, counted (points) and guaranteed (dashed), without and with an error bound."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = "squared residuals ≤ ε on average", "F − F* ≤ ε"
    for panel, error_bound, title in zip(panels, (False, True), titles, strict=True):
        for name, colour in COUNT_STYLES.items():
            mine = [row for row in rows if (row.algorithm.name, row.algorithm.error_bound) == (name, error_bound)]
            n = [row.n for row in mine]
            panel.plot(n, [_first(row.guaranteed) for row in mine], color=colour, linestyle="--", linewidth=1)
            panel.plot(n, [_first(row.counted) for row in mine], color=colour, marker="o", markersize=4, label=name)
        panel.set(title=title, xlabel="n", xscale="log", yscale="log")
        _tidy(panel)
    panels[0].set_ylabel("gradient evaluations")
    panels[0].legend(frameon=False, title="dashed: guaranteed")
    return figure


def _tidy(panel: Any) -> None:
    panel.grid(which="major", color="#e5e5e5")
    panel.spines[["top", "right"]].set_visible(False)


def _first(counts: dict[float, tuple[float, ...]]) -> float:
    """Gradients, at the smallest ε."""
    return counts[min(counts)][0]
