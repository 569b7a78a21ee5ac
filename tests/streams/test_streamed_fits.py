"""Fits to datasets: the same as to arrays, whatever the rows lie in, in memory or streamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from trimlearn import (
    Problem,
    TrimmedGLM,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    open_dataset,
    solve,
)
from trimlearn.estimators import streamed
from trimlearn.losses import LeastSquares
from trimlearn.losses.storage import open_storage
from trimlearn.smart import svrg
from trimlearn.weights import CappedSimplex

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, P = 3000, 4


def regression(n: int = N, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((n, P)) + offset).astype(np.float32)
    t = (X - offset) @ np.arange(1, P + 1) + 2 + rng.standard_normal(n)
    bad = rng.random(n) < 0.1
    t[bad] += 12
    return X, t.astype(np.float32), bad


def classification(classes: int, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, P)).astype(np.float32)
    t = (4 * X[:, :classes] + rng.gumbel(size=(n, classes))).argmax(axis=1)
    bad = rng.random(n) < 0.1
    return X, np.where(bad, (t + 1) % classes, t), bad


def in_parquet(folder: Path, X: np.ndarray, t: Any) -> Path:
    for k, at in enumerate((slice(0, 1300), slice(1300, len(X)))):
        columns = {f"x{j}": X[at, j] for j in range(X.shape[1])}
        pq.write_table(pa.table({**columns, "y": t[at]}), folder / f"part-{k}.parquet", row_group_size=700)
    return folder


def test_small_files_are_fitted_as_arrays_are(tmp_path: Path) -> None:
    X, t, _ = regression()
    np.save(tmp_path / "X.npy", X)
    model = TrimmedLinearRegression(random_state=0).fit(X, t)
    mapped = TrimmedLinearRegression(random_state=0).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), t)
    folder = tmp_path / "parquet"
    folder.mkdir()
    by_path = TrimmedLinearRegression(random_state=0).fit(in_parquet(folder, X, t), "y")
    for other in (mapped, by_path):
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(other.weights_, model.weights_)
    assert by_path.feature_names_in_.tolist() == [f"x{j}" for j in range(P)]
    data = open_dataset(folder, "y")
    np.testing.assert_allclose(by_path.predict(data), model.predict(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(by_path.outlier_score(data), model.outlier_score(X, t), rtol=1e-3, atol=1e-5)
    for score in (by_path.score(data), by_path.score(folder, "y")):
        assert score == pytest.approx(model.score(X, t), abs=1e-6)


@pytest.mark.parametrize(
    ("contamination", "options"),
    [
        ("auto", {}),
        (0.15, {}),
        (500, {}),
        ("auto", {"reweight": False}),
        (0.15, {"reweight": False}),  # the trimmed fit is the final one
        ("auto", {"penalty": "l2", "alpha": 50.0}),
        ("auto", {"fit_intercept": False}),
    ],
)
def test_streamed_regression_is_that_of_arrays(contamination: Any, options: dict[str, Any], tmp_path: Path) -> None:
    X, t, _ = regression()
    known = TrimmedLinearRegression(contamination, random_state=0, **options).fit(X, t)
    data = open_dataset(in_parquet(tmp_path, X, t), "y", in_memory=False)
    model = TrimmedLinearRegression(contamination, random_state=0, **options).fit(data)
    assert model.objective_ == pytest.approx(known.objective_, rel=1e-5)
    np.testing.assert_array_equal(model.inlier_mask_, known.inlier_mask_)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)
    assert model.intercept_ == pytest.approx(known.intercept_, abs=1e-3)
    assert model.scale_ == pytest.approx(known.scale_, rel=1e-3)
    assert model.raw_scale_ == pytest.approx(known.raw_scale_, rel=1e-3)
    assert model.contamination_ == pytest.approx(known.contamination_, abs=1e-3)
    assert np.mean(model.raw_weights_ != known.raw_weights_) < 2e-3
    np.testing.assert_allclose(model.outlier_scores_, known.outlier_scores_, rtol=1e-2, atol=1e-3)


def test_columns_far_from_zero_lose_nothing(tmp_path: Path) -> None:
    X, t, bad = regression(offset=3000.0)
    model = TrimmedLinearRegression(random_state=0).fit(open_dataset(X, t, in_memory=False))
    np.testing.assert_allclose(model.coef_, np.arange(1, P + 1), atol=0.1)
    assert model.scale_ == pytest.approx(1.0, abs=0.05)
    assert not model.inlier_mask_[bad].any()


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows there are, those that are not to be read into memory are not."""
    monkeypatch.setattr(streamed, "WHOLE", 0)


@pytest.mark.usefixtures("quick_fits")  # the same fit, whatever it is
def test_few_labels_are_judged_as_in_memory_wherever_they_lie(tmp_path: Path) -> None:
    X, t, _ = classification(2, 1500)
    data = open_dataset(in_parquet(tmp_path, X, t), "y", in_memory=False)
    model, known = (TrimmedLogisticRegression(random_state=0).fit(*given) for given in ((data,), (X, t)))
    assert model.objective_ == known.objective_
    np.testing.assert_array_equal(model.outlier_scores_, known.outlier_scores_)


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize(("classes", "limit"), [(2, 10**6), (3, 10**6), (2, 5000)])
def test_many_labels_are_judged_alike_whatever_they_lie_in(
    classes: int, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows in memory, mapped and in files; with flexible models asked about all, and beyond the limit up to which they
    are."""
    monkeypatch.setattr(streamed, "WHOLE", 1000)
    monkeypatch.setattr(streamed, "STREAMED", limit)
    monkeypatch.setattr(streamed, "SAMPLED", 1000)
    X, t, bad = classification(classes, 2000)
    X[7, 1] = 1e6 if limit > X.size else X[7, 1]  # drawn in where a copy is small enough
    np.save(tmp_path / "X.npy", X)
    folder = tmp_path / "parquet"
    folder.mkdir()
    in_parquet(folder, X, t)
    sources: list[Any] = [(X, t), (open_dataset(folder, "y", in_memory=False), None)]
    if classes == 2:
        sources += [(np.load(tmp_path / "X.npy", mmap_mode="r"), t), (open_dataset(folder, "y", in_memory=True), None)]
    known, *others = (TrimmedLogisticRegression(random_state=0).fit(*source) for source in sources)
    for other in others:
        assert other.objective_ == pytest.approx(known.objective_, rel=1e-5)
        np.testing.assert_array_equal(other.inlier_mask_, known.inlier_mask_)
        np.testing.assert_allclose(other.outlier_scores_, known.outlier_scores_, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(other.suggested_labels_, known.suggested_labels_)
    assert np.mean(known.outlier_probability_[bad] > 0.5) > 0.5  # of which those are named that are sure enough
    assert np.mean(~known.inlier_mask_[~bad]) < 0.02
    if limit > X.size:
        assert len(known.outlier_table()["row"]) == len(X)


@pytest.mark.parametrize("classes", [2, 3])
def test_streamed_labels(classes: int, tmp_path: Path, streaming: None) -> None:
    X, t, bad = classification(classes, 1500)
    names = np.array(["Bern", "Oslo", "Rome"])[t]
    data = open_dataset(in_parquet(tmp_path, X, names), "y", in_memory=False)
    model = TrimmedLogisticRegression(random_state=0).fit(data)
    known = TrimmedLogisticRegression(random_state=0).fit(X, names)
    assert model.classes_.tolist() == known.classes_.tolist()
    assert model.contamination_ == pytest.approx(known.contamination_, abs=0.02)
    assert np.mean(model.inlier_mask_ != known.inlier_mask_) < 0.03
    assert np.mean(model.predict(data) == known.predict(X)) > 0.99
    assert model.score(data) == pytest.approx(np.mean(model.predict(data) == names))
    assert np.mean(~model.inlier_mask_[bad]) > 0.5
    assert np.mean(~model.inlier_mask_[~bad]) < np.mean(~known.inlier_mask_[~bad]) + 0.01
    assert set(model.suggested_labels_) == set(known.classes_)
    assert np.mean((model.outlier_score(data) > 0) == (model.outlier_scores_ > 0)) > 0.98


@pytest.mark.usefixtures("quick_fits")  # the share is given: nothing depends on how labels are judged
@pytest.mark.parametrize("contamination", [0.0, 0.12])
def test_a_trimmed_share_that_is_given_needs_no_sample(contamination: float, streaming: None) -> None:
    """Then all that the sample decides is where to start: F is that of arrays, or less."""
    X, t, _ = classification(2, 1000)
    model = TrimmedLogisticRegression(contamination, random_state=0).fit(open_dataset(X, t, in_memory=False))
    known = TrimmedLogisticRegression(contamination, random_state=0, tol=1e-8, max_passes=500).fit(X, t)
    assert model.objective_ <= known.objective_ * (1 + 1e-5)
    assert model.objective_ == pytest.approx(known.objective_, rel=1e-2)
    assert model.classes_.dtype.kind == "i"


@pytest.mark.parametrize("loss", ["poisson", "huber"])
def test_streamed_generalised_linear_models(loss: str) -> None:
    X, _, bad = regression(200)
    rng = np.random.default_rng(2)
    mean = np.exp(0.3 * X[:, 0] + 1)
    y = {"poisson": rng.poisson(mean), "gamma": rng.gamma(3, mean / 3), "huber": mean + rng.standard_normal(len(X))}
    t = np.where(bad, 60.0, y[loss]).astype(np.float32)
    known = TrimmedGLM(loss, random_state=0).fit(X, t)
    model = TrimmedGLM(loss, random_state=0).fit(open_dataset(X, t, in_memory=False))
    assert model.objective_ == pytest.approx(known.objective_, rel=1e-5)
    np.testing.assert_array_equal(model.inlier_mask_, known.inlier_mask_)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)
    np.testing.assert_allclose(model.outlier_probability_, known.outlier_probability_, atol=0.1)


def test_many_labels_in_memory_may_be_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "WHOLE", 0)
    monkeypatch.setattr(streamed, "SAMPLED", 500)
    X = np.random.default_rng(0).normal(size=(900, 2))
    t = (X[:, 0] > 0).astype(int)
    t[:60] = 1 - t[:60]
    known = TrimmedLogisticRegression(random_state=0).fit(X, t)
    model = TrimmedLogisticRegression(random_state=0).fit(X, np.array(["no", "yes"])[t])
    np.testing.assert_array_equal(model.coef_, known.coef_)
    np.testing.assert_array_equal(model.suggested_labels_ == "yes", known.suggested_labels_ == 1)


def test_a_streamed_penalty_is_beside_the_mean_of_the_rows_kept() -> None:
    X, _, bad = regression(200)
    t = np.where(bad, 60.0, np.random.default_rng(2).poisson(np.exp(0.3 * X[:, 0] + 1))).astype(np.float32)
    asked = TrimmedGLM("poisson", 0.3, penalty="l2", alpha=2.0, random_state=0)
    known, model = clone(asked).fit(X, t), asked.fit(open_dataset(X, t, in_memory=False))
    np.testing.assert_array_equal(model.inlier_mask_, known.inlier_mask_)
    assert not model.inlier_mask_.all()
    np.testing.assert_allclose(model.coef_, known.coef_, rtol=1e-3)


def test_large_arrays_are_streamed_and_give_what_files_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "STREAMED", 5000)
    monkeypatch.setattr(streamed, "SAMPLED", 1000)
    X, t, _ = regression(2000)
    np.save(tmp_path / "X.npy", X)
    folder = tmp_path / "parquet"
    folder.mkdir()
    fits = [
        TrimmedLinearRegression(random_state=0).fit(*given)
        for given in ((X, t), (np.load(tmp_path / "X.npy", mmap_mode="r"), t), (in_parquet(folder, X, t), "y"))
    ]
    for other in fits[1:]:
        assert other.objective_ == fits[0].objective_
        np.testing.assert_array_equal(other.weights_, fits[0].weights_)
    assert "_training" not in vars(fits[0])
    # what streams do not take stays in memory, as before
    assert "_training" in vars(TrimmedLinearRegression(penalty="l1", alpha=0.1, random_state=0).fit(X, t))


def test_rows_of_a_copy_through_solve_by_rows_and_by_blocks() -> None:
    X, t, _ = regression(20_000)
    data = open_dataset(X, t)
    copy = data.shuffled()
    h = 0.9 * len(X)
    arrays = solve(Problem(LeastSquares(X, t, intercept=True), CappedSimplex(h)), svrg(), seed=1)
    problem = Problem(LeastSquares(open_storage(copy.X), copy.t, intercept=True), CappedSimplex(h))
    for sampling in ("rows", "blocks"):
        found = solve(problem, svrg(sampling=sampling), seed=1)
        assert found.objective == pytest.approx(arrays.objective, rel=1e-5)
        np.testing.assert_array_equal(copy.restored(found.w) > 0, arrays.w > 0)


# ---- what cannot be ----


def test_what_streams_do_not_take(tmp_path: Path, streaming: None) -> None:
    X, t, _ = regression(200)
    data = open_dataset(X, t, in_memory=False)
    model = TrimmedLinearRegression()
    for fit, words in [
        (lambda: model.fit(data, t), "y is part of the dataset"),
        (lambda: model.fit(data, None, np.ones(200)), "sample_weight is for arrays"),
        (lambda: model.fit(open_dataset(X)), "the dataset has no target"),
        (lambda: model.fit(str(tmp_path / "a.parquet"), None), "y must name the column"),
        (lambda: TrimmedLinearRegression(penalty="l1").fit(data), "penalty=None or 'l2'"),
        (lambda: TrimmedLogisticRegression(penalty="l1").fit(data), "penalty=None or 'l2'"),
        (lambda: TrimmedLogisticRegression().fit(data), "y holds numbers, not labels"),
        (lambda: TrimmedGLM("poisson").fit(data), "out of the valid range"),
    ]:
        with pytest.raises(ValueError, match=words):
            fit()
    fitted = model.fit(data)
    with pytest.raises(ValueError, match="has 2 columns, and the fit was to 4"):
        fitted.predict(open_dataset(X[:, :2]))
    with pytest.raises(ValueError, match="larger than memory"):
        fitted.outlier_table()


def test_many_parameters_are_fitted_by_blocks(streaming: None) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2200, 160)).astype(np.float32)  # many parameters, and no small problem
    t = np.where(X[:, 0] > 0.3, 2, np.where(X[:, 1] > 0, 1, 0))
    wrong = rng.random(2200) < 0.1
    labels = np.where(wrong, (t + 1) % 3, t)
    model = TrimmedLogisticRegression(0.15, reweight=False, random_state=0)
    model.fit(open_dataset(X, labels, in_memory=False))
    assert np.mean(model.predict(X) == t) > 0.85
    assert np.mean(model.raw_weights_[wrong] == 0) > 0.7
