"""Training in several processes: when they make a w-step together, and the losses of all of them."""

from __future__ import annotations

from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor


@final
class Pace:
    """Says when n losses have gone in, counted over all processes, after the same call in each of them.

    Processes that train together call as often as one another (else their gradients could not be averaged), but with
    batches of different sizes, perhaps. So they count together, at calls that all of them foresee: the first, and then
    when, at the rate so far, n will be reached.

    Parameters
    ----------
    n : int
        How many losses make a pass.

    Examples
    --------
    >>> pace = Pace(5)
    >>> [pace.advance(2) for _ in range(3)], pace.drawn
    ([False, False, True], 6)
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.restart()

    def restart(self) -> None:
        """Count from 0."""
        self.drawn, self._here, self._calls, self._look_at = 0, 0, 0, 1

    def advance(self, count: int) -> bool:
        """Whether, with ``count`` more, a pass is complete."""
        self._here += count
        self._calls += 1
        if not _together():
            self.drawn = self._here
        elif self._calls >= self._look_at:
            self.drawn = _summed(self._here)
            rate = max(self.drawn / self._calls, 1e-9)
            self._look_at = self._calls + max(1, int((self.n - self.drawn) / rate))
        return self.drawn >= self.n

    def state(self) -> list[int]:
        """The counts."""
        return [self.drawn, self._here, self._calls, self._look_at]

    def load(self, counts: Any) -> None:
        """Go on from such counts."""
        self.drawn, self._here, self._calls, self._look_at = map(int, counts)


def merged(f: Tensor, fresh: Tensor, seen: Tensor) -> None:
    """The losses of all processes put into f and seen: where several have one since the last time, their mean."""
    if not _together():
        return
    counts = fresh.to(f.device, f.dtype)
    sums = torch.where(counts > 0, f, torch.zeros_like(f))
    dist.all_reduce(counts)
    dist.all_reduce(sums)
    known = counts > 0
    f[known] = sums[known] / counts[known]
    seen |= known.cpu()


def same_everywhere(w: Tensor) -> Tensor:
    """The weights of the first process, in all of them."""
    if _together():
        dist.broadcast(w, src=0)
    return w


def _together() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _summed(count: int) -> int:
    """Over all processes, on the device that their backend speaks to."""
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    total = torch.tensor(count, device=device)
    dist.all_reduce(total)
    return int(total)
