"""Datasets that tell each example's number, which `Trimmer` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from torch.utils.data import Dataset, IterableDataset

__all__ = ["INDEX", "Indexed"]

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
