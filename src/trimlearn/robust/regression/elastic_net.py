"""The elastic net of weighted rows: scikit-learn's coordinate descent, and closed forms where it has nothing to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path

__all__ = ["EXACT", "ROUGH", "elastic_net"]

Floats = NDArray[np.float64]

ROUGH = 1e-4  # scikit-learn's default: a duality gap of this share of Σ y², enough to rank rows by their residuals
EXACT = 1e-12  # a coefficient is off by the root of the gap: 10⁻⁶ of the size of y, as closely as users can tell
CLOSE = 1e-8  # a gap that is not worth a warning: rounding may keep one from EXACT, and this is four digits
STEPS = 10_000  # rounds of coordinate descent at most, a limit on time: ten times scikit-learn's, for EXACT


def elastic_net(
    X: Floats,
    t: Floats,
    c: Floats,
    alphas: Any,
    l1_ratio: float = 1.0,
    *,
    intercept: bool = True,
    x0: Floats | None = None,
    tol: float = ROUGH,
) -> tuple[Floats, bool]:
    """For each alpha, from the largest to the least, the x that minimises

        1/(2 Σcᵢ) Σ cᵢ (tᵢ − ⟨vᵢ, x⟩ − x₀)² + α (l1_ratio ‖x‖₁ + (1 − l1_ratio) ½‖x‖²),

    as a row of an array, the intercept last, each begun where the one before ended; and whether every gap is near tol.
    x0: where the first begins. Rows of weight 0 are not looked at.

    >>> X, t = np.array([[-1.0], [1.0], [9.0]]), np.array([0.0, 4.0, 0.0])
    >>> elastic_net(X, t, np.array([1.0, 1.0, 0.0]), [2.0, 0.5])[0]
    array([[0. , 2. ],
           [1.5, 2. ]])
    """
    alphas = np.sort(np.atleast_1d(np.asarray(alphas, dtype=np.float64)))[::-1]
    kept = np.flatnonzero(c > 0)
    A, b, c = X[kept], t[kept], c[kept] / c[kept].mean()
    centre, middle = (c @ A / len(b), float(c @ b / len(b))) if intercept else (np.zeros(X.shape[1]), 0.0)
    root = np.sqrt(c)
    A, b = (A - centre) * root[:, None], (b - middle) * root
    start = None if x0 is None else x0[: X.shape[1]]
    coef, solved = _centred(A, b, alphas, l1_ratio, start, tol)
    if not intercept:
        return coef, solved
    return np.column_stack([coef, middle - coef @ centre]), solved


def _centred(
    A: Floats, b: Floats, alphas: Floats, l1_ratio: float, start: Floats | None, tol: float
) -> tuple[Floats, bool]:
    """The coefficients (number of alphas, p) without an intercept. Coordinate descent needs some L1; without any there
    is a closed form."""
    l1 = alphas * l1_ratio > 0
    coef = np.empty((len(alphas), A.shape[1]))
    solved = True
    if l1.any():
        begin: dict[str, Any] = {} if start is None else {"coef_init": np.array(start)}
        with warnings.catch_warnings():  # the gaps say it
            warnings.simplefilter("ignore", ConvergenceWarning)
            _, found, gaps = enet_path(
                np.asfortranarray(A), b, l1_ratio=l1_ratio, alphas=alphas[l1], precompute=False, check_input=False,
                tol=tol, max_iter=STEPS, **begin,
            )  # fmt: skip
        coef[l1] = found.T
        solved = bool(
            np.all(gaps * len(b) <= max(2 * tol, CLOSE) * max(float(b @ b), float(np.finfo(np.float64).tiny)))
        )
    if not l1.all():
        coef[~l1] = _ridge(A, b, alphas[~l1] * len(b))
    return coef, solved


def _ridge(A: Floats, b: Floats, strengths: Floats) -> Floats:
    """(AᵀA + strength I)⁻¹Aᵀb for each strength; the shortest least-squares solution where that is 0."""
    U, d, Vt = np.linalg.svd(A, full_matrices=False)
    d = np.where(d > d.max(initial=0.0) * np.finfo(np.float64).eps * max(A.shape), d, 0.0)
    shrunk = d / np.where(d > 0, d**2 + strengths[:, None], 1.0)
    return np.asarray((shrunk * (U.T @ b)) @ Vt)
