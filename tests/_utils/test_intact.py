"""An interrupted fit leaves the fit before it whole, whatever the estimator and wherever it was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Plain

from cameras import ring
from trimlearn import (
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedGraphicalLasso,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    TrimmedPCA,
)
from trimlearn.estimators.linear import logistic
from trimlearn.estimators.linear.problems import Solver
from trimlearn.geometry import TrimmedHomography, TrimmedPanorama
from trimlearn.geometry.homography.synthetic import random_scene
from trimlearn.geometry.panorama import beginning
from trimlearn.geometry.panorama.joint import JointFit

# A fit is made for every attribute that it sets: how many starts it tries makes no difference to those.
pytestmark = pytest.mark.usefixtures("quick_fits")


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2 + seed))  # another number of features: nothing of one fit suits the other
    y = X @ np.arange(1, 3 + seed) + 0.1 * rng.normal(size=40)
    y[:4] += 20
    return X, y


def labels(seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = table(seed)
    return X, np.where(y > 0, "b", "a") if seed else np.digitize(y, [-1, 1])


def rows(seed: int) -> tuple[np.ndarray]:
    return (table(seed + 1)[0],)


def matches(seed: int) -> tuple[np.ndarray, np.ndarray]:
    scene = random_scene(np.random.default_rng(seed), 60 + 20 * seed, 0.3)
    return scene.src, scene.dst


def views(seed: int) -> tuple[Any, Any]:
    scene = ring(3 + seed, matches=60, seed=seed)
    return scene.correspondences, scene.sizes


Case = tuple[Callable[[], Any], Callable[[int], tuple[Any, ...]]]
CASES: dict[str, Case] = {
    "linear": (TrimmedLinearRegression, table),
    "glm": (
        lambda: TrimmedGLM("poisson", random_state=0),
        lambda seed: (table(seed)[0], np.round(np.abs(table(seed)[1]))),
    ),
    "logistic": (lambda: TrimmedLogisticRegression(contamination=0.1, random_state=0), labels),
    "pca": (lambda: TrimmedPCA(1, random_state=0), rows),
    "covariance": (lambda: TrimmedCovariance(random_state=0), rows),
    "graphical lasso": (lambda: TrimmedGraphicalLasso(alpha=0.1, random_state=0), rows),
    "wrapper": (lambda: TrimmedEstimator(Plain(), contamination=0.1, random_state=0), table),
    "homography": (TrimmedHomography, matches),
    "panorama": (TrimmedPanorama, views),
}
REFIT = [name for name, (make, _) in CASES.items() if hasattr(make(), "rethreshold")]


class Interrupting:
    """Lets ``k`` attributes be set, then stops the fit as Ctrl-C does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, estimator: Any, k: int) -> None:
        self.left = k

        def set_one(thing: Any, name: str, value: Any) -> None:
            if thing is estimator:
                if not self.left:
                    raise KeyboardInterrupt
                self.left -= 1
            object.__setattr__(thing, name, value)

        monkeypatch.setattr(type(estimator), "__setattr__", set_one, raising=False)


def remember(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Let a part of a fit that sets no attribute be computed once, however often the same fit is begun."""
    compute, known = getattr(owner, name), []

    def remembered(*arguments: Any, **options: Any) -> Any:
        if not known:
            known.append(compute(*arguments, **options))
        return known[0]

    monkeypatch.setattr(owner, name, remembered)


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """To be called between the fit before and the one that is interrupted: the long parts of a fit, once each."""

    def remember_parts(name: str) -> None:
        if name == "logistic":
            remember(monkeypatch, logistic, "judge_labels")
        if name == "glm":
            remember(monkeypatch, Solver, "trimmed")
        if name == "panorama":
            for part in ("make_pairs", "agree", "estimate_distortion"):
                remember(monkeypatch, beginning, part)
            for part in ("trim", "polish"):
                remember(monkeypatch, JointFit, part)

    return remember_parts


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if hasattr(a, "__dict__") and not isinstance(a, type):
        return type(a) is type(b) and same(vars(a), vars(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or a is b or (a != a and b != b)


def interrupt_everywhere(monkeypatch: pytest.MonkeyPatch, estimator: Any, fit: Callable[[], Any]) -> int:
    """Interrupt ``fit`` before the first, second, third, … attribute it sets, until it gets through."""
    before = deepcopy(vars(estimator))
    for k in range(1000):
        with monkeypatch.context() as patch:
            Interrupting(patch, estimator, k)
            try:
                fit()
                return k
            except KeyboardInterrupt:
                pass
        assert same(vars(estimator), before), k
    raise AssertionError("the fit sets attributes without end")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_an_interrupted_fit_leaves_the_old_one(name: str, monkeypatch: pytest.MonkeyPatch, once: Any) -> None:
    make, data = CASES[name]
    estimator = make().fit(*data(0))
    before, again = estimator.outlier_scores_, data(1)
    once(name)
    assert interrupt_everywhere(monkeypatch, estimator, lambda: estimator.fit(*again)) >= 5
    assert not same(estimator.outlier_scores_, before)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_first_fit_that_is_interrupted_leaves_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, data = CASES[name]
    estimator = make()
    before = dict(vars(estimator))
    Interrupting(monkeypatch, estimator, 3)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(*data(0))
    assert vars(estimator) == before


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFIT)
def test_so_does_an_interrupted_rethreshold(name: str, monkeypatch: pytest.MonkeyPatch, once: Any) -> None:
    make, data = CASES[name]
    estimator = make().fit(*data(0))
    once(name)
    assert interrupt_everywhere(monkeypatch, estimator, lambda: estimator.rethreshold(0.3)) >= 3


@pytest.mark.parametrize("name", ["linear", "glm", "logistic", "pca", "covariance", "graphical lasso"])
def test_bad_data_leave_the_old_fit(name: str) -> None:
    """scikit-learn's validation sets attributes of its own before it finds fault."""
    make, data = CASES[name]
    estimator = make().fit(*data(0))
    before = deepcopy(vars(estimator))
    bad = [np.array(part) for part in data(1)]
    bad[0][0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(*bad)
    assert same(vars(estimator), before)
