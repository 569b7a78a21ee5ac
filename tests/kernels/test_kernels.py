"""The fused steps give what the losses and matrix products give, for every loss, storage and dtype."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from trimlearn import Checkpoint, Problem, kernels, solve
from trimlearn._utils import threads
from trimlearn._utils.threads import each, team
from trimlearn.kernels import Fused, fused, fused_steps
from trimlearn.losses import (
    Gamma,
    Homography,
    Huber,
    LeastSquares,
    Logistic,
    Poisson,
    PredictionLoss,
    SmoothL1,
    Softmax,
    StudentT,
    Subspace,
)
from trimlearn.losses.softmax import Mislabelled
from trimlearn.regularizers import L1, ElasticNet, Ridge
from trimlearn.smart import saga, svrg
from trimlearn.smart.duals import ResidualTable
from trimlearn.weights import CappedSimplex

pytest.importorskip("numba", reason="the kernels are compiled by numba, an extra")

N, P = 523, 11  # neither a multiple of the tile
RNG = np.random.default_rng(0)
T = RNG.normal(size=N)
LABELS = RNG.integers(0, 4, N)
SHARES = RNG.dirichlet(np.ones(4), N)
LAYER: dict[str, Any] = {"intercept": True, "center": RNG.normal(size=P), "scale": 1 + RNG.random(P)}
NOISE = np.full((4, 4), 0.05) + 0.8 * np.eye(4)

LOSSES: dict[str, Callable[[Any], PredictionLoss]] = {
    "squares": lambda V: LeastSquares(V, T, **LAYER),
    "squares of three": lambda V: LeastSquares(V, np.column_stack([T, -T, T**2]), **LAYER),
    "Huber": lambda V: Huber(V, T, **LAYER),
    "Student": lambda V: StudentT(V, T, **LAYER),
    "smooth": lambda V: SmoothL1(V, T, **LAYER),
    "logistic": lambda V: Logistic(V, (T > 0).astype(float), **LAYER),
    "labels": lambda V: Softmax(V, LABELS, **LAYER),
    "soft labels": lambda V: Softmax(V, SHARES, **LAYER),
    "mislabelled": lambda V: Mislabelled(V, LABELS, NOISE, **LAYER),
    "two classes mislabelled": lambda V: Mislabelled(V, LABELS % 2, np.array([[0.8, 0.2], [0.1, 0.9]]), **LAYER),
    "counts": lambda V: Poisson(V, LABELS.astype(float), **LAYER),
    "amounts": lambda V: Gamma(V, 1.0 + LABELS, **LAYER),
    "subspace": lambda V: Subspace(V, 2),
}
DENSE = RNG.normal(size=(N, P))
STORED: dict[str, Any] = {
    "float64": DENSE,
    "float32": DENSE.astype(np.float32),
    "bytes": RNG.integers(0, 9, (N, P)).astype(np.uint8),
    "CSR": sp.csr_array(np.where(RNG.random((N, P)) < 0.3, DENSE, 0.0)),
    "CSR, float32": sp.csr_array(np.where(RNG.random((N, P)) < 0.3, DENSE, 0.0).astype(np.float32)),
}
# Each loss once, and each storage once: a kernel is compiled for every pair.
PAIRS = [*((name, "float64") for name in LOSSES), *(("labels", stored) for stored in STORED if stored != "float64")]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "WORTH", 0)
    monkeypatch.setattr(kernels, "COMPILING", 0)
    monkeypatch.setattr(fused_steps, "PIECE_BYTES", 1)  # many pieces


def made(loss: PredictionLoss) -> Fused:
    found = fused(loss)
    assert found is not None
    return found


def model(loss: PredictionLoss) -> np.ndarray:
    return (0.3 * np.random.default_rng(1).normal(size=loss.x_shape)).astype(loss.like.dtype)


def near(found: np.ndarray, expected: np.ndarray) -> None:
    tolerance = 1e-12 if expected.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize(("name", "stored"), PAIRS)
def test_both_steps_are_those_of_the_products(name: str, stored: str) -> None:
    loss = LOSSES[name](STORED[stored])
    steps, x, dtype = made(loss), model(loss), loss.like.dtype
    f, r = loss.evaluate(loss.linear.predict(x))
    c = (RNG.random(N) * (RNG.random(N) < 0.8)).astype(dtype)
    table = np.empty_like(r)
    found, gradient = steps.evaluate(x, c, table)
    near(found, f)
    near(table, r)
    near(gradient, loss.gradient(x, c))

    old = RNG.normal(size=r.shape).astype(dtype)
    rows = np.sort(RNG.choice(N, 99, replace=False))
    share = RNG.random(99).astype(dtype)
    change, new = steps.difference(x, share, rows, old)
    near(new, r[rows])
    near(change, loss.linear.adjoint((r[rows] - old[rows]) * share[:, None], rows))


@pytest.mark.parametrize("K", [2, 3, 8, 10, 15, 16, 17, 37])
def test_predictions_of_any_width_over_sparse_rows(K: int) -> None:
    loss = LeastSquares(STORED["CSR"], RNG.normal(size=(N, K)), **LAYER)
    x, c, table = model(loss), RNG.random(N), np.empty((N, K))
    f, r = loss.evaluate(loss.linear.predict(x))
    found, gradient = made(loss).evaluate(x, c, table)
    near(found, f)
    near(table, r)
    near(gradient, loss.gradient(x, c))


@pytest.mark.parametrize("form", ["algebraic", "printed"])
def test_homographies(form: str) -> None:
    loss = Homography(np.ascontiguousarray(DENSE[:, :2]), DENSE[:, 2:4], form=form)
    x, c, table = model(loss), RNG.random(N), np.empty((N, 3))
    f, r = loss.evaluate(loss.linear.predict(x))
    found, gradient = made(loss).evaluate(x, c, table)
    near(found, f)
    near(table, r)
    near(gradient, loss.gradient(x, c))


def test_a_row_of_weight_zero_adds_nothing_whatever_it_holds() -> None:
    V = DENSE.copy()
    V[5] = 1e300  # whose prediction, squared, overflows
    loss = LeastSquares(V, T)
    c, x, table = np.ones(N), np.ones(P), np.empty((N, 1))
    c[5] = 0.0
    f, gradient = made(loss).evaluate(x, c, table)
    assert f[5] == np.inf and np.all(np.isfinite(gradient))
    with np.errstate(over="ignore"):
        near(gradient, loss.gradient(x, c))


def test_the_same_bits_on_one_thread_and_on_several() -> None:
    loss = LOSSES["labels"](DENSE)
    steps, x, c = made(loss), model(loss), np.ones(N)

    def both() -> tuple[np.ndarray, ...]:
        table = np.empty((N, 4))
        return *steps.evaluate(x, c, table), *steps.difference(x, c[:77], np.arange(77), table + 1)

    alone = both()
    with team():
        together = both()
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_mean_of_the_duals_is_not_that_of_before_some_were_refreshed() -> None:
    loss = LOSSES["labels"](DENSE)
    x, c, rows = model(loss), np.ones(N), np.arange(40)
    duals = ResidualTable(loss)
    duals.evaluate(x, c)
    duals.refresh(0.5 * x, c[rows], rows)
    moved, stayed = loss.gradient(0.5 * x, c[rows], rows), loss.gradient(x, c[40:], np.arange(40, N))
    near(duals.mean(c), moved + stayed)


def test_the_mean_of_the_duals_reads_again_only_rows_whose_weight_changed() -> None:
    for changed, again in ((0, 0), (3, 3), (N - 3, N)):  # where most have changed, all are read in order
        V = DENSE.copy()
        loss = LOSSES["labels"](V)
        x, c = model(loss), np.ones(N)
        duals = ResidualTable(loss)
        duals.evaluate(x, c)
        new = c.copy()
        new[:changed] = 0.25
        expected = loss.gradient(x, new)
        V[again:] = np.nan  # whoever looks at these rows gets NaN
        near(duals.mean(new), expected)


def test_what_has_no_kernel_goes_the_old_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fused(LeastSquares(np.asfortranarray(DENSE), T)) is None  # columns lie together
    for kind in (np.float16, ">f8", ">i4", np.longdouble):  # numbers that numba does not know
        assert fused(LeastSquares(DENSE.astype(kind), T)) is None
    monkeypatch.setattr(kernels, "WORTH", N * P + 1)
    assert fused(LeastSquares(DENSE, T)) is None  # too small


@pytest.mark.parametrize("method", [svrg(finish=False), saga(finish=False)], ids=["svrg", "saga"])
def test_iterates_are_those_without_kernels(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(LOSSES["labels"](DENSE), CappedSimplex(0.8 * N))
    fast = solve(problem, method, max_passes=6, seed=3)
    monkeypatch.setattr(kernels, "WORTH", 10**9)
    plain = solve(problem, method, max_passes=6, seed=3)
    assert len(fast.history) == len(plain.history)
    near(fast.x, plain.x)
    np.testing.assert_allclose(fast.w, plain.w, atol=1e-12)


def test_without_numba_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_compiled", lambda storage: "numba is too old")
    loss = LeastSquares(DENSE, T)
    assert fused(loss) is None
    assert kernels.why_not(loss) == "numba is too old"
    monkeypatch.setattr(kernels, "WORTH", N * P + 1)
    assert kernels.why_not(loss) is None  # nobody would expect any


def test_a_numba_that_does_not_load_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> Any:
        raise ImportError("Numba needs NumPy 2.1 or less.")

    monkeypatch.setattr(kernels, "import_module", fails)
    kernels._compiled.cache_clear()
    try:
        assert kernels._compiled("dense") == "numba does not load (Numba needs NumPy 2.1 or less.)"
    finally:
        kernels._compiled.cache_clear()


@pytest.mark.parametrize(("version", "off", "said"), [("0.59.1", 0, "too old"), ("0.99.0rc1", 1, "switched off")])
def test_a_numba_that_is_of_no_use_is_told(version: str, off: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = SimpleNamespace(__version__=version, config=SimpleNamespace(DISABLE_JIT=off))
    monkeypatch.setattr(kernels, "import_module", lambda name: other)
    assert said in str(kernels._compiled.__wrapped__("dense"))


def test_a_resumed_run_has_the_bits_of_one_that_was_not_stopped(tmp_path: Path) -> None:
    """The sum that a w-step corrects depends on the weights before it, which a checkpoint does not have."""
    problem = Problem(LOSSES["labels"](DENSE), CappedSimplex(0.8 * N))
    method = svrg(finish=False)
    whole = solve(problem, method, max_passes=12, seed=3)
    saved = Checkpoint(tmp_path / "run.npz", every=0.0)
    solve(problem, method, max_passes=12, seed=3, checkpoint=saved, callback=lambda record: record.passes > 5)
    resumed = solve(problem, method, max_passes=12, seed=3, checkpoint=saved)
    np.testing.assert_array_equal(resumed.x, whole.x)
    np.testing.assert_array_equal(resumed.w, whole.w)


STRETCHED: dict[str, tuple[str, str, Any]] = {
    "ridge": ("labels", "float64", Ridge(0.01)),
    "lasso of a vector": ("squares", "float64", L1(0.05)),
    "elastic net, CSR": ("labels", "CSR", ElasticNet(0.02, 0.5)),
    "float32": ("labels", "float32", Ridge(0.01)),
}


def few_steps(problem: Problem, seed: int = 3, method: Any = svrg) -> Any:
    return solve(problem, method(b=9, finish=False), start=None, max_passes=5, tol=0, seed=seed)


def twice(b: int, **options: Any) -> Any:
    """Batches so large that many rows are drawn more than once."""
    return saga(b=N // 4, q=0.1, **options)


METHODS: dict[str, Any] = {"svrg": svrg, "saga": saga, "saga, many drawn twice": twice}


@pytest.mark.parametrize("case", STRETCHED)
@pytest.mark.parametrize("how", [*METHODS, "svrg, weighted"])
def test_a_stretch_takes_the_steps_it_stands_for(case: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, stored, r2 = STRETCHED[case]
    s = 0.5 + RNG.random(N) if "weighted" in how else None
    method = METHODS[how.removesuffix(", weighted")]
    kept = CappedSimplex(0.8 * (N if s is None else s.sum()))
    problem = Problem(LOSSES[name](STORED[stored]), kept, r2, sample_weight=s)
    steps: list[int] = []
    stretch = Fused.stretch

    def counted(self: Fused, *given: Any) -> tuple[int, int, int]:
        found = stretch(self, *given)
        steps.append(found[0])
        return found

    monkeypatch.setattr(Fused, "stretch", counted)
    fast = few_steps(problem, method=method)
    assert sum(steps) > (2 if "twice" in how else 5)  # and not one by one
    monkeypatch.setattr(kernels, "WORTH", 10**9)
    plain = few_steps(problem, method=method)
    assert fast.counts == plain.counts
    assert len(fast.history) == len(plain.history)
    tolerance = 1e-10 if fast.x.dtype == np.float64 else 1e-3
    np.testing.assert_allclose(fast.x, plain.x, rtol=tolerance, atol=tolerance * np.abs(plain.x).max())


@pytest.mark.parametrize("size", [3, 8])
@pytest.mark.parametrize("method", [svrg, saga])
def test_a_stretch_has_the_same_bits_on_any_number_of_threads(
    size: int, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On columns for several blocks, and in batches of several pieces."""
    monkeypatch.setattr(fused_steps, "PER_SUM", 1)
    wide = np.random.default_rng(7).normal(size=(N, 200))
    problem = Problem(Softmax(wide, LABELS, intercept=True), CappedSimplex(0.8 * N), Ridge(0.01))
    alone = few_steps(problem, method=method)
    monkeypatch.setattr(threads, "_threads_of", lambda controller: size)
    sizes: list[int] = []
    monkeypatch.setattr(fused_steps, "each", lambda task, items: (sizes.append(len(items)), each(task, items))[1])
    with team():
        together = few_steps(problem, method=method)
    assert max(sizes) == size
    monkeypatch.setattr(kernels, "WORTH", 10**9)
    np.testing.assert_allclose(alone.x, few_steps(problem, method=method).x, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(alone.x, together.x)
    np.testing.assert_array_equal(alone.w, together.w)


def test_weighted_rows_have_their_duals_renewed_one_step_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row's share in the mean of y is not in proportion to its share in a batch there."""
    s = 0.5 + RNG.random(N)
    problem = Problem(LOSSES["labels"](DENSE), CappedSimplex(0.8 * s.sum()), Ridge(0.01), sample_weight=s)
    monkeypatch.setattr(Fused, "stretch", lambda *given: pytest.fail("in a stretch"))
    assert np.isfinite(few_steps(problem, method=saga).objective)


@pytest.mark.parametrize("renews", [False, True])
def test_a_step_that_overflows_is_taken_back_whole(renews: bool) -> None:
    from trimlearn.kernels.stretch_data import Law, MovingPoint

    loss: Any = LOSSES["labels"](DENSE)
    fused, shape = Fused(loss, kernels._compiled("dense")), (loss.linear.p + loss.linear.intercept, loss.K)
    table, w = RNG.random((N, loss.K)), np.ones(N)
    given = {name: RNG.random(shape) for name in ("x", "previous", "mean", "size", "threshold", "shrink")}
    given["mean"][-1, -1] = np.inf
    model = MovingPoint(**given, momentum=0.5, center=np.zeros(loss.linear.p), per_scale=np.ones(loss.linear.p))
    before = {"table": table.copy()} | {name: a.copy() for name, a in given.items()}
    law = Law(np.array([1, 0], np.uint64), 0, -1.0, 30, 5, np.inf, np.empty(0), renews)
    assert fused.stretch(law, model, table, w) == (0, 0, 0)
    for name, a in ({"table": table} | given).items():
        np.testing.assert_array_equal(a, before[name], err_msg=name)


def test_the_draws_are_those_of_numpy() -> None:
    from trimlearn.kernels.rows import count, distinct, draw, uniforms
    from trimlearn.smart.draws import Draws, Stream

    cases = [(0, 0, Stream.ITERATION, 0), (2**64 - 1, 7, Stream.PROBE, 1), (5, 2**40, Stream.START, 6)]
    for seed, k, stream, skip in cases:
        draws = Draws(seed, k, N, None, stream)
        draws.uniforms(skip)
        found = np.empty(101)
        uniforms(np.array([seed, 0], np.uint64), k, stream.value, skip, found)
        np.testing.assert_array_equal(found, draws.uniforms(101))
    s = np.array([1.0, 0.0, 2.0, 4.0])
    draws = Draws(1, 2, 4, np.cumsum(s))
    u, rows = Draws(1, 2, 4).uniforms(50), np.empty(50, np.int64)
    draw(u, 4, np.cumsum(s), rows)
    np.testing.assert_array_equal(rows, draws.rows(50))
    w, seen = np.array([0.5, 1.0, 0.0, 1.0]), np.zeros(4, np.int32)
    for drawn in (rows, rows[:0]):
        found_rows, shares, idle = distinct(drawn, w, seen)
        kept, times = np.unique(drawn[w[drawn] > 0], return_counts=True)
        np.testing.assert_array_equal(np.sort(found_rows), kept)
        np.testing.assert_allclose(np.sort(shares), np.sort(w[kept] * times / max(len(drawn), 1)))
        assert idle == np.sum(w[drawn] == 0)
        assert not seen.any()
        apart, parts = np.empty(50, np.int64), np.empty(50)
        m, _, again = count(drawn, w, seen, apart, parts, True)
        np.testing.assert_array_equal(apart[:m], found_rows)
        np.testing.assert_allclose(parts[:m], w[found_rows] / max(len(drawn), 1))
        repeated = apart[m : m + again]
        np.testing.assert_array_equal(np.sort(repeated), kept[times > 1])
        whole = parts[:m].copy()
        for i, part in zip(repeated, parts[m : m + again], strict=True):
            whole[found_rows == i] += part
        np.testing.assert_allclose(whole, shares)
        assert not seen.any()


@pytest.mark.parametrize("stored", ["float64", "float32", "bytes"])
def test_the_moments_of_columns_are_those_of_the_layer(stored: str) -> None:
    loss = LOSSES["labels"](STORED[stored])
    c = (RNG.random(N) * (RNG.random(N) < 0.8)).astype(loss.like.dtype)
    found = made(loss).column_moments(c)
    assert found is not None
    for one, other in zip(found, loss.linear.column_moments(c), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_no_small_problem_waits_for_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(Problem(LOSSES["labels"](DENSE), CappedSimplex(0.8 * N), Ridge(0.01)))  # compiled by now
    monkeypatch.setattr(kernels, "COMPILING", 10**9)
    assert fused(LOSSES["labels"](DENSE)) is not None
    never = LeastSquares(DENSE.astype(np.int16), np.column_stack([T] * 2).astype(np.float32))
    assert fused(never) is None
    assert "compil" in str(kernels.why_not(never))


def test_what_another_version_left_on_disk_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    import numba

    from trimlearn.kernels import stretch

    kept = stretch.run._cache._cache_file
    monkeypatch.setattr(kept, "_index_path", str(tmp_path / "run.nbi"))
    monkeypatch.setattr(kept, "_cache_path", str(tmp_path))
    renamed = b"ctrimlearn.kernels.stretch\nTheNameOfAnotherVersion\n."
    (tmp_path / "run.nbi").write_bytes(pickle.dumps(numba.__version__) + renamed)
    with pytest.raises(AttributeError):
        kept._load_index()
    kernels.forget_unreadable(stretch)
    assert kept._load_index() == {}
