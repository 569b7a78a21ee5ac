"""What the paper proves about SMART: step sizes, decrease and operation counts (section 3 and the appendix).

Symbols: n examples, b draws a step, q = P(jₖ = 1) the chance of a w-step, q' = 1 − q, ρᵢ = P(i in Dₖ), Lᵢ the Lipschitz
constant of ∇fᵢ, Bᵢ ≥ |wᵢ|, ε₀ in (0, 1) a free constant of the proof (smaller is better). With

    θᵢ = 1 − √(q'(1−ρᵢ))                                Theorem 1
    θᵢ = (q'(1−ρᵢ))^¼ · (1 − (q'(1−ρᵢ))^¼)              Theorem 2 (an error bound holds)
    a' = √( 1/n Σ q'(1+ε₀)(BᵢLᵢ)² / (2bθᵢ²) ),  ℓ = 1/n Σ BᵢLᵢ

both theorems take γ = 1/(4a' + ℓ) and η = 2 + 4γ(a' + ℓ), so that η/γ = 12a' + 6ℓ.

Where this differs from the printed text, it follows the proofs:

* η: the main text prints 4ℓ inside the bracket of Theorem 1; the proof's η = 2(1 + 2a + 2γℓ), a = γa', has ℓ.
* decrease: that η makes (η−1−2a)/(2γ) − ℓ equal to η/(4γ), not η/(2γ). What is certified for a squared x-residual
  is therefore q'γ/(4η), in Theorem 1, in δ of Theorem 2, and in the counts.
* τ: Corollaries 2 and 4 print τ = q·q'γ/η; their proof needs qτ/2 = q'γ/(2η), τ = (q'/q)·γ/η. Corollaries 1 and 3
  print that value, for q = 1/n.
* rate: t₀ is one of T + 1 indices, so the bound of Theorem 1, part 3 holds with T + 1 for the printed T.
* Dₖ = Iₖ: the dual recursion treats Dₖ as independent of the x-step, which depends on Iₖ. Without that, its factor
  1 + (1−ρᵢ)/βᵢ is 1 + 1/βᵢ, and βᵢ = (q'(1−ρᵢ))^-½ − 1 leads to the same θᵢ, hence the same γ and η: SAGA is safe.
* sample weights s: rows are drawn with probability sᵢ/S, so every mean 1/n Σ becomes 1/S Σ sᵢ, in the estimator's
  variance, in the Lyapunov function and in a' and ℓ; and a row of small weight is refreshed seldom: with Dₖ = Iₖ,
  ρᵢ = 1 − (1 − sᵢ/S)^b.
* Table 1: the prox columns of SAGA with an error bound are exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, isnan, log, log1p

import numpy as np

from trimlearn._utils.arrays import Array, to_numpy
from trimlearn._utils.validation import is_integer, is_number
from trimlearn.smart.draws import drawn

EPS0 = 0.01  # any value in (0, 1) will do: this one costs half a percent of γ, as √(1 + ε₀), against ε₀ → 0


@dataclass(frozen=True)
class Rates:
    """Step sizes for which SMART is proved to converge, and how fast.

    With the residuals of section 3.1, (η/γ)(x − x̄) and (w − w̄)/τ, every step satisfies, in expectation,

        decrease of F plus the dual error  ≥  decrease_x · ‖x-residual‖² + decrease_w · ‖w-residual‖².
    """

    n: int
    b: int
    q: float
    gamma: float
    eta: float
    tau: float
    memory: float  # max √(q'(1−ρᵢ)): the factor by which stale duals fade in a step
    error_bound: bool  # whether γ and η are Theorem 2's

    @property
    def q_prime(self) -> float:
        """q' = 1 − q, the chance of an x-step."""
        return 1 - self.q

    @property
    def decrease_x(self) -> float:
        """q'γ/(4η)."""
        return self.q_prime * self.gamma / (4 * self.eta)

    @property
    def decrease_w(self) -> float:
        """qτ/2."""
        return self.q * self.tau / 2

    @property
    def decrease(self) -> float:
        """min{q'γ/(4η), qτ/2}: certified per unit of the two squared residuals together."""
        return min(self.decrease_x, self.decrease_w)

    def delta(self, mu: float) -> float:
        """δ = max(1 − μ·min{q'γ/(4η), qτ/2}, max √(q'(1−ρᵢ))): E[F − F*] shrinks by δ a step (Theorem 2).

        μ is the error bound's constant: μ(F − F*) ≤ ‖x-residual‖² + ‖w-residual‖². Only for Theorem 2's rates.
        """
        return exp(-self.speed(mu))

    def speed(self, mu: float) -> float:
        """log(1/δ), also where δ rounds to 1."""
        if not self.error_bound:
            raise ValueError("delta holds for Theorem 2's gamma and eta; use theorem2 or error_bound=True.")
        if isnan(mu) or mu <= 0:
            raise ValueError(f"mu must be > 0, got {mu}: it is the constant of the error bound.")
        drop = mu * self.decrease
        return min(-log1p(-drop) if drop < 1 else inf, -log(self.memory))


@dataclass(frozen=True)
class PredictedCounts:
    """Steps to reach an accuracy, and the average number of evaluations they take: the columns of Table 1."""

    iterations: int
    gradients: float
    functions: float
    prox_r1: float
    prox_r2: float


def theorem1(
    n: int,
    b: int,
    L: float | Array,
    B: float | Array = 1.0,
    rho: float | Array = 0.0,
    *,
    q: float,
    eps0: float = EPS0,
    tau: float | None = None,
    s: Array | None = None,
) -> Rates:
    """The largest γ of Theorem 1 and its η. L, B and rho are numbers or one value per example, s the sample weights.

    All means over examples are taken under s. rho is the caller's: with Dₖ = Iₖ it depends on s (`RowLaw.rho`).

    The theorem puts no bound on τ beyond the prox being defined: with the sets of `trimlearn.weights` any τ will do,
    inf too. None takes τ = (q'/q)·γ/η, for which w counts no less than x.

    >>> rates = theorem1(n=1000, b=100, L=2.0, q=0.1)
    >>> round(rates.gamma, 4), round(rates.eta, 2)
    (0.0799, 3.48)
    """
    return _rates(n, b, L, B, rho, q=q, eps0=eps0, tau=tau, error_bound=False, s=s)


def theorem2(
    n: int,
    b: int,
    L: float | Array,
    B: float | Array = 1.0,
    rho: float | Array = 0.0,
    *,
    q: float,
    eps0: float = EPS0,
    tau: float | None = None,
    s: Array | None = None,
) -> Rates:
    """The γ and η of Theorem 2, which gives a linear rate, `Rates.delta`, where an error bound holds.

    They satisfy Theorem 1 as well. rho must be < 1: at 1 the theorem's step size is 0.

    >>> rates = theorem2(n=1000, b=100, L=2.0, q=0.1)
    >>> rates.gamma < theorem1(n=1000, b=100, L=2.0, q=0.1).gamma
    True
    >>> round(rates.delta(mu=0.5), 4)
    0.9985
    """
    return _rates(n, b, L, B, rho, q=q, eps0=eps0, tau=tau, error_bound=True, s=s)


def saga_theory(
    n: int, b: int, L: float | Array, B: float | Array = 1.0, eps0: float = EPS0, error_bound: bool = False
) -> Rates:
    """SMART-SAGA as in Corollary 1, or 3 if ``error_bound``: Dₖ = Iₖ, q = 1/n, ρ = 1 − (1−1/n)^b, τ = (n−1)γ/η.

    >>> [round(saga_theory(60_000, 1533, L=1.0, error_bound=bound).gamma, 2) for bound in (False, True)]
    [0.15, 0.08]
    """
    _check_sizes(n, b)
    return _rates(n, b, L, B, float(drawn(n, b)), q=1 / n, eps0=eps0, error_bound=error_bound)


def svrg_theory(
    n: int, b: int, L: float | Array, B: float | Array = 1.0, eps0: float = EPS0, error_bound: bool = False
) -> Rates:
    """SMART-SVRG as in Corollary 2, or 4 if ``error_bound``: Dₖ = ∅, q = 1 − (1−1/n)^b, τ = (q'/q)·γ/η.

    The corollaries print τ = q·q'γ/η, smaller by 1/q²: 1,571 times at n = 60,000, b = 1533. The value used here is
    the one that their proof needs, qτ/2 = q'γ/(2η).

    >>> rates = svrg_theory(60_000, 1533, L=1.0)
    >>> round(rates.gamma, 3), round(rates.tau / (rates.q * rates.q_prime * rates.gamma / rates.eta))
    (0.15, 1571)
    """
    _check_sizes(n, b)
    return _rates(n, b, L, B, 0.0, q=float(drawn(n, b)), eps0=eps0, error_bound=error_bound)


def counts(rates: Rates, gap: float, epsilon: float, mu: float | None = None) -> PredictedCounts:
    """How many steps ``rates`` guarantee ``epsilon`` after, from F(w⁰, x⁰) − F* = ``gap``, and what they cost.

    Without ``mu``: until ‖x-residual‖² + ‖w-residual‖² ≤ ε on average, at an index drawn by `sample_t0` (Theorem 1,
    part 3): T + 1 = gap/(decrease·ε). With the error bound's ``mu``: until E[F − F*] ≤ ε, k = log(gap/ε)/log(1/δ).

    Averages over jₖ: n gradients to start; a w-step (chance q) takes n gradients, n function values and one prox of
    r1; an x-step (chance q') b gradients, the rows of Dₖ among them, and one prox of r2. For b = n^(2/3) these are
    Table 1's orders (K = 1/ε, or κ·log(1/ε) with κ = L/μ):

        SAGA   gradients n + n^(2/3)·K   functions K            prox r1  K/n          prox r2  K
        SVRG   gradients n + n^(2/3)·K   functions n^(2/3)·K    prox r1  K/n^(1/3)    prox r2  K

    >>> counts(svrg_theory(1000, 100, L=1.0), gap=1.0, epsilon=0.01).iterations
    10002
    """
    for name, value in (("gap", gap), ("epsilon", epsilon)):
        if not 0 < value < inf:
            raise ValueError(f"{name} must be a finite number > 0, got {value}.")
    if mu is None:
        k = ceil(gap / (rates.decrease * epsilon))
    else:
        k = max(0, ceil(log(gap / epsilon) / rates.speed(mu)))
    w_steps, x_steps = k * rates.q, k * rates.q_prime
    return PredictedCounts(k, rates.n + w_steps * rates.n + x_steps * rates.b, w_steps * rates.n, w_steps, x_steps)


def sample_t0(T: int, rng: np.random.Generator) -> int:
    """Theorem 1's output index t₀, uniform on {0, …, T}: its rate holds for the iterate at t₀.

    >>> 0 <= sample_t0(10, np.random.default_rng(0)) <= 10
    True
    """
    if not is_integer(T) or T < 0:
        raise ValueError(f"T must be an integer >= 0, the number of the last iterate, got {T!r}.")
    return int(rng.integers(T + 1))


def estimate_mu(
    objectives: Array,
    residual_x_sq: Array,
    residual_w_sq: Array,
    f_star: float | None = None,
    rtol: float = 1e-10,
) -> float:
    """The largest μ that a run's records allow in μ(F − F*) ≤ ‖x-residual‖² + ‖w-residual‖²: their smallest ratio.

    F* is ``f_star`` or else the smallest objective seen, which is no smaller than the true one, so the estimate is
    optimistic. Records with F − F* ≤ rtol·max|F| say nothing about μ and are left out; if none is left, or the records
    are all at F*, the answer is inf. Non-finite records are left out.

    >>> estimate_mu([4.0, 2.0, 1.0], [9.0, 1.5, 0.0], [0.0, 0.5, 0.0])
    2.0
    """
    F, x_sq, w_sq = (np.asarray(to_numpy(a), dtype=np.float64) for a in (objectives, residual_x_sq, residual_w_sq))
    if F.ndim != 1 or F.size == 0 or not F.shape == x_sq.shape == w_sq.shape:
        raise ValueError(
            f"objectives, residual_x_sq and residual_w_sq must be equally long and not empty, "
            f"got shapes {F.shape}, {x_sq.shape} and {w_sq.shape}."
        )
    known = np.isfinite(F) & np.isfinite(x_sq + w_sq)
    if not known.any():
        return inf
    gaps = F[known] - (F[known].min() if f_star is None else f_star)
    told = gaps > rtol * np.abs(F[known]).max()
    return float(np.min((x_sq + w_sq)[known][told] / gaps[told], initial=inf))


def _rates(
    n: int,
    b: int,
    L: float | Array,
    B: float | Array,
    rho: float | Array,
    *,
    q: float,
    eps0: float,
    error_bound: bool,
    tau: float | None = None,
    s: Array | None = None,
) -> Rates:
    _check_sizes(n, b)
    if q != 0:  # 0 where w is fixed: ProxSAGA
        _check_open_unit("q", q, "the chance of a w-step")
    _check_open_unit("eps0", eps0, "a constant of the proof, smaller is better")
    weights = None if s is None else to_numpy(s).astype(np.float64)
    BL = _per_example("B", B, n) * _lipschitz(L, n)
    fade = _log_fade(_per_example("rho", rho, n), q, error_bound)
    if weights is not None:  # a row of weight 0 is no row: that it is never refreshed harms nobody
        BL, fade, weights = (np.broadcast_to(a, (n,))[weights > 0] for a in (BL, fade, weights))
    if np.any(fade == 0):
        raise ValueError("q must be in (0, 1) where rho is 0: these dual variables would never be renewed.")
    theta = np.exp(fade / 4) * -np.expm1(fade / 4) if error_bound else -np.expm1(fade / 2)
    spread = float(np.sqrt(np.average((1 - q) * (1 + eps0) * BL**2 / (2 * b * theta**2), weights=weights)))  # a'
    mean = float(np.average(BL, weights=weights))  # ℓ
    if mean == 0:
        raise ValueError("L and B must not be 0 for every example: the losses are constant and any step works.")
    gamma = 1 / (4 * spread + mean)
    eta = 2 + 4 * gamma * (spread + mean)
    memory = float(np.exp(fade / 2).max())
    return Rates(n, b, q, gamma, eta, _tau(tau, (1 - q) / q * gamma / eta if q else inf), memory, error_bound)


def _log_fade(rho: np.ndarray, q: float, error_bound: bool) -> np.ndarray:
    """log(q'(1−ρᵢ)); kept as a logarithm because 1 − √(q'(1−ρᵢ)) loses its digits when b is small against n."""
    if np.any(rho > 1):
        raise ValueError("rho must be in [0, 1]: the chance that a dual variable is refreshed at an x-step.")
    if error_bound and np.any(rho == 1):
        raise ValueError("rho must be < 1 in Theorem 2: its step size is 0 at rho = 1; use theorem1.")
    with np.errstate(divide="ignore"):  # ρ = 1 is log 0 = −inf, and θ = 1 as it should be
        fade: np.ndarray = np.log1p(-rho) + log1p(-q)
    return fade


def _lipschitz(L: float | Array, n: int) -> np.ndarray:
    if np.any(np.isinf(np.asarray(to_numpy(L), dtype=np.float64))):
        raise ValueError(
            "L is infinite: this loss gives no global Lipschitz constant (Poisson and gamma have none, one of your own "
            'gives it by its method lipschitz), so that the theory has no step size; use step="auto".'
        )
    return _per_example("L", L, n)


def _per_example(name: str, value: float | Array, n: int) -> np.ndarray:
    """``value`` as float64, a number or n of them, finite and not negative."""
    values = np.asarray(to_numpy(value), dtype=np.float64)
    if values.shape not in ((), (n,)):
        raise ValueError(f"{name} must be a number or one per example, shape ({n},), got shape {values.shape}.")
    if not np.all(np.isfinite(values) & (values >= 0)):
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}.")
    return values


def _tau(tau: float | None, balanced: float) -> float:
    if tau is None:
        return balanced
    if isnan(tau) or tau <= 0:
        raise ValueError(f"tau must be > 0 (inf is allowed), or None for (q'/q)·gamma/eta, got {tau}.")
    return float(tau)


def _check_sizes(n: int, b: int) -> None:
    if not is_integer(n) or n < 2:
        raise ValueError(f"n must be an integer >= 2, the number of examples, got {n!r}.")
    if not is_integer(b) or b < 1:
        raise ValueError(f"b must be an integer >= 1, the draws a step, got {b!r}.")


def _check_open_unit(name: str, value: float, meaning: str) -> None:
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must be in (0, 1), got {value!r}: it is {meaning}.")
