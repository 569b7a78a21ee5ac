"""Data of bundle adjustment: files of "Bundle Adjustment in the Large", and cameras on an arc around points."""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trimlearn.geometry.bundle_loss import CAMERA, ReprojectionLoss
from trimlearn.geometry.homography.points import Bools, Floats

__all__ = ["BundleScene", "made_up_scene", "read_bal"]

# Of a start, by the nine numbers of a camera: about 25 px in the image, with points off by a tenth of the cloud.
OFF = (0.02, 0.02, 0.02, 0.1, 0.1, 0.1, 30.0, 0.05, 0.02)
HALF = (640.0, 480.0)  # of the image, px: a photograph of 1,280 by 960


class BundleScene(NamedTuple):
    """What was seen, from where it starts; which observations are wrong; and the true x."""

    loss: ReprojectionLoss
    wrong: Bools
    truth: Floats


def made_up_scene(
    cameras: int = 12,
    points: int = 300,
    visible: float = 0.5,
    noise: float = 0.5,
    wrong: float = 0.1,
    off: float = 1.0,
    arc: float = 1.5,
    seed: int = 0,
) -> BundleScene:
    """Cameras ``arc`` radians around points, each of which they see with a chance ``visible``, in two views at least.

    noise in px; a share ``wrong`` of the observations is anywhere in the image; the start is ``off`` times as far from
    the truth as photographs that were matched usually are.

    >>> scene = made_up_scene(cameras=3, points=10)
    >>> scene.loss.groups, bool(scene.wrong.mean() < 0.11)
    ([(3, 9), (10, 3)], True)
    """
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(seed)
    angle = np.linspace(-arc / 2, arc / 2, cameras) + 0.03 * rng.standard_normal(cameras)
    centre = np.column_stack([6 * np.sin(angle), 0.5 * rng.standard_normal(cameras), 6 * np.cos(angle)])
    back = centre / np.linalg.norm(centre, axis=1, keepdims=True)  # a camera looks along −z
    right = np.cross(np.array([0.0, 1.0, 0.0]) + 0.05 * rng.standard_normal((cameras, 3)), back)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    R = np.stack([right, np.cross(back, right), back], axis=1)
    lens = rng.standard_normal((cameras, 3)) * [40.0, 0.02, 0.02] + [800.0, -0.1, 0.0]
    shift = -np.einsum("mab,mb->ma", R, centre)
    table = np.column_stack([Rotation.from_matrix(R).as_rotvec(), shift, lens])
    cloud = rng.uniform(-1, 1, (points, 3)) * [2.0, 1.5, 1.0]
    seen = rng.random((cameras, points)) < visible
    for j in np.flatnonzero(seen.sum(axis=0) < 2):
        seen[rng.permutation(cameras)[:2], j] = True
    camera, point = np.nonzero(seen)
    exact = ReprojectionLoss(camera, point, np.zeros((len(camera), 2)), table, cloud)
    pixels = exact.predict(exact.start()) + noise * rng.standard_normal((len(camera), 2))
    bad = np.zeros(len(camera), bool)
    bad[rng.permutation(len(camera))[: int(wrong * len(camera))]] = True
    pixels[bad] = rng.uniform(-1, 1, (int(bad.sum()), 2)) * HALF
    start = table + off * rng.standard_normal(table.shape) * OFF, cloud + 0.1 * off * rng.standard_normal(cloud.shape)
    return BundleScene(ReprojectionLoss(camera, point, pixels, *start), bad, exact.start())


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
