"""US Judges: trimmed PCA names the judges whom two components do not explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn import Problem, solve
from trimlearn.datasets import Table, load_judges
from trimlearn.losses import Subspace
from trimlearn.regularizers import Stiefel
from trimlearn.weights import CappedSimplex

__all__ = ["JudgesResult", "find_outlying_judges"]

COMPONENTS = 2
TRIMMED = 0.2


@dataclass(frozen=True)
class JudgesResult:
    """The judges' weights ``w`` and losses ``f``, their ``scores`` on two components, and who has weight 0."""

    table: Table
    h: float
    objective: float
    status: str
    w: NDArray[Any]
    f: NDArray[Any]
    scores: NDArray[Any]
    outlying: tuple[str, ...]


def find_outlying_judges() -> JudgesResult:
    """Trimmed PCA with two components, a fifth of the judges trimmed, ratings centred by their plain mean."""
    table = load_judges()
    A = table.data - table.data.mean(axis=0)
    h = (1 - TRIMMED) * len(A)
    solution = solve(Problem(Subspace(A, COMPONENTS), CappedSimplex(h), Stiefel()), seed=0)
    outlying = tuple(table.names[i] for i in np.flatnonzero(solution.w <= 0))
    return JudgesResult(
        table=table,
        h=h,
        objective=solution.objective,
        status=solution.status.value,
        w=solution.w,
        f=solution.losses,
        scores=A @ solution.x,
        outlying=outlying,
    )
