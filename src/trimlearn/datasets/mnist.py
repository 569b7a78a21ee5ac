"""MNIST from its IDX files, or from OpenML where there is a network."""

from __future__ import annotations

import gzip
import importlib.util
import os
import struct
import zlib
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.files import replacing
from trimlearn.datasets.locate import find_folder, missing, user_cache

Subset = Literal["train", "test"]
DType = Literal["uint8", "float32", "float64"]

FOLDER = "mnist"
STEM = {"train": "train", "test": "t10k"}
N_TRAIN = 60_000  # OpenML has one table: the training rows come first
UBYTE = 0x08  # IDX type code; the magic number is 0x0000 08 dd with dd the number of dimensions


def load_mnist(
    subset: Subset = "train", data_home: str | os.PathLike[str] | None = None, dtype: DType = "uint8"
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Read MNIST's handwritten digits.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        The 60,000 rows to learn from, or the 10,000 to test on.
    data_home : str or path, optional
        The folder that holds mnist/. Where it is not given, or has none, ``$TRIMLEARN_DATA`` is looked at, and then
        the user's cache; then OpenML is asked once and the cache filled.
    dtype : {"uint8", "float32", "float64"}, default="uint8"
        "uint8" gives the pixels as they are, from 0 to 255; the others give them divided by 255.

    Returns
    -------
    X : ndarray of shape (n, 784)
        The 28 × 28 pixels of each image.
    y : ndarray of shape (n,)
        The labels, 0 to 9.

    References
    ----------
    Y. LeCun, C. Cortes, C. J. C. Burges, The MNIST database of handwritten digits.

    Examples
    --------
    >>> X, y = load_mnist("test", dtype="float32")  # doctest: +SKIP
    >>> X.shape, y.shape  # doctest: +SKIP
    ((10000, 784), (10000,))
    """
    if subset not in get_args(Subset):
        raise ValueError(f"subset must be 'train' or 'test', got {subset!r}")
    if dtype not in get_args(DType):
        raise ValueError(f"dtype must be 'uint8', 'float32' or 'float64', got {dtype!r}")
    folder = find_folder(FOLDER, data_home, holding=f"{STEM[subset]}-images-idx3-ubyte*") or _fetch(data_home)
    images = _read_idx(_idx_file(folder, f"{STEM[subset]}-images-idx3-ubyte"), ndim=3)
    labels = _read_idx(_idx_file(folder, f"{STEM[subset]}-labels-idx1-ubyte"), ndim=1)
    if len(images) != len(labels):
        raise ValueError(f"{folder}: {len(images)} images but {len(labels)} labels; get both files anew")
    X = images.reshape(len(images), -1)
    y = labels.astype(np.int64)
    return (X, y) if dtype == "uint8" else (X.astype(dtype) / np.dtype(dtype).type(255), y)


def _idx_file(folder: Path, name: str) -> Path:
    """``name`` in ``folder``, gzipped or not."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} has no {name}.gz; put it beside the other MNIST files")


def _read_idx(path: Path, ndim: int) -> NDArray[np.uint8]:
    """The array of an IDX file of unsigned bytes with ``ndim`` dimensions.

    The header is 4 bytes of magic number and a big-endian 32-bit size per dimension; the values follow.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is truncated or damaged ({error}); get the file anew") from error
    start = 4 + 4 * ndim
    expected = bytes((0, 0, UBYTE, ndim))
    if raw[:4] != expected:
        raise ValueError(
            f"{path} is not an IDX file of {ndim}-dimensional bytes: it starts with 0x{raw[:4].hex()}, "
            f"expected 0x{expected.hex()}"
        )
    shape = struct.unpack(f">{ndim}I", raw[4:start]) if len(raw) >= start else ()
    size = int(np.prod(shape))
    if not shape or len(raw) - start != size:
        raise ValueError(
            f"{path} is truncated or damaged: its header promises {size} values of shape {shape}, "
            f"it holds {max(len(raw) - start, 0)}; get the file anew"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy()  # a view of bytes is read-only


def _write_idx(path: Path, a: NDArray[np.uint8]) -> None:
    """``a`` as a gzipped IDX file."""
    header = bytes((0, 0, UBYTE, a.ndim)) + struct.pack(f">{a.ndim}I", *a.shape)
    with replacing(path) as temporary, gzip.open(temporary, "wb") as file:
        file.write(header + a.tobytes())


def _fetch(data_home: str | os.PathLike[str] | None) -> Path:
    """Fill the user's cache from OpenML and return the folder; the one clear error where that fails."""
    from sklearn.datasets import fetch_openml

    cache = user_cache()
    # scikit-learn's own ARFF parser is slow on 70,000 rows, but pandas need not be there
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    try:
        bunch = fetch_openml(
            "mnist_784", version=1, as_frame=False, parser=parser, data_home=cache / "openml", n_retries=1
        )
    except (OSError, ValueError) as error:  # no network, or an answer that is not the data
        raise missing("MNIST", FOLDER, data_home, fetched=f"could not be reached ({error})") from error
    X, y = bunch.data.astype(np.uint8).reshape(-1, 28, 28), bunch.target.astype(np.uint8)
    folder = cache / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for subset, rows in (("train", slice(None, N_TRAIN)), ("test", slice(N_TRAIN, None))):
        # labels first: a folder counts as found by its images
        _write_idx(folder / f"{STEM[subset]}-labels-idx1-ubyte.gz", y[rows])
        _write_idx(folder / f"{STEM[subset]}-images-idx3-ubyte.gz", X[rows])
    return folder
