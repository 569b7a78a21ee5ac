"""What an experiment hands back, and how it becomes files: pictures, Markdown, lists, results.json."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn._version import __version__
from trimlearn.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREY", "RED", "Outcome", "Picture", "Say", "Sheet", "quiet", "write_outcome", "write_page"]

RED, BLUE, GREY = "#c0392b", "#2c6fbb", "#7f8c8d"  # trimmed, kept, neither
DPI = 110
JPEG_QUALITY = 92

Say = Callable[[str], None]


def quiet(sentence: str) -> None:
    """Where no progress is wanted."""


@dataclass(frozen=True)
class Sheet:
    """A table as a person reads it: every cell a text, and one sentence below."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """
        >>> print(Sheet("Objectives", ["data", "F"], [["A", "0.12"]]).markdown())
        **Objectives**
        <BLANKLINE>
        | data | F |
        |---|---|
        | A | 0.12 |
        """
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        table = "\n".join("|" + "|".join(cells) + "|" for cells in map(_padded, lines))
        return "\n\n".join(part for part in (f"**{self.title}**", table, self.note) if part)


def _padded(cells: Sequence[str]) -> list[str]:
    return [cell if cell == "---" else f" {cell} " for cell in cells]


@dataclass(frozen=True)
class Picture:
    """A figure, saved as ``<experiment>_<name>.png`` and ``.svg``."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Outcome:
    """One experiment: what to read (notes, tables), to look at (pictures, images), and to compute with (the rest).

    ``images`` are photographs (RGB, uint8) by name, saved as ``<experiment>_<name>.jpg``; ``lists`` have a header line
    first and are saved as ``<experiment>_<name>.csv``; ``results`` goes into results.json under the experiment's name.
    """

    name: str
    title: str
    notes: Sequence[str]
    tables: Sequence[Sheet]
    pictures: Sequence[Picture]
    results: dict[str, Any]
    images: dict[str, np.ndarray] = field(default_factory=dict)
    lists: dict[str, Sequence[Sequence[Any]]] = field(default_factory=dict)

    def markdown(self, folder: str = "") -> str:
        """A section of a page that lies beside the pictures, or ``folder`` (with its slash) away from them."""
        shown = [f"![{p.caption}]({folder}{self.name}_{p.name}.png)\n\n*{p.caption}*" for p in self.pictures]
        tables = [table.markdown() for table in self.tables]
        return "\n\n".join([f"## {self.title}", *self.notes, *tables, *shown])


def write_page(out: Path, outcomes: Sequence[Outcome]) -> list[Path]:
    """paper.md, tables and pictures of all experiments, and results.json, their numbers."""
    page, results = out / "paper.md", out / "results.json"
    with replacing(page) as temporary:
        temporary.write_text("\n\n".join(outcome.markdown() for outcome in outcomes) + "\n", encoding="utf-8")
    content = {"trimlearn": __version__, **{outcome.name: outcome.results for outcome in outcomes}}
    with replacing(results) as temporary:
        temporary.write_text(json.dumps(content, indent=2, default=_plain) + "\n", encoding="utf-8")
    return [page, results]


def write_outcome(out: Path, outcome: Outcome) -> list[Path]:
    """The experiment's own files: a picture as PNG and SVG, a photograph as JPEG, a list as CSV."""
    written = _write_pictures(out, outcome)
    for name, pixels in outcome.images.items():
        written.append(_write_photograph(out / f"{outcome.name}_{name}.jpg", pixels))
    for name, lines in outcome.lists.items():
        path = out / f"{outcome.name}_{name}.csv"
        with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
        written.append(path)
    return written


def _write_pictures(out: Path, outcome: Outcome) -> list[Path]:
    written = []
    for picture in outcome.pictures:
        for suffix in ("png", "svg"):
            path = out / f"{outcome.name}_{picture.name}.{suffix}"
            with replacing(path) as temporary:
                picture.figure.savefig(temporary, format=suffix, dpi=DPI)
            written.append(path)
    return written


def _write_photograph(path: Path, pixels: np.ndarray) -> Path:
    from PIL import Image  # comes with matplotlib

    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, format="jpeg", quality=JPEG_QUALITY)
    return path


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON knows them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"results must hold numbers, texts, lists and dicts; got {type(value).__name__}")
