"""The dirty table that comes with the package, checked as anybody would check a table of their own."""

from __future__ import annotations

import sys

from trimlearn.checks.check import Check, check
from trimlearn.datasets import load_penguins_dirty

__all__ = ["check_penguins"]


def check_penguins(*, progress: bool = False) -> Check:
    """What is wrong with the table of penguins; nothing is told but which column holds the labels."""
    penguins = load_penguins_dirty()
    say = (lambda sentence: print(sentence, file=sys.stderr)) if progress else None
    return check(penguins.path, penguins.target, progress=say)
