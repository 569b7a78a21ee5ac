"""Labels made wrong on purpose, as in the paper's MNIST experiment, so that one can count how many are found."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class ContaminatedDigits:
    """Digits of which some labels are wrong, and the truth about them.

    Parameters
    ----------
    X : ndarray of shape (n, 64)
        The 8 × 8 pixels of each image, from 0 to 1.
    y : ndarray of shape (n,)
        The labels as given, some of them wrong.
    y_true : ndarray of shape (n,)
        The right labels.
    is_wrong : ndarray of shape (n,)
        Whether y and y_true differ.

    Examples
    --------
    >>> digits = load_digits_contaminated(fraction=0.1)
    >>> bool((digits.is_wrong == (digits.y != digits.y_true)).all())
    True
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    y_true: NDArray[np.int64]
    is_wrong: NDArray[np.bool_]


def shift_labels(y: ArrayLike, fraction: float, modulo: int, seed: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Make a share of the labels wrong, y ← (y + 1) mod ``modulo``.

    ``modulo`` has no default: the paper (section 4) prints "modulo 9" for the ten MNIST digits, which would send 8 to 0
    and 9 to 1 and leave nobody a 9; ten classes shifted in a ring need ``modulo=10``. Either way every chosen label
    changes.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, integers from 0 on.
    fraction : float
        The share of the labels to change, from 0 to 1: exactly round(fraction·n) of them are chosen.
    modulo : int
        The number after which labels begin at 0 again.
    seed : int
        Which labels are chosen.

    Returns
    -------
    y_dirty : ndarray of shape (n,)
        The labels, some of them changed.
    mask : ndarray of shape (n,)
        Which ones.

    Examples
    --------
    >>> shift_labels([0, 1, 2, 9], fraction=1.0, modulo=10, seed=0)[0].tolist()
    [1, 2, 3, 0]
    >>> int(shift_labels([0, 1, 2, 9], fraction=0.5, modulo=10, seed=0)[1].sum())
    2
    """
    y = np.asarray(y)
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
        raise ValueError(f"y must be a vector of integer labels, got {y.dtype} of shape {y.shape}")
    if y.size and y.min() < 0:
        raise ValueError(f"y must hold labels ≥ 0, got {y.min()}; number the classes from 0")
    if isinstance(fraction, bool) or not isinstance(fraction, Real) or not 0 <= fraction <= 1:  # NaN fails as well
        raise ValueError(f"fraction must be a number in [0, 1], got {fraction!r}")
    if isinstance(modulo, bool) or not isinstance(modulo, Integral) or modulo < 2:
        raise ValueError(f"modulo must be an integer ≥ 2 (the number of classes), got {modulo!r}")
    mask = np.zeros(y.size, dtype=bool)
    mask[np.random.default_rng(seed).choice(y.size, round(float(fraction) * y.size), replace=False)] = True
    return np.where(mask, (y.astype(np.int64) + 1) % modulo, y).astype(y.dtype), mask


def load_digits_contaminated(fraction: float = 0.2, seed: int = 0) -> ContaminatedDigits:
    """Give scikit-learn's bundled 8 × 8 digits (1,797 rows, 10 classes) with some labels shifted by one.

    Parameters
    ----------
    fraction : float, default=0.2
        The share of the labels to shift.
    seed : int, default=0
        Which labels are shifted.

    Returns
    -------
    ContaminatedDigits
        The images, the labels as given, the right ones, and which are wrong.

    References
    ----------
    E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository.

    Examples
    --------
    >>> digits = load_digits_contaminated(fraction=0.2)
    >>> digits.X.shape, int(digits.is_wrong.sum()), float(digits.X.max())
    ((1797, 64), 359, 1.0)
    """
    from sklearn.datasets import load_digits

    X, y_true = load_digits(return_X_y=True)
    y_true = y_true.astype(np.int64)
    y, is_wrong = shift_labels(y_true, fraction, modulo=10, seed=seed)
    return ContaminatedDigits(X / 16.0, y, y_true, is_wrong)
