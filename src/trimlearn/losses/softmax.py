"""Multinomial logistic regression: labels that are known, known by their probabilities, or mistaken for one another."""

from __future__ import annotations

from functools import reduce
from typing import Any, Unpack, final

import numpy as np
from array_api_compat import device
from scipy.special import xlogy

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn._utils.validation import check_labels
from trimlearn.losses.base import PredictionLoss, select
from trimlearn.losses.compiled import LabelRows, MislabelledRows, SoftLabelRows
from trimlearn.losses.linear import Layer, Linear
from trimlearn.losses.storage import Rows

FEW_CLASSES = 40  # up to here K − 1 maxima of columns beat a maximum over short rows: benchmarks/calibration/classes.py


@final
class Softmax(PredictionLoss):
    """Multinomial logistic regression (the paper's section 4.1): x of shape (p, K) and z = xᵀv.

    φ(z) = log Σₖ exp(zₖ) − z_t, with residual softmax(z) − e_t. ‖∇²φ‖ ≤ ½, not ¼: the Hessian diag(s) − ssᵀ has norm ½
    at s = (½, ½, 0, …).

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,) or (n, K)
        Labels in 0..K−1, or their probabilities, a row of them for each example: these stand in place of e_t, and φ is
        0 where softmax(z) = t.
    n_classes : int, optional
        K; None takes the largest label + 1, and wants rows of at least two classes.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Softmax(np.eye(3), np.array([0, 1, 2]))
    >>> loss.x_shape
    (3, 3)
    >>> loss.values(loss.start()).round(3)
    array([1.099, 1.099, 1.099])
    >>> loss.values(1000 * np.eye(3))
    array([0., 0., 0.])
    """

    def __init__(self, V: Any, t: Any, n_classes: int | None = None, **layer: Unpack[Layer]) -> None:
        linear = Linear(V, **layer)
        self.soft = getattr(t, "ndim", 1) == 2
        if self.soft:
            shares = _check_shares(t, linear.n)
            super().__init__(linear.widened(shares.shape[1]))
            self.t = asarray_like(shares, self.like)
            self._saturated = asarray_like(xlogy(shares, shares).sum(axis=1), self.like)
            return
        labels, K = check_labels(t, linear.n, n_classes)
        super().__init__(linear.widened(K))
        self.t = asarray_like(labels, self.like, namespace(self.like).int64)

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        xp, t = namespace(z), select(self.t, rows)
        r, total, most = _softmax(z)
        if self.soft:
            f = xp.log(total) - xp.sum(t * (z - most[:, None]), axis=1) + select(self._saturated, rows)
            return xp.maximum(f, xp.zeros_like(f)), r - t
        i = xp.arange(z.shape[0], device=device(z))
        r[i, t] -= 1
        return xp.log(total) - (z[i, t] - most), r

    def residual(self, z: Array, rows: Rows = None) -> Array:
        r, t = _softmax(z)[0], select(self.t, rows)
        if self.soft:
            return r - t
        r[namespace(z).arange(z.shape[0], device=device(z)), t] -= 1
        return r

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        return _covariance_times(_softmax(z)[0], u)

    def compiled(self) -> LabelRows | SoftLabelRows:
        return SoftLabelRows(self.t, self._saturated) if self.soft else LabelRows(self.t)

    def curvature_bound(self) -> float:
        return 0.5


@final
class Mislabelled(PredictionLoss):
    """Labels that were mistaken for one another: a row of class k is labelled j with probability T[k, j].

    φ(z) = −log Σₖ softmax(z)ₖ T[k, t], the likelihood of what was observed ("forward correction" [1]_), with residual
    softmax(z) − softmax(z + log T[·, t]). The classes are fitted, not the labels; T = I gives `Softmax`. Two classes
    have one prediction, z the log-odds of class 1, as `Logistic` has.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,)
        Labels in 0..K−1.
    T : array of shape (K, K)
        The probabilities of labels given classes; its rows sum to 1.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    References
    ----------
    .. [1] G. Patrini, A. Rozza, A. K. Menon, R. Nock and L. Qu, Making deep neural networks robust to label noise: a
       loss correction approach, CVPR (2017).

    Examples
    --------
    >>> import numpy as np
    >>> T = np.array([[0.8, 0.2], [0.0, 1.0]])
    >>> loss = Mislabelled(np.ones((2, 1)), np.array([0, 1]), T)
    >>> loss.values(np.array([-20.0])).round(3)  # class 0 for sure: labelled 0 with 80 %, 1 with 20 %
    array([0.223, 1.609])
    """

    def __init__(self, V: Any, t: Any, T: Any, **layer: Unpack[Layer]) -> None:
        linear = Linear(V, **layer)
        T = _check_shares(T, len(T), "T")
        labels, K = check_labels(t, linear.n, len(T))
        super().__init__(linear if K == 2 else linear.widened(K))
        self._log_T = asarray_like(np.log(np.maximum(T, np.finfo(np.float32).tiny)).T, self.like)
        self.t = asarray_like(labels, self.like, namespace(self.like).int64)

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        xp = namespace(z)
        z = z if self.linear.K is not None else _both_classes(z)
        seen = z + xp.take(self._log_T, select(self.t, rows), axis=0)
        p, total, most = _softmax(z)
        r, total_seen, most_seen = _softmax(seen)
        f = xp.log(total) + most - xp.log(total_seen) - most_seen
        return xp.maximum(f, xp.zeros_like(f)), (p - r)[:, 1:] if self.linear.K is None else p - r

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        """Of log Σₖ exp(zₖ) alone: what is subtracted from it is convex."""
        if self.linear.K is not None:
            return _covariance_times(_softmax(z)[0], u)
        return _covariance_times(_softmax(_both_classes(z))[0], _both_classes(u))[:, 1:]

    def compiled(self) -> MislabelledRows:
        return MislabelledRows(self.t, self._log_T)

    def curvature_bound(self) -> float:
        return 0.5


def _both_classes(z: Array) -> Array:
    """Predictions of two classes from the log-odds of the second: the first has 0."""
    xp = namespace(z)
    return xp.concat([xp.zeros_like(z), z], axis=1)


def _check_shares(t: Any, n: int, name: str = "t") -> np.ndarray:
    """n rows of probabilities that sum to 1."""
    shares = np.asarray(to_numpy(t), dtype=np.float64)
    if shares.ndim != 2 or len(shares) != n or shares.shape[1] < 2:
        raise ValueError(f"{name} must hold one row of probabilities for each of {n}, got shape {shares.shape}.")
    if not np.all(shares >= 0) or not np.allclose(shares.sum(axis=1), 1.0, atol=1e-6):
        raise ValueError(f"{name} must hold probabilities, rows of numbers >= 0 that sum to 1; divide by their sums.")
    return shares


def _covariance_times(p: Array, u: Array) -> Array:
    """(diag(p) − ppᵀ)u row by row: with p = softmax(z) the Hessian of log Σₖ exp(zₖ), times u."""
    pu = p * u
    return pu - p * namespace(p).sum(pu, axis=1, keepdims=True)


def _softmax(z: Array) -> tuple[Array, Array, Array]:
    """softmax(z), rows that sum to 1; what exp(z − max z) summed to; and max z, both (m,)."""
    xp = namespace(z)
    # column by column, and by a product: NumPy is slow along short rows
    few = z.shape[1] <= FEW_CLASSES
    most = reduce(xp.maximum, [z[:, k] for k in range(z.shape[1])]) if few else xp.max(z, axis=1)
    r = xp.exp(z - most[:, None])
    total = r @ xp.ones(z.shape[1], dtype=r.dtype, device=device(r))
    r /= total[:, None]
    return r, total, most
