"""Multinomial logistic regression."""

from __future__ import annotations

from functools import reduce
from typing import Any, Unpack, final

from array_api_compat import device

from trimlearn.arrays import Array, asarray_like, namespace
from trimlearn.losses.base import PredictionLoss, select
from trimlearn.losses.linear import Layer, Linear
from trimlearn.losses.storage import Rows
from trimlearn.validation import check_labels

__all__ = ["Softmax"]

FEW_CLASSES = 64  # up to here K − 1 maxima of columns beat NumPy's maximum over short rows (8 times at K = 10)


@final
class Softmax(PredictionLoss):
    """Multinomial logistic regression (the paper's section 4.1): labels t in 0..K−1, x of shape (p, K), z = xᵀv.

    φ(z) = log Σₖ exp(zₖ) − z_t, with residual softmax(z) − e_t. ‖∇²φ‖ ≤ ½, not ¼: the Hessian diag(s) − ssᵀ has norm ½
    at s = (½, ½, 0, …). V and the keywords intercept, center and scale are those of `trimlearn.losses.Linear`.

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
        labels, K = check_labels(t, linear.n, n_classes)
        super().__init__(linear.widened(K))
        self.t = asarray_like(labels, self.like, namespace(self.like).int64)

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        i, t = self._labelled(z, rows)
        z = z - _row_max(z)[:, None]
        r, total = _softmax(z)
        r[i, t] -= 1
        return namespace(z).log(total) - z[i, t], r

    def residual(self, z: Array, rows: Rows = None) -> Array:
        r, _ = _softmax(z - _row_max(z)[:, None])
        r[self._labelled(z, rows)] -= 1
        return r

    def _labelled(self, z: Array, rows: Rows) -> tuple[Array, Array]:
        """Where, in the rows of z, the label of each stands."""
        return namespace(z).arange(z.shape[0], device=device(z)), select(self.t, rows)

    def bend(self, z: Array, u: Array, rows: Rows = None) -> Array:
        s, _ = _softmax(z - _row_max(z)[:, None])
        su = s * u
        return su - s * namespace(z).sum(su, axis=1, keepdims=True)

    def curvature(self) -> float:
        return 0.5


def _softmax(z: Array) -> tuple[Array, Array]:
    """exp(z) with rows that sum to 1, and what they summed to."""
    xp = namespace(z)
    r = xp.exp(z)
    total = r @ xp.ones(z.shape[1], dtype=r.dtype, device=device(r))  # a product: NumPy sums short rows slowly
    r /= total[:, None]
    return r, total


def _row_max(z: Array) -> Array:
    xp = namespace(z)
    if z.shape[1] > FEW_CLASSES:
        return xp.max(z, axis=1)
    return reduce(xp.maximum, [z[:, k] for k in range(z.shape[1])])
