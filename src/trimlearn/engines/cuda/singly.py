"""x-steps one by one, for the laws and terms whose stretches are not taken as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

from trimlearn._utils.arrays import Tensor
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.smart.row_laws import Recipe


@final
@dataclass(frozen=True)
class Active:
    """The distinct rows drawn, what each counts in 1/b Σ, w·(times drawn)/b; how many of them have a positive weight,
    and how many draws do not."""

    rows: Any
    c: Tensor
    evaluated: int
    skipped: int


def active(recipe: Recipe, n: int, cumulative: np.ndarray | None, w: Tensor, shares: Tensor) -> Active:
    """The rows of a recipe, of n with weights w and shares sᵢwᵢ/S."""
    drawn = recipe.rows(n, cumulative)
    if isinstance(drawn, slice):
        return Active(slice(0, n), shares, n, 0)
    distinct, times = (torch.from_numpy(a).to(w.device) for a in np.unique(drawn, return_counts=True))
    weights = w[distinct]
    alive = weights > 0
    evaluated, hit = torch.stack([alive.sum(), (times * alive).sum()]).tolist()
    return Active(distinct, weights * (times / len(drawn)).to(w.dtype), evaluated, len(drawn) - hit)


def refreshed(rows: TorchRows, X: Tensor, at: Any, shares: Tensor) -> Tensor:
    """tableᵢ ← ∇φᵢ(x) for rows ``at`` of positive weight; the change of Σ shareᵢAᵢᵀtableᵢ."""
    change, new = rows.difference(X, at, shares[at])
    rows.table[at] = torch.where((shares[at] == 0)[:, None], rows.table[at], new)
    return change
