"""walk: how far a reader walks through the code. What a fit visits, and where five ideas are to be found."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from sklearn.datasets import load_iris

import trimlearn
from benchmarks.common import Result, Table, Target
from trimlearn import TrimmedLinearRegression, TrimmedLogisticRegression

__all__ = ["WHERE", "Place", "Walk", "follow", "lost", "run"]

SOURCE = Path(trimlearn.__file__).parent
ESTIMATORS = SOURCE / "estimators"
FILES, FUNCTIONS, DEPTH, CROSSINGS, OPENED = 24, 180, 20, 12, 2  # what a reader can be asked to keep in mind
NO_FUNCTIONS = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # Python 3.12 inlines most of these


@dataclass(frozen=True)
class Place:
    """A function, or a method as ``Class.method``, in a file of the package."""

    file: str
    name: str


# Every file that must be opened to see how it is done, in the order in which one comes upon them. A test holds this to
# the source. Who moves a function moves it here too, and sees how many files an idea is spread over.
WHERE: dict[str, tuple[Place, ...]] = {
    "w-step": (
        Place("smart/w_step.py", "reweigh"),
        Place("smart/w_step.py", "renew"),
        Place("smart/w_step.py", "note"),
        Place("weights/simplex.py", "CappedSimplex.minimise"),
        Place("weights/simplex.py", "select_smallest"),
    ),
    "stationarity": (
        Place("smart/w_step.py", "gap"),
        Place("smart/w_step.py", "note"),
        Place("smart/metrics.py", "Metric.residual"),
    ),
    "reweighting": (
        Place("robust/verdict.py", "readmit"),
        Place("estimators/linear/linear.py", "TrimmedLinearRegression._fit"),
    ),
    "penalties": (
        Place("estimators/linear/problems.py", "make_penalty"),
        Place("estimators/linear/linear.py", "TrimmedLinearRegression._problem"),
    ),
    "auto level": (
        Place("estimators/linear/linear.py", "TrimmedLinearRegression._fit"),
        Place("robust/scale.py", "judge"),
    ),
}


@dataclass
class Walk:
    """What one task calls: functions, the deepest stack of them, and calls from one file to another."""

    functions: set[CodeType] = field(default_factory=set)
    depth: int = 0
    crossings: int = 0  # between two files of the same folder

    @property
    def files(self) -> set[str]:
        return {function.co_filename for function in self.functions}


def follow(task: Callable[[], Any], package: Path = SOURCE, folder: Path = ESTIMATORS) -> Walk:
    """Run the task in this thread and note every call of a Python function of the package.

    The depth counts the package's own frames only. A crossing is a call whose caller and callee are in two different
    files of ``folder``; a generator that goes on is not called anew.
    """
    walk = Walk()
    begun: list[FrameType] = []  # generators

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not _is_function(frame, package):
            return
        if frame.f_code.co_flags & CO_GENERATOR:
            if any(frame is known for known in begun):
                return
            begun.append(frame)
        walk.functions.add(frame.f_code)
        walk.depth = max(walk.depth, _depth(frame, package))
        caller = frame.f_back
        if caller is not None:
            walk.crossings += _crosses(caller.f_code.co_filename, frame.f_code.co_filename, folder)

    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
    return walk


def _is_function(frame: FrameType, package: Path) -> bool:
    return frame.f_code.co_filename.startswith(f"{package}/") and frame.f_code.co_name not in NO_FUNCTIONS


def _depth(frame: FrameType | None, package: Path) -> int:
    depth = 0
    while frame is not None:
        depth += _is_function(frame, package)
        frame = frame.f_back
    return depth


def _crosses(caller: str, callee: str, folder: Path) -> bool:
    return caller != callee and all(file.startswith(f"{folder}/") for file in (caller, callee))


def lost(places: Sequence[Place]) -> list[Place]:
    """Those that are not, or no longer, in the source."""
    return [place for place in places if not _is_there(place)]


def _is_there(place: Place) -> bool:
    file = SOURCE / place.file
    if not file.is_file():
        return False
    body = ast.parse(file.read_text(encoding="utf-8")).body
    *owners, name = place.name.split(".")
    for owner in owners:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner), [])
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in body)


def _fits() -> dict[str, Callable[[], Any]]:
    """Both fits, at default; each was made once before, so that imports and caches are not counted."""
    iris = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    line = X, X @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal(100)
    fits = {
        "TrimmedLogisticRegression().fit on iris": lambda: TrimmedLogisticRegression().fit(*iris),
        "TrimmedLinearRegression().fit, 100 × 3": lambda: TrimmedLinearRegression().fit(*line),
    }
    for fit in fits.values():
        fit()
    return fits


def run() -> Result:
    """Both walks, and the files to open."""
    walks = {name: follow(fit) for name, fit in _fits().items()}
    logistic, linear = walks.values()
    opened = {idea: len({place.file for place in places}) for idea, places in WHERE.items()}
    return Result(
        benchmark="walk",
        settings={"iris": "150 × 4, 3 classes", "linear": "100 × 3, normal errors, nothing wrong"},
        targets=[
            Target("files that a logistic fit visits", len(logistic.files), FILES),
            Target("functions that it visits", len(logistic.functions), FUNCTIONS),
            Target("its deepest stack", logistic.depth, DEPTH),
            Target("crossings between estimators' files in a linear fit", linear.crossings, CROSSINGS),
            *(Target(f"files to open: {idea}", count, OPENED) for idea, count in opened.items()),
        ],
        tables=[
            Table(
                "what a fit visits of trimlearn",
                ["fit", "files", "functions", "deepest stack", "crossings between estimators' files"],
                [[name, len(w.files), len(w.functions), w.depth, w.crossings] for name, w in walks.items()],
            ),
            Table(
                "where it is found",
                ["idea", "files", "in"],
                [
                    [idea, opened[idea], ", ".join(f"{place.file} {place.name}" for place in places)]
                    for idea, places in WHERE.items()
                ],
            ),
        ],
    )
