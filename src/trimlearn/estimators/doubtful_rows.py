"""Where the data do not tell which rows are bad, or how many, whoever looks for outliers is told so."""

from __future__ import annotations

from math import sqrt
from typing import Final

import numpy as np

from trimlearn._utils.warn import warn
from trimlearn.robust.order import weighted_quantile
from trimlearn.robust.scale import BEYOND_COUNT
from trimlearn.robust.scatter.chance import far_out
from trimlearn.robust.scatter.tails import looks_heavy_tailed

# Of all rows, called bad, from which they may be a group: a judgement. Wine with a few of a third sort has 16 %, of
# which half are right; of clean normal rows so many are called bad in less than one sample of a hundred.
MANY: Final = 0.15
# Of the rows kept, that may be farther than how far these are said to lie, as in Hubert et al. (2005): the farthest of
# many rows is farther than that of few.
BEYOND: Final = 0.025
DOUBT: Final = 0.1  # by which two estimates of the share of bad rows differ where it is said: what matters to users
# Different rows below which a heavy tail is not asked for: the fewest that it was tried on. Of fewer even a hump far
# out does not win by so much.
SAMPLE: Final = 60
ASKED: Final = 0.05  # of the rows called bad, from which it is asked whether they are a tail: a judgement
FEW: Final = 40  # different rows below which no tail can be told: 3 % of samples of 20 or 30 clean rows have one
# The share of bad rows, and the ratio of the quartiles of their distances, from which they may be other groups. It is
# 1.1 for bad rows in one place, up to 1.7 for scattered ones, and more for tables of several groups: 4.6 for glass,
# 2.5 for Stamps, 2.6 for cardio (TrimmedCovariance; `benchmarks peers anomalies`).
GROUPS: Final = 0.25, 1.8
# Of all rows, that are copies of one among those kept. Of clean normal rows in 5 dimensions a tenth or more is called
# bad in none of 20 samples with 15 % copies, in 8 with 20 % and in 19 with 25 % (TrimmedCovariance, 60 and 200 rows):
# a crowd of that size is taken for the good rows.
CROWD: Final = 0.15


def warn_of_doubtful_rows(
    contamination: float, scores: np.ndarray, off: np.ndarray, s: np.ndarray, normal: float
) -> bool:
    """Say so where the share of bad rows depends on what the good ones are taken for: normal, or of a heavier tail;
    where so many rows are ``off``, by such different scores, that they may be groups of their own; where as many are
    off as are not, so that either may be the bad ones; where a third of them is off, as a group; or where the rows kept
    are copies of each other. Whether it was."""
    doubt = _doubt_about_rows(contamination, scores, off, s, normal) if len(np.unique(scores[s > 0])) >= FEW else None
    if doubt is not None:
        warn(doubt)
    return doubt is not None


def _doubt_about_rows(
    contamination: float, scores: np.ndarray, off: np.ndarray, s: np.ndarray, normal: float
) -> str | None:
    total, far = float(s.sum()), scores[off & (s > 0)]
    copies = _most_alike(scores, s * ~off) / total
    if copies > CROWD and contamination > DOUBT:
        return (
            f"{copies:.0%} of the rows are copies of one row, and {contamination:.0%} of the rows are bad by their "
            "distance from such a crowd, which counts for as many rows as it has copies. Drop duplicates, or give "
            "contamination if you know."
        )
    if normal - contamination > DOUBT:
        return (
            f"the distances of the rows have a heavier tail than those of normal rows: {contamination:.0%} of the rows "
            f"are bad if that tail is their own, as contamination_ has it, and {normal:.0%} if the good rows are "
            "normal. The data do not tell which; give contamination if you know."
        )
    if contamination > GROUPS[0] and _quartiles(far) > GROUPS[1]:
        return (
            f"{contamination:.0%} of the rows lie apart, at very different distances: they may be other groups of "
            "rows, or a tail, rather than errors. The data do not tell which; give contamination if you know."
        )
    if _as_many(float(s @ off), total):
        return (
            f"{contamination:.0%} of the rows lie apart, about as many as agree: which of the two groups is the good "
            "one, the data do not tell. Fit each by itself, or leave out the one that you know to be wrong."
        )
    if _a_third(contamination * total, total):
        return (
            f"{contamination:.0%} of the rows lie apart, at about the same distance: they look like a group of their "
            "own rather than errors. Fit each group by itself, or give contamination if you know."
        )
    return None


def warn_of_rows_beside(contamination: float, scores: np.ndarray, off: np.ndarray, s: np.ndarray) -> bool:
    """Say so where many rows are ``off``, by scores hardly larger than those of the others: errors that matter would
    lie farther out. Whether it was."""
    kept = ~off & (s > 0)
    if contamination <= MANY or not kept.any() or len(np.unique(scores[s > 0])) < FEW:
        return False
    if far_out(scores, s, contamination, weighted_quantile(scores[kept], s[kept], 1.0 - BEYOND)):
        return False
    warn(
        f"{contamination:.0%} of the rows are called bad, but most of them lie hardly farther out than good rows do: "
        "they may be other groups of rows, or a skewed tail, rather than errors. The data do not tell which; give "
        "contamination if you know."
    )
    return True


def warn_of_heavy_tail(contamination: float, scores: np.ndarray, off: np.ndarray, s: np.ndarray, k: float) -> bool:
    """Say so where one heavy tail explains the scores, of k dimensions, as well as errors beside normal rows do: a
    heavy tail is no error. Whether it was."""
    bad, off, some = called_bad(contamination, off, s), off & (s > 0), s > 0
    if bad <= ASKED or off.sum() < 2 or len(np.unique(scores[some])) < SAMPLE:
        return False
    if not looks_heavy_tailed(scores[some], off[some], s[some], k):
        return False
    warn(
        f"{bad:.0%} of the rows are called bad, but one heavy-tailed law explains the distances of all rows about as "
        "well as errors beside normal rows do: a heavy tail is no error. The data do not tell which; give "
        "contamination if you know."
    )
    return True


def called_bad(contamination: float, off: np.ndarray, s: np.ndarray) -> float:
    """The share of bad rows as estimated or as flagged, whichever is larger: users see both."""
    return max(float(contamination), float(s @ off) / float(s.sum()))


def warn_of_rows_far_within(far: int, rows: int) -> None:
    """Say so where rows count as good that lie far from all others, but within the subspace."""
    if far and rows >= FEW:
        warn(
            f"{far} rows lie far out within the subspace, apart from all others, and count as good, since rows are "
            "judged by how far they are from it. score_distances_ has them; TrimmedCovariance judges by all directions."
        )


def _as_many(off: float, total: float) -> bool:
    """Whether the smaller of two groups could as well have been the larger one: were they equally likely, their sizes
    would differ by √n, a standard deviation.

    >>> _as_many(47.0, 100.0), _as_many(40.0, 100.0)
    (True, False)
    """
    return abs(total - 2.0 * off) <= sqrt(total)


def _a_third(bad: float, total: float) -> bool:
    """Whether so many bad rows may be one of three equal groups: a third of all, but for a row and what an estimate
    subtracts for good ones; or more by a standard deviation of the size of a group to which every row belongs with
    probability 1/3. Fewer are as often errors.

    >>> _a_third(50.0, 150.0), _a_third(45.0, 150.0), _a_third(60.0, 150.0), _a_third(198.0, 600.0)
    (True, False, False, True)
    """
    return -1.0 - BEYOND_COUNT * total <= bad - total / 3.0 <= sqrt(2.0 * total) / 3.0


def _most_alike(scores: np.ndarray, s: np.ndarray) -> float:
    """How many of the rows, which count s times, have the commonest score: copies of a row have one score."""
    _, index = np.unique(scores, return_inverse=True)
    return float(np.bincount(index, s).max())


def warn_of_exact_subspace(contamination: float, k: int) -> None:
    """Say so where rows are called bad only because most of the others lie in a subspace exactly."""
    if contamination > DOUBT:
        warn(
            f"{1 - contamination:.0%} of the rows lie exactly in a subspace of {k} dimensions, and the others count as "
            "bad. A feature of few values, such as 0 and 1, does that: leave it out, or give contamination.",
        )


def _quartiles(scores: np.ndarray) -> float:
    """The upper quartile over the lower one; 1 where there are none."""
    low, high = np.quantile(scores, [0.25, 0.75], method="lower") if len(scores) else (1.0, 1.0)  # also of infinities
    return float(high / low) if 0 < low < high else 1.0
