"""Narrow matrices computed by columns, and modules called with other parameters: the same numbers, in less time."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from trimlearn.torch import TorchLoss  # noqa: E402
from trimlearn.torch.parameters import Stateless  # noqa: E402
from trimlearn.torch.short_rows import ShortRows  # noqa: E402

GENERATOR = torch.Generator().manual_seed(0)
V = torch.randn(300, 6, generator=GENERATOR, dtype=torch.float64)
W = torch.randn(6, 4, generator=GENERATOR, dtype=torch.float64)
BIAS = torch.randn(4, generator=GENERATOR, dtype=torch.float64)
T = torch.arange(300) % 4
CLASSES = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)

CALLS: dict[str, Any] = {
    "matmul": lambda W: V @ W,
    "mm": lambda W: V.mm(W),
    "linear": lambda W: functional.linear(V, W.t(), BIAS),
    "linear without bias": lambda W: functional.linear(V, W.t()),
    "a vector": lambda W: V @ W[:, 0],
    "one column": lambda W: V @ W[:, :1],
    "log_softmax": lambda W: functional.log_softmax(V @ W, dim=1),
    "log_softmax of a tensor": lambda W: (V @ W).log_softmax(-1),
    "log_softmax down the rows": lambda W: (V @ W).log_softmax(0),
    "cross_entropy": lambda W: functional.cross_entropy(V @ W, T, reduction="none"),
    "its mean": lambda W: functional.cross_entropy(V @ W, T),
    "with weights": lambda W: functional.cross_entropy(V @ W, T, weight=CLASSES, reduction="none"),
    "with labels ignored": lambda W: functional.cross_entropy(V @ W, T, ignore_index=1, reduction="sum"),
    "smoothed": lambda W: functional.cross_entropy(V @ W, T, label_smoothing=0.1, reduction="none"),
    "of probabilities": lambda W: functional.cross_entropy(V @ W, (V @ W).detach().softmax(1), reduction="none"),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    call, found = CALLS[name], []
    for mode in (False, True):
        leaf = W.clone().requires_grad_()
        if mode:
            with ShortRows():
                f = call(leaf)
        else:
            f = call(leaf)
        weights = torch.linspace(-1, 1, f.numel(), dtype=f.dtype).reshape(f.shape)
        found.append((f.detach(), torch.autograd.grad((weights * f).sum(), leaf)[0]))
    for plain, mine in zip(*found, strict=True):
        assert torch.allclose(plain, mine, rtol=1e-12, atol=1e-12)


def test_a_loss_that_views_across_rows_goes_the_plain_way() -> None:
    def fn(W: Any, batch: Any) -> Any:
        return (batch[0] @ W).view(-1).view(len(batch[0]), 4).logsumexp(1)

    loss = TorchLoss(fn, W, (V,))
    x, c = loss.start(), torch.ones(300, dtype=torch.float64)
    assert loss.value_gradient(x, c)[0] == pytest.approx(float((V @ W).logsumexp(1).sum()), rel=1e-12)
    assert torch.allclose(loss.values(x), (V @ W).logsumexp(1))


def test_an_error_of_the_loss_itself_is_not_hidden() -> None:
    calls = []

    def fn(W: Any, batch: Any) -> Any:
        calls.append(len(batch[0]))
        if len(batch[0]) > 4:
            raise RuntimeError("of its own")
        return (batch[0] @ W).sum(1)

    loss = TorchLoss(fn, W, (V,))
    with pytest.raises(RuntimeError, match="of its own"):
        loss.values(loss.start())


def test_a_weight_of_two_layers_is_bound_in_both_and_given_back() -> None:
    module = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    module[1].weight = module[0].weight
    before = module[0].weight
    x = torch.eye(3)
    assert torch.equal(Stateless(module)({"0.weight": 2 * torch.eye(3)}, x), 4 * torch.eye(3))
    assert module[0].weight is before
    assert module[1].weight is before
    with pytest.raises(RuntimeError):
        Stateless(module)({"0.weight": torch.eye(2)}, x)
    assert module[0].weight is before
