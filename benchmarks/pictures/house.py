"""The picture of docs/architecture.md: the packages of trimlearn as rooms of a house, each floor resting on the next.

`tests/test_docs.py` holds `FLOORS` to the folders of the package, and the picture to `FLOORS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["BESIDE", "FLOORS", "Floor", "Room", "draw_house"]


@dataclass(frozen=True)
class Room:
    """A package or module of trimlearn, what it is for, and the folders in it; its width beside others of its floor."""

    name: str
    what: str
    folders: tuple[str, ...] = ()
    width: float = 1.0


@dataclass(frozen=True)
class Floor:
    """Rooms side by side, and who lives there."""

    title: str
    rooms: tuple[Room, ...]
    colour: str


FLOORS = (
    Floor(
        "what a person touches",
        (
            Room("cli", "trimlearn check, predict, stitch, demo"),
            Room("demo", "wrong digits, odd judges"),
        ),
        "#f3d9c9",
    ),
    Floor("networks", (Room("torch", "any PyTorch module, any differentiable loss, trimmed"),), "#f3d9c9"),
    Floor(
        "a table and its page",
        (
            Room("checks", "what is wrong with a table"),
            Room("report", "the page that shows it"),
            Room("tables", "files and columns"),
            Room("plots", "pictures of fits"),
            Room("datasets", "data to try"),
        ),
        "#f3d9c9",
    ),
    Floor(
        "photographs",
        (Room("geometry", "matches to homographies, panoramas, mosaics", ("homography", "panorama", "mosaic")),),
        "#f5e6bf",
    ),
    Floor(
        "scikit-learn's words",
        (Room("estimators", "parameters, fit, attributes; also PCA and the path", ("linear", "covariance", "meta")),),
        "#f5e6bf",
    ),
    Floor(
        "statistics",
        (
            Room("inference", "standard errors, probabilities, tables", width=1.0),
            Room(
                "robust",
                "fits that bad rows cannot spoil; who is an outlier",
                ("regression", "scatter", "subspace", "labels", "cells"),
                width=1.6,
            ),
        ),
        "#e3eccd",
    ),
    Floor(
        "the driver",
        (
            Room("solve", "starts, stops, records", width=1.1),
            Room("starts", "where to begin"),
            Room("checkpoint", "to go on later"),
            Room("progress", "what is shown"),
            Room("solution", "what is returned", width=1.1),
        ),
        "#cfe6d8",
    ),
    Floor(
        "the n examples",
        (
            Room("engines", "all that has one entry per example: data, w, f, y", ("cuda", "cluster"), width=1.6),
            Room("streams", "files larger than memory"),
        ),
        "#cfe6d8",
    ),
    Floor(
        "Algorithm 1",
        (Room("smart", "draws, duals, steps, metrics; variants as data; theory; rivals", ("inner",)),),
        "#cde4ee",
    ),
    Floor(
        "the problem",
        (
            Room("problem", "F(w, x) = 1/n Σ wᵢ fᵢ(x) + r1(w) + r2(x)", width=1.6),
            Room("kernels", "each row read once, compiled"),
        ),
        "#cde4ee",
    ),
    Floor(
        "its terms",
        (
            Room("weights", "r1: who counts"),
            Room("losses", "fᵢ: how badly a row fits", width=1.3),
            Room("regularizers", "r2: what is known of x"),
        ),
        "#d5d9ee",
    ),
    Floor("the cellar", (Room("_utils", "arrays, checks, files, threads, tables as text, warnings"),), "#dddddd"),
)
BESIDE = {
    "paper/": "the paper's tables and figures",
    "benchmarks/": "how fast, how good",
    "tests/": "in the same folders",
    "docs/": "these pages",
}

WIDTH, LEFT, GAP, HEIGHT = 10.0, 2.1, 0.08, 1.0
INK, FAINT = "#222222", "#666666"


def draw_house(path: Path) -> None:
    """Floors from the roof to the cellar; folders of a package are written in its room."""
    import matplotlib
    from matplotlib.figure import Figure

    settings = {"svg.fonttype": "none", "svg.hashsalt": "trimlearn", "font.family": "DejaVu Sans"}
    with matplotlib.rc_context(settings):  # text stays text: it can be searched, and a test reads it
        figure = Figure(figsize=(10.5, 7.6), layout="constrained")
        axes = figure.subplots()
        _roof(axes)
        for level, floor in enumerate(FLOORS):
            _draw_floor(axes, floor, -level * HEIGHT)
        _garden(axes, -len(FLOORS) * HEIGHT)
        axes.set(xlim=(-0.1, LEFT + WIDTH + 0.2), ylim=(-(len(FLOORS) + 1.0) * HEIGHT, 1.1))
        axes.set_axis_off()
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


def _roof(axes: Any) -> None:
    from matplotlib.patches import Polygon

    corners = [(LEFT - 0.25, 0.05), (LEFT + WIDTH + 0.15, 0.05), (LEFT + WIDTH - 0.9, 0.95), (LEFT + 0.9, 0.95)]
    axes.add_patch(Polygon(corners, facecolor="#a8503c", edgecolor="none"))
    title = "trimlearn: each floor may import from the floors below it, never from those above"
    axes.text(LEFT + WIDTH / 2, 0.5, title, ha="center", va="center", color="white", fontsize=11)


def _draw_floor(axes: Any, floor: Floor, top: float) -> None:
    from matplotlib.patches import Rectangle

    axes.text(LEFT - 0.15, top - HEIGHT / 2, floor.title, ha="right", va="center", color=FAINT, fontsize=10)
    unit = WIDTH / sum(room.width for room in floor.rooms)
    left = LEFT
    for room in floor.rooms:
        width = unit * room.width
        box = (left + GAP / 2, top - HEIGHT + GAP / 2), width - GAP, HEIGHT - GAP
        axes.add_patch(Rectangle(*box, facecolor=floor.colour, edgecolor="#888888", linewidth=0.8))
        middle = left + width / 2
        axes.text(middle, top - 0.34, _name(room), ha="center", va="center", color=INK, fontsize=11, weight="bold")
        axes.text(middle, top - 0.70, room.what, ha="center", va="center", color=INK, fontsize=8.5)
        left += width


def _name(room: Room) -> str:
    return f"{room.name}: {', '.join(room.folders)}" if room.folders else room.name


def _garden(axes: Any, top: float) -> None:
    text = "     ".join(f"{name} {what}" for name, what in BESIDE.items())
    axes.text(LEFT - 0.15, top - HEIGHT / 2, "beside the house", ha="right", va="center", color=FAINT, fontsize=10)
    axes.text(LEFT + WIDTH / 2, top - HEIGHT / 2, text, ha="center", va="center", color=INK, fontsize=9)
