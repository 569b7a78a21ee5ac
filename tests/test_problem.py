"""F(w, x), its terms and sample weights, against a loop over the rows; and what `Problem` refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from backends import BACKENDS, Backend
from trimlearn import Problem
from trimlearn.losses import Gamma, LeastSquares, Logistic, Loss, Poisson, Softmax, Subspace
from trimlearn.regularizers import (
    L0,
    L1,
    Box,
    ElasticNet,
    ExceptIntercept,
    GroupL2,
    NonNegative,
    Rank,
    Regularizer,
    Ridge,
    Sphere,
    Stiefel,
    Zero,
)
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

N, P = 12, 3
RNG = np.random.default_rng(5)
V = RNG.standard_normal((N, P)).astype(np.float32).astype(np.float64)
T = RNG.standard_normal(N).astype(np.float32).astype(np.float64)
X = np.array([0.5, -1.0, 0.25])
S = np.array([1.0, 2, 0, 0.5, 1, 1, 3, 1, 1, 0, 1, 1])


def ls(**layer: Any) -> LeastSquares:
    return LeastSquares(V, T, **layer)


# ---- F ----


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("s", [None, S], ids=["plain", "weighted"])
def test_objective_is_the_papers_equation_2(name: str, s: np.ndarray | None, tmp_path: Any) -> None:
    backend = Backend(name, tmp_path)
    r1 = CappedSimplex(7.5)
    problem = Problem(LeastSquares(backend.matrix(V), T), r1, L1(0.3), s)
    w = r1.minimise((V @ X - T) ** 2, s)
    weight = np.ones(N) if s is None else s
    expected = sum(weight[i] * w[i] * (V[i] @ X - T[i]) ** 2 / 2 for i in range(N)) / weight.sum()
    expected += 0.3 * sum(map(abs, X))
    found = problem.objective(w, X)  # NumPy w and x for any kind of data
    assert type(found) is float
    assert found == pytest.approx(expected, rel=10 * backend.rtol)
    assert problem.S == weight.sum()
    assert problem.n == N


def test_means_accumulate_in_float64() -> None:
    n = 300_000
    V = np.ones((n, 1), np.float32)
    problem = Problem(LeastSquares(V, np.full(n, 0.1, np.float32)), AllOnes())
    exact = 0.5 * float(np.float32(0.1)) ** 2
    assert problem.objective(np.ones(n), np.zeros(1)) == pytest.approx(exact, rel=1e-6)
    assert problem.mean(np.full(n, 0.1, np.float32)) == pytest.approx(float(np.float32(0.1)), rel=1e-12)


@pytest.mark.parametrize("poison", [np.inf, np.nan])
def test_a_row_of_weight_0_counts_for_nothing(poison: float) -> None:
    problem = Problem(ls(), CappedSimplex(N - 1))
    w = np.append(np.ones(N - 1), 0.0)
    f = np.append(np.full(N - 1, 2.0), poison)
    assert problem.weighted_mean(w, f) == pytest.approx(2.0 * (N - 1) / N)


def test_outside_their_domains_r1_and_r2_are_infinite() -> None:
    problem = Problem(ls(), CappedSimplex(6), Box(-1.0, 1.0))
    w = np.array([1.0] * 6 + [0.0] * 6)
    assert np.isfinite(problem.objective(w, X))
    for wrong in (w * 0.9, w[::-1] * 2 - w, 2 * w / 2 + 0.1, np.full(N, 0.6)):
        assert problem.objective(wrong, X) == np.inf
    assert problem.objective(w, 3 * X) == np.inf


def test_the_intercept_is_exempt_from_r2() -> None:
    x = np.append(X, 100.0)
    for r2 in (Ridge(0.5), L1(0.5), ElasticNet(0.5), Box(-1.0, 1.0), L0(2.0)):
        problem = Problem(ls(intercept=True), AllOnes(), r2)
        assert isinstance(problem.r2, ExceptIntercept)
        loss = float(np.mean((V @ X + 100.0 - T) ** 2)) / 2
        assert problem.objective(np.ones(N), x) == pytest.approx(loss + r2.value(X))
    assert not isinstance(Problem(ls(), AllOnes(), Ridge(0.5)).r2, ExceptIntercept)


def test_without_r2_there_is_none() -> None:
    assert isinstance(Problem(ls(), AllOnes()).r2, Zero)
    assert isinstance(Problem(ls(), AllOnes(), None).r2, Zero)


@pytest.mark.parametrize("r1", [CappedSimplex(9), GroupCappedSimplex(np.arange(N) % 2, 9), AllOnes()])
def test_a_row_of_weight_2_is_the_row_twice_and_of_weight_0_none(r1: WeightSet) -> None:
    s = np.array([2.0, 0, 1, 1, 1, 3, 1, 1, 0, 1, 1, 1])
    rows = np.repeat(np.arange(N), s.astype(int))
    if isinstance(r1, GroupCappedSimplex):
        repeated: WeightSet = GroupCappedSimplex(rows % 2, 9)
    else:
        repeated = r1
    weighted, longer = Problem(ls(), r1, Ridge(0.1), s), Problem(LeastSquares(V[rows], T[rows]), repeated, Ridge(0.1))
    assert weighted.S == longer.S == len(rows)
    f = (V @ X - T) ** 2
    w = r1.minimise(f, s)
    assert np.all(w[s == 0] == 0)
    assert weighted.objective(w, X) == pytest.approx(longer.objective(w[rows], X), rel=1e-12)
    np.testing.assert_allclose(w[rows], repeated.minimise(f[rows]), atol=1e-12)


def test_its_text_says_what_it_is() -> None:
    text = repr(Problem(ls(), CappedSimplex(7.5), L1(0.3)))
    for part in ("LeastSquares", "n=12", "x=(3,)", "CappedSimplex(7.5)", "L1(alpha=0.3)"):
        assert part in text


# ---- what it refuses ----


def bad_weights(value: Any) -> Callable[[], Problem]:
    return lambda: Problem(ls(), CappedSimplex(4), sample_weight=value)


def one(value: float) -> np.ndarray:
    return np.where(np.arange(N) == 3, value, 1.0)


BAD: list[tuple[str, Callable[[], Any], str]] = [
    ("loss", lambda: Problem((V, T), CappedSimplex(4)), "loss must be a Loss"),
    ("loss class", lambda: Problem(LeastSquares, CappedSimplex(4)), "loss must be a Loss"),
    ("r1", lambda: Problem(ls(), 4), "r1 must be a WeightSet"),
    ("r1 None", lambda: Problem(ls(), None), "r1 must be a WeightSet"),
    ("r1 class", lambda: Problem(ls(), CappedSimplex), "r1 must be a WeightSet"),
    ("r2", lambda: Problem(ls(), CappedSimplex(4), 0.1), "r2 must be a Regularizer"),
    ("r2 class", lambda: Problem(ls(), CappedSimplex(4), Ridge), "r2 must be a Regularizer"),
    *[
        (f"h={h!r}", lambda h=h: Problem(ls(), CappedSimplex(h)), "h ")
        for h in (0, -1, 0.0, np.nan, np.inf, -np.inf, "4", None, True, [4], N + 1, N + 1e-3, 1e300)
    ],
    ("h > sum s", lambda: Problem(ls(), CappedSimplex(11), sample_weight=np.full(N, 0.5)), "h = 11 exceeds"),
    ("group labels", lambda: Problem(ls(), GroupCappedSimplex([0, 1] * 5, 4)), "groups has 10 labels for 12 rows"),
    ("group quota", lambda: Problem(ls(), GroupCappedSimplex([0, 1] * 6, [7, 1])), "lower its quota"),
    ("group quota < 0", lambda: Problem(ls(), GroupCappedSimplex([0, 1] * 6, [-1, 3])), "h must be finite and >= 0"),
    ("s NaN", bad_weights(one(np.nan)), "sample_weight must be finite and >= 0"),
    ("s inf", bad_weights(one(np.inf)), "sample_weight must be finite and >= 0"),
    ("s < 0", bad_weights(one(-1.0)), "sample_weight must be finite and >= 0"),
    ("s zero", bad_weights(np.zeros(N)), "sample_weight must not be all zero"),
    ("s short", bad_weights(np.ones(N - 1)), r"sample_weight must have one entry per row, shape \(12,\)"),
    ("s column", bad_weights(np.ones((N, 1))), "sample_weight must have one entry per row"),
    ("s number", bad_weights(1.0), "sample_weight must have one entry per row"),
    ("s text", bad_weights(["a"] * N), "sample_weight"),
    ("s complex", bad_weights(np.ones(N) * 1j), "sample_weight"),
    ("s ragged", bad_weights([[1.0], [1.0, 2.0]] * 6), "sample_weight"),
    ("alpha per coordinate", lambda: Problem(ls(), AllOnes(), Ridge(np.ones(P + 1))), "alpha"),
    ("alpha with intercept", lambda: Problem(ls(intercept=True), AllOnes(), L1(np.ones(P + 1))), "alpha"),
    ("box", lambda: Problem(ls(), AllOnes(), Box(np.zeros(2), 1.0)), "shape"),
    ("stiefel", lambda: Problem(ls(), AllOnes(), Stiefel()), "2-D x"),
    ("rank", lambda: Problem(ls(), AllOnes(), Rank(1)), "2-D x"),
    ("groups", lambda: Problem(ls(), AllOnes(), GroupL2(0.1, groups=[0, 1])), "groups"),
    ("V NaN", lambda: LeastSquares(V * np.nan, T), "V holds NaN"),
    ("V inf", lambda: LeastSquares(np.where(V > 1, np.inf, V), T), "V holds NaN or infinity"),
    ("t NaN", lambda: LeastSquares(V, T * np.nan), "t holds NaN"),
    ("empty", lambda: LeastSquares(V[:0], T[:0]), "V is empty"),
    ("no columns", lambda: LeastSquares(V[:, :0], T), "V is empty"),
    ("shapes", lambda: LeastSquares(V, T[1:]), "t must hold one target for each of the 12 rows"),
    ("one class", lambda: Logistic(V, np.ones(N)), "t holds one class only"),
    ("one class of many", lambda: Softmax(V, np.ones(N, int)), "t holds one class only"),
    ("negative counts", lambda: Poisson(V, T - 10), "t must be >= 0"),
    ("zero amounts", lambda: Gamma(V, np.zeros(N)), "t must be > 0"),
]


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_what_cannot_be_right_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("loss", "r1", "r2", "s"),
    [
        (ls(), CappedSimplex(N), Zero(), None),
        (ls(), CappedSimplex(1e-3), Zero(), None),
        (ls(), CappedSimplex(np.float32(3.5)), Ridge(np.ones(P)), list(S)),
        (ls(intercept=True), CappedSimplex(np.int64(3)), L1(np.ones(P)), S.astype(np.float32)),
        (Subspace(V, 2), CappedSimplex(9.5), Stiefel(), S > 0),
        (LeastSquares(V, np.column_stack([T, T])), AllOnes(), Rank(1), S.astype(int)),
        (ls(), AllOnes(), Sphere(), None),
        (ls(), AllOnes(), NonNegative(), None),
    ],
)
def test_what_is_right_is_not_refused(loss: Loss, r1: WeightSet, r2: Regularizer, s: Any) -> None:
    problem = Problem(loss, r1, r2, s)
    x = problem.r2.feasible(loss.start())
    assert np.isfinite(problem.objective(r1.start(N, problem.s), x))


def test_the_fingerprint_tells_sample_weights_apart() -> None:
    """Also where the best weights do not depend on them, as all of r1 = AllOnes() do not."""
    s = 1.0 + np.arange(N)
    prints = [Problem(ls(), AllOnes(), sample_weight=weight).fingerprint() for weight in (None, s, s[::-1].copy(), s)]
    assert len(set(prints)) == 3
    assert prints[1] == prints[3]
