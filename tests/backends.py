"""The kinds of data a loss must accept, so that one test runs on each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from trimlearn._utils.arrays import to_numpy

BACKENDS = ("numpy64", "numpy32", "fortran", "torch64", "torch32", "csr", "memmap")


class Backend:
    """One kind of data: its matrices, its arrays, and how precise they are."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.dtype = "float32" if name.endswith("32") else "float64"
        self.rtol = 2e-4 if self.dtype == "float32" else 1e-10
        self.torch = pytest.importorskip("torch") if name.startswith("torch") else None

    def matrix(self, V: Any) -> Any:
        """V as this kind of data."""
        V = np.asarray(V, dtype=self.dtype)
        if self.torch is not None:
            return self.torch.asarray(V)
        if self.name == "csr":
            return sp.csr_array(V)
        if self.name == "fortran":
            return np.asfortranarray(V)
        if self.name == "memmap":
            path = self.folder / "V.npy"
            np.save(path, V)
            return np.load(path, mmap_mode="r")
        return V

    def array(self, a: Any) -> Any:
        """A model, a residual or a weight that goes with such data."""
        a = np.asarray(a, dtype=self.dtype)
        return a if self.torch is None else self.torch.asarray(a)

    def assert_close(self, actual: Any, expected: Any, *, rtol: float | None = None) -> None:
        """Equality up to rounding, of values, shape, dtype and namespace."""
        assert type(actual) is type(self.array(0.0)), type(actual)
        assert str(actual.dtype).removeprefix("torch.") == self.dtype
        expected = np.asarray(expected)
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
        rtol = self.rtol if rtol is None else rtol
        assert actual.shape == expected.shape
        np.testing.assert_allclose(to_numpy(actual), expected, rtol=rtol, atol=rtol * scale)
