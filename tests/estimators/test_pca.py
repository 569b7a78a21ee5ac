"""TrimmedPCA: the optimum on small data, breakdown, honest verdicts, scikit-learn's contract, and data of any kind."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from scikit_learn import checks_of_fits
from trimlearn.datasets import load_judges
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.losses import Subspace
from trimlearn.problem import Problem
from trimlearn.regularizers import Stiefel
from trimlearn.robust.subspace import search as flat_fit
from trimlearn.robust.subspace.concentrate import FlatProblem, best_flat
from trimlearn.robust.subspace.flat import Flat, Points
from trimlearn.robust.subspace.search import FlatSearch
from trimlearn.smart import svrg
from trimlearn.weights import CappedSimplex

NOISE = 0.3


pytestmark = pytest.mark.filterwarnings("ignore:.*they lie together")  # as the bad rows of many tests do
EXACT = pytest.mark.filterwarnings("ignore:.*lie exactly in a subspace:UserWarning")  # of data made for other ends


@EXACT
@parametrize_with_checks([TrimmedPCA(), TrimmedPCA(n_components=1, center=None)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@EXACT
@checks_of_fits([TrimmedPCA(n_components=1)])
def test_scikit_learn_of_one_direction(estimator: Any, check: Any) -> None:
    check(estimator)


def contaminated(
    n: int, p: int, k: int, share: float, far: float, seed: int = 0, spread: float = NOISE
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, who is bad, and the p × k axes of the others. Bad rows form a cluster at ``far`` along another axis."""
    rng = np.random.default_rng(seed)
    B = np.linalg.qr(rng.standard_normal((p, k + 1)))[0]
    X = (rng.standard_normal((n, k)) * np.linspace(5, 2, k)) @ B[:, :k].T + NOISE * rng.standard_normal((n, p)) + 7
    bad = np.arange(n) < share * n
    X[bad] = 7 + far * B[:, k] + spread * rng.standard_normal((int(bad.sum()), p))
    return X, bad, B[:, :k]


def off(model: TrimmedPCA, B: np.ndarray) -> float:
    """The sine of the largest angle between the components and the axes B."""
    return float(np.linalg.norm(model.components_.T - B @ (B.T @ model.components_.T), 2))


# ---- the optimum ----


def judges_named(model: TrimmedPCA) -> set[str]:
    names = load_judges().names
    return {names[i].replace(".", ",").split(",")[0] for i in np.flatnonzero(model.weights_ == 0)}


OUTLYING = {"BRACKEN", "CALLAHAN", "DANNEHY", "DRISCOLL", "GRILLO", "MARTIN", "MIGNONE", "SADEN"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("center", "least"), [("mean", 0.12171547535), ("trimmed", 0.11504362829)])
def test_us_judges(center: str, least: float, seed: int) -> None:
    """Around the plain mean as in tests/test_starts.py; around the trimmed one most starts end at 0.11984."""
    X = load_judges().data
    model = TrimmedPCA(2, center=center, contamination=0.2, reweight=False, random_state=seed).fit(X)
    assert model.objective_ == pytest.approx(least, abs=1e-10)
    assert judges_named(model) == OUTLYING
    D = X - (X.mean(axis=0) if center == "mean" else np.average(X, axis=0, weights=model.weights_))
    f = 0.5 * np.sum((D - D @ model.components_.T @ model.components_) ** 2, axis=1)
    order = np.sort(f)
    assert (order[:34].sum() + 0.4 * order[34]) / 43 == pytest.approx(least, abs=1e-8)


def test_trimming_variables_on_the_transpose() -> None:
    """60 %-trimmed PCA of the ratings; the paper's point, with CONT, DMNR, INTG, PHYS at 0, has F = 0.16402."""
    table = load_judges()
    A = (table.data - table.data.mean(axis=0)).T
    model = TrimmedPCA(2, center=None, contamination=0.4, reweight=False, random_state=0).fit(A)
    assert model.objective_ == pytest.approx(0.157014342, abs=1e-8)
    loss = Subspace(A, 2)
    assert Problem(loss, CappedSimplex(7.2), Stiefel()).objective(model.weights_, model.components_.T) == pytest.approx(
        model.objective_
    )


def test_no_subset_is_better_on_tiny_data() -> None:
    from itertools import combinations

    X, _, _ = contaminated(11, 3, 1, 0.3, 3.0, seed=5)
    model = TrimmedPCA(1, contamination=4, reweight=False, random_state=0).fit(X)
    least = min(
        np.sum(np.linalg.svd(A - A.mean(axis=0), compute_uv=False)[1:] ** 2) / 22
        for A in (X[list(rows)] for rows in combinations(range(11), 7))
    )
    assert model.objective_ == pytest.approx(least, rel=1e-12)


def test_a_subspace_loss_may_be_told_where_to_start() -> None:
    A, U = np.random.default_rng(0).standard_normal((9, 4)), np.eye(4, 2)
    assert np.array_equal(Subspace(A, 2, start=U).start(), U)
    with pytest.raises(ValueError, match="start must have shape"):
        Subspace(A, 3, start=U)


def test_nothing_trimmed_is_pca() -> None:
    X, _, _ = contaminated(60, 7, 3, 0.0, 0.0)
    model, plain = TrimmedPCA(3, contamination=0.0, random_state=0).fit(X), PCA(3).fit(X)
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * plain.components_, axis=1)), 1, atol=1e-12)
    names = ("explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_", "mean_")
    for name in names:
        np.testing.assert_allclose(getattr(model, name), getattr(plain, name), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(X), plain.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(X)), plain.inverse_transform(plain.transform(X)), rtol=1e-9
    )
    assert model.weights_.min() == 1.0


def test_concentration_steps_never_raise_the_objective() -> None:
    X, _, _ = contaminated(300, 6, 2, 0.4, 4.0, seed=2)
    points, s = Points(X), np.ones(300)
    for seed in range(5):
        U = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 2)))[0]
        fit = FlatProblem(points, s, 160.5, free=True).concentrate(Flat(U, X[seed]))
        assert fit.converged and len(fit.history) > 2
        assert np.all(np.diff(fit.history) <= 1e-12 * fit.history[0])
        again = best_flat(points, fit.w, 2, fit.flat.m, free=True)
        np.testing.assert_allclose(again.m, fit.flat.m, atol=1e-9)


# ---- breakdown and verdicts ----


@pytest.mark.parametrize("far", [4.0, 50.0, 1e12, 1e200])
@pytest.mark.parametrize(("n", "p", "k"), [(200, 10, 2), (400, 60, 4), (3000, 20, 3)])
def test_forty_per_cent_in_an_orthogonal_direction(n: int, p: int, k: int, far: float) -> None:
    X, bad, B = contaminated(n, p, k, 0.4, far, spread=1.0)
    model = TrimmedPCA(k, random_state=0).fit(X)
    clean = PCA(k).fit(X[~bad])
    error = np.linalg.norm(clean.components_.T - B @ (B.T @ clean.components_.T), 2)
    assert off(model, B) <= 1.1 * error + 1e-6
    assert not model.inlier_mask_[bad].any()
    assert model.inlier_mask_[~bad].mean() > 0.97
    assert model.contamination_ == pytest.approx(0.4, abs=0.02)
    assert model.scale_ == pytest.approx(NOISE, rel=0.1)


@pytest.mark.parametrize(("n", "p", "k"), [(60, 8, 2), (400, 30, 4), (100, 150, 3), (1000, 10, 2)])
def test_clean_data_are_left_alone(n: int, p: int, k: int) -> None:
    X, _, _ = contaminated(n, p, k, 0.0, 0.0, seed=1)
    model = TrimmedPCA(k, random_state=0).fit(X)
    assert model.contamination_ * n < max(2.5, 0.02 * n)
    assert (~model.inlier_mask_).sum() <= max(3, 0.02 * n)
    clean = PCA(k).fit(X).explained_variance_
    np.testing.assert_allclose(model.explained_variance_, clean, rtol=0.1)


def test_few_rows_of_many_columns() -> None:
    X, bad, B = contaminated(80, 400, 2, 0.25, 30.0, spread=3.0)
    X[~bad] += 3 * (X[~bad] - 7) @ B @ B.T  # a signal that 60 rows can show
    model = TrimmedPCA(2, random_state=0).fit(X)
    assert not model.inlier_mask_[bad].any()
    assert model.contamination_ == pytest.approx(0.25, abs=0.05)
    assert off(model, B) < 0.3
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-12)


def test_outlier_map() -> None:
    """Far within the subspace, far from it, both, and neither."""
    X, _, B = contaminated(300, 8, 2, 0.0, 0.0)
    normal = np.linalg.svd(B.T)[2][2]
    X[0], X[1], X[2] = 7 + 60 * B[:, 0], 7 + 9 * normal, 7 + 60 * B[:, 0] + 9 * normal
    model = TrimmedPCA(2, random_state=0).fit(X)
    table = model.outlier_table()
    kinds = dict(zip(table["row"], table["kind"], strict=True))
    assert [kinds[i] for i in range(3)] == ["good leverage", "orthogonal outlier", "bad leverage"]
    assert list(table["row"][:2]) in ([1, 2], [2, 1])
    assert model.weights_[0] == 1 and model.weights_[1] == model.weights_[2] == 0
    np.testing.assert_allclose(model.outlier_score(X), model.outlier_scores_, rtol=0.1)  # those fitted without the row
    np.testing.assert_allclose(model.outlier_score(X)[1:3], model.outlier_scores_[1:3], rtol=1e-10)
    fresh = model.outlier_table(X[:4])
    assert sorted(zip(fresh["row"], fresh["kind"], strict=True))[:3] == sorted(kinds.items())[:3]
    np.testing.assert_allclose(model.score_distance(X), model.score_distances_, rtol=1e-8)
    np.testing.assert_allclose(model.orthogonal_distance(X)[1], 9, rtol=0.1)
    assert np.array_equal(model.outlier_scores_ <= model.threshold_, model.inlier_mask_)


def test_rows_of_different_scale_are_not_all_outliers() -> None:
    """Sparse counts: distances spread far more than those of normal rows of as many dimensions."""
    X = sp.random(2000, 200, 0.03, random_state=0, format="csr")
    assert TrimmedPCA(1, random_state=0).fit(X).contamination_ < 0.05


@pytest.mark.parametrize("reweight", [False, True])
def test_the_reweighted_fit_and_the_trimmed_one(reweight: bool) -> None:
    X, bad, _ = contaminated(200, 6, 2, 0.2, 20.0)
    model = TrimmedPCA(2, contamination=0.3, reweight=reweight, random_state=0).fit(X)
    assert model.raw_weights_.sum() == pytest.approx(140)
    assert model.contamination_ == pytest.approx(0.3)
    assert np.array_equal(model.weights_, model.raw_weights_) is not reweight
    assert model.weights_.sum() == pytest.approx(160, abs=3) if reweight else model.weights_.sum() == 140
    again = TrimmedPCA(2, contamination=0.2, reweight=reweight, random_state=0).fit(X)
    model.rethreshold(0.2)
    assert np.array_equal(again.inlier_mask_, model.inlier_mask_)
    assert model.objective_ == pytest.approx(again.objective_, rel=1e-9)
    assert not model.inlier_mask_[bad].any()


# ---- invariances ----


def test_neither_order_nor_repetition_matters() -> None:
    X, _, _ = contaminated(90, 5, 2, 0.3, 6.0)
    rng = np.random.default_rng(0)
    s = rng.integers(0, 4, 90)
    order = rng.permutation(90)
    weighted = TrimmedPCA(2, random_state=0).fit(X, sample_weight=s)
    shuffled = TrimmedPCA(2, random_state=0).fit(X[order], sample_weight=s[order])
    repeated = TrimmedPCA(2, random_state=0).fit(np.repeat(X, s, axis=0))
    for other in (shuffled, repeated):
        np.testing.assert_allclose(other.components_, weighted.components_, atol=1e-9)
        np.testing.assert_allclose(other.explained_variance_, weighted.explained_variance_, rtol=1e-9)
        assert other.objective_ == pytest.approx(weighted.objective_, rel=1e-10)
        assert other.contamination_ == pytest.approx(weighted.contamination_, abs=1e-9)
    np.testing.assert_array_equal(shuffled.weights_, weighted.weights_[order])


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_shifts_rotations_and_scales(scale: float) -> None:
    X, _, _ = contaminated(150, 5, 2, 0.3, 6.0)
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 5)))[0]
    model, moved = TrimmedPCA(2, random_state=0).fit(X), TrimmedPCA(2, random_state=0).fit(scale * (X @ Q + 10))
    assert np.array_equal(model.inlier_mask_, moved.inlier_mask_)
    np.testing.assert_allclose(np.abs(np.sum(moved.components_ * (model.components_ @ Q), axis=1)), 1, atol=1e-6)
    np.testing.assert_allclose(moved.explained_variance_, scale**2 * model.explained_variance_, rtol=1e-6)
    assert moved.scale_ == pytest.approx(scale * model.scale_, rel=1e-6)


def test_features_of_all_scales_together() -> None:
    rng = np.random.default_rng(0)
    scales = np.array([1e8, 1e4, 1.0, 1e-4, 1e-8])
    X = rng.standard_normal((200, 5)) * scales
    X[:20] = [0, 1e9, 0, 0, 0]
    model = TrimmedPCA(1, random_state=0).fit(X)
    np.testing.assert_allclose(np.abs(model.components_[0]), [1, 0, 0, 0, 0], atol=1e-3)
    assert not model.inlier_mask_[:20].any() and model.inlier_mask_[20:].mean() > 0.95


# ---- degenerate data ----


def test_an_exact_subspace() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 6)) + 3
    X[:15] += rng.standard_normal((15, 6))
    with pytest.warns(UserWarning, match="70% of the rows lie exactly in a subspace of 2 dimensions"):
        model = TrimmedPCA(2, random_state=0).fit(X)
    assert np.array_equal(model.inlier_mask_, np.arange(50) >= 15)
    assert model.objective_ < 1e-25 and model.contamination_ == pytest.approx(0.3, abs=0.005)
    assert np.all(np.isfinite(model.outlier_scores_)) and np.all(np.isfinite(model.score_samples(X)))
    scores = model.outlier_score(X)  # rounding errors say nothing about who is further out
    assert np.all(scores[15:] == 0) and np.all(scores[:15] > model.threshold_)
    np.testing.assert_array_equal(model.decision_function(X), model.threshold_ - scores)


@EXACT
@pytest.mark.parametrize("k", [1, 3, None, 0.9])
@pytest.mark.parametrize(
    "kind", ["constant feature", "constant", "duplicates", "n < p", "rank 1", "two rows", "one column"]
)
def test_degenerate_data_give_finite_answers(kind: str, k: Any) -> None:
    rng = np.random.default_rng(0)
    X = {
        "constant feature": np.column_stack([rng.standard_normal((40, 4)), np.full(40, 5.0)]),
        "constant": np.full((20, 4), 3.0),
        "duplicates": np.repeat(rng.standard_normal((4, 5)), 10, axis=0),
        "n < p": rng.standard_normal((6, 30)),
        "rank 1": np.outer(rng.standard_normal(30), np.arange(1.0, 6)),
        "two rows": rng.standard_normal((2, 6)),
        "one column": rng.standard_normal((30, 1)),
    }[kind]
    k = min(k, *X.shape) if isinstance(k, int) else k
    model = TrimmedPCA(k, random_state=0).fit(X)
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray):
            assert np.all(np.isfinite(value)), name
    C = model.components_
    np.testing.assert_allclose(C @ C.T, np.eye(len(C)), atol=1e-10)
    assert np.all(np.isfinite(model.score_samples(X)))
    if isinstance(k, int):
        assert C.shape == (k, X.shape[1])


# ---- how many components ----


def test_shares_of_variance_and_all_components() -> None:
    X, bad, _ = contaminated(300, 8, 3, 0.2, 40.0)
    clean = PCA().fit(X[~bad])
    share = TrimmedPCA(0.95, random_state=0).fit(X)
    assert share.n_components_ == PCA(0.95).fit(X[~bad]).n_components_ == share.n_trimming_components_
    every = TrimmedPCA(random_state=0).fit(X)
    assert every.n_components_ == 8 and every.n_trimming_components_ < 8
    assert not every.inlier_mask_[bad].any()
    np.testing.assert_allclose(every.explained_variance_, clean.explained_variance_, rtol=0.2)
    assert every.explained_variance_ratio_.sum() == pytest.approx(1)


@pytest.mark.parametrize("k", [0, 9, 1.5, 0.0, True, "mle"])
def test_bad_numbers_of_components(k: Any) -> None:
    with pytest.raises(ValueError, match="n_components must be"):
        TrimmedPCA(k, random_state=0).fit(np.random.default_rng(0).standard_normal((20, 8)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"center": "median"}, "center must be None or one of"),
        ({"center": "None"}, "center must be None or one of"),
        ({"scale": "None"}, "scale must be None or one of .*'mad'"),
        ({"scale": True}, "scale must be None or one of .* got True"),
        ({"contamination": "automatic"}, "contamination="),
        ({"contamination": 1.0}, "contamination="),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrimmedPCA(1, **options, random_state=0).fit(np.random.default_rng(0).standard_normal((20, 4)))


def test_warnings() -> None:
    X, _, _ = contaminated(100, 5, 2, 0.4, 5.0)
    with pytest.warns(UserWarning, match="calls half of the examples wrong"):
        TrimmedPCA(2, contamination=0.6, random_state=0).fit(X)
    with pytest.raises(ValueError, match="at least one non-zero"):
        TrimmedPCA(2, random_state=0).fit(X, sample_weight=np.zeros(100))


def test_stopping_short_warns() -> None:
    X, _, _ = contaminated(2000, 5, 2, 0.4, 3.0)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        TrimmedPCA(2, max_iter=1, random_state=0).fit(X)


# ---- kinds of data and ways to solve ----


def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every X for a large one."""
    monkeypatch.setattr(flat_fit, "ENTRIES", 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csr_array])
def test_dense_and_sparse_large_and_small_agree(layout: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, bad, _ = contaminated(700, 12, 2, 0.3, 8.0)
    small = TrimmedPCA(2, random_state=0).fit(X)
    large(monkeypatch)
    model = TrimmedPCA(2, random_state=0).fit(layout(X.astype(dtype)))
    assert model.components_.dtype == dtype and model.transform(X.astype(dtype)).dtype == dtype
    assert np.array_equal(model.inlier_mask_, small.inlier_mask_) and not model.inlier_mask_[bad].any()
    np.testing.assert_allclose(model.components_, small.components_, atol=1e-5)
    assert model.objective_ == pytest.approx(small.objective_, rel=1e-4)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_smart_finds_what_concentration_finds(layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, bad, _ = contaminated(800, 12, 2, 0.3, 8.0)
    exact = TrimmedPCA(2, contamination=0.35, random_state=0).fit(X)
    method = TrimmedPCA(2, contamination=0.35, method=svrg(), random_state=0).fit(layout(X))
    large(monkeypatch)
    monkeypatch.setattr(flat_fit, "COLUMNS", 5)
    wide = TrimmedPCA(2, contamination=0.35, random_state=0).fit(layout(X))
    for model in (method, wide):
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-3)
        assert np.array_equal(model.inlier_mask_, exact.inlier_mask_) and not model.inlier_mask_[bad].any()
        np.testing.assert_allclose(model.components_, exact.components_, atol=1e-3)
    with pytest.raises(ValueError, match="n_components must be an integer"):
        TrimmedPCA(0.5, random_state=0).fit(layout(X))


def test_nothing_of_the_size_of_a_memory_map_is_allocated(tmp_path: Path) -> None:
    n, p = 120_000, 60
    rng = np.random.default_rng(0)
    X = np.memmap(tmp_path / "X", np.float32, "w+", shape=(n, p))
    axis = np.zeros(p, np.float32)
    axis[0] = 1
    for i in range(0, n, 10_000):
        X[i : i + 10_000] = rng.standard_normal((10_000, p), np.float32) + 9 * rng.standard_normal((10_000, 1)) * axis
    X[: n // 10, 1] += 40
    X.flush()
    tracemalloc.start()
    model = TrimmedPCA(1, max_iter=20, random_state=0).fit(np.memmap(tmp_path / "X", np.float32, "r", shape=(n, p)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * p * 4  # and the float64 copy would be twice that; what is there are vectors, and pieces of 4 MiB
    assert model.contamination_ == pytest.approx(0.1, abs=0.01)
    assert not model.inlier_mask_[: n // 10].any()
    assert abs(model.components_[0, 0]) > 0.999


def test_pickles_clones_frames_and_grid_search() -> None:
    pandas = pytest.importorskip("pandas")
    X, _, _ = contaminated(120, 4, 2, 0.2, 10.0)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = TrimmedPCA(2, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["trimmedpca0", "trimmedpca1"]
    assert list(model.feature_names_in_) == list("abcd")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(frame), model.score_samples(frame))
    with pytest.raises(ValueError, match="give X"):
        again.rethreshold(0.1)
    assert again.rethreshold(0.1, frame).contamination_ == pytest.approx(0.1)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(TrimmedPCA(random_state=0), {"n_components": [1, 2]}, cv=2).fit(X[24:])
    assert search.best_params_ == {"n_components": 2}


def test_a_search_is_the_same_for_any_number_of_threads() -> None:
    from trimlearn._utils.threads import team

    X, _, _ = contaminated(500, 10, 2, 0.3, 6.0)
    alone = FlatSearch(Points(X), np.ones(500), None, 0).fit(2, 300.0)
    with team():
        together = FlatSearch(Points(X), np.ones(500), None, 0).fit(2, 300.0)
    assert alone.objective == pytest.approx(together.objective, rel=1e-12)
    np.testing.assert_array_equal(alone.w, together.w)


# ---- units ----


def in_units(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows near a plane, of which some are off it; who is; and the units of the features, from 1e-3 to 1e4."""
    X, bad, _ = contaminated(200, 6, 2, 0.2, 15.0, seed)
    return X, bad, np.array([1e-3, 1.0, 1e4, 10.0, 1e2, 1e-2])


def test_units_do_not_matter_where_features_are_scaled() -> None:
    X, bad, units = in_units()
    a, b = (TrimmedPCA(2, scale="mad", random_state=0).fit(Z) for Z in (X, X * units))
    np.testing.assert_array_equal(a.inlier_mask_, b.inlier_mask_)
    np.testing.assert_allclose(a.outlier_scores_, b.outlier_scores_, rtol=1e-6)
    np.testing.assert_allclose(a.components_, b.components_, atol=1e-8)
    np.testing.assert_allclose(b.feature_scales_, a.feature_scales_ * units)
    assert not a.inlier_mask_[bad].any()


@pytest.mark.parametrize("scale", ["mad", "std", None])
def test_the_way_back_is_in_the_units_of_the_data(scale: str | None) -> None:
    X, _, units = in_units()
    model = TrimmedPCA(6, scale=scale, random_state=0).fit(X * units)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X * units)), X * units, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(6), atol=1e-8)
    z = (X * units - model.mean_) / model.feature_scales_
    np.testing.assert_allclose(model.transform(X * units), z @ model.components_.T, rtol=1e-6, atol=1e-8)
    assert (model.feature_scales_ == 1).all() == (scale is None)


def test_features_are_scaled_by_default_where_they_have_units_of_their_own() -> None:
    X, bad, units = in_units()
    assert np.all(TrimmedPCA(random_state=0).fit(X).feature_scales_ == 1)
    scaled = TrimmedPCA(random_state=0).fit(X * units)
    assert scaled.feature_scales_.max() > 1e3 and not scaled.inlier_mask_[bad].any()
    assert np.all(TrimmedPCA(2, random_state=0).fit(X * units).feature_scales_ == 1)  # components asked for: as PCA's


def test_flags_and_constants_among_scaled_features() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((100, 3)) * [1, 50, 900], rng.random(100) < 0.1, np.full(100, 3.0)])
    model = TrimmedPCA(random_state=0).fit(X)
    assert model.feature_scales_[3] == pytest.approx(X[:, 3].std()) and model.feature_scales_[4] == 1.0
    assert np.all(np.isfinite(model.outlier_scores_)) and (~model.inlier_mask_).mean() < 0.15
    sparse = TrimmedPCA(2, scale="std", random_state=0).fit(sp.csr_array(X))
    dense = TrimmedPCA(2, scale="std", random_state=0).fit(X)
    np.testing.assert_allclose(sparse.outlier_score(sp.csr_array(X)), dense.outlier_score(X), rtol=1e-6)
    with pytest.raises(ValueError, match="scale"):
        TrimmedPCA(scale="iqr").fit(X)


# ---- tails and small samples ----


@pytest.mark.parametrize(("n", "p"), [(15, 2), (20, 2), (50, 5)])
def test_small_clean_samples_are_left_alone(n: int, p: int) -> None:
    flagged = []
    for seed in range(12):
        model = TrimmedPCA(random_state=0).fit(np.random.default_rng(seed).standard_normal((n, p)))
        flagged.append((~model.inlier_mask_).mean())
    assert np.mean(flagged) <= 0.03 and max(flagged) <= 0.2


def test_a_heavy_tail_is_said_and_not_counted() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 8)) / np.sqrt(rng.chisquare(3, (400, 1)) / 3)
    with pytest.warns(UserWarning, match="heavier tail"):
        model = TrimmedPCA(2, random_state=0).fit(X)
    assert model.contamination_ < 0.05 and (~model.inlier_mask_).mean() < 0.05
    TrimmedPCA(2, contamination=0.1, random_state=0).fit(X)  # who gives the share is not asked


def test_tablets_of_two_weights(data_home: Path) -> None:
    """Spectra of 70 tablets of 90 mg and 20 of 250 mg: exactly these."""
    with np.load(data_home / "spectra" / "tablets_nir.npz") as data:
        X, heavy = data["X"], data["is_250mg"].astype(bool)
    np.testing.assert_array_equal(TrimmedPCA(random_state=0).fit(X).inlier_mask_, ~heavy)


def correlated(n: int, seed: int, mean: float = 0.0) -> np.ndarray:
    """Five features with correlations of a half."""
    normal = np.random.default_rng(seed).normal(size=(n, 5))
    return mean + normal @ np.linalg.cholesky(0.5 * np.eye(5) + 0.5).T


@pytest.mark.parametrize(("n", "seed"), [(60, 2), (60, 9), (100, 0), (100, 8), (300, 4), (300, 5)])
def test_a_sentinel_has_no_component_of_its_own(n: int, seed: int) -> None:
    """In these tables an axis turned to it costs the good rows nothing."""
    X = correlated(n, seed)
    X[: n // 20, 0] = -999
    model = TrimmedPCA(random_state=0).fit(X)
    assert not model.inlier_mask_[: n // 20].any() and model.inlier_mask_[n // 20 :].mean() > 0.95
    assert model.explained_variance_[0] < 10 and np.all(model.predict(X[: n // 20]) == -1)


def test_rows_far_out_within_the_subspace_are_said() -> None:
    """Signs flipped along the one strong factor: near to the subspace, and no normal rows."""
    X = correlated(300, 0, mean=5.0)
    X[:15] *= -1
    with pytest.warns(UserWarning, match="1[5-9] rows lie far out within the subspace"):
        model = TrimmedPCA(random_state=0).fit(X)
    assert model.inlier_mask_[:15].all() and np.median(model.score_distances_[:15]) > model.score_distances_[15:].max()


@pytest.mark.filterwarnings("error")
def test_clean_rows_are_near_together_within_the_subspace() -> None:
    for seed in range(10):
        model = TrimmedPCA(random_state=0).fit(correlated(100, seed))
        assert model.inlier_mask_.mean() > 0.9


@pytest.mark.filterwarnings("ignore:.*heavier tail")
def test_half_of_the_rows_are_not_denied_a_say(data_home: Path) -> None:
    """Of 340 stamps 163 lie far out within the subspace, and 31 are forged."""
    with np.load(data_home / "tabular" / "Stamps.npz") as data:
        X, forged = data["X"], data["y"].astype(bool)
    model = TrimmedPCA(random_state=0).fit(X)
    assert roc_auc_score(forged, model.outlier_scores_) > 0.85 and model.inlier_mask_.mean() > 0.98


def test_groups_called_bad_are_doubted() -> None:
    """Two fifths of the wines, of three growers, lie hardly farther out than the others."""
    with pytest.warns(UserWarning, match="of the rows are called bad, but"):
        TrimmedPCA(random_state=0).fit(load_wine().data)


@pytest.mark.filterwarnings("error")
def test_equal_variances_leave_nothing_to_converge_to() -> None:
    """Concentration would turn the flat for another 60 steps, by less than another sample would."""
    model = TrimmedPCA(random_state=0).fit(np.random.default_rng(0).normal(size=(20_000, 5)))
    assert model.inlier_mask_.mean() > 0.99


def test_few_clean_rows_about_a_plane_are_not_torn_apart() -> None:
    """A flat through half of 30 rows leaves the others far from it: no sign that they are bad."""

    def clean(seed: int) -> np.ndarray:
        rng = np.random.default_rng([10, 30, 10, seed])
        X, axes = rng.standard_normal((30, 10)), 3 * rng.standard_normal((2, 10))
        return X + rng.standard_normal((30, 2)) @ axes

    flagged = [np.mean(~TrimmedPCA(random_state=0).fit(clean(seed)).inlier_mask_) for seed in range(25)]
    assert np.mean(flagged) <= 0.03
    assert np.sum(np.array(flagged) > 0.2) <= 1


def test_half_precision_is_read_in_full() -> None:
    X = (1000.0 * np.random.default_rng(0).standard_normal((100, 4))).astype(np.float16)
    with_half, with_single = (TrimmedPCA(2, random_state=0).fit(A) for A in (X, X.astype(np.float32)))
    np.testing.assert_allclose(with_half.outlier_scores_, with_single.outlier_scores_)
