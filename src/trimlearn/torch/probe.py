"""Module, loss and dataset tried out on a few examples before a fit goes wrong: what fails is said in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trimlearn._utils.warn import warn
from trimlearn.torch.criterion import Criterion, forward
from trimlearn.torch.data import Batch, NumberedExamples
from trimlearn.torch.modes import evaluating
from trimlearn.torch.targets import LOSSES_ALONE, Labels, find_labels, looks_like_labels

PROBE = 32  # examples on which module and loss are tried out


def try_examples(
    module: nn.Module, criterion: Criterion, examples: NumberedExamples, wanted: bool | None
) -> Labels | None:
    """ValueError where the first examples do not go through; else what labels there are (`find_labels`)."""
    batch = _first(examples)
    with evaluating(module):
        output = _output(module, batch.x)
        _check_loss(criterion, output, batch)
        labels = None if wanted is False else find_labels(examples.targets(), output, wanted)
        if labels is not None:
            criterion.learn_form(output, labels.values, batch.y)
        elif wanted is None:
            _doubt_parts(batch.y, output)
    return labels


def _first(examples: NumberedExamples) -> Batch:
    try:
        return next(examples.batches([torch.arange(min(PROBE, examples.n))]))
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"dataset: its first examples cannot be put into a batch ({_line(error)}): give collate_fn=, which pads "
            "sequences to one length, say, or turns text into numbers."
        ) from error


def _output(module: nn.Module, x: Any) -> Any:
    try:
        return forward(module, x)
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        kinds = {p.dtype for p in module.parameters() if p.is_floating_point()}
        given = {t.dtype for t in _tensors(x) if t.is_floating_point()}
        if given and kinds and not given <= kinds:
            names = " and ".join(", ".join(sorted(map(str, some))) for some in (given, kinds))
            raise ValueError(f"inputs and module are of different types, {names}: convert one, by .to(…).") from error
        whole = isinstance(x, Tensor) and not x.is_floating_point() and "dtype" in str(error)
        hint = "; convert the inputs by .float()" if whole else ""
        raise ValueError(f"the module cannot be called with {_called(x)}: {_line(error)}{hint}.") from error


def _called(x: Any) -> str:
    if isinstance(x, Mapping):
        return f"the entries {', '.join(map(str, x))} of an example as its arguments by name"
    if isinstance(x, (tuple, list)):
        return f"{len(x)} arguments, all parts of an example but the last, which is the target"
    return f"the inputs, {_form(x)}"


def _doubt_parts(y: Any, output: Any) -> None:
    """Warn where targets are made of several parts of which one looks like labels."""
    if not isinstance(y, Tensor) and any(looks_like_labels(part, output) for part in _tensors(y)):
        warn(
            f"the targets have several parts, of which one looks like labels, {LOSSES_ALONE}: give the labels alone as "
            "targets to have them judged, or say labels=False."
        )


def _check_loss(criterion: Criterion, output: Any, batch: Batch) -> None:
    m = len(batch.rows)
    try:
        f = criterion.loss_fn(output, batch.y)
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        classes = "; number the classes from 0, and give the module a column for each"
        hint = classes if isinstance(error, IndexError) else ""
        raise ValueError(
            f"loss_fn failed with the output, {_form(output)}, and the targets, {_form(batch.y)}: {_line(error)}{hint}."
        ) from error
    tensors = isinstance(output, Tensor) and isinstance(batch.y, Tensor)
    if tensors and isinstance(f, Tensor) and f.ndim > 1 and f.numel() > max(output.numel(), batch.y.numel()):
        _complain(output, batch.y)
    criterion.check(f, m)
    if m < 2 or not tensors or len(output) != m:
        return
    half = m // 2
    alone = criterion.loss_fn(output[:half], batch.y[:half])
    if isinstance(alone, Tensor) and alone.numel() == half and not _same(f.reshape(m)[:half], alone.reshape(half)):
        _complain(output, batch.y)


def _complain(output: Tensor, y: Tensor) -> None:
    """About a loss of an example that depends on the others."""
    if output.shape != y.shape and output.numel() == y.numel():
        raise ValueError(
            f"loss_fn compares every output with every target, as the output is {tuple(output.shape)} and the targets "
            f"are {tuple(y.shape)}: bring them into one shape, by target.view_as(output), say."
        )
    warn(
        "loss_fn gives an example another loss where other examples are beside it: weights and scores are then not "
        "those of one example."
    )


def _same(a: Tensor, b: Tensor) -> bool:
    """Up to rounding in the less precise of the two, and NaN like NaN."""
    eps = max(torch.finfo(t.dtype).eps for t in (a, b) if t.is_floating_point())
    scale = float(a.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
    return torch.allclose(a.double(), b.double(), rtol=eps**0.5, atol=eps**0.5 * scale, equal_nan=True)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in _tensors(part)]
    return [value] if isinstance(value, Tensor) else []


def _form(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, (list, tuple)) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    return f"a {type(value).__name__}"


def _line(error: BaseException) -> str:
    """The first line of what it says, without a full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
