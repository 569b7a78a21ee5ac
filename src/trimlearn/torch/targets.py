"""What the targets of examples are: labels, where they can be read as such, and a word where they nearly can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from trimlearn._utils.warn import warn

MOST_CLASSES = 1_000  # a limit on memory: n × K numbers are kept, 0.5 GB for 60,000 examples
SUM = 1e-3  # that the entries of a row may be off 1, in float16 even, to be the probabilities of classes
LOSSES_ALONE = "so that they are judged by their losses alone, which finds few wrong labels"


@final
class Labels:
    """The labels of all examples: their numbers 0 … K − 1, and what targets they stand for.

    Examples
    --------
    >>> labels = Labels(np.array([0, 1, 1]), torch.eye(2))
    >>> labels.K, labels.names.tolist(), labels.codes_of(torch.tensor([[0.0, 1.0]])).tolist()
    (2, [0, 1], [1])
    """

    def __init__(self, codes: np.ndarray, values: Tensor) -> None:
        self.codes = codes  # (n,) int64
        self.values = values  # K targets as the loss is given them: (K,), or (K, K) where a row is one-hot

    @property
    def K(self) -> int:
        """How many classes there are."""
        return len(self.values)

    @property
    def names(self) -> np.ndarray:
        """What the classes are called: the targets, or the number of the column that is 1."""
        return np.asarray(self.values.numpy() if self.values.ndim == 1 else np.arange(self.K))

    def codes_of(self, targets: Any) -> np.ndarray:
        """The numbers of the labels of other examples."""
        if isinstance(targets, Tensor) and targets.numel() == len(targets) * self.values[0].numel():
            there = targets.reshape(len(targets), -1)[:, None] == self.values.reshape(self.K, -1)[None]
            found = there.all(dim=2)
            if bool(found.any(dim=1).all()):
                return found.long().argmax(dim=1).numpy()
        raise ValueError(f"dataset holds labels that the fit does not know: its classes are 0 … {self.K - 1}.")


def find_labels(targets: Any, output: Any, wanted: bool | None) -> Labels | None:
    """The labels among the targets, None where these are no labels.

    Labels are integers, one per example, for an output with a column for every class; or rows of one 1 and zeros for
    such an output; or 0 and 1 for an output with one number per example. ``wanted``: what the user says about it, None
    for nothing. The output may be a tensor, or a tuple or mapping whose first matrix it is.
    """
    if wanted is False:
        return None
    columns = _columns(output)
    if isinstance(targets, Tensor) and targets.ndim:
        if wanted and columns is None and targets.ndim == 1 and not targets.is_floating_point():
            columns = int(targets.max()) + 1
        read = _one_hot if targets.ndim == 2 and targets.shape[1] > 1 else _numbers
        labels = read(targets, columns)
        if labels is not None and labels.K <= MOST_CLASSES and len(np.unique(labels.codes)) > 1:
            return labels
    if wanted:
        raise ValueError(
            "labels=True, but the targets are no labels: they must be integers from 0 on with an output of a column "
            "for every class, or 0 and 1 with an output of one number per example, and hold two classes at least."
        )
    if doubt := _doubt(targets, output, columns):
        warn(doubt)
    return None


def looks_like_labels(part: Tensor, output: Any) -> bool:
    """Whether these are classes of the output, one per example.

    >>> output = torch.zeros(3, 3)
    >>> looks_like_labels(torch.tensor([0, 2, 1]), output), looks_like_labels(torch.rand(3), output)
    (True, False)
    """
    columns = _columns(output)
    if columns is None or columns < 2 or part.ndim != 1 or part.is_floating_point() or len(torch.unique(part)) < 2:
        return False
    return bool(((part >= 0) & (part < columns)).all())


def _numbers(targets: Tensor, columns: int | None) -> Labels | None:
    if targets.numel() != len(targets) or columns is None:
        return None
    given = targets.reshape(len(targets)).double().numpy()
    if not np.all(given == np.round(given)) or np.any(given < 0):
        return None
    if columns > 1 and not targets.is_floating_point() and given.max() < columns:
        return Labels(given.astype(np.int64), torch.arange(columns, dtype=targets.dtype))
    if columns == 1 and set(np.unique(given).tolist()) == {0.0, 1.0}:
        return Labels(given.astype(np.int64), torch.tensor([0, 1], dtype=targets.dtype))
    return None


def _one_hot(targets: Tensor, columns: int | None) -> Labels | None:
    ones = targets == 1
    if targets.shape[1] != columns or not bool((ones | (targets == 0)).all()) or not bool((ones.sum(1) == 1).all()):
        return None
    return Labels(ones.long().argmax(1).numpy(), torch.eye(columns, dtype=targets.dtype))


def _columns(output: Any) -> int | None:
    """How many numbers there are per example; None where the output holds no matrix of them."""
    if isinstance(output, Mapping):
        return _columns(output["logits"] if "logits" in output else list(output.values()))
    if isinstance(output, (tuple, list)):
        return next((int(part.shape[1]) for part in output if isinstance(part, Tensor) and part.ndim == 2), None)
    if not isinstance(output, Tensor) or output.ndim not in (1, 2):
        return None
    return 1 if output.ndim == 1 else int(output.shape[1])


def _doubt(targets: Any, output: Any, columns: int | None) -> str:
    """A sentence where targets look like labels and cannot be read as labels."""
    if not isinstance(targets, Tensor) or not targets.ndim:
        return ""
    if targets.ndim == 2 and targets.is_floating_point() and targets.shape[1] == columns and columns > 1:
        sums = bool(((targets.double().sum(1) - 1).abs() <= SUM).all())
        if sums and bool((targets >= 0).all()):
            return (
                f"the targets are probabilities of {columns} classes, not labels, {LOSSES_ALONE}: give the classes, "
                "targets.argmax(1), to have them judged."
            )
    if targets.ndim != 1 or targets.is_floating_point() or len(torch.unique(targets)) < 2:
        return ""
    if columns is None:
        if isinstance(output, Tensor) or len(torch.unique(targets)) > MOST_CLASSES:
            return ""
        return (
            f"the targets are integers, but the module returns a {type(output).__name__}, {LOSSES_ALONE}: if they are "
            "labels, say so by labels=True, else labels=False."
        )
    outside = int(((targets < 0) | (targets >= columns)).sum())
    if columns > 1 and 0 < outside < len(targets):
        return (
            f"{outside} of {len(targets)} targets are none of the classes 0 … {columns - 1} of the output, "
            f"{LOSSES_ALONE}: drop these examples, or say labels=False if targets are no labels."
        )
    return ""
