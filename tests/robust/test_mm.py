"""MM-estimation: ψ, the fit, what it says of rows, and misfit that looks like bad rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from trimlearn import TrimmedLinearRegression
from trimlearn.estimators.linear import doubt
from trimlearn.robust.regression.misfit import looks_like_misfit
from trimlearn.robust.regression.mm import EASY, FIRM, Lqq, WeightedRows, chance, mm_estimate
from trimlearn.robust.scale import judge, judge_at


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


# ---- ψ ----


@pytest.mark.parametrize("k", [FIRM, EASY])
def test_psi_is_its_weight_and_its_slope(k: float) -> None:
    psi, t = Lqq(k), np.linspace(-15, 15, 2001)
    assert np.allclose(psi.value(t), t * psi.weight(t))
    middle, step = (t[1:] + t[:-1]) / 2, np.diff(t)
    assert np.allclose(np.diff(psi.value(t)) / step, psi.slope(middle), atol=0.01)
    assert np.all(np.diff(psi.weight(t[t >= 0])) <= 1e-12)
    assert psi.weight(np.array([0.0, psi.end, 1e300, np.inf])).tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("k", [FIRM, 1.25, EASY])
def test_constants_of_psi_are_integrals(k: float) -> None:
    psi = Lqq(k)

    def mean(f: str, power: int) -> float:
        g = getattr(psi, f)
        return float(quad(lambda t: float(g(np.array([t]))[0]) * t**power * norm.pdf(t), -12, 12, limit=400)[0])

    assert psi.consistency == pytest.approx(mean("weight", 2) / mean("weight", 0), abs=1e-5)
    square = quad(lambda t: float(psi.value(np.array([t]))[0]) ** 2 * norm.pdf(t), -12, 12, limit=400)[0]
    assert psi.efficiency == pytest.approx(mean("slope", 0) ** 2 / square, abs=1e-5)


def test_efficiencies() -> None:
    assert Lqq(FIRM).efficiency == pytest.approx(0.95, abs=1e-4) and Lqq(EASY).efficiency > 0.995


# ---- the fit ----


def sample(rng: np.random.Generator, n: int, p: int = 2, bad: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, p))
    y = X.sum(axis=1) + 1 + rng.standard_normal(n)
    y[:bad] += 20
    return X, y


def test_the_equations_are_solved(rng: np.random.Generator) -> None:
    X, y = sample(rng, 80, bad=16)
    A = np.column_stack([X, np.ones(80)])
    x = np.linalg.lstsq(A[16:], y[16:], rcond=None)[0]
    verdict = judge(y - A @ x, 42, 3, tails=True)
    found = mm_estimate(WeightedRows(A, y, np.ones(80)), (x, verdict), (x, verdict))
    assert found is not None and not found.w[:16].any() and found.w[16:].mean() > 0.95
    assert np.abs(A.T @ (found.w * (y - A @ found.x))).max() < 1e-5


def test_weights_are_smooth_and_the_fit_is_least_squares_with_them(rng: np.random.Generator) -> None:
    X, y = sample(rng, 100, bad=20)
    model = TrimmedLinearRegression(efficiency="mm", random_state=0).fit(X, y)
    assert not model.weights_[:20].any() and np.all((model.weights_ >= 0) & (model.weights_ <= 1))
    root, A = np.sqrt(model.weights_), np.column_stack([X, np.ones(100)])
    x = np.linalg.lstsq(A * root[:, None], y * root, rcond=None)[0]
    assert np.allclose(np.append(model.coef_, model.intercept_), x)
    assert np.array_equal(model.inlier_mask_, model.outlier_scores_ <= model.threshold_)
    assert model.contamination_ == pytest.approx(0.2, abs=0.02)
    hard = TrimmedLinearRegression(efficiency="reweight", random_state=0).fit(X, y)
    assert set(np.unique(hard.weights_)) == {0.0, 1.0}
    with pytest.raises(ValueError, match="efficiency"):
        TrimmedLinearRegression(efficiency="most").fit(X, y)


def test_a_row_of_weight_two_is_the_row_twice(rng: np.random.Generator) -> None:
    X, y = sample(rng, 40, bad=6)
    s = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    once = TrimmedLinearRegression(random_state=0).fit(X, y, sample_weight=s)
    twice = TrimmedLinearRegression(random_state=0).fit(np.repeat(X, s.astype(int), 0), np.repeat(y, s.astype(int)))
    assert np.allclose(once.coef_, twice.coef_, rtol=1e-9) and once.scale_ == pytest.approx(twice.scale_, rel=1e-9)
    assert np.allclose(once.conf_int(), twice.conf_int(), rtol=1e-6)


def test_units_and_offsets_do_not_matter(rng: np.random.Generator) -> None:
    X, y = sample(rng, 60, bad=9)
    plain = TrimmedLinearRegression(random_state=0).fit(X, y)
    moved = TrimmedLinearRegression(random_state=0).fit(1e-3 * X + 1e6, 1e4 * y)
    assert np.allclose(moved.coef_, 1e7 * plain.coef_, rtol=1e-4)
    assert np.allclose(moved.weights_, plain.weights_, atol=1e-4)


def test_single_precision_and_few_rows(rng: np.random.Generator) -> None:
    X, y = sample(rng, 50, bad=5)
    model = TrimmedLinearRegression(random_state=0).fit(X.astype(np.float32), y.astype(np.float32))
    assert model.coef_.dtype == np.float32 and model.weights_.dtype == np.float32
    for n in (2, 3, 4, 5, 6):
        with pytest.warns(UserWarning, match="too few for 2") if n < 4 else nullcontext():
            small = TrimmedLinearRegression(random_state=0).fit(X[10 : 10 + n, :1], y[10 : 10 + n])
        assert np.all(np.isfinite(small.coef_)) and small.inlier_mask_.any()


def test_gross_errors_in_two_fifths_of_twenty_rows_are_told_apart() -> None:
    kept = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 20])
        X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
        y[:8] += rng.uniform(10, 15, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            kept.append(TrimmedLinearRegression(random_state=0).fit(X, y).inlier_mask_[:8].mean())
    assert np.mean(kept) <= 0.03


def test_skewed_errors_are_met_by_a_narrower_psi() -> None:
    own, least = [], []
    for seed in range(8):
        rng = np.random.default_rng([seed, 200])
        X = rng.standard_normal((200, 2))
        y = rng.exponential(size=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            own.append(np.sum(TrimmedLinearRegression(random_state=0).fit(X, y).coef_ ** 2))
        A = np.column_stack([X, np.ones(200)])
        least.append(np.sum(np.linalg.lstsq(A, y, rcond=None)[0][:2] ** 2))
    assert np.mean(own) < 0.4 * np.mean(least)


def test_clean_small_samples_are_nearly_least_squares() -> None:
    own, least, flagged = [], [], []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X, y = sample(rng, 20)
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
        own.append(np.sum((model.coef_ - 1) ** 2))
        A = np.column_stack([X, np.ones(20)])
        least.append(np.sum((np.linalg.lstsq(A, y, rcond=None)[0][:2] - 1) ** 2))
        flagged.append(1 - model.inlier_mask_.mean())
    assert np.mean(own) <= 1.1 * np.mean(least) and np.mean(flagged) <= 0.03


def test_chance_falls_with_the_rows() -> None:
    assert chance(20, 3, 0.1) > chance(50, 3, 0.1) > chance(2000, 3, 0.1) > 1
    assert chance(20, 3, 0.3) > chance(20, 3, 0.1)


# ---- tails ----


def test_a_skewed_tail_is_clean_and_rows_far_beyond_it_are_not(rng: np.random.Generator) -> None:
    r = rng.exponential(size=2000) - 0.7
    plain, tails = judge(r, 1001, 1), judge(r, 1001, 1, tails=True)
    assert plain.contamination > 0.08 and tails.contamination < 0.5 * plain.contamination
    dirty = np.append(r, np.full(200, 30.0))
    found = judge(dirty, 1101, 1, tails=True)
    assert not found.inliers[2000:].any() and found.contamination == pytest.approx(1 / 11, abs=0.04)


def test_normal_rows_have_normal_tails(rng: np.random.Generator) -> None:
    r = norm.ppf((np.arange(1000) + 0.5) / 1000)
    assert judge_at(r, 1.0, tails=True).contamination == 0
    near = np.append(r[:900], np.linspace(3.5, 6, 100))
    assert judge_at(near, 1.0, tails=True).contamination == pytest.approx(0.1, abs=0.04)


# ---- misfit ----


def test_misfit_is_warned_of_and_gross_errors_are_not(rng: np.random.Generator) -> None:
    x, e = rng.standard_normal(200), 0.1 * rng.standard_normal(200)
    y = np.where(rng.random(200) < 0.5, x, -x) + e
    with pytest.warns(UserWarning, match="a rule of their own"):
        TrimmedLinearRegression(random_state=0).fit(x[:, None], y)
    u = rng.uniform(-1, 1, 200)
    with pytest.warns(UserWarning, match="a rule of their own"):
        TrimmedLinearRegression(random_state=0).fit(u[:, None], (u > 0.1) + 0.3 * e)
    y = x + e
    y[:80] += 2 + rng.random(80)
    assert TrimmedLinearRegression(random_state=0).fit(x[:, None], y).contamination_ == pytest.approx(0.4, abs=0.02)


def test_too_few_rows_are_no_misfit() -> None:
    assert not looks_like_misfit(np.arange(8.0)[:, None], np.arange(8.0), np.arange(8.0), cutoff=3.0)


def curve(x: np.ndarray) -> np.ndarray:
    return x**2


def step(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0.8, 5.0, 0.0)


def two_lines(x: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(x)) % 5 < 2, -2.0, 2.0) * x


@pytest.mark.parametrize("rule", [curve, step, two_lines])
@pytest.mark.parametrize("n", [60, 300])
def test_rules_that_no_line_follows_are_warned_of(rule: Callable[[np.ndarray], np.ndarray], n: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3, 3, n)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = TrimmedLinearRegression(random_state=0).fit(x[:, None], rule(x) + 0.2 * rng.standard_normal(n))
        accused, bent = (
            any(words in str(warning.message) for warning in caught) for words in ("a rule of their own", "bend along")
        )
        assert accused <= (model.contamination_ > 0.1) <= accused + bent  # a scale that covers the curve accuses nobody


def vertical(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, bad: np.ndarray) -> None:
    y[bad] += 15


def replaced(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, bad: np.ndarray) -> None:
    y[bad] = 20 * rng.standard_normal(bad.sum())


def cluster(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, bad: np.ndarray) -> None:
    X[bad] = 10 + 0.5 * rng.standard_normal((bad.sum(), X.shape[1]))
    y[bad] = -20 + rng.standard_normal(bad.sum())  # left as it was, with one feature, a level line explains all rows


def block(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, bad: np.ndarray) -> None:
    X[:, 0] = np.linspace(-2, 2, len(X))  # rows come in time, and those at the beginning are off
    y[bad] += 40


@pytest.mark.parametrize("dirty", [vertical, replaced, cluster, block])
@pytest.mark.parametrize(("n", "p"), [(60, 1), (200, 5)])
def test_gross_errors_are_no_misfit(dirty: Callable[..., None], n: int, p: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, p))
        y, bad = X.sum(axis=1) + rng.standard_normal(n), np.arange(n) < n // 4
        dirty(rng, X, y, bad)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = TrimmedLinearRegression(random_state=0).fit(X, y)
        assert not caught and model.contamination_ == pytest.approx(0.25, abs=0.1)


def test_misfit_is_asked_of_the_rows_that_are_flagged_and_of_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        doubt, "looks_like_misfit", lambda X, y, scores, cutoff: asked.append(np.sum(np.abs(scores) > cutoff))
    )
    for seed in range(8):  # the row that sets the cut-off moves a little in the last step
        X, y = sample(np.random.default_rng(seed), 60, bad=15)
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
        assert asked[-1] == np.sum(~model.inlier_mask_)


@pytest.mark.parametrize("p", [1, 3])
def test_leverage_points_are_no_misfit_though_they_begin_where_good_rows_end(p: int) -> None:
    rng = np.random.default_rng(p)
    X, bad = rng.standard_normal((400, p)), slice(0, 100)
    y = X.sum(axis=1) + rng.standard_normal(400)
    wide, far = X.copy(), y.copy()
    wide[bad] *= 10
    far[bad] = 10 * rng.standard_normal(100)
    assert TrimmedLinearRegression(random_state=0).fit(wide, far).contamination_ > 0.15
    X[bad] += 6
    y[bad] = -10 * p + rng.standard_normal(100)
    assert TrimmedLinearRegression(random_state=0).fit(X, y).contamination_ > 0.2


def test_a_cluster_with_a_few_rows_elsewhere_is_no_line(rng: np.random.Generator) -> None:
    X, r = rng.standard_normal((100, 2)), rng.standard_normal(100)
    X[:30], r[:30] = 20 + 0.1 * X[:30], 50 + 0.1 * r[:30]
    r[30] = -8.0
    assert not looks_like_misfit(X, r, r, cutoff=3.0)


@pytest.mark.parametrize("efficiency", ["average", "mm", "reweight"])
def test_the_threshold_parts_the_rows(efficiency: str) -> None:
    for seed in range(3):  # in the third, the last of the rounds of readmission moved a row across the cut-off
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 3))
        y = X @ [1.0, 2.0, 3.0] + 1 + 0.5 * rng.standard_normal(80)
        model = TrimmedLinearRegression(efficiency=efficiency, random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.inlier_mask_, model.outlier_scores_ <= model.threshold_)


def test_whole_numbers_of_which_nearly_half_lie_on_a_line_leave_nothing_to_fit_smoothly() -> None:
    rng = np.random.default_rng(23)  # of forty seeds the one in which its scale shrank to nothing
    X = rng.integers(0, 2, size=(200, 3)).astype(float)
    y = np.clip(np.round(3 + 0.3 * X.sum(axis=1) + 0.9 * rng.normal(size=200)), 1, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = TrimmedLinearRegression(efficiency="mm", random_state=0).fit(X, y)
    assert model.scale_ > 1e-9 and model.inlier_mask_.sum() > 50
