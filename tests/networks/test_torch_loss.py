"""TorchLoss beside the core's own losses: values, derivatives, solves; and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from torch.nn import functional  # noqa: E402

from trimlearn import Problem, smart, solve  # noqa: E402
from trimlearn.losses import Softmax  # noqa: E402
from trimlearn.regularizers import L1, Box, ElasticNet, Ridge  # noqa: E402
from trimlearn.torch import TorchLoss  # noqa: E402
from trimlearn.torch.trial import rows_at_a_time  # noqa: E402
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex  # noqa: E402

N, P, K = 200, 4, 3
KEPT = CappedSimplex(170)


def cross_entropy(W: Any, batch: Any) -> Any:
    return functional.cross_entropy(batch[0] @ W, batch[1], reduction="none")


def made_up(dtype: Any = torch.float64, wrong: int = 30) -> tuple[Any, Any]:
    """Three classes, linearly separable up to noise; the labels of the first ``wrong`` rows are shifted by one."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((N, P))
    t = (V @ rng.standard_normal((P, K)) * 4 + rng.gumbel(size=(N, K))).argmax(axis=1)
    t[:wrong] = (t[:wrong] + 1) % K
    return torch.as_tensor(V, dtype=dtype), torch.as_tensor(t)


def softmax_twins(dtype: Any = torch.float64, **options: Any) -> tuple[TorchLoss, Softmax]:
    data = made_up(dtype)
    return TorchLoss(cross_entropy, torch.zeros(P, K, dtype=dtype), data, **options), Softmax(*data)


def generic(dtype: Any = torch.float64) -> tuple[Any, Any, Any]:
    """x, a direction u, and coefficients of which some are 0."""
    rng = np.random.default_rng(1)
    c = rng.random(N)
    c[::7] = 0
    return tuple(torch.as_tensor(a, dtype=dtype) for a in (*rng.standard_normal((2, P, K)), c))


@pytest.mark.parametrize(
    "rows", [None, slice(3, 150, 2), torch.tensor([5, 0, 17, 17, 3])], ids=["all", "slice", "index"]
)
@pytest.mark.parametrize("batch_size", [None, 7])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_it_is_the_loss_of_the_core(rows: Any, batch_size: int | None, dtype: Any, close: float) -> None:
    loss, core = softmax_twins(dtype, batch_size=batch_size)
    x, u, c = generic(dtype)
    c = c if rows is None else c[rows]

    def same(ours: Any, theirs: Any) -> None:
        assert ours.dtype == dtype
        torch.testing.assert_close(ours, theirs.reshape(ours.shape), rtol=close, atol=close * N)

    flat = x.flatten()
    same(loss.values(flat, rows), core.values(x, rows))
    same(loss.gradient(flat, c, rows), core.gradient(x, c, rows))
    same(loss.hessp(flat, u.flatten(), c, rows), core.hessp(x, u, c, rows))
    same(loss.gradients(flat, rows), core.gradients(x, rows))
    value, gradient = loss.value_gradient(flat, c, rows)
    assert value == pytest.approx(core.value_gradient(x, c, rows)[0], rel=close)
    same(gradient, core.gradient(x, c, rows))


def test_the_hessian_is_written_out_in_batches() -> None:
    loss, core = softmax_twins(batch_size=40)
    x, _, c = generic()
    np.testing.assert_allclose(loss.hessian(x.flatten(), c), core.hessian(x, c), atol=1e-12)


def test_rows_of_weight_zero_poison_nothing() -> None:
    V, t = made_up()
    x, u, c = generic()
    broken = V.clone()
    broken[c == 0] = torch.nan
    loss, whole = (TorchLoss(cross_entropy, torch.zeros(P, K, dtype=V.dtype), (data, t)) for data in (broken, V))
    x, u = x.flatten(), u.flatten()
    assert torch.equal(loss.gradient(x, c), whole.gradient(x, c))
    assert torch.equal(loss.hessp(x, u, c), whole.hessp(x, u, c))
    assert loss.value_gradient(x, c)[0] == whole.value_gradient(x, c)[0]
    np.testing.assert_array_equal(loss.hessian(x, c), whole.hessian(x, c))


METHODS: list[Any] = [
    smart.svrg(),
    smart.saga(duals="gradients"),
    smart.palm(),
    smart.variable_projection(),
    smart.page(),
    smart.alternating(inner="newton"),
    smart.alternating(inner="lbfgs"),
    smart.alternating(inner="proximal"),
]


def test_rows_left_out_are_looked_for_again_when_weights_or_data_change() -> None:
    V, t = made_up()
    x, _, c = generic()
    V = V.clone()
    loss, flat = TorchLoss(cross_entropy, torch.zeros(P, K, dtype=V.dtype), (V, t)), x.flatten()
    for weights in (c, c.clone(), c.flip(0), torch.ones_like(c), c):
        core = Softmax(V, t)
        assert loss.value_gradient(flat, weights)[0] == pytest.approx(core.value_gradient(x, weights)[0], rel=1e-12)
    V.mul_(2)
    assert loss.value_gradient(flat, c)[0] == pytest.approx(Softmax(V, t).value_gradient(x, c)[0], rel=1e-12)


@pytest.mark.parametrize(
    "method", METHODS, ids=lambda m: getattr(m, "inner", None) or f"{type(m.j).__name__}-{m.duals}"
)
def test_every_method_finds_what_the_core_finds(method: Any) -> None:
    loss, core = softmax_twins()
    best = solve(Problem(core, KEPT, Ridge(0.05)))
    found = solve(Problem(loss, KEPT, Ridge(0.05)), method)
    # Trimming makes F nonconvex: other steps may end in another minimum close by.
    assert found.objective == pytest.approx(best.objective, rel=0.01)
    assert ((found.w > 0) != (best.w > 0)).sum() <= 6  # of 200


@pytest.mark.parametrize("r1", [AllOnes(), GroupCappedSimplex(np.arange(N) % 2, 170.0)], ids=repr)
@pytest.mark.parametrize("r2", [None, L1(0.01), ElasticNet(0.01), Box(-1, 1)], ids=repr)
def test_every_set_of_weights_and_every_regularizer(r1: Any, r2: Any) -> None:
    if r2 is None:
        r2 = Ridge(0.01)
    loss, core = softmax_twins()
    best, found = (solve(Problem(one, r1, r2)) for one in (core, loss))
    assert found.objective == pytest.approx(best.objective, rel=1e-6)
    assert found.status.converged


def test_prox_svrg_and_prox_saga_take_it_untrimmed() -> None:
    loss, core = softmax_twins()
    best = solve(Problem(core, AllOnes(), Ridge(0.05)))
    for method in (smart.prox_svrg(), smart.prox_saga(duals="gradients")):
        assert solve(Problem(loss, AllOnes(), Ridge(0.05)), method).objective == pytest.approx(best.objective, rel=1e-3)


@pytest.mark.parametrize("form", ["dict", "list", "module", "tensor"])
def test_params_come_back_in_the_form_they_had(form: str) -> None:
    V, t = made_up(torch.float32)
    module = torch.nn.Linear(P, K)
    W, b = module.weight, module.bias

    def fn(params: Any, batch: Any) -> Any:
        if form == "tensor":
            return (batch[0] @ params[:, 0] - batch[1]).square()
        W, b = (params["weight"], params["bias"]) if isinstance(params, dict) else params
        return functional.cross_entropy(functional.linear(batch[0], W, b), batch[1], reduction="none")

    given = {"dict": {"weight": W, "bias": b}, "list": [W, b], "module": module, "tensor": torch.zeros(P, 2)}[form]
    loss = TorchLoss(fn, given, (V, t))
    back = loss.params(loss.start())
    if form == "tensor":
        assert back.shape == (P, 2)
    else:
        parts = back if form == "list" else back.values()
        assert isinstance(back, list if form == "list" else dict)
        assert all(map(torch.equal, parts, (W, b)))


def test_a_module_is_fitted_and_takes_its_parameters_back() -> None:
    torch.manual_seed(0)
    x = torch.linspace(-3, 3, 300)[:, None]
    y = torch.sin(x)
    y[::10] += 4.0
    module = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Dropout(), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    before = {name: p.clone() for name, p in module.state_dict().items()}
    loss = TorchLoss.of_module(module, lambda z, t: (z - t).square()[:, 0], (x, y))
    found = solve(Problem(loss, CappedSimplex(270)), smart.alternating(), max_passes=400)
    assert module.training and all(torch.equal(p, before[name]) for name, p in module.state_dict().items())
    assert torch.equal(found.w[::10], torch.zeros(30)) and found.objective < 5e-3
    module.load_state_dict(loss.params(found.x), strict=False)
    assert (module.eval()(x) - torch.sin(x)).abs().mean() < 0.1


def test_a_tensor_dataset_and_a_dict_will_do() -> None:
    V, t = made_up()
    W = torch.zeros(P, K, dtype=V.dtype)
    loss = TorchLoss(cross_entropy, W, (V, t))
    same = TorchLoss(cross_entropy, W, torch.utils.data.TensorDataset(V, t))
    named = TorchLoss(lambda W, b: cross_entropy(W, (b["V"], b["t"])), W, {"V": V.numpy(), "t": t})
    x, _, c = generic()
    for other in (same, named):
        assert torch.equal(other.gradient(x.flatten(), c), loss.gradient(x.flatten(), c))
        assert torch.equal(other.gradients(x.flatten()), loss.gradients(x.flatten()))


def test_frozen_parameters_are_no_part_of_x() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(P, 5), torch.nn.Linear(5, K))
    module[0].requires_grad_(False)
    loss = TorchLoss.of_module(module, torch.nn.CrossEntropyLoss(reduction="none"), made_up(torch.float32))
    assert loss.x_shape == (5 * K + K,)


def test_examples_whose_loss_is_not_finite_are_trimmed_first_and_counted() -> None:
    V, t = made_up()
    V[40:43] = torch.nan
    loss = TorchLoss(cross_entropy, torch.zeros(P, K, dtype=V.dtype), (V, t))
    with pytest.warns(UserWarning, match=f"3 of {N} examples have a NaN or infinite loss"):
        problem = Problem(loss, KEPT, Ridge(0.05))
    found = solve(problem)
    assert found.status.converged and torch.equal(found.w[40:43], torch.zeros(3, dtype=V.dtype))
    there = torch.ones(N, dtype=torch.bool)
    there[40:43] = False
    same = solve(Problem(Softmax(V[there], t[there]), KEPT, Ridge(0.05)))
    assert found.objective == pytest.approx(same.objective, rel=1e-9)
    with pytest.raises(ValueError, match="all 200 losses are NaN"):
        Problem(TorchLoss(cross_entropy, torch.zeros(P, K, dtype=V.dtype), (V * torch.nan, t)), KEPT)


def test_operations_that_torch_func_cannot_differentiate_take_a_slower_way() -> None:
    class Square(torch.autograd.Function):
        """Neither differentiated twice nor batched."""

        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z.square()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    V, t = made_up()
    t = t.double()
    odd, plain = (
        TorchLoss(fn, torch.ones(P, dtype=V.dtype), (V, t))
        for fn in (lambda w, b: Square.apply(b[0] @ w - b[1]), lambda w, b: (b[0] @ w - b[1]).square())
    )
    x, c = torch.arange(1.0, P + 1).double(), generic()[2]
    torch.testing.assert_close(odd.gradient(x, c), plain.gradient(x, c))
    torch.testing.assert_close(odd.hessp(x, x, c), plain.hessp(x, x, c), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(odd.gradients(x, slice(0, 9)), plain.gradients(x, slice(0, 9)))
    np.testing.assert_allclose(odd.hessian(x, c), plain.hessian(x, c), rtol=1e-6, atol=1e-6)


def test_a_recurrent_network_will_do() -> None:
    class Recurrent(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.last = torch.nn.LSTM(P, 3, batch_first=True), torch.nn.Linear(3, K)

        def forward(self, x: Any) -> Any:
            return self.last(self.lstm(x)[0][:, -1])

    V, t = made_up(torch.float32)
    data = V.reshape(N // 2, 2, P), t[: N // 2]
    loss = TorchLoss.of_module(Recurrent(), torch.nn.CrossEntropyLoss(reduction="none"), data)
    c = torch.rand(N // 2)
    one_by_one = loss.gradients(loss.start())
    torch.testing.assert_close(c @ one_by_one, loss.gradient(loss.start(), c), rtol=1e-4, atol=1e-4)
    assert solve(Problem(loss, CappedSimplex(80)), smart.svrg(), max_passes=4).objective < 1.2


def test_fn_may_view_its_params_in_another_shape() -> None:
    V, t = made_up()
    W = torch.zeros(P * 5, K, dtype=V.dtype)  # tall: handed by columns, which view() does not take
    loss = TorchLoss(
        lambda W, b: functional.cross_entropy(b[0] @ W.view(P, -1)[:, :K], b[1], reduction="none"), W, (V, t)
    )
    assert loss.values(loss.start()).shape == (N,)


def test_batches_are_cut_by_the_memory_their_gradient_takes() -> None:
    cpu = torch.device("cpu")
    assert rows_at_a_time(4096.0, cpu) == 1024
    assert rows_at_a_time(1e5, cpu) == 256
    assert rows_at_a_time(1e8, cpu) == 2
    assert rows_at_a_time(1e12, cpu) == 1
    wide = torch.nn.Sequential(torch.nn.Linear(P, 4096), torch.nn.Tanh(), torch.nn.Linear(4096, K))
    loss = TorchLoss.of_module(wide, torch.nn.CrossEntropyLoss(reduction="none"), made_up(torch.float32))
    assert loss.batch_size == 256  # 16 kB are kept for an example, of which 4 MB hold 244


def test_a_theory_step_asks_for_lipschitz_constants() -> None:
    loss, core = softmax_twins()
    with pytest.raises(ValueError, match="step='theory' needs the Lipschitz constants of this TorchLoss"):
        solve(Problem(loss, KEPT), smart.svrg(step="theory"))
    known, _ = softmax_twins(lipschitz=core.lipschitz())
    ours, theirs = (
        solve(Problem(one, KEPT), smart.svrg(step="theory", duals="snapshot"), start=None, max_passes=9)
        for one in (known, core)
    )
    torch.testing.assert_close(ours.x, theirs.x.flatten())
    with pytest.raises(ValueError, match="lipschitz must be a number >= 0 or 200 of them"):
        softmax_twins(lipschitz=torch.ones(3))


def bad(fn: Any = cross_entropy, params: Any = None, data: Any = None, **options: Any) -> None:
    V, t = made_up()
    TorchLoss(
        fn, torch.zeros(P, K, dtype=V.dtype) if params is None else params, (V, t) if data is None else data, **options
    )


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"fn": lambda W, b: functional.cross_entropy(b[0] @ W, b[1])}, r"got \(\); use reduction='none'"),
        ({"fn": lambda W, b: (b[0] @ W).square()}, r"shape \(4,\), got \(4, 3\); sum or average"),
        ({"fn": lambda W, b: 1.0}, "got float"),
        ({"fn": lambda W, b: (b[0] @ W).argmax(1)}, "floating point, got torch.int64"),
        ({"fn": lambda W, b: b[0].sum(1)}, "must compute its losses from the params it is handed"),
        ({"fn": lambda W, b: cross_entropy(W.detach(), b)}, "must compute its losses from the params it is handed"),
        ({"fn": lambda W, b: cross_entropy(W, (b[0].mul_(2), b[1]))}, "fn changes its batch in place"),
        ({"fn": 3}, "fn must be a function"),
        ({"params": 3.0}, "params must be a tensor, a dict of tensors or a module"),
        ({"params": {"a": 3.0}}, r"params\['a'\] must be a tensor"),
        ({"params": torch.zeros(3, dtype=torch.int64)}, "all float32 or all float64, got torch.int64"),
        ({"params": [torch.zeros(1), torch.zeros(1).double()]}, "got torch.float32, torch.float64"),
        ({"params": torch.nn.ReLU()}, "params holds no numbers"),
        ({"data": (torch.ones(3, 2), torch.ones(2))}, r"equal length, one row per example, got \[2, 3\]"),
        ({"data": torch.ones(0, 2)}, "data holds no examples"),
        ({"data": torch.tensor(1.0)}, "data must have one row per example, got a single number"),
        ({"data": ("a", "b")}, r"data\[0\] must be a tensor"),
        ({"data": torch.utils.data.DataLoader([1, 2])}, "not a DataLoader: stack its examples by torch.stack"),
        ({"data": torch.ones(3, P, device="meta")}, "data lies on meta and params on cpu; move one"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_what_it_refuses(what: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bad(**what)


def test_a_mismatch_of_precisions_is_named() -> None:
    with pytest.raises(RuntimeError) as raised:
        bad(params=torch.zeros(P, K))
    assert raised.value.__notes__ == ["params are torch.float32 and data torch.float64: convert one, by .to(…)."]


def test_losses_that_depend_on_more_than_their_example_are_doubted() -> None:
    with pytest.warns(UserWarning, match="another loss when other examples are beside it"):
        bad(fn=lambda W, b: cross_entropy(W + 1, b) - cross_entropy(W + 1, b).mean())
    with pytest.warns(UserWarning, match="Call module.eval"):
        bad(fn=lambda W, b: cross_entropy(W, b) * torch.rand(len(b[0])).double())


def test_x_of_another_size_is_refused() -> None:
    loss, _ = softmax_twins()
    with pytest.raises(ValueError, match=r"x must have shape \(12,\), got \(3,\)"):
        loss.params(torch.zeros(3))
    with pytest.raises(ValueError, match=r"x0 must have shape \(12,\)"):
        solve(Problem(loss, KEPT), x0=torch.zeros(3))
