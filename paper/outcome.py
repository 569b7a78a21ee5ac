"""What an experiment hands back, and how it becomes files: pictures, Markdown, lists, results.json."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn._utils.files import replacing
from trimlearn._utils.text import markdown
from trimlearn._version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREY",
    "RED",
    "Outcome",
    "Picture",
    "Say",
    "Sheet",
    "quiet",
    "read_results",
    "strict",
    "write_outcome",
    "write_page",
]

RED, BLUE, GREY = "#c0392b", "#2c6fbb", "#7f8c8d"  # trimmed, kept, neither
DPI = 110  # a figure 10 inches wide fills a page of the documentation
JPEG_QUALITY = 92  # no blocks to be seen at full size

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
        table = "\n".join(markdown([self.header, *self.rows]))
        return "\n\n".join(part for part in (f"**{self.title}**", table, self.note) if part)


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


def write_page(out: Path, outcome: Outcome) -> list[Path]:
    """The experiment's own page, and its part of what all share: paper.md, the pages, and results.json, the numbers.

    What other experiments wrote into the same folder before stays.
    """
    shared, results = out / "paper.md", out / "results.json"
    content = read_results(results) | {"trimlearn": __version__, outcome.name: strict(outcome.results)}
    own = _write_text(out / f"{outcome.name}.md", outcome.markdown() + "\n")
    pages = [out / f"{name}.md" for name in content]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages if page.exists())
    return [own, _write_text(shared, text), _write_text(results, json.dumps(content, indent=2, allow_nan=False) + "\n")]


def read_results(results: Path) -> dict[str, Any]:
    """What results.json holds, where it is one of these."""
    try:
        content = json.loads(results.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) and "trimlearn" in content else {}


def _write_text(path: Path, text: str) -> Path:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


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
                _save(picture.figure, temporary, suffix)
            written.append(path)
    return written


def _save(figure: Figure, path: Path, suffix: str) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "trimlearn"}):  # the same picture is the same file
        figure.savefig(path, format=suffix, dpi=DPI, metadata={"Date": None} if suffix == "svg" else None)


def _write_photograph(path: Path, pixels: np.ndarray) -> Path:
    from PIL import Image  # comes with matplotlib

    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, format="jpeg", quality=JPEG_QUALITY)
    return path


def strict(value: Any) -> Any:
    """As JSON knows it: NumPy's numbers and arrays as Python's, what is not finite as null.

    >>> strict({"x": np.array([1.0, np.inf]), "n": np.int64(3)})
    {'x': [1.0, None], 'n': 3}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: strict(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [strict(part) for part in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    raise TypeError(f"results must hold numbers, texts, lists and dicts; got {type(value).__name__}")
