"""The one-time shuffled copy of a dataset: rows as plain numbers in one file that is mapped into memory."""

from __future__ import annotations

import errno
import json
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from trimlearn._utils.files import replacing
from trimlearn.streams.shuffle import DECK, Deal

if TYPE_CHECKING:
    from trimlearn.streams.dataset import Dataset

__all__ = ["ShuffledCopy", "shuffled_copy"]


@final
class ShuffledCopy:
    """The rows of a dataset in row blocks of random content.

    Parameters
    ----------
    file : file object
        X row by row, then the target.
    deal : Deal
        Where each row of the dataset went.
    X, t : ndarray
        Views of the mapped file: pages come and go as the system sees fit, and are no memory of this process.
    """

    def __init__(self, file: Any, deal: Deal, X: np.ndarray, t: np.ndarray | None) -> None:
        self._file, self.deal, self.X, self.t = file, deal, X, t

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.deal.blocks

    def restored(self, values: np.ndarray) -> np.ndarray:
        """``values``, one for each row of the copy, in the order of the dataset."""
        return self.deal.restored(values)


def shuffled_copy(data: Dataset, deal: Deal, cache: Path | None) -> ShuffledCopy:
    """The copy of ``data``: in an unnamed temporary file, which is gone with the process that made it, or in the folder
    ``cache``, where it is found again by who asks for the same files, columns and seed."""
    if cache is None:
        file = tempfile.TemporaryFile(prefix="trimlearn-")  # noqa: SIM115 - lives as long as the mapping
        with _room(tempfile.gettempdir(), _size(data)):
            return _written(data, deal, file)
    cache.mkdir(parents=True, exist_ok=True)
    named = cache / f"{data.fingerprint(deal.seed)}.rows"
    if not named.exists():
        with replacing(named) as temporary, _room(str(cache), _size(data)), open(temporary, "w+b") as file:
            _written(data, deal, file)
    return _mapped(data, deal, open(named, "rb"), mmap.ACCESS_READ)  # noqa: SIM115 - lives as long as the mapping


def _size(data: Dataset) -> int:
    layout = data.layout
    target = layout.target_dtype.itemsize if data.has_target else 0
    return int(data.n) * (layout.width * layout.dtype.itemsize + target)


@contextmanager
def _room(folder: str, size: int) -> Iterator[None]:
    """A full disk is one clear error."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        free = ""
        with suppress(OSError):
            import shutil

            free = f", which has {shutil.disk_usage(folder).free / 1e9:.2f} GB free"
        raise OSError(
            error.errno,
            f"the shuffled copy takes {size / 1e9:.2f} GB in {folder}{free}: make room, set TMPDIR, or give "
            "cache=, a folder on a larger disk",
        ) from error


def _written(data: Dataset, deal: Deal, file: Any) -> ShuffledCopy:
    """Deal the rows into the file. Room is claimed first: a mapped file that finds none would end the process."""
    size = _size(data)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
    copy = _mapped(data, deal, file, mmap.ACCESS_WRITE)
    row = 0
    for X, t in data.blocks():
        at = 0
        while at < len(X):  # blocks may end in the next deck
            stop = min(len(X), at + DECK - (row + at) % DECK)
            places = deal.places(row + at, row + stop)
            copy.X[places] = X[at:stop]
            if t is not None and copy.t is not None:
                copy.t[places] = t[at:stop]
            at = stop
        row += len(X)
    return copy


def _mapped(data: Dataset, deal: Deal, file: Any, access: int) -> ShuffledCopy:
    layout, n = data.layout, data.n
    mapped = mmap.mmap(file.fileno(), _size(data), access=access)
    X = np.frombuffer(mapped, layout.dtype, n * layout.width).reshape(n, layout.width)
    t = np.frombuffer(mapped, layout.target_dtype, n, X.nbytes) if data.has_target else None
    return ShuffledCopy(file, deal, X, t)


def fingerprint(parts: Any) -> str:
    """A short name for what a copy was made of."""
    from hashlib import sha256

    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]
