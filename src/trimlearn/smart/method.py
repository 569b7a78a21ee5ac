"""What every method is, an iterator of states, and which of them a problem can afford by its size.

Stopping, display, limits and checkpoints wrap a method from outside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, nan, prod
from typing import TYPE_CHECKING

from trimlearn._utils.arrays import Array
from trimlearn.losses.blocks import BlockLoss
from trimlearn.problem import Problem

if TYPE_CHECKING:
    from trimlearn.engines.base import Engine

SMALL = 1_000_000  # n·dim(x) up to which a problem is small: a limit on time, as a pass over 8 MB takes a millisecond
FEW = 300  # parameters up to which Hessians are worth their cost, 20 passes each: benchmarks/calibration/hessians.py
SOME = 1000  # the same where the problem is small: a limit on time, as their factors take 0.06 s (the same script)
PER_PARAMETER = 200  # rows of a sample for each: a fit to them is about a hundredth of F above the least on all rows
LEAST = 10_000  # rows of a sample at least: a pass over them takes a millisecond
SHARE = 8  # rows for each of the sample's, at least: a copy of more would be a good part of V


@dataclass(frozen=True)
class Record:
    """What is known right after a w-step, at (w, x): one line of a run's history. docs/notation.md has the formulas."""

    k: int
    passes: float
    objective: float
    stationarity_x: float  # relative, as is the next
    stationarity_w: float
    h: float
    gamma: float
    residual_x: float = nan  # (η/γ)‖x − x̄‖ of the paper's section 3.1, absolute; NaN where τ = ∞
    residual_w: float = nan  # ‖w − w̄‖/τ of the same
    decrease: float = nan  # the share of F that a solver in x alone takes off: NaN: not tried, infinity: it did not end
    restored: bool = False  # the step was taken back
    settled: bool = False  # a whole round of `alternating` has changed F by no more than rounding
    seconds: float = nan


def concentration_records(objectives: Sequence[float], h: float) -> list[Record]:
    """One record per concentration step, which reads all rows twice."""
    return [Record(k, 2.0 * k + 1, F, nan, nan, h, nan) for k, F in enumerate(objectives)]


@dataclass(frozen=True)
class Reweighed:
    """What a w-step found at x: the mean of w·f with the new w, by how much the old one exceeded the least possible,
    and §3.1's ‖w − w̄‖/τ at the new point (NaN when τ = ∞)."""

    value: float
    gap: float
    residual: float


@dataclass
class MetricMemory:
    """What the metric of a run has learned. Each kind of metric has its own fields and leaves the others None."""

    inverse: Array = None  # diagonal: that of M⁻¹
    root: Array = None  # Newton's: M⁻¹ = root·rootᵀ
    sums: Array = None  # L-BFGS: Σ(x − x̃) and Σ(estimated gradient differences) since the last w-step
    pairs: Array = None  # L-BFGS: the secant pairs (s, y), the latest last
    profile: Array = None  # of `trimlearn.smart.profile`: the inverse of G's Hessian


@dataclass
class State:
    """Where a method stands. Arrays and numbers only, so that a checkpoint can hold it."""

    x: Array  # the model xᵏ
    k: int = 0
    previous: Array | None = None  # xᵏ⁻¹, for momentum
    y_mean: Array = None  # 1/S Σ sᵢyᵢ
    anchor: Array = None  # x at the last full evaluation that was kept
    base: float = inf  # F(w, anchor)
    moved: bool = False  # whether x has left the anchor
    gamma: float = nan
    gamma0: float = nan  # where a decaying step began
    scale: float = 1.0  # what the automatic step is multiplied by after back-offs
    direction: Array | None = None  # of the largest curvature seen
    metric: MetricMemory = field(default_factory=MetricMemory)
    w_steps: int = 0
    first_residual: float = nan  # stationarity_x is relative to it: of the first record at the target h
    initial_residual: float = nan  # of the very first record, as its objective: what rounding is measured against
    initial_objective: float = nan
    began: float = 0.0  # passes that were made before the run
    since: int | None = None  # the iteration from which on w lies in r1: where a continuation ended
    finishing: bool = False  # whether second-order steps have taken over
    failures: int = 0  # steps on the profile that did not bring what they promised
    elsewhere: float = 0.0  # passes that a look at other minima has taken, on top of max_passes
    sampled_w: Array | None = None  # (w, x) at t₀, when the output is Theorem 1's
    sampled_x: Array | None = None
    record: Record | None = None  # set by a step that evaluated everything, else None


class Method(ABC):
    """A way to minimise F, with choices that may be left open."""

    @property
    def automatic(self) -> bool:
        """Whether the steps are read off the data, so that the problem may be put in another x, the same but for an
        offset. A step size that was given is one for x as it was given."""
        return True

    @abstractmethod
    def bind(self, problem: Problem, seed: int) -> Run:
        """The run on ``problem``, every choice settled; ValueError where they do not go together."""


class Run(ABC):
    """A method at work on one problem, one iteration at a time. What changes is in the state and in the engine.

    Its repr names all settings: two runs with the same text take the same steps.
    """

    @property
    def renews(self) -> bool:
        """Whether all duals are renewed now and then, so that a checkpoint can leave them out."""
        return True

    @property
    def finishes(self) -> bool:
        """Whether passes are all that it may lack; False: it must do without the second-order steps it would take."""
        return True

    @abstractmethod
    def prepare(self, engine: Engine) -> None:
        """Tell the engine how to keep y."""

    @abstractmethod
    def init(self, engine: Engine, x: Array) -> State:
        """The state at (engine.weights, x), evaluated."""

    def begin_near(self, engine: Engine, state: State) -> None:
        """Told right after `init` that w and x are close to the end already."""
        return

    @abstractmethod
    def advance(self, engine: Engine, state: State) -> None:
        """One iteration, in place."""

    @abstractmethod
    def finish(self, engine: Engine, state: State) -> None:
        """Make w, f and the record belong to the present x, if they do not yet."""


def small(problem: Problem) -> bool:
    """Whether passes cost next to nothing."""
    return problem.n * prod(problem.loss.x_shape) <= SMALL


def in_blocks(problem: Problem) -> bool:
    """Whether Newton's steps cost little more than a pass, however many parameters x has."""
    return isinstance(problem.loss, BlockLoss) and problem.r2.smooth and problem.r2.separable


def affordable(problem: Problem) -> bool:
    """Whether full-batch steps may finish a run: x has few parameters, or passes cost next to nothing."""
    return prod(problem.loss.x_shape) <= FEW or small(problem) or in_blocks(problem)


def default_inner(problem: Problem, hessians: bool) -> str:
    """The inner solver for this problem; ``hessians``: whether they are worth their cost where x has few parameters."""
    few = hessians and prod(problem.loss.x_shape) <= (SOME if small(problem) else FEW)
    if few or in_blocks(problem):
        return "newton"
    return "lbfgs" if problem.r2.smooth else "proximal"


def start_sample_size(problem: Problem) -> int | None:
    """How many rows stand for all of them as far as a start goes; None where these are not many times as many."""
    m = max(LEAST, PER_PARAMETER * prod(problem.loss.x_shape))
    return m if problem.n >= SHARE * m else None
