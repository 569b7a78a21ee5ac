"""What a loss is made of: the parameters of a model as one flat tensor x, and examples as tensors whose first dimension
counts them.

Products with few columns and softmax over few classes on a CPU, where PyTorch's own takes up to six times as long.

PyTorch computes along the rows of a matrix by whole vectors of a processor, and entry by entry where rows are shorter
than one. Along the columns of the transposed matrix it computes the same numbers by whole vectors. So do products
V @ W of few columns: (Wᵀ @ Vᵀ)ᵀ takes half the time, and lies in memory as such a softmax wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader, Dataset, TensorDataset

from trimlearn.losses.storage import Rows

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


SHORT = 16  # columns: float32 numbers in the widest vectors of a CPU; with as many PyTorch's own is faster, measured
KEPT = ("weight", "ignore_index", "reduction")  # options of cross_entropy that nll_loss has too
LONG = 256  # rows from which on the two transpositions pay, measured: 0.09 against 0.06 ms at 256 × 10, forth and back


def log_softmax(z: Tensor) -> Tensor:
    """log_softmax(z, dim=1) of a matrix.

    >>> z = torch.randn(300, 3)
    >>> bool(torch.allclose(log_softmax(z), z.log_softmax(1), atol=1e-6))
    True
    """
    if not _short(z):
        return torch.log_softmax(z, 1)
    return torch.log_softmax(z.t().contiguous(), 0).t()


@final
class ShortRows(TorchFunctionMode):
    """While it is entered, matrices with few columns are computed by columns: products, log_softmax, cross_entropy.

    They have the same numbers but lie in memory column by column, so that ``view`` in a shape across rows may fail.

    Examples
    --------
    >>> z, t = torch.randn(300, 3), torch.arange(300) % 3
    >>> with ShortRows():
    ...     f = functional.cross_entropy(z, t, reduction="none")
    >>> bool(torch.allclose(f, functional.cross_entropy(z, t, reduction="none"), atol=1e-6))
    True
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        other = _OTHERS.get(func)
        if other is not None and args and _long(args[0]):
            found = other(*args, **kwargs) if kwargs else other(*args)
            if found is not None:
                return found
        return func(*args, **kwargs) if kwargs else func(*args)


def _long(z: Any) -> bool:
    if not isinstance(z, Tensor) or not z.is_cpu or z.dtype not in PRECISIONS:
        return False
    shape = z.shape
    return len(shape) == 2 and shape[0] >= LONG


def _short(z: Tensor) -> bool:
    return _long(z) and z.shape[1] < SHORT


def _linear(z: Tensor, weight: Any, bias: Any = None) -> Tensor | None:
    if not isinstance(weight, Tensor) or weight.ndim != 2 or not 1 < weight.shape[0] < SHORT:
        return None
    if bias is None:
        return (weight @ z.t()).t()
    return torch.addmm(bias[:, None], weight, z.t()).t() if bias.ndim == 1 else None


def _matmul(z: Tensor, other: Any) -> Tensor | None:
    narrow = isinstance(other, Tensor) and other.ndim == 2 and 1 < other.shape[1] < SHORT
    return (other.t() @ z.t()).t() if narrow else None


def _log_softmax(z: Tensor, dim: Any = None, *rest: Any, **options: Any) -> Tensor | None:
    plain = _short(z) and dim in (1, -1) and not rest and options.get("dtype") is None
    return log_softmax(z) if plain else None


def _cross_entropy(z: Tensor, target: Any, *rest: Any, **options: Any) -> Tensor | None:
    """None where targets are no classes, or an option is not known here."""
    labels = isinstance(target, Tensor) and target.ndim == 1 and not target.is_floating_point()
    old = options.get("size_average") is not None or options.get("reduce") is not None
    if rest or not labels or old or options.get("label_smoothing") or z.shape[1] >= SHORT:
        return None
    same = {name: options[name] for name in KEPT if name in options}
    return functional.nll_loss(torch.log_softmax(z.t().contiguous(), 0).t(), target, **same)


_OTHERS: dict[Any, Callable[..., Tensor | None]] = {
    functional.log_softmax: _log_softmax,
    torch.log_softmax: _log_softmax,
    Tensor.log_softmax: _log_softmax,
    functional.cross_entropy: _cross_entropy,
    functional.linear: _linear,
    torch.matmul: _matmul,
    torch.mm: _matmul,
    Tensor.matmul: _matmul,
    Tensor.mm: _matmul,
    Tensor.__matmul__: _matmul,
}
