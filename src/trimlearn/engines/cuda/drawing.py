"""Rows drawn: by NumPy on the host, or the same numbers by a kernel on the device, where nobody waits for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from trimlearn._utils.arrays import Tensor
from trimlearn.smart.row_laws import Recipe, WithReplacement

BLOCK = 256  # groups of four numbers that a program draws: two programs for the 1,533 rows of MNIST


class Drawing:
    """The rows of n examples that a `Recipe` with replacement stands for; with sample weights, ``cumulative`` sums."""

    def __init__(self, n: int, cumulative: np.ndarray | None, device: torch.device) -> None:
        self.n, self.cumulative, self.device = n, cumulative, device

    def fill(self, out: Tensor, recipe: Recipe, count: int = 1) -> None:
        """Write the rows of ``count`` iterations, from the recipe's on, into ``out`` (count or more, b)."""
        for i in range(count):
            later = Recipe(recipe.law, recipe.seed, recipe.k + i, recipe.stream, recipe.skip)
            out[i] = torch.from_numpy(np.asarray(later.rows(self.n, self.cumulative), dtype=np.int32))


class KernelDrawing(Drawing):
    """The same on the device."""

    def __init__(self, n: int, cumulative: np.ndarray | None, device: torch.device, kernel: Any) -> None:
        super().__init__(n, cumulative, device)
        self._kernel = kernel
        self._host = torch.zeros(4, dtype=torch.int64, pin_memory=True)
        self._words = torch.zeros(4, dtype=torch.int64, device=device)
        self._sums = None if cumulative is None else torch.from_numpy(cumulative).to(device)
        self._sent: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def fill(self, out: Tensor, recipe: Recipe, count: int = 1) -> None:
        assert isinstance(recipe.law, WithReplacement), "other laws are left to the host"
        b = out.shape[1]
        self._sent.synchronize()  # what was sent last has arrived: long ago
        seed = recipe.seed - (1 << 64) if recipe.seed >> 63 else recipe.seed  # the same bits
        self._host.numpy()[:] = seed, recipe.k, recipe.stream.value, recipe.skip
        self._words.copy_(self._host, non_blocking=True)
        self._sent.record()
        grid = (count, -(-(b + 4) // (4 * BLOCK)))
        if self._sums is None:
            self._kernel[grid](self._words, out, self.n, b, BLOCK=BLOCK, ROWS=True)
            return
        u = torch.empty((count, b), dtype=torch.float64, device=self.device)
        self._kernel[grid](self._words, u, self.n, b, BLOCK=BLOCK, ROWS=False)
        out[:count] = torch.searchsorted(self._sums, u * self._sums[-1], right=True).clamp_(max=self.n - 1).int()
