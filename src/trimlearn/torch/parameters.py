"""The parameters of a model as one flat tensor x, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

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
