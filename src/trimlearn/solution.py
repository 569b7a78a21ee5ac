"""What `solve` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from trimlearn._utils.arrays import Array
from trimlearn.engines.base import Counts
from trimlearn.smart.method import Record


class Status(Enum):
    """How a solve ended, as a sentence.

    Examples
    --------
    >>> Status.CONVERGED.converged, Status.MAX_PASSES.converged
    (True, False)
    """

    CONVERGED = "Converged: both stationarity measures and the share by which F could still fall are at most tol."
    MAX_PASSES = "Stopped after max_passes passes over the data, before it had converged to tol."
    UNFINISHED = (
        "Stopped after max_passes passes over the data, before it had converged to tol: x has too many parameters for "
        "second-order steps, and first-order steps are slow where columns are correlated or of very different scales."
    )
    MAX_SECONDS = "Stopped after max_seconds seconds, before it had converged to tol."
    CALLBACK = "Stopped because the callback said so."
    DIVERGED = "Stopped because F is no longer a finite number: the step is too large. Use step='auto', or less."

    @property
    def converged(self) -> bool:
        """Whether tol was reached."""
        return self is Status.CONVERGED

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Solution:
    """The model x, the weights w, and how they were found: what `trimlearn.solve` returns.

    Parameters
    ----------
    x : array
        The model.
    w : array of shape (n,)
        The weights; 0 means trimmed.
    objective : float
        The objective F(w, x).
    stationarity_x, stationarity_w : float
        How far x and w are from stationary, relative; docs/notation.md has the formulas.
    decrease : float
        The share by which F could still fall, where that was tried, else NaN.
    status : Status
        How the solve ended.
    history : list of Record
        One record per w-step.
    counts : Counts
        The columns of the paper's Table 1.
    losses : array of shape (n,)
        The losses fᵢ(x): sort them to rank the examples.
    passes : float
        Rows whose residual was evaluated, over n.
    seconds : float
        Wall-clock time.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import Problem, solve
    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> solution = solve(Problem(LeastSquares(np.ones((4, 1)), np.array([1.0, 1.0, 1.0, 9.0])), CappedSimplex(3)))
    >>> solution.status.converged, solution.w, round(float(solution.trace("objective")[-1]), 12)
    (True, array([1., 1., 1., 0.]), 0.0)
    """

    x: Array = field(repr=False)
    w: Array = field(repr=False)
    objective: float
    stationarity_x: float
    stationarity_w: float
    decrease: float
    status: Status
    history: list[Record] = field(repr=False)
    counts: Counts
    losses: Array = field(repr=False)
    passes: float
    seconds: float

    def trace(self, name: str) -> np.ndarray:
        """One column of the history, e.g. ``trace("objective")``."""
        if name not in Record.__dataclass_fields__:
            raise ValueError(f"name must be one of {', '.join(Record.__dataclass_fields__)}, got {name!r}.")
        return np.array([getattr(record, name) for record in self.history])
