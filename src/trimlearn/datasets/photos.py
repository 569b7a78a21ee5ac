"""Photographs that were put beside the other data: pairs and panoramas to stitch, pairs with a known homography."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trimlearn.datasets.locate import find_folder, missing

__all__ = ["find_photos", "load_oxford_pair"]


def find_photos(
    folder: str, pattern: str = "*.jpg", data_home: str | os.PathLike[str] | None = None
) -> tuple[Path, ...]:
    """The files like ``pattern`` in ``folder`` of the data, by name: ``find_photos("vlfeat", "river*.jpg")``.

    The folder is looked up in ``data_home``, then ``$TRIMLEARN_DATA``, then the user's cache.

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
    """Images 1 and k of an Oxford affine sequence ("graf", "boat", …) and the published homography from 1 to k.

    Mikolajczyk et al., A comparison of affine region detectors, IJCV 2005.

    >>> load_oxford_pair("graf", 2)[2].shape  # doctest: +SKIP
    (3, 3)
    """
    folder = find_folder(f"oxford_affine/{sequence}", data_home, holding=f"H1to{k}p*")
    if folder is None:
        raise missing(f"The pair 1–{k} of {sequence}", f"oxford_affine/{sequence}", data_home)
    first, other = (next(iter(sorted(folder.glob(f"img{number}.*")))) for number in (1, k))
    return first, other, np.loadtxt(next(iter(folder.glob(f"H1to{k}p*"))))
