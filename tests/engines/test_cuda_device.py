"""The CUDA engine on a CUDA device: the kernels' iterates are the processor's, for every loss, storage and law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trimlearn import Problem, solve
from trimlearn.engines import LocalEngine
from trimlearn.losses import Gamma, Huber, LeastSquares, Logistic, Mislabelled, Poisson, SmoothL1, Softmax, StudentT
from trimlearn.regularizers import L1, ElasticNet, NonNegative, Ridge
from trimlearn.smart import page, saga, svrg
from trimlearn.smart.draws import Stream
from trimlearn.smart.method import Method
from trimlearn.smart.row_laws import Recipe, WithReplacement
from trimlearn.weights import CappedSimplex, GroupCappedSimplex

torch = pytest.importorskip("torch")

from trimlearn.engines.cuda import CudaEngine, held  # noqa: E402
from trimlearn.engines.cuda.fastest import drawing_on_device, selection_on_device  # noqa: E402
from trimlearn.engines.cuda.fused import FusedRows  # noqa: E402
from trimlearn.engines.cuda.held import HeldRows, HeldSteps  # noqa: E402
from trimlearn.engines.cuda.rows import TorchRows  # noqa: E402
from trimlearn.engines.cuda.select import CountedSelection, Selection  # noqa: E402

pytestmark = pytest.mark.cuda

N, P, K = 6000, 37, 5
RNG = np.random.default_rng(0)
V = RNG.standard_normal((N, P)).astype(np.float32)
Z = V @ RNG.standard_normal((P, K))
LABELS = np.where(np.arange(N) < 600, (Z.argmax(axis=1) + 1) % K, Z.argmax(axis=1))
SOFT = np.exp(0.3 * Z) / np.exp(0.3 * Z).sum(axis=1, keepdims=True)
NOISE = 0.8 * np.eye(K) + 0.04
T = Z[:, 0] / 3
S = (np.arange(N) % 4) * 0.75
LAYERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "intercept": {"intercept": True},
    "all": {"intercept": True, "center": np.full(P, 0.1), "scale": np.linspace(0.5, 2.0, P)},
}
LOSSES: dict[str, Callable[..., Any]] = {
    "soft": lambda **layer: Softmax(V, SOFT, **layer),
    "mislabelled": lambda **layer: Mislabelled(V, LABELS, NOISE, **layer),
    "two mislabelled": lambda **layer: Mislabelled(V, LABELS > 0, np.array([[0.9, 0.1], [0.2, 0.8]]), **layer),
    "logistic": lambda **layer: Logistic(V, T > 0, **layer),
    "squares": lambda **layer: LeastSquares(V, Z[:, :3], **layer),
    "huber": lambda **layer: Huber(V, Z[:, :2], **layer),
    "student": lambda **layer: StudentT(V, T, **layer),
    "smooth": lambda **layer: SmoothL1(V, T, 0.1, **layer),
    "counts": lambda **layer: Poisson(V, np.round(np.exp(0.3 * T)), **layer),
    "amounts": lambda **layer: Gamma(V, np.exp(0.3 * T), **layer),
}


def assert_same(problem: Problem, method: Method, rtol: float = 1e-4, **options: Any) -> None:
    """The objective and the model of both engines, up to the rounding of float32, and the same counts."""
    options = {"max_passes": 8, "tol": 0.0} | options
    here = solve(problem, method, engine=LocalEngine(problem), **options)
    there = solve(problem, method, engine=CudaEngine(problem), **options)
    np.testing.assert_allclose(there.x, here.x, rtol=rtol, atol=rtol * np.abs(here.x).max())
    assert there.objective == pytest.approx(here.objective, rel=1e-5)
    assert there.counts == here.counts


@pytest.mark.parametrize("layer", LAYERS)
def test_labels_with_every_layer(layer: str) -> None:
    loss = Softmax(V, LABELS, **LAYERS[layer])
    assert_same(Problem(loss, CappedSimplex(0.8 * S.sum()), L1(1e-3), S), svrg(step=0.05, momentum=0.5))
    assert_same(Problem(loss, CappedSimplex(0.8 * N), ElasticNet(1e-3)), svrg(finish=False), max_passes=5)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss(name: str) -> None:
    """From an x that tells rows apart: at 0 those of `Mislabelled` are told apart by rounding."""
    loss = LOSSES[name](**LAYERS["all"])
    problem = Problem(loss, CappedSimplex(0.8 * N), Ridge(1e-3))
    assert_same(problem, svrg(step=0.01, momentum=0.5), x0=loss.generic())


@pytest.mark.parametrize(
    "method", [saga(step=0.05), page(step=0.05), svrg(step=0.05, b=5000)], ids=["saga", "page", "b"]
)
def test_other_laws(method: Method) -> None:
    assert_same(Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3)), method)


def test_weights_by_groups_and_steps_in_w() -> None:
    assert_same(Problem(Softmax(V, LABELS), GroupCappedSimplex(LABELS, 0.8 * N), Ridge(1e-3)), svrg(step=0.05))
    assert_same(Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3)), svrg(step=0.05, tau=20.0))


def test_a_set_as_r2_and_float64() -> None:
    assert_same(Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), NonNegative()), svrg(step=0.05))
    assert_same(Problem(Softmax(V.astype(np.float64), LABELS), CappedSimplex(0.8 * N)), svrg(step=0.05), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "uint8"])
def test_storage(dtype: str) -> None:
    stored = torch.from_numpy(np.clip(V * 20 + 100, 0, 255) if dtype == "uint8" else V).to(getattr(torch, dtype))
    layer = {"center": np.full(P, 100.0), "scale": np.full(P, 20.0)} if dtype == "uint8" else {}
    plain = Problem(Softmax(stored.float().numpy(), LABELS, **layer), CappedSimplex(0.8 * N), Ridge(1e-3))
    tensors = Problem(Softmax(stored.cuda(), LABELS, **layer), CappedSimplex(0.8 * N), Ridge(1e-3))
    here, there = (solve(problem, svrg(step=0.05), max_passes=8, tol=0.0) for problem in (plain, tensors))
    assert there.x.device.type == "cuda"
    np.testing.assert_allclose(there.x.cpu().numpy(), here.x, rtol=1e-3, atol=1e-3 * np.abs(here.x).max())


def test_the_same_bits_on_every_run() -> None:
    problem = Problem(Softmax(torch.from_numpy(V).cuda(), LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    a, b = (solve(problem, svrg(finish=False), max_passes=10, tol=0.0) for _ in range(2))
    assert torch.equal(a.x, b.x) and torch.equal(a.w, b.w)


@pytest.mark.parametrize("s", [None, S], ids=["plain", "weighted"])
@pytest.mark.parametrize("seed", [0, 2**64 - 5])
def test_rows_drawn_there_are_those_drawn_here(seed: int, s: np.ndarray | None) -> None:
    cumulative = None if s is None else np.cumsum(s)
    drawing = drawing_on_device(N, cumulative, torch.device("cuda"))
    out = torch.zeros((5, 333), dtype=torch.int32, device="cuda")
    for stream, skip in ((Stream.ITERATION, 1), (Stream.PROBE, 1234)):
        drawing.fill(out, Recipe(WithReplacement(333), seed, 77, stream, skip), 5)
        for i in range(5):
            rows = Recipe(WithReplacement(333), seed, 77 + i, stream, skip).rows(N, cumulative)
            np.testing.assert_array_equal(out[i].cpu().numpy(), rows)


@pytest.mark.parametrize("layer", LAYERS)
def test_sums_of_the_kernels_are_those_of_torch(layer: str) -> None:
    """Evaluation, sums of the table, moments and Hessian products, with rows of weight 0."""
    problem = Problem(
        Softmax(V * np.geomspace(1e-9, 1e9, P).astype(np.float32), LABELS, **LAYERS[layer]), CappedSimplex(N)
    )
    engine = CudaEngine(problem)
    fused = engine._rows
    assert isinstance(fused, FusedRows)
    plain = TorchRows(fused.loss, fused.layout)
    draw = torch.Generator(device="cuda").manual_seed(0)
    X, U = (1e-10 * torch.randn(fused.layout.shape, generator=draw, device="cuda") for _ in range(2))
    c = torch.rand(N, generator=draw, device="cuda") * (torch.arange(N, device="cuda") % 3 > 0)
    rows = torch.randint(0, N, (5000,), generator=draw, device="cuda", dtype=torch.int32)
    pairs = [*zip(fused.evaluate(X, c), plain.evaluate(X, c), strict=True), (fused.table, plain.table)]
    pairs += [(fused.pull(c), plain.pull(c)), (fused.curve(X, U, rows, c), plain.curve(X, U, rows, c))]
    pairs += [*zip(fused.moments(c), plain.moments(c), strict=True)]
    for found, expected in pairs:
        columns = found[..., : engine._layout.size] if found.ndim == 2 and found.shape[1] > K else found
        target = expected[..., : engine._layout.size] if columns is not found else expected
        scale = target.abs().amax(0, keepdim=True).clamp_min(1e-30)
        torch.testing.assert_close(columns / scale, target / scale, rtol=2e-4, atol=2e-4, check_dtype=False)


@pytest.mark.parametrize("drawn", [700, 4500], ids=["few", "many"])
@pytest.mark.parametrize(
    ("dtype", "p", "layer", "classes"),
    [
        ("float32", 20, "plain", 5), ("float32", 784, "all", 10), ("float32", 1500, "intercept", 5),
        ("bfloat16", 37, "all", 16), ("bfloat16", 784, "all", 10), ("uint8", 832, "intercept", 5),
        ("bfloat16", 1500, "plain", 3), ("float32", 300, "intercept", 26), ("bfloat16", 784, "plain", 26),
        ("float32", 784, "all", 64), ("bfloat16", 784, "all", 64), ("uint8", 100, "plain", 40),
        ("float16", 200, "plain", 33), ("bfloat16", 200, "all", 16), ("bfloat16", 888, "intercept", 3),
    ],
)  # fmt: skip
def test_every_kernel_sums_as_torch_does(
    dtype: str, p: int, layer: str, classes: int, drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows, and rows drawn, some twice and some of weight 0, for every way to go over them."""
    monkeypatch.setattr(held, "LEAST", 0)
    draw = torch.Generator(device="cuda").manual_seed(p)
    data = torch.rand((N, p), generator=draw, device="cuda")
    stored = (data * 255).to(torch.uint8) if dtype == "uint8" else data.to(getattr(torch, dtype))
    options = {name: a if isinstance(a, bool) else np.resize(a, p) for name, a in LAYERS[layer].items()}
    engine = CudaEngine(Problem(Softmax(stored, np.arange(N) % classes, **options), CappedSimplex(N)))
    fused = engine._rows
    assert isinstance(fused, FusedRows)
    assert isinstance(fused, HeldRows) == (dtype == "bfloat16" and p in (200, 784, 888) and classes <= 16)
    plain = TorchRows(fused.loss, fused.layout)
    size = 0.01 if dtype == "uint8" else 1.0
    X, U = (size * 0.1 * torch.randn(fused.layout.shape, generator=draw, device="cuda") for _ in range(2))
    c = torch.rand(N, generator=draw, device="cuda") * (torch.arange(N, device="cuda") % 3 > 0)
    rows = torch.randint(0, N, (1, drawn), generator=draw, device="cuda", dtype=torch.int32)
    pairs = [*zip(fused.evaluate(X, c), plain.evaluate(X, c), strict=True), (fused.table, plain.table)]
    fused.table.zero_()
    pairs += [(fused.refresh(X), plain.refresh(X)), (fused.table, plain.table)]
    pairs += [(fused.pull(c), plain.pull(c)), (fused.curve(X, U, rows[0], c), plain.curve(X, U, rows[0], c))]
    notes, stamps = torch.zeros(4, dtype=torch.int32, device="cuda"), torch.zeros(N, dtype=torch.int32, device="cuda")
    factor, tag = torch.full((1,), 0.5, device="cuda"), torch.ones(1, dtype=torch.int32, device="cuda")
    programs = fused.launch("subtract", U, U, c, c, drawn, rows, notes, factor, stamps, tag)
    index = rows[0].long()
    pairs.append((fused._summed(programs), plain.difference(U, index, 0.5 * c[index])[0]))
    for found, expected in pairs:
        if found.shape == fused.layout.shape:
            found, expected = found[:, : fused.layout.size], expected[:, : fused.layout.size]
        torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-4 * float(expected.abs().max()))
    alive = index[c[index] > 0]
    assert notes.tolist()[1:3] == [len(alive.unique()), len(alive)]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("p", "layer", "classes"), [(784, "all", 10), (512, "plain", 3), (896, "intercept", 16)])
def test_a_stretch_in_one_launch(p: int, layer: str, classes: int, weighted: bool) -> None:
    """The steps of held.cu are those of the processor, and the same bits on every run."""
    draw = torch.Generator(device="cuda").manual_seed(p)
    stored = torch.randn((N, p), generator=draw, device="cuda").to(torch.bfloat16)
    labels = stored[:, :classes].float().argmax(1).cpu().numpy()
    labels[: N // 10] = (labels[: N // 10] + 1) % classes
    options = {name: a if isinstance(a, bool) else np.resize(a, p) for name, a in LAYERS[layer].items()}
    s = S if weighted else None
    r1, r2 = CappedSimplex(0.8 * (N if s is None else S.sum())), ElasticNet(1e-3)
    tensors = Problem(Softmax(stored, labels, **options), r1, r2, s)
    plain = Problem(Softmax(stored.float().cpu().numpy(), labels, **options), r1, r2, s)
    method, limits = svrg(step=0.02, momentum=0.5, b=5000), {"max_passes": 12, "tol": 0.0}
    engine = CudaEngine(tensors)
    there, again = solve(tensors, method, engine=engine, **limits), solve(tensors, method, **limits)
    assert isinstance(engine._steps[1], HeldSteps)
    assert torch.equal(there.x, again.x)
    here = solve(plain, method, engine=LocalEngine(plain), **limits)
    assert there.counts == here.counts
    np.testing.assert_allclose(there.x.cpu().numpy(), here.x, rtol=1e-3, atol=1e-3 * np.abs(here.x).max())


@pytest.mark.parametrize("n", [1, 5, 1000, 70_001])
@pytest.mark.parametrize("kind", ["numbers", "ties", "one value", "wide"])
def test_the_smallest_are_found_by_counting_as_by_sorting(n: int, kind: str) -> None:
    """With infinities, NaN, both zeros and negative numbers among them."""
    rng = np.random.default_rng(n)
    f = {
        "numbers": rng.standard_normal(n),
        "ties": np.round(rng.standard_normal(n), 1),
        "one value": np.full(n, -3.5),
        "wide": rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n),
    }[kind].astype(np.float32)
    if n >= 1000:
        f[[1, 2, 3, 4, 5]] = np.inf, np.nan, -0.0, 0.0, -np.inf
    losses, w = torch.from_numpy(f).cuda(), torch.full((n,), 0.25, device="cuda")
    for h in {1e-3, 0.6, 1.0, n / 3, n // 2 + 0.5, n - 4.0, float(n)}:
        if not 0 < h <= n:
            continue
        sorting, counting = Selection(losses, w.clone(), None, n), selection_on_device(losses, w.clone(), None, n)
        assert isinstance(counting, CountedSelection)
        expected, found = sorting.take(CappedSimplex(h)), counting.take(CappedSimplex(h))
        torch.testing.assert_close(counting._w, sorting._w, rtol=1e-6, atol=0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_device_may_be_named() -> None:
    problem = Problem(Softmax(V, LABELS), CappedSimplex(0.8 * N), Ridge(1e-3))
    here = solve(problem, svrg(step=0.05), max_passes=4, tol=0.0)
    there = solve(problem, svrg(step=0.05), max_passes=4, tol=0.0, device="cuda:0")
    assert isinstance(there.x, np.ndarray)
    np.testing.assert_allclose(there.x, here.x, rtol=1e-4, atol=1e-4 * np.abs(here.x).max())


def test_an_engine_for_another_device_is_refused() -> None:
    problem = Problem(Softmax(torch.from_numpy(V).cuda(), LABELS), CappedSimplex(N))
    if torch.cuda.device_count() > 1:
        with pytest.raises(ValueError, match="V lies on cuda:0 and the engine was made for cuda:1"):
            CudaEngine(problem, device="cuda:1")
    with pytest.raises(ValueError, match=f"there are {torch.cuda.device_count()} CUDA devices"):
        CudaEngine(problem, device="cuda:99")


def test_too_much_data_says_how_much() -> None:
    problem = Problem(Softmax(V, LABELS), CappedSimplex(N))
    kept = torch.empty(torch.cuda.mem_get_info()[0] - (1 << 30), dtype=torch.uint8, device="cuda")
    large = Problem(Softmax(np.zeros((600_000, 1000), dtype=np.float32) + 1, np.arange(600_000) % 2), CappedSimplex(9))
    with pytest.raises(MemoryError, match=r"600,000 rows of 1,000 numbers, needs 2\.4 GB"):
        CudaEngine(large)
    del kept
    torch.cuda.empty_cache()
    CudaEngine(problem)
