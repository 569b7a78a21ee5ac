"""Numbers that no other column predicts: only those far from all others can be called wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trimlearn.checks.findings import TargetFindings

if TYPE_CHECKING:
    from trimlearn.tables.table import Table

__all__ = ["only_far"]

USELESS = 0.9  # of the error of a constant: a model that does no better has learnt nothing, as target_numbers has it
FAR = 5.0  # robust σ: one of two million normal numbers is further off
NORMAL_MAD = 1.4826  # a normal standard deviation in median absolute deviations


def only_far(judged: TargetFindings, table: Table, wrong: Sequence[int] = ()) -> TargetFindings:
    """The same findings; of numbers that nothing predicts, without those that are not far from all others.

    ``wrong``: rows that a person calls wrong, which they stay, however near.

    Two kinds of numbers cannot be told apart by residuals that are the numbers themselves: of 20,000 normal ones that
    have nothing to do with the other columns 700 were called wrong otherwise.

    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column, Table
    >>> y = np.append(np.random.default_rng(0).normal(size=99), 40.0)
    >>> frame = pd.DataFrame({"y": y})
    >>> table = Table(frame, frame.astype(str), (Column("y", "number"),), "noise", 0, "")
    >>> p, wrong = np.full(100, 0.9), np.abs(y) > 2
    >>> found = TargetFindings("y", "regression", (), p, wrong, y, np.zeros(100), wrong, wrong, 0.06)
    >>> np.flatnonzero(only_far(found, table).flagged), only_far(found, table).contamination
    (array([99]), 0.01)
    """
    if judged.task == "classification" or not judged.flagged.any():
        return judged
    y = table.frame[judged.name].to_numpy(dtype=np.float64)
    away = np.abs(y - np.asarray(judged.suggested, dtype=np.float64))
    spread = np.nanmedian(np.abs(y - np.nanmedian(y)))
    if not np.nanmedian(away) >= USELESS * spread > 0:
        return judged
    far = away > FAR * NORMAL_MAD * np.nanmedian(away)
    far[list(wrong)] = True
    flagged = judged.flagged & far
    known = max(int(np.isfinite(judged.probability).sum()), 1)
    return replace(
        judged,
        flagged=flagged,
        probability=np.where(judged.flagged & ~far, np.minimum(judged.probability, 0.5), judged.probability),
        by_linear=judged.by_linear & far,
        by_boosting=judged.by_boosting & far,
        contamination=float(flagged.sum()) / known,
    )
