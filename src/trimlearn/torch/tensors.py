"""What a loss is made of: the parameters of a model as one flat tensor x, and examples as tensors whose first dimension
counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from trimlearn.losses.storage import Rows

__all__ = ["Parameters", "Stateless", "Tensors", "lengthen"]

PRECISIONS = (torch.float32, torch.float64)  # those in which the core computes
TALL = 4  # rows per column from which a CPU multiplies by a matrix laid out by columns up to 4 times faster: measured


@final
class Parameters:
    """How the tensors of a model lie in one flat tensor.

    Parameters
    ----------
    params : Tensor, mapping, nn.Module or iterable of tensors
        What is flattened. Of a module those of its parameters that require gradients, by name.

    Examples
    --------
    >>> import torch
    >>> layout = Parameters({"a": torch.ones(2), "b": torch.zeros(1, 2)})
    >>> layout.start
    tensor([1., 1., 0., 0.])
    >>> layout.split(torch.arange(4.0))
    {'a': tensor([0., 1.]), 'b': tensor([[2., 3.]])}
    """

    def __init__(self, params: Any) -> None:
        self._names: list[Any] | None = None  # None: one tensor, or a list of them
        self._alone = isinstance(params, Tensor)
        if isinstance(params, nn.Module):
            params = {name: p for name, p in params.named_parameters() if p.requires_grad}
        if isinstance(params, Mapping):
            self._names, tensors = list(params), list(params.values())
        elif isinstance(params, Tensor):
            tensors = [params]
        elif isinstance(params, Iterable) and not isinstance(params, str):
            tensors = list(params)
        else:
            raise ValueError(f"params must be a tensor, a dict of tensors or a module, got {type(params).__name__}.")
        _check(tensors, self._names)
        self.shapes = [t.shape for t in tensors]
        self.sizes = [t.numel() for t in tensors]
        self.by_columns = any(map(_tall, self.shapes))
        self.start = torch.cat([t.detach().reshape(-1) for t in tensors])  # a copy: steps leave the user's as they are

    def split(self, x: Tensor) -> Any:
        """The tensors as views of x, in the form in which they were given."""
        return self._form(self._views(x))

    def handed(self, x: Tensor) -> Any:
        """The same for fn to compute with: tall matrices may lie in memory column by column."""
        return self._form(self._laid_out(x))

    def leaves(self, x: Tensor) -> tuple[Any, list[Tensor]]:
        """What fn is handed, and the tensors in it, by each of which alone PyTorch differentiates: a derivative by x
        itself would go back through every view of it."""
        parts = [part.requires_grad_() for part in self._laid_out(x.detach())]
        return self._form(parts), parts

    def join(self, slopes: Sequence[Tensor | None]) -> Tensor:
        """The derivatives by all of them as one by x; None counts as zero."""
        flat = [
            self.start.new_zeros(size) if slope is None else slope.reshape(-1)
            for slope, size in zip(slopes, self.sizes, strict=True)
        ]
        return torch.cat(flat)

    def _laid_out(self, x: Tensor) -> list[Tensor]:
        parts = self._views(x)
        if self.by_columns and x.device.type == "cpu":
            return [_by_columns(part) if _tall(part.shape) else part for part in parts]
        return parts

    def _views(self, x: Tensor) -> list[Tensor]:
        if tuple(x.shape) != (len(self.start),):
            raise ValueError(f"x must have shape {(len(self.start),)}, got {tuple(x.shape)}.")
        return [part.view(shape) for part, shape in zip(torch.split(x, self.sizes), self.shapes, strict=True)]

    def _form(self, parts: list[Tensor]) -> Any:
        if self._names is not None:
            return dict(zip(self._names, parts, strict=True))
        return parts[0] if self._alone else parts


@final
class Stateless:
    """A module as a function of its parameters: `torch.func.functional_call` that looks names up once, not each time.

    Examples
    --------
    >>> import torch
    >>> call = Stateless(torch.nn.Linear(1, 1))
    >>> call({"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}, torch.tensor([[3.0]]))
    tensor([[7.]])
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        names = {id(p): name for name, p in module.named_parameters() if p.requires_grad}
        self._places = [  # a weight that two layers share is in both
            (owner._parameters, key, names[id(p)])
            for owner in module.modules()
            for key, p in owner._parameters.items()
            if id(p) in names
        ]

    def __call__(self, params: Mapping[str, Tensor], *inputs: Any) -> Any:
        before = [tensors[key] for tensors, key, _ in self._places]
        try:
            for tensors, key, name in self._places:
                tensors[key] = params[name]  # type: ignore[assignment]
            return self._module(*inputs)
        finally:
            for (tensors, key, _), tensor in zip(self._places, before, strict=True):
                tensors[key] = tensor


def _tall(shape: torch.Size) -> bool:
    return len(shape) == 2 and shape[1] > 1 and shape[0] >= TALL * shape[1]


def _by_columns(matrix: Tensor) -> Tensor:
    """The same numbers with columns that lie in one piece, as the weights of nn.Linear do seen from its inputs."""
    return matrix.t().contiguous().t()


def _check(tensors: list[Any], names: list[Any] | None) -> None:
    called = range(len(tensors)) if names is None else names
    for name, tensor in zip(called, tensors, strict=True):
        if not isinstance(tensor, Tensor):
            raise ValueError(f"params[{name!r}] must be a tensor, got {type(tensor).__name__}.")
    if sum(tensor.numel() for tensor in tensors) == 0:
        raise ValueError("params holds no numbers to fit; of a module, some parameters must require gradients.")
    kinds = sorted({str(tensor.dtype) for tensor in tensors})
    if len(kinds) > 1 or tensors[0].dtype not in PRECISIONS:
        raise ValueError(f"params must be all float32 or all float64, got {', '.join(kinds)}; convert by .float().")
    places = sorted({str(tensor.device) for tensor in tensors})
    if len(places) > 1:
        raise ValueError(f"params lie on several devices, {', '.join(places)}; move them to one by .to(device).")


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
        return self._map(lambda tensor: tensor[rows] if isinstance(rows, slice) else tensor.index_select(0, rows))

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
        return self._map(lambda tensor: dimension)

    def _map(self, part: Callable[[Tensor], Any]) -> Any:
        if isinstance(self.data, dict):
            return {name: part(tensor) for name, tensor in self.data.items()}
        return tuple(map(part, self.data)) if isinstance(self.data, tuple) else part(self.data)


def lengthen(batch: Any) -> Any:
    """One example as a batch of one."""
    if isinstance(batch, dict):
        return {name: tensor[None] for name, tensor in batch.items()}
    return tuple(tensor[None] for tensor in batch) if isinstance(batch, tuple) else batch[None]


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
