"""Examples as tensors whose first dimension counts them, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from trimlearn.losses.storage import Rows


@final
@dataclass(frozen=True)
class _Left:
    """The examples that are left where some c are 0; ``versions`` grow whenever data are changed in place."""

    c: Tensor
    versions: list[int]
    batch: Any
    shares: Tensor


@final
class Tensors:
    """A tensor, or a tuple or dict of tensors, of n examples each; batches have the same form.

    Parameters
    ----------
    data : Tensor, tuple or mapping of tensors, or TensorDataset
        The examples; arrays become tensors.
    device : torch.device
        Where the model lies, and the data must.

    Examples
    --------
    >>> import torch
    >>> examples = Tensors((torch.eye(3), torch.tensor([5, 6, 7])), torch.device("cpu"))
    >>> examples.n, examples.take(slice(2, 3))
    (3, (tensor([[0., 0., 1.]]), tensor([7])))
    """

    def __init__(self, data: Any, device: torch.device) -> None:
        if isinstance(data, TensorDataset):
            data = data.tensors
        if isinstance(data, Mapping):
            self.data: Any = {name: _tensor(part, f"data[{name!r}]", device) for name, part in data.items()}
            self.tensors = list(self.data.values())
        elif isinstance(data, (tuple, list)):
            self.data = tuple(_tensor(part, f"data[{k}]", device) for k, part in enumerate(data))
            self.tensors = list(self.data)
        else:
            self.data = _tensor(data, "data", device)
            self.tensors = [self.data]
        sizes = {len(tensor) for tensor in self.tensors}
        if len(sizes) != 1:
            raise ValueError(f"data must hold tensors of equal length, one row per example, got {sorted(sizes)}.")
        self.n = sizes.pop()
        self._left: _Left | None = None
        if self.n == 0:
            raise ValueError("data holds no examples; give at least one row.")

    def take(self, rows: slice | Tensor) -> Any:
        """A batch: some rows, by views where they are a slice."""
        if isinstance(rows, slice):
            return _mapped(lambda tensor: tensor[rows], self.data)
        return _mapped(lambda tensor: tensor.index_select(0, rows), self.data)

    def batches(self, rows: Rows, c: Tensor | None, size: int) -> Iterable[tuple[Any, Any]]:
        """The examples that count, ``size`` at a time, each with its c. Slices stay slices: they need no copies."""
        if rows is None and self.n <= size:
            return (self._all(c),)
        device = self.tensors[0].device
        if rows is None or isinstance(rows, slice):
            numbers: Any = range(self.n)[rows or slice(None)]
        else:
            numbers = torch.as_tensor(rows, dtype=torch.int64, device=device)
        if c is not None and not bool(c.all()):
            kept = torch.nonzero(c)[:, 0]
            c, numbers = c[kept], kept if rows is None else torch.as_tensor(numbers, device=device)[kept]
        return self._pieces(numbers, c, size)

    def _pieces(self, numbers: Any, c: Tensor | None, size: int) -> Iterator[tuple[Any, Any]]:
        size = ceil(len(numbers) / max(1, ceil(len(numbers) / size))) or 1  # batches of one size
        for start in range(0, len(numbers), size):
            piece = numbers[start : start + size]
            at = slice(piece.start, piece.stop, piece.step) if isinstance(piece, range) else piece
            yield self.take(at), None if c is None else c[start : start + size]

    def _all(self, c: Tensor | None) -> tuple[Any, Any]:
        """All examples that count as one batch. Between two w-steps c stays as it is, and so does what is left out."""
        if c is None:
            return self.data, None
        versions = [tensor._version for tensor in self.tensors]
        if self._left is not None and self._left.versions == versions and torch.equal(self._left.c, c):
            return self._left.batch, self._left.shares
        if bool(c.all()):
            return self.data, c
        kept = torch.nonzero(c)[:, 0]
        self._left = _Left(c.clone(), versions, self.take(kept), c[kept])
        return self._left.batch, self._left.shares

    def dimensions(self, dimension: int) -> Any:
        """The same number for every tensor, in the form of the data: what torch.func.vmap asks for."""
        return _mapped(lambda tensor: dimension, self.data)


def lengthen(batch: Any) -> Any:
    """One example as a batch of one."""
    return _mapped(lambda tensor: tensor[None], batch)


def _mapped(part: Callable[[Tensor], Any], data: Any) -> Any:
    """What ``part`` makes of each tensor, in the form of the data."""
    if isinstance(data, dict):
        return {name: part(tensor) for name, tensor in data.items()}
    return tuple(map(part, data)) if isinstance(data, tuple) else part(data)


def _tensor(part: Any, name: str, device: torch.device) -> Tensor:
    if isinstance(part, np.ndarray):
        part = torch.as_tensor(part, device=device)
    if isinstance(part, (Dataset, DataLoader)):
        raise ValueError(f"{name} must hold tensors, not a {type(part).__name__}: stack its examples by torch.stack.")
    if not isinstance(part, Tensor):
        raise ValueError(f"{name} must be a tensor with one row per example, got {type(part).__name__}.")
    if part.ndim == 0:
        raise ValueError(f"{name} must have one row per example, got a single number.")
    if part.device != device:
        raise ValueError(f"{name} lies on {part.device} and params on {device}; move one of them by .to(device).")
    return part.detach()
