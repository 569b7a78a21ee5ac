"""The mean of all fits that few rows allow: modes, their evidence, and what the mean does on data known to be hard."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import norm

from trimlearn import TrimmedLinearRegression
from trimlearn.robust.regression.averaging import average_of_fits, likelier
from trimlearn.robust.regression.error_laws import LAWS, log_wild
from trimlearn.robust.regression.features import FeatureOdds, feature_odds, odds_of
from trimlearn.robust.regression.lts import least_trimmed_squares
from trimlearn.robust.regression.mm import WeightedRows
from trimlearn.robust.regression.modes import RIGHT, WRONG, Likelihood


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def sample(rng: np.random.Generator, n: int, p: int, bad: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, p))
    y = X.sum(axis=1) + 1 + rng.standard_normal(n)
    y[:bad] += 12
    return X, y


# ---- laws ----


@pytest.mark.parametrize("k", range(len(LAWS.skew)))
def test_every_law_of_right_rows_is_a_density_with_that_weight(k: int) -> None:
    law = LAWS.take(np.array([k]))

    def log_density(t: float) -> float:
        return float(law.log_right(np.array([[t]]))[0, 0])

    below, above = (quad(lambda t: np.exp(log_density(t)), *ends)[0] for ends in ((-200.0, 0.0), (0.0, 200.0)))
    assert below + above == pytest.approx(1.0, abs=1e-4)
    for t in (-3.0, -0.7, 0.4, 2.5):
        slope = (log_density(t + 1e-4) - log_density(t - 1e-4)) / 2e-4
        assert law.weight(np.array([[t]]))[0, 0] == pytest.approx(-slope / t, rel=1e-3)


def test_wrong_errors_are_a_mixture_of_scales() -> None:
    for t in (0.5, 4.0, 40.0):
        mixed = quad(lambda u, t=t: norm.pdf(t, scale=np.exp(u)), np.log(3.0), np.log(1e6))[0] / np.log(100 / 3.0)
        assert np.exp(log_wild(np.array([t]))[0]) == pytest.approx(mixed, rel=1e-3)


def test_a_row_far_out_is_wrong_more_often_but_never_by_its_features_alone() -> None:
    odds = odds_of(np.array([0.0, 3.0, 6.0, 9.0, 1e300]), 3.0)
    assert odds[:2].tolist() == [0.0, 0.0] and np.all(np.diff(odds[1:]) > 0)
    in_the_middle = LAWS.log_right(np.zeros((len(LAWS.skew), 1))).min() - log_wild(np.zeros(1))[0]
    prior = np.log(WRONG / RIGHT)
    assert prior + odds[-1] < in_the_middle  # a row on the fit is right, wherever it lies


# ---- modes ----


def test_em_ends_where_the_likelihood_is_largest(rng: np.random.Generator) -> None:
    X, y = sample(rng, 25, 2, bad=4)
    A = np.column_stack([X, np.ones(25)])
    rows = WeightedRows(A, y, np.ones(25))
    likelihood = Likelihood(rows, y, FeatureOdds(np.zeros(25)), 1e-6)
    modes = likelihood.settled(likelihood.begun((y - X.sum(axis=1) - 1)[None]))
    for k in np.flatnonzero(~modes.laws.grouped):  # a group of wrong rows tells nothing of x
        mode = modes.take(np.array([k]))
        best = likelihood._expected(mode, (y - rows.Q @ mode.u[0])[None]).log_likelihood[0]
        for direction in np.vstack([np.eye(3), -np.eye(3)]):
            moved = (y - rows.Q @ (mode.u[0] + 0.3 * mode.scale[0] * direction))[None]
            assert likelihood._expected(mode, moved).log_likelihood[0] < best


def test_the_evidence_of_clean_rows_is_the_integral(rng: np.random.Generator) -> None:
    """Of a mean, by the law without tails or wrong rows: ∫∫ Π N(tᵢ; x, σ²) dx dlog σ in closed form, times the prior
    probability that no row of 40 is wrong, ∫ (1 − π)⁴⁰ Beta(π)."""
    t = rng.standard_normal(40)
    rows = WeightedRows(np.ones((40, 1)), t, np.ones(40))
    likelihood = Likelihood(rows, t, FeatureOdds(np.zeros(40)), 1e-6)
    modes = likelihood.settled(likelihood.begun((t - t.mean())[None]))
    plain = np.flatnonzero((modes.laws.freedom > 1e6) & (modes.laws.skew == 1.0) & ~modes.laws.grouped)[0]
    squares = np.sum((t - t.mean()) ** 2)
    exact = gammaln(39 / 2) - np.log(2) - 39 / 2 * np.log(np.pi * squares)  # of √40 x, whose column has length 1
    none_wrong = np.log(RIGHT / (RIGHT + 40))
    found = likelihood.evidence(modes)[plain] - modes.laws.log_prior[plain]
    assert found == pytest.approx(exact + none_wrong, abs=0.1)


# ---- the mean ----


def test_neither_units_nor_offsets_matter(rng: np.random.Generator) -> None:
    X, y = sample(rng, 25, 2, bad=3)
    plain = TrimmedLinearRegression(random_state=0).fit(X, y)
    M, b = np.array([[2.0, 1.0], [0.0, 5.0]]), np.array([100.0, -40.0])
    other = TrimmedLinearRegression(random_state=0).fit(X @ M + b, 1e3 * y - 7)
    assert np.allclose(M @ other.coef_, 1e3 * plain.coef_, rtol=1e-4)
    assert np.array_equal(other.inlier_mask_, plain.inlier_mask_)
    assert np.allclose(other.outlier_probability_, plain.outlier_probability_, atol=1e-3)


def test_probability_and_mask_agree(rng: np.random.Generator) -> None:
    X, y = sample(rng, 30, 2, bad=5)
    model = TrimmedLinearRegression(random_state=0).fit(X, y)
    assert np.all(model.outlier_probability_[:5] > 0.9) and not model.inlier_mask_[:5].any()
    assert model.inlier_mask_[5:].all() and model.outlier_probability_[5:].max() < 0.5
    assert model.contamination_ == pytest.approx(model.outlier_probability_.mean())


def test_right_rows_of_huge_leverage_count() -> None:
    flagged = 0
    for seed in range(5):
        X, y = sample(np.random.default_rng(seed), 60, 2)
        y += 99 * X[:, 0] * (np.arange(60) < 3)
        X[:3, 0] *= 100
        flagged += (~TrimmedLinearRegression(random_state=0).fit(X, y).inlier_mask_[:3]).sum()
    assert flagged <= 1


@pytest.mark.filterwarnings("ignore:.*a rule of their own")
def test_a_cluster_of_bad_leverage_is_found() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = sample(rng, 40, 2)
        X[:8], y[:8] = 8 + X[:8] / 2, -20 + y[:8]
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
        assert not model.inlier_mask_[:8].any() and np.abs(model.coef_ - 1).max() < 0.7


@pytest.mark.parametrize("copies", [2, 5])
def test_rows_that_are_there_again_tell_nothing_new(copies: int) -> None:
    for seed in range(3):
        X, y = sample(np.random.default_rng(seed), 20, 2)
        once = TrimmedLinearRegression(random_state=0).fit(X, y)
        again = TrimmedLinearRegression(random_state=0).fit(np.repeat(X, copies, 0), np.repeat(y, copies))
        assert np.abs(once.coef_ - again.coef_).max() < 0.05  # (n + q + 1)/2 is not the same share of 20 and of 40
        assert np.array_equal(np.repeat(once.inlier_mask_, copies), again.inlier_mask_)


def test_few_clean_rows_are_left_alone_and_intervals_cover() -> None:
    flagged, covered = [], []
    for seed in range(20):
        rng = np.random.default_rng([9, seed])
        X, y = sample(rng, 20, 2)
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
        low, high = model.conf_int()[1:].T
        flagged.append(1 - model.inlier_mask_.mean())
        covered.append(np.mean((low <= 1) & (high >= 1)))
    assert np.mean(flagged) < 0.03 and np.quantile(flagged, 0.95) <= 0.2 and np.mean(covered) > 0.88


def test_skewed_errors_keep_the_mean(rng: np.random.Generator) -> None:
    """The intercept is where the mean of the errors is, not their mode."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng([4, seed])
        X = rng.standard_normal((40, 1))
        y = X[:, 0] + rng.exponential(size=40)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("trimlearn.estimators.linear.linear.warn_of_doubt", lambda *_, **__: None)
            found.append(TrimmedLinearRegression(random_state=0).fit(X, y).intercept_)
    assert np.mean(found) == pytest.approx(0.9, abs=0.15)  # rows in the far tail are flagged in some


def test_a_mean_of_fits_is_one_of_several(rng: np.random.Generator) -> None:
    X, y = sample(rng, 15, 1, bad=2)
    A = np.column_stack([X, np.ones(15)])
    rows = WeightedRows(A, y, np.ones(15))
    x = np.array([1.0, 1.0])
    found = average_of_fits(rows, x, x[None], FeatureOdds(np.zeros(15)), 0.0, intercept=True)
    assert found.scatter is not None and len(found.scatter) > 1
    assert np.abs(found.scatter[:, :1]).max() > 0 and found.w.max() == pytest.approx(1.0)


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_no_row_more_or_less_makes_a_difference(law: str) -> None:
    """Where the mean gives way to the MM-estimate: from 100 to 200 rows a coefficient."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((405, 1))
    y = X[:, 0] + (rng.standard_normal(405) if law == "normal" else rng.exponential(size=405) - 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimlearn.estimators.linear.linear.warn_of_doubt", lambda *_, **__: None)
        fits = {n: TrimmedLinearRegression(random_state=0).fit(X[:n], y[:n]) for n in (199, 201, 399, 401)}
    for n in (199, 399):
        width = np.diff(fits[n].conf_int())[1, 0] / 4
        assert abs(fits[n].coef_[0] - fits[n + 2].coef_[0]) < 0.5 * width
        assert np.diff(fits[n + 2].conf_int())[1, 0] / 4 == pytest.approx(width, rel=0.05)
        assert np.mean(fits[n].inlier_mask_ != fits[n + 2].inlier_mask_[:n]) < 0.02


def test_an_offset_costs_no_digits(rng: np.random.Generator) -> None:
    X, y = sample(rng, 30, 2, bad=3)
    plain, other = (TrimmedLinearRegression(random_state=0).fit(X, y + offset) for offset in (0.0, 1e8))
    assert np.allclose(plain.coef_, other.coef_, atol=1e-6)


def test_the_majority_is_right() -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((200, 3))
    y = X.sum(axis=1) + rng.standard_normal(200) + 51.0 * (np.arange(200) < 90)
    model = TrimmedLinearRegression(random_state=0).fit(X, y)
    assert np.array_equal(model.inlier_mask_, np.arange(200) >= 90) and abs(model.intercept_) < 0.5


@pytest.mark.parametrize("n", [60, 500])
def test_a_curve_is_told_though_no_row_is_flagged(n: int) -> None:
    rng = np.random.default_rng(8)
    x = rng.uniform(-2, 2, n)
    with pytest.warns(UserWarning, match="bend along the fit"):
        TrimmedLinearRegression(random_state=0).fit(x[:, None], x**2 + rng.standard_normal(n))


def test_doubt_is_told_in_the_summary_and_in_a_sandwich() -> None:
    """Four rows of 21 at 5 σ, as in stackloss: fits with and without them explain them about as well."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((21, 3))
    y = rng.standard_normal(21)
    y[:4] += 4.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trimlearn.estimators.linear.linear.warn_of_doubt", lambda *_, **__: None)
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    unsure = (model.outlier_probability_ > 0.25) & (model.outlier_probability_ < 0.75)
    assert model.summary().in_doubt == unsure.sum()
    assert (f"{unsure.sum()} rows are in doubt" in str(model.summary())) == bool(unsure.any())
    assert model._scatter is not None
    between = np.sqrt(np.sum(np.roll(model._scatter, 1, axis=1) ** 2, axis=0))
    assert np.all(model.inference("HC1").std_error >= between)


def test_a_cluster_that_most_rows_do_not_show_is_far_from_the_right_ones() -> None:
    """A quarter of 60 rows, whose scatter the covariance determinant takes for that of all: beside the rows of a fit
    that leaves it out, it is far, whatever the units of the features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    X[:15] = 10 / np.sqrt(5) + X[:15] / 2
    right = np.ones((2, 60))
    right[1, :15] = 0.0
    for units in (1.0, 1e-6, 1e6):
        odds = feature_odds(X * units + units, np.ones(60), seed=0)
        kept, left = odds.beside(right)
        assert np.all(left[:15] > 1.5) and np.all(left[15:] < 1.5)
        assert np.allclose(kept, odds.overall, atol=1.0)


def test_no_distance_is_known_of_dummies() -> None:
    odds = feature_odds(np.repeat(np.eye(3), 10, axis=0), np.ones(30), seed=0)
    assert odds.beside(np.ones((4, 30))).tolist() == np.zeros((4, 30)).tolist()


def test_a_quarter_of_bad_leverage_is_found_in_five_features() -> None:
    for seed in range(4):
        rng = np.random.default_rng([4, seed])
        X, y = rng.standard_normal((60, 5)), rng.standard_normal(60)
        X[:15], y[:15] = 10 / np.sqrt(5) + X[:15] / 2, 20 + y[:15]
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
        assert not model.inlier_mask_[:15].any() and model.inlier_mask_[15:].mean() > 0.95


def test_two_fifths_of_bad_leverage_are_found_though_half_of_the_rows_lie_nearer_to_another_plane() -> None:
    for seed in range(3):
        rng = np.random.default_rng([7, seed])
        X, y = rng.standard_normal((100, 5)), rng.standard_normal(100)
        X[:40], y[:40] = 10 / np.sqrt(5) + X[:40] / 2, 20 + y[:40]
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
        assert np.sum(model.raw_coef_**2) > 2  # the plane through the cluster, on which least trimmed squares ends
        assert not model.inlier_mask_[:40].any() and model.inlier_mask_[40:].mean() > 0.95


@pytest.mark.filterwarnings("ignore:.*a rule of their own")  # of a cluster in twenty features
@pytest.mark.parametrize("efficiency", ["average", "mm", "reweight"])
@pytest.mark.parametrize(("n", "p", "share"), [(300, 5, 0.4), (500, 5, 0.45), (1000, 5, 0.42), (2000, 20, 0.42)])
def test_as_many_bad_leverage_points_are_found_among_more_rows(n: int, p: int, share: float, efficiency: str) -> None:
    """Where least trimmed squares itself ends on the plane through them, whether fits are averaged or not."""
    bad = round(share * n)
    for seed in range(2):
        rng = np.random.default_rng([9, seed])
        X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
        X[:bad], y[:bad] = 10 / np.sqrt(p) + X[:bad] / 2, 20 + y[:bad]
        model = TrimmedLinearRegression(random_state=0, efficiency=efficiency).fit(X, y)
        assert np.sum(model.raw_coef_**2) > 1
        assert not model.inlier_mask_[:bad].any() and model.inlier_mask_[bad:].mean() > 0.95


def test_where_no_row_is_wrong_no_other_fit_is_far_likelier() -> None:
    for seed in range(5):
        rng = np.random.default_rng([5, seed])
        A, t = np.column_stack([rng.standard_normal((400, 3)), np.ones(400)]), rng.standard_t(3, 400)
        found = least_trimmed_squares(A, t, 202, seed=seed)
        assert likelier(WeightedRows(A, t, np.ones(400)), found.coef, found.basins, 0.1) is None


def test_a_warm_fit_averages_as_many_planes(rng: np.random.Generator) -> None:
    X, y = rng.standard_normal((100, 5)), rng.standard_normal(100)
    X[:40], y[:40] = 10 / np.sqrt(5) + X[:40] / 2, 20 + y[:40]
    model = TrimmedLinearRegression(random_state=0, warm_start=True).fit(X, y)
    assert not model.inlier_mask_[:40].any() and not model.fit(X, y).inlier_mask_[:40].any()


@pytest.mark.parametrize("law", ["uniform", "exponential"])
def test_right_rows_with_light_or_skewed_errors_are_no_group(law: str) -> None:
    flagged = []
    for seed in range(3):
        rng = np.random.default_rng([6, seed])
        X = rng.standard_normal((200, 2))
        errors = rng.uniform(-1, 1, 200) if law == "uniform" else rng.exponential(size=200)
        model = TrimmedLinearRegression(random_state=0).fit(X, X.sum(axis=1) + errors)
        flagged.append(1 - model.inlier_mask_.mean())
    assert np.mean(flagged) <= 0.03
