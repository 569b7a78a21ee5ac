"""What is checked about the data before any work is done. Each error names the argument and the fix."""

from __future__ import annotations

from collections.abc import Collection
from math import inf, prod
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj, is_numpy_array, is_torch_array
from numpy.typing import NDArray

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn._utils.residence import lies_on_device

CHECK_ENTRIES = 1 << 20  # looked at in one go, as a memory-mapped V is never read as a whole: a limit on memory, 8 MB
CHECK_ENTRIES_THERE = 1 << 27  # the same on a device, where each look is a wait of 40 µs: 0.1 GB for the answers
LOOKED_AT = 1000  # rows: their median is off by 1.25/√1000 = 0.04 standard deviations, and only its order counts
IN_RANGE = 0.45  # a power of the largest number: its square leaves 10 % of the exponents to sums, 10⁴ in float32


def is_number(value: Any) -> bool:
    """Is ``value`` a real number? A bool is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    """Is ``value`` an integer? A bool is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_collection(X: Any) -> bool:
    """Whether X is a collection of Dask's, which must not be computed by accident. Dask is not imported for this."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def is_sparse(V: Any) -> bool:
    """Is V a scipy sparse matrix or array?"""
    return bool(sp.issparse(V))


def as_numeric(a: Any, name: str) -> Array:
    """``a`` as an array of real numbers (bool and integers included) of any shape, not copied when it is one."""
    if is_torch_array(a):
        if str(a.layout) != "torch.strided":
            raise TypeError(f"{name} is a sparse torch tensor; pass a scipy.sparse CSR array instead.")
        a = a.detach()
    elif is_numpy_array(a) or not is_array_api_obj(a):
        if isinstance(a, np.ma.MaskedArray) and np.ma.is_masked(a):
            raise ValueError(f"{name} is a masked array with masked entries; drop those rows or fill them in first.")
        try:
            a = np.asarray(a)  # also strips np.memmap and np.matrix down to a plain view
        except ValueError as error:
            raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from error
    xp = namespace(a)
    if not xp.isdtype(a.dtype, ("bool", "integral", "real floating")):
        kind = TypeError if a.ndim == 0 else ValueError
        raise kind(f"{name} must hold real numbers, got dtype {a.dtype}; encode or convert it to floats first.")
    return a


def check_matrix(V: Any, name: str = "V") -> Array:
    """A 2-D data matrix, finite and not empty: a dense array as it is, any scipy sparse format as a CSR array."""
    if is_sparse(V):
        V = sp.csr_array(V)  # shares the memory of a CSR matrix; CSC, COO and the others are converted
        as_numeric(V.data, name)
        entries = V.data
    else:
        entries = V = as_numeric(V, name)
    if V.ndim != 2:
        raise ValueError(f"{name} must be 2-D (n rows, p columns), got shape {tuple(V.shape)}; reshape it.")
    if 0 in V.shape:
        raise ValueError(f"{name} is empty: shape {tuple(V.shape)}; give at least one row and one column.")
    if not _all_finite(entries):
        raise ValueError(f"{name} holds NaN or infinity; drop or impute those entries.")
    return V


def check_target(t: Any, n: int, like: Array, name: str = "t", ndim: Collection[int] = (1,)) -> Array:
    """One finite target (or row of targets) for each of the n rows of V, as an array like ``like``."""
    t = as_numeric(t, name)
    if t.ndim not in ndim:
        allowed = " or ".join(f"{d}-D" for d in ndim)
        raise ValueError(f"{name} must be {allowed}, got shape {tuple(t.shape)}; reshape or ravel it.")
    if t.shape[0] != n or 0 in t.shape:
        raise ValueError(f"{name} must hold one target for each of the {n} rows of the data, got {tuple(t.shape)}.")
    with np.errstate(over="ignore"):  # too large for float32: reported below
        t = asarray_like(t, like)
    if not _all_finite(t):
        raise ValueError(f"{name} holds NaN or infinity (as {like.dtype}); drop those rows.")
    return t


def check_labels(t: Any, n: int, n_classes: int | None = None) -> tuple[NDArray[np.int64], int]:
    """Class labels 0..K−1 as int64, and K; at least two of them are present, unless ``n_classes`` says how many."""
    fix = "encode the labels as 0..K-1, for example by np.unique(t, return_inverse=True)[1]"
    values = to_numpy(as_numeric(t, "t"))
    check_target(values, n, np.zeros(0), "t")
    with np.errstate(invalid="ignore"):  # beyond int64: reported below
        labels = values.astype(np.int64)
    if np.any(labels != values) or labels.min() < 0:
        raise ValueError(f"t must hold integers >= 0; {fix}.")
    if n_classes is None and labels.min() == labels.max():
        raise ValueError(f"t holds one class only ({labels[0]}); give rows of at least two classes.")
    K = int(labels.max()) + 1
    if n_classes is not None:
        check_count(n_classes, "n_classes")
        if n_classes < K:
            raise ValueError(f"n_classes is {n_classes} but t holds the label {K - 1}; raise it, or {fix}.")
        K = n_classes
    return labels, K


def check_vector(a: Any, length: int, like: Array, name: str, *, positive: bool = False) -> Array:
    """One finite number for each of ``length`` columns, as an array like ``like``."""
    a = as_numeric(a, name)
    if tuple(a.shape) != (length,):
        raise ValueError(f"{name} must have shape ({length},), one number per column, got {tuple(a.shape)}.")
    a = asarray_like(a, like)
    if not _all_finite(a):
        raise ValueError(f"{name} holds NaN or infinity; give finite numbers.")
    if positive and not bool(namespace(a).all(a > 0)):
        raise ValueError(f"{name} must be > 0 in every column; use 1 for a constant column.")
    return a


def check_positive(value: Any, name: str, above: float = 0) -> float:
    """A finite number > 0, or > ``above``."""
    if not is_number(value) or not above < value < inf:
        raise ValueError(f"{name} must be a finite number > {above}, got {value!r}.")
    return float(value)


def check_count(value: Any, name: str, most: int | None = None) -> int:
    """An integer from 1 to ``most``."""
    count = int(value) if is_integer(value) else 0
    if count < 1 or (most is not None and count > most):
        upper = "" if most is None else f" and <= {most}"
        raise ValueError(f"{name} must be an integer >= 1{upper}, got {value!r}.")
    return count


def check_magnitude(A: Any, name: str) -> None:
    """ValueError where the numbers of a column, a few wild ones apart, are so large or small that their squares are out
    of range. A, dense or CSR, is 1-D or 2-D; of many rows every so-manieth is looked at.

    >>> check_magnitude(np.array([1e200, 1.0, 2.0, 0.0]), "y")
    >>> check_magnitude(np.array([1e200, 3e200, 2e200, 0.0]), "y")
    Traceback (most recent call last):
    ValueError: y holds numbers of about 2e+200, whose squares are out of range: divide it by that.
    """
    sample = A[:: max(1, A.shape[0] // LOOKED_AT)]
    a = np.abs(np.asarray(sample.toarray() if is_sparse(sample) else to_numpy(sample)))
    if a.dtype.kind != "f":
        return
    most = float(np.finfo(a.dtype).max) ** IN_RANGE
    for column in a.reshape(len(a), -1).T:
        size = float(np.median(column[column > 0])) if np.any(column > 0) else 1.0
        if not 1 / most < size < most:
            raise ValueError(
                f"{name} holds numbers of about {size:.0e}, whose squares are out of range: divide it by that."
            )


def check_choice(value: Any, choices: Collection[str], name: str, or_none: bool = False) -> None:
    """One of a few words, or None where that is one of the choices too."""
    if or_none and value is None:
        return
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {'None or ' * or_none}one of {sorted(choices)}, got {value!r}.")


def is_missing(label: Any) -> bool:
    """None, NaN, NaT and pandas.NA, told by how they print: their comparisons do not agree with one another."""
    return label is None or (not isinstance(label, str) and str(label) in ("nan", "NaT", "<NA>"))


def _all_finite(a: Array) -> bool:
    """No NaN, no infinity; no temporary as large as ``a``, which is read block by block."""
    xp = namespace(a)
    if not xp.isdtype(a.dtype, "real floating") or 0 in a.shape:
        return True
    if is_numpy_array(a) and a.flags.f_contiguous and not a.flags.c_contiguous:
        a = a.T  # blocks that are contiguous in memory
    entries = CHECK_ENTRIES_THERE if lies_on_device(a) else CHECK_ENTRIES
    step = max(1, entries // prod(a.shape[1:]))
    blocks = (a[i : i + step] for i in range(0, a.shape[0], step))
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is three times faster than looking at every entry, and seldom not finite by itself.
        return all(xp.isfinite(xp.sum(block)) or xp.all(xp.isfinite(block)) for block in blocks)
