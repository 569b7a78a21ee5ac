"""r1: projections and selections against naive twins, optimality, ties, sample weights, groups, backends, bad input."""

from __future__ import annotations

from itertools import combinations
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog, minimize

from trimlearn._utils.arrays import kth_smallest, to_numpy
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet, snap_h

BACKENDS = ["numpy", "torch"]


def array(values: Any, backend: str, dtype: str = "float64") -> Any:
    if backend == "numpy":
        return np.asarray(values, dtype=dtype)
    torch = pytest.importorskip("torch")
    return torch.asarray(np.asarray(values, dtype=dtype))


@st.composite
def problems(draw: Any, ties: bool = True) -> tuple[np.ndarray, np.ndarray, float]:
    """(values, integer sample weights with at least one > 0, h in quarters, 0 < h <= Σs); values often tied."""
    n = draw(st.integers(1, 12))
    tied = st.integers(-4, 4).map(lambda k: k / 4)
    value = st.floats(-5, 5) | tied if ties else st.floats(-5, 5)
    values = draw(st.lists(value, min_size=n, max_size=n, unique=not ties))
    s = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    h = draw(st.integers(1, 4 * sum(s))) / 4
    return np.array(values), np.array(s, dtype=float), h


def mass(v: np.ndarray, s: np.ndarray, level: float) -> float:
    return float(np.sum(s * np.clip(v - level, 0, 1)))


def naive_prox(v: np.ndarray, s: np.ndarray, h: float) -> np.ndarray:
    """Bisection on λ."""
    level = brentq(lambda a: mass(v, s, a) - h, v.min() - 1.5, v.max() + 0.5, xtol=1e-14) if h < s.sum() else -inf
    return np.where(s > 0, np.clip(v - level, 0, 1), 0)


def naive_minimise(f: np.ndarray, s: np.ndarray, h: float) -> np.ndarray:
    """Fill the levels of f from the lowest, each level's rows equally."""
    w = np.zeros_like(f)
    for value in np.unique(f):
        tied = (f == value) & (s > 0)
        if tied.any():
            w[tied] = min(1.0, max(0.0, h) / s[tied].sum())
            h -= s[tied].sum()
    return w


# ---- the capped simplex against its twins ----


@given(problems())
def test_prox_equals_bisection(case: tuple[np.ndarray, np.ndarray, float]) -> None:
    v, s, h = case
    np.testing.assert_allclose(CappedSimplex(h).prox(v, s), naive_prox(v, s, h), atol=1e-11)
    if h <= v.size:
        np.testing.assert_allclose(CappedSimplex(h).prox(v), naive_prox(v, np.ones_like(v), h), atol=1e-11)


@given(problems())
def test_minimise_equals_filling_by_level(case: tuple[np.ndarray, np.ndarray, float]) -> None:
    f, s, h = case
    np.testing.assert_allclose(CappedSimplex(h).minimise(f, s), naive_minimise(f, s, h), atol=1e-12)
    if h <= f.size:
        np.testing.assert_allclose(CappedSimplex(h).minimise(f), naive_minimise(f, np.ones_like(f), h), atol=1e-12)


def test_prox_equals_a_quadratic_program() -> None:
    rng = np.random.default_rng(0)
    for _ in range(8):
        n = 6
        v, s, h = rng.normal(size=n), rng.uniform(0.2, 2, n), 0.0
        h = float(rng.uniform(0.2, 0.9) * s.sum())
        found = minimize(
            lambda w, v=v, s=s: 0.5 * np.sum(s * (w - v) ** 2),
            np.full(n, h / s.sum()),
            jac=lambda w, v=v, s=s: s * (w - v),
            bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda w, s=s, h=h: s @ w - h, "jac": lambda w, s=s: s},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 300},
        )
        np.testing.assert_allclose(CappedSimplex(h).prox(v, s), found.x, atol=1e-6)


def test_minimise_equals_a_linear_program_and_enumeration() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        f, s = rng.normal(size=7), rng.uniform(0.2, 2, 7)
        h = float(rng.uniform(0.1, 0.95) * s.sum())
        best = linprog(s * f, A_eq=s[None], b_eq=[h], bounds=(0, 1))
        np.testing.assert_allclose(CappedSimplex(h).minimise(f, s), best.x, atol=1e-8)
        kept = min(combinations(range(7), 4), key=lambda rows: sum(f[list(rows)]))
        np.testing.assert_array_equal(np.flatnonzero(CappedSimplex(4).minimise(f)), kept)


@given(problems(), st.integers(0, 2**32 - 1))
def test_no_feasible_candidate_is_better(case: tuple[np.ndarray, np.ndarray, float], seed: int) -> None:
    v, s, h = case
    r1, rng = CappedSimplex(h), np.random.default_rng(seed)
    projected, selected = r1.prox(v, s), r1.minimise(v, s)
    assert r1.contain(projected, s, tol=1e-12)
    assert r1.contain(selected, s, tol=1e-12)
    for _ in range(5):
        w = r1.minimise(rng.normal(size=v.size), s)
        w = w + rng.uniform() * (r1.start(v.size, s) - w)
        assert s @ (projected - v) ** 2 <= s @ (w - v) ** 2 + 1e-10
        assert (s * selected) @ v <= (s * w) @ v + 1e-10


@given(problems())
def test_prox_satisfies_kkt(case: tuple[np.ndarray, np.ndarray, float]) -> None:
    """w − v = −λ on free rows, ≥ −λ at 0, ≤ −λ at 1, with one λ for all."""
    v, s, h = case
    w = CappedSimplex(h).prox(v, s)
    slack, present = v - w, s > 0
    low = np.max(slack[present & (w < 1)], initial=-inf)  # λ is at least v − w wherever w could grow
    high = np.min(slack[present & (w > 0)], initial=inf)  # and at most v − w wherever it could shrink
    assert low <= high + 1e-11


# ---- ties, sample weights, order ----


def test_tied_rows_share_what_is_left() -> None:
    f = np.array([2.0, 1.0, 2.0, 0.0, 2.0, 9.0])
    np.testing.assert_allclose(CappedSimplex(3).minimise(f), [1 / 3, 1, 1 / 3, 1, 1 / 3, 0], atol=1e-15)
    np.testing.assert_array_equal(CappedSimplex(2.5).minimise(np.zeros(5)), np.full(5, 0.5))
    np.testing.assert_allclose(CappedSimplex(2.5).prox(np.full(5, 7.3)), np.full(5, 0.5), atol=1e-15)


@given(problems())
def test_weight_k_is_the_row_k_times(case: tuple[np.ndarray, np.ndarray, float]) -> None:
    v, s, h = case
    rows = np.repeat(np.arange(v.size), s.astype(int))
    r1 = CappedSimplex(h)
    for weighted, repeated in [(r1.prox(v, s), r1.prox(v[rows])), (r1.minimise(v, s), r1.minimise(v[rows]))]:
        np.testing.assert_allclose(weighted[rows], repeated, rtol=0, atol=1e-12)
        assert not weighted[s == 0].any()


@given(problems(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(case: tuple[np.ndarray, np.ndarray, float], random: Any) -> None:
    v, s, h = case
    p = np.array(random.sample(range(v.size), v.size))
    r1 = CappedSimplex(h)
    np.testing.assert_allclose(r1.prox(v[p], s[p]), r1.prox(v, s)[p], rtol=0, atol=1e-13)
    np.testing.assert_allclose(r1.minimise(v[p], s[p]), r1.minimise(v, s)[p], rtol=0, atol=1e-13)


def test_a_threshold_at_a_sum_of_weights_leaves_no_crumbs() -> None:
    """h = Σs of the 7 best rows up to rounding: the eighth must not get weight 1e-16, for w > 0 means inlier."""
    rng = np.random.default_rng(2)
    f = np.arange(10.0)
    for _ in range(50):
        s = rng.uniform(0.05, 0.3, 10)
        w = CappedSimplex(float(sum(s[:7][::-1]))).minimise(f, s)
        np.testing.assert_array_equal(w > 0, f < 7)
        assert w.max() <= 1


def test_weights_that_a_running_sum_swallows() -> None:
    """1.5 + 1e-16 is 1.5, a hundred thousand times: the running sum of s never reaches an h that Σs exceeds."""
    s = np.append(1.5, np.full(100_000, 1e-16))
    f = np.arange(len(s), dtype=float)
    assert np.cumsum(s)[-1] == 1.5 < s.sum() - 5e-12
    w = CappedSimplex(1.5 + 5e-12).minimise(f, s)
    assert w[0] == 1 and np.all((w >= 0) & (w <= 1))


def test_a_projection_whose_free_row_weighs_next_to_nothing() -> None:
    """The root of a piece is a difference of sums over a slope of 1e-17: rounding must not lead out of the piece."""
    s, v = np.array([0.2161, 1.25786221e-17, 5.90904697e-18]), np.array([-0.32, 0.0, 1.0])
    h = s[1] + s[2]
    w = CappedSimplex(h).prox(v, s)
    assert w[0] == 0
    assert abs(np.sum(s * w) - h) <= 1e-15 * s.sum()
    s, v = np.array([1.37835629e-10, 2.28050555e-15, 4.23943217e-02]), np.array([2.0, 1.0, 1.0])
    assert abs(np.sum(s * CappedSimplex(1.3783790953909655e-10).prox(v, s)) - 1.3783790953909655e-10) <= 1e-13


def test_a_part_of_a_row_that_is_more_than_rounding_counts() -> None:
    w = CappedSimplex(0.75 + 1e-10).minimise(np.arange(4.0), np.array([0.5, 0.25, 0.75, 1.0]))
    np.testing.assert_allclose(w, [1.0, 1.0, 1e-10 / 0.75, 0.0], rtol=1e-5)


def test_a_quota_may_exceed_its_group_by_rounding() -> None:
    s = np.array([0.3, 1.0, 1.0])
    assert 0.1 * 3 > 0.3
    r1 = GroupCappedSimplex(["a", "b", "b"], [0.1 * 3, 1.0])
    np.testing.assert_allclose(r1.minimise(np.array([9.0, 1.0, 2.0]), s), [1, 1, 0])


def test_overflowed_losses_come_last() -> None:
    f = np.array([nan, 3.0, inf, 1.0])
    np.testing.assert_array_equal(CappedSimplex(2).minimise(f), [0, 1, 0, 1])
    np.testing.assert_array_equal(CappedSimplex(3).minimise(f), [0.5, 1, 0.5, 1])
    np.testing.assert_array_equal(CappedSimplex(2).minimise(f, np.array([1.0, 1, 1, 2])), [0, 0, 0, 1])
    np.testing.assert_array_equal(f, [nan, 3.0, inf, 1.0])


# ---- h ----


def test_h_near_an_integer_is_that_integer() -> None:
    assert snap_h(60_000 * (1 - 0.9), 60_000) == 6000
    assert snap_h(34.4, 43) == 34.4
    assert snap_h(34.00003, 60_000) == 34  # what is rounding grows with the rows
    assert snap_h(34.00003, 43) == 34.00003
    assert snap_h(2.5 * (1 + 1e-10), 2.5) == 2.5  # all there is, up to rounding
    w = CappedSimplex(3 + 1e-12).minimise(np.arange(5.0))
    np.testing.assert_array_equal(w, [1, 1, 1, 0, 0])


@pytest.mark.parametrize("s", [None, np.array([1.0, 0.0, 0.3, 2.7, 1.1])])
def test_h_at_its_limit_keeps_everything_exactly(s: np.ndarray | None) -> None:
    total = 5.0 if s is None else float(s.sum())
    expected = np.ones(5) if s is None else (s > 0).astype(float)
    r1 = CappedSimplex(total)
    for w in (r1.prox(np.array([1e9, 3, -7, 0.1, -1e9]), s), r1.minimise(np.arange(5.0), s), r1.start(5, s)):
        np.testing.assert_array_equal(w, expected)


def test_start_is_the_centre() -> None:
    np.testing.assert_array_equal(CappedSimplex(3.5).start(7), np.full(7, 0.5))
    s = np.array([2.0, 0, 1, 1])
    np.testing.assert_array_equal(CappedSimplex(3).start(4, s), [0.75, 0, 0.75, 0.75])
    assert CappedSimplex(3).start(4, s).dtype == np.float64
    groups = GroupCappedSimplex(["a", "b", "a", "b"], {"a": 1, "b": 0.5})
    np.testing.assert_allclose(groups.start(4, s), [1 / 3, 0, 1 / 3, 0.5])


def test_a_long_step_selects_the_smallest_losses() -> None:
    """prox(w − τ f/n) → minimise(f) as τ → ∞, once no loss is tied with the threshold."""
    rng = np.random.default_rng(3)
    f, w, r1 = rng.exponential(size=50), CappedSimplex(31.4).start(50), CappedSimplex(31.4)
    errors = [np.abs(r1.prox(w - tau * f / 50) - r1.minimise(f)).max() for tau in (1, 1e2, 1e5, 1e9)]
    assert errors[0] > 0.1
    assert errors[2] < 1e-12
    assert errors[3] < 1e-6  # v is 1e7 here: what float64 leaves of a weight, and no worse


def test_large_values_lose_no_weight() -> None:
    """v spread over 12 decades, as τf/n is when some losses are huge: Σw = h all the same."""
    v = -np.logspace(-6, 6, 400)
    w = CappedSimplex(111.3).prox(v)
    assert abs(w.sum() - 111.3) < 1e-9
    np.testing.assert_allclose(w, naive_prox(v, np.ones(400), 111.3), atol=1e-9)


def test_level_is_found_among_values_of_very_different_sizes() -> None:
    v = 10.0 ** np.linspace(-8, 15, 200)
    level = CappedSimplex(100.3).level(lambda a: mass(v, np.ones(200), a), v.min() - 1, v.max())
    assert mass(v, np.ones(200), level) == pytest.approx(100.3, rel=1e-12)


@pytest.mark.parametrize("spread", ["normal", "near", "cauchy"])
@pytest.mark.parametrize("h", [1234.0, 777.7, 12.25])
def test_level_finds_the_multiplier_from_scalars(spread: str, h: float) -> None:
    rng = np.random.default_rng(4)
    v = {
        "normal": rng.normal,
        "near": lambda size: 1 - 1e-3 * rng.exponential(size=size),
        "cauchy": rng.standard_cauchy,
    }
    x, s = v[spread](size=2000), rng.integers(1, 4, 2000).astype(float)
    rounds = 0

    def summed(level: float) -> float:
        nonlocal rounds
        rounds += 1
        return mass(x, s, level)

    r1 = CappedSimplex(h)
    level = r1.level(summed, x.min() - 1, x.max())
    w = r1.prox(x, s)
    np.testing.assert_allclose(np.clip(x - level, 0, 1), w, atol=1e-13 * max(1, np.abs(x).max()))
    free = (w > 0) & (w < 1)
    np.testing.assert_allclose(level, (x - w)[free], atol=1e-12 * max(1, np.abs(x).max()))
    assert rounds <= 40


def test_level_at_the_ends_and_without_a_bracket() -> None:
    v = np.array([0.0, 0.2])
    assert CappedSimplex(2).level(lambda a: mass(v, np.ones(2), a), -1.0, 0.2) == -1.0
    # 0.1 + 0.1 + 0.1 is more than 0.3 by rounding alone: the end is the level.
    assert CappedSimplex(0.3).level(lambda a: sum([min(max(0.1 - a, 0.0), 1.0)] * 3), -0.9, 0.0) == 0.0
    with pytest.raises(ValueError, match="bracket"):
        CappedSimplex(1).level(lambda a: mass(v, np.ones(2), a), 0.1, 0.2)


# ---- groups ----


def test_a_small_group_among_many_rows_may_be_asked_for_a_little_more_than_it_has() -> None:
    """By what is rounding for all rows, though not for the group alone."""
    r1 = GroupCappedSimplex(["a"] + ["b"] * 999, {"a": 1 + 5e-7, "b": 900})
    assert r1.quotas(1000).tolist() == [1.0, 900.0]


def test_a_group_of_no_weight_starts_at_zero() -> None:
    s = np.array([0.0, 0.0, 1.0, 3.0])
    assert GroupCappedSimplex("aabb", 2).start(4, s).tolist() == [0.0, 0.0, 0.5, 0.5]  # warnings are errors here


@given(problems(), st.integers(1, 3), st.integers(0, 99))
def test_groups_are_capped_simplices_side_by_side(
    case: tuple[np.ndarray, np.ndarray, float], count: int, seed: int
) -> None:
    v, s, _ = case
    rng = np.random.default_rng(seed)
    labels = rng.integers(count, size=v.size)
    quota = {g: float(np.round(rng.uniform() * s[labels == g].sum() * 4) / 4) for g in np.unique(labels)}
    if sum(quota.values()) == 0:
        quota[labels[np.argmax(s)]] = 0.5
    r1 = GroupCappedSimplex(labels, quota)
    prox, selected = r1.prox(v, s), r1.minimise(v, s)
    for g, h in quota.items():
        rows = labels == g
        if h == 0:
            assert not prox[rows].any()
            assert not selected[rows].any()
        else:
            np.testing.assert_array_equal(prox[rows], CappedSimplex(h).prox(v[rows], s[rows]))
            np.testing.assert_array_equal(selected[rows], CappedSimplex(h).minimise(v[rows], s[rows]))
    assert r1.contain(prox, s)
    assert r1.contain(selected, s)


def test_groups_weight_k_is_the_row_k_times() -> None:
    rng = np.random.default_rng(5)
    v, labels, s = rng.normal(size=20), rng.choice(list("abc"), 20), rng.integers(0, 4, 20).astype(float)
    rows = np.repeat(np.arange(20), s.astype(int))
    for h in (17.3, {"a": 3.5, "b": 2, "c": 4.25}):
        weighted, repeated = GroupCappedSimplex(labels, h), GroupCappedSimplex(labels[rows], h)
        np.testing.assert_allclose(weighted.prox(v, s)[rows], repeated.prox(v[rows]), atol=1e-12)
        np.testing.assert_allclose(weighted.minimise(v, s)[rows], repeated.minimise(v[rows]), atol=1e-12)


def test_a_scalar_h_is_split_pro_rata() -> None:
    r1 = GroupCappedSimplex(["x"] * 6 + ["y"] * 2, 4)
    np.testing.assert_array_equal(r1.quotas(8), [3, 1])
    np.testing.assert_array_equal(r1.quotas(8, np.array([1.0] * 6 + [3.0, 3.0])), [2, 2])
    np.testing.assert_array_equal(r1.minimise(np.array([5.0, 4, 3, 2, 1, 0, 9, 8])), [0, 0, 0, 1, 1, 1, 0, 1])


def test_the_quotas_of_a_continuation_go_linearly_from_the_sizes_to_their_targets() -> None:
    r1 = GroupCappedSimplex(["a"] * 10 + ["b"] * 30, {"a": 9, "b": 15})
    assert r1.h == 24
    np.testing.assert_array_equal(r1.quotas(40), [9, 15])
    np.testing.assert_array_equal(r1.at_h(40).quotas(40), [10, 30])
    np.testing.assert_allclose(r1.at_h(32).quotas(40), [9.5, 22.5])
    np.testing.assert_allclose(r1.at_h(12).quotas(40), [4.5, 7.5])
    assert r1.at_h(32).h == 32
    assert r1.at_h(32).at_h(24).quotas(40).tolist() == [9, 15]
    assert GroupCappedSimplex(["a", "b", "b"], 2).at_h(1.5).quotas(3).tolist() == [0.5, 1.0]
    assert CappedSimplex(3).at_h(2).h == 2


def test_labels_of_any_kind() -> None:
    f = np.array([1.0, 0.0, 3.0, 2.0])
    for labels in ([(0, 1), (0, 1), (1, 1), (1, 1)], ["a", "a", 7, 7], np.array([True, True, False, False])):
        r1 = GroupCappedSimplex(labels, {labels[0]: 1, labels[2]: 2})
        np.testing.assert_array_equal(r1.minimise(f), [0, 1, 1, 1])
    r1 = GroupCappedSimplex(np.array([5, 5, 2, 2]), [2, 1])  # an array goes by sorted label
    assert r1.labels == [2, 5]
    np.testing.assert_array_equal(r1.minimise(f), [0, 1, 1, 1])


# ---- all ones ----


def test_all_ones() -> None:
    r1, s = AllOnes(), np.array([1.0, 0.0, 2.0])
    for w in (r1.start(3, s), r1.prox(np.array([9.0, -1, 0.5]), s), r1.minimise(np.array([nan, 1, inf]), s)):
        np.testing.assert_array_equal(w, [1, 0, 1])
    np.testing.assert_array_equal(r1.prox(np.zeros(3)), np.ones(3))
    assert r1.h == inf
    assert r1.at_h(2) is r1
    assert r1.contain(np.array([1.0, 0.3, 1.0]), s)
    assert not r1.contain(np.array([1.0, 0.3, 1.0]))


# ---- backends, dtypes, membership ----


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
def test_torch_equals_numpy_and_dtype_stays(dtype: str, weighted: bool) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    v, s = rng.normal(size=500), rng.integers(0, 3, 500)
    sets: list[WeightSet] = [CappedSimplex(333.3), GroupCappedSimplex(rng.integers(4, size=500), 120), AllOnes()]
    for r1 in sets:
        for method in ("prox", "minimise"):
            found = {}
            for backend in BACKENDS:
                weights = array(s, backend, dtype) if weighted else None
                w = getattr(r1, method)(array(v, backend, dtype), weights)
                assert str(w.dtype).endswith(dtype)
                assert r1.contain(w, weights)
                found[backend] = w
            assert isinstance(found["torch"], torch.Tensor)
            np.testing.assert_array_equal(to_numpy(found["torch"]), found["numpy"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_float32_sums_to_h(backend: str) -> None:
    """λ is found in float64; what is left is the rounding of 60,000 weights to float32, 3e-8 each."""
    for seed in range(6):
        v = np.random.default_rng(seed).uniform(-0.3, 0.9, 60_000)
        w = to_numpy(CappedSimplex(22_222.0).prox(array(v, backend, "float32")))
        assert abs(w.sum(dtype=np.float64) - 22_222) < 60_000 * 3e-8


@pytest.mark.parametrize("backend", BACKENDS)
def test_kth_smallest_is_the_sorted_value(backend: str) -> None:
    a = np.random.default_rng(8).integers(0, 20, 60).astype(float)
    assert [float(kth_smallest(array(a, backend), k)) for k in range(60)] == sorted(a)


def test_contain_sees_each_violation() -> None:
    r1 = CappedSimplex(2)
    assert r1.contain(np.array([1.0, 0.5, 0.5]))
    assert not r1.contain(np.array([1.0, 0.5, 0.4]))
    assert not r1.contain(np.array([1.1, 0.5, 0.4]))
    assert not r1.contain(np.array([1.0, 1.2, -0.2]))
    assert r1.contain(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    many = np.full(10_000, 0.5)
    assert CappedSimplex(5_001).contain(many, tol=1e-3)  # what is rounding grows with the rows
    assert not CappedSimplex(5_011).contain(many, tol=1e-3)
    groups = GroupCappedSimplex(["a", "a", "b"], {"a": 1, "b": 1})
    assert groups.contain(np.array([0.5, 0.5, 1.0]))
    assert not groups.contain(np.array([1.0, 1.0, 0.0]))


def test_repr_names_the_set() -> None:
    assert repr(CappedSimplex(34.4)) == "CappedSimplex(34.4)"
    assert repr(GroupCappedSimplex("aab", 2)) == "GroupCappedSimplex(2 groups, h=2.0)"
    assert repr(AllOnes()) == "AllOnes()"


# ---- bad input ----


@pytest.mark.parametrize("h", [0, -1, nan, inf, "3", None, True, np.bool_(True), 1j])
def test_h_must_be_a_positive_number(h: Any) -> None:
    with pytest.raises(ValueError, match="h must be"):
        CappedSimplex(h)
    with pytest.raises(ValueError, match="h must be"):
        GroupCappedSimplex(["a", "b"], h)


@pytest.mark.parametrize("call", ["check", "start", "prox", "minimise"])
def test_h_beyond_the_rows(call: str) -> None:
    s = np.array([0.5, 0.5, 1.0])
    argument = 3 if call in ("check", "start") else np.zeros(3)
    with pytest.raises(ValueError, match=r"h = 3.5 exceeds .* 3 .*choose"):
        getattr(CappedSimplex(3.5), call)(argument)
    with pytest.raises(ValueError, match=r"h = 2.5 exceeds .* 2 "):
        getattr(CappedSimplex(2.5), call)(argument, s)
    with pytest.raises(ValueError, match=r"h = 3.5 exceeds"):
        getattr(GroupCappedSimplex("aab", 3.5), call)(argument)
    assert getattr(CappedSimplex(3), call)(argument) is None or call != "check"


@pytest.mark.parametrize(
    ("groups", "h", "message"),
    [
        (["a", None], 1, "missing"),
        ([1.0, nan], 1, "missing"),
        ([], 1, "one label per row"),
        ([[1], [2]], 1, "one-dimensional"),
        (["a", "b"], {"a": 1}, "one quota for each label"),
        (["a", "b"], {"a": 1, "b": 1, "c": 1}, "one quota for each label"),
        (["a", "b"], [1, 1, 1], "one per group"),
        (["a", "b"], [1, -0.5], ">= 0 in every group"),
        (["a", "b"], [1, nan], ">= 0 in every group"),
        (["a", "b"], [0, 0], "the sum of the groups' quotas, must be a finite number > 0"),
        (["a", "b"], {"a": "many", "b": 1}, "one quota per group"),
    ],
)
def test_groups_that_cannot_be(groups: Any, h: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GroupCappedSimplex(groups, h)


def test_groups_and_rows_must_agree() -> None:
    r1 = GroupCappedSimplex(["a", "a", "b"], {"a": 1, "b": 1.5})
    with pytest.raises(ValueError, match="3 labels for 4 rows"):
        r1.check(4)
    with pytest.raises(ValueError, match=r"1.5 of group 'b', which has 1"):
        r1.check(3)
    r1.check(3, np.array([1.0, 1.0, 2.0]))


@pytest.mark.parametrize("s", [[1.0, 1.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, nan, 1.0]])
def test_sample_weights_that_cannot_be(s: list[float]) -> None:
    for r1 in (CappedSimplex(1), GroupCappedSimplex("aab", 1), AllOnes()):
        with pytest.raises(ValueError, match="sample_weight"):
            r1.check(3, np.array(s))


def test_only_finite_points_are_projected() -> None:
    for r1 in (CappedSimplex(1), GroupCappedSimplex("ab", 1)):
        with pytest.raises(ValueError, match="v must be finite"):
            r1.prox(np.array([-inf, 0.0]))
