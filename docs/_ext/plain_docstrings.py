"""Docstrings are written to be read in the source: |u| is an absolute value there and ``scale_`` an attribute.

reStructuredText would take the first for a substitution and the second for a link. Both are escaped before it sees
them. What scikit-learn's base classes add to every estimator (metadata routing, `get_params`) is left to its own
documentation.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

SPAN = re.compile(r"(``.+?``|`[^`]+`_?)")  # what stands in backticks is left as it is
BAR = re.compile(r"(?<!\\)\|")
TAIL = re.compile(r"(?<=[^\W_])_(?!\w)")  # an underscore at the end of a word; [1]_ is a reference
STAR = re.compile(r"(?<![\w*\\])\*(?=\.)")  # *.jpg


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = escaped(lines)


def escaped(lines: list[str]) -> list[str]:
    """The lines with bars and trailing underscores escaped, but for code: doctests and blocks after ``::``."""
    result, doctest, literal = [], False, -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if literal >= 0 and line.strip() and indent <= literal:
            literal = -1
        doctest = bool(line.strip()) and (doctest or line.lstrip().startswith(">>>"))
        result.append(line if doctest or literal >= 0 else escaped_prose(line))
        if literal < 0 and not doctest and line.rstrip().endswith("::"):
            literal = indent
    return result


def escaped_prose(line: str) -> str:
    parts = SPAN.split(line)
    parts[::2] = [STAR.sub(r"\\*", TAIL.sub(r"\\_", BAR.sub(r"\\|", part))) for part in parts[::2]]
    return "".join(parts)


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    module = getattr(obj, "__module__", None) or ""
    theirs = module.startswith(("sklearn.", "builtins", "enum", "collections"))
    return True if theirs or re.fullmatch(r"set_\w+_request", name) else None
