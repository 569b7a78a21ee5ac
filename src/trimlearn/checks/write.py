"""The files of a check, all of them or none: written under temporary names first, and renamed at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn._utils.files import replacing
from trimlearn._version import __version__
from trimlearn.report.page import make_page
from trimlearn.tables.write import write_csv

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.checks.found import Check

FILES = ("labels", "features", "decisions")  # arguments of a check that are files, beside the table
# A script that repeats a check in Python.
SCRIPT = '''"""Repeats the check of {name} in Python, by trimlearn {version}.

    python repeat.py [TABLE [FOLDER]]
"""

import sys

import trimlearn

table = sys.argv[1] if len(sys.argv) > 1 else {path}
{guard}
found = trimlearn.check(
    table,
{options})
print(found.summary())

# The suspects as a table: row, kind, probability, score, why.
suspects = found.table

if len(sys.argv) > 2:
    found.write(sys.argv[2])
'''
GUARD = """if table is None:
    sys.exit("python repeat.py TABLE: the table was in memory, name the file that holds it")
"""


def write(check: Check, folder: Path) -> dict[str, Path]:
    """Write report.html, flagged.csv, clean.csv, results.json, repeat.py and, where there is a target, model.json."""
    contents: dict[str, Callable[[Path], None]] = {
        "report.html": lambda path: _text(path, make_page(check.results)),
        "flagged.csv": lambda path: write_csv(flagged(check), path),
        "clean.csv": lambda path: write_csv(clean(check), path),
        "results.json": lambda path: _text(path, to_json(check.results)),
        "repeat.py": lambda path: _text(path, script(check.asked, check.results["source"]["name"])),
    }
    model = check.model
    if model is not None:
        contents["model.json"] = lambda path: _text(path, to_json(model.to_json()))
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            temporary = {name: stack.enter_context(replacing(folder / name)) for name in contents}
            for name, put in contents.items():
                put(temporary[name])
    except BaseException as error:
        for parent in made:  # an empty folder would be half a result
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()
        if isinstance(error, OSError) and error.strerror:
            raise OSError(error.errno, f"{error.strerror}; no file was written or changed", str(folder)) from error
        raise
    return {name: folder / name for name in contents}


def to_json(value: dict[str, Any]) -> str:
    """JSON with the signs as they are; never NaN, which JSON has not. One line for each entry of each entry.

    Python's own indentation takes ten times as long, and gives each cell of each row a line.

    >>> print(to_json({"a": 1, "b": [{"c": "ö"}, 2], "d": []}))
    {
    "a": 1,
    "b": [
     {"c": "ö"},
     2
    ],
    "d": []
    }
    """
    return "{\n" + ",\n".join(f"{_line(key)}: {_lines(entry)}" for key, entry in value.items()) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(value: Any) -> str:
    return "[\n " + ",\n ".join(map(_line, value)) + "\n]" if isinstance(value, list) and value else _line(value)


def _text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="\n", errors="surrogatepass") as file:
        file.write(text)


def flagged(check: Check) -> pd.DataFrame:
    """The suspects, most probable first: what was found, then the row as it was written."""
    import pandas as pd

    suspects, table = check.results["suspects"], check.parts.table
    targets = [suspect["target"] or {} for suspect in suspects]
    columns: dict[str, list[Any]] = {
        "row": [suspect["row"] for suspect in suspects],
        "line": [suspect["line"] for suspect in suspects],
        "id": [suspect["id"] or "" for suspect in suspects],
        "kind": [suspect["kind"] for suspect in suspects],
        "probability": [_rounded(suspect["probability"]) for suspect in suspects],
        "score": [_rounded(suspect["score"]) for suspect in suspects],
        "suggested value": [_suggested(suspect) for suspect in suspects],
        "linear model": [_verdict(target.get("linear")) for target in targets],
        "boosting model": [_verdict(target.get("boosting")) for target in targets],
        "target probability": [_rounded(target.get("probability")) for target in targets],
        "wrong cells": ["; ".join(map(_cell, suspect["cells"])) for suspect in suspects],
        "why": [suspect["why"] for suspect in suspects],
    }
    if not table.first_line:
        del columns["line"]  # a DataFrame has no lines
    if not table.of_kind("id"):
        del columns["id"]
    written = table.written.iloc[columns["row"]].reset_index(drop=True)
    taken = set(map(str, written.columns))
    words = {name: ["" if cell is None else str(cell) for cell in cells] for name, cells in columns.items()}
    found = pd.DataFrame(
        {f"check: {name}" if name in taken else name: cells for name, cells in words.items()}, dtype="str"
    )
    return pd.concat([found, written], axis=1)


def clean(check: Check) -> pd.DataFrame:
    """The table as it was written, without rows that look wrong (or that a person dropped), wrong cells empty.

    Categories are spelt as usual instead.

    Rows that are the same stay, since a value that is there twice need not be wrong. Of rows that contradict each other
    those stay whose target does not look wrong.
    """
    parts = check.parts
    written = parts.table.written.copy()
    wrong: dict[str, dict[int, str]] = {}
    categories = set(parts.table.of_kind("category"))
    for cell in (cell for suspect in check.suspects for cell in suspect.cells):
        wrong.setdefault(cell.column, {})[cell.row] = str(cell.expected) if cell.column in categories else ""
    for column, cells in wrong.items():
        written.iloc[list(cells), written.columns.get_loc(column)] = list(cells.values())
    judged = check.parts.target
    untrue = set() if judged is None else set(np.flatnonzero(judged.flagged).tolist())
    gone = {s.row for s in check.suspects if s.row in untrue or s.odd is not None} | check.dropped
    return written.drop(index=written.index[sorted(gone)]) if gone else written


def _cell(cell: dict[str, Any]) -> str:
    error = f" ({cell['error']})" if cell["error"] else ""
    return f"{cell['column']}: {cell['value']} → {cell['expected']}{error}"


def _suggested(suspect: dict[str, Any]) -> str:
    """What should stand in the place of the main matter."""
    for kind in suspect["kinds"]:
        if kind == "target" and suspect["target"]:
            return str(suspect["target"]["suggested"])
        if kind == "cell" and suspect["cells"]:
            return str(suspect["cells"][0]["expected"])
    return ""


def _verdict(wrong: bool | None) -> str:
    return "" if wrong is None else "wrong" if wrong else "right"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def script(asked: dict[str, Any], name: str) -> str:
    """A script that asks for the same again; ``name``: of the table."""
    path, *files = (asked[key] and str(Path(asked[key]).absolute()) for key in ("table", *FILES))
    told = asked | dict(zip(FILES, files, strict=True))
    words = {key: list(value) if isinstance(value, tuple) else value for key, value in told.items() if key != "table"}
    options = "".join(f"    {key}={value!r},\n" for key, value in words.items() if value or key == "seed")
    quoted = "".join(letter for letter in str(name) if letter.isprintable() and letter not in "\\\"'")  # ends no text
    guard = "" if path else GUARD
    return SCRIPT.format(name=quoted, version=__version__, path=repr(path), guard=guard, options=options)
