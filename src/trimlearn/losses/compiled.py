"""What a compiled kernel has to know of a loss: which φ it is, and its numbers for each row.

`trimlearn.kernels.phi` holds the function of each class below, z, i → φᵢ(z) and ∇φᵢ(z). They are named tuples because
that is what a compiler can look into; nothing here needs one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.floating]
Labels = NDArray[np.int64]


class SquareRows(NamedTuple):
    """½‖z − t‖²."""

    t: Numbers  # (n, K), here and below


class HuberRows(NamedTuple):
    """½u² up to δ, then linear; u = z − t."""

    t: Numbers
    delta: float


class StudentRows(NamedTuple):
    """½(ν + 1) log(1 + u²/width²)."""

    t: Numbers
    nu: float
    width: float


class SmoothRows(NamedTuple):
    """√(u² + ε²) − ε."""

    t: Numbers
    eps: float


class LogisticRows(NamedTuple):
    """log(1 + e^z) − tz + saturated."""

    t: Numbers  # (n,)
    saturated: Numbers


class LabelRows(NamedTuple):
    """LSE(z) − z_t."""

    t: Labels


class SoftLabelRows(NamedTuple):
    """LSE(z) − ⟨t, z⟩ + saturated."""

    t: Numbers
    saturated: Numbers


class MislabelledRows(NamedTuple):
    """LSE(z) − LSE(z + log T[·, t]); one prediction where there are two classes."""

    t: Labels
    log_T: Numbers  # (K, K): row t is what is added


class CountRows(NamedTuple):
    """Poisson: half the unit deviance in d = z − log t, and a constant."""

    t: Numbers
    log_t: Numbers
    constant: Numbers
    cap: float


class AmountRows(NamedTuple):
    """Gamma: likewise."""

    t: Numbers
    log_t: Numbers
    constant: Numbers
    cap: float


class SubspaceRows(NamedTuple):
    """½(‖a‖² − ‖z‖²)."""

    norms2: Numbers


class AlgebraicRows(NamedTuple):
    """‖C z‖² of a homography."""

    dst: Numbers


class PrintedRows(NamedTuple):
    """‖z − b₂‖² of a homography, as the paper prints it."""

    dst: Numbers


CompiledRows = tuple[Any, ...]  # one of these
