"""Photographs that were put beside the other data: pairs and panoramas to stitch, pairs with a known homography."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimlearn.datasets.locate import find_folder, missing


def find_photos(
    folder: str, pattern: str = "*.jpg", data_home: str | os.PathLike[str] | None = None
) -> tuple[Path, ...]:
    """Find the photographs of a folder of the data.

    Parameters
    ----------
    folder : str
        The folder's name, such as "vlfeat".
    pattern : str, default="*.jpg"
        What the names of the files look like, such as "river*.jpg".
    data_home : str or path, optional
        The folder that holds ``folder``. Where it is not given, or has none, ``$TRIMLEARN_DATA`` is looked at, and
        then the user's cache.

    Returns
    -------
    tuple of Path
        The files, in the order of their names.

    Examples
    --------
    >>> [path.name for path in find_photos("vlfeat", "river*.jpg")]  # doctest: +SKIP
    ['river1.jpg', 'river2.jpg']
    """
    found = find_folder(folder, data_home, holding=pattern)
    if found is None:
        raise missing(f"The set of photographs {folder}/{pattern}", folder, data_home)
    return tuple(sorted(found.glob(pattern)))


def load_oxford_pair(
    sequence: str, k: int, data_home: str | os.PathLike[str] | None = None
) -> tuple[Path, Path, NDArray[np.float64]]:
    """Find two images of an Oxford affine sequence, and read the published homography between them.

    Parameters
    ----------
    sequence : str
        The sequence's name, such as "graf" or "boat".
    k : int
        The number of the second image, from 2 to 6; the first is number 1.
    data_home : str or path, optional
        The folder that holds oxford_affine/. Where it is not given, or has none, ``$TRIMLEARN_DATA`` is looked at, and
        then the user's cache.

    Returns
    -------
    first : Path
        Image 1.
    other : Path
        Image k.
    H : ndarray of shape (3, 3)
        The homography from image 1 to image k, in pixels.

    References
    ----------
    Mikolajczyk et al., A comparison of affine region detectors, IJCV 2005.

    Examples
    --------
    >>> load_oxford_pair("graf", 2)[2].shape  # doctest: +SKIP
    (3, 3)
    """
    folder = find_folder(f"oxford_affine/{sequence}", data_home, holding=f"H1to{k}p*")
    if folder is None:
        raise missing(f"The pair 1–{k} of {sequence}", f"oxford_affine/{sequence}", data_home)
    first, other = (next(iter(sorted(folder.glob(f"img{number}.*")))) for number in (1, k))
    return first, other, np.loadtxt(next(iter(folder.glob(f"H1to{k}p*"))))
