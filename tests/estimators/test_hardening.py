"""What a hostile user found: each of these once gave a wrong answer in silence, or an error that named nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trimlearn import Checkpoint, Problem, Status, solve
from trimlearn.engines import LocalEngine
from trimlearn.losses import Huber, LeastSquares, Poisson, SmoothL1, Softmax, Subspace
from trimlearn.regularizers import L1, Sphere, Stiefel
from trimlearn.smart import prox_gradient, saga, sg, svrg
from trimlearn.starts import MultiStart
from trimlearn.weights import AllOnes, CappedSimplex


def line(n: int = 400, p: int = 4, wrong: int = 60, size: float = 30.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    V, x = rng.standard_normal((n, p)), rng.standard_normal(p)
    t = V @ x + 0.1 * rng.standard_normal(n)
    t[:wrong] += size
    return V, x, t


@pytest.mark.parametrize("scale", [1e-6, 1e8])
def test_a_singular_model_does_not_depend_on_the_scale_of_a_feature(scale: float) -> None:
    """Softmax without a penalty is always singular; a repeated column makes least squares so."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((200, 4))
    t = (V @ rng.standard_normal((4, 3)) + rng.gumbel(size=(200, 3))).argmax(1)
    plain, scaled = (solve(Problem(Softmax(V * [1, 1, 1, c], t), AllOnes())).objective for c in (1.0, scale))
    assert scaled == pytest.approx(plain, rel=1e-9)
    W = np.column_stack([V * [1, 1, 1, scale], V[:, 0]])
    assert solve(Problem(LeastSquares(W, W @ np.ones(5)), AllOnes())).objective < 1e-20 * scale**2 + 1e-25


def test_threads_may_share_a_problem() -> None:
    V, _, t = line(500)
    problem = Problem(LeastSquares(V, t), CappedSimplex(375))
    expected = solve(problem, svrg(), max_passes=15).x
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: solve(problem, svrg(), max_passes=15).x, range(12)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", [svrg(), saga(), sg()])
def test_an_engine_may_serve_two_runs(method: Any) -> None:
    V, _, t = line()
    problem = Problem(LeastSquares(V, t), CappedSimplex(300))
    engine = LocalEngine(problem)
    first = solve(problem, method, engine=engine, max_passes=15)
    gradients = first.counts.gradients
    with pytest.raises(ZeroDivisionError):
        solve(problem, method, engine=engine, callback=lambda record: 1 / 0)
    second = solve(problem, method, engine=engine, max_passes=15)
    assert first.counts.gradients == gradients == second.counts.gradients
    np.testing.assert_array_equal(first.x, second.x)
    assert second.history[0].h == 400


@pytest.mark.parametrize("method", [svrg(step=10.0), sg(step=1e3), prox_gradient(step=1e3)])
def test_a_step_that_is_too_large_is_called_so(method: Any) -> None:
    V, _, t = line()
    found = solve(Problem(LeastSquares(V, t), CappedSimplex(300)), method, max_passes=500)
    assert found.status is Status.DIVERGED
    assert "step" in str(found.status)
    assert found.passes < 500


def test_stochastic_gradients_survive_exponentials() -> None:
    rng = np.random.default_rng(1)
    V = rng.standard_normal((400, 5))
    t = rng.poisson(np.exp(V[:, 0])).astype(float)
    t[:60] += 200
    problem = Problem(Poisson(V, t), CappedSimplex(320))
    assert solve(problem, sg(), max_passes=30).objective < problem.objective(np.full(400, 0.8), np.zeros(5))


def test_a_decaying_step_does_not_count_the_passes_of_the_start() -> None:
    V, _, t = line()
    found = solve(Problem(SmoothL1(V, t), CappedSimplex(300)), sg(), start="concentration", max_passes=10, tol=0.0)
    assert found.history[0].passes > 20
    assert found.trace("gamma")[1] > 0.5 * found.trace("gamma")[0]


def test_exact_data_converge() -> None:
    V = np.random.default_rng(2).standard_normal((200, 4))
    t = V @ [1.0, 2.0, 3.0, 4.0]
    t[:40] += 9
    found = solve(Problem(LeastSquares(V, t), CappedSimplex(150)))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.x, [1, 2, 3, 4], rtol=1e-12)


@pytest.mark.parametrize(("dtype", "cell"), [("float64", 1e78), ("float32", 1e19)])
def test_a_wild_cell_overflows_nothing(dtype: str, cell: float) -> None:
    V, _, t = line()
    V = V.astype(dtype)
    V[3, 1] = cell
    found = solve(Problem(LeastSquares(V, t.astype(dtype)), CappedSimplex(300)), svrg(), max_passes=30)
    assert np.all(np.isfinite(found.x))
    assert np.isfinite(found.objective)


def test_a_callback_ends_all_starts() -> None:
    V, _, t = line()
    calls: list[int] = []
    problem = Problem(LeastSquares(V, t), CappedSimplex(300))
    found = solve(problem, start=MultiStart(4), callback=lambda record: calls.append(1) or True, seed=2**64 - 1)
    assert found.status is Status.CALLBACK
    assert len(calls) == 1


def test_the_solution_does_not_share_w0() -> None:
    V, x, t = line()
    problem = Problem(LeastSquares(V, t), CappedSimplex(300))
    w0 = np.full(400, 0.75)
    found = solve(problem, svrg(), w0=w0, x0=x, max_passes=1e-3)
    found.w[:] = 0.0
    assert np.all(w0 == 0.75)


def test_what_is_refused(tmp_path: Path) -> None:
    V, _, t = line()
    with pytest.raises(ValueError, match="V is a masked array"):
        LeastSquares(np.ma.masked_greater(V, 1.5), t)
    problem = Problem(LeastSquares(V, t), CappedSimplex(300))
    for w in (np.ones((400, 1)), np.ones(399), 1.0):
        with pytest.raises(ValueError, match="w must have one entry per row"):
            problem.objective(w, np.zeros(4))
    with pytest.raises(ValueError, match=r"r2 must be Stiefel\(\) for Subspace, got L1"):
        Problem(Subspace(V, 2), AllOnes(), L1(0.1))
    assert Problem(Subspace(V, 1), AllOnes(), Sphere()).r2.name == "Sphere"
    assert Problem(Subspace(V, 2), AllOnes(), Stiefel()).r2.name == "Stiefel"
    with pytest.raises(ValueError, match="not L1; use metric=None"):
        solve(Problem(LeastSquares(V, t, intercept=True), AllOnes(), L1(0.1)), svrg(metric="lbfgs"))
    solve(Problem(Huber(V, t, delta=1e3), AllOnes()), checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="another run"):
        solve(Problem(Huber(V, t, delta=2e3), AllOnes()), checkpoint=Checkpoint(tmp_path / "run.npz"))


def test_torch_data_take_any_numpy_argument() -> None:
    V, _, t = line()
    expected = solve(Problem(LeastSquares(V, t), CappedSimplex(300))).x
    frozen = t.copy()
    frozen.flags.writeable = False
    for target in (t[::-1][::-1], t.astype(">f8"), t.astype(np.longdouble), frozen):
        found = solve(Problem(LeastSquares(torch.from_numpy(V), target), CappedSimplex(300)))
        np.testing.assert_allclose(found.x.numpy(), expected, atol=1e-10)
    x0 = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    found = solve(Problem(LeastSquares(torch.from_numpy(V), t), CappedSimplex(300)), svrg(), x0=x0, max_passes=3)
    assert not found.x.requires_grad
    assert found.objective < inf
