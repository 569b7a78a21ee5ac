"""The projective map between two images."""

from __future__ import annotations

from math import sqrt
from typing import Any, final

import numpy as np
from array_api_compat import device

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn._utils.validation import check_choice, check_target
from trimlearn.losses.base import PredictionLoss, select
from trimlearn.losses.compiled import AlgebraicRows, PrintedRows
from trimlearn.losses.linear import Linear
from trimlearn.losses.storage import Rows
from trimlearn.regularizers import Regularizer, Sphere


@final
class Homography(PredictionLoss):
    """The projective map between two images, from matched points: x = H (3 × 3) and z = H b₁ ∈ R³.

    The points are b₁ = (u₁, v₁, 1) and b₂ = (u₂, v₂, 1). Pair the loss with the `Sphere` regularizer, and normalise the
    coordinates first.

    Parameters
    ----------
    src, dst : array of shape (n, 2)
        Matched points, one match a row.
    form : {"algebraic", "printed"}
        The first is φ(z) = ‖C z‖² with C = [[−1, 0, u₂], [0, −1, v₂]], that is ‖Aᵢh‖² for the two DLT rows of a match
        [1]_: zero at every multiple of the true H. The second is φ(z) = ‖z − b₂‖² of the paper's section 4.3, which
        fixes the scale of H a second time besides ‖H‖ = 1, and is there to reproduce the paper.

    References
    ----------
    .. [1] R. Hartley and A. Zisserman, Multiple View Geometry in Computer Vision (2004), section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> src = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> loss = Homography(src, src + 1.0)
    >>> H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    >>> loss.values(H / 2)
    array([0., 0., 0., 0.])
    """

    minimiser_passes = 0.0  # no residuals are evaluated

    def __init__(self, src: Any, dst: Any, form: str = "algebraic") -> None:
        check_choice(form, ("algebraic", "printed"), "form")
        super().__init__(Linear(src, K=3, intercept=True, transpose=True, name="src"))
        self.dst = check_target(dst, self.n, self.like, "dst", ndim=(2,))
        for name, width in (("src", self.linear.p), ("dst", self.dst.shape[1])):
            if width != 2:
                raise ValueError(f"{name} must have shape (n, 2), one point a row, got {width} columns.")
        self.form = form

    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        xp = namespace(z)
        b = select(self.dst, rows)
        if self.form == "printed":
            u = xp.concat([z[:, :2] - b, z[:, 2:] - 1], axis=1)
            return xp.sum(u * u, axis=1), 2 * u
        u = b * z[:, 2:] - z[:, :2]  # C z
        return xp.sum(u * u, axis=1), 2 * xp.concat([-u, xp.sum(b * u, axis=1, keepdims=True)], axis=1)

    def compiled(self) -> AlgebraicRows | PrintedRows:
        return PrintedRows(self.dst) if self.form == "printed" else AlgebraicRows(self.dst)

    def curvature_bound(self) -> float | Array:
        """2, or 2‖C‖² = 2‖b₂‖² for the algebraic form."""
        if self.form == "printed":
            return 2.0
        return 2 * (1 + namespace(self.dst).sum(self.dst * self.dst, axis=1))

    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        """The residual is affine in z."""
        xp = namespace(z)
        return self.evaluate(u, rows)[1] - self.evaluate(xp.zeros_like(u), rows)[1]

    @property
    def intercept(self) -> bool:
        return False  # the layer's intercept is a column of H like the others

    @property
    def minimal(self) -> int:
        return 4

    def minimiser(self, c: Array, r2: Regularizer, x: Array) -> Array | None:
        """DLT: the unit vector h with the smallest Σ cᵢ‖Aᵢh‖², for the algebraic form on the sphere."""
        if self.form != "algebraic" or not isinstance(r2, Sphere):
            return None
        points, target, c = (to_numpy(a).astype(np.float64) for a in (self.linear.storage.V, self.dst, c))
        if not np.all(c):
            points, target, c = points[c > 0], target[c > 0], c[c > 0]
        # Σ cᵢAᵢᵀAᵢ is made of Σ c b₁b₁ᵀ times 1, u₂, v₂ and u₂² + v₂².
        (p, q), (u, v) = points.T, target.T
        one, u, v, both = np.stack([c, c * u, c * v, c * (u * u + v * v)]) @ np.stack(
            [p * p, p * q, p, q * q, q, np.ones_like(p)], axis=1
        )
        A = np.zeros((9, 9))
        for i, j, block in ((0, 0, one), (3, 3, one), (6, 6, both), (6, 0, -u), (6, 3, -v)):
            A[i : i + 3, j : j + 3] = block[[[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
        h = np.linalg.eigh(A)[1][:, 0].reshape(3, 3)  # which reads the lower half
        return asarray_like(r2.radius * (h if np.sum(h * to_numpy(x)) >= 0 else -h), x)

    def start(self) -> Array:
        """The identity, of norm 1."""
        xp = namespace(self.like)
        return xp.eye(3, dtype=self.like.dtype, device=device(self.like)) / sqrt(3)
