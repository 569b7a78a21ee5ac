"""The seam: where the n examples live.

Algorithm 1 holds x and a few vectors of its size. All that has one entry per example (data, w, f, y) lives in an
engine, and every operation below is a map over rows followed by one sum of numbers or of vectors of x's size: what a
process does with its own rows, a GPU with one kernel each, and a cluster with one task per worker and a tree reduction.
docs/architecture.md walks through CUDA and Dask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple, dataclass
from math import inf, isinf
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn.losses.newton_system import NewtonSystem
from trimlearn.problem import Problem
from trimlearn.regularizers import Regularizer
from trimlearn.smart.draws import Draws, Stream
from trimlearn.smart.method import Reweighed, State
from trimlearn.smart.row_laws import Recipe, RowLaw
from trimlearn.weights import WeightSet

if TYPE_CHECKING:
    from trimlearn.smart.algorithm import Algorithm1


@dataclass
class Counts:
    """What a run has cost: the columns of the paper's Table 1, and draws that cost nothing.

    Parameters
    ----------
    gradients : int
        Rows whose gradient, or residual, was evaluated.
    functions : int
        Rows whose loss was evaluated.
    prox_r1, prox_r2 : int
        Proximal maps of r1 and r2.
    skipped : int
        Draws that cost nothing because w = 0.

    Examples
    --------
    >>> Counts(gradients=100).functions
    0
    """

    gradients: int = 0
    functions: int = 0
    prox_r1: int = 0
    prox_r2: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Of two runs, or of two places."""
        return Counts(*(mine + more for mine, more in zip(astuple(self), astuple(other), strict=True)))


def _silent(sentence: str) -> None:
    """Nobody wants to know."""


class Engine(ABC):
    """The examples, their weights w, their losses f and their duals y, wherever they live.

    Parameters
    ----------
    problem : Problem
        The problem whose examples they are.

    Attributes
    ----------
    r1 : WeightSet
        The set of weights at the present h, which a continuation changes.
    counts : Counts
        What has been evaluated so far.
    max_passes : float
        What a method with a long inner loop must not exceed by much.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import Problem
    >>> from trimlearn.engines import LocalEngine
    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> engine = LocalEngine(Problem(LeastSquares(np.ones((3, 1)), np.array([1.0, 1.0, 9.0])), CappedSimplex(2)))
    >>> engine.evaluate(np.ones(1)) == 2 / 3 * 64 / 2 / 3
    True
    >>> engine.reweigh(np.inf).value, engine.weights
    (0.0, array([1., 1., 0.]))
    """

    on_threads: ClassVar[bool] = True  # whether sums over rows are taken by threads of this process

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.r1: WeightSet = problem.r1  # at the present h: a continuation changes it
        self.counts = Counts()
        self.max_passes = inf  # what a method with a long inner loop must not exceed by much
        self.say: Callable[[str], None] = _silent  # where it is shown what the engine waits for
        s = problem.s
        self._cumulative = None if s is None else np.cumsum(to_numpy(s), dtype=np.float64)

    def close(self) -> None:
        """Let go of what the engine holds outside of this process. It cannot be used afterwards."""
        return

    def batch_size(self) -> int | None:
        """The b that suits this engine, where it is left open; None: the corollaries' ⌈n^(2/3)⌉."""
        return None

    def reset(self) -> None:
        """Forget an earlier run."""
        self.r1, self.counts, self.max_passes = self.problem.r1, Counts(), inf

    @property
    def passes(self) -> float:
        """Rows whose residual was evaluated / n."""
        return self.counts.gradients / self.problem.n

    @property
    def passes_left(self) -> float:
        """How many passes may still be made, the one that ends a run aside."""
        return self.max_passes - self.passes - 1

    @property
    def h(self) -> float:
        """Σ sᵢwᵢ at present."""
        return self.problem.S if isinf(self.r1.h) else self.r1.h

    def draws(self, seed: int, k: int, stream: Stream = Stream.ITERATION) -> Draws:
        """Iteration k's random numbers."""
        return Draws(seed, k, self.problem.n, self._cumulative, stream)

    def sample(self, m: int, seed: int) -> Engine | None:
        """An engine with some m of the rows, whose F is about this one's; None: single rows are not at hand, or those
        drawn say too little about x."""
        return None

    @abstractmethod
    def use_duals(self, kind: str) -> None:
        """Choose the representation of y, a key of `trimlearn.smart.duals.DUALS`, before the first evaluation."""

    @property
    @abstractmethod
    def keeps_duals(self) -> bool:
        """Whether the mean of y is part of the estimator."""

    @property
    @abstractmethod
    def weights(self) -> Array:
        """w, gathered."""

    @abstractmethod
    def set_weights(self, w: Any) -> None:
        """w ← the given one."""

    def set_even_weights(self) -> None:
        """w ← the centre of r1 at the present h: the same weight for every row, or for every row of a group."""
        self.set_weights(self.r1.start(self.problem.n, self.problem.s))

    def set_best_weights(self, x: Array) -> None:
        """w ← the best weights in r1 at x. A start: it counts for nothing."""
        self.set_weights(self.r1.minimise(self.problem.loss.values(x), self.problem.s))

    def saved_weights(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds of w."""
        return {"w": to_numpy(self.weights)}

    def read_weights(self, arrays: dict[str, np.ndarray]) -> Any:
        """What `set_weights` takes, from the arrays that `saved_weights` gave: they are taken out of ``arrays``."""
        return arrays.pop("w")

    def fingerprint(self) -> str:
        """A short text that tells the problem, its data included, from others."""
        return self.problem.fingerprint()

    def check(self, refresh: RowLaw, tau: float) -> None:
        """Raise ValueError where this engine has no such steps: D by the law ``refresh``, τ."""
        return

    @property
    @abstractmethod
    def losses(self) -> Array:
        """fᵢ at the x last evaluated, gathered."""

    @abstractmethod
    def evaluate(self, x: Array) -> float:
        """fᵢ ← fᵢ(x) for all i, and what `renew` needs; returns 1/S Σ sᵢwᵢfᵢ."""

    @abstractmethod
    def reweigh(self, tau: float) -> Reweighed:
        """w ← prox_{τ r1}(w − τ/S · f)."""

    @abstractmethod
    def gap(self) -> float:
        """1/S Σ sᵢ(wᵢ − ŵᵢ)fᵢ, ŵ the best weights for f: how far w is from stationary."""

    @abstractmethod
    def mean_duals(self) -> Array:
        """The mean of y, summed afresh. Until x has moved on from where all rows were evaluated, yᵢ is wᵢ∇fᵢ(x)."""

    @abstractmethod
    def difference(self, x: Array, batch: Recipe, refresh: Recipe) -> tuple[Array, Array]:
        """1/b Σ_{i∈I}(wᵢ∇fᵢ(x) − yᵢ), and then yᵢ ← wᵢ∇fᵢ(x) for i ∈ D: the change of the mean of y."""

    @abstractmethod
    def finite(self, g: Array) -> bool:
        """Whether all of g is finite. An engine that cannot know without waiting may say so: the next full evaluation
        finds out, and what was done since the last one is taken back."""

    @abstractmethod
    def stretch(self, run: Algorithm1, state: State) -> bool:
        """Take the x-steps that lie ahead of the next w-step all at once, if this engine is faster at that.

        They are the steps of `Algorithm1.x_step`, and leave the state as those would. False: none was taken.
        """

    @abstractmethod
    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """1/S Σ sᵢwᵢfᵢ(x) and its gradient; leaves f and y alone."""

    @abstractmethod
    def hessp(self, x: Array, u: Array, batch: Recipe) -> Array:
        """The Hessian of 1/b Σ_{i∈I} wᵢfᵢ at x, times u."""

    @abstractmethod
    def hessian(self, x: Array) -> np.ndarray:
        """The Hessian of 1/S Σ sᵢwᵢfᵢ at x, written out: for models of few parameters. It counts as one pass."""

    @abstractmethod
    def newton_system(self, x: Array) -> NewtonSystem:
        """The same as Newton's steps use it: in blocks where the loss has them. It counts as one pass."""

    @abstractmethod
    def column_moments(self) -> tuple[float, Array, Array]:
        """Σ cᵢ, Σ cᵢaᵢⱼ² and Σ cᵢaᵢⱼ⁴ over the design's columns j, c the shares sᵢwᵢ/S; both broadcast to x."""

    @abstractmethod
    def minimise(self, x: Array, r2: Regularizer | None = None) -> Array | None:
        """The minimiser over x of F(w, ·), with another r2 if given, in closed form; None where there is none, or no
        passes are left for it."""
