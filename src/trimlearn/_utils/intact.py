"""Objects that are changed wholly or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def intact(thing: object) -> Iterator[None]:
    """If the block raises, also by Ctrl-C, ``thing`` gets the attributes back that it had before.

    For a fit: what was fitted before stays whole. The values themselves must not be changed in place.

    >>> class Model:
    ...     coef_ = 1
    >>> model = Model()
    >>> with intact(model):
    ...     model.coef_, model.intercept_ = 2, 3
    >>> try:
    ...     with intact(model):
    ...         model.coef_ = 4
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(vars(model))
    {'coef_': 2, 'intercept_': 3}
    """
    before = dict(vars(thing))
    try:
        yield
    except BaseException:
        vars(thing).clear()
        vars(thing).update(before)
        raise
