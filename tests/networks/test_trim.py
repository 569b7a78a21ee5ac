"""`trim`: wrong labels and bad examples are found, clean data are left alone, and runs repeat."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from torch import nn  # noqa: E402
from torch.utils.data import Dataset, TensorDataset  # noqa: E402

from trimlearn import Checkpoint  # noqa: E402
from trimlearn.datasets import load_digits_contaminated, shift_labels  # noqa: E402
from trimlearn.torch import TrimResult, trim  # noqa: E402
from trimlearn.torch.epochs import Epochs  # noqa: E402
from trimlearn.torch.level import CLEAR, SHARE  # noqa: E402
from trimlearn.torch.level import _gain as gain_of  # noqa: E402

FASTER = partial(torch.optim.Adam, lr=0.01)
CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")


def squares(output: Any, y: Any) -> Any:
    return (output[:, 0] - y) ** 2


def network(p: int, K: int, *extra: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(p, 32), *extra, nn.ReLU(), nn.Linear(32, K))


def blobs(n: int = 400, wrong: float = 0.2, K: int = 3, seed: int = 0) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """K classes that hardly overlap, a share of the labels shifted by one."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % K
    X = 4.0 * np.eye(K)[truth] + rng.normal(size=(n, K))
    off = np.zeros(n, dtype=bool)
    off[rng.choice(n, round(wrong * n), replace=False)] = True
    return torch.tensor(X, dtype=torch.float32), torch.tensor(np.where(off, (truth + 1) % K, truth)), truth, off


def curve(n: int = 300, bad: float = 0.1) -> tuple[Any, Any, np.ndarray]:
    """A line with a little noise; a share of the targets far above it."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, size=(n, 1))
    y = 2 * x[:, 0] + 0.1 * rng.normal(size=n)
    off = np.arange(n) < bad * n
    y[off] += 6
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), off


def run(*args: Any, **options: Any) -> TrimResult:
    return trim(*args, **{"progress": False, "epochs": 12, "batch_size": 32, **options})


# -- labels -----------------------------------------------------------------------------------------------------------


def test_wrong_labels_are_found_and_put_right() -> None:
    x, y, truth, off = blobs()
    result = run(network(3, 3), CROSS_ENTROPY, (x, y))
    assert abs(result.contamination_ - 0.2) < 0.04
    assert (~result.inlier_mask_)[off].mean() > 0.9 and (~result.inlier_mask_)[~off].mean() < 0.05
    assert result.suggested_labels_ is not None and np.mean(result.suggested_labels_ == truth) > 0.95
    assert result.noise_matrix_ is not None and abs(result.noise_matrix_[0, 1] - 0.2) < 0.1
    with torch.no_grad():
        assert np.mean(result.module(x).argmax(1).numpy() == truth) > 0.95
    table = result.table()
    assert table["given"][0] != table["suggested"][0] and table["kind"][0] == "suspected mislabel"
    assert result.outlier_probability_ is not None and result.outlier_probability_[off].mean() > 0.9


def test_clean_labels_are_left_alone_and_the_fit_is_the_untrimmed_one() -> None:
    x, y, _, _ = blobs(wrong=0.0)
    result, plain = run(network(3, 3), CROSS_ENTROPY, (x, y)), run(network(3, 3), CROSS_ENTROPY, (x, y), 0.0)
    assert result.inlier_mask_.all() and result.contamination_ < 0.01
    assert all(torch.equal(a, b) for a, b in zip(result.module.parameters(), plain.module.parameters(), strict=True))


def test_two_of_five_digits_shifted_by_one_are_found() -> None:
    """The network alone learns the mistakes: its own odds are 6 to 4, and only the noise matrix tells them apart."""
    data = load_digits_contaminated(0.0)
    few = data.y < 5
    labels, off = shift_labels(data.y[few], 0.4, modulo=5, seed=0)
    tensors = torch.tensor(data.X[few], dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(labels)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
    result = trim(module, CROSS_ENTROPY, tensors, epochs=30, progress=False)
    assert abs(result.contamination_ - 0.4) < 0.04
    assert (~result.inlier_mask_)[off].mean() > 0.95 and (~result.inlier_mask_)[~off].mean() < 0.05


def test_a_known_level_trims_as_many_examples() -> None:
    x, y, _, off = blobs()
    result = run(network(3, 3), CROSS_ENTROPY, (x, y), 0.2)
    assert result.contamination_ == 0.2 and np.isclose(result.weights_.sum(), 320)
    assert (~result.inlier_mask_)[off].mean() > 0.9
    assert run(network(3, 3), CROSS_ENTROPY, (x, y), 80).weights_.sum() == result.weights_.sum()


def test_every_group_keeps_its_share() -> None:
    x, y, off = curve()
    groups = np.where(np.arange(300) % 3 == 0, "a", "b")
    result = run(network(1, 1), squares, (x, y), 0.2, groups=groups, epochs=40)
    assert np.isclose(result.weights_[groups == "a"].sum(), 80) and np.isclose(result.weights_.sum(), 240)
    assert (~result.inlier_mask_)[off].all()


@pytest.mark.parametrize(
    ("loss", "columns"),
    [
        (lambda out, y: nn.functional.binary_cross_entropy_with_logits(out[:, 0], y, reduction="none"), 1),
        (lambda out, y: nn.functional.nll_loss(nn.functional.log_softmax(out, 1), y.long(), reduction="none"), 2),
        (nn.MultiMarginLoss(reduction="none"), 2),
        (nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1), 2),
    ],
)
def test_losses_of_labels_other_than_cross_entropy(loss: Any, columns: int) -> None:
    x, y, _, off = blobs(K=2)
    result = run(network(2, columns), loss, (x, y.float() if columns == 1 else y), epochs=20)
    assert result.suggested_labels_ is not None and abs(result.contamination_ - 0.2) < 0.05
    assert (~result.inlier_mask_)[off].mean() > 0.85 and (~result.inlier_mask_)[~off].mean() < 0.06


def test_new_examples_are_scored() -> None:
    x, y, _, _ = blobs()
    fresh, labels, _, off = blobs(n=90, seed=5)
    scores = run(network(3, 3), CROSS_ENTROPY, (x, y)).outlier_score((fresh, labels))
    assert np.mean((scores > 0) == off) > 0.93


# -- other targets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["auto", 0.1])
def test_bad_targets_do_not_move_a_regression(level: Any) -> None:
    x, y, off = curve()
    result = run(network(1, 1), squares, (x, y), level, epochs=30, optimizer=FASTER)
    assert (~result.inlier_mask_)[off].all() and (~result.inlier_mask_)[~off].mean() < 0.05
    with torch.no_grad():
        assert float((result.module(x)[:, 0] - 2 * x[:, 0]).abs().mean()) < 0.15
    assert result.noise_matrix_ is None and result.suggested_labels_ is None
    assert result.table()["kind"][0] == "outlier"
    assert result.outlier_score((x[off], y[off])).min() > result.threshold_


def test_clean_numbers_are_left_alone() -> None:
    x, y, _ = curve(bad=0.0)
    result = run(network(1, 1), squares, (x, y), epochs=30)
    assert (~result.inlier_mask_).mean() <= 0.02


def test_an_autoencoder_is_its_own_target() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 0.05 * rng.normal(size=(300, 8))
    X[:15] = 4 * rng.normal(size=(15, 8))
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 8))
    result = run(module, lambda out, x: ((out - x) ** 2).mean(1), X.astype(np.float32), epochs=40, optimizer=FASTER)
    assert (~result.inlier_mask_)[:15].mean() > 0.9 and (~result.inlier_mask_)[15:].mean() < 0.05


# -- how it is trained ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*not trained enough, not like wrong labels")  # three epochs are few
def test_the_same_seed_gives_the_same_fit_and_leaves_torchs_own_numbers_alone() -> None:
    x, y, _, _ = blobs(n=120)
    torch.manual_seed(3)
    expected = torch.rand(2)
    fits = []
    for _ in range(2):
        module = network(3, 3, nn.Dropout(0.2))
        torch.manual_seed(3)
        fits.append(run(module, CROSS_ENTROPY, (x, y), epochs=3))
        assert torch.equal(torch.rand(2), expected)
    assert np.array_equal(fits[0].outlier_scores_, fits[1].outlier_scores_)


@pytest.mark.parametrize("extra", [nn.Dropout(0.2), nn.BatchNorm1d(32)])
def test_dropout_and_batch_norm_are_evaluated_in_evaluation_mode(extra: nn.Module) -> None:
    x, y, _, off = blobs()
    result = run(network(3, 3, extra), CROSS_ENTROPY, (x, y), 0.2)
    assert (~result.inlier_mask_)[off].mean() > 0.9
    assert np.array_equal(result.outlier_score((x, y)), result.outlier_score((x, y)))


def test_variance_reduction_is_said_to_be_void_with_dropout() -> None:
    x, y, _, _ = blobs(n=60)
    with pytest.warns(UserWarning, match="void with dropout") as said:
        run(network(3, 3, nn.Dropout(0.2)), CROSS_ENTROPY, (x, y), 0.2, gradient="variance-reduced", epochs=2)
    assert len(said) == 1


def test_variance_reduced_gradients_have_no_variance_at_the_snapshot() -> None:
    """From the snapshot, the first step of an epoch is the full gradient's, whichever batch it is made of."""
    x, y, _ = curve(bad=0.0)
    steps = []
    for seed in (0, 1):
        module = nn.Linear(1, 1)
        nn.init.constant_(module.weight, 0.5)
        nn.init.constant_(module.bias, 0.1)
        seen: list[Any] = []
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        optimizer.register_step_pre_hook(lambda o, *_, m=module, s=seen: s.append(m.weight.grad.clone()))
        run(module, squares, (x, y), 0.0, optimizer=optimizer, gradient="variance-reduced", epochs=1, seed=seed)
        steps.append(float(seen[0]))
    output = 0.5 * x[:, 0] + 0.1
    full = float((2 * (output - y) * x[:, 0]).mean())
    assert steps == pytest.approx([full, full], rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9)},
        {"optimizer": torch.optim.RMSprop, "scheduler": lambda o: torch.optim.lr_scheduler.StepLR(o, 5)},
        {"scheduler": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o)},
        {"accumulate": 2},
        {"precision": "bfloat16"},
        {"gradient": "variance-reduced"},
    ],
)
def test_optimizers_schedulers_and_the_like(options: dict[str, Any]) -> None:
    x, y, _, off = blobs()
    result = run(network(3, 3), CROSS_ENTROPY, (x, y), 0.2, **options)
    assert (~result.inlier_mask_)[off].mean() > 0.9


def test_an_optimizer_of_the_modules_own_with_its_scheduler() -> None:
    x, y, _, off = blobs()
    module = network(3, 3)
    optimizer = torch.optim.Adam(module.parameters(), 0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=12 * 13)
    result = run(module, CROSS_ENTROPY, (x, y), optimizer=optimizer, scheduler=scheduler, scheduler_every="batch")
    assert result.module is module and (~result.inlier_mask_)[off].mean() > 0.9
    assert scheduler.last_epoch == 12 * 13  # the judges have copies of their own


class Augmented(Dataset):  # type: ignore[type-arg]
    """Examples that come out differently each time."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> Any:
        return self.x[i] + 0.1 * torch.randn(3), int(self.y[i])


@pytest.mark.parametrize("workers", [0, 1])
def test_datasets_are_read_by_loaders(workers: int) -> None:
    x, y, _, off = blobs(n=200)
    result = run(network(3, 3), CROSS_ENTROPY, Augmented(x, y), 0.2, num_workers=workers, epochs=2 if workers else 12)
    assert len(result.weights_) == 200
    if not workers:
        assert (~result.inlier_mask_)[off].mean() > 0.85
        with pytest.warns(UserWarning, match="random augmentation"):
            run(network(3, 3), CROSS_ENTROPY, Augmented(x, y), 0.2, gradient="variance-reduced", epochs=1)


def test_a_dataset_and_its_tensors_give_the_same_fit() -> None:
    x, y, _, _ = blobs(n=120)
    listed = [(a, int(b)) for a, b in zip(x, y, strict=True)]
    fits = [run(network(3, 3), CROSS_ENTROPY, data, 0.2, epochs=3) for data in ((x, y), TensorDataset(x, y), listed)]
    assert all(np.allclose(fits[0].outlier_scores_, fit.outlier_scores_, atol=1e-4) for fit in fits)


class TwoInputs(nn.Module):
    """A module that takes several arguments, by place or by name."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, a: Any, b: Any) -> Any:
        return self.layer(torch.cat([a, b], dim=1))


def test_several_inputs_are_the_modules_arguments() -> None:
    x, y, _, off = blobs()
    torch.manual_seed(0)
    by_place = run(TwoInputs(), CROSS_ENTROPY, (x[:, :1], x[:, 1:], y), 0.2, optimizer=torch.optim.Rprop)
    named = [({"a": a[:1], "b": a[1:]}, int(b)) for a, b in zip(x, y, strict=True)]
    by_name = run(TwoInputs(), CROSS_ENTROPY, named, 0.2, epochs=1)
    assert (~by_place.inlier_mask_)[off].mean() > 0.8 and len(by_name.weights_) == 400


# -- runs that stop, and go on ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.* of the labels (may be wrong|look like a module)")  # which has hardly learnt
@pytest.mark.parametrize("last", [2, 5, 9, 13])
def test_a_run_goes_on_from_its_file_as_if_it_had_never_stopped(tmp_path: Path, last: int) -> None:
    x, y, _, _ = blobs(n=120)
    whole = run(network(3, 3, nn.Dropout(0.1)), CROSS_ENTROPY, (x, y), epochs=6)
    seen: list[Any] = []

    def stop(record: Any) -> bool:
        seen.append(record)
        if len(seen) == last:
            raise KeyboardInterrupt
        return False

    options: dict[str, Any] = {"epochs": 6, "checkpoint": Checkpoint(tmp_path / "fit.pt", every=0)}
    with pytest.raises(KeyboardInterrupt):
        run(network(3, 3, nn.Dropout(0.1)), CROSS_ENTROPY, (x, y), callback=stop, **options)
    done: list[Any] = []
    again = run(network(3, 3, nn.Dropout(0.1)), CROSS_ENTROPY, (x, y), callback=done.append, **options)
    assert len(done) <= len(whole.history_) - last + 1
    assert np.array_equal(again.outlier_scores_, whole.outlier_scores_)
    assert all(torch.equal(a, b) for a, b in zip(again.module.parameters(), whole.module.parameters(), strict=True))
    assert [replace(r, seconds=0.0) for r in again.history_] == [replace(r, seconds=0.0) for r in whole.history_]


def test_a_callback_may_end_a_fit() -> None:
    x, y, _ = curve()
    result = run(network(1, 1), squares, (x, y), 0.1, callback=lambda record: record.stage == "fit")
    assert result.stopped_ and result.history_[-1].stage == "fit" and result.history_[-1].epoch == 1
    assert "ended early" in repr(result)


def test_pictures_are_drawn() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x, y, _, _ = blobs(n=120)
    result = run(network(3, 3), CROSS_ENTROPY, (x, y), 0.2, epochs=2)
    assert result.plot_scores().get_ylabel().startswith("log-odds")
    assert len(result.plot_history().lines) == 5
    assert len(result.plot_noise_matrix().texts) == 9
    pyplot.close("all")


def test_evaluation_leaves_the_mode_of_the_module_as_it_was() -> None:
    x, y, _, _ = blobs(n=60)
    module = network(3, 3).train()
    run(module, CROSS_ENTROPY, (x, y), 0.2, epochs=1)
    assert module.training and Epochs.__name__ == "Epochs"


@pytest.mark.parametrize(("epochs", "said"), [(10, True), (40, False)])
def test_a_network_that_has_not_learnt_yet_says_so(epochs: int, said: bool) -> None:
    """200 of 3,000 targets are off by 20; a line that ten epochs have hardly moved takes them for hard ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = X @ [1.0, 2.0, 3.0, 0.0] + 0.1 * rng.standard_normal(3000)
    y[:200] += 20
    torch.manual_seed(0)
    data = (torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = trim(nn.Linear(4, 1), squares, data, epochs=epochs, progress=False)
    assert any("still falling" in str(warning.message) for warning in seen) is said
    assert np.mean(~result.inlier_mask_[:200]) == 0 if said else np.mean(~result.inlier_mask_[:200]) > 0.95


@pytest.mark.parametrize(("epochs", "said"), [(4, True), (30, False)])
def test_what_a_network_trims_that_has_not_learnt_is_doubtful(epochs: int, said: bool) -> None:
    """A fifth of the labels are wrong, and known to be; four epochs of some steps are too few to learn the others."""
    x, y, _, _ = blobs(n=300)
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trim(network(3, 3), CROSS_ENTROPY, (x, y), 0.2, epochs=epochs, progress=False)
    assert any("has not learnt yet" in str(warning.message) for warning in seen) is said


@pytest.mark.parametrize("curved", [True, False])
def test_a_module_that_is_too_simple_is_told_from_wrong_targets(curved: bool) -> None:
    """A line fitted to a parabola has no wrong rows; a fifth of a line's targets that are off by 20 are wrong."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 3))
    wrong = np.arange(1500) % 5 == 0
    y = 3 * X[:, 0] ** 2 if curved else X.sum(axis=1) + 0.1 * rng.standard_normal(1500) + 20 * wrong
    data = (torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = trim(nn.Linear(3, 1), squares, data, optimizer=FASTER, progress=False)
    assert any("a rule of their own" in str(warning.message) for warning in seen) is curved
    assert curved or np.array_equal(~result.inlier_mask_, wrong)


def test_how_much_better_losses_are_is_a_share_or_nothing() -> None:
    """Exponential errors around their mean and around their median: little, so that what is flagged must lie apart."""
    e = -np.log((np.arange(4000) + 0.5) / 4000)
    around = {centre: (e - centre) ** 2 for centre in (1.0, np.log(2.0))}
    little = gain_of(around[np.log(2.0)], around[1.0])
    assert SHARE < little < CLEAR
    assert gain_of(around[1.0], around[np.log(2.0)]) == 0
    assert gain_of(around[1.0][:30], around[1.0][:30] * 1.01) == 0
    shifted = np.where(np.arange(4000) < 400, 10.0, 0.0) + np.random.default_rng(1).normal(size=4000)
    assert gain_of(shifted**2, (shifted - shifted.mean()) ** 2) > SHARE
