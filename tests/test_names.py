"""One name for one thing: no two classes, and no two public functions, of the package are called the same."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import trimlearn

PACKAGE = Path(trimlearn.__file__).parent

# The same thing twice, for two homes: a callback of two libraries, the kernels of two storages or compilers, the parts
# of a command line; and names for short in which every file of its folder has one.
TWINS = {"TrimmerCallback", "difference", "evaluate", "phi", "rows_difference", "rows_evaluate", "add_to", "run"}
KERNELS = "engines/cuda/kernels"  # another language: their names are for the device


def _names(source: str) -> list[str]:
    """Classes and public functions at module level."""
    body = ast.parse(source).body
    found = [node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    return [name for name in found if not name.startswith("_")]


def _repeated(names: dict[str, list[str]]) -> dict[str, list[str]]:
    """The names of more than one file, with these."""
    files = defaultdict(list)
    for file, defined in names.items():
        for name in defined:
            files[name].append(file)
    return {name: where for name, where in files.items() if len(where) > 1}


def test_the_search_can_fail() -> None:
    assert _names("def f(): ...\ndef _g(): ...\nclass A:\n    def h(self): ...\n") == ["f", "A"]
    assert _repeated({"a.py": ["f", "A"], "b.py": ["g", "A"]}) == {"A": ["a.py", "b.py"]}


def test_no_name_is_given_twice() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if KERNELS not in file.as_posix()]
    found = _repeated({str(file.relative_to(PACKAGE)): _names(file.read_text(encoding="utf-8")) for file in files})
    assert {name: where for name, where in found.items() if name not in TWINS} == {}
