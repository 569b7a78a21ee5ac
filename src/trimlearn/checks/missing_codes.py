"""Values that stand for missing ones: −999, 9999, 1900-01-01."""

from __future__ import annotations

import numpy as np

from trimlearn._utils.arrays import Floats
from trimlearn.checks.spread import center_and_spread

FEW = 10  # different values: a column of fewer has no codes that could be told from them
SOME = 1_000  # values that are looked at first, to save time: they are different enough as a rule
WILD = 0.01  # of the values of a column at either end: wrong ones may be among them
# Values that people write for "not known": what SPSS, SAS and survey codebooks recommend, and what databases fill in.
CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 0.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0)
# The same of dates, in days since 1970: where Windows, Excel, SQL and Unix begin to count, and where they end.
DATES = tuple(
    float(np.datetime64(day).astype("datetime64[D]").astype(np.int64))
    for day in ("1601-01-01", "1899-12-30", "1900-01-01", "1970-01-01", "2099-12-31", "9999-12-31")
)
TWICE = 2  # times: a code is written again and again
HALF = 0.5  # of the values of a column: a value that more of them share is no code
HIGH = 5.0  # the median of a column in which −1 is out of place
SELDOM = 0.05  # of the values: where more are 0 it is an amount, such as that of magnesium in most kinds of glass
CLOSE, FAR = 0.25, 3.5  # 0 is far from others that are above this share of their median, if that is so many σ off


def missing_codes(x: Floats, date: bool = False) -> list[float]:
    """The values that stand for missing ones: codes such as −999 in a column that has nothing like it.

    A negative code counts where no other value is negative, 0 where all others are positive and far from it; any code
    does where it occurs twice and is twice as far out as all others, a few wild ones apart; a date where it is further
    from the others than these from each other.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The values of a column, NaN where missing.
    date : bool, default=False
        Whether they are days since 1970.

    Returns
    -------
    list of float
        The codes found.

    Examples
    --------
    >>> missing_codes(np.append(np.linspace(3.0, 80.0, 200), [-999.0, 999.0, 999.0, 99.0]))
    [-999.0, 999.0]
    """
    known = x[np.isfinite(x)]
    codes = DATES if date else CODES
    there = [code for code in codes if np.any(known == code)]
    if not there:
        return []
    others = known[~np.isin(known, there)]
    if len(np.unique(others[:SOME])) <= FEW and len(np.unique(others)) <= FEW:
        return []
    low, middle, high = np.quantile(others, [WILD, 0.5, 1.0 - WILD])
    spread = max(high - middle, middle - low)
    found = []
    for code in there:
        count = np.count_nonzero(known == code)
        if count > HALF * len(known):
            continue
        if code == 0 and not date:
            sigma = center_and_spread(others)[1]
            seldom = TWICE <= count <= SELDOM * len(known)
            told = bool(seldom and others.min() > 0 and low > CLOSE * middle and middle > FAR * sigma)
        elif date:
            told = bool(code < low - spread or code > high + spread)
        elif code < 0 and others.min() >= 0:
            told = bool(code < -1 or (count >= TWICE and middle > HIGH))
        else:
            told = bool(count >= TWICE and (code < 2 * min(low, 0) or code > 2 * max(high, 0)))
        if told:
            found.append(code)
    return found
