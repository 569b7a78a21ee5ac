"""Losses of a residual z − t: least squares and its robust relatives."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import Any, Unpack, final

from trimlearn._utils.arrays import Array, namespace
from trimlearn._utils.validation import as_numeric, check_positive, check_target
from trimlearn.losses.base import PredictionLoss, select
from trimlearn.losses.compiled import HuberRows, SmoothRows, SquareRows, StudentRows
from trimlearn.losses.exact import ridge_regression
from trimlearn.losses.linear import Layer, Linear
from trimlearn.losses.storage import Rows
from trimlearn.regularizers import Regularizer


class Regression(PredictionLoss):
    """fᵢ(x) = Σₖ ρ(z_ik − t_ik), with targets t of shape (n,), or (n, K) for K outputs at once.

    V and the keywords intercept, center and scale are those of `trimlearn.losses.Linear`.
    """

    def __init__(self, V: Any, t: Any, **layer: Unpack[Layer]) -> None:
        t = as_numeric(t, "t")
        K = t.shape[1] if t.ndim == 2 and t.shape[1] else None
        super().__init__(Linear(V, K=K, **layer))
        t = check_target(t, self.n, self.like, ndim=(1, 2))
        self.t = t[:, None] if K is None else t

    @abstractmethod
    def curvature_bound(self) -> float:
        """ρ″(0), the largest curvature."""

    @abstractmethod
    def rho(self, u: Array) -> tuple[Array, Array]:
        """ρ(u) and ρ′(u), entry by entry."""

    @final
    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        value, derivative = self.rho(z - select(self.t, rows))
        return namespace(value).sum(value, axis=1), derivative

    @final
    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        """ρ′(r)/r · u: the weights of iteratively reweighted least squares, which bound the curvature from above."""
        xp = namespace(z)
        r = z - select(self.t, rows)
        flat = xp.abs(r) < xp.finfo(r.dtype).tiny ** 0.5
        slope = self.rho(r)[1] / xp.where(flat, xp.ones_like(r), r)
        return xp.where(flat, xp.full_like(r, self.curvature_bound()), slope) * u


@final
class LeastSquares(Regression):
    """Least squares: ρ(u) = ½u² of the residual u = z − t. With trimming, least trimmed squares [1]_.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,) or (n, K)
        The targets: one an example, or K at once.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    References
    ----------
    .. [1] P. J. Rousseeuw, Least median of squares regression, J. Am. Stat. Assoc. 79 (1984).

    Examples
    --------
    >>> import numpy as np
    >>> loss = LeastSquares(np.array([[1.0], [2.0]]), np.array([1.0, 4.0]))
    >>> loss.values(np.array([1.0]))
    array([0., 2.])
    """

    minimiser_passes = 0.0  # no residuals are evaluated

    def rho(self, u: Array) -> tuple[Array, Array]:
        return 0.5 * u * u, u

    def compiled(self) -> SquareRows:
        return SquareRows(self.t)

    def curvature_bound(self) -> float:
        return 1.0

    def minimiser(self, c: Array, r2: Regularizer, x: Array) -> Array | None:
        return ridge_regression(self.linear, self.t, c, r2)


@final
class Huber(Regression):
    """Huber's loss of the residual u = z − t: ρ(u) = ½u² for |u| ≤ δ, else δ(|u| − ½δ) [1]_.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,) or (n, K)
        The targets: one an example, or K at once.
    delta : float
        Where the parabola ends. 1.345 suits residuals of unit spread.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    References
    ----------
    .. [1] P. J. Huber, Robust estimation of a location parameter, Ann. Math. Stat. 35 (1964).

    Examples
    --------
    >>> import numpy as np
    >>> Huber(np.ones((2, 1)), np.array([0.0, 10.0]), delta=1.0).values(np.array([1.0]))
    array([0.5, 8.5])
    """

    def __init__(self, V: Any, t: Any, delta: float = 1.345, **layer: Unpack[Layer]) -> None:
        self.delta = check_positive(delta, "delta")
        super().__init__(V, t, **layer)

    def rho(self, u: Array) -> tuple[Array, Array]:
        psi = namespace(u).clip(u, -self.delta, self.delta)
        return psi * (u - 0.5 * psi), psi

    def compiled(self) -> HuberRows:
        return HuberRows(self.t, self.delta)

    def curvature_bound(self) -> float:
        return 1.0


@final
class StudentT(Regression):
    """Student's t: ρ(u) = ½(ν + 1) log(1 + u²/(νσ²)), −log density of the residual u = z − t [1]_.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,) or (n, K)
        The targets: one an example, or K at once.
    nu : float
        The degrees of freedom ν.
    sigma : float
        The scale σ; the keyword ``scale`` is that of the columns of V, here as in every loss.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    References
    ----------
    .. [1] K. L. Lange, R. J. A. Little and J. M. G. Taylor, Robust statistical modeling using the t distribution,
       J. Am. Stat. Assoc. 84 (1989).

    Examples
    --------
    >>> import numpy as np
    >>> loss = StudentT(np.ones((2, 1)), np.array([0.0, 1e6]), nu=1.0)
    >>> loss.values(np.array([0.0])).round(2)
    array([ 0.  , 27.63])
    """

    def __init__(self, V: Any, t: Any, nu: float = 4.0, sigma: float = 1.0, **layer: Unpack[Layer]) -> None:
        self.nu, self.sigma = check_positive(nu, "nu"), check_positive(sigma, "sigma")
        super().__init__(V, t, **layer)

    def rho(self, u: Array) -> tuple[Array, Array]:
        width = sqrt(self.nu) * self.sigma
        u = u / width
        return 0.5 * (self.nu + 1) * namespace(u).log1p(u * u), (self.nu + 1) / width * u / (1 + u * u)

    def compiled(self) -> StudentRows:
        return StudentRows(self.t, self.nu, sqrt(self.nu) * self.sigma)

    def curvature_bound(self) -> float:
        return (self.nu + 1) / (self.nu * self.sigma**2)


@final
class SmoothL1(Regression):
    """A smooth absolute value: ρ(u) = √(u² + ε²) − ε of the residual u = z − t, its corner rounded over a width ε.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,) or (n, K)
        The targets: one an example, or K at once.
    eps : float
        The width ε.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    Examples
    --------
    >>> import numpy as np
    >>> SmoothL1(np.ones((2, 1)), np.array([0.0, 3.0]), eps=4.0).values(np.array([0.0]))
    array([0., 1.])
    """

    def __init__(self, V: Any, t: Any, eps: float = 1e-3, **layer: Unpack[Layer]) -> None:
        self.eps = check_positive(eps, "eps")
        super().__init__(V, t, **layer)

    def rho(self, u: Array) -> tuple[Array, Array]:
        root = namespace(u).sqrt(u * u + self.eps**2)
        return u * (u / (root + self.eps)), u / root  # the difference as a quotient: no cancellation near 0

    def compiled(self) -> SmoothRows:
        return SmoothRows(self.t, self.eps)

    def curvature_bound(self) -> float:
        return 1 / self.eps
