"""Every number that a module fixes says where it comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import trimlearn

PACKAGE = Path(trimlearn.__file__).parent


def constants(source: str) -> Iterator[ast.Assign | ast.AnnAssign]:
    """The assignments at module level to NAMES in capitals whose values hold a number."""
    for node in ast.parse(source).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        numbers = (n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant))
        if all(re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name) for name in names) and any(
            isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers
        ):
            yield node


def is_explained(node: ast.Assign | ast.AnnAssign, lines: list[str]) -> bool:
    """Whether there is a comment beside the constant, or right above it."""
    above = lines[node.lineno - 2] if node.lineno > 1 else ""
    return above.startswith("#") or any("#" in line for line in lines[node.lineno - 1 : node.end_lineno])


def test_the_search_can_fail() -> None:
    source = "A = 1  # a limit\nB = 2\n\n# why\nC = (3, 4)\nD = 5\nE = 'text'\n"
    lines = source.splitlines()
    assert [is_explained(node, lines) for node in constants(source)] == [True, False, True, False]


def test_every_constant_says_where_it_comes_from() -> None:
    silent = []
    for file in sorted(PACKAGE.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        lines = source.splitlines()
        silent += [f"{file.name}:{n.lineno}" for n in constants(source) if not is_explained(n, lines)]
    assert silent == []
