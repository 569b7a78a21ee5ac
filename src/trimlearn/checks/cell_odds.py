"""The probability that a cell is wrong: two groups of cells, and within them what may have happened.

A cell x of column j, whose transformed value is z = T(x), is right and follows its row, with the density of its law
about what the others in the row expect; or right and follows it loosely, or only its column, as some cells of every
real table do. Or it is wrong by a rule: x comes from t = x/10, say, and t is right, which has the density of t times
|dt/dx| T′(t)/T′(x); or wrong in another way, with a wide density. The shares of all of these are those of the greatest
likelihood, of the errors for the whole table, of the loose cells for each column. So a value that is exactly ten times
a plausible one is likely to be wrong where such errors occur, and unlikely where they do not.

The two-groups model: B. Efron, R. Tibshirani, J. Storey and V. Tusher (2001), Empirical Bayes analysis of a microarray
experiment. `python -m benchmarks.calibration cell_odds` measures how well the probabilities are calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.stats import norm

from trimlearn._utils.arrays import Flags, Floats, Ints
from trimlearn.checks.errors import EXCHANGED, FEW_NEGATIVE, RULES, UNUSUAL, Writing, origins
from trimlearn.robust.cells.table import TableCells, TableModel
from trimlearn.robust.cells.tails import Tail

NEAR = 2.0  # |score| below which no error can be told: the density of a right cell is at least an eighth of its most
WIDE = 20.0  # in σ of a column: the scale of a Cauchy law, of errors that follow no rule; 5 takes odd rows for errors
FIRST = 0.001  # the share of each kind of error to begin with: a cell in a hundred is wrong in most tables
LOOSE = 0.05  # the share of right cells that follow their row loosely, or only their column, to begin with
STRAY = 0.01  # the same of what a cell was before an error: 0.02 and 0.05 take more odd rows for errors
HEAVY = Tail(2.0, 1.0)  # the law of those that follow it loosely: tails that have no variance
BORROWED = 50.0  # cells of all columns that this share of a column is judged by beside its own
PRIOR = 20.0  # right cells added in thought, as for rows: a few cells a little far out are chance
PRECISE, NONE = 0.003, 1e-6  # what shares change by in the last step, relative; a share that is as good as none
ENOUGH = 20_000  # suspects that tell the shares: they are known to a few per cent then
ROUNDS, STEPS = 3, 60  # of the columns' densities, and of the shares for each: they change by less than 1 % after
FITS = 3.0  # |score| up to which a corrected value fits: three in a thousand right ones are beyond
CLEAR = 0.5  # by definition: likelier wrong than right; and what of that the likeliest rule must have to be named
# Of the values of a column: so few negative ones, or one, are as improbable as FEW_NEGATIVE beside what their distance
# says. So 8 of 8 ages with a minus are found among 300, and 2 without it; of normal columns that hardly reach 0, 16 of
# 100,000 right cells are flagged, and 12 without.
LONE = 0.005
STEP, REACH = 0.05, 16.0  # of the grid of a column's density: finer than its kernel, and up to 4 million σ
KERNEL = 0.6  # σ of the kernel is this times n^(−1/5): two thirds of Silverman's, as groups are narrow
TAIL = 0.1  # of such a density is a Cauchy law: with 0.3, 1 in 1000 more of the clean cells of dirty tables are flagged

Places = NDArray[np.int16]


@final
@dataclass(frozen=True)
class CellOdds:
    """Of the suspected cells (row, column): the probability that each is wrong, the rule that explains it best, −1
    where none does, what it was before, and the column whose value it may have exchanged with, −1 for none."""

    row: Ints
    column: Ints
    probability: Floats
    rule: Ints
    truth: Floats
    partner: Ints

    def beyond(self, probability: float) -> CellOdds:
        """Those that are more probably wrong."""
        return self.among(self.probability > probability)

    def among(self, chosen: Flags) -> CellOdds:
        """Some of them."""
        return CellOdds(*(getattr(self, f.name)[chosen] for f in fields(self)))


@final
class _SuspectCells:
    """The cells of a column that may be wrong, (m,), and the candidates for what they were, (c, m)."""

    def __init__(
        self,
        model: TableModel,
        x: Floats,
        z: Floats,
        known: Flags,
        cells: TableCells,
        j: int,
        writing: Writing,
        other: Floats,
    ) -> None:
        """Of column j, with the values x; transformed: z. ``other``: what stands where each may belong, or NaN."""
        column, law = model.columns[j], model.model.laws[j]
        far = np.abs(z - cells.centre[:, j]) > NEAR * law.scale * cells.sigma[:, j]
        far[known] |= writing.reveals(x[known])
        rows = self.rows = np.flatnonzero(known & far)
        self.among = (np.cumsum(known) - 1)[rows]  # their places among the known cells of the column
        values, centre, sigma = x[rows], cells.centre[rows, j], cells.sigma[rows, j]
        expected = cells.expected[rows, j]
        before = origins(values, writing, expected, sigma / column.slope(expected))
        self.z, self.sigma = z[rows], sigma
        self.off = (self.z - centre) / sigma  # by how many σ it is off what its row expects
        self.off_place = _places(self.off)
        below = np.count_nonzero(x[known] < 0)
        alone = not writing.negative and below <= max(1, LONE * np.count_nonzero(known))
        possible = np.where((values < 0) & alone, FEW_NEGATIVE, 1.0)
        self.lawful = possible * law.density(self.off) / sigma  # the density of a right cell that follows its row
        self.heavy = possible * HEAVY.density(self.off) / sigma  # the same with heavy tails
        self.unusual = ~writing.usual(values)  # (m,): written with more decimals than others
        others = max(len(model.columns) - 1, 1)  # with which a cell may be exchanged
        exchange = np.where(np.isnan(other[rows]), 0.0, 1.0 / others)
        self.rules = np.array([*before.rules, RULES.index(EXCHANGED)])
        self.truths = np.vstack([before.truths, np.where(exchange > 0, other[rows], values)])
        self.z_truths = np.array([column.into(truth) for truth in self.truths])
        self.truth_places = _places(self.z_truths)
        slopes = np.array([column.slope(truth) for truth in self.truths]) / column.slope(values)
        # Of the density of a truth, to be that of the cell.
        self.weights = np.where(np.isfinite(slopes), np.vstack([before.weights, exchange]) * slopes, 0.0)
        off = (self.z_truths - centre) / sigma
        self.lawful_truths = self.weights * law.density(off) / sigma  # the density of a right cell, weighted
        self.fits = np.abs(off) <= FITS * law.scale  # whether the truth would fit to its row

    def kinds(self, ordinary: Places, wrong: Floats) -> Floats:
        """The densities of what may have happened, (kinds, m): right in two ways, wrong by each rule, or otherwise.

        ordinary: the places of all known cells of the column; wrong: the probability that these ones are.
        """
        right, everybody = 1.0 - wrong, np.ones(len(ordinary))
        everybody[self.among] = right
        curve = _CellDensity(ordinary, everybody)
        out = np.zeros((3 + len(RULES), len(self.rows)))
        apart = _CellDensity(self.off_place, right)  # groups of cells that are off their rows by about the same
        off = apart.without(self.off, self.off_place, right)
        out[0], out[1] = self.lawful, 0.5 * (self.heavy + off / self.sigma)
        truths = self.lawful_truths + STRAY * self.weights * curve.at(self.z_truths, self.truth_places)
        for rule, density in zip(self.rules.tolist(), truths, strict=True):
            out[2 + rule] += density
        out[-1] = _wide(self.z)
        return out

    def best(self) -> tuple[Ints, Floats]:
        """Of each rule the likeliest candidate, (rules, m): whether it fits, and what it is."""
        fits, truths = np.zeros((len(RULES), len(self.rows)), dtype=bool), np.zeros((len(RULES), len(self.rows)))
        for rule in range(len(RULES)):
            mine = np.flatnonzero(self.rules == rule)
            if not len(mine):
                continue
            pick = mine[self.lawful_truths[mine].argmax(axis=0)]
            at = pick, np.arange(len(self.rows))
            fits[rule], truths[rule] = self.fits[at], self.truths[at]
        return fits, truths


def cell_odds(model: TableModel, X: Floats, cells: TableCells, writings: Sequence[Writing]) -> CellOdds:
    """Which cells of X (n, p), judged as ``cells``, are wrong; ``writings``: how the columns are written."""
    p, partners = X.shape[1], _partners(model, X, cells)
    others = np.where(partners >= 0, np.take_along_axis(X, np.maximum(partners, 0), axis=1), np.nan)
    suspects, ordinary = [], []
    for j in range(p):
        x = np.ascontiguousarray(X[:, j])
        known = np.isfinite(x) & (x != model.common[j])
        z = model.columns[j].into(np.where(known, x, np.nan))
        suspects.append(_SuspectCells(model, x, z, known, cells, j, writings[j], others[:, j]))
        ordinary.append(_places(z[known]))
    wrong = [np.zeros(len(s.rows)) for s in suspects]
    column = np.concatenate([np.full(len(s.rows), j) for j, s in enumerate(suspects)])
    row = np.concatenate([s.rows for s in suspects])
    unusual = np.concatenate([s.unusual for s in suspects])
    shares = _Shares(np.full(len(RULES) + 1, FIRST), np.full(p, LOOSE), np.full(p, UNUSUAL))
    counts = np.array([len(place) for place in ordinary])
    ends = np.cumsum([len(s.rows) for s in suspects])[:-1]
    some = max(1, len(row) // ENOUGH)
    for _ in range(ROUNDS):
        kinds = np.hstack([s.kinds(at, odds) for s, at, odds in zip(suspects, ordinary, wrong, strict=True)])
        shares = shares.fitted(np.ascontiguousarray(kinds[:, ::some]), column[::some], unusual[::some], counts / some)
        joint = shares.joint(kinds, column, unusual)
        wrong = np.split(joint[2:].sum(axis=0), ends)
    odds = _named(suspects, row, column, joint, partners[row, column])
    for j in range(p):
        odds = _blamed_instead(model, X, cells, odds, j, writings[j])
    return odds


def _wide(z: Floats) -> Floats:
    """The density of a cell that is wrong by no rule."""
    return np.asarray(WIDE / (np.pi * (WIDE**2 + z**2)))


@final
@dataclass(frozen=True)
class _Shares:
    """Of all cells: wrong by each rule or otherwise, (rules + 1,); of each column's right cells: loose, (p,),
    and written unlike the others, (p,)."""

    wrong: Floats
    loose: Floats
    unusual: Floats

    def joint(self, kinds: Floats, column: Ints, unusual: Flags) -> Floats:
        """The probability of each kind, (kinds, m)."""
        loose = self.loose[column]
        right = (1.0 - self.wrong.sum()) * np.where(unusual, self.unusual[column], 1.0)
        out = np.vstack([right * (1.0 - loose) * kinds[0], right * loose * kinds[1], self.wrong[:, None] * kinds[2:]])
        return np.asarray(out / np.maximum(out.sum(axis=0), np.finfo(np.float64).tiny))

    def fitted(self, kinds: Floats, column: Ints, unusual: Flags, counts: Floats) -> _Shares:
        """The likeliest shares given the densities of the suspects; all other cells are right."""
        shares = self
        for _ in range(STEPS):
            joint = shares.joint(kinds, column, unusual)
            wrong = joint[2:].sum(axis=1) / (counts.sum() + PRIOR)
            loose = np.bincount(column, joint[1], minlength=len(counts))
            mean = loose.sum() / max(counts.sum(), 1)
            before = shares.wrong
            odd = np.bincount(column[unusual], joint[:2, unusual].sum(axis=0), minlength=len(counts))
            shares = _Shares(
                wrong,
                (loose + BORROWED * mean) / (counts + BORROWED),
                (odd + BORROWED * UNUSUAL) / (counts + BORROWED),
            )
            if np.all(np.abs(wrong - before) <= PRECISE * before + NONE):
                break
        return shares


def _named(suspects: list[_SuspectCells], row: Ints, column: Ints, joint: Floats, partner: Ints) -> CellOdds:
    """Who is wrong, and by which rule."""
    probability = joint[2:].sum(axis=0)
    best = [s.best() for s in suspects]
    fits, truths = np.hstack([b[0] for b in best]), np.hstack([b[1] for b in best])
    rule = joint[2:-1].argmax(axis=0)
    at = rule, np.arange(len(row))
    named = fits[at] & (joint[2:-1][at] > CLEAR * probability)
    return CellOdds(row, column, probability, np.where(named, rule, -1), truths[at], partner)


@final
class _CellDensity:
    """The density of a column's transformed values, each counting for the probability that it is right.

    Of arsinh z, which is z in the bulk and a logarithm further out, where there may be groups at any distance. Values
    come with their `_places` on the grid of that, which are found once and used several times.
    """

    def __init__(self, place: Places, right: Floats) -> None:
        self.total = max(float(right.sum()), 1.0)
        self.width = KERNEL * self.total**-0.2
        counts = np.bincount(place, right, minlength=2 * round(REACH / STEP) + 1)
        self.curve = gaussian_filter1d(counts, self.width / STEP, mode="constant") / (self.total * STEP)

    def at(self, z: Floats, place: Places) -> Floats:
        """The density at z."""
        inside = self.curve[place] / np.hypot(1.0, z)
        return np.asarray((1.0 - TAIL) * inside + TAIL / (np.pi * (1.0 + z**2)))

    def without(self, z: Floats, place: Places, right: Floats) -> Floats:
        """The density at values that are among those it is made of, each left out at its own place."""
        own = right / (np.sqrt(2 * np.pi) * self.width * self.total * np.hypot(1.0, z))
        return np.asarray(np.maximum(self.at(z, place) - (1.0 - TAIL) * own, TAIL / (np.pi * (1.0 + z**2))))


def _places(z: Floats) -> Places:
    """Where values are on the grid of a `_CellDensity`; there are 641 places."""
    at = np.clip(np.arcsinh(np.nan_to_num(z)), -REACH, REACH)
    return np.rint((at + REACH) / STEP).astype(np.int16)


def _blamed_instead(
    model: TableModel, X: Floats, cells: TableCells, odds: CellOdds, j: int, writing: Writing
) -> CellOdds:
    """The cell in column j in the place of the wrong one of the column it goes with most, where that has no rule, and
    where a rule for j explains the row better: of two copies that differ, either may be wrong."""
    P = np.abs(model.model.P) / np.sqrt(np.outer(np.diag(model.model.P), np.diag(model.model.P)))
    np.fill_diagonal(P, 0.0)
    friend = P.argmax(axis=1)
    at = np.flatnonzero((odds.probability > CLEAR) & (odds.rule < 0) & (friend[odds.column] == j))
    if not len(at):
        return odds
    rows, was = odds.row[at], odds.column[at]
    x, without = X[rows, j], X[rows]
    without[:, j] = np.nan
    again = model.judge(without)
    fine = np.isfinite(x) & ~again.mask.any(axis=1)
    mine = _SuspectCells(model, x, model.columns[j].into(x), fine, again, j, writing, np.full(len(x), np.nan))
    at, rows, was = at[mine.rows], rows[mine.rows], was[mine.rows]
    z = np.array([model.columns[k].into(X[i, [k]])[0] for i, k in zip(rows, was, strict=True)])
    right = norm.pdf(z, again.centre[mine.rows, was], again.sigma[mine.rows, was])  # the other one's, without this
    believed = norm.pdf(mine.z, cells.centre[rows, j], cells.sigma[rows, j])  # this one's, without the other
    fits, truths = mine.best()
    better = fits.any(axis=0) & (mine.lawful_truths.sum(axis=0) * right > _wide(z) * believed)
    column, rule, truth = odds.column.copy(), odds.rule.copy(), odds.truth.copy()
    best = fits.argmax(axis=0)
    column[at[better]], rule[at[better]] = j, best[better]
    truth[at[better]] = truths[best, np.arange(len(z))][better]
    return replace(odds, column=column, rule=rule, truth=truth)


def _partners(model: TableModel, X: Floats, cells: TableCells) -> Ints:
    """For each cell that is far off the column of another such cell of its row with which it may have been exchanged:
    each fits where the other stands. −1 for none."""
    partners = np.full(X.shape, -1)
    far = np.isfinite(X) & (np.abs(cells.scores) > FITS)
    reach = FITS * np.array([law.scale for law in model.model.laws]) * cells.sigma
    for i in np.flatnonzero(far.sum(axis=1) > 1).tolist():
        at = np.flatnonzero(far[i])
        moved = np.array([model.columns[j].into(X[i, at]) for j in at])
        fits = np.abs(moved - cells.centre[i, at, None]) <= reach[i, at, None]
        both = fits & fits.T
        partners[i, at] = np.where(both.any(axis=1), at[both.argmax(axis=1)], -1)
    return partners
