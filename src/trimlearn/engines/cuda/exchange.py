"""Models on their way to a device, and sums on their way back."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch

from trimlearn._utils.arrays import Array, Tensor, asarray_like, namespace
from trimlearn.engines.cuda.layout import MatrixLayout


@final
class Exchange:
    """Buffers for x and a direction u on the device, and for one matrix on the way back.

    ``like`` is an array of the kind that x is outside, ``there`` a tensor of the kind it is on the device.
    """

    def __init__(self, layout: MatrixLayout, like: Array, there: Tensor) -> None:
        self.layout, self._like, self._there = layout, like, there
        pinned = there.device.type == "cuda"
        self._host = torch.zeros((3, *layout.shape), dtype=there.dtype, pin_memory=pinned)
        self._arrays = self._host.numpy()
        self.x, self.u = there.new_zeros((2, *layout.shape))
        self._last: Array = None

    def send(self, x: Array) -> None:
        """x to the device."""
        self._put(x, 0, self.x)
        self._last = x

    def send_both(self, x: Array, u: Array) -> None:
        """x and u; x is not sent again where it is the array sent last: those of a run are never written to."""
        if x is not self._last:
            self.send(x)
        self._put(u, 1, self.u)

    def fetch(self, matrix: Tensor) -> Array:
        """A matrix on the device as an array in the shape of x: this waits for the device."""
        self._host[2].copy_(matrix)
        return asarray_like(np.array(self.layout.x(self._arrays[2])), self._like)

    def tensor(self, a: Any) -> Tensor:
        """Any array as a tensor there."""
        return asarray_like(a, self._there)

    def array(self, a: Any) -> Array:
        """Any tensor as an array of the kind that x is: a copy."""
        return asarray_like(a.clone(), self._like)

    def array64(self, a: np.ndarray) -> Array:
        """The same in float64."""
        return asarray_like(a, self._like, namespace(self._like).float64)

    def _put(self, x: Array, i: int, to: Tensor) -> None:
        self.layout.put(x, self._arrays[i])
        to.copy_(self._host[i], non_blocking=True)
