"""Rows that are unlike all others as a whole, though no single cell of them is to blame."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.stats import chi2, norm, rankdata
from sklearn.exceptions import ConvergenceWarning

from trimlearn._utils.arrays import Flags, Floats, Ints
from trimlearn.checks.findings import OddRow, RowFindings
from trimlearn.checks.groups import in_group
from trimlearn.checks.spread import center_and_spread
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.robust.cells.parts import distance_cells
from trimlearn.robust.cells.table import common_value, why_left_out
from trimlearn.robust.cells.transform import ColumnTransform
from trimlearn.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 30  # rows: fewer do not tell what is odd
MANY = 20  # rows for each column that models are fitted to, where there are more
EACH = 5  # rows for each column, at least: a covariance has p²/2 numbers
ODD = 0.5  # the probability from which on a fit calls a row odd
GROUPS = 0.25  # of the rows: where more lie apart they are other groups rather than errors, as `TrimmedPCA` warns
# Rows that models are fitted to at most, and fewer of many columns: these numbers take a few seconds, and more hardly
# change the models. All rows are judged.
ROWS, WORK = 10_000, 150_000
SHOWN = 3  # columns that are named for a row
PART = 0.1  # of a row's distance: what a column must explain to be named
FLAT = 3  # columns up to which PCA has no say: it leaves out one direction, or none, in which rows could be odd
# Rows of a table that may be as far out by chance, where the distances are all that speaks: one false alarm in a
# hundred tables. Of 60 normal tables of two or three columns 1 has an odd row; with 0.05, one in twenty, 3 have.
CHANCE = 0.01
LEAST = 1e-12  # of a score, whose logarithm is taken
KNOWN = 0.5  # of the cells of a row: where fewer are known it is not judged
SWEEPS = 8  # over the columns: for one gap in a row the first is exact, and neighbouring gaps settle in a few
FLOOR = 0.001  # the least eigenvalue of a matrix of correlations: taken from pairs of columns, it may be negative

UNSETTLED = "The models of whole rows stopped before they had settled: doubt which rows are odd."


def odd_rows(
    table: Table, mended: pd.DataFrame, *, pinned: Mapping[int, bool] | None = None, seed: int = 0
) -> RowFindings:
    """The rows that are unlike the others as a whole.

    A row is odd if both `TrimmedCovariance` and `TrimmedPCA` say so (up to three columns the first alone), of the
    numeric columns in units of their robust spread, and of the same columns transformed to be about normal: what only
    one of these finds is a group of rows, or the tail of a skewed column, more often than an error.

    Parameters
    ----------
    table : Table
        Which columns are what.
    mended : DataFrame
        Its values, wrong cells missing, without the columns that are not to be judged.
    pinned : mapping of int to bool, default=None
        Rows that are known to be wrong (True), which no model is fitted to, or right (False), which are not odd.
    seed : int, default=0
        For the random starts of the models.

    Returns
    -------
    RowFindings
        The odd rows, most probable first. Scores are the geometric mean of both distances in units of their cut-offs;
        beyond 1 a row is far out.

    Examples
    --------
    >>> import pandas as pd
    >>> from trimlearn.tables.table import Column
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1)) + 0.5 * rng.standard_normal((200, 4))
    >>> X[3] = [4.0, -4.0, 4.0, -4.0]
    >>> frame = pd.DataFrame(X, columns=list("abcd"))
    >>> table = Table(frame, frame.astype(str), tuple(Column(c, "number") for c in "abcd"), "made up", 0, "")
    >>> [row.row for row in odd_rows(table, frame).odd]
    [3]
    """
    pinned = pinned or {}
    names, X = _judged_columns(table, mended)
    n, p = X.shape
    judged = np.isfinite(X).sum(axis=1) > KNOWN * p
    fitted = judged & ~np.array([pinned.get(i, False) for i in range(n)], dtype=bool)
    if p < 2 or fitted.sum() < max(FEWEST, EACH * p):
        return RowFindings((), np.full(n, np.nan), np.inf, 0.0, _too_few(p, int(fitted.sum())))
    rows = np.flatnonzero(fitted)
    most = int(max(min(ROWS, WORK / p), MANY * p))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    views = [_View.of(X, rows, transform, seed) for transform in (False, True)]
    return _verdict(views, X, names, judged, pinned, len(rows) if len(rows) < fitted.sum() else 0)


def _too_few(p: int, rows: int) -> tuple[str, ...]:
    """Why no rows were judged."""
    if rows < FEWEST:
        return (f"No rows were judged as a whole: that takes {FEWEST} of them.",)
    if p < 2:
        return (f"No rows were judged as a whole: that takes two columns of numbers, here {p} can be used.",)
    least = max(FEWEST, EACH * p)
    return (f"No rows were judged as a whole: {p} columns of numbers take {least} rows, and there are {rows}.",)


def _judged_columns(table: Table, mended: pd.DataFrame) -> tuple[list[str], Floats]:
    """The numeric columns that vary: of which no value makes up more than half."""
    names, columns = [], []
    for name in (name for name in table.of_kind("number") if name in mended):
        x = mended[name].to_numpy(dtype=np.float64, na_value=np.nan)
        x = np.where(np.isfinite(x), x, np.nan)
        if not why_left_out(x) and np.isnan(common_value(x)):
            names.append(name)
            columns.append(x)
    return names, np.column_stack(columns) if columns else np.zeros((len(mended), 0))


@final
@dataclass(frozen=True)
class _View:
    """Both models of the columns in one set of units; missing values are what the row suggests."""

    Z: Floats
    fits: dict[str, Any]
    messages: tuple[str, ...]
    probability: Floats  # that a row is wrong, the lower of both
    score: Floats

    @classmethod
    def of(cls, X: Floats, rows: Ints, transform: bool, seed: int) -> _View:
        Z = np.empty_like(X)
        for j, x in enumerate(X.T):
            center, sigma = center_and_spread(x[rows])
            known = x[rows][np.isfinite(x[rows])]
            Z[:, j] = ColumnTransform.of(known).into(x) if transform else (x - center) / sigma
        Z = _filled(Z, rows)
        models: dict[str, Any] = {"covariance": TrimmedCovariance(random_state=seed)}
        if X.shape[1] > FLAT:
            models["pca"] = TrimmedPCA(random_state=seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fits = {name: model.fit(Z[rows]) for name, model in models.items()}
        probability, logs = np.ones(len(Z)), np.zeros(len(Z))
        for fit in fits.values():
            scores = fit.outlier_score(Z) if len(rows) < len(Z) else fit.outlier_scores_
            probability = np.minimum(probability, _probability(fit, scores, rows))
            if X.shape[1] <= FLAT:
                by_chance = len(Z) * chi2.sf(scores**2, X.shape[1])
                probability[by_chance > CHANCE] = 0.0
            logs += np.log(np.maximum(scores / fit.threshold_, LEAST)) / len(fits)
        return cls(Z, fits, tuple(_said(w) for w in caught), probability, np.exp(logs))

    def alike(self) -> Floats:
        """The rows in units in which ordinary ones vary alike in all directions."""
        return np.asarray(self.Z @ np.linalg.cholesky(self.fits["covariance"].get_precision()))


def _probability(fit: Any, scores: Floats, rows: Ints) -> Floats:
    """Of all rows: of those that were not fitted to, that of a fitted one as far out."""
    if len(rows) == len(scores):
        return np.asarray(fit.outlier_probability_)
    order = np.argsort(fit.outlier_scores_)
    known, at = fit.outlier_probability_[order], fit.outlier_scores_[order]
    out = np.interp(scores, at, np.maximum.accumulate(known))
    out[rows] = fit.outlier_probability_
    return np.asarray(out)


def _verdict(
    views: list[_View], X: Floats, names: list[str], judged: Flags, pinned: Mapping[int, bool], sample: int
) -> RowFindings:
    plain = views[0]
    probability = np.minimum.reduce([view.probability for view in views])
    odd = judged & (probability > ODD)
    odd[[i for i, wrong in pinned.items() if not wrong]] = False
    share = float(odd.sum() / max(judged.sum(), 1))
    together = in_group(plain.alike(), odd, judged)
    caveats = list(dict.fromkeys(message for message in plain.messages if odd.any() or message == UNSETTLED))
    if share > GROUPS:
        caveats.append(
            f"{share:.0%} of the rows lie apart from the others: they may be groups of their own rather than errors, "
            "and are not listed as odd."
        )
        odd[:] = False
    elif together.any():
        apart = Counter(columns[0] for columns in _columns(plain, np.flatnonzero(together), names).values())
        name = apart.most_common(1)[0][0]
        there, elsewhere = (np.nanmedian(X[rows, names.index(name)]) for rows in (together, judged & ~together))
        caveats.append(
            f"{together.sum():,} rows lie close together, apart from the others most of all in {name} (about "
            f"{there:.3g} there, {elsewhere:.3g} elsewhere): they may be a group of their own, or in other units, "
            "rather than errors one by one, and are not listed."
        )
        odd &= ~together
    if sample:
        caveats.append(f"What rows are like was learnt from {sample:,} of them; all were judged by that.")
    found = []
    chosen = np.flatnonzero(odd)
    columns = _columns(plain, chosen, names)
    for i in chosen[np.lexsort((-plain.score[chosen], -probability[chosen]))].tolist():
        sure = 1.0 if pinned.get(i, False) else float(probability[i])
        found.append(OddRow(i, float(plain.score[i]), sure, columns[i]))
    scores = np.where(judged, plain.score, np.nan)
    contamination = float(min(fit.contamination_ for view in views for fit in view.fits.values()))
    fits = {**plain.fits, "matrix": plain.Z, "columns": names}
    return RowFindings(tuple(found), scores, 1.0, contamination, tuple(caveats), fits)


def _columns(view: _View, rows: Ints, names: list[str]) -> dict[int, tuple[str, ...]]:
    """The columns that make each row odd, the first one most."""
    fit = view.fits["covariance"]
    parts = distance_cells(view.Z[rows], fit.location_, fit.get_precision())
    out = {}
    for i, part in zip(rows.tolist(), parts, strict=True):
        order = np.argsort(-part)[:SHOWN]
        enough = part[order] > PART * max(float(part.sum()), LEAST)
        enough[0] = True
        out[i] = tuple(names[j] for j in order[enough].tolist())
    return out


def _said(warning: warnings.WarningMessage) -> str:
    """What a warning of an estimator means for who looks at a table."""
    text = str(warning.message)
    if issubclass(warning.category, ConvergenceWarning):
        return UNSETTLED
    if "heavier tail" in text:
        return "Distances of rows have a heavy tail: whether the furthest rows are wrong, the numbers do not tell."
    if "far out within" in text:
        return (
            "Some rows lie far out in the direction in which columns go together: whether they are wrong is not told."
        )
    if "lie together" in text:
        return "Many rows lie apart from the others, which may be groups of their own rather than errors."
    if "singular" in text or "subspace" in text:
        return "Some numeric columns are determined by others: rows that break such a rule are called odd for that."
    return text[:1].upper() + text[1:]


def _filled(Z: Floats, rows: Ints) -> Floats:
    """A matrix of columns with centre 0 and spread 1, NaN replaced by what the row suggests.

    The middle of the column in its place would make a row odd where columns hang together: 0 beside two large numbers.
    Correlations are those of normal scores of ranks, each from the ``rows`` in which both are known: wild cells count
    little.

    >>> z = np.random.default_rng(0).standard_normal(200)
    >>> Z = np.column_stack([z, 2.0 * z])
    >>> Z[0] = [3.0, np.nan]
    >>> _filled(Z, np.arange(200))[0].round(1).tolist()
    [3.0, 3.0]
    """
    gaps = np.isnan(Z)
    out = np.where(gaps, 0.0, Z)
    if not gaps.any():
        return out
    P = np.linalg.inv(_correlations(Z[rows]))
    for _ in range(SWEEPS):
        for j in np.flatnonzero(gaps.any(axis=0)):
            there = gaps[:, j]
            out[there, j] -= out[there] @ P[:, j] / P[j, j]
    return out


def _correlations(Z: Floats) -> Floats:
    known = ~np.isnan(Z)
    scores = np.zeros(Z.shape)
    for j, there in enumerate(known.T):
        count = int(there.sum())
        scores[there, j] = norm.ppf(rankdata(Z[there, j]) / (count + 1.0))
    both = known.astype(np.float64)
    S = scores.T @ scores / np.maximum(both.T @ both, 1.0)
    spread = np.sqrt(np.maximum(np.diag(S), FLOOR))
    values, vectors = np.linalg.eigh(S / np.outer(spread, spread))
    return np.asarray((vectors * np.maximum(values, FLOOR)) @ vectors.T)
