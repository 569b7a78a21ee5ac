"""Files that are whole or not there: written under a temporary name, then renamed. And files that are somebody's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import node
from threading import get_ident


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well, and is removed when not.

    A process that was killed in such a block could not remove its own: the next one that writes ``path`` does.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "results.json"
    ...     with replacing(target) as temporary:
    ...         _ = temporary.write_text("{}")
    ...     target.read_text()
    '{}'
    """
    _sweep(path)
    temporary = path.with_name(f".{path.name}.{node()}.{os.getpid()}.{get_ident()}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def lock(path: Path) -> int | None:
    """An open descriptor that holds ``path`` until it is closed, by `os.close` or by the end of the process.

    BlockingIOError while somebody else holds it. None where there is no such file, or locks are not to be had.
    """
    if sys.platform == "win32":  # an open file could not be renamed there
        return None
    import fcntl

    while True:
        try:
            held = os.open(path, os.O_RDWR)
        except OSError:
            return None
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            raise
        except OSError:  # a file system without locks
            os.close(held)
            return None
        if inode(path) == inode(held):
            return held
        os.close(held)  # another file took its place between the two calls: once more


def inode(file: Path | int) -> tuple[int, int] | None:
    """Device and inode, which tell a file from one that takes its place; None where there is none."""
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _sweep(path: Path) -> None:
    """Remove what processes of this machine that are no more left of writing ``path``."""
    start, end = f".{path.name}.{node()}.", ".part"
    with suppress(OSError):  # a folder that cannot be listed is not our concern here
        for other in path.parent.iterdir():
            if other.name.startswith(start) and other.name.endswith(end):
                pid = other.name[len(start) : -len(end)].partition(".")[0]
                if pid.isdigit() and not _alive(int(pid)):
                    other.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    """Whether a process of this number runs here; True where one cannot ask."""
    if sys.platform == "win32":  # os.kill(pid, 0) is no question there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
