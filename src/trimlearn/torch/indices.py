"""The numbers of the examples in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["check_indices"]


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
