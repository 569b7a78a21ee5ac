"""Kernels in CUDA C where there is nothing to compile them with, and the shapes that they are compiled for."""

from __future__ import annotations

import numpy as np
import pytest

from trimlearn import Problem
from trimlearn.losses import Softmax
from trimlearn.weights import CappedSimplex

torch = pytest.importorskip("torch")

from trimlearn.engines.cuda import CudaEngine, runtime  # noqa: E402
from trimlearn.engines.cuda.held import MODES, HeldRows, Tile  # noqa: E402

MEMORY = 232_448  # bytes of shared memory of a program on an H100 or H200


def test_a_tile_fits_and_its_rows_are_whole() -> None:
    for columns in range(8, 1000, 8):
        for table in MODES:
            tile = Tile.fitting(columns, table, MEMORY)
            assert tile is not None, (columns, table)
            assert tile.shared <= MEMORY < Tile(columns, tile.blocks + 1, table).shared
            assert tile.blocks > -(-columns // 64)  # else no row of the next tile is copied before this one is done


def test_less_memory_means_fewer_blocks_or_none() -> None:
    found = [Tile.fitting(784, "steps", memory) for memory in (232_448, 204_800, 164_000, 99_000)]
    assert [getattr(tile, "blocks", None) for tile in found] == [20, 17, None, None]


def test_without_a_compiler_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_compiler", lambda: None)
    assert not runtime.has_compiler()
    assert runtime._loaded(["libno_such_library.so.7"]) is None


def test_rows_in_the_hosts_memory_are_summed_by_torch() -> None:
    V = torch.zeros((5000, 64), dtype=torch.bfloat16)
    engine = CudaEngine(Problem(Softmax(V, np.arange(5000) % 3), CappedSimplex(4000)), device="cpu")
    assert not isinstance(engine._rows, HeldRows)
