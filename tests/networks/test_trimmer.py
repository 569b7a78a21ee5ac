"""Trimmer in loops of one's own: what it returns, when it changes its weights, in one process and in two."""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from torch import distributed, multiprocessing  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

from trimlearn.torch import Indexed, Trimmer  # noqa: E402
from trimlearn.weights import CappedSimplex, GroupCappedSimplex  # noqa: E402

LOSSES = torch.tensor([3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.0, 3.5, 8.0])
ALL = torch.arange(10)


def at_once(n: int, contamination: Any, **options: Any) -> Trimmer:
    return Trimmer(n, contamination, continuation=1, **options)


def test_a_whole_pass_brings_the_best_weights() -> None:
    trimmer = at_once(10, 0.25)
    assert torch.equal(trimmer.weights_, torch.ones(10))
    trimmer(LOSSES[:6], ALL[:6])
    assert trimmer.w_steps == 0
    trimmer(LOSSES[6:], ALL[6:])
    assert trimmer.w_steps == 1
    assert torch.equal(trimmer.weights_, CappedSimplex(7.5).minimise(LOSSES))
    assert torch.equal(trimmer.inlier_mask_, trimmer.weights_ > 0)
    assert torch.equal(trimmer.outlier_scores_, LOSSES)
    assert trimmer.contamination_ == 0.25


def test_the_table_has_the_worst_first() -> None:
    trimmer = at_once(12, 0.25)
    trimmer.record(LOSSES, ALL)
    table = trimmer.outlier_table()
    assert table["row"].tolist()[:3] == [4, 9, 6] and sorted(table["row"].tolist()[10:]) == [10, 11]
    assert not table["outlier"].any() and np.isnan(table["score"][10:]).all()
    trimmer.step()
    assert trimmer.outlier_table()["outlier"].tolist()[:4] == [True, True, False, False]


def test_the_loss_is_the_mean_of_those_kept() -> None:
    """Over all batches of a pass it is Σ wᵢfᵢ/h, whatever their sizes."""
    trimmer = at_once(10, 3)
    assert trimmer(LOSSES, ALL) == pytest.approx(float(LOSSES.mean()))
    kept = LOSSES.sort().values[:7].mean()
    parts = [float(trimmer(LOSSES[rows], rows)) * len(rows) for rows in ALL.split(4)]
    assert sum(parts) / 10 == pytest.approx(float(kept))


def test_gradients_reach_kept_examples_only() -> None:
    trimmer = at_once(10, 3)
    trimmer(LOSSES, ALL)
    f = LOSSES.clone().requires_grad_()
    trimmer(f, ALL).backward()
    assert torch.equal(f.grad > 0, trimmer.inlier_mask_)
    assert torch.allclose(f.grad[f.grad > 0], torch.tensor(1 / 7))


def test_h_falls_to_its_target_over_the_first_passes() -> None:
    trimmer = Trimmer(10, 0.4, continuation=4)
    kept = []
    for _ in range(6):
        trimmer(LOSSES, ALL)
        kept.append(float(trimmer.weights_.sum()))
    assert kept == pytest.approx([9, 8, 7, 6, 6, 6])
    assert [record.h for record in trimmer.history_] == pytest.approx(kept)
    assert trimmer.history_[-1].stationarity_w == 0
    assert trimmer.history_[-1].objective == pytest.approx(float(LOSSES.sort().values[:6].sum()) / 10)


def test_examples_not_seen_keep_their_weight() -> None:
    trimmer = at_once(10, 0.5)
    trimmer(LOSSES[:6], ALL[:6])
    trimmer.step()
    assert torch.equal(trimmer.weights_[6:], torch.ones(4))
    assert torch.equal(trimmer.weights_[:6], CappedSimplex(3).minimise(LOSSES[:6]))
    assert torch.isnan(trimmer.outlier_scores_[6:]).all()
    trimmer.step()  # nothing new has gone in
    assert trimmer.w_steps == 1


def test_losses_of_an_evaluation_can_be_recorded() -> None:
    trimmer = at_once(10, 0.2)
    trimmer.record(LOSSES, ALL)
    assert trimmer.w_steps == 0
    trimmer.step()
    assert torch.equal(trimmer.weights_, CappedSimplex(8).minimise(LOSSES))


def test_an_evaluation_in_inference_mode_can_be_recorded() -> None:
    trimmer = at_once(10, 0.2)
    with torch.inference_mode():
        trimmer.record(LOSSES.double(), ALL)
        trimmer.step()
    trimmer(LOSSES.flip(0).double(), ALL)
    assert torch.equal(trimmer.weights_, CappedSimplex(8).minimise(LOSSES.flip(0).double()))


@pytest.mark.parametrize(
    "labels", [list("aabbbbabba"), np.arange(10) % 2, torch.arange(10) % 3], ids=["str", "np", "torch"]
)
def test_groups_have_quotas(labels: Any) -> None:
    trimmer = at_once(10, 0.5, groups=labels)
    trimmer(LOSSES, ALL)
    plain = labels if isinstance(labels, list) else labels.tolist()
    assert torch.equal(trimmer.weights_, GroupCappedSimplex(plain, 5.0).minimise(LOSSES))


def test_groups_may_differ_in_what_is_trimmed() -> None:
    groups = ["a"] * 5 + ["b"] * 5
    trimmer = at_once(10, {"a": 0.4, "b": 0}, groups=groups)
    trimmer(LOSSES, ALL)
    assert trimmer.weights_.tolist() == [1, 1, 0, 1, 0, 1, 1, 1, 1, 1]
    assert trimmer.contamination_ == pytest.approx(0.2)


def test_losses_that_are_not_finite_are_trimmed_first_and_said_once() -> None:
    f = LOSSES.clone()
    f[1], f[3] = torch.nan, torch.inf
    trimmer = at_once(10, 0.3)
    with pytest.warns(UserWarning, match="2 of 10 examples have a loss that is NaN or infinite"):
        loss = trimmer(f, ALL)
    assert torch.isfinite(loss)
    finite = torch.isfinite(f)
    assert trimmer.weights_[~finite].sum() == 0 and trimmer.weights_.sum() == 7
    assert trimmer.weights_[4] == 0  # the largest of the finite ones
    assert torch.equal(trimmer.outlier_scores_[~finite], torch.full((2,), torch.inf))
    trimmer(f, ALL)  # not said again


def test_more_of_them_than_are_trimmed_is_said() -> None:
    f = LOSSES.clone()
    f[:3] = torch.nan
    trimmer = at_once(10, 0.1)
    more = "more losses are NaN or infinite than there are examples to trim"
    with pytest.warns(UserWarning, match=more), pytest.warns(UserWarning, match="3 of 10 examples"):
        trimmer(f, ALL)
    assert trimmer.weights_.tolist() == [0.0] * 3 + [1.0] * 7


@pytest.mark.parametrize("batch", [1, 20])
def test_inputs_that_are_nan_do_not_spoil_a_network(batch: int) -> None:
    torch.manual_seed(0)
    X = torch.randn(200, 3)
    y = (X[:, 0] > 0).long()
    X[7], X[100] = torch.nan, torch.inf
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    trimmer = Trimmer(200, 0.02)

    def epoch() -> None:
        for rows in torch.randperm(200).split(batch):
            loss = trimmer(torch.nn.functional.cross_entropy(net(X[rows]), y[rows], reduction="none"), rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    spared = "such batches are left out. Drop these examples from the data"
    with pytest.warns(UserWarning, match=spared), pytest.warns(UserWarning, match="2 of 200 examples"):
        epoch()
    for _ in range(7):
        epoch()
    clean = torch.isfinite(X).all(dim=1)
    assert (net(X[clean]).argmax(1) == y[clean]).float().mean() > 0.95
    assert trimmer.weights_[7] == trimmer.weights_[100] == 0


def test_nothing_but_nan_is_an_error() -> None:
    with pytest.raises(
        ValueError, match="all 10 losses are NaN or infinite; check the learning rate, the loss, and the data"
    ):
        at_once(10, 0.1)(LOSSES * torch.nan, ALL)
    assert torch.isnan(at_once(10, 0.1)(LOSSES[:3] * torch.nan, ALL[:3]))  # seen at once, where losses are shown
    with pytest.raises(ValueError, match="no losses have gone in yet"):
        at_once(10, 0.1).step()


def test_numbers_of_a_batch_in_place_of_the_dataset_are_doubted() -> None:
    trimmer = Trimmer(100, 0.1)
    for _ in range(19):
        trimmer(torch.rand(5), torch.arange(5))
    with pytest.warns(UserWarning, match="only 5 of 100 examples have been seen in a whole pass"):
        trimmer(torch.rand(5), torch.arange(5))


@pytest.mark.parametrize(
    ("losses", "indices", "message"),
    [
        (LOSSES, ALL + 1, "indices must be from 0 to 9, as Trimmer was made for n=10, got 10"),
        (LOSSES, ALL - 1, "got -1"),
        (LOSSES, ALL.float(), "indices must be integers.*got torch.float32"),
        (LOSSES, torch.ones(10, dtype=torch.bool), "got torch.bool"),
        (LOSSES, ALL[None], "one-dimensional"),
        (LOSSES[:0], ALL[:0], "indices is empty"),
        (LOSSES, ["a"], "sequence of integers, got list"),
        (LOSSES[:3], [1, 2, 1], "indices holds 1 more than once.*repeats=True"),
        (LOSSES, ALL[:4], r"one loss per example, shape \(4,\), got \(10,\)"),
        (LOSSES.mean(), ALL, r"got \(\); use reduction='none'"),
        (LOSSES.tolist(), ALL, "losses must hold one loss per example, a tensor, got list"),
        (LOSSES.long(), ALL, "floating point, got torch.int64"),
    ],
)
def test_what_a_call_refuses(losses: Any, indices: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trimmer(10, 0.1)(losses, indices)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 0.1), {}, "n must be"),
        ((10, 1.0), {}, "contamination=1.0 must be at least 0 and below 1; give a share.*, a number of examples.$"),
        ((10, "auto"), {}, "or let trimlearn.torch.trim estimate it"),
        ((10, {"a": 0.1}), {}, "give groups too"),
        ((3, {"a": 0.1}), {"groups": "abb"}, "a share for each group"),
        ((3, 0.1), {"groups": "ab"}, "one label for each of the 3 examples, got 2"),
        ((3, 0.1), {"continuation": 0}, "continuation"),
    ],
)
def test_what_a_trimmer_refuses(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trimmer(*arguments, **options)


def test_repeats_and_plain_sequences_may_be_allowed() -> None:
    trimmer = Trimmer(10, 0.1, repeats=True)
    assert trimmer(LOSSES[:3], np.array([1, 1, 2], dtype=np.int32)) == pytest.approx(float(LOSSES[:3].mean()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_loss_has_the_precision_of_the_losses(dtype: Any) -> None:
    trimmer = at_once(10, 0.3)
    assert trimmer(LOSSES.to(dtype), ALL).dtype == dtype
    assert trimmer.weights_.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert trimmer.weights_.sum() == 7


def test_a_run_goes_on_from_its_state(tmp_path: Path) -> None:
    one = Trimmer(10, 0.4)
    for f in (LOSSES, LOSSES.flip(0), LOSSES[:4]):
        one(f, ALL[: len(f)])
    torch.save(one.state_dict(), tmp_path / "trimmer.pt")
    other = Trimmer(10, 0.4)
    other.load_state_dict(torch.load(tmp_path / "trimmer.pt", weights_only=True))
    for trimmer in (one, other):
        trimmer(LOSSES[4:], ALL[4:])
    assert one.w_steps == other.w_steps == 3
    assert torch.equal(one.weights_, other.weights_) and torch.equal(one.outlier_scores_, other.outlier_scores_)
    with pytest.raises(ValueError, match="of a Trimmer of 10 examples, and this one has 11"):
        Trimmer(11, 0.4).load_state_dict(one.state_dict())
    with pytest.raises(ValueError, match=r"state must be what Trimmer.state_dict gives"):
        Trimmer(10, 0.4).load_state_dict({"n": 10})


def train(trimmer: Trimmer | None, epochs: int = 30) -> tuple[Any, Any]:
    """The accuracy on clean data of a small network, a third of whose labels are shifted; which are."""
    torch.manual_seed(0)
    n = 600
    X = torch.randn(n, 2)
    t = (X[:, 0] > 0).long() + 2 * (X[:, 1] > 0).long()
    wrong = torch.rand(n) < 1 / 3
    y = torch.where(wrong, (t + 1) % 4, t)
    net = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(epochs):
        for x, labels, indices in DataLoader(Indexed(TensorDataset(X, y)), batch_size=50, shuffle=True):
            losses = torch.nn.functional.cross_entropy(net(x), labels, reduction="none")
            loss = losses.mean() if trimmer is None else trimmer(losses, indices)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return float((net(X).argmax(1) == t).float().mean()), wrong


def test_a_network_is_better_and_its_wrong_labels_are_found() -> None:
    trimmer = Trimmer(600, 1 / 3)
    plain, (accuracy, wrong) = train(None)[0], train(trimmer)
    assert accuracy > plain + 0.04  # 0.967 for 0.900
    assert (~trimmer.inlier_mask_[wrong]).float().mean() > 0.95


def test_datasets_are_numbered() -> None:
    pairs = Indexed([(1.0, 2.0), (3.0, 4.0)])
    assert len(pairs) == 2 and pairs[1] == (3.0, 4.0, 1)
    assert Indexed([5.0])[0] == (5.0, 0)
    assert Indexed([{"x": 1}])[0] == {"x": 1, "index": 0}
    few = torch.utils.data.Subset(TensorDataset(LOSSES), [4, 6, 9])  # which reads batches at once
    (batch,) = DataLoader(Indexed(few), batch_size=3)
    assert batch[0].tolist() == [9.0, 6.0, 8.0] and batch[1].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="have a key 'index' already"):
        Indexed([{"index": 1}])[0]


def test_a_dataset_without_length_is_refused() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Any:
            yield 1

    for stream in (Stream(), iter([1])):
        with pytest.raises(ValueError, match=r"dataset must have a length and numbered examples.*into a list"):
            Indexed(stream)


def work(rank: int, folder: str) -> None:
    """One of two processes, that sees its half of the examples, in batches of other sizes than the other."""
    store, patience = f"file://{folder}/store", timedelta(seconds=60)
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2, timeout=patience)
    try:
        trimmer = at_once(10, 0.4)
        for _ in range(2):
            for part in ALL[rank::2].split([1, 4] if rank == 0 else [3, 2]):
                trimmer(LOSSES[part], part)
        torch.save(trimmer.state_dict(), f"{folder}/{rank}.pt")
    finally:
        distributed.destroy_process_group()


def test_two_processes_have_the_same_weights(tmp_path: Path) -> None:
    other = multiprocessing.get_context("spawn").Process(target=work, args=(1, str(tmp_path)))
    other.start()
    work(0, str(tmp_path))
    other.join(60)
    assert other.exitcode == 0
    for rank in range(2):
        state = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert state["w_steps"] == 2
        assert torch.equal(state["weights"], CappedSimplex(6).minimise(LOSSES))
        assert torch.equal(state["losses"], LOSSES)


@pytest.mark.parametrize(
    ("package", "module", "message"),
    [
        ("torch", "trimlearn.torch", "trimlearn.torch needs PyTorch: pip install"),
        ("lightning", "trimlearn.torch.lightning", "needs Lightning: pip install lightning"),
        ("transformers", "trimlearn.torch.hugging_face", "needs transformers: pip install transformers accelerate"),
    ],
)
def test_what_is_missing_is_said(package: str, module: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [package, *(["lightning.pytorch", "pytorch_lightning"] if package == "lightning" else [])]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name == module or (package == "torch" and name == "trimlearn.torch")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=message):
        importlib.import_module(module)
