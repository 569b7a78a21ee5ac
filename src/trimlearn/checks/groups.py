"""Rows that lie apart from the others but close together: a group of their own, a machine switched off, not errors."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from trimlearn._utils.arrays import Flags, Floats

ALIKE = 5  # others that a row of a group is like: fewer are alike by chance, or copies of one error
SHARE = 0.05  # of the rows: smaller groups are listed row by row, as there are few of them to look at (a choice)
USUAL = 0.95  # of ordinary rows are as near to others as a row of a group must be: that is what "alike" means here
MOST = 2_000  # ordinary rows that tell how near they are to others, a limit on time


def in_group(W: Floats, odd: Flags, judged: Flags, seed: int = 0) -> Flags:
    """Which of the ``odd`` rows are as near to other odd ones as ordinary rows, as few, are to one another.

    W: rows in units in which the ordinary ones vary alike in all directions. Nobody is where less than SHARE of the
    judged rows are: errors are unlike one another, and a few that are alike can be looked at.

    >>> W = np.random.default_rng(0).normal(size=(200, 2))
    >>> odd = np.arange(200) < 40
    >>> W[:30] += 20.0
    >>> W[30:40] *= 50.0
    >>> int(in_group(W, odd, np.ones(200, dtype=bool))[:30].sum()) > 25, in_group(W, odd, odd)[30:].any()
    (True, np.False_)
    """
    out: Flags = np.zeros(len(W), dtype=bool)
    ordinary = np.flatnonzero(judged & ~odd)
    size = min(int(odd.sum()), len(ordinary), MOST)
    if odd.sum() <= SHARE * judged.sum() or size <= ALIKE:
        return out
    as_few = np.random.default_rng(seed).choice(ordinary, size, replace=False)
    out[odd] = _reach(W[odd]) <= np.quantile(_reach(W[as_few]), USUAL)
    return out if out.sum() > SHARE * judged.sum() else np.zeros_like(out)


def _reach(W: Floats) -> Floats:
    """How far each row must look to see ALIKE others."""
    return np.asarray(NearestNeighbors(n_neighbors=ALIKE + 1).fit(W).kneighbors(W)[0][:, -1])
