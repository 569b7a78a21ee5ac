"""A script that repeats a check in Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimlearn._version import __version__

if TYPE_CHECKING:
    from trimlearn.checks.found import Asked

__all__ = ["script"]

TEXT = '''"""Repeats the check of {name} in Python, by trimlearn {version}.

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


def script(asked: Asked, name: str) -> str:
    """The script's text."""
    options = "".join(f"    {key}={value!r},\n" for key, value in asked.options().items())
    path = None if asked.path is None else str(Path(asked.path).absolute())
    return TEXT.format(
        name=_quoted(name), version=__version__, path=repr(path), guard="" if path else GUARD, options=options
    )


def _quoted(name: Any) -> str:
    """A name that cannot end the text it stands in."""
    return "".join(letter for letter in str(name) if letter.isprintable() and letter not in "\\\"'")
