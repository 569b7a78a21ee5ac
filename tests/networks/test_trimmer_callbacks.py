"""Trimmer within Lightning and within the Trainer of transformers: short runs of small networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
from torch.nn import functional  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from trimlearn.torch import Indexed, Trimmer  # noqa: E402

N, WRONG = 240, 48
LIGHTNINGS_OWN = pytest.mark.filterwarnings("ignore:.*treespec, LeafSpec", "ignore:.*does not have many workers")


def made_up() -> tuple[Any, Any]:
    """Two classes, the first 48 labels of which are wrong."""
    X = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
    y = (X[:, 0] + X[:, 1] > 0).long()
    y[:WRONG] = 1 - y[:WRONG]
    return X, y


def found(trimmer: Trimmer) -> float:
    """The share of the wrong labels that is trimmed."""
    return float((~trimmer.inlier_mask_[:WRONG]).float().mean())


# -- Lightning --------------------------------------------------------------------------------------------------------


@pytest.fixture
def lightning() -> Any:
    return pytest.importorskip("lightning.pytorch", reason="Lightning is not installed: pip install lightning")


def run_lightning(lightning: Any, folder: Path, trimmer: Trimmer, epochs: int, resume: Path | None = None) -> Any:
    from trimlearn.torch.lightning import TrimmerCallback

    class Net(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.trimmer = torch.nn.Linear(4, 2), trimmer

        def training_step(self, batch: Any, _: int) -> Any:
            x, y, indices = batch
            return self.trimmer(functional.cross_entropy(self.layer(x), y, reduction="none"), indices)

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=0.05)

    torch.manual_seed(0)
    loader = DataLoader(Indexed(TensorDataset(*made_up())), batch_size=17, shuffle=True, drop_last=True)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "accelerator": "cpu",
    }
    run = lightning.Trainer(max_epochs=epochs, default_root_dir=folder, callbacks=[TrimmerCallback(trimmer)], **quiet)
    run.fit(Net(), loader, ckpt_path=resume)
    return run


@LIGHTNINGS_OWN
def test_lightning_makes_a_w_step_an_epoch_and_goes_on_from_its_checkpoint(lightning: Any, tmp_path: Path) -> None:
    trimmer = Trimmer(N, 0.2)
    run = run_lightning(lightning, tmp_path, trimmer, epochs=6)
    assert trimmer.w_steps == 6 and found(trimmer) > 0.9
    assert run.callback_metrics["trimmed"] == pytest.approx(0.2, abs=0.01)
    run.save_checkpoint(tmp_path / "run.ckpt")
    other = Trimmer(N, 0.2)
    run_lightning(lightning, tmp_path, other, epochs=7, resume=tmp_path / "run.ckpt")
    assert other.w_steps == 7 and len(other.history_) == 1 and found(other) > 0.9


@LIGHTNINGS_OWN
def test_lightning_refuses_other_data(lightning: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"240 examples and the trimmer was made for 9; make it by Trimmer\(len"):
        run_lightning(lightning, tmp_path, Trimmer(9, 0.2), epochs=1)


# -- transformers -----------------------------------------------------------------------------------------------------


@pytest.fixture
def trainer() -> Any:
    """Makes a TrimmedTrainer for a small network."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    pytest.importorskip("accelerate", reason="its Trainer needs accelerate: pip install accelerate")
    from trimlearn.torch.hugging_face import TrimmedTrainer

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, x: Any, labels: Any = None) -> Any:
            logits = self.layer(x)
            return {"loss": functional.cross_entropy(logits, labels), "logits": logits}

    def make(folder: Path, trimmer: Trimmer, epochs: int = 6, smoothing: float = 0.0, **options: Any) -> Any:
        arguments = transformers.TrainingArguments(
            output_dir=str(folder), num_train_epochs=epochs, per_device_train_batch_size=8, learning_rate=0.05,
            gradient_accumulation_steps=2, save_strategy="epoch", logging_strategy="no", report_to=[], use_cpu=True,
            disable_tqdm=True, dataloader_pin_memory=False, seed=0, label_smoothing_factor=smoothing,
        )  # fmt: skip
        data = [{"x": x, "labels": y, "text": "unused"} for x, y in zip(*made_up(), strict=True)]
        options.setdefault("train_dataset", data)
        torch.manual_seed(0)
        return TrimmedTrainer(Net(), arguments, trimmer=trimmer, eval_dataset=data, **options)

    return make


def test_a_trainer_makes_a_w_step_an_epoch_and_goes_on_from_its_checkpoint(trainer: Any, tmp_path: Path) -> None:
    trimmer = Trimmer(N, 0.2)
    run = trainer(tmp_path, trimmer)
    run.train()
    assert trimmer.w_steps == 6 and found(trimmer) > 0.9
    losses = functional.cross_entropy(run.model.layer(made_up()[0]), made_up()[1]).detach()
    assert run.evaluate()["eval_loss"] == pytest.approx(float(losses), rel=1e-4)  # not trimmed
    other = Trimmer(N, 0.2)
    trainer(tmp_path, other, epochs=7).train(resume_from_checkpoint=str(tmp_path / "checkpoint-90"))
    assert other.w_steps == 7 and len(other.history_) == 1 and found(other) > 0.9


def test_a_checkpoint_without_the_trimmer_is_said(trainer: Any, tmp_path: Path) -> None:
    trainer(tmp_path, Trimmer(N, 0.2), epochs=1).train()
    (tmp_path / "checkpoint-15" / "trimmer.npz").unlink()
    with pytest.warns(UserWarning, match=r"there is no .*trimmer.npz: the trimmer begins untrimmed"):
        trainer(tmp_path, Trimmer(N, 0.2), epochs=2).train(resume_from_checkpoint=str(tmp_path / "checkpoint-15"))


def test_a_trainer_refuses_other_data_and_batches_without_numbers(trainer: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="train_dataset has 240 examples and the trimmer was made for 9"):
        trainer(tmp_path, Trimmer(9, 0.2))

    def forgetful(examples: Any) -> Any:
        return {name: torch.stack([example[name] for example in examples]) for name in ("x", "labels")}

    with pytest.raises(ValueError, match="compute_loss_func gives one loss per batch; give loss_fn"):
        trainer(tmp_path, Trimmer(N, 0.2), compute_loss_func=print)
    with pytest.raises(ValueError, match="label_smoothing_factor is not known here; give loss_fn"):
        trainer(tmp_path, Trimmer(N, 0.2), smoothing=0.1)
    with pytest.raises(ValueError, match="the training batches have no 'index'"):
        trainer(tmp_path, Trimmer(N, 0.2), data_collator=forgetful).train()


def test_losses_of_logits() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    from trimlearn.torch.hugging_face import example_losses

    logits = torch.tensor([[1.0, 2.0], [0.0, -1.0]])
    classes = torch.tensor([1, 0])
    expected = functional.cross_entropy(logits, classes, reduction="none")
    assert torch.equal(example_losses({"logits": logits}, classes), expected)
    assert torch.equal(example_losses((None, logits[:, :1]), torch.tensor([0.0, 2.0])), torch.tensor([1.0, 4.0]))
    several = example_losses({"logits": logits}, torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
    assert several.shape == (2,) and bool((several > 0).all())
    with pytest.raises(ValueError, match=r"logits have shape \(2, 3, 4\).*loss_fn\(outputs, labels\)"):
        example_losses({"logits": torch.zeros(2, 3, 4)}, classes)
