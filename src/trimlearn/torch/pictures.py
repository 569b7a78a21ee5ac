"""Pictures of what `trim` found; matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn.plots.canvas import axes, colours

if TYPE_CHECKING:
    from trimlearn.torch.result import TrimResult

__all__ = ["draw_history", "draw_noise_matrix", "draw_scores"]

MOST_NUMBERS = 15  # classes up to which the matrix has numbers, as in trimlearn.plots: more would touch


def draw_scores(result: TrimResult, ax: Any = None) -> Any:
    """The scores of all examples, those that do not count in another colour."""
    ax = axes(ax)
    palette = colours(ax)
    scores, kept = result.outlier_scores_, result.inlier_mask_
    finite = scores[np.isfinite(scores)]
    top = float(finite.max()) if len(finite) else 1.0
    shown = np.where(np.isfinite(scores), scores, top)
    rows = np.arange(len(scores))
    ax.plot(rows[kept], shown[kept], ".", ms=3, color=palette.accent, label="counts")
    ax.plot(rows[~kept], shown[~kept], "x", ms=4, color=palette.bad, label="does not count")
    if np.isfinite(result.threshold_):
        ax.axhline(result.threshold_, lw=1, color=palette.doubt)
    said = "log-odds that the label is wrong" if result.noise_matrix_ is not None else "score, in normal deviations"
    ax.set(xlabel="example", ylabel=said)
    ax.legend(frameon=False)
    return ax


def draw_history(result: TrimResult, ax: Any = None) -> Any:
    """The objective of every epoch, stage by stage."""
    ax = axes(ax)
    at = 0
    for stage in dict.fromkeys(record.stage for record in result.history_):
        values = [record.objective for record in result.history_ if record.stage == stage]
        ax.plot(np.arange(at, at + len(values)) + 1, values, "o-", ms=3, label=stage)
        at += len(values)
    ax.set(xlabel="epoch", ylabel="mean loss")
    ax.legend(frameon=False, fontsize="small")
    return ax


def draw_noise_matrix(result: TrimResult, ax: Any = None) -> Any:
    """How often each class is labelled as each other."""
    if result.noise_matrix_ is None:
        raise ValueError("there is no noise matrix: the targets of this fit are no labels.")
    ax = axes(ax)
    T = result.noise_matrix_
    ax.imshow(np.where(np.eye(len(T)) > 0, np.nan, T), cmap="Reds", vmin=0)
    for k, j in np.ndindex(*T.shape) if len(T) <= MOST_NUMBERS else ():
        ax.text(j, k, f"{100 * T[k, j]:.0f}", ha="center", va="center", fontsize="small")
    ax.set(xlabel="labelled", ylabel="of class", xticks=range(len(T)), yticks=range(len(T)))
    return ax
