"""A scale never falls below that of the h rows it was asked to trust."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from trimlearn.robust.scale import judge


@pytest.mark.parametrize("seed", range(3))
def test_residuals_of_every_order_of_magnitude_do_not_shrink_the_scale_to_nothing(seed: int) -> None:
    """Each look at the rows within a cut-off would lower the scale, and with it the cut-off: h rows hold it."""
    r = np.sort(10.0 ** np.random.default_rng(seed).uniform(-8, 0, 200))
    h = 101
    assert judge(r, h=h, p=1).scale == pytest.approx(sqrt(np.mean(r[:h] ** 2)), rel=1e-12)
