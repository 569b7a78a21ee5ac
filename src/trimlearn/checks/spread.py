"""Where the values of a column lie, and how far they spread, whatever a few of them are."""

from __future__ import annotations

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn.robust.scatter.units import MAD

NORMAL_MAD = 1.4826  # a normal standard deviation in median absolute deviations


def median_and_deviation(x: Floats) -> tuple[float, float]:
    """Median and robust standard deviation; the plain one where more than half of the values are the same.

    >>> median_and_deviation(np.array([1.0, 2.0, 4.0])), median_and_deviation(np.array([1.0, 1.0, 1.0, 5.0]))
    ((2.0, 1.4826), (1.0, 1.7320508075688772))
    """
    centre = float(np.median(x))
    return centre, NORMAL_MAD * float(np.median(np.abs(x - centre))) or float(np.std(x))


def center_and_spread(x: Floats) -> tuple[float, float]:
    """Median and robust σ of the finite values; of those that are not the median where more than half are. (0, 1) and 1
    where there is nothing to measure.

    >>> center_and_spread(np.array([1.0, 2.0, 4.0, np.nan])), center_and_spread(np.array([np.nan]))
    ((2.0, 1.482602218505602), (0.0, 1.0))
    """
    known = x[np.isfinite(x)]
    if not len(known):
        return 0.0, 1.0
    center = float(np.median(known))
    away = np.abs(known - center)
    sigma = MAD * float(np.median(away))
    if sigma <= 0:
        sigma = MAD * float(np.median(away[away > 0])) if np.any(away > 0) else 1.0
    return center, sigma
