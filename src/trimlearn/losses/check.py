"""Is a loss what it says it is? Its methods against finite differences and against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from trimlearn._utils.arrays import namespace
from trimlearn._utils.validation import is_integer
from trimlearn.losses.base import Loss
from trimlearn.losses.trial import Trial


def check_loss(loss: Loss, x: Any = None, *, exact_hessian: bool = True, smooth: bool = True, seed: int = 0) -> None:
    """Compare a loss's derivatives with finite differences and its methods with each other; silent where all is well.

    It tries shapes and dtypes, rows given as a slice or as numbers, gradients, Hessian products, Lipschitz constants,
    the closed form, kinks, and whether examples of weight 0 may hold NaN.

    Parameters
    ----------
    loss : Loss
        The loss, with a few dozen examples or more: large data only make it slow.
    x : array, optional
        Where to try it; None: near ``loss.start()``.
    exact_hessian : bool
        Whether `hessp` should be that of the values. False, for Gauss and Newton's or a parabola above the loss: it
        need only be symmetric. `BlockLoss` has Gauss and Newton's, and is not asked.
    smooth : bool
        Whether a kink is an error. All methods assume that there is none.
    seed : int
        Of the directions and examples tried.

    Raises
    ------
    ValueError
        With a sentence for each thing that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn.losses import LeastSquares, Loss, check_loss
    >>> check_loss(LeastSquares(np.random.default_rng(0).standard_normal((30, 2)), np.arange(30.0)))
    >>> class Squares(Loss):
    ...     def __init__(self, t):
    ...         self.t, self.n, self.x_shape, self.like = t, len(t), (), t
    ...     def values(self, x, rows=None):
    ...         return (x - (self.t if rows is None else self.t[rows])) ** 2
    ...     def gradient(self, x, c, rows=None):
    ...         return np.sum(c * (x - (self.t if rows is None else self.t[rows])))
    >>> try:
    ...     check_loss(Squares(np.arange(9.0)))
    ... except ValueError as error:
    ...     print(str(error).splitlines()[1].partition(":")[0])
    - gradient is 0.5 times what it should be
    """
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a Loss, got {type(loss).__name__}; derive it from trimlearn.losses.Loss.")
    found = _attributes(loss)
    if not found:
        trial = Trial(loss, x, np.random.default_rng(seed), exact_hessian, smooth)
        for stage in trial.stages():
            found = found or [sentence for check in stage for sentence in _heard(check)]
    if found:
        raise ValueError("\n- ".join([f"{type(loss).__name__} is not right yet:", *found]))


def _heard(check: Callable[[], Iterator[str]]) -> list[str]:
    """The sentences of a check; where the loss raised, what it raised."""
    try:
        with np.errstate(all="ignore"):
            return list(check())
    except Exception as error:  # whatever a stranger's code may raise is what the stranger wants to hear of
        return [f"{check.__name__.replace('_', ' ')}: the loss raised {type(error).__name__}: {error}"]


def _attributes(loss: Loss) -> list[str]:
    """n, x_shape and like, which every solver reads first."""
    missing = [name for name in ("n", "x_shape", "like") if name not in dir(loss)]
    if missing:
        return [f"the constructor must set {', '.join(f'self.{name}' for name in missing)}."]
    said = []
    if not is_integer(loss.n) or loss.n < 1:
        said.append(f"n must be the number of examples, an integer >= 1, got {loss.n!r}.")
    if not isinstance(loss.x_shape, tuple) or not all(is_integer(k) and k >= 1 for k in loss.x_shape):
        said.append(f"x_shape must be a tuple of integers, as (3,) for three parameters, got {loss.x_shape!r}.")
    if not is_array_api_obj(loss.like) or not namespace(loss.like).isdtype(loss.like.dtype, "real floating"):
        said.append(f"like must be a floating-point array of the kind that x is, got {loss.like!r:.60}.")
    return said
