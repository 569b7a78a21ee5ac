"""Trimming in a training loop of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from re import sub
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from trimlearn._utils.validation import check_count
from trimlearn._utils.warn import warn
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.smart.method import Record
from trimlearn.torch.indexed import check_indices
from trimlearn.torch.processes import Pace, merged, same_everywhere
from trimlearn.torch.quotas import Quotas
from trimlearn.torch.spoilt import spoilt, without_gradient
from trimlearn.torch.trial import check_losses

CONTINUATION = 4  # w-steps in which h falls to its target: as many as `TrimmedEstimator` takes, each an epoch
UNSEEN = 0.25  # share of the examples of which a whole pass must show more: drawn with replacement it shows 63 %


@final
class Trimmer:
    """Weights for the examples of a training loop of your own: losses go in, their trimmed mean comes out.

    ``loss = trimmer(losses, indices)`` keeps the losses of this batch and returns Σ wᵢfᵢ/(b·h/n), which in the mean is
    that of the h kept examples, so that learning rates keep their meaning. Once n losses have gone in, or when `step`
    is called, the h smallest of the last known losses get weight 1, the others 0. Examples not seen yet keep theirs.
    h falls from n to its target over the first passes, because a network has to learn before it can judge.

    Every process of torch.distributed has its own trimmer: a w-step gathers the losses of all of them, and all get the
    same weights.

    Parameters
    ----------
    n : int
        How many examples there are.
    contamination : float, int or dict
        The share (float) or number (int) of examples to trim; with ``groups`` also one for each group, by its label.
    groups : sequence of n labels, optional
        Trim in each group on its own, so that none is wiped out: the share given, or that of the group.
    continuation : int
        The w-steps in which h falls from n to its target; 1 is all at once.
    repeats : bool
        Whether an example may occur twice in a batch, as in sampling with replacement. Else that is an error.

    Attributes
    ----------
    weights_ : Tensor of shape (n,)
        What each example counts, on the device of the losses, as the two that follow.
    inlier_mask_ : Tensor of shape (n,)
        Which count.
    outlier_scores_ : Tensor of shape (n,)
        The last known losses, larger is worse: inf where a loss was not finite, NaN where there was none yet.
    contamination_ : float
        The share to trim, once h has reached its target.
    history_ : list of Record
        One for each w-step: the mean loss over n of those kept, h, and as ``stationarity_w`` the share that changed.

    See Also
    --------
    trimlearn.torch.trim : The loop, too; it can estimate the contamination.
    trimlearn.torch.Indexed : A dataset that gives the indices.

    Examples
    --------
    >>> import torch
    >>> x = torch.linspace(-1, 1, 40)
    >>> y = 2 * x
    >>> y[:8] = -9.0
    >>> slope = torch.zeros(1, requires_grad=True)
    >>> optimizer = torch.optim.SGD([slope], lr=0.3)
    >>> trimmer = Trimmer(40, contamination=0.2)
    >>> for epoch in range(20):
    ...     for indices in torch.randperm(40, generator=torch.Generator().manual_seed(epoch)).split(10):
    ...         loss = trimmer((slope * x[indices] - y[indices]) ** 2, indices)
    ...         optimizer.zero_grad()
    ...         loss.backward()
    ...         optimizer.step()
    >>> bool(trimmer.inlier_mask_[:8].any()), round(slope.item(), 2)
    (False, 2.0)
    """

    def __init__(
        self,
        n: int,
        contamination: float | int | Mapping[Any, float],
        *,
        groups: Any = None,
        continuation: int = CONTINUATION,
        repeats: bool = False,
    ) -> None:
        self.n = check_count(n, "n")
        self.continuation = check_count(continuation, "continuation")
        self.repeats = repeats
        self._quotas = Quotas(self.n, contamination, groups)
        self._w = torch.ones(self.n)
        self._f = torch.full((self.n,), nan)
        self._seen = torch.zeros(
            self.n, dtype=torch.bool
        )  # ever, and since the last w-step: on the CPU, as indices are
        self._fresh = torch.zeros(self.n, dtype=torch.bool)
        self._recorded = False  # whether anything has gone in since the last w-step, in any process
        self._pace = Pace(self.n)
        self.w_steps = 0
        self.history_: list[Record] = []
        self._said: set[str] = set()

    def __repr__(self) -> str:
        return f"Trimmer(n={self.n}, contamination={self.contamination_:.4g}, w_steps={self.w_steps})"

    def __call__(self, losses: Tensor, indices: Any) -> Tensor:
        """Keep the losses of a batch, and return their trimmed mean, to be minimised.

        Parameters
        ----------
        losses : Tensor of shape (b,)
            One loss per example of the batch: ``reduction="none"``.
        indices : sequence of b int
            The examples' numbers in the dataset, from 0 to n − 1.

        Returns
        -------
        Tensor
            Σ wᵢfᵢ/(b·h/n), differentiable. Losses that are not finite add nothing; where none is, and one counts, NaN.
            Where they spoil the gradient of the others, as NaN among the inputs does, all gradients are 0.
        """
        w = self._w[self._keep(losses, indices)].to(losses.dtype)  # few operations: a GPU pays for each, not for rows
        finite = torch.isfinite(losses)
        mean = (w * torch.where(finite, losses, 0.0)).sum() * (self.n / (len(losses) * self._h))
        if not bool(finite.all()):
            mean = self._spared(mean, lost=not bool(finite.any()) and bool((w > 0).any()))
        if self._pace.advance(len(losses)):
            self.step()
        return mean

    def record(self, losses: Tensor, indices: Any) -> None:
        """Keep the losses of a batch, and return nothing: where a model is evaluated on all examples before `step`.

        Parameters
        ----------
        losses : Tensor of shape (b,)
            One loss per example of the batch.
        indices : sequence of b int
            The examples' numbers in the dataset.
        """
        self._keep(losses, indices)

    def step(self) -> None:
        """The w-step: the best weights for the last known losses. Every process must call it.

        `Trimmer` makes it on its own when n losses have gone in. At the end of an epoch it is for loaders that leave
        examples out (``drop_last``); where no losses have gone in since the last one, it does nothing.
        """
        if self.w_steps and not self._recorded:
            return
        with torch.inference_mode(False), torch.no_grad():
            self._step()

    @property
    def weights_(self) -> Tensor:
        return self._w.clone()

    @property
    def inlier_mask_(self) -> Tensor:
        return self._w > 0

    @property
    def outlier_scores_(self) -> Tensor:
        lost = self._seen.to(self._f.device) & ~torch.isfinite(self._f)
        return torch.where(lost, torch.full_like(self._f, torch.inf), self._f)

    @property
    def contamination_(self) -> float:
        return 1.0 - self._quotas.h(1.0) / self.n

    def outlier_table(self) -> OutlierTable:
        """The examples by their last known losses, worst first; those without one come last.

        Returns
        -------
        OutlierTable
            Columns row, weight, outlier (of weight 0) and score.

        Examples
        --------
        >>> import torch
        >>> trimmer = Trimmer(3, contamination=1, continuation=1)
        >>> _ = trimmer(torch.tensor([0.5, 0.25, 9.0]), [0, 1, 2])
        >>> trimmer.outlier_table()
        row  weight  outlier  score
          2       0     True      9
          0       1    False    0.5
          1       1    False   0.25
        """
        w, scores = self._w.cpu().numpy(), self.outlier_scores_.cpu().numpy()
        order = np.argsort(-scores, kind="stable")  # NaN last
        columns = {"row": order, "weight": w[order], "outlier": w[order] == 0, "score": scores[order]}
        return OutlierTable(columns)

    def state_dict(self) -> dict[str, Any]:
        """What a run needs to go on, tensors and numbers: for torch.save.

        Returns
        -------
        dict
            Weights, losses and counts.
        """
        tensors = {"weights": self._w, "losses": self._f, "seen": self._seen, "fresh": self._fresh}
        copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}
        return {**copies, "n": self.n, "w_steps": self.w_steps, "recorded": self._recorded, "pace": self._pace.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state_dict` was taken.

        Parameters
        ----------
        state : dict
            What `state_dict` gave, of a trimmer of as many examples.
        """
        needed = set(self.state_dict())
        if not isinstance(state, Mapping) or not needed <= set(state):
            raise ValueError(f"state must be what Trimmer.state_dict gives, a dict with {', '.join(sorted(needed))}.")
        if state["n"] != self.n:
            raise ValueError(f"state is that of a Trimmer of {state['n']} examples, and this one has {self.n}.")
        device = self._w.device
        self._w, self._f = (state[name].detach().to(device).clone() for name in ("weights", "losses"))
        self._seen, self._fresh = (state[name].detach().cpu().clone() for name in ("seen", "fresh"))
        self.w_steps, self._recorded = int(state["w_steps"]), bool(state["recorded"])
        self._pace.load(state["pace"])

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def _done(self) -> float:
        """How far h has come from n to its target: 0 to 1."""
        return min(self.w_steps / self.continuation, 1.0)

    @property
    def _h(self) -> float:
        return self._quotas.h(self._done)

    def _keep(self, losses: Any, indices: Any) -> Tensor:
        rows = check_indices(indices, self.n, self.repeats)
        check_losses(losses, len(rows), "losses must hold")
        with torch.inference_mode(False), torch.no_grad():  # what is made here outlives the user's own such block
            self._move(losses)
            self._seen[rows] = self._fresh[rows] = self._recorded = True
            rows = rows.to(self._w.device, non_blocking=True)
            self._f[rows] = losses.detach().to(self._f.dtype)
        return rows

    def _step(self) -> None:
        merged(self._f, self._fresh, self._seen)
        f, seen, before = self._f.cpu(), self._seen, self._w.cpu()  # once a pass: not every device has float64
        self._check(int(seen.sum()), int((torch.isfinite(f) & seen).sum()))
        self.w_steps += 1
        if self._done == 1.0 and self._quotas.exceeded(f, seen):
            self._say("more losses are NaN or infinite than there are examples to trim: all of these get weight 0.")
        w = torch.where(seen, self._quotas.best(f, seen, self._done), before)
        self._w = same_everywhere(w.to(self._w.device))
        self._fresh[:], self._recorded = False, False
        self._pace.restart()
        self._note(f.double(), w.double(), before.double())

    def _spared(self, mean: Tensor, lost: bool) -> Tensor:
        """The mean of a batch in which some losses are not finite; ``lost``: none is, which shows at once."""
        if spoilt(mean):
            mean = without_gradient(mean)
            self._say(
                "a batch holds a loss that is NaN or infinite, and so is its gradient: such batches are left out. "
                "Drop these examples from the data, or fill in their inputs, for others are left out with them."
            )
        return mean + nan if lost else mean

    def _move(self, losses: Tensor) -> None:
        """All state lies where the losses do, and is as precise."""
        dtype = torch.float64 if losses.dtype == torch.float64 else self._f.dtype
        if losses.device != self._w.device or dtype != self._f.dtype:
            self._w, self._f = self._w.to(losses.device, dtype), self._f.to(losses.device, dtype)

    def _check(self, seen: int, finite: int) -> None:
        if finite == 0:
            what = f"all {seen} losses are NaN or infinite" if seen else "no losses have gone in yet"
            raise ValueError(f"there is nothing to trim by: {what}; check the learning rate, the loss, and the data.")
        if finite < seen:
            self._say(f"{seen - finite} of {self.n} examples have a loss that is NaN or infinite: they get weight 0.")
        if self._pace.drawn >= self.n and seen <= UNSEEN * self.n:
            self._say(
                f"only {seen} of {self.n} examples have been seen in a whole pass: indices must number the examples of "
                "the dataset, not those of a batch (trimlearn.torch.Indexed adds them)."
            )

    def _say(self, sentence: str) -> None:
        """Warn, once of a kind."""
        kind = sub(r"\d+", "", sentence)
        if kind not in self._said:
            self._said.add(kind)
            warn(sentence)

    def _note(self, f: Tensor, w: Tensor, before: Tensor) -> None:
        kept = self._seen & (w > 0)
        objective = float(w[kept] @ f[kept]) / self.n
        moved = float((w - before).abs().sum()) / self.n
        self.history_.append(Record(self.w_steps, self.w_steps, objective, nan, moved, self._h, nan))
