"""Where the package's constants come from: simulations that show what each of them decides.

A module of this folder has ``run() -> dict``; `python -m benchmarks.calibration NAME` runs it and writes what it gave
to results/NAME.json. Tests run a cheap part again and compare.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from pkgutil import iter_modules
from typing import Any
from unittest.mock import patch

__all__ = ["RESULTS", "names", "save", "stored", "summarise", "with_constant"]

RESULTS = Path(__file__).parent / "results"


def names() -> list[str]:
    """The calibrations there are: the modules of this folder."""
    return sorted(module.name for module in iter_modules([str(Path(__file__).parent)]) if module.name != "__main__")


def stored(name: str) -> dict[str, Any]:
    """What the calibration of this name gave when it was run."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def save(name: str, result: dict[str, Any]) -> Path:
    """Write what a calibration gave; numbers with six digits, a table's rows one a line."""
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    parts = [f" {json.dumps(key)}: {_text(value)}" for key, value in result.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    return path


def _text(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join("  " + _text(row) for row in value) + "\n ]"
    return json.dumps(_rounded(value), ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def with_constant(module: Any, name: str, value: Any) -> AbstractContextManager[Any]:
    """The module with another value of a constant, for a while."""
    return patch.object(module, name, value)


def summarise(
    rows: Sequence[dict[str, Any]], keys: Sequence[str], figures: dict[str, Callable[[Sequence[dict[str, Any]]], float]]
) -> list[dict[str, Any]]:
    """Rows with the same ``keys``, in one row of figures."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [
        dict(zip(keys, group, strict=True)) | {name: figure(members) for name, figure in figures.items()}
        for group, members in groups.items()
    ]
