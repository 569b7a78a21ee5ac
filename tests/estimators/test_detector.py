"""TrimmedPCA, TrimmedCovariance and TrimmedGraphicalLasso as outlier detectors, with scikit-learn's signs."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trimlearn import TrimmedCovariance, TrimmedGraphicalLasso, TrimmedPCA

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)) * [3, 1, 1]
X[:20] += [0, 9, -9]
NEW = RNG.normal(size=(50, 3)) * [3, 1, 1]
NEW[:10] += [0, 9, -9]

SEEDED = {"random_state": 0}
DETECTORS = [TrimmedPCA(1, **SEEDED), TrimmedCovariance(**SEEDED), TrimmedGraphicalLasso(0.1, **SEEDED)]


@pytest.mark.parametrize("model", DETECTORS, ids=lambda model: type(model).__name__)
def test_signs_are_scikit_learns(model: Any) -> None:
    labels = model.fit_predict(X)
    assert np.array_equal(labels, np.where(model.inlier_mask_, 1, -1)) and set(labels) == {-1, 1}
    assert np.all(labels[:20] == -1) and np.mean(labels[20:] == 1) > 0.95
    decision = model.decision_function(NEW)
    assert np.array_equal(model.predict(NEW), np.where(decision >= 0, 1, -1))
    assert np.all(decision[:10] < 0) and np.mean(decision[10:] >= 0) > 0.95
    assert np.array_equal(np.argsort(decision), np.argsort(-model.outlier_score(NEW)))
    np.testing.assert_allclose(decision, model.threshold_ - model.outlier_score(NEW))


@pytest.mark.parametrize("model", DETECTORS, ids=lambda model: type(model).__name__)
def test_they_work_at_the_end_of_a_pipeline(model: Any) -> None:
    pipe = make_pipeline(StandardScaler(), model)
    labels = pipe.fit_predict(X, None)
    assert np.all(labels[:20] == -1) and np.array_equal(pipe.predict(NEW) == 1, pipe.decision_function(NEW) >= 0)


@pytest.mark.parametrize("model", [type(model)() for model in DETECTORS], ids=lambda model: type(model).__name__)
def test_before_a_fit_there_is_nothing_to_say(model: Any) -> None:
    with pytest.raises(NotFittedError):
        model.decision_function(X)


@pytest.mark.parametrize("model", DETECTORS, ids=lambda model: type(model).__name__)
def test_they_take_and_give_the_same(model: Any) -> None:
    parameters = signature(type(model)).parameters
    names = [name for name in parameters if name not in ("n_components", "alpha")]  # scikit-learn's own come first
    assert names[:2] == ["contamination", "reweight"] and names[-2:] == ["random_state", "verbose"]
    assert parameters["random_state"].default is None
    model.fit(X)
    assert [record.k for record in model.history_] == list(range(model.n_iter_))
    assert model.history_[-1].objective == pytest.approx(model.objective_) and model.threshold_ > 0


@pytest.mark.parametrize("model", DETECTORS, ids=lambda model: type(model).__name__)
def test_a_seed_is_drawn_where_none_is_given(model: Any) -> None:
    again = type(model)(**{**model.get_params(), "random_state": np.random.RandomState(3)})
    free = type(model)(**{**model.get_params(), "random_state": None}).fit(X)
    assert np.array_equal(free.inlier_mask_, again.fit(X).inlier_mask_)


@pytest.mark.parametrize("model", [TrimmedPCA(**SEEDED), TrimmedCovariance(**SEEDED)])
def test_a_crowd_of_copies_is_told(model: Any) -> None:
    Z = np.random.default_rng(0).normal(size=(200, 5))
    crowded = np.vstack([Z[:140], np.repeat(Z[:1], 60, axis=0)])
    with pytest.warns(UserWarning, match="30% of the rows are copies of one row, .* Drop duplicates"):
        model.fit(crowded)
    assert model.contamination_ > 0.1
    model.fit(np.unique(crowded, axis=0))  # without a warning, which would be an error here
    assert model.contamination_ < 0.05


def test_bad_rows_that_are_copies_are_bad_without_a_word() -> None:
    Z = np.random.default_rng(0).normal(size=(200, 3))
    Z[:40] = 9.0
    model = TrimmedCovariance(random_state=0).fit(Z)
    assert not model.inlier_mask_[:40].any() and abs(model.contamination_ - 0.2) < 0.02
