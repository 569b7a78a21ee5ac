"""Kernels in CUDA C where there is nothing to compile them with, and the shapes that they are compiled for."""

from __future__ import annotations

import numpy as np
import pytest

from trimlearn import Problem
from trimlearn.losses import Softmax
from trimlearn.weights import CappedSimplex

torch = pytest.importorskip("torch")

from trimlearn.engines.cuda import CudaEngine, runtime  # noqa: E402
from trimlearn.engines.cuda.held import HeldRows, Tile  # noqa: E402

MEMORY = 232_448  # bytes of shared memory of a program on an H100 or H200


def test_a_tile_fits_and_every_column_has_a_warp() -> None:
    for columns in range(8, 1200, 8):
        tile = Tile.fitting(columns, MEMORY)
        if tile is None:
            assert columns <= 48 or columns > 1024  # too few warps for a tile of 16 rows, or too many registers
            continue
        steps, warps = -(-columns // 16), tile.threads // 32
        assert tile.shared <= MEMORY and tile.rows % 16 == 0 and 4 * tile.rows <= tile.threads
        assert warps <= 8 and warps * -(-steps // 8) >= steps


def test_less_memory_means_fewer_rows_or_none() -> None:
    assert [getattr(Tile.fitting(784, memory), "rows", None) for memory in (232_448, 164_000, 99_000, 49_152)] == [
        48, 32, 16, None,
    ]  # fmt: skip


def test_without_a_compiler_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_compiler", lambda: None)
    assert not runtime.has_compiler()
    assert runtime._loaded(["libno_such_library.so.7"]) is None


def test_rows_in_the_hosts_memory_are_summed_by_torch() -> None:
    V = torch.zeros((5000, 64), dtype=torch.bfloat16)
    engine = CudaEngine(Problem(Softmax(V, np.arange(5000) % 3), CappedSimplex(4000)), device="cpu")
    assert not isinstance(engine._rows, HeldRows)
