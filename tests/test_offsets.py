"""Offsets: the same result wherever the origin of the columns lies, at any size, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from trimlearn import Problem, TrimmedGLM, TrimmedLogisticRegression, solve
from trimlearn._utils.arrays import to_numpy
from trimlearn.engines import LocalEngine
from trimlearn.losses import Gamma, Huber, LeastSquares, Logistic, Loss, Poisson, Softmax
from trimlearn.problem import SAMPLE, lower_medians
from trimlearn.regularizers import L1, GroupL2, Regularizer, Ridge, Zero
from trimlearn.smart import alternating, palm, prox_gradient, saga, sg, svrg
from trimlearn.smart.method import Method
from trimlearn.starts import Concentration, Given
from trimlearn.weights import CappedSimplex

RNG = np.random.default_rng(3)
N, P = 300, 4
Z = RNG.standard_normal((N, P))
ETA = Z @ [1.0, -2.0, 0.5, 0.0] + 0.3
TARGETS = {
    "least squares": ETA + 0.3 * RNG.standard_normal(N) + 10 * (np.arange(N) < 40),
    "huber": ETA + 0.3 * RNG.standard_normal(N) + 10 * (np.arange(N) < 40),
    "logistic": np.where(np.arange(N) < 30, ETA < 0, RNG.random(N) < 1 / (1 + np.exp(-3 * ETA))).astype(float),
    "softmax": np.digitize(ETA + 0.5 * RNG.standard_normal(N), [-1.0, 1.0]),
    "poisson": RNG.poisson(np.exp(0.4 * ETA)).astype(float),
    "gamma": RNG.gamma(3.0, np.exp(0.4 * ETA) / 3),
}
MAKE: dict[str, Any] = {
    "least squares": LeastSquares,
    "huber": Huber,
    "logistic": Logistic,
    "softmax": Softmax,
    "poisson": Poisson,
    "gamma": Gamma,
}


def made(name: str, V: Any, r2: Regularizer | None = None) -> Problem:
    loss: Loss = MAKE[name](V, TARGETS[name], intercept=True)
    return Problem(loss, CappedSimplex(240), Ridge(1e-2) if r2 is None else r2)


# ---- the change of variables ----


def naive_median(v: np.ndarray, s: np.ndarray) -> float:
    """The smallest value at or below which half of the weight lies."""
    return float(next(x for x in np.sort(v) if s[v <= x].sum() >= 0.5 * s.sum() - 1e-12))


@pytest.mark.parametrize("seed", range(20))
def test_medians_dense_and_sparse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    V = rng.integers(-2, 3, (int(rng.integers(1, 12)), 5)) * rng.integers(0, 2, 5).astype(float)
    s = rng.integers(1, 4, len(V)).astype(float)
    expected = [naive_median(column, s) for column in V.T]
    np.testing.assert_array_equal(lower_medians(V, s), expected)
    np.testing.assert_array_equal(lower_medians(sp.csr_array(V), s), expected)
    rows = np.repeat(np.arange(len(V)), s.astype(int))
    np.testing.assert_array_equal(lower_medians(V[rows], np.ones(len(rows))), expected)  # 2 is the row twice


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("kind", ["dense", "csr", "float32", "torch"])
def test_there_and_back(name: str, kind: str) -> None:
    V: Any = Z + 5
    if kind == "csr":
        V = sp.csr_array(V)
    elif kind == "float32":
        V = V.astype(np.float32)
    elif kind == "torch":
        V = pytest.importorskip("torch").asarray(V)
    problem = made(name, V)
    centred = problem.centred(exact=True)
    x = problem.loss.generic()
    there = problem.carried(x, centred)
    tolerance = 1e-4 if kind == "float32" else 1e-11
    same = to_numpy(centred.loss.values(there)), to_numpy(problem.loss.values(x))
    np.testing.assert_allclose(*same, rtol=tolerance, atol=tolerance)
    assert centred.r2.value(there) == pytest.approx(problem.r2.value(x), rel=tolerance)
    back = to_numpy(centred.carried(there, problem))
    np.testing.assert_allclose(back, to_numpy(x), rtol=tolerance, atol=10 * tolerance)
    assert type(there) is type(x)
    assert there.dtype == x.dtype


def test_nothing_is_copied_and_sparse_stays_sparse() -> None:
    dense, sparse = Z + 100, sp.csr_array(np.where(Z > 1, Z, 0.0))
    for V in (dense, sparse):
        storage = made("logistic", V).centred(exact=True).loss.linear.storage  # type: ignore[attr-defined]
        assert storage.V is V or np.shares_memory(getattr(storage.V, "data", storage.V), getattr(V, "data", V))
    assert not np.any(lower_medians(sparse, np.ones(N)))


def test_a_sample_is_near_enough() -> None:
    rng = np.random.default_rng(0)
    V = rng.standard_normal((50_000, 3)) * [1, 10, 0.1] + [300, -5, 2000]
    problem = Problem(LeastSquares(V, V[:, 0], intercept=True), CappedSimplex(40_000))
    centre = problem.centred(exact=False).loss.linear.center  # type: ignore[attr-defined]
    assert np.all(np.abs(centre - np.median(V, axis=0)) < 5 * 1.25 / SAMPLE**0.5 * np.array([1, 10, 0.1]))
    s = np.zeros(50_000)
    s[:100] = 2.0
    few = Problem(LeastSquares(V, V[:, 0], intercept=True), CappedSimplex(150), sample_weight=s)
    assert np.all(np.abs(few.centred(exact=False).loss.linear.center - V[:100].mean(0)) < [1, 10, 0.1])  # type: ignore[attr-defined]


def test_without_an_intercept_there_is_nothing_to_shift() -> None:
    problem = Problem(LeastSquares(Z + 3, TARGETS["huber"]), CappedSimplex(240))
    assert problem.centred(exact=True) is problem


# ---- solves ----

AUTOMATIC: dict[str, Method | None] = {
    "default": None,
    "svrg": svrg(),
    "alone": svrg(finish=False),
    "saga": saga(),
    "palm": palm(),
    "lbfgs": alternating(inner="lbfgs"),
    "sg": sg(),
    "joint": prox_gradient(),
}


@pytest.mark.parametrize("method", AUTOMATIC)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_every_automatic_method_takes_the_same_steps(method: str, kind: str) -> None:
    """Up to rounding, that is: after few passes, before it is magnified."""
    found = []
    for offset in (0.0, 1e3):
        V: Any = Z + offset
        problem = made("logistic", sp.csr_array(V) if kind == "csr" else V)
        found.append(solve(problem, AUTOMATIC[method], max_passes=12))
    np.testing.assert_allclose(found[1].x[:-1], found[0].x[:-1], rtol=1e-6, atol=1e-8)
    assert found[1].objective == pytest.approx(found[0].objective, rel=1e-6)


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("offset", [10.0, 1e3, 1e5])
def test_the_optimum_is_that_of_the_data_as_given(name: str, offset: float) -> None:
    plain, moved = (solve(made(name, Z + shift), svrg()) for shift in (0.0, offset))
    assert moved.status.converged
    assert moved.objective == pytest.approx(plain.objective, rel=1e-6)
    np.testing.assert_allclose(moved.x[:-1], plain.x[:-1], atol=1e-4)
    problem = made(name, Z + offset)
    assert problem.objective(moved.w, moved.x) == pytest.approx(moved.objective, rel=1e-6)


@pytest.mark.parametrize("r2", [Zero(), L1(1e-2), GroupL2(1e-2, groups=[0, 0, 1, 1])], ids=lambda r2: r2.name)
def test_every_penalty_is_exempt_alike(r2: Regularizer) -> None:
    plain, moved = (solve(made("huber", Z + shift, r2), svrg()).objective for shift in (0.0, 1e3))
    assert moved == pytest.approx(plain, rel=1e-6)


def test_starts_are_carried_there() -> None:
    problem, x0 = made("logistic", Z + 1e3), np.array([1.0, -2.0, 0.5, 0.0, -500.0])
    for start in ({"x0": x0}, {"start": Given(x0=x0)}):
        first = solve(problem, svrg(), max_passes=0.5, **start).history[0].objective
        w = problem.r1.minimise(problem.loss.values(x0))
        assert first == pytest.approx(problem.objective(w, x0), rel=1e-9)
    assert solve(problem, start=Concentration(10)).status.converged
    with pytest.raises(ValueError, match="x0 must have shape"):
        solve(problem, x0=np.zeros(3))


def test_a_given_step_or_engine_takes_the_problem_as_it_is() -> None:
    problem = made("least squares", Z + 3)
    x = problem.loss.start()
    for engine in ("auto", LocalEngine(problem)):
        found = solve(problem, palm(step=1e-3), start=None, max_passes=2, tol=0.0, engine=engine)
        w = np.full(N, 240 / N) if not found.history[1:] else found.w
        g = problem.loss.gradient(x, w / N)
        np.testing.assert_allclose(found.x, problem.r2.prox(x - 1e-3 * g, 1e-3)[0], rtol=1e-10)


# ---- estimators at size ----


@pytest.fixture(scope="module")
def flipped() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    V = rng.standard_normal((130_000, 8))
    right = (V @ (3 * rng.standard_normal(8)) + 0.3 > 0).astype(int)
    return V, np.where(rng.random(len(V)) < 0.1, 1 - right, right), right


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("kind", ["300", "a year", "csr"])
def test_labels_at_size_and_any_offset(flipped: tuple[np.ndarray, ...], kind: str) -> None:
    V, y, right = flipped
    moves: dict[str, Any] = {
        "300": V + 300,
        "a year": V * [7, 1, 1, 1, 1, 1, 1, 1] + [2000, 0, 0, 0, 0, 0, 0, 0],
        "csr": sp.csr_array(V + 300),
    }
    model = TrimmedLogisticRegression(contamination=0.15, random_state=0).fit(
        moves[kind], y
    )  # warnings are errors here
    assert np.mean(model.predict(moves[kind]) == right) > 0.998


def test_counts_by_year() -> None:
    rng = np.random.default_rng(0)
    V, year = rng.standard_normal((130_000, 7)), 2000 + 7 * rng.standard_normal(130_000)
    mean = np.exp(1 + 0.3 * V[:, 0] + 0.05 * (year - 2000))
    y = rng.poisson(mean)
    y[:13_000] = rng.poisson(50, 13_000)
    X = np.column_stack([V, year])
    assert (
        np.corrcoef(TrimmedGLM("poisson", contamination=0.15, random_state=0).fit(X, y).predict(X), mean)[0, 1] > 0.999
    )


@pytest.mark.parametrize("loss", [Poisson, Huber])
def test_a_column_of_ones_beside_the_intercept_stays_where_it_is(loss: Any) -> None:
    """Its gradient is rounding and its curvature 0: steps went wherever the rounding pointed, by a million."""
    rng = np.random.default_rng(0)
    V = np.column_stack([np.ones(60), rng.normal(size=60)])
    t = rng.poisson(np.exp(1 + V[:, 1])).astype(float)
    assert abs(solve(Problem(loss(V, t, intercept=True), CappedSimplex(50))).x[0]) < 1e-6
