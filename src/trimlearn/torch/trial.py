"""A loss function tried out on a few examples, before a fit goes wrong: what it returns, and the memory it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from trimlearn._utils.warn import warn
from trimlearn.torch.parameters import Parameters
from trimlearn.torch.tensors import Tensors

TRIED = 4  # examples: two calls, on four and on two, tell what grows with them
NEAR = 0.1  # of 1 + |x|: enough to tell losses apart, and little enough to stay where fn is defined
MEMORY = {"cpu": 256 << 20}  # bytes that a batch may take for its gradient: a limit on memory
MEMORY_ELSEWHERE = 1 << 30  # the same on a GPU, which has tens of GB for one model and is idle where batches are small
CACHE = 4 << 20  # bytes: what a CPU need not read twice, a few MB a core; 2 to 6 MB were the fastest for softmax
FEW = 256  # examples in any case, if they fit: a small CNN takes 1.3 times as long with 64, and 1.6 times with 16
MOST = 65_536  # examples at a time: a limit on memory for whatever was not measured


def try_out(losses: Callable[[Tensor, Any], Tensor], layout: Parameters, examples: Tensors) -> float:
    """Raise ValueError, or warn, where fn is not what it must be; the bytes an example takes for its gradient."""
    few = min(TRIED, examples.n)
    x = _aside(layout.start).requires_grad_()
    batch = examples.take(slice(0, few))
    versions = [tensor._version for tensor in examples.tensors]
    f, bytes_few = _measured(losses, x, batch, layout, examples)
    if versions != [tensor._version for tensor in examples.tensors]:
        raise ValueError("fn changes its batch in place, and so the data; let it work on a copy, by .clone().")
    check_losses(f, few, "fn must return")
    _check_dependence(f, x)
    half = slice(few // 2, few)
    again, bytes_half = _measured(losses, x, examples.take(half), layout, examples)
    check_losses(again, few - few // 2, "fn must return")
    _compare(f.detach()[half], again.detach())
    return max(bytes_few - bytes_half, 0) / max(few // 2, 1)


def rows_at_a_time(size: float, device: torch.device) -> int:
    """As many examples as fit into memory at so many bytes each."""
    most = memory(device) / max(size, 1.0)
    if device.type == "cpu":
        most = min(most, max(CACHE / max(size, 1.0), FEW))
    return max(1, min(int(most), MOST))


def memory(device: torch.device) -> int:
    """The bytes that a batch may take."""
    return MEMORY.get(device.type, MEMORY_ELSEWHERE)


def check_losses(f: Any, m: int, what: str) -> Tensor:
    """One real loss for each of m examples."""
    if not isinstance(f, Tensor):
        raise ValueError(f"{what} one loss per example, a tensor, got {type(f).__name__}.")
    if tuple(f.shape) != (m,):
        fix = "use reduction='none'" if f.ndim == 0 else "sum or average over its other dimensions"
        raise ValueError(f"{what} one loss per example, shape {(m,)}, got {tuple(f.shape)}; {fix}.")
    if not f.is_floating_point():
        raise ValueError(f"{what} losses in floating point, got {f.dtype}.")
    return f


def _aside(x: Tensor) -> Tensor:
    """A point near x with nothing special about it: where all params are 0, losses may look alike."""
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype).to(x.device)
    return x + NEAR * (1 + x.abs()) * noise


def _measured(
    losses: Callable[[Tensor, Any], Tensor], x: Tensor, batch: Any, layout: Parameters, examples: Tensors
) -> tuple[Tensor, int]:
    """The losses, and the bytes PyTorch keeps for their gradient."""
    kept: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel() * tensor.element_size())
        return tensor

    try:
        with torch.enable_grad(), saved_tensors_hooks(pack, lambda tensor: tensor):
            return losses(x, batch), sum(kept)
    except Exception as error:
        floats = {str(t.dtype) for t in examples.tensors if t.is_floating_point()} - {str(x.dtype)}
        if floats:
            error.add_note(f"params are {x.dtype} and data {', '.join(sorted(floats))}: convert one, by .to(…).")
        raise


def _check_dependence(f: Tensor, x: Tensor) -> None:
    slope = torch.autograd.grad(f.sum(), x, allow_unused=True)[0] if f.requires_grad else None
    if slope is None:
        raise ValueError(
            "fn must compute its losses from the params it is handed, and these do not depend on them; call a module "
            "by torch.func.functional_call(module, params, inputs), and detach nothing."
        )


def _compare(together: Tensor, alone: Tensor) -> None:
    """Warn where a loss depends on more than its own example."""
    scale = float(together.nan_to_num(0.0, 0.0, 0.0).abs().max())
    tolerance = torch.finfo(together.dtype).eps ** 0.5
    if not torch.allclose(together, alone, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        warn(
            "fn gives an example another loss when other examples are beside it, or each time: dropout and batch norm "
            "do so in training mode. Call module.eval() first, else steps and weights are not those of one loss."
        )
