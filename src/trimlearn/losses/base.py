"""The losses f₁..fₙ: what a solver may ask of any of them, and of those that see x through a linear prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, final

import numpy as np
from array_api_compat import device

from trimlearn._utils.arrays import Array, asarray_like, eps_of, index_like, namespace, norm, sum64, to_numpy, zeros
from trimlearn._utils.threads import each, total
from trimlearn.losses.linear import Block, Linear
from trimlearn.losses.newton_system import DenseSystem, NewtonSystem
from trimlearn.losses.storage import Rows

if TYPE_CHECKING:
    from trimlearn.losses.compiled import CompiledRows
    from trimlearn.regularizers import Regularizer


class Loss(ABC):
    """The losses of n examples as functions of one model x: their values and weighted sums of their gradients.

    To add a model of your own, derive from this class and write `values` and `gradient`, or derive from
    `PredictionLoss` where the model meets an example through a linear prediction, or from `BlockLoss` where it meets a
    few of many parameters; `check_loss` says whether it is right. In every method ``rows`` is None (all
    examples), a slice, or a 1-D integer index array with entries in [0, n); m is the number of rows it selects. A
    subclass sets the three attributes in its constructor.

    Attributes
    ----------
    n : int
        How many losses there are.
    x_shape : tuple of int
        The shape of x.
    like : array
        An array (its content does not matter) with the namespace, device and dtype that x has.
    starts_near : bool
        Whether `start` is a guess at x: `solve` then begins with the best weights for it, and not untrimmed.
    minimiser_passes : float
        How many passes a call of `minimiser` counts as: none is made where fewer are left. One that iterates says how
        far it goes; a closed form that evaluates no residuals, as the package's own, may say 0.

    See Also
    --------
    PredictionLoss : Losses of a linear prediction.
    BlockLoss : Losses of residuals that see a few blocks of x.
    check_loss : Compares derivatives with differences.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import LeastSquares
    >>> loss = LeastSquares(np.array([[1.0], [2.0]]), np.array([1.0, 4.0]))
    >>> loss.values(np.array([1.0])), loss.gradient(np.array([1.0]), np.array([1.0, 0.5]))
    (array([0., 2.]), array([-2.]))
    """

    n: int
    x_shape: tuple[int, ...]
    like: Array
    starts_near: bool = False
    minimiser_passes: float = 1.0

    @abstractmethod
    def values(self, x: Array, rows: Rows = None) -> Array:
        """fᵢ(x), of shape (m,)."""

    @abstractmethod
    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        """Σ cᵢ ∇fᵢ(x) over ``rows``, in the shape of x; c is (m,).

        A row with cᵢ = 0 adds nothing, also where its own gradient is infinite or NaN.
        """

    def lipschitz(self) -> Array:
        """Lᵢ, the Lipschitz constants of ∇fᵢ, of shape (n,): infinity where none is known that holds for all x.

        Only the theory's step sizes ask for them.
        """
        xp = namespace(self.like)
        return xp.full((self.n,), xp.inf, dtype=self.like.dtype, device=device(self.like))

    @property
    def intercept(self) -> bool:
        """Whether the last row of x is an intercept, which no regularizer touches."""
        return False

    @property
    def minimal(self) -> int:
        """How many examples determine x, if they are in general position."""
        return prod(self.x_shape)

    def gradients(self, x: Array, rows: Rows = None) -> Array:
        """∇fᵢ(x) one by one, of shape (m, ...) with the shape of x behind m."""
        xp = namespace(x)
        numbers = select(xp.arange(self.n, device=device(x)), rows)
        table = zeros((numbers.shape[0], *self.x_shape), x)
        one = xp.ones(1, dtype=x.dtype, device=device(x))
        for k in range(numbers.shape[0]):
            table[k, ...] = self.gradient(x, one, numbers[k : k + 1])
        return table

    def value_gradient(self, x: Array, c: Array, rows: Rows = None) -> tuple[float, Array]:
        """Σ cᵢ fᵢ(x), in float64, and Σ cᵢ ∇fᵢ(x), over ``rows``; a row with cᵢ = 0 adds nothing to either."""
        return sum64(weighted(self.values(x, rows), c)), self.gradient(x, c, rows)

    def hessp(self, x: Array, u: Array, c: Array, rows: Rows = None) -> Array:
        """Σ cᵢ ∇²fᵢ(x) u over ``rows``: a central difference of gradients, unless a subclass knows better."""
        h = eps_of(x) ** (1 / 3) * (1 + norm(x)) / max(norm(u), 1e-30)
        return (self.gradient(x + h * u, c, rows) - self.gradient(x - h * u, c, rows)) / (2 * h)

    def without_loss(self) -> Array | None:
        """Which examples, a mask of shape (n,), have no finite loss to begin with and are left out; None: none."""
        return None

    def check(self, r2: Regularizer) -> None:
        """Raise ValueError where the problem with this r2 makes no sense."""
        return

    def hessian(self, x: Array, c: Array) -> np.ndarray:
        """Σ cᵢ ∇²fᵢ(x) over all rows as a matrix of order dim(x), in float64: for models of few parameters."""
        identity = np.eye(prod(self.x_shape)).reshape(-1, *self.x_shape)
        products = [to_numpy(self.hessp(x, asarray_like(u, x), c)).astype(np.float64).ravel() for u in identity]
        return np.stack(products)

    def newton_system(self, x: Array, c: Array) -> NewtonSystem:
        """The same as Newton's steps use it: written out, unless a subclass has a form that is cheaper to solve."""
        return DenseSystem(self.hessian(x, c))

    def minimiser(self, c: Array, r2: Regularizer, x: Array) -> Array | None:
        """The x that minimises Σ cᵢfᵢ(x) + r2(x), where there is a closed form, else None; ``x`` is the present one."""
        return None

    def generic(self) -> Array:
        """One model for all losses of this shape, with nothing special about it."""
        x = np.random.Generator(np.random.Philox(key=0)).standard_normal(self.x_shape)
        return asarray_like(x / (1 + prod(self.x_shape)) ** 0.5, self.like)

    def fingerprint(self) -> str:
        """A short text that tells this loss, its data included, from others."""
        values = np.ascontiguousarray(to_numpy(self.values(self.generic())))
        settings = sorted((k, v) for k, v in vars(self).items() if isinstance(v, (bool, int, float, str)))
        return f"{type(self).__name__}-{sha256(values.tobytes() + repr(settings).encode()).hexdigest()[:16]}"

    def start(self) -> Array:
        """x₀, where a solver starts unless told otherwise: zero. It does not depend on the order of the rows."""
        xp = namespace(self.like)
        return xp.zeros(self.x_shape, dtype=self.like.dtype, device=device(self.like))


class PredictionLoss(Loss):
    """Losses fᵢ(x) = φᵢ(zᵢ) of a linear prediction zᵢ = Aᵢx ∈ R^K, so that ∇fᵢ(x) = Aᵢᵀ∇φᵢ(zᵢ).

    A full pass over the data is two matrix products, and a dual variable yᵢ = wᵢ∇fᵢ(x) is stored as the K numbers of
    its residual ∇φᵢ(zᵢ), never as a gradient. A subclass says what φ is (`evaluate`) and how it is curved (`phi_hessp`,
    `curvature_bound`).

    Parameters
    ----------
    linear : Linear
        The layer that predicts.

    Attributes
    ----------
    n : int
        How many losses there are.
    x_shape : tuple of int
        The shape of x.
    like : array
        An array with the namespace, device and dtype that x has.
    K : int
        How many numbers a prediction has.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import LeastSquares
    >>> loss = LeastSquares(np.array([[1.0], [2.0]]), np.array([1.0, 4.0]))
    >>> loss.phi(np.array([[3.0], [3.0]])), loss.residual(np.array([[3.0], [3.0]])).ravel()
    (array([2. , 0.5]), array([ 2., -1.]))
    """

    def __init__(self, linear: Linear) -> None:
        self.linear = linear
        self.n, self.x_shape, self.like, self.K = linear.n, linear.x_shape, linear.like, linear.K or 1

    @abstractmethod
    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        """φᵢ(zᵢ), of shape (m,), and the residuals ∇φᵢ(zᵢ), of shape (m, K), at predictions z (m, K), left as is."""

    @abstractmethod
    def curvature_bound(self) -> float | Array:
        """An upper bound of ‖∇²φᵢ‖, one for all or of shape (n,): infinity when there is none."""

    @abstractmethod
    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        """The Hessian product ∇²φᵢ(zᵢ)uᵢ, of shape (m, K).

        Robust losses give that of the parabola that touches φ at zᵢ and lies above it, as iteratively reweighted least
        squares does: a Hessian that vanishes or is negative says nothing about how far to step.
        """

    def compiled(self) -> CompiledRows | None:
        """What a compiled kernel has to know of φ; None: there is none for it."""
        return None

    @property
    def intercept(self) -> bool:
        return self.linear.intercept

    @property
    def minimal(self) -> int:
        return prod(self.x_shape) // self.K

    @final
    def hessp(self, x: Array, u: Array, c: Array, rows: Rows = None) -> Array:
        c = asarray_like(c, self.like)

        def products(block: Block, piece: Rows, part: slice) -> Array:
            return weighted(self.phi_hessp(block.predict(x), block.predict(u), piece), c[part])

        return self.pull(rows, products)

    def recentred(self, center: Array) -> PredictionLoss:
        """The same losses of another x: that of a layer with another centre. Nothing is copied."""
        other = copy(self)
        other.linear = self.linear.recentred(center)
        return other

    @final
    def hessian(self, x: Array, c: Array) -> np.ndarray:
        """Σ cᵢ Aᵢᵀ ∇²φᵢ(zᵢ) Aᵢ: for every pair (k, l) of predictions a p × p block, laid out as x is."""
        K, rows_of_x = self.K, prod(self.x_shape) // self.K
        X = to_numpy(x.T if self.linear.transpose else x).astype(np.float64).reshape(rows_of_x, K)

        def term(at: tuple[slice, Rows]) -> np.ndarray:
            rows = at[1]
            A, share = self.linear.design(rows), to_numpy(c[rows]).astype(np.float64)[:, None]
            z = asarray_like(A @ X, self.like)
            blocks = np.empty((K, K, rows_of_x, rows_of_x))
            for k in range(K):
                column = to_numpy(self.phi_hessp(z, asarray_like(np.eye(K)[[k]], z) + zeros(z.shape, z), rows))
                column = np.where(share != 0, column.astype(np.float64), 0.0) * share
                if K == 1 and column.min(initial=0.0) >= 0:  # half of the products, as the matrix is symmetric
                    A *= np.sqrt(column)
                    blocks[0, 0] = A.T @ A
                    return blocks
                for m in range(k + 1):
                    blocks[k, m] = A.T @ (A * column[:, m, None])
                    blocks[m, k] = blocks[k, m].T
            return blocks

        blocks = total(term, self.linear.pieces(), np.zeros((K, K, rows_of_x, rows_of_x)))
        order = (0, 2, 1, 3) if self.linear.transpose else (2, 0, 3, 1)
        return blocks.transpose(order).reshape((prod(self.x_shape),) * 2)

    @final
    def value_gradient(self, x: Array, c: Array, rows: Rows = None) -> tuple[float, Array]:
        values: dict[int, float] = {}

        def term(at: tuple[slice, Rows]) -> Array:
            part, piece = at
            block = Block(self.linear, piece)
            f, r = self.evaluate(block.predict(x), piece)
            values[part.start] = sum64(weighted(f, c[part]))
            return block.adjoint(weighted(r, c[part]))

        gradient = total(term, self.linear.pieces(rows), zeros(self.x_shape, self.like))
        return sum(values[start] for start in sorted(values)), gradient

    @final
    def pull(self, rows: Rows, residuals: Callable[[Block, Rows, slice], Array]) -> Array:
        """Σ Aᵢᵀrᵢ over ``rows``, a piece at a time, with r = residuals(block, piece, part): every row is read once.

        ``part`` is where ``piece`` stands among the rows.
        """

        def term(at: tuple[slice, Rows]) -> Array:
            part, piece = at
            block = Block(self.linear, piece)
            return block.adjoint(residuals(block, piece, part))

        return total(term, self.linear.pieces(rows), zeros(self.x_shape, self.like))

    @final
    def phi(self, z: Array, rows: Rows = None) -> Array:
        """φᵢ(zᵢ), of shape (m,)."""
        return self.evaluate(z, rows)[0]

    def residual(self, z: Array, rows: Rows = None) -> Array:
        """∇φᵢ(zᵢ), of shape (m, K): what `evaluate` gives, to the bit; to override where φ costs extra."""
        return self.evaluate(z, rows)[1]

    @final
    def values(self, x: Array, rows: Rows = None) -> Array:
        parts = each(lambda at: self.evaluate(self.linear.predict(x, at[1]), at[1])[0], self.linear.pieces(rows))
        return namespace(self.like).concat(parts) if parts else zeros((0,), self.like)

    @final
    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        c = asarray_like(c, self.like)
        return self.pull(rows, lambda block, piece, part: weighted(self.residual(block.predict(x), piece), c[part]))

    @final
    def lipschitz(self) -> Array:
        """Lᵢ = ‖∇²φᵢ‖·‖Aᵢ‖², of shape (n,)."""
        xp = namespace(self.like)
        norms2 = self.linear.row_norms2()
        empty = norms2 == 0  # such a loss is constant, however curved φ is
        L = asarray_like(self.curvature_bound(), self.like) * xp.where(empty, xp.ones_like(norms2), norms2)
        return xp.where(empty, xp.zeros_like(L), L)


def weighted(a: Array, c: Array) -> Array:
    """cᵢaᵢ row by row, and 0 where cᵢ = 0 even if aᵢ is infinite or NaN.

    Parameters
    ----------
    a : array of shape (m,) or (m, k)
        A number or a vector for each of m examples.
    c : array of shape (m,)
        What each of them counts.

    Returns
    -------
    array
        In the shape of ``a``.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import weighted
    >>> weighted(np.array([1.0, np.nan]), np.array([2.0, 0.0]))
    array([2., 0.])
    """
    c = c if a.ndim == 1 else c[:, None]
    return namespace(a).where(c == 0, 0.0, a) * c


def select(a: Array, rows: Rows) -> Array:
    """The entries a[rows] of an array with one per example, whatever form ``rows`` has.

    Parameters
    ----------
    a : array of shape (n, ...)
        A number or a vector for each example.
    rows : None, slice or integer array
        Which of them; None: all.

    Returns
    -------
    array
        The entries, in the order of ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import select
    >>> select(np.array([5.0, 6.0, 7.0]), np.array([2, 0])), select(np.array([5.0, 6.0]), None)
    (array([7., 5.]), array([5., 6.]))
    """
    if rows is None or isinstance(rows, slice):
        return a if rows is None else a[rows]
    return namespace(a).take(a, index_like(rows, a), axis=0)  # much faster than a[rows] for rows of a few numbers
