"""The list of all public names, written into docs/api/index.rst before autosummary makes a page of each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

GROUPS = {
    "Tables": ["check", "Check", "load"],
    "Estimators": [
        "TrimmedLinearRegression",
        "TrimmedLinearRegressionCV",
        "TrimmedLogisticRegression",
        "TrimmedLogisticRegressionCV",
        "TrimmedGLM",
        "TrimmedPCA",
        "TrimmedCovariance",
        "TrimmedGraphicalLasso",
        "TrimmedGraphicalLassoCV",
        "TrimmedEstimator",
        "CellwiseOutliers",
    ],
    "Questions to a fit": ["label_errors", "trim_path", "forward_search", "outlier_table", "OutlierTable"],
    "Formulas": ["from_formula", "FormulaModel"],
    "Problems of your own": ["Problem", "solve", "Solution", "Status", "Checkpoint"],
}

MODULES = {
    "datasets": "Data to try things on.",
    "plots": "Pictures of fits, for notebooks. They need matplotlib.",
    "geometry": "Homographies, panoramas and mosaics from matches of which some are wrong.",
    "losses": "fᵢ: what a problem is made of. A table of them is in :doc:`using the core <../methods>`.",
    "weights": "r1: which weights are allowed.",
    "regularizers": "r2: what is known about the model.",
    "smart": "The methods that `trimlearn.solve` takes.",
    "engines": "Where the examples live.",
}

HEAD = """\
API reference
=============

Every public name, from its docstring; every example in them is run as a test.
:doc:`Which estimator? <../which_estimator>` helps to choose.
"""


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", write)  # before Sphinx looks which pages there are
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(app: Sphinx, config: Config) -> None:
    path = Path(app.srcdir) / "api" / "index.rst"
    text = "\n".join(index())
    path.parent.mkdir(exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def index() -> Iterator[str]:
    """The page, piece by piece: the names of `trimlearn` in groups, then its public modules."""
    yield HEAD
    public = names("trimlearn")
    grouped = [name for group in GROUPS.values() for name in group]
    groups = GROUPS | {"More": [name for name in public if name not in grouped]}
    for title, group in groups.items():
        yield from section(title, "", "trimlearn", [name for name in group if name in public])
    for module, what in MODULES.items():
        full = f"trimlearn.{module}"
        yield from section(full, what, full, names(full))


def names(module: str) -> list[str]:
    """What a module names in ``__all__`` and has a docstring: classes, functions."""
    found = import_module(module)
    return [name for name in found.__all__ if inspect.isclass(getattr(found, name)) or callable(getattr(found, name))]


def section(title: str, what: str, module: str, listed: list[str]) -> Iterator[str]:
    if listed:
        yield f"{title}\n{'-' * len(title)}\n\n{what}\n"
        yield f".. currentmodule:: {module}\n\n.. autosummary::\n   :toctree: .\n   :nosignatures:\n"
        yield from (f"   {name}" for name in listed)
        yield ""
