"""Principal components."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace
from trimlearn._utils.validation import check_count
from trimlearn.losses.base import PredictionLoss, select
from trimlearn.losses.compiled import SubspaceRows
from trimlearn.losses.exact import leading_subspace
from trimlearn.losses.linear import Linear
from trimlearn.losses.storage import Rows
from trimlearn.regularizers import Regularizer, Sphere, Stiefel

OVERSAMPLING = 10  # columns beside the k asked for: Halko, Martinsson and Tropp (2011), §4.3, advise 5 to 10
POWER_STEPS = 8  # of which a direction of 0.9 σ_k keeps 0.9¹⁶ = 0.19: enough for a start (ibid., §4.5)


@final
class Subspace(PredictionLoss):
    """Principal components (the paper's section 4.2): x = U, p × k with orthonormal columns, and z = Uᵀaᵢ.

    φ(z) = ½(‖aᵢ‖² − ‖z‖²), which is half the squared distance of aᵢ to span U while UᵀU = I: pair it with the `Stiefel`
    regularizer. φ is concave.

    Parameters
    ----------
    A : array, sparse matrix or tensor of shape (n, p)
        The data, one example a row; see `Linear`.
    k : int
        The number of components.
    center, scale : array of shape (p,), optional
        Those of `Linear`.
    start : array of shape (p, k), optional
        A U to start from, which spares the passes that finding one takes.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Subspace(np.array([[3.0, 0.0], [3.0, 4.0]]), k=1)
    >>> loss.values(np.array([[1.0], [0.0]]))
    array([0., 8.])
    """

    minimiser_passes = 0.0  # no residuals are evaluated

    def __init__(self, A: Any, k: int = 1, *, center: Any = None, scale: Any = None, start: Any = None) -> None:
        linear = Linear(A, center=center, scale=scale, name="A")
        super().__init__(linear.widened(check_count(k, "k", most=linear.p)))
        self._norms2 = linear.row_norms2()
        self._start = None if start is None else asarray_like(start, self.like)
        if self._start is not None and tuple(self._start.shape) != self.x_shape:
            raise ValueError(f"start must have shape {self.x_shape}, got {tuple(self._start.shape)}.")

    def begin_at(self, start: Array) -> None:
        """Start from this U, of the kind that x is, which spares finding one."""
        self._start = start

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        return 0.5 * (select(self._norms2, rows) - namespace(z).sum(z * z, axis=1)), -z

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        return -u

    def compiled(self) -> SubspaceRows:
        return SubspaceRows(self._norms2)

    def curvature_bound(self) -> float:
        return 1.0

    @property
    def minimal(self) -> int:
        return self.K + 1

    def check(self, r2: Regularizer) -> None:
        if not (isinstance(r2, Stiefel) or (self.K == 1 and isinstance(r2, Sphere))):
            raise ValueError(
                f"r2 must be Stiefel() for Subspace, got {r2.name}: without UᵀU = I the loss has no bound."
            )

    def minimiser(self, c: Array, r2: Regularizer, x: Array) -> Array | None:
        return leading_subspace(self.linear, c, self.K) if isinstance(r2, Stiefel) else None

    def start(self) -> Array:
        """The U given, or the leading k eigenvectors of Σ aᵢaᵢᵀ, as a few steps of block power iteration see them.

        The p × p matrix is never formed. The start of the iteration is fixed, so that the outcome does not depend on
        the order of the rows (up to rounding). Halko, Martinsson and Tropp (2011), algorithm 4.4.
        """
        if self._start is not None:
            return self._start
        xp = namespace(self.like)
        p, k = self.x_shape
        wide = self.linear.widened(min(p, k + OVERSAMPLING))
        Q = generic = asarray_like(np.random.default_rng(0).standard_normal(wide.x_shape), self.like)
        for _ in range(POWER_STEPS):
            Q = xp.linalg.qr(wide.adjoint(wide.predict(Q)))[0]
        Z = wide.predict(Q)
        U = Q @ xp.flip(xp.linalg.eigh(Z.T @ Z)[1][:, -k:], axis=1)
        return xp.where(generic[:, 0] @ U < 0, -U, U)  # rounding decides the sign of an eigenvector: fix it
