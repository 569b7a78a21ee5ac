"""Fits that are quick."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trimlearn.robust.labels import crossfit, flexible, noise_em, noise_level, verdict
from trimlearn.robust.regression import averaging, modes
from trimlearn.starts import Concentration

__all__ = ["quickly"]


@contextmanager
def quickly() -> Iterator[None]:
    """Few starts, few trees, few rows for these to see, few folds, few levels of noise, few steps of EM: for tests of
    what a fit sets, takes and refuses, or of how it is solved, not of how well rows are judged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Concentration.__init__, "__defaults__", (3, 1, 1))
        patch.setattr(flexible, "TREES", 40)  # each row must be unseen by some
        patch.setattr(flexible, "ROWS", 1000)
        patch.setattr(crossfit, "FOLDS", 2)
        patch.setattr(noise_level, "LEVELS", noise_level.LEVELS[::5])
        patch.setattr(noise_em, "MAX_ITERATIONS", 10)
        patch.setattr(verdict, "CORRECTIONS", 1)
        patch.setattr(averaging, "BASINS", 2)
        patch.setattr(modes, "STEPS", 25)  # of EM: twice as many as before ends that have met are taken for one
        yield
