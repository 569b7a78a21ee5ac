"""What the kernels know of a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch

from trimlearn._utils.arrays import Tensor
from trimlearn.losses import compiled
from trimlearn.losses.base import PredictionLoss


@final
@dataclass(frozen=True)
class Phi:
    """What a kernel has to know of φ: its name, a tensor or two of numbers for each row, two numbers."""

    name: str
    T: Tensor
    A: Tensor
    a: float = 0.0
    b: float = 0.0


PHIS: dict[type, Callable[[Any], Phi]] = {  # by what `trimlearn.losses.compiled` calls them
    compiled.LabelRows: lambda rows: Phi("labels", rows.t, rows.t),
    compiled.SoftLabelRows: lambda rows: Phi("soft", rows.t, rows.saturated),
    compiled.MislabelledRows: lambda rows: Phi("mislabelled", rows.t, rows.log_T.contiguous()),
    compiled.LogisticRows: lambda rows: Phi("logistic", rows.t, rows.saturated),
    compiled.CountRows: lambda rows: Phi("counts", rows.t, torch.stack([rows.log_t, rows.constant], 1), rows.cap),
    compiled.AmountRows: lambda rows: Phi("amounts", rows.t, torch.stack([rows.log_t, rows.constant], 1), rows.cap),
    compiled.SquareRows: lambda rows: Phi("squares", rows.t, rows.t),
    compiled.HuberRows: lambda rows: Phi("huber", rows.t, rows.t, rows.delta),
    compiled.StudentRows: lambda rows: Phi("student", rows.t, rows.t, rows.nu, rows.width),
    compiled.SmoothRows: lambda rows: Phi("smooth", rows.t, rows.t, rows.eps),
}


def phi_of(loss: PredictionLoss) -> Phi | None:
    """φ as the kernels know it; None where they do not."""
    rows = loss.compiled()
    if isinstance(rows, compiled.MislabelledRows) and loss.linear.K is None:  # two classes that share a prediction
        return None
    make = PHIS.get(type(rows))
    return None if make is None else make(rows)
