"""Generalised linear models with one prediction per example: binomial, Poisson and gamma."""

from __future__ import annotations

from abc import abstractmethod
from math import inf, log
from typing import Any, Unpack, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn._utils.validation import check_choice, check_target
from trimlearn.losses.base import PredictionLoss, select
from trimlearn.losses.compiled import AmountRows, CountRows, LogisticRows
from trimlearn.losses.linear import Layer, Linear
from trimlearn.losses.storage import Rows

PIECE = 1 << 18  # targets looked at in one go: a limit on memory, 2 MB in float64


class GLM(PredictionLoss):
    """fᵢ(x) = half the unit deviance of tᵢ at the linear predictor zᵢ: ≥ 0, and 0 where the fit is exact.

    Terms that do not depend on x decide who is trimmed, so they matter here: with them the rows compete fairly
    whatever their mean. V and the keywords intercept, center and scale are those of `trimlearn.losses.Linear`.
    """

    def __init__(self, V: Any, t: Any, **layer: Unpack[Layer]) -> None:
        super().__init__(Linear(V, **layer))
        self.t = check_target(t, self.n, self.like)

    @abstractmethod
    def half_deviance(self, z: Array, rows: Rows) -> tuple[Array, Array]:
        """The loss and its derivative, both (m,), at z (m,)."""

    @final
    def evaluate(self, z: Array, rows: Rows = None) -> tuple[Array, Array]:
        f, r = self.half_deviance(z[:, 0], rows)
        return f, r[:, None]

    @abstractmethod
    def second(self, r: Array, t: Array) -> Array:
        """The second derivative where the first is r."""

    @final
    def phi_hessp(self, z: Array, u: Array, rows: Rows = None) -> Array:
        return self.second(self.half_deviance(z[:, 0], rows)[1], select(self.t, rows))[:, None] * u


@final
class Logistic(GLM):
    """Binary logistic regression, with P(1) = 1/(1 + e^−z).

    φ(z) = log(1 + e^z) − t z + t log t + (1 − t) log(1 − t), half the unit deviance; the last two terms are 0 for
    labels.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,)
        Labels 0 and 1, or proportions in [0, 1].
    part : bool
        Whether these are some of the rows of a larger problem, so that they may be of one class.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Logistic(np.array([[1.0], [-1.0]]), np.array([1, 0]))
    >>> loss.values(np.array([0.0])).round(3)
    array([0.693, 0.693])
    >>> loss.values(np.array([1000.0]))
    array([0., 0.])
    """

    def __init__(self, V: Any, t: Any, part: bool = False, **layer: Unpack[Layer]) -> None:
        super().__init__(V, t, **layer)
        self.part = part
        t = to_numpy(self.t)
        if t.min() < 0 or t.max() > 1:
            raise ValueError("t must lie in [0, 1]; turn labels -1, 1 into (t + 1) / 2, use Softmax for more classes.")
        if not part and t.min() == t.max() and t[0] in (0, 1):
            raise ValueError(f"t holds one class only ({float(t[0]):g}); give rows of both classes.")
        saturated = np.empty_like(t)
        for start in range(0, len(t), PIECE):
            a = t[start : start + PIECE].astype(np.float64)
            saturated[start : start + PIECE] = xlogy(a, a) + xlogy(1 - a, 1 - a)
        self._saturated = asarray_like(saturated, self.like)

    def half_deviance(self, z: Array, rows: Rows) -> tuple[Array, Array]:
        xp = namespace(z)
        t, up = select(self.t, rows), z >= 0
        e = xp.exp(-xp.abs(z))  # never overflows; no difference of large numbers below
        f = xp.log1p(e) + xp.where(up, (1 - t) * z, -t * z) + select(self._saturated, rows)
        r = xp.where(up, (1 - t) - t * e, (1 - t) * e - t) / (1 + e)
        return xp.maximum(f, xp.zeros_like(f)), r

    def second(self, r: Array, t: Array) -> Array:
        return (r + t) * (1 - r - t)

    def compiled(self) -> LogisticRows:
        return LogisticRows(self.t, self._saturated)

    def curvature_bound(self) -> float:
        return 0.25


class LogLink(GLM):
    """A positive mean μ = e^z, and a choice between half the unit deviance and the full −log likelihood.

    Written in d = z − log t = log(μ/t), which keeps the difference of large terms exact near the optimum. The
    exponential is cut off at 10^19 in float32, 10^154 in float64: a mean that far off costs a huge but finite loss.
    """

    def __init__(self, V: Any, t: Any, normalisation: str = "deviance", **layer: Unpack[Layer]) -> None:
        check_choice(normalisation, ("deviance", "likelihood"), "normalisation")
        super().__init__(V, t, **layer)
        self.normalisation = normalisation
        t = to_numpy(self.t).astype(np.float64)
        self._check(t)
        self._log_t = asarray_like(np.log(np.where(t > 0, t, 1)), self.like)
        constant = self._likelihood_constant(t) if normalisation == "likelihood" else np.zeros(self.n)
        self._constant = asarray_like(constant, self.like)
        self._cap = log(namespace(self.like).finfo(self.like.dtype).max) / 2

    @abstractmethod
    def _check(self, t: NDArray[np.float64]) -> None:
        """Raise ValueError unless the distribution can produce the targets t."""

    @abstractmethod
    def _likelihood_constant(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """−log likelihood minus half the unit deviance."""

    @abstractmethod
    def _deviance(self, d: Array, t: Array) -> tuple[Array, Array]:
        """Half the unit deviance and its derivative in d = log(μ/t), where log 0 counts as 0."""

    @final
    def start(self) -> Array:
        """Zero, and an intercept at the logarithm of the median target: e^z is far from linear over many decades."""
        x = super().start()
        if self.intercept:
            t = to_numpy(self.t)
            x[-1] = log(max(float(np.median(t)), float(np.mean(t)) * 1e-3, 1e-30))
        return x

    @final
    def half_deviance(self, z: Array, rows: Rows) -> tuple[Array, Array]:
        xp = namespace(z)
        f, r = self._deviance(z - select(self._log_t, rows), select(self.t, rows))
        return xp.maximum(f, xp.zeros_like(f)) + select(self._constant, rows), r

    @final
    def curvature_bound(self) -> float:
        return inf


@final
class Poisson(LogLink):
    """Counts with a mean μ = e^z: φ(z) = μ − t − t log(μ/t), or μ for t = 0.

    This is half the unit deviance, under which rows of any mean compete fairly. There is no global Lipschitz constant.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,)
        Targets >= 0, not only integers.
    normalisation : {"deviance", "likelihood"}
        With "likelihood" φ is −log of the Poisson probability, μ − t z + log Γ(t + 1), as in FAST-TLE [1]_.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    References
    ----------
    .. [1] N. Neykov and C. H. Müller, Breakdown point and computation of trimmed likelihood estimators in generalized
       linear models, in: Developments in Robust Statistics (2003).

    Examples
    --------
    >>> import numpy as np
    >>> loss = Poisson(np.ones((3, 1)), np.array([0.0, 1.0, 5.0]))
    >>> loss.values(np.array([0.0])).round(3)
    array([1.   , 0.   , 4.047])
    """

    def _check(self, t: NDArray[np.float64]) -> None:
        if t.min() < 0:
            raise ValueError("t must be >= 0: counts are not negative; drop or correct those rows.")

    def _likelihood_constant(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(gammaln(t + 1) - xlogy(t, t) + t)

    def _deviance(self, d: Array, t: Array) -> tuple[Array, Array]:
        xp = namespace(d)
        d = xp.clip(d, max=self._cap)
        excess, empty = xp.expm1(d), t == 0  # (μ − t)/t where t > 0, else μ − 1
        return xp.where(empty, excess + 1, t * (excess - d)), xp.where(empty, excess + 1, t * excess)

    def compiled(self) -> CountRows:
        return CountRows(self.t, self._log_t, self._constant, self._cap)

    def second(self, r: Array, t: Array) -> Array:
        return r + t


@final
class Gamma(LogLink):
    """Positive amounts with a mean μ = e^z: φ(z) = log(μ/t) + t/μ − 1.

    This is half the unit deviance. There is no global Lipschitz constant.

    Parameters
    ----------
    V : array, sparse matrix or tensor of shape (n, p)
        The features, one example a row; see `Linear`.
    t : array of shape (n,)
        Targets > 0.
    normalisation : {"deviance", "likelihood"}
        With "likelihood" φ is −log density for shape 1 (the exponential distribution), z + t e^−z.
    **layer : bool or array
        The keywords ``intercept``, ``center`` and ``scale`` of `Linear`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = Gamma(np.ones((2, 1)), np.array([1.0, 2.0]))
    >>> loss.values(np.array([0.0])).round(3)
    array([0.   , 0.307])
    """

    def _check(self, t: NDArray[np.float64]) -> None:
        if t.min() <= 0:
            raise ValueError("t must be > 0 under a gamma distribution; drop those rows, or use Poisson for zeros.")

    def _likelihood_constant(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(t) + 1)

    def _deviance(self, d: Array, t: Array) -> tuple[Array, Array]:
        xp = namespace(d)
        d = xp.clip(d, min=-self._cap)
        excess = xp.expm1(-d)  # (t − μ)/μ
        return excess + d, -excess

    def compiled(self) -> AmountRows:
        return AmountRows(self.t, self._log_t, self._constant, self._cap)

    def second(self, r: Array, t: Array) -> Array:
        return 1 - r
