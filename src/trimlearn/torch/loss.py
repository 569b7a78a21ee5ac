"""Any function that gives one loss per example, as the fᵢ of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from math import ceil
from typing import Any, final
from warnings import catch_warnings, filterwarnings

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import grad, vjp, vmap

from trimlearn._utils.arrays import Array, asarray_like, to_numpy
from trimlearn._utils.validation import check_count
from trimlearn._utils.warn import warn
from trimlearn.losses.base import Loss
from trimlearn.losses.storage import Rows
from trimlearn.torch.parameters import Parameters, Stateless
from trimlearn.torch.short_rows import ShortRows
from trimlearn.torch.tensors import Tensors, lengthen
from trimlearn.torch.trial import memory, rows_at_a_time, try_out

DIRECTIONS = 32  # columns of a Hessian that are found together: a limit on memory, as each has activations of its own

Fn = Callable[[Any, Any], Tensor]


@final
class TorchLoss(Loss):
    """The losses fn(params, batch) of n examples as functions of one flat tensor x, differentiated by PyTorch.

    With it every method of `trimlearn.smart` that needs no table of duals, every weight set and every regularizer work
    for any differentiable model. Where x = (all parameters), `params` reads it back. Examples of weight 0 are left out
    of the batches that fn sees, so that their NaN poisons nothing.

    Parameters
    ----------
    fn : callable
        fn(params, batch) gives one loss per example, of shape (m,), each of its own example alone: no dropout, no batch
        norm in training mode. It must compute with the params that it is handed: a module by
        ``torch.func.functional_call(module, params, inputs)``, for which there is `of_module`.
    params : Tensor, dict of tensors, nn.Module or list of tensors
        Where to start, in float32 or float64, and the form in which fn is handed them: of a module a dict by name of
        those parameters that require gradients.
    data : Tensor, tuple or dict of tensors, or TensorDataset
        One row per example, on the device of the params. Batches have the same form.
    lipschitz : float or array of shape (n,), optional
        The Lipschitz constants of the gradients, which ``step="theory"`` alone asks for.
    batch_size : int, optional
        How many examples fn sees at a time. None: as many as keep what PyTorch stores for the gradient below 4 MB
        on a CPU, where 256 may take up to 256 MB, and below 1 GB elsewhere; it is measured on four examples.

    Attributes
    ----------
    n : int
        How many examples there are.
    x_shape : tuple of int
        (number of parameters,).
    like : Tensor
        The params as given, flat: where a solver starts.
    batch_size : int
        How many examples fn sees at a time.

    See Also
    --------
    trimlearn.torch.trim : Train a module, and find its wrong examples.

    Examples
    --------
    A line through points of which three are wild, by a loss of one's own:

    >>> import torch
    >>> from trimlearn import Problem, solve
    >>> from trimlearn.weights import CappedSimplex
    >>> u = torch.linspace(0, 1, 20, dtype=torch.float64)
    >>> t = 3 * u + 1
    >>> t[:3] = 50.0
    >>> def fn(params, batch):
    ...     u, t = batch
    ...     return torch.log(torch.cosh(params["a"] * u + params["b"] - t))
    >>> start = {"a": torch.zeros(1, dtype=torch.float64), "b": torch.zeros(1, dtype=torch.float64)}
    >>> loss = TorchLoss(fn, start, (u, t))
    >>> solution = solve(Problem(loss, CappedSimplex(17)))
    >>> {name: round(float(value), 4) for name, value in loss.params(solution.x).items()}
    {'a': 3.0, 'b': 1.0}
    >>> solution.w[:3]
    tensor([0., 0., 0.], dtype=torch.float64)
    """

    def __init__(self, fn: Fn, params: Any, data: Any, *, lipschitz: Any = None, batch_size: int | None = None) -> None:
        if not callable(fn):
            raise ValueError(f"fn must be a function of (params, batch), got {type(fn).__name__}.")
        self._fn, self._layout = fn, Parameters(params)
        self.like = self._layout.start
        self._examples = Tensors(data, self.like.device)
        self.n, self.x_shape = self._examples.n, tuple(self.like.shape)
        self._lipschitz = None if lipschitz is None else _constants(lipschitz, self.n, self.like)
        self._by_columns = self.like.device.type == "cpu"
        size = self._try_out()
        self.batch_size = rows_at_a_time(size, self.like.device) if batch_size is None else batch_size
        check_count(self.batch_size, "batch_size")

    @classmethod
    def of_module(cls, module: nn.Module, loss_fn: Callable[..., Tensor], data: Any, **options: Any) -> TorchLoss:
        """The losses loss_fn(module(inputs), *targets) of a module in evaluation mode.

        Parameters
        ----------
        module : nn.Module
            The model. It is copied; ``module.load_state_dict(loss.params(x), strict=False)`` brings x into it.
        loss_fn : callable
            One loss per example of outputs and targets, as ``nn.CrossEntropyLoss(reduction="none")`` gives.
        data : tuple of tensors
            The inputs, then what loss_fn is handed beside the outputs.
        **options : int, float or array
            ``lipschitz`` and ``batch_size``.

        Returns
        -------
        TorchLoss
            Its x is all parameters of the module that require gradients.

        Examples
        --------
        >>> import torch
        >>> module = torch.nn.Linear(2, 3)
        >>> data = torch.ones(5, 2), torch.tensor([0, 1, 2, 0, 1])
        >>> loss = TorchLoss.of_module(module, torch.nn.CrossEntropyLoss(reduction="none"), data)
        >>> loss.n, loss.x_shape, sorted(loss.params(loss.start()))
        (5, (9,), ['bias', 'weight'])
        """
        if not isinstance(module, nn.Module):
            raise ValueError(f"module must be an nn.Module, got {type(module).__name__}.")
        if not isinstance(data, (tuple, list)) or not data:
            raise ValueError("data must be a tuple of tensors: the inputs, then the targets.")
        fixed = deepcopy(module).eval()
        call = Stateless(fixed)

        def fn(params: Any, batch: Any) -> Tensor:
            return loss_fn(call(params, batch[0]), *batch[1:])

        return cls(fn, fixed, data, **options)

    def params(self, x: Any) -> Any:
        """The flat x in the form in which the params were given: a dict of tensors, say.

        Parameters
        ----------
        x : array of shape (number of parameters,)
            The model, as `trimlearn.solve` returns it.

        Returns
        -------
        Tensor, dict or list
            Views of x.

        Examples
        --------
        >>> import torch
        >>> loss = TorchLoss(lambda p, u: (p["a"] - u) ** 2, {"a": torch.zeros(1)}, torch.ones(3))
        >>> loss.params(torch.tensor([2.0]))
        {'a': tensor([2.])}
        """
        return self._layout.split(asarray_like(x, self.like))

    def start(self) -> Array:
        """The params as given: for a network zero is no place to start from."""
        return self.like.clone()

    def without_loss(self) -> Array | None:
        """The examples whose loss is NaN or infinite where the fit starts: they are trimmed first, and for good."""
        bad = ~torch.isfinite(self.values(self.like))
        count = int(bad.sum())
        if count == self.n:
            raise ValueError(f"all {self.n} losses are NaN or infinite at the params given; check them and the data.")
        if count:
            warn(f"{count} of {self.n} examples have a NaN or infinite loss at the params given: they get weight 0.")
        return bad if count else None

    # -- what a solver asks -------------------------------------------------------------------------------------------

    def values(self, x: Array, rows: Rows = None) -> Array:
        with torch.no_grad():
            handed = self._layout.handed(x)
            parts = [self._fast(handed, batch) for batch, _ in self._batches(rows, None)]
        return torch.cat(parts) if parts else self.like.new_zeros(0)

    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        return self.value_gradient(x, c, rows)[1]

    def value_gradient(self, x: Array, c: Array, rows: Rows = None) -> tuple[float, Array]:
        value = total = None
        handed, leaves = self._layout.leaves(x)
        for batch, shares in self._batches(rows, c):
            with torch.enable_grad():
                f = self._fast(handed, batch)
            part = self._layout.join(torch.autograd.grad(f, leaves, shares, allow_unused=True))
            total = part if total is None else total.add_(part)
            mass = (f.detach() * shares).sum(dtype=torch.float64)
            value = mass if value is None else value.add_(mass)
        if value is None or total is None:
            return 0.0, torch.zeros_like(self.like)
        return float(value), total

    def hessp(self, x: Array, u: Array, c: Array, rows: Rows = None) -> Array:
        """Σ cᵢ ∇²fᵢ(x) u: the gradient differentiated again, or differences of it where an operation forbids that."""
        total = torch.zeros_like(self.like)
        for batch, shares in self._batches(rows, c):
            try:
                total += self._pullback(x, batch, shares)(u)[0]
            except (RuntimeError, NotImplementedError) as error:
                _raise_for_memory(error)
                return super().hessp(x, u, c, rows)
        return total

    def hessian(self, x: Array, c: Array) -> np.ndarray:
        total = self.like.new_zeros((len(self.like), len(self.like)), dtype=torch.float64)
        identity = torch.eye(len(self.like), dtype=self.like.dtype, device=self.like.device)
        for batch, shares in self._batches(None, c, ceil(self.batch_size / DIRECTIONS)):
            try:
                with _loops_allowed():
                    total += vmap(self._pullback(x, batch, shares), chunk_size=DIRECTIONS)(identity)[0]
            except (RuntimeError, NotImplementedError) as error:
                _raise_for_memory(error)
                return super().hessian(x, c)
        return to_numpy(0.5 * (total + total.T))

    def gradients(self, x: Array, rows: Rows = None) -> Array:
        """∇fᵢ(x) one by one, (m, number of parameters): by vmap, or in a loop where an operation cannot be batched."""
        one = grad(lambda at, example: self._losses(at, lengthen(example))[0])
        several = vmap(one, in_dims=(None, self._examples.dimensions(0)))
        size = min(self.batch_size, max(1, memory(self.like.device) // (len(self.like) * self.like.element_size())))
        try:
            with _loops_allowed():
                parts = [several(x, batch) for batch, _ in self._batches(rows, None, size)]
        except (RuntimeError, NotImplementedError) as error:
            _raise_for_memory(error)
            return super().gradients(x, rows)
        return torch.cat(parts) if parts else self.like.new_zeros((0, len(self.like)))

    def lipschitz(self) -> Array:
        if self._lipschitz is None:
            raise ValueError(
                "step='theory' needs the Lipschitz constants of this TorchLoss: give it lipschitz=…, or use 'auto'."
            )
        return self._lipschitz

    # -- examples, a batch at a time -----------------------------------------------------------------------------------

    def _losses(self, x: Tensor, batch: Any) -> Tensor:
        return self._raw(x, batch).to(self.like.dtype)

    def _fast(self, params: Any, batch: Any) -> Tensor:
        """The losses with params as fn is handed them; narrow matrices by columns, unless fn cannot do with these."""
        if self._by_columns:
            try:
                with ShortRows():
                    f = self._fn(params, batch)
                return f.to(self.like.dtype)
            except RuntimeError as error:
                _raise_for_memory(error)
                self._by_columns = False
        return self._fn(params, batch).to(self.like.dtype)

    def _raw(self, x: Tensor, batch: Any) -> Tensor:
        return self._fn(self._layout.handed(x), batch)

    def _try_out(self) -> float:
        try:
            return try_out(self._raw, self._layout, self._examples)
        except RuntimeError:
            if not self._layout.by_columns:
                raise
        self._layout.by_columns = False  # fn may view its params in another shape, which these do not allow
        return try_out(self._raw, self._layout, self._examples)

    def _pullback(self, x: Tensor, batch: Any, shares: Tensor) -> Callable[[Tensor], tuple[Tensor]]:
        """u ↦ Hu, H the Hessian of Σ cᵢfᵢ over a batch: what pulls back through its gradient, as H is symmetric."""

        def weighted(at: Tensor) -> Tensor:
            return self._losses(at, batch) @ shares

        pull: Callable[[Tensor], tuple[Tensor]] = vjp(grad(weighted), x)[1]
        return pull

    def _batches(self, rows: Rows, c: Array | None, size: int | None = None) -> Iterable[tuple[Any, Any]]:
        shares = None if c is None else asarray_like(c, self.like)
        return self._examples.batches(rows, shares, self.batch_size if size is None else size)


def _constants(lipschitz: Any, n: int, like: Tensor) -> Array:
    L = asarray_like(lipschitz, like)
    if tuple(L.shape) not in ((), (n,)) or not bool(torch.all(L >= 0)):
        raise ValueError(f"lipschitz must be a number >= 0 or {n} of them, got shape {tuple(L.shape)}.")
    return L.expand(n)


@contextmanager
def _loops_allowed() -> Iterator[None]:
    """Without PyTorch's warning that an operation, an LSTM's say, is not batched but looped over: it is right."""
    with catch_warnings():
        filterwarnings("ignore", "There is a performance drop because we have not yet implemented the batching rule")
        yield


def _raise_for_memory(error: BaseException) -> None:
    """Out of memory is no reason to go another, slower way."""
    if isinstance(error, torch.cuda.OutOfMemoryError):
        raise error
