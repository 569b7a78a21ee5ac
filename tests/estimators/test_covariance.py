"""TrimmedCovariance: the smallest determinant, breakdown, honest verdicts, equivariance, bad input, scikit-learn."""

from __future__ import annotations

import json
import pickle
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance, fast_mcd
from sklearn.utils.estimator_checks import parametrize_with_checks

from trimlearn.datasets import load_classic
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.robust.order import weighted_medians
from trimlearn.robust.scatter.factors import consistency, small_sample_scatter
from trimlearn.robust.scatter.judge import left_out, scores_inside, scores_outside
from trimlearn.robust.scatter.mcd import default_h, mcd
from trimlearn.robust.scatter.steps import DeterminantProblem, exchanges

pytestmark = pytest.mark.filterwarnings("ignore:.*they lie together")  # as the bad rows of many tests do


@pytest.mark.filterwarnings("ignore:the .* rows that agree best vary")  # some checks have two distinct rows only
@parametrize_with_checks([TrimmedCovariance(), TrimmedCovariance(contamination=0.2, reweight=False)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def clustered(n: int, p: int, share: float, far: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows with correlations, some of them moved ``far`` (in standard deviations) together; and which."""
    rng = np.random.default_rng(seed)
    Z, u = rng.standard_normal((n, p)), rng.standard_normal(p)
    bad = np.arange(n) < share * n
    Z[bad] += far * u / np.linalg.norm(u)
    return Z @ rng.standard_normal((p, p)) + 5.0, bad


def log_det(A: np.ndarray) -> float:
    return float(np.linalg.slogdet(np.cov(A.T, bias=True).reshape(A.shape[1], -1))[1])


# ---- the optimum ----


@pytest.mark.parametrize(("n", "p", "h"), [(11, 1, 6), (13, 2, 8), (13, 3, 8)])
def test_the_smallest_determinant_of_all_subsets(n: int, p: int, h: int) -> None:
    for seed in range(4):
        A, _ = clustered(n, p, 0.3, 6.0, seed)
        least = min(log_det(A[list(rows)]) for rows in combinations(range(n), h))
        fit = mcd(A, np.ones(n), h)
        assert fit.log_det == pytest.approx(least, abs=1e-9)
        assert log_det(A[fit.w > 0]) == pytest.approx(least, abs=1e-9)


CLASSICS = [
    ("hbk", 3), ("stackloss", 4), ("wood", 5), ("bushfire", 5), ("milk", 8), ("pulpfiber", 8), ("salinity", 4),
    ("coleman", 6), ("aircraft", 5), ("delivery", 3), ("alcohol", 7), ("toxicity", 10),
]  # fmt: skip


@pytest.mark.parametrize(("name", "p"), CLASSICS)
def test_never_a_larger_determinant_than_scikit_learn(name: str, p: int, data_home: Path) -> None:
    A = load_classic(name, data_home).data[:, :p]
    h = int(default_h(len(A), p))
    support = fast_mcd(A, support_fraction=h / len(A), random_state=0)[2]
    assert support.sum() == h
    assert mcd(A, np.ones(len(A)), h).log_det <= log_det(A[support]) + 1e-8


def test_the_determinant_of_covmcd(data_home: Path) -> None:
    """robustbase's help page: covMcd(hbk.x) has crit −1.045500594135 at h = 39, with the divisor 38."""
    X = load_classic("hbk", data_home).data[:, :3]
    model = TrimmedCovariance(contamination=36, reweight=False, random_state=0).fit(X)
    assert model.objective_ + 3 * np.log(39 / 38) <= -1.045500594135 + 1e-9
    assert model.objective_ == pytest.approx(log_det(X[model.weights_ > 0]), abs=1e-9)
    values = [record.objective for record in model.history_]
    assert values == sorted(values, reverse=True) and values[-1] == model.objective_ and len(values) == model.n_iter_
    assert {record.h for record in model.history_} == {39.0}


def test_the_best_exchange_is_the_best_of_all() -> None:
    """From moments that C-steps leave alone, no single exchange of rows lowers the determinant."""
    A, _ = clustered(16, 2, 0.2, 5.0)
    for centred in (False, True):
        problem = DeterminantProblem(A, np.ones(16), 9.0, centred=centred)
        value, (mu, S) = exchanges(problem, problem.kept(np.ones((1, 16))))
        d2 = np.einsum("ij,jk,ik->i", A - mu, np.linalg.inv(S[0]), A - mu)
        kept = np.argsort(d2)
        for i in kept[:9]:
            for j in kept[9:]:
                w = np.isin(np.arange(16), np.append(kept[:9][kept[:9] != i], j)).astype(float)
                other = problem.kept(w[None]).S[0]
                assert np.linalg.slogdet(other)[1] >= value - 1e-9


# ---- who is an outlier ----


KNOWN = [("hbk", 3, True), ("bushfire", 5, False), ("wood", 5, True), ("radarImage", 5, False)]


@pytest.mark.filterwarnings("ignore:.* of the rows lie apart")  # bushfire's burnt ground and its scar are two groups
@pytest.mark.parametrize(("name", "p", "exactly"), KNOWN)
def test_known_outliers(name: str, p: int, exactly: bool, data_home: Path) -> None:
    known = json.loads((data_home / "classic_robust" / "known_outliers.json").read_text(encoding="utf-8"))[name]
    rows = {*known["rows"], *known.get("good_leverage_rows", [])}
    model = TrimmedCovariance(random_state=0).fit(load_classic(name, data_home).data[:, :p])
    flagged = set((np.flatnonzero(~model.inlier_mask_) + 1).tolist())
    assert rows <= flagged
    assert not exactly or flagged == rows


@pytest.mark.parametrize("p", [2, 5, 10, 20])
@pytest.mark.parametrize("share", [0.2, 0.4])
def test_clustered_contamination(p: int, share: float) -> None:
    X, bad = clustered(max(100, 20 * p), p, share, 5 * np.sqrt(p) + 5, seed=p)
    model = TrimmedCovariance(random_state=0).fit(X)
    assert not model.inlier_mask_[bad].any()
    assert model.inlier_mask_[~bad].mean() > 0.97
    assert model.contamination_ == pytest.approx(share, abs=0.03)
    clean = EmpiricalCovariance().fit(X[~bad])
    T = np.linalg.inv(np.linalg.cholesky(clean.covariance_))
    assert np.linalg.norm(T @ (model.location_ - clean.location_)) < 0.2
    assert np.abs(np.linalg.eigvalsh(T @ model.covariance_ @ T.T) - 1).max() < 0.2
    assert (model.predict(X) == np.where(bad, -1, 1)).mean() > 0.97


@pytest.mark.filterwarnings("ignore:.*a skewed tail is no error")  # some of the cluster is kept, on one side
@pytest.mark.filterwarnings("ignore:.*a heavy tail is no error")  # and joins the others to the rest of it
@pytest.mark.filterwarnings("ignore:.*a heavier tail than those of normal rows")
@pytest.mark.parametrize(("n", "least"), [(100, 0.5), (500, 0.8)])
def test_a_cluster_near_the_others_does_not_come_back_row_by_row(n: int, least: float) -> None:
    """Of a fifth of the rows at 5 standard deviations a few seem to be explained: fits to them explain the others."""
    found, wrong = [], []
    for seed in range(5):
        X, bad = clustered(n, 5, 0.2, 5.0, seed)
        inliers = TrimmedCovariance(n_starts=100, random_state=0).fit(X).inlier_mask_
        found.append(np.mean(~inliers[bad]))
        wrong.append(np.mean(~inliers[~bad]))
    assert np.mean(found) > least
    assert np.mean(wrong) < 0.02


@pytest.mark.parametrize(("n", "p"), [(50, 5), (100, 10), (300, 3), (40, 10), (30, 50)])
def test_clean_rows_are_left_alone(n: int, p: int) -> None:
    """χ² cut-offs at 0.975 flag a fifth of 50 clean rows in 5 dimensions, as covMcd does."""
    flagged, shares = [], []
    for seed in range(5):
        model = TrimmedCovariance(n_starts=50, random_state=0).fit(clustered(n, p, 0.0, 0.0, seed)[0])
        flagged.append((~model.inlier_mask_).mean())
        shares.append(model.contamination_)
    assert np.mean(flagged) < 0.03
    assert np.mean(shares) < 0.02


def test_a_fixed_cutoff_flags_its_share_of_clean_rows() -> None:
    X = np.random.default_rng(0).standard_normal((2000, 4))
    fixed = TrimmedCovariance(cutoff=0.975, random_state=0).fit(X)
    assert (~fixed.inlier_mask_).mean() == pytest.approx(0.025, abs=0.007)
    assert (~TrimmedCovariance(random_state=0).fit(X).inlier_mask_).mean() < 0.002


def test_raw_covariance_is_consistent() -> None:
    X = np.random.default_rng(0).standard_normal((4000, 3))
    model = TrimmedCovariance(contamination=0.5 - 1e-6, reweight=False, random_state=0).fit(X)
    assert np.abs(model.raw_covariance_ - np.eye(3)).max() < 0.12
    np.testing.assert_array_equal(model.covariance_, model.raw_covariance_)


def test_factors_are_those_of_robustbase() -> None:
    """.MCDcnp2(p, n, alpha) and .MCDcons(p, alpha) of robustbase 0.95."""
    for p, n, alpha, factor, c in [(1, 30, 0.6, 1.146468, 4.65997), (2, 40, 0.875, 1.031488, 1.422603),
                                   (3, 75, 0.6, 1.100531, 2.056804), (8, 120, 0.95, 1.019609, 1.073)]:  # fmt: skip
        half = (n + p + 1) // 2
        assert small_sample_scatter(half + (2 * alpha - 1) * (n - half), n, p) == pytest.approx(factor, abs=1e-6)
        assert consistency(alpha, p) == pytest.approx(c, abs=1e-5)


def test_the_laws_of_distances() -> None:
    """Scores of rows inside and outside the fit are χ_p in small samples; leaving a row out is what it says."""
    rng = np.random.default_rng(0)
    m, p, inside, outside = 15, 4, [], []
    for _ in range(3000):
        X = rng.standard_normal((m + 1, p))
        fit, new = X[:m], X[m] - X[:m].mean(axis=0)
        P = np.linalg.inv(np.cov(fit.T))
        inside.append((fit[0] - fit.mean(axis=0)) @ P @ (fit[0] - fit.mean(axis=0)))
        outside.append(new @ P @ new)
    for d2, scores in ((inside, scores_inside), (outside, scores_outside)):
        t2 = scores(np.array(d2), m, p) ** 2
        assert t2.mean() == pytest.approx(p, rel=0.06)
        assert (t2 > 11.143287).mean() == pytest.approx(0.025, abs=0.01)
    full = mcd(fit, np.ones(m), m)
    without = np.delete(fit, 0, axis=0)
    d = fit[0] - without.mean(axis=0)
    true = d @ np.linalg.inv(np.cov(without.T, bias=True) * (m - 1) / m) @ d
    assert left_out(full, full.squared_distances(fit), m)[0] == pytest.approx(true, rel=1e-9)


# ---- invariances ----


def test_affine_equivariance() -> None:
    X, _ = clustered(120, 4, 0.3, 12.0)
    M = np.random.default_rng(1).standard_normal((4, 4))
    a, b = TrimmedCovariance(random_state=0).fit(X), TrimmedCovariance(random_state=0).fit(X @ M - 3.0)
    np.testing.assert_array_equal(a.inlier_mask_, b.inlier_mask_)
    np.testing.assert_allclose(b.location_, a.location_ @ M - 3.0, rtol=1e-8)
    np.testing.assert_allclose(b.covariance_, M.T @ a.covariance_ @ M, rtol=1e-7)
    np.testing.assert_allclose(b.dist_, a.dist_, rtol=1e-6)


def test_features_of_scales_from_tiny_to_huge() -> None:
    X, bad = clustered(120, 4, 0.3, 12.0)
    units = np.array([1e-8, 1.0, 1e4, 1e8])
    a, b = TrimmedCovariance(random_state=0).fit(X), TrimmedCovariance(random_state=0).fit(X * units)
    np.testing.assert_array_equal(a.inlier_mask_, b.inlier_mask_)
    assert not b.inlier_mask_[bad].any()
    np.testing.assert_allclose(b.dist_, a.dist_, rtol=1e-8)
    np.testing.assert_allclose(b.covariance_ / np.outer(units, units), a.covariance_, rtol=1e-8)


@pytest.mark.parametrize("n", [90, 900])
def test_neither_order_nor_repetition_matter(n: int) -> None:
    X, _ = clustered(n, 3, 0.3, 8.0)
    rng = np.random.default_rng(0)
    s, order = rng.integers(0, 4, n), rng.permutation(n)
    a = TrimmedCovariance(random_state=0).fit(X, sample_weight=s)
    b = TrimmedCovariance(random_state=0).fit(np.repeat(X, s, axis=0))
    c = TrimmedCovariance(random_state=0).fit(X[order], sample_weight=s[order])
    for other in (b, c):
        np.testing.assert_allclose(other.covariance_, a.covariance_, rtol=1e-9)
        assert other.objective_ == pytest.approx(a.objective_, abs=1e-9)
        assert other.contamination_ == pytest.approx(a.contamination_, abs=1e-9)
    np.testing.assert_array_equal(c.inlier_mask_, a.inlier_mask_[order])
    np.testing.assert_array_equal(b.inlier_mask_, np.repeat(a.inlier_mask_, s))
    assert not a.weights_[s == 0].any()
    assert float(a.raw_weights_ @ s) == pytest.approx(a.raw_weights_ @ s)


def test_weighted_medians_are_medians_of_repetitions() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        Z, s = rng.integers(0, 5, (9, 2)).astype(float), rng.integers(1, 4, 9)
        np.testing.assert_array_equal(weighted_medians(Z, s.astype(float)), np.median(np.repeat(Z, s, axis=0), axis=0))


def test_assume_centered() -> None:
    X, bad = clustered(150, 3, 0.3, 20.0)
    X -= 5.0
    model = TrimmedCovariance(assume_centered=True, random_state=0).fit(X)
    np.testing.assert_array_equal(model.location_, 0.0)
    assert not model.inlier_mask_[bad].any() and model.inlier_mask_[~bad].mean() > 0.97


# ---- use ----


def test_scores_of_unseen_rows_and_the_likelihood() -> None:
    X, _ = clustered(200, 3, 0.2, 10.0)
    model = TrimmedCovariance(random_state=0).fit(X)
    np.testing.assert_allclose(model.mahalanobis(X), model.dist_)
    np.testing.assert_allclose(model.score_samples(X), -model.dist_)
    np.testing.assert_allclose(model.outlier_score(X) ** 2, model.dist_)
    np.testing.assert_allclose(model.precision_ @ model.covariance_, np.eye(3), atol=1e-8)
    plain = EmpiricalCovariance().fit(X)
    plain.location_, plain.precision_ = model.location_, model.precision_
    assert model.score(X[:50]) == pytest.approx(plain.score(X[:50]))
    assert model.predict(model.location_[None] + 100.0).tolist() == [-1]
    assert TrimmedCovariance(store_precision=False, random_state=0).fit(X).precision_ is None


def test_rethreshold_and_pickle() -> None:
    X = clustered(200, 3, 0.2, 10.0)[0]
    model = TrimmedCovariance(random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.mahalanobis(X), model.dist_)
    with pytest.raises(ValueError, match="give X"):
        again.rethreshold(0.3)
    model.rethreshold(0.3)
    fresh = clone(model).set_params(contamination=0.3).fit(X)
    assert fresh.objective_ - 1e-9 <= model.objective_ <= fresh.objective_ + 0.01  # a warm start is a local search
    assert model.raw_weights_.sum() == pytest.approx(140)
    assert model.contamination_ == pytest.approx(0.3)
    assert model.contamination == "auto"


# ---- bad input ----


def test_rows_on_a_hyperplane_are_reported_and_flagged() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    X[:40, 2] = X[:40, 0] - 2 * X[:40, 1]
    with pytest.warns(UserWarning, match="2 of 3 directions"):
        model = TrimmedCovariance(random_state=0).fit(X)
    np.testing.assert_array_equal(model.inlier_mask_, np.arange(60) < 40)
    assert np.isfinite(model.precision_).all() and np.isfinite(model.dist_).all()
    assert model.dist_[40:].min() > 1e6 * model.dist_[:40].max()


def test_constant_features() -> None:
    X, bad = clustered(100, 3, 0.2, 15.0)
    X[:, 1] = 7.0
    with pytest.warns(UserWarning, match="Drop features"):
        model = TrimmedCovariance(random_state=0).fit(X)
    assert model.covariance_[1, 1] == 0.0 and np.isfinite(model.precision_).all()
    assert not model.inlier_mask_[bad].any() and model.inlier_mask_[~bad].mean() > 0.95


def test_more_features_than_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    X[:8] += 5.0
    model = TrimmedCovariance(random_state=0).fit(X)
    assert model.shrinkage_ > 0 and np.linalg.cond(model.covariance_) < 1e4
    np.testing.assert_array_equal(model.inlier_mask_, np.arange(40) >= 8)
    with pytest.raises(ValueError, match='shrinkage="auto"'):
        TrimmedCovariance(shrinkage=0.0, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [({"cutoff": 1.5}, "cutoff"), ({"cutoff": "x"}, "cutoff"), ({"shrinkage": 1.0}, "shrinkage"),
     ({"shrinkage": "x"}, "shrinkage"), ({"n_starts": 0}, "n_starts"), ({"contamination": "x"}, "contamination"),
     ({"contamination": 1.0}, "contamination")],
)  # fmt: skip
def test_wrong_parameters_are_named(parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        TrimmedCovariance(**parameters, random_state=0).fit(clustered(50, 2, 0.0, 0.0)[0])


def test_half_of_the_rows_and_no_weight_at_all() -> None:
    X = clustered(50, 2, 0.0, 0.0)[0]
    with pytest.warns(UserWarning, match="half"):
        TrimmedCovariance(contamination=0.5, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        TrimmedCovariance(random_state=0).fit(X, sample_weight=np.zeros(50))


@pytest.mark.parametrize(("n", "p"), [(15, 2), (25, 5), (15, 5), (15, 10)])
def test_few_clean_rows_are_not_accused(n: int, p: int) -> None:
    flagged = []
    for seed in range(60):
        X = np.random.default_rng(seed).standard_normal((n, p))
        flagged.append(np.mean(~TrimmedCovariance(random_state=0).fit(X).inlier_mask_))
    assert np.mean(flagged) <= 0.03
    assert np.quantile(flagged, 0.95) <= 0.2


@pytest.mark.filterwarnings("ignore:.* tail is no error")  # as two of twenty rows may be
@pytest.mark.parametrize(
    ("n", "p", "bad", "away"), [(20, 2, 2, 8.0), (20, 2, 6, 8.0), (50, 3, 15, 6.0), (30, 10, 6, 15)]
)
def test_few_rows_with_bad_ones_are_still_told(n: int, p: int, bad: int, away: float) -> None:
    found = []
    for seed in range(20):
        X = np.random.default_rng(1000 + seed).standard_normal((n, p))
        X[:bad, 0] += away
        found.append(np.mean(~TrimmedCovariance(random_state=0).fit(X).inlier_mask_[:bad]))
    assert np.mean(found) >= 0.9


# ---- features that are categories ----


def _with_categories(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Four normal features, dummies of three categories, a rare flag, an amount that mostly is zero; 5 % bad rows."""
    rng = np.random.default_rng(0)
    X, bad = rng.standard_normal((n, 4)), np.arange(n) < n // 20
    X[bad] += 8.0
    dummies, flag = np.eye(3)[rng.choice(3, n, p=[0.6, 0.2, 0.2])], rng.random(n) < 0.06
    return np.column_stack([X, dummies, flag, np.where(rng.random(n) < 0.6, 0.0, rng.exponential(size=n))]), bad


def test_categories_have_no_part_in_distances() -> None:
    X, bad = _with_categories()
    with pytest.warns(UserWarning, match=r"share one value of features 4, 5, 6, 7, 8, as of a category") as told:
        model = TrimmedCovariance(random_state=0).fit(X)
    assert len(told) == 1
    assert not model.inlier_mask_[bad].any() and model.inlier_mask_[~bad].mean() > 0.97
    assert abs(model.contamination_ - bad.mean()) < 0.02
    alone = TrimmedCovariance(random_state=0).fit(X[:, :4])
    np.testing.assert_allclose(model.outlier_scores_, alone.outlier_scores_)
    np.testing.assert_allclose(model.mahalanobis(X), alone.mahalanobis(X[:, :4]))
    np.testing.assert_allclose(model.score(X), alone.score(X[:, :4]))
    np.testing.assert_allclose(model.precision_[:4, :4], alone.precision_)
    assert not model.precision_[4:].any()
    np.testing.assert_array_equal(model.predict(X), np.where(model.outlier_scores_ <= model.threshold_, 1, -1))
    table = model.outlier_table()
    np.testing.assert_allclose(table.p_value, alone.outlier_table().p_value)


def test_the_covariance_has_the_categories() -> None:
    X, _ = _with_categories()
    with pytest.warns(UserWarning, match="as of a category"):
        model = TrimmedCovariance(random_state=0).fit(X)
    plain = np.cov(X[model.inlier_mask_].T)
    np.testing.assert_allclose(np.diag(model.covariance_)[4:], np.diag(plain)[4:], rtol=0.1)
    np.testing.assert_allclose(model.location_, X[model.inlier_mask_].mean(axis=0))
    again = model.rethreshold(0.1)
    np.testing.assert_allclose(again.mahalanobis(X) ** 0.5, again.outlier_scores_)
    assert again.covariance_.shape == (9, 9)


@pytest.mark.filterwarnings("ignore:.*is no error")  # as of categories
def test_features_keep_their_part_where_shrinkage_is_given_or_few_rows_differ() -> None:
    X, _ = _with_categories()
    assert TrimmedCovariance(shrinkage=0.3, random_state=0).fit(X).precision_[4:].any()
    slip = X[:, :5].copy()
    slip[:, 4] = 0.0
    slip[20:23, 4] = [3.0, -7.0, 11.0]  # three of 300 rows have something else than zero, each a value of its own
    with pytest.warns(UserWarning, match="vary in 4 of 5 directions"):
        model = TrimmedCovariance(random_state=0).fit(slip)
    assert not model.inlier_mask_[20:23].any()


def test_categories_are_told_by_name() -> None:
    pd = pytest.importorskip("pandas")
    X, _ = _with_categories()
    frame = pd.DataFrame(X[:, :5], columns=["a", "b", "c", "d", "member"])
    with pytest.warns(UserWarning, match="one value of feature 'member', as of a category"):
        TrimmedCovariance(random_state=0).fit(frame)


def test_two_equal_groups_are_told() -> None:
    X = np.random.default_rng(0).standard_normal((200, 4))
    X[:95] += 10.0
    with pytest.warns(UserWarning, match="48% of the rows are called bad, but they lie together"):
        TrimmedCovariance(random_state=0).fit(X)


def test_one_of_three_equal_groups_is_told_and_scattered_errors_are_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    three = X + 10.0 * np.eye(4)[np.arange(150) % 3]
    with pytest.warns(UserWarning, match="they lie together, in one place or a few"):
        TrimmedCovariance(random_state=0).fit(three)
    many = np.random.default_rng(0).normal(size=(600, 4)) + 10.0 * np.eye(4)[np.arange(600) % 3]
    with pytest.warns(UserWarning, match="they lie together, in one place or a few"):
        TrimmedCovariance(random_state=0).fit(many)
    X[:37] *= 10.0  # a quarter of the rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (~TrimmedCovariance(random_state=0).fit(X).inlier_mask_[:37]).mean() > 0.9


@pytest.mark.filterwarnings("ignore:.* of the rows")  # a tail is told
def test_the_share_of_bad_rows_is_about_the_share_flagged() -> None:
    """Rows were left out, the fit with the doubted ones explained them, and they stayed out: 44 % were flagged of rows
    of which no share was called bad."""
    for seed in (4, 13, 19, 22, 23):
        X = np.exp(np.random.default_rng([5, seed]).standard_normal((100 + 100 * (seed % 2), 4)))
        model = TrimmedCovariance(n_starts=100, random_state=0).fit(X)
        assert np.mean(~model.inlier_mask_) - model.contamination_ < 0.15


def test_a_row_off_equal_ones_overflows_in_silence() -> None:
    X = np.ones((50, 3))
    X[0] = 2.0
    with pytest.warns(UserWarning, match="vary in 0 of 3 directions"):
        model = TrimmedCovariance(random_state=0).fit(X)
    assert np.flatnonzero(~model.inlier_mask_).tolist() == [0]


def test_a_fifth_of_very_many_rows_is_found() -> None:
    """Chance has more choices of so many rows than doubles can count."""
    X = np.random.default_rng(0).normal(size=(4000, 3))
    X[:800, 0] += 7.0
    model = TrimmedCovariance(random_state=0).fit(X)
    assert model.inlier_mask_[:800].mean() < 0.01 and model.inlier_mask_[800:].mean() > 0.99


def test_rows_somewhat_wider_than_the_others_may_be_a_tail() -> None:
    """Of rows three times as wide as the others, not of rows ten times as wide."""
    X = np.random.default_rng(1).normal(size=(200, 5))
    near, far = X.copy(), X.copy()
    near[:60] *= 3.0
    far[:60] *= 10.0
    with pytest.warns(UserWarning, match="a heavy tail is no error"):
        TrimmedCovariance(random_state=0).fit(near)
    for clean_or_not in (X, far):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TrimmedCovariance(random_state=0).fit(clean_or_not)


def test_a_near_cluster_is_found_in_few_rows_per_feature() -> None:
    """The half of least determinant has rows of both groups: with it alone next to none of them was found."""
    X = np.random.default_rng(6).standard_normal((100, 10))
    X[:40] += 6.0 / np.sqrt(10.0)
    model = TrimmedCovariance(random_state=0).fit(X)
    assert model.inlier_mask_[:40].mean() < 0.1 and model.inlier_mask_[40:].mean() > 0.9


def test_so_few_rows_do_not_tell() -> None:
    with pytest.warns(UserWarning, match="too few to tell"):
        TrimmedCovariance(random_state=0).fit(np.array([[0.0], [0.1], [0.2], [30.0]]))
