"""The picture of docs/pca.md."""

from __future__ import annotations

import re
from pathlib import Path

from trimlearn.datasets import load_judges
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.robust.scale import Chi

__all__ = ["draw_pca"]

COLORS = {"regular": "0.6", "good leverage": "tab:blue", "orthogonal outlier": "tab:orange", "bad leverage": "tab:red"}


def draw_pca(path: Path) -> None:
    """The outlier map of US Judges: distance within the subspace against distance from it."""
    from matplotlib.figure import Figure

    judges = load_judges()
    model = TrimmedPCA(n_components=2, random_state=0).fit(judges.data)
    table = model.outlier_table()
    kind, within, away = (table[name] for name in ("kind", "distance", "score"))
    names = [judges.names[row] for row in table["row"]]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, color in COLORS.items():
        chosen = kind == name
        if chosen.any():
            axes.scatter(within[chosen], away[chosen], color=color, label=name, zorder=2)
    for x, y, judge, of in zip(within, away, names, kind, strict=True):
        if of != "regular":
            axes.annotate(
                re.split("[.,]", judge)[0].title(), (x, y), xytext=(5, 3), textcoords="offset points", fontsize=8
            )
    axes.axhline(model.threshold_, color="0.3", linewidth=0.8, linestyle="--")
    axes.axvline(Chi(2).upper(0.025), color="0.3", linewidth=0.8, linestyle="--")
    axes.set(xlabel="distance within the subspace", ylabel="distance from the subspace, in units of its scale")
    axes.set_title("US Judges, two components")
    axes.margins(x=0.12)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    draw_pca(Path(__file__).parents[1] / "docs" / "img" / "pca.png")
