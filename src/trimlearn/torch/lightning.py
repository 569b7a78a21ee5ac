"""A callback for Lightning: ``pip install lightning``."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, final

from torch.utils.data import DataLoader

try:
    from lightning.pytorch import Callback
except ImportError:  # the same under its older name
    try:
        from pytorch_lightning import Callback  # type: ignore[assignment]
    except ImportError as error:
        raise ImportError("this callback needs Lightning: pip install lightning.") from error

from trimlearn.torch.trimmer import Trimmer


@final
class TrimmerCallback(Callback):
    """Makes a `Trimmer`'s w-step when an epoch ends, and keeps its state in Lightning's checkpoints.

    The module calls the trimmer in its training step: ``return self.trimmer(losses, indices)``. The share trimmed so
    far is logged as "trimmed".

    Parameters
    ----------
    trimmer : Trimmer
        The one that the module calls.

    Examples
    --------
    >>> from trimlearn.torch import Trimmer
    >>> TrimmerCallback(Trimmer(100, contamination=0.2)).trimmer
    Trimmer(n=100, contamination=0.2, w_steps=0)
    """

    def __init__(self, trimmer: Trimmer) -> None:
        self.trimmer = trimmer

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Raise ValueError where the data has another number of examples than the trimmer."""
        loader = trainer.train_dataloader
        dataset = loader.dataset if isinstance(loader, DataLoader) else None
        if isinstance(dataset, Sized) and len(dataset) != self.trimmer.n:
            raise ValueError(
                f"the training data has {len(dataset)} examples and the trimmer was made for {self.trimmer.n}; "
                "make it by Trimmer(len(dataset), …)."
            )

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Make the w-step, unless the last batch has made it."""
        self.trimmer.step()
        trimmed = 1.0 - float(self.trimmer.weights_.double().mean())
        pl_module.log("trimmed", trimmed, sync_dist=True)

    def state_dict(self) -> dict[str, Any]:
        """The trimmer's, for Lightning's checkpoint."""
        return self.trimmer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.trimmer.load_state_dict(state_dict)
