"""How many examples a `Trimmer` keeps, of all or of each group, and which: those of the smallest losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from trimlearn.weights import CappedSimplex, GroupCappedSimplex
from trimlearn.weights.simplex import SNAP, factorise, h_of


@final
class Quotas:
    """What is kept of n examples: a share of all of them, or of each group.

    Parameters
    ----------
    n : int
        How many examples there are.
    contamination : float, int or mapping
        The share, or number, to trim; by label of the groups where they differ.
    groups : sequence of n labels, optional
        A label per example.

    Examples
    --------
    >>> import torch
    >>> quotas = Quotas(4, 0.5, ["a", "a", "b", "b"])
    >>> quotas.h(1.0), quotas.best(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4, dtype=torch.bool), 1.0)
    (2.0, tensor([1., 0., 1., 0.]))
    """

    def __init__(self, n: int, contamination: Any, groups: Any = None) -> None:
        self.n = n
        self.labels: list[Any] | None = None
        self._codes: np.ndarray = np.zeros(n, dtype=np.int64)
        if groups is not None:
            self.labels, self._codes = _codes(groups, n)
        self._sizes = np.bincount(self._codes)
        self._kept = _kept_shares(contamination, self.labels, self._sizes, n)

    def h(self, done: float) -> float:
        """How many are kept when h has gone so much of its way from n to its target."""
        return float(self.n - done * np.sum(self._sizes * (1.0 - self._kept)))

    def exceeded(self, f: Tensor, seen: Tensor) -> bool:
        """Whether more of the losses that were seen are not finite than there are to trim."""
        quotas, usable = self._quotas(seen, _host(seen & torch.isfinite(f)), 1.0)
        return bool(np.any(usable < quotas - SNAP * self.n))

    def best(self, f: Tensor, seen: Tensor, done: float) -> Tensor:
        """The best weights of the examples seen, 0 for the others: a loss that is not finite comes last, and has 0."""
        w, finite = torch.zeros_like(f), seen & torch.isfinite(f)
        rows = _host(finite)
        quotas, usable = self._quotas(seen, rows, done)
        quotas = np.minimum(quotas, usable)
        if quotas.sum() > 0:
            there = usable > 0
            one = self.labels is None
            r1 = CappedSimplex(quotas[0]) if one else GroupCappedSimplex(self._codes[rows], quotas[there])
            w[finite] = r1.minimise(f[finite])
        return w

    def _quotas(self, seen: Tensor, rows: np.ndarray, done: float) -> tuple[np.ndarray, np.ndarray]:
        """How many of the examples seen are to be kept, and how many of them can be, in each group."""
        shares = 1.0 - done * (1.0 - self._kept)
        count = [np.bincount(self._codes[some], minlength=len(shares)) for some in (_host(seen), rows)]
        return shares * count[0], count[1]


def _host(mask: Tensor) -> np.ndarray:
    found: np.ndarray = mask.cpu().numpy()
    return found


def _codes(groups: Any, n: int) -> tuple[list[Any], np.ndarray]:
    """The distinct labels, and each example's position among them."""
    groups = groups.tolist() if isinstance(groups, (Tensor, np.ndarray)) else list(groups)
    if len(groups) != n:
        raise ValueError(f"groups must hold one label for each of the {n} examples, got {len(groups)}.")
    return factorise(groups)


def _kept_shares(contamination: Any, labels: list[Any] | None, sizes: np.ndarray, n: int) -> np.ndarray:
    """The share to keep of each group, or of all examples where there are none."""
    if not isinstance(contamination, Mapping):
        return np.full(len(sizes), _kept(contamination, n))
    if labels is None:
        raise ValueError("contamination is a dict, one share per group: give groups too, one label per example.")
    if set(contamination) != set(labels):
        raise ValueError(f"contamination must have a share for each group, {labels}, got {list(contamination)}.")
    return np.array([_kept(contamination[g], size) for g, size in zip(labels, sizes, strict=True)])


def _kept(contamination: Any, size: int) -> float:
    try:
        h = h_of(contamination, float(size), "examples")
    except ValueError as error:  # without the word that is not for Trimmer
        raise ValueError(str(error).replace(', or "auto"', "").replace(" or 'auto'", "")) from None
    if h is None:
        raise ValueError(
            "contamination='auto' is not for Trimmer, which sees losses of a model that learns; give a share, "
            "or let trimlearn.torch.trim estimate it."
        )
    return h / size
