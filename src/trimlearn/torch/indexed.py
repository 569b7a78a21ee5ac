"""The numbers of examples, which `Trimmer` asks for: datasets that tell them, and those of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

INDEX = "index"  # the key of the number in examples that are dicts


@final
class Indexed(Dataset[Any]):
    """A dataset whose examples end in their number: (x, y) becomes (x, y, i), and a dict gets the key "index".

    Parameters
    ----------
    dataset : Dataset
        Any dataset with a length and numbered examples; a list will do.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> data = Indexed(TensorDataset(torch.tensor([5.0, 6.0]), torch.tensor([0, 1])))
    >>> data[1]
    (tensor(6.), tensor(1), 1)
    >>> for x, y, indices in DataLoader(data, batch_size=2):
    ...     print(x, indices)
    tensor([5., 6.]) tensor([0, 1])
    """

    def __init__(self, dataset: Any) -> None:
        try:
            if isinstance(dataset, IterableDataset):
                raise TypeError("it is an IterableDataset")
            self._n = len(dataset)
        except (TypeError, NotImplementedError) as error:
            raise ValueError(
                f"dataset must have a length and numbered examples, to be trimmed by their numbers, "
                f"and {type(dataset).__name__} has not: {error}; read it into a list first."
            ) from error
        self.dataset = dataset

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: int) -> Any:
        return _numbered(self.dataset[i], i)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """A batch at once, which a DataLoader asks for: some datasets read it faster so."""
        together = getattr(self.dataset, "__getitems__", None)  # PyTorch's own convention
        examples = [self.dataset[i] for i in indices] if together is None else together(indices)
        return [_numbered(example, i) for example, i in zip(examples, indices, strict=True)]


def _numbered(example: Any, i: int) -> Any:
    if isinstance(example, Mapping):
        if INDEX in example:
            raise ValueError(f"the examples have a key {INDEX!r} already, where their number goes; rename it.")
        return {**example, INDEX: i}
    return (*example, i) if isinstance(example, (tuple, list)) else (example, i)


def check_indices(indices: Any, n: int, repeats: bool) -> Tensor:
    """The numbers of the examples of a batch, as int64 and on the CPU, where they can be checked."""
    try:
        rows = torch.as_tensor(indices).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"indices must be a sequence of integers, got {type(indices).__name__}.") from error
    if rows.ndim != 1:
        raise ValueError(f"indices must be one-dimensional, one number per loss, got shape {tuple(rows.shape)}.")
    if len(rows) == 0:
        raise ValueError("indices is empty: give the losses and the numbers of at least one example.")
    if rows.dtype == torch.bool or rows.is_floating_point() or rows.is_complex():
        raise ValueError(f"indices must be integers, the examples' numbers in the dataset, got {rows.dtype}.")
    rows = rows.to(torch.int64)
    ordered = np.sort(rows.numpy())
    if ordered[0] < 0 or ordered[-1] >= n:
        wrong = ordered[0] if ordered[0] < 0 else ordered[-1]
        raise ValueError(f"indices must be from 0 to {n - 1}, as Trimmer was made for n={n}, got {wrong}.")
    same = ordered[1:] == ordered[:-1]
    if not repeats and same.any():
        raise ValueError(
            f"indices holds {ordered[1:][same][0]} more than once; give each example of a batch its own number, "
            "or Trimmer(…, repeats=True) if you sample with replacement."
        )
    return rows
