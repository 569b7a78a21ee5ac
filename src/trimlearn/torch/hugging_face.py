"""A callback for the Trainer of Hugging Face's transformers, and a Trainer: ``pip install transformers accelerate``."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

try:
    from transformers import Trainer, TrainerCallback
except ImportError as error:
    raise ImportError("this Trainer needs transformers: pip install transformers accelerate.") from error

from trimlearn._utils.files import replacing
from trimlearn._utils.warn import warn
from trimlearn.torch.indexed import INDEX, Indexed
from trimlearn.torch.trimmer import Trimmer

FILE = "trimmer.npz"  # in the folder of a checkpoint


@final
class TrimmerCallback(TrainerCallback):
    """Makes a `Trimmer`'s w-step when an epoch ends, and keeps its state in the Trainer's checkpoints.

    `TrimmedTrainer` has one already; it is for who writes ``compute_loss`` on their own.

    Parameters
    ----------
    trimmer : Trimmer
        The one that ``compute_loss`` calls.

    Examples
    --------
    >>> from trimlearn.torch import Trimmer
    >>> TrimmerCallback(Trimmer(100, contamination=0.2)).trimmer
    Trimmer(n=100, contamination=0.2, w_steps=0)
    """

    def __init__(self, trimmer: Trimmer) -> None:
        self.trimmer = trimmer

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Make the w-step, unless the last batch has made it."""
        self.trimmer.step()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the trimmer's state beside the model's."""
        if state.is_world_process_zero:
            folder = _checkpoint(args, state)
            folder.mkdir(parents=True, exist_ok=True)
            there = self.trimmer.state_dict().items()
            arrays = {name: np.asarray(value.cpu() if isinstance(value, Tensor) else value) for name, value in there}
            with replacing(folder / FILE) as temporary, temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Go on from a checkpoint, where the Trainer does."""
        if state.global_step == 0 or self.trimmer.w_steps:
            return
        file = _checkpoint(args, state) / FILE
        if not file.is_file():
            warn(f"the run goes on from a checkpoint, but there is no {file}: the trimmer begins untrimmed.")
            return
        with np.load(file, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
        tensors = {name: torch.from_numpy(value) for name, value in found.items() if value.ndim and name != "pace"}
        numbers = {name: value.tolist() for name, value in found.items() if name not in tensors}
        self.trimmer.load_state_dict({**tensors, **numbers})


class TrimmedTrainer(Trainer):
    """A Trainer whose loss is trimmed: the training data get their numbers, and each batch goes through the trimmer.

    Parameters
    ----------
    *args : object
        As of transformers.Trainer.
    trimmer : Trimmer
        Made for as many examples as the training data have.
    loss_fn : callable, optional
        loss_fn(outputs, labels) gives one loss per example, of shape (b,). None: `example_losses`.
    **kwargs : object
        As of transformers.Trainer. ``train_dataset`` is wrapped in `trimlearn.torch.Indexed`, unless it is one.

    Examples
    --------
    ``TrimmedTrainer(model, arguments, train_dataset=data, trimmer=Trimmer(len(data), contamination=0.2)).train()``
    """

    loss_is_scaled_for_ga = False  # a mean over the batch, which the Trainer divides by the batches it accumulates

    def __init__(
        self,
        *args: Any,
        trimmer: Trimmer,
        loss_fn: Callable[[Any, Tensor], Tensor] | None = None,
        **kwargs: Any,
    ) -> None:
        given = signature(Trainer.__init__).bind_partial(None, *args, **kwargs).arguments
        del given["self"]
        _check(given, trimmer, loss_fn)
        super().__init__(**given)
        self.trimmer = trimmer
        self.loss_fn = example_losses if loss_fn is None else loss_fn
        self.model_accepts_loss_kwargs = False  # what says the same to older versions
        self.add_callback(TrimmerCallback(trimmer))

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The trimmed mean of a training batch; in evaluation, and there alone, the model's own loss."""
        indices = inputs.pop(INDEX, None)
        if not model.training:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if indices is None:
            raise ValueError(
                f"the training batches have no {INDEX!r}: train_dataset must be an Indexed, and the data "
                "collator must keep its numbers."
            )
        if "labels" not in inputs:
            raise ValueError("the training batches have no 'labels', of which losses are made.")
        outputs = model(**inputs)
        loss = self.trimmer(self.loss_fn(outputs, inputs["labels"]), indices)
        return (loss, outputs) if return_outputs else loss

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        if self._signature_columns is not None and INDEX not in self._signature_columns:
            self._signature_columns = [*self._signature_columns, INDEX]


def example_losses(outputs: Any, labels: Tensor) -> Tensor:
    """One loss per example of a model's logits: cross-entropy of classes, squared error of numbers.

    Parameters
    ----------
    outputs : ModelOutput or tuple
        What the model returns for inputs with labels.
    labels : Tensor of shape (b,) or (b, K)
        Classes (integers), numbers, or for each of K labels whether it applies (floats where there are K > 1 logits).

    Returns
    -------
    Tensor of shape (b,)
        The losses.

    Examples
    --------
    >>> import torch
    >>> example_losses({"logits": torch.zeros(2, 4)}, torch.tensor([0, 3]))
    tensor([1.3863, 1.3863])
    """
    logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs[1]
    if logits.ndim != 2:
        raise ValueError(
            f"the model's logits have shape {tuple(logits.shape)}, not one row per example: give TrimmedTrainer a "
            "loss_fn(outputs, labels) that returns one loss per example."
        )
    if not labels.is_floating_point():
        return functional.cross_entropy(logits, labels.reshape(-1), reduction="none")
    labels = labels.reshape(logits.shape)
    if logits.shape[1] == 1:
        return (logits - labels).square()[:, 0]
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(dim=1)


def _check(given: dict[str, Any], trimmer: Trimmer, loss_fn: Any) -> None:
    """The training data numbered; ValueError for what would be passed over."""
    dataset = given.get("train_dataset")
    if dataset is not None and not isinstance(dataset, Indexed):
        dataset = given["train_dataset"] = Indexed(dataset)
    if dataset is not None and len(dataset) != trimmer.n:
        raise ValueError(
            f"train_dataset has {len(dataset)} examples and the trimmer was made for {trimmer.n}; "
            "make it by Trimmer(len(train_dataset), …)."
        )
    if given.get("compute_loss_func") is not None:
        raise ValueError("compute_loss_func gives one loss per batch; give loss_fn, with one loss per example.")
    arguments = given.get("args")
    if arguments is not None and arguments.label_smoothing_factor and loss_fn is None:
        raise ValueError("label_smoothing_factor is not known here; give loss_fn, with smoothed labels.")


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
