"""Products with few columns and softmax over few classes on a CPU, where PyTorch's own takes up to six times as long.

PyTorch computes along the rows of a matrix by whole vectors of a processor, and entry by entry where rows are shorter
than one. Along the columns of the transposed matrix it computes the same numbers by whole vectors. So do products
V @ W of few columns: (Wᵀ @ Vᵀ)ᵀ takes half the time, and lies in memory as such a softmax wants it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from trimlearn.torch.parameters import PRECISIONS

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
