"""Files of "Bundle Adjustment in the Large": observations, cameras, points."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from trimlearn.geometry.bundle_loss import CAMERA, ReprojectionLoss

__all__ = ["read_bal"]


def read_bal(path: str | os.PathLike[str]) -> ReprojectionLoss:
    """The loss of a problem file of "Bundle Adjustment in the Large" [1]_, its cameras and points to start from.

    The file has the numbers of cameras, points and observations; for each observation its camera, its point and where
    it was seen; then nine numbers for each camera and three for each point.

    Parameters
    ----------
    path : path
        The file; .bz2 and .gz are unpacked.

    Returns
    -------
    ReprojectionLoss
        One example for each observation.

    References
    ----------
    .. [1] S. Agarwal, N. Snavely, S. M. Seitz and R. Szeliski, Bundle adjustment in the large, ECCV (2010).

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "problem.txt"
    ...     _ = file.write_text("1 1 1  0 0 50 0  0 0 0 0 0 0 500 0 0  1 0 -10")
    ...     loss = read_bal(file)
    >>> loss.n, loss.values(loss.start())
    (1, array([0.]))
    """
    path = Path(path)
    unpack: dict[str, Callable[[bytes], bytes]] = {".bz2": bz2.decompress, ".gz": gzip.decompress}
    words = unpack.get(path.suffix, bytes)(path.read_bytes()).split()
    try:
        numbers = np.array(words, dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{path} is not a BAL problem: it must hold numbers only, {error}.") from error
    m, p, n = (int(k) for k in numbers[:3]) if len(numbers) >= 3 else (0, 0, 0)
    expected = 3 + 4 * n + CAMERA * m + 3 * p
    if min(m, p, n) < 1 or len(numbers) != expected:
        said = f"{m} cameras, {p} points and {n} observations make {expected} numbers"
        raise ValueError(f"{path} is not a BAL problem, or is cut off: {said}, it holds {len(numbers)}.")
    seen, cameras, points = np.split(numbers[3:], [4 * n, 4 * n + CAMERA * m])
    seen = seen.reshape(n, 4)
    index = seen[:, :2].astype(np.int64)
    return ReprojectionLoss(index[:, 0], index[:, 1], seen[:, 2:], cameras.reshape(m, CAMERA), points.reshape(p, 3))
