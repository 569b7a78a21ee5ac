"""The CUDA engine's logic, on tensors in the host's memory: the iterates of the NumPy engine, and its errors."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from importlib import import_module
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trimlearn import Problem, solve
from trimlearn._utils import graphs
from trimlearn._utils.arrays import to_numpy
from trimlearn.checkpoint import Checkpoint
from trimlearn.engines import LocalEngine
from trimlearn.losses import Gamma, Huber, LeastSquares, Logistic, Loss, Poisson, SmoothL1, Softmax, StudentT, Subspace
from trimlearn.regularizers import L1, ElasticNet, NonNegative, Regularizer, Ridge, Stiefel, Zero
from trimlearn.smart import page, palm, prox_saga, saga, sg, svrg
from trimlearn.smart.draws import Draws
from trimlearn.smart.method import Method
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex, WeightSet

torch = pytest.importorskip("torch")

from trimlearn.engines.cuda import CudaEngine, place  # noqa: E402
from trimlearn.engines.cuda import engine as engine_module  # noqa: E402
from trimlearn.engines.cuda.coins import first_uniforms  # noqa: E402
from trimlearn.engines.cuda.layout import MatrixLayout  # noqa: E402
from trimlearn.engines.cuda.select import Selection  # noqa: E402
from trimlearn.engines.cuda.steps import Steps  # noqa: E402

N, P, K = 600, 7, 3
RNG = np.random.default_rng(0)
V = RNG.standard_normal((N, P))
Z = V @ RNG.standard_normal((P, K)) + 0.3 * RNG.standard_normal((N, K))
LABELS = np.where(np.arange(N) < 90, (Z.argmax(axis=1) + 1) % K, Z.argmax(axis=1))
S = (np.arange(N) % 4) * 0.75

METHODS: dict[str, Method] = {
    "svrg": svrg(step=0.05),
    "svrg-auto": svrg(finish=False),
    "svrg-restart": svrg(step=0.05, q=0.01),
    "svrg-finish": svrg(),
    "svrg-tau": svrg(tau=20.0, step=0.05),
    "svrg-lbfgs": svrg(step=0.02, metric="lbfgs"),
    "svrg-random": svrg(step=0.05, output="random"),
    "svrg-snapshot": svrg(step=0.05, duals="snapshot"),
    "saga": saga(step=0.05),
    "page": page(step=0.05),
    "sg": sg(step=0.05),
    "palm": palm(step=0.05),
}
LOSSES: dict[str, Callable[..., Loss]] = {
    "softmax": lambda V, **layer: Softmax(V, LABELS, **layer),
    "logistic": lambda V, **layer: Logistic(V, LABELS > 0, **layer),
    "squares": lambda V, **layer: LeastSquares(V, Z, **layer),
    "huber": lambda V, **layer: Huber(V, Z[:, 0], **layer),
    "student": lambda V, **layer: StudentT(V, Z[:, 0], **layer),
    "smooth": lambda V, **layer: SmoothL1(V, Z[:, 0], 0.5, **layer),
    "counts": lambda V, **layer: Poisson(V, np.round(np.exp(0.3 * Z[:, 0])), **layer),
    "amounts": lambda V, **layer: Gamma(V, np.exp(0.3 * Z[:, 0]), **layer),
}


def both(problem: Problem, method: Method | None, **options: Any) -> tuple[Any, Any]:
    """What the engine in this process finds, and the other one."""
    options = {"max_passes": 12, "tol": 0.0} | options
    return tuple(
        solve(problem, method, engine=engine, **options)
        for engine in (LocalEngine(problem), CudaEngine(problem, device="cpu"))
    )


def assert_same(problem: Problem, method: Method | None, rtol: float = 1e-8, **options: Any) -> None:
    here, there = both(problem, method, **options)
    np.testing.assert_allclose(there.x, here.x, rtol=rtol, atol=rtol * np.abs(here.x).max())
    np.testing.assert_allclose(there.w, here.w, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(there.losses, here.losses, rtol=1e-6, atol=1e-8)
    assert there.objective == pytest.approx(here.objective, rel=1e-8)
    assert there.counts == here.counts
    assert [record.k for record in there.history] == [record.k for record in here.history]


# ---- the same iterates ----


@pytest.mark.parametrize("weights", [None, S], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_the_same_steps(name: str, weights: np.ndarray | None) -> None:
    total = N if weights is None else weights.sum()
    problem = Problem(Softmax(V, LABELS, intercept=True), CappedSimplex(0.8 * total), Ridge(1e-3), weights)
    assert_same(problem, METHODS[name], rtol=1e-5 if "lbfgs" in name else 1e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_takes_the_same_steps_with_an_offset_and_scales(name: str) -> None:
    layer = {"intercept": True, "center": np.full(P, 0.1), "scale": np.linspace(0.5, 2.0, P)}
    problem = Problem(LOSSES[name](V, **layer), CappedSimplex(0.8 * N + 0.5), ElasticNet(1e-2))
    assert_same(problem, svrg(step=0.02, momentum=0.5))
    assert_same(problem, svrg(finish=False), rtol=1e-6, max_passes=8)


@pytest.mark.parametrize(
    "r2", [Zero(), Ridge(np.linspace(0, 1, P)), L1(0.02), ElasticNet(0.1, 0.3), NonNegative()], ids=str
)
def test_every_penalty_takes_the_same_steps(r2: Regularizer) -> None:
    """The last one is a set: its steps are taken one by one."""
    problem = Problem(Logistic(V, LABELS > 0), CappedSimplex(0.8 * N), r2)
    assert_same(problem, svrg(step=0.1))


@pytest.mark.parametrize("r1", [AllOnes(), CappedSimplex(N), GroupCappedSimplex(LABELS, 0.8 * N)], ids=repr)
def test_every_set_of_weights(r1: WeightSet) -> None:
    assert_same(Problem(Softmax(V, LABELS), r1, Ridge(1e-3)), svrg(step=0.05))


def test_methods_without_w_steps_and_the_default_for_small_data() -> None:
    assert_same(Problem(Softmax(V, LABELS), AllOnes(), Ridge(1e-3)), prox_saga(step=0.05))
    assert_same(Problem(LeastSquares(V, Z), CappedSimplex(0.8 * N), Ridge(1e-3)), None)
    assert_same(Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3)), None)


def test_float32_and_8_bit_data() -> None:
    for data in (V.astype(np.float32), np.clip(40 * V + 128, 0, 255).astype(np.uint8)):
        center, scale = (np.zeros(P), np.ones(P)) if data.dtype == np.float32 else (np.full(P, 128.0), np.full(P, 40.0))
        problem = Problem(Softmax(data, LABELS, center=center, scale=scale), CappedSimplex(0.8 * N), Ridge(1e-3))
        here, there = both(problem, svrg(step=0.05), max_passes=6)
        assert there.x.dtype == np.float32
        np.testing.assert_allclose(there.x, here.x, rtol=1e-3, atol=1e-4)
        assert there.counts == here.counts


def test_storage_in_bfloat16_rounds_the_data_and_nothing_else() -> None:
    rounded = torch.from_numpy(V).to(torch.bfloat16).to(torch.float32).numpy()
    other = Problem(Softmax(V.astype(np.float32), LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    here = solve(
        Problem(Softmax(rounded, LABELS), other.r1, Ridge(1e-3)), svrg(step=0.05), max_passes=6, engine="local"
    )
    engine = CudaEngine(other, device="cpu", storage="bfloat16")
    there = solve(other, svrg(step=0.05), engine=engine, max_passes=6)
    np.testing.assert_allclose(there.x, here.x, rtol=1e-3, atol=1e-4)


def test_losses_and_their_sum_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large data in 16 bits have it."""
    from trimlearn.engines.cuda.rows import TorchRows

    monkeypatch.setattr(TorchRows, "evaluate", lambda self, X, c: pytest.fail("both at once"))
    problem = Problem(Softmax(V, LABELS, intercept=True), CappedSimplex(0.8 * N), Ridge(1e-3))
    engine = CudaEngine(problem, device="cpu")
    engine._rows.apart = True
    here, there = (
        solve(problem, svrg(finish=False), engine=e, max_passes=8, tol=0.0) for e in (LocalEngine(problem), engine)
    )
    np.testing.assert_allclose(there.x, here.x, rtol=1e-7, atol=1e-9)
    assert there.counts == here.counts


# ---- stretches ----


def test_stretches_are_taken_and_end_where_the_passes_do(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    taken: list[int] = []
    take = Steps.take
    monkeypatch.setattr(Steps, "take", lambda self, state, count: taken.append(count) or take(self, state, count))
    for passes in (3.0, 3.3, 4.05, 7.77):
        assert_same(problem, svrg(step=0.05, b=10, q=0.02), max_passes=passes)
    assert max(taken) > 20 and sum(taken) > 200


def test_a_stretch_is_no_longer_than_its_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    from trimlearn.engines.cuda import steps

    monkeypatch.setattr(steps, "STEPS", 3)
    assert_same(Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3)), svrg(step=0.05, b=10, q=0.02))


def test_an_overflow_is_found_and_taken_back_as_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poisson with an automatic step, far from where it fits: the first stretches overflow."""
    rng = np.random.default_rng(1)
    A = 5 * rng.standard_cauchy((N, 2)).clip(-60, 60).astype(np.float32)
    problem = Problem(Poisson(A, rng.poisson(3.0, N).astype(np.float32)), CappedSimplex(0.9 * N))
    spoilt: list[bool] = []
    take = Steps.take

    def watched(self: Steps, state: Any, count: int) -> Any:
        if len(spoilt) == 1:
            state.gamma = 1e30
        found = take(self, state, count)
        spoilt.append(found is None)
        return found

    monkeypatch.setattr(Steps, "take", watched)
    found = solve(problem, svrg(b=5, q=0.05, finish=False), engine=CudaEngine(problem, device="cpu"), max_passes=30)
    assert any(spoilt) and any(record.restored for record in found.history)
    assert np.all(np.isfinite(found.x)) and found.objective < found.history[0].objective


def test_seeds_of_64_bits_draw_the_same_rows() -> None:
    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    assert_same(problem, svrg(step=0.05, b=20, q=0.05), seed=2**64 - 3)


@pytest.mark.parametrize("seed", [0, 7, 2**63, 2**64 - 1])
def test_coins_are_the_first_numbers_of_the_streams(seed: int) -> None:
    found = first_uniforms(seed, 1000, 40)
    assert found.tolist() == [Draws(seed, k, 10).uniform() for k in range(1000, 1040)]


# ---- parts ----


@pytest.mark.parametrize("s", [None, np.array([1.0, 2.0, 0.0, 0.5, 3.0, 1.0] * 4)], ids=["plain", "weighted"])
@pytest.mark.parametrize("h", [1.0, 3.3, 12.0, 24.0])
def test_selection_is_that_of_the_capped_simplex(h: float, s: np.ndarray | None) -> None:
    f = np.round(np.random.default_rng(2).random(24), 1)  # with ties
    f[3], f[7] = inf, nan
    total = 24.0 if s is None else float(s.sum())
    h = min(h, total)
    w = np.full(24, 0.5)
    tensors = [None if a is None else torch.from_numpy(a.copy()) for a in (f, w, s)]
    expected = CappedSimplex(h).minimise(f, s)
    selection = Selection(*tensors, total)
    problem = Problem(LeastSquares(np.ones((24, 1)), np.zeros(24)), CappedSimplex(h), None, s)
    value, before = selection.take(CappedSimplex(h))
    np.testing.assert_allclose(tensors[1].numpy(), expected, rtol=1e-12)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(value, problem.weighted_mean(expected, f), rtol=1e-12)
        np.testing.assert_allclose(before, problem.weighted_mean(w, f), rtol=1e-12)


@pytest.mark.parametrize("make", [lambda: Softmax(V, LABELS, intercept=True), lambda: Logistic(V, LABELS > 0)])
def test_x_goes_there_and_back(make: Callable[[], Any]) -> None:
    loss = make()
    layout, x = MatrixLayout(loss.linear), loss.generic()
    matrix = np.zeros(layout.shape)
    layout.put(x, matrix)
    np.testing.assert_array_equal(layout.x(matrix), x)
    np.testing.assert_array_equal(layout.written(x), matrix)


# ---- tensors ----


def tensors(**layer: Any) -> Problem:
    return Problem(Softmax(torch.from_numpy(V), torch.from_numpy(LABELS), **layer), CappedSimplex(0.8 * N), Ridge(1e-3))


@pytest.fixture
def as_if_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors in the host's memory count as CUDA tensors."""
    monkeypatch.setattr(
        import_module("trimlearn.solve"), "on_cuda", lambda engine, problem, device: engine in ("auto", "cuda")
    )
    monkeypatch.setattr(engine_module, "open_device", lambda device: torch.device("cpu"))


@pytest.mark.usefixtures("as_if_cuda")
@pytest.mark.parametrize("layer", [{}, {"intercept": True}], ids=["plain", "intercept"])
def test_tensors_come_back_as_tensors_and_arrays_as_arrays(layer: dict[str, Any]) -> None:
    given = tensors(**layer)
    there = solve(given, svrg(finish=False), max_passes=8)
    here = solve(given, svrg(finish=False), max_passes=8, engine="local")
    for found, expected in ((there.x, here.x), (there.w, here.w), (there.losses, here.losses)):
        assert isinstance(found, torch.Tensor) and found.dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6, atol=1e-8)
    again = solve(given, svrg(finish=False), max_passes=8, x0=there.x, w0=there.w)
    assert again.history[0].objective == pytest.approx(there.objective, rel=1e-6)
    arrays = Problem(Softmax(V, LABELS, **layer), CappedSimplex(0.8 * N), Ridge(1e-3))
    assert isinstance(solve(arrays, svrg(), engine="cuda", max_passes=3).w, np.ndarray)


def test_a_hosted_problem_answers_for_itself() -> None:
    """Few ask for rows on the host; those who do get them."""
    given = tensors(intercept=True, center=np.full(P, 0.1))
    hosted = place.hosted(given)
    x = hosted.loss.generic()
    assert isinstance(x, np.ndarray)
    for name in ("values", "lipschitz"):
        arguments = (x,) if name == "values" else ()
        there = (torch.from_numpy(x),) if name == "values" else ()
        found, expected = getattr(hosted.loss, name)(*arguments), getattr(given.loss, name)(*there)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-12)
    share = np.full(N, 1 / N)
    for found, expected in zip(
        hosted.loss.linear.column_moments(share), given.loss.linear.column_moments(torch.from_numpy(share)), strict=True
    ):
        np.testing.assert_allclose(found, to_numpy(expected) if not isinstance(expected, float) else expected)
    np.testing.assert_allclose(
        hosted.loss.hessian(x, share), given.loss.hessian(torch.from_numpy(x), torch.from_numpy(share))
    )
    assert place.hosted(hosted) is hosted


def test_an_engine_made_for_tensors_takes_and_gives_tensors() -> None:
    problem = tensors()
    engine = CudaEngine(problem, device="cpu")
    found = solve(problem, svrg(step=0.05), engine=engine, max_passes=5)
    expected = solve(problem, svrg(step=0.05), engine="local", max_passes=5)
    assert isinstance(found.x, torch.Tensor) and isinstance(found.w, torch.Tensor)
    np.testing.assert_allclose(found.x.numpy(), expected.x.numpy(), rtol=1e-8)


def test_the_users_arrays_are_never_written_to() -> None:
    data, w, s = V.copy(), np.full(N, 0.8), np.ones(N)
    problem = Problem(Softmax(data, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3), s)
    engine = CudaEngine(problem, device="cpu")
    solve(problem, svrg(), engine=engine, max_passes=6, w0=w)
    kept = engine.weights
    before = kept.copy()
    solve(problem, svrg(), engine=engine, max_passes=6, seed=1)
    np.testing.assert_array_equal(data, V)
    assert np.all(w == 0.8) and np.all(s == 1.0)
    np.testing.assert_array_equal(kept, before)


def test_principal_components_start_where_the_rows_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Problem(Subspace(torch.from_numpy(V), 2), CappedSimplex(0.8 * N), Stiefel())
    hosted = place.hosted(given)
    monkeypatch.setattr(place.DeviceStorage, "fetch", lambda self, rows: pytest.fail("rows were fetched"))
    np.testing.assert_allclose(hosted.loss.start(), given.loss.start().numpy(), atol=1e-12)
    engine = CudaEngine(hosted, device="cpu")
    found = solve(hosted, svrg(), engine=engine, max_passes=5)
    expected = solve(given, svrg(), engine="local", max_passes=5)
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


def test_a_model_to_start_from_is_judged_where_the_rows_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = place.hosted(tensors())
    x0 = problem.loss.generic()
    expected = solve(problem, svrg(step=0.05), engine="local", x0=x0, max_passes=3)
    monkeypatch.setattr(place.DeviceStorage, "fetch", lambda self, rows: pytest.fail("rows were fetched"))
    found = solve(problem, svrg(step=0.05), engine=CudaEngine(problem, device="cpu"), x0=x0, max_passes=3)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-8)
    assert found.counts == expected.counts


def test_a_run_leaves_nothing_behind() -> None:
    """What lies on a device is free as soon as nobody has it, without waiting for the collector of cycles."""
    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    gc.collect()
    gc.disable()
    try:
        engine = CudaEngine(problem, device="cpu")
        table = weakref.ref(engine._rows)
        solve(problem, svrg(finish=False), engine=engine, max_passes=4)
        del engine
        assert table() is None
    finally:
        gc.enable()


def test_a_checkpoint_goes_on(tmp_path: Path) -> None:
    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    file = Checkpoint(tmp_path / "run", every=0.0)

    def fit(passes: float, checkpoint: Checkpoint | None) -> Any:
        engine = CudaEngine(problem, device="cpu")
        return solve(problem, svrg(step=0.05), start=None, engine=engine, max_passes=passes, checkpoint=checkpoint)

    whole = fit(9, None)
    fit(4, file)
    np.testing.assert_allclose(fit(9, file).x, whole.x, rtol=1e-8)


# ---- errors ----


def test_errors_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.sparse as sp

    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="torch sees no CUDA device here; use engine='local'"):
        solve(problem, engine="cuda")
    with pytest.raises(ValueError, match="engine must be 'auto', 'local', 'cuda'"):
        solve(problem, engine="gpu")
    with pytest.raises(ValueError, match="device must name a torch device"):
        CudaEngine(problem, device="nowhere")
    with pytest.raises(ValueError, match="storage must name a torch dtype"):
        CudaEngine(problem, device="cpu", storage="float7")
    with pytest.raises(ValueError, match="V is sparse; use engine='local'"):
        CudaEngine(Problem(Softmax(sp.csr_array(V), LABELS), CappedSimplex(0.8 * N)), device="cpu")
    with pytest.raises(ValueError, match="V lies on meta and the engine was made for cpu"):
        CudaEngine(_elsewhere(problem), device="cpu")


def _elsewhere(problem: Problem) -> Problem:
    problem.loss.linear.storage.V = torch.empty((N, P), device="meta")
    return problem


def test_a_device_may_be_named_instead_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are moved there once, for all starts; what comes back are arrays."""
    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    asked: list[Any] = []
    monkeypatch.setattr(engine_module, "open_device", lambda device: asked.append(device) or torch.device("cpu"))
    here = solve(problem, svrg(step=0.05), max_passes=4, engine="local")
    for engine in ("auto", "cuda"):
        there = solve(problem, svrg(step=0.05), max_passes=4, engine=engine, device="cuda:1")
        assert isinstance(there.x, np.ndarray) and isinstance(there.w, np.ndarray)
        np.testing.assert_allclose(there.x, here.x, rtol=1e-8)
    assert asked == ["cuda:1"] * 2
    solve(problem, svrg(step=0.05), max_passes=2, device=torch.device("cuda", 1), start="multistart")
    assert len(asked) > 3 and set(map(str, asked)) == {"cuda:1"}


def test_a_device_that_cannot_be_meant_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N))
    with pytest.raises(ValueError, match=r"device='cuda' is for engine='cuda' or 'auto', not 'local'"):
        solve(problem, engine="local", device="cuda")
    with pytest.raises(ValueError, match=r"device='cuda' is for engine='cuda' or 'auto', not <trimlearn"):
        solve(problem, engine=LocalEngine(problem), device="cuda")
    for wrong in ("cpu", "gpu", 0):
        with pytest.raises(ValueError, match=r"device must be 'cuda', 'cuda:1' and so on, or None, got"):
            solve(problem, device=wrong)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="torch sees no CUDA device here"):
        solve(problem, device="cuda")
    with pytest.raises(ValueError, match="device must name a torch device"):
        solve(problem, device="cuda:one")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ValueError, match="needs torch, which is not installed; use engine='local'"):
        place.open_device("cuda")


def test_other_losses_are_refused() -> None:
    class Parabola(Loss):
        n, x_shape, like = 5, (1,), np.zeros(1)

        def values(self, x: Any, rows: Any = None) -> Any:
            return np.full(5, float(x[0] ** 2))[slice(None) if rows is None else rows]

        def gradient(self, x: Any, c: Any, rows: Any = None) -> Any:
            return 2 * x * np.sum(c)

        def lipschitz(self) -> Any:
            return np.full(5, 2.0)

    problem = Problem(Parabola(), CappedSimplex(4))
    with pytest.raises(ValueError, match="linear prediction, not Parabola"):
        solve(problem, engine="cuda")
    with pytest.raises(ValueError, match="device='cuda' is for losses of a linear prediction, not Parabola"):
        solve(problem, device="cuda")
    with pytest.raises(ValueError, match="linear prediction, not Parabola"):
        CudaEngine(problem)


def test_out_of_memory_says_how_much_was_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (3_000_000_000, 4_000_000_000))
    full = torch.cuda.OutOfMemoryError("CUDA out of memory")
    with (
        pytest.raises(MemoryError, match=r"use engine='local'\.$") as found,
        graphs.explained(5_000_000_000, "V, 9 rows"),
    ):
        raise full
    assert str(found.value).startswith(
        "V, 9 rows, needs 5.0 GB, and 3.0 GB of the device's memory is free: store V as "
    )
    fits_not = r"Residuals, does not fit into the 3\.0 GB"
    with pytest.raises(MemoryError, match=fits_not), graphs.explained(0, "residuals"):
        raise full
