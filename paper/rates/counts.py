"""Table 1 of the paper: how many evaluations reach an accuracy ε, by the theory and counted.

The problem is small and its constants are known: trimmed least squares, rows of length 1 (so that every Lᵢ = 1), a
tenth of the targets wrong, as many rows trimmed. The methods take the step sizes γ and τ of the corollaries. Two
accuracies, as in the paper:

* without an error bound, ‖x-residual‖² + ‖w-residual‖² of section 3.1, at an iterate drawn at random: its mean over the
  iterates so far;
* with one, F − F*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil, inf, log, log1p
from statistics import fmean

import numpy as np

from paper.outcome import Say, quiet
from trimlearn import Problem, solve
from trimlearn.engines.base import Counts
from trimlearn.engines.local import LocalEngine
from trimlearn.losses import LeastSquares
from trimlearn.regularizers import Ridge
from trimlearn.smart import SMART, alternating, palm, saga, svrg, theory
from trimlearn.smart.steps import Fixed
from trimlearn.smart.theory import Rates, estimate_mu, saga_theory, svrg_theory, theorem1
from trimlearn.weights import CappedSimplex

__all__ = ["COLUMNS", "Algorithm", "CountSettings", "Row", "algorithms", "guarantee", "measure", "power"]

COLUMNS = ("gradients", "functions", "prox_r1", "prox_r2")
# The made-up problem: shifts are 40 times the noise, so that who is trimmed is beyond doubt; r2 is hardly felt.
WRONG, SHIFT, NOISE, FEATURES, ALPHA = 0.1, 4.0, 0.1, 5, 1e-3
EVERY = 8  # the residuals are looked at in every eighth iterate only: to do so costs as much as an iteration
NO_SIGNAL = 1e-8  # F − F* below this share of F says nothing about μ


@dataclass(frozen=True)
class CountSettings:
    """Sizes n over which powers are fitted, and the one shown; seeds; ε of the squared residuals; ε of F − F*, as a
    share of F⁰ − F*; where to give up."""

    sizes: tuple[int, ...] = (64, 128, 256, 512, 1024)
    shown: int = 512
    seeds: tuple[int, ...] = (0, 1)
    residuals: tuple[float, ...] = (8e-3, 4e-3)
    gaps: tuple[float, ...] = (1e-2, 1e-4, 1e-6)
    max_iterations: int = 200_000

    def __post_init__(self) -> None:
        if self.shown not in self.sizes:
            raise ValueError(f"shown must be one of sizes, {self.sizes}, got {self.shown}.")


@dataclass(frozen=True)
class Algorithm:
    """A row of Table 1. powers: of n, one for each of `COLUMNS`, beside 1/ε, or κ·log(1/ε) with an error bound."""

    name: str
    powers: tuple[float, float, float, float]
    error_bound: bool

    def rates(self, n: int) -> Rates:
        """γ, η, τ at b = ⌈n^(2/3)⌉ and L = 1. PALM: everything is drawn and renewed, by a fair coin."""
        if self.name == "PALM":
            return theorem1(n, n, L=1.0, rho=1.0, q=0.5)
        corollary = saga_theory if self.name == "SMART (SAGA)" else svrg_theory
        return corollary(n, ceil(round(n ** (2 / 3), 9)), L=1.0, error_bound=self.error_bound)

    def method(self, rates: Rates) -> SMART:
        """Algorithm 1 with these step sizes."""
        step = Fixed(rates.gamma, rates.eta)
        if self.name == "PALM":
            return palm(cyclic=False, step=step, tau=rates.tau)
        variant = saga if self.name == "SMART (SAGA)" else svrg
        return variant(rates.b, rates.q, step=step, tau=rates.tau)


def algorithms() -> Iterator[Algorithm]:
    """The six rows; the prox columns of SAGA with an error bound are exchanged in print."""
    for name, powers in {
        "SMART (SAGA)": (2 / 3, 0.0, -1.0, 0.0),
        "SMART (SVRG)": (2 / 3, 2 / 3, -1 / 3, 0.0),
        "PALM": (1.0, 1.0, 0.0, 0.0),
    }.items():
        for error_bound in (False, True):
            yield Algorithm(name, powers, error_bound)


def small_problem(n: int, seed: int) -> Problem:
    """Least squares on n unit vectors in R⁵; the targets of n/10 rows are shifted by 4, and as many are trimmed.

    >>> float(np.max(np.abs(small_problem(100, seed=0).loss.lipschitz() - 1))) < 1e-12
    True
    """
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((n, FEATURES))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    t = V.sum(axis=1) + NOISE * rng.standard_normal(n)
    wrong = rng.permutation(n)[: round(WRONG * n)]
    t[wrong] += SHIFT
    return Problem(LeastSquares(V, t), CappedSimplex(n - len(wrong)), Ridge(ALPHA))


# -- the theory's ---------------------------------------------------------------------------------------------------


def guarantee(rates: Rates, gap: float, epsilon: float, mu: float | None = None) -> theory.PredictedCounts:
    """`trimlearn.smart.theory.counts`, also for PALM with an error bound.

    There Theorem 2 says nothing, as its γ is 0 where ρ = 1. But full gradients leave no dual error, so that Theorem 1's
    decrease alone gives E[F − F*] ← (1 − μ·min{q'γ/(4η), qτ/2})·E[F − F*].

    >>> rates = theorem1(1000, 1000, L=1.0, rho=1.0, q=0.5)
    >>> [round(guarantee(rates, gap=1.0, epsilon=1e-3, mu=mu).prox_r2) for mu in (0.1, 0.01)]
    [1709, 17104]
    """
    if mu is None or rates.error_bound:
        return theory.counts(rates, gap, epsilon, mu)
    k = ceil(log(gap / epsilon) / -log1p(-mu * rates.decrease))
    n = rates.n
    return theory.PredictedCounts(k, n + k * n, k * rates.q * n, k * rates.q, k * rates.q_prime)


# -- counted --------------------------------------------------------------------------------------------------------


@dataclass
class Track:
    """One run: F and the squared residuals of x and w at every iterate looked at, and the counts at which each ε was
    reached."""

    f_star: float
    error_bound: bool
    objectives: list[float] = field(default_factory=list)
    x_sq: list[float] = field(default_factory=list)
    w_sq: list[float] = field(default_factory=list)
    residuals: float = 0.0  # the sum of both
    reached: dict[float, Counts] = field(default_factory=dict)

    def see(self, objective: float, x_sq: float, w_sq: float) -> float:
        """The accuracy of what was seen so far: (F − F*)/(F⁰ − F*) with an error bound, else the mean residual."""
        self.objectives.append(objective)
        self.x_sq.append(x_sq)
        self.w_sq.append(w_sq)
        self.residuals += x_sq + w_sq
        return (objective - self.f_star) / self.gap if self.error_bound else self.residuals / len(self.objectives)

    @property
    def gap(self) -> float:
        """F⁰ − F*."""
        return self.objectives[0] - self.f_star

    @property
    def mu(self) -> float:
        """The largest constant of an error bound that was not contradicted."""
        return estimate_mu(self.objectives, self.x_sq, self.w_sq, self.f_star, NO_SIGNAL)


def _follow(algorithm: Algorithm, n: int, seed: int, epsilons: tuple[float, ...], most: int) -> Track:
    """Run until the smallest ε is reached, or ``most`` iterations were made."""
    problem, rates = small_problem(n, seed), algorithm.rates(n)
    track = Track(solve(problem, alternating(), tol=0).objective, algorithm.error_bound)  # F* exactly: closed forms
    run, engine = algorithm.method(rates).bind(problem, seed), LocalEngine(problem)
    state = run.init(engine, problem.loss.start())
    for k in range(most):
        if k % EVERY == 0:
            accuracy = track.see(*_look(problem, engine.weights, state.x, rates))
            for epsilon in epsilons:
                if accuracy <= epsilon and epsilon not in track.reached:
                    track.reached[epsilon] = replace(engine.counts)
            if len(track.reached) == len(epsilons):
                break
        run.advance(engine, state)
    return track


def _look(problem: Problem, w: np.ndarray, x: np.ndarray, rates: Rates) -> tuple[float, float, float]:
    """F, ‖(η/γ)(x − x̄)‖² and ‖(w − w̄)/τ‖² at (w, x), evaluated beside the engine: nothing is counted."""
    n, step = problem.n, rates.gamma / rates.eta
    f = problem.loss.values(x)
    x_bar = problem.r2.prox(x - step * problem.loss.gradient(x, w / n), step)[0]
    w_bar = problem.r1.prox(w - rates.tau / n * f, None)
    F = problem.weighted_mean(w, f) + problem.r2.value(x)
    return F, float(np.sum((x - x_bar) ** 2)) / step**2, float(np.sum((w - w_bar) ** 2)) / rates.tau**2


@dataclass(frozen=True)
class Row:
    """An algorithm at one n: means over the seeds, by ε, of what is guaranteed and of what was counted (inf where ε was
    not reached in every run), in the order of `COLUMNS`; κ = L/μ."""

    algorithm: Algorithm
    n: int
    kappa: float
    guaranteed: dict[float, tuple[float, ...]]
    counted: dict[float, tuple[float, ...]]


def measure(settings: CountSettings, *, say: Say = quiet) -> list[Row]:
    """Every algorithm at every n."""
    rows = []
    for algorithm in algorithms():
        epsilons = settings.gaps if algorithm.error_bound else settings.residuals
        for n in settings.sizes:
            rows.append(_row(algorithm, n, epsilons, settings))
        found = rows[-1].counted[min(epsilons)][0]
        bound = " with an error bound" if algorithm.error_bound else ""
        say(f"rates: Table 1, {algorithm.name}{bound}: {found:,.0f} gradients at n = {n}, ε = {min(epsilons):g}")
    return rows


def _row(algorithm: Algorithm, n: int, epsilons: tuple[float, ...], settings: CountSettings) -> Row:
    tracks = [_follow(algorithm, n, seed, epsilons, settings.max_iterations) for seed in settings.seeds]
    mu = min(track.mu for track in tracks)  # the bound must hold in every run
    rates = algorithm.rates(n)
    guaranteed, counted = {}, {}
    for epsilon in epsilons:
        if algorithm.error_bound:
            promised = [guarantee(rates, track.gap, epsilon * track.gap, mu) for track in tracks]
        else:
            promised = [guarantee(rates, track.gap, epsilon) for track in tracks]
        guaranteed[epsilon] = _means(promised)
        reached = [track.reached[epsilon] for track in tracks if epsilon in track.reached]
        counted[epsilon] = _means(reached) if len(reached) == len(tracks) else (inf,) * len(COLUMNS)
    return Row(algorithm, n, 1 / mu, guaranteed, counted)


def _means(found: list[Counts] | list[theory.PredictedCounts]) -> tuple[float, ...]:
    return tuple(fmean(getattr(counts, column) for counts in found) for column in COLUMNS)


def power(points: list[tuple[float, float]]) -> float:
    """The slope of log y over log x by least squares; NaN where some y is 0, infinite, or there is one point only.

    >>> round(power([(n, 7 * n**0.7) for n in (10, 100, 1000)]), 6)
    0.7
    """
    x, y = np.array(points, dtype=float).T
    if len(x) < 2 or not np.all(np.isfinite(y) & (y > 0)):
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
