"""Where the data do not tell which rows are bad, or how many, whoever looks for outliers is told so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from trimlearn._utils.warn import warn
from trimlearn.robust.scatter.chance import PER_DIMENSION
from trimlearn.robust.scatter.explanations import Explanation, explanation, some_rows

DOUBT: Final = 0.1  # by which two estimates of the share of bad rows differ where it is said: what matters to users
ASKED: Final = 0.05  # of the rows called bad, from which it is asked whether they are errors: a judgement
FEW: Final = 40  # different rows below which no tail can be told: 3 % of samples of 20 or 30 clean rows have one
# Of all rows, called bad, from which it is said that they may be groups: a judgement. Fewer are said to be errors,
# whether they have one cause or are of another kind.
GROUP: Final = 0.25
WHY: Final[dict[Explanation, str]] = {
    "heavy tail": "one heavy-tailed law explains all rows at least as well as errors beside normal rows do: a heavy "
    "tail is no error. The data do not tell which; give contamination if you know.",
    "skewed tail": "powers or logarithms of the features explain all rows at least as well as errors beside normal "
    "rows do: a skewed tail is no error. The data do not tell which; transform skewed features, or give contamination "
    "if you know.",
    "groups": "they lie together, in one place or a few, as rows of other groups do. Which of the groups is the good "
    "one, the data do not tell. Fit each group by itself, or give contamination if you know.",
}
# Of all rows, that are copies of one among those kept. Of clean normal rows in 5 dimensions a tenth or more is called
# bad in none of 20 samples with 15 % copies, in 8 with 20 % and in 19 with 25 % (TrimmedCovariance, 60 and 200 rows):
# a crowd of that size is taken for the good rows.
CROWD: Final = 0.15


def warn_of_doubtful_rows(
    contamination: float, scores: np.ndarray, off: np.ndarray, s: np.ndarray, normal: float
) -> bool:
    """Say so where the share of bad rows depends on what the good ones are taken for: normal, or of a heavier tail; and
    where the rows kept are copies of each other, or too few. Whether it was."""
    if np.any(off & (s > 0)) and float(s.sum()) < PER_DIMENSION:
        warn("rows are called bad, but X has too few to tell: one of four is always the farthest from the others.")
        return True
    if len(np.unique(scores[s > 0])) < FEW:
        return False
    copies = _most_alike(scores, s * ~off) / float(s.sum())
    if copies > CROWD and contamination > DOUBT:
        warn(
            f"{copies:.0%} of the rows are copies of one row, and {contamination:.0%} of the rows are bad by their "
            "distance from such a crowd, which counts for as many rows as it has copies. Drop duplicates, or give "
            "contamination if you know."
        )
        return True
    if normal - contamination > DOUBT:
        warn(
            f"the distances of the rows have a heavier tail than those of normal rows: {contamination:.0%} of the rows "
            f"are bad if that tail is their own, as contamination_ has it, and {normal:.0%} if the good rows are "
            "normal. The data do not tell which; give contamination if you know."
        )
        return True
    return False


def warn_of_another_explanation(
    contamination: float,
    scores: np.ndarray,
    off: np.ndarray,
    s: np.ndarray,
    coordinates: Callable[[np.ndarray], np.ndarray],
    p: int,
) -> bool:
    """Say so where a tail, or groups, explain better than errors why rows are off. Whether it was.

    coordinates: of rows by their numbers, the p numbers by which each of them was judged.
    """
    bad, off = called_bad(contamination, off, s), off & (s > 0)
    if bad <= ASKED or off.sum() < 2:  # a single row was hardly chosen for its sake
        return False
    rows = some_rows(scores, s, p)
    why = explanation(coordinates(rows), s[rows], off[rows])
    if why == "errors" or (why == "groups" and contamination <= GROUP):
        return False
    warn(f"{bad:.0%} of the rows are called bad, but {WHY[why]}")
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
