"""One-time copies of a dataset: rows as plain numbers in one file that is mapped into memory, shuffled or in order."""

from __future__ import annotations

import errno
import json
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from trimlearn._utils.files import replacing
from trimlearn.streams.deal import Deal

if TYPE_CHECKING:
    from trimlearn.streams.dataset import Dataset


Mapped = tuple[np.ndarray, np.ndarray | None]  # the rows of X, and their targets


@final
class ShuffledCopy:
    """The rows of a dataset in row blocks of random content.

    Parameters
    ----------
    deal : Deal
        Where each row of the dataset went.
    X, t : ndarray
        Views of the mapped file: pages come and go as the system sees fit, and are no memory of this process.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import open_dataset
    >>> copy = open_dataset(np.arange(6.0).reshape(3, 2)).shuffled(seed=0)
    >>> copy.restored(copy.X[:, 0])
    array([0., 2., 4.])
    """

    def __init__(self, deal: Deal, X: np.ndarray, t: np.ndarray | None) -> None:
        self.deal, self.X, self.t = deal, X, t

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.deal.blocks

    def restored(self, values: np.ndarray) -> np.ndarray:
        """``values``, one for each row of the copy, in the order of the dataset."""
        return self.deal.restored(values)


@final
class OrderedCopy:
    """The rows of a dataset in their own order, for sums over all of them.

    Parameters
    ----------
    X, t : ndarray
        Views of the mapped file, or of the array or memory map that the rows lie in already.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import open_dataset
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> open_dataset(X).copied().X is X
    True
    """

    def __init__(self, X: np.ndarray, t: np.ndarray | None) -> None:
        self.X, self.t = X, t

    def restored(self, values: np.ndarray) -> np.ndarray:
        """``values``, one for each row, which are in the order of the dataset already."""
        return values


def shuffled_copy(data: Dataset, deal: Deal, cache: Path | None) -> ShuffledCopy:
    """The shuffled copy of ``data``."""
    return ShuffledCopy(deal, *_copied(data, cache, deal.seed, lambda number: _write_dealt(data, deal, number)))


def ordered_copy(data: Dataset, cache: Path | None) -> OrderedCopy:
    """The copy of ``data`` in order; none where they lie in an array as they should, whose numbers are only checked."""
    if (held := data.lies_in()) is not None:
        for _ in data.blocks():
            pass
        return OrderedCopy(*held)
    return OrderedCopy(*_copied(data, cache, "in order", lambda number: _write_in_order(data, number)))


def _copied(data: Dataset, cache: Path | None, which: Any, write: Callable[[int], None]) -> Mapped:
    """What ``write`` has put into a file: in an unnamed temporary one, which is gone with the process that made it, or
    in the folder ``cache``, where it is found again by who asks for the same files, columns and ``which``.

    Room is claimed first, so that a disk which is too small says so at once.
    """
    size = _size(data)
    if cache is None:
        folder = tempfile.gettempdir()
        with _room(folder, size), tempfile.TemporaryFile(prefix="trimlearn-", dir=folder) as file:
            _claim(file, size)
            write(file.fileno())
            return _mapped(data, file)  # which is there as long as it is mapped
    with _room(str(cache), size):
        cache.mkdir(parents=True, exist_ok=True)
    named = cache / f"{data.fingerprint(which)}.rows"
    if not named.exists() or named.stat().st_size != size:  # one that was cut short is made again
        with replacing(named) as temporary, _room(str(cache), size), open(temporary, "w+b") as file:
            _claim(file, size)
            write(file.fileno())
    with open(named, "rb") as file:
        return _mapped(data, file)


def _size(data: Dataset) -> int:
    layout = data.layout
    target = layout.target_dtype.itemsize if data.has_target else 0
    return int(data.n) * (layout.width * layout.dtype.itemsize + target)


@contextmanager
def _room(folder: str, size: int) -> Iterator[None]:
    """A full disk is one clear error, and so is a folder that cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise OSError(
                error.errno,
                f"the copy of the rows cannot be written in {folder} ({error.strerror}): set TMPDIR, or give cache=, a "
                "folder that can be written",
            ) from error
        free = ""
        with suppress(OSError):
            import shutil

            free = f", which has {shutil.disk_usage(folder).free / 1e9:.2f} GB free"
        raise OSError(
            error.errno,
            f"the copy of the rows takes {size / 1e9:.2f} GB in {folder}{free}: make room, set TMPDIR, or give "
            "cache=, a folder on a larger disk",
        ) from error


def _claim(file: Any, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)


def _write_dealt(data: Dataset, deal: Deal, number: int) -> None:
    """Deal the rows into the file, a deck at a time: each block gets its share of a deck in one piece.

    Rows are written, not mapped: pages of a mapped file cost ten times as much when they are first touched.
    """
    width = data.layout.width * data.layout.dtype.itemsize
    behind = deal.n * width
    for (X, t), (_, order, places) in zip(_decks(data, deal.deck), deal.decks(), strict=True):
        rows, runs = _as_bytes(np.take(X, order, axis=0)), deal.runs(places)
        for a, b, place in runs:
            _put(number, rows[a * width : b * width], place * width)
        if t is not None:
            each, targets = t.itemsize, _as_bytes(t[order])
            for a, b, place in runs:
                _put(number, targets[a * each : b * each], behind + place * each)


def _write_in_order(data: Dataset, number: int) -> None:
    """All rows, one after the other, and their targets behind them."""
    at, behind = 0, data.n * data.layout.width * data.layout.dtype.itemsize
    for X, t in data.blocks():
        rows = _as_bytes(X)
        _put(number, rows, at)
        at += len(rows)
        if t is not None:
            targets = _as_bytes(t)
            _put(number, targets, behind)
            behind += len(targets)


def _as_bytes(rows: Any) -> memoryview:
    """Contiguous rows as what a file takes."""
    plain: Any = np.ascontiguousarray(rows)
    return memoryview(plain).cast("B")


def _put(number: int, data: memoryview, at: int) -> None:
    """Write all of ``data`` at a place of the file."""
    while len(data):
        done = os.pwrite(number, data, at)
        data, at = data[done:], at + done


def _decks(data: Dataset, deck: int) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """The rows of the dataset, ``deck`` at a time, in a buffer that is used again."""
    layout = data.layout
    size = min(deck, data.n)
    X = np.empty((size, layout.width), layout.dtype)
    t = np.empty(size, layout.target_dtype) if data.has_target else None
    filled = 0
    for A, a in data.blocks():
        at = 0
        while at < len(A):
            stop = min(len(A), at + size - filled)
            X[filled : filled + stop - at] = A[at:stop]
            if t is not None and a is not None:
                t[filled : filled + stop - at] = a[at:stop]
            filled, at = filled + stop - at, stop
            if filled == size:
                yield X, t
                filled = 0
    if filled:
        yield X[:filled], None if t is None else t[:filled]


def _mapped(data: Dataset, file: Any) -> Mapped:
    layout, n = data.layout, data.n
    mapped = mmap.mmap(file.fileno(), _size(data), access=mmap.ACCESS_READ)
    X = np.frombuffer(mapped, layout.dtype, n * layout.width).reshape(n, layout.width)
    return X, np.frombuffer(mapped, layout.target_dtype, n, X.nbytes) if data.has_target else None


def copy_name(parts: Any) -> str:
    """A short name for what a copy was made of."""
    from hashlib import sha256

    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]
