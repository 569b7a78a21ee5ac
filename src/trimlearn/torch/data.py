"""The examples of a dataset by their numbers: batches on the device, whatever the dataset is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from trimlearn._utils.validation import is_integer

RESIDENT = 0.25  # of the device's free memory: tensors up to this share are moved there once, the rest is the network's
NARROW = (torch.int8, torch.int16, torch.int32)  # types of targets that PyTorch's losses do not take: int64 instead
TARGETS = ("labels", "label", "targets", "target", "y")  # what an entry of an example is called that is its target
LOOKED_AT = 3  # examples read twice to see whether they come out the same: three coins that all fall alike are rare


@final
@dataclass(frozen=True)
class Batch:
    """Some examples, all on the device: their numbers, what the module is given, and what the loss compares with."""

    rows: Tensor  # int64
    x: Any
    y: Any


class NumberedExamples(ABC):
    """A dataset of n examples that can be read by number, in any order and more than once."""

    random = False  # whether an example comes out differently each time, because it is augmented

    def __init__(self, n: int, device: torch.device) -> None:
        self.n = n
        self.device = device

    @abstractmethod
    def batches(self, groups: Sequence[Tensor]) -> Iterator[Batch]:
        """The examples of each group of row numbers, group by group."""

    @abstractmethod
    def targets(self) -> Any:
        """All y on the CPU, one entry per example; None where they are no tensor of numbers."""

    def table(self) -> np.ndarray | None:
        """All x as a table of numbers (n, p); None where they are none."""
        return None


@final
class TensorExamples(NumberedExamples):
    """Tensors of n rows each: a batch is an index into them, on the device where there is room."""

    def __init__(self, tensors: Sequence[Tensor], device: torch.device) -> None:
        super().__init__(len(tensors[0]), device)
        self.tensors = [tensor.to(device) if _fits(tensors, device) else tensor for tensor in tensors]

    def batches(self, groups: Sequence[Tensor]) -> Iterator[Batch]:
        there = torch.split(torch.cat(list(groups)).to(self.tensors[0].device), [len(rows) for rows in groups])
        for rows in there:
            parts = [tensor[rows].to(self.device) for tensor in self.tensors]
            yield Batch(rows.to(self.device), *_inputs_and_target(parts))

    def targets(self) -> Any:
        return self.tensors[-1].detach().cpu() if len(self.tensors) > 1 else None

    def table(self) -> np.ndarray | None:
        x = self.tensors[0]
        flat = len(self.tensors) == 2 and x.ndim == 2 and x.dtype.is_floating_point
        return x.detach().cpu().double().numpy() if flat else None


@final
class LoadedExamples(NumberedExamples):
    """Any map-style dataset, read by a DataLoader with as many workers as wanted."""

    def __init__(
        self,
        dataset: Any,
        device: torch.device,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        super().__init__(len(dataset), device)
        self.dataset, self.num_workers = dataset, num_workers
        self.collate = default_collate if collate_fn is None else collate_fn
        few = range(min(self.n, LOOKED_AT))
        self.random = not _same([dataset[i] for i in few], [dataset[i] for i in few])

    def batches(self, groups: Sequence[Tensor]) -> Iterator[Batch]:
        loader = DataLoader(
            self.dataset,
            batch_sampler=[rows.tolist() for rows in groups],
            num_workers=self.num_workers,
            collate_fn=self.collate,
            pin_memory=self.device.type == "cuda",
        )
        for rows, batch in zip(groups, loader, strict=True):
            parts = list(batch) if isinstance(batch, (list, tuple)) else [batch]
            x, y = _inputs_and_target(parts)
            yield Batch(rows.to(self.device), to_device(x, self.device), to_device(y, self.device))

    def targets(self) -> Any:
        found = []
        for batch in self.batches([torch.arange(i, min(i + 1024, self.n)) for i in range(0, self.n, 1024)]):
            if not isinstance(batch.y, Tensor):
                return None
            found.append(batch.y.detach().cpu())
        return torch.cat(found)


def examples_of(
    dataset: Any,
    device: torch.device,
    num_workers: int = 0,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    dtype: torch.dtype | None = None,
) -> NumberedExamples:
    """The examples of a dataset: a map-style Dataset, one tensor, or a tuple of tensors or arrays, the target last.

    dtype: what arrays of float64 become; None: PyTorch's default.
    """
    if isinstance(dataset, (Tensor, np.ndarray)):
        dataset = (dataset,)
    if isinstance(dataset, TensorDataset):
        dataset = dataset.tensors
    if _is_columns(dataset):
        tensors = [_as_tensor(a, dtype or torch.get_default_dtype()) for a in dataset]
        if len(tensors) > 1 and tensors[-1].dtype in NARROW:
            tensors[-1] = tensors[-1].long()
        lengths = [len(tensor) if tensor.ndim else 0 for tensor in tensors]
        if len(set(lengths)) > 1:
            raise ValueError(f"dataset: its tensors must have one row per example each, got {lengths} rows.")
        if lengths[0] < 1:
            raise ValueError("dataset is empty: there is nothing to fit.")
        return TensorExamples(tensors, device)
    if isinstance(dataset, Mapping):
        raise TypeError(
            "dataset must be a tuple of tensors or a Dataset, not a dict: give (dataset['x'], dataset['y']), say, the "
            "target last."
        )
    if isinstance(dataset, DataLoader):
        raise TypeError("dataset must be the dataset itself, not a DataLoader: give loader.dataset, and batch_size=.")
    if isinstance(dataset, IterableDataset) or not _has_length(dataset):
        raise TypeError(
            f"dataset must have a length and be read by number, so that every example has a weight; "
            f"{type(dataset).__name__} has none. Give a map-style Dataset or tensors, or list(dataset) if that fits."
        )
    if len(dataset) < 1:
        raise ValueError("dataset is empty: there is nothing to fit.")
    return LoadedExamples(dataset, device, num_workers, collate_fn)


def to_device(value: Any, device: torch.device) -> Any:
    """Tensors, and what mappings and sequences hold of them, on the device."""
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, Mapping):
        return {name: to_device(part, device) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_device(part, device) for part in value]
    return value


def _inputs_and_target(parts: list[Any]) -> tuple[Any, Any]:
    """x and y: the last part is the target; an example of one part is its own, as an autoencoder wants it.

    Of a mapping the entry that is called so is the target.
    """
    if len(parts) == 1:
        named = [name for name in TARGETS if isinstance(parts[0], Mapping) and name in parts[0]]
        if not named:
            return parts[0], parts[0]
        rest = {name: part for name, part in parts[0].items() if name != named[0]}
        return (next(iter(rest.values())) if len(rest) == 1 else rest), parts[0][named[0]]
    return (parts[0] if len(parts) == 2 else tuple(parts[:-1])), parts[-1]


def _is_columns(dataset: Any) -> bool:
    """Whether the dataset is a tuple of parts with a row per example each, and not a sequence of examples."""
    if not isinstance(dataset, (tuple, list)) or not dataset:
        return False
    if all(isinstance(a, (Tensor, np.ndarray)) for a in dataset):
        return True
    tables = (Tensor, np.ndarray, list) if isinstance(dataset, tuple) else (Tensor, np.ndarray)
    return isinstance(dataset, tuple) and all(isinstance(a, tables) or _is_frame(a) for a in dataset)


def _is_frame(a: Any) -> bool:
    """Whether it is pandas' or the like: a table that NumPy can read."""
    return not isinstance(a, (str, bytes, np.generic)) and callable(getattr(type(a), "__array__", None))


def _as_tensor(a: Any, dtype: torch.dtype) -> Tensor:
    """The tensor, or the array as one; float64, which arrays have for no reason, becomes what modules are made of."""
    if isinstance(a, Tensor):
        return a.detach()
    try:
        a = np.asarray(a)
    except ValueError as error:
        raise TypeError(f"dataset: a list of rows of different lengths cannot become a tensor ({error}).") from error
    if a.dtype.kind not in "fiub":
        raise TypeError(
            f"dataset: an array of {a.dtype} cannot become a tensor; number the classes from 0, by "
            "np.unique(y, return_inverse=True)[1], say."
        )
    tensor = torch.as_tensor(np.require(a, requirements=("C", "W")))
    return tensor.to(dtype) if tensor.dtype == torch.float64 else tensor


def _fits(tensors: Sequence[Tensor], device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return size <= RESIDENT * torch.cuda.mem_get_info(device)[0]


def _has_length(dataset: Any) -> bool:
    with suppress(TypeError, NotImplementedError, AttributeError):
        return is_integer(len(dataset)) and callable(type(dataset).__getitem__)
    return False


def _same(a: Any, b: Any) -> bool:
    """Whether two readings of the same examples are the same."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.shape == b.shape and bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    if isinstance(a, Mapping):
        return all(_same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b) or a != a
