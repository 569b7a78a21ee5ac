"""What the user's loss says: one number per example, and, where targets are labels, one for every class.

A loss of labels is read as a likelihood, p(label) ∝ exp(−loss): for cross-entropy that is what it is. Module, loss and
dataset are tried out on a few examples before a fit goes wrong: what fails is said in one sentence.

Products with few columns and softmax over few classes on a CPU, where PyTorch's own takes up to six times as long.

PyTorch computes along the rows of a matrix by whole vectors of a processor, and entry by entry where rows are shorter
than one. Along the columns of the transposed matrix it computes the same numbers by whole vectors. So do products
V @ W of few columns: (Wᵀ @ Vᵀ)ᵀ takes half the time, and lies in memory as such a softmax wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from trimlearn._utils.warn import warn
from trimlearn.torch.data import Batch, NumberedExamples
from trimlearn.torch.recipe import evaluating
from trimlearn.torch.targets import LOSSES_ALONE, Labels, find_labels, looks_like_labels

SHORT = 16  # columns: float32 numbers in the widest vectors of a CPU; with as many PyTorch's own is faster, measured
PRECISIONS = (torch.float32, torch.float64)  # those in which the core computes
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


LossFunction = Callable[[Any, Any], Tensor]

CLOSE = 1e-4  # relative: a loss that agrees with cross-entropy this well in float32 is cross-entropy
PROBE = 32  # examples on which module and loss are tried out


def forward(module: nn.Module, x: Any) -> Any:
    """module(x); a tuple is its arguments, a mapping its arguments by name."""
    if isinstance(x, Mapping):
        return module(**x)
    return module(*x) if isinstance(x, (tuple, list)) else module(x)


@final
class Criterion:
    """The loss of each example by the user's own function, and of each class where there are labels."""

    def __init__(self, loss_fn: LossFunction) -> None:
        if not callable(loss_fn):
            raise TypeError(f"loss_fn must be callable as loss_fn(output, target), got {type(loss_fn).__name__}.")
        self.loss_fn = loss_fn
        self.cross_entropy = False  # whether the loss of every class is −log_softmax(output)

    def losses(self, output: Any, y: Any, n: int) -> Tensor:
        """One loss per example; an error that names the fix where there is one for all."""
        return self.check(self.loss_fn(output, y), n)

    @staticmethod
    def check(f: Any, n: int) -> Tensor:
        """What loss_fn returned for n examples, one number for each."""
        if not isinstance(f, Tensor):
            raise TypeError(f"loss_fn must return a tensor with one loss per example, got {type(f).__name__}.")
        if f.ndim == 0 or f.shape[0] != n:
            raise ValueError(
                f"loss_fn must return one loss per example, {n} here, got "
                f"{'a single number' if f.ndim == 0 else f'the shape {tuple(f.shape)}'}: give reduction='none'."
            )
        if f.ndim > 1:
            if f.numel() != n:
                raise ValueError(
                    f"loss_fn must return one loss per example, got the shape {tuple(f.shape)}: take the mean over "
                    "all but the first dimension, as in lambda out, y: mse(out, y).flatten(1).mean(1)."
                )
            f = f.reshape(n)
        losses: Tensor = f
        return losses

    def class_losses(self, output: Tensor, values: Tensor, like: Tensor) -> Tensor:
        """The loss that each example would have with each of the labels, (n, K)."""
        if self.cross_entropy:
            return -log_softmax(output.float())
        n = len(like)
        each = [self.losses(output, value.to(like).expand(like.shape), n) for value in values]
        return torch.stack(each, dim=1)

    def learn_form(self, output: Any, values: Tensor, like: Tensor) -> None:
        """See whether the loss is cross-entropy, whose classes cost no more than one."""
        K = len(values)
        numbered = not values.is_floating_point() and torch.equal(values, torch.arange(K).to(values.dtype))
        one_hot = values.ndim == 2 and torch.equal(values, torch.eye(K, dtype=values.dtype))
        if not (numbered or one_hot) or not isinstance(output, Tensor) or output.shape != (len(like), len(values)):
            return
        ours = -log_softmax(output.float())
        theirs = self.class_losses(output[:8], values, like[:8])
        self.cross_entropy = bool(torch.allclose(ours[:8], theirs.float(), rtol=CLOSE, atol=CLOSE))


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
