"""The Python blocks of Markdown pages. As a script it runs those of the pages named, in the environment it is run in:

python tests/blocks.py README.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["blocks", "run"]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def run(page: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each block with the names known after it: the blocks of a page are one session."""
    names: dict[str, Any] = {"__name__": page.name}
    for number, block in enumerate(blocks(page), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
        yield block, names


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    with TemporaryDirectory() as folder, chdir(folder):  # examples may write files
        for page in pages:
            print(f"{page.name}: {sum(1 for _ in run(page))} blocks ran")
