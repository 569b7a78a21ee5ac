"""Files that are whole or not there: written under a temporary name, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident

__all__ = ["replacing"]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well, and is removed when not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "results.json"
    ...     with replacing(target) as temporary:
    ...         _ = temporary.write_text("{}")
    ...     target.read_text()
    '{}'
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
