"""Blocks that fit the wrong ones of their examples, fitted again to few of them: a way out of a local minimum."""

from __future__ import annotations

from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from trimlearn.losses.blocks import BlockLoss, sum_by
from trimlearn.losses.newton_system import inverses

SUBSETS = 25  # tried for a block: a limit on time; all pairs of seven views are 21
STEPS = 6  # of Gauss and Newton for each: they double the digits of a point that begins within a tenth of its distance
DAMPING = 1e-6, 100.0  # of a unit diagonal, where a block is not determined; and what it is raised by after a rise
MISFIT = 10.0  # times the mean kept loss: a chance of e⁻¹⁰ for two normal residuals
TRIMMED = 0.3  # of a block's examples, from which on it may be the kept ones that are wrong: one of three


class Relocated(NamedTuple):
    """x with some blocks elsewhere, and how many residuals were evaluated to find them."""

    x: np.ndarray
    evaluated: int


def relocated(loss: BlockLoss, x: np.ndarray, f: np.ndarray, w: np.ndarray) -> Relocated:
    """x with every doubtful block of the eliminated group where it explains its examples best, the other groups fixed.

    One wrong view drags a point away from all others, and so far that a right one is trimmed in its place: no change
    of w or of x alone leads back. A block is doubtful where a kept example fits badly or a third of them is trimmed. It
    is fitted to as few examples as determine it, in turn, or to fewer where it has no more, and judged by Σ min(fᵢ, l)
    over all of its examples, l the largest kept loss (as in random sample consensus, Fischler and Bolles 1981).
    """
    slot, limit = loss.eliminated(), float(np.max(f[w > 0], initial=0.0))
    if slot is None or not np.isfinite(limit):
        return Relocated(x, 0)
    f = np.where(np.isfinite(f), f, np.inf)
    block = loss.sees[slot].block
    doubtful = _doubtful(f, w, block, loss.groups[loss.sees[slot].group][0])
    trial = _Trial.of(loss, x, f, slot, doubtful)
    if not len(trial.block):
        return Relocated(x, 0)
    places, evaluated = _fitted(loss, x, slot, trial)
    owner, rows = trial.all_owners, trial.all_rows
    found = loss.residuals(_seen(loss, x, slot, rows, places[owner]), rows)
    losses = np.minimum(np.nan_to_num(0.5 * np.sum(found**2, axis=1), nan=np.inf), limit)
    cost = np.bincount(owner, weights=losses, minlength=len(places))
    table = loss.split(x.copy())
    now = np.bincount(block, weights=np.minimum(f, limit), minlength=len(table[loss.sees[slot].group]))
    best = np.lexsort((cost, trial.block))
    best = best[np.unique(trial.block[best], return_index=True)[1]]
    better = best[cost[best] < now[trial.block[best]]]
    table[loss.sees[slot].group][trial.block[better]] = places[better]
    return Relocated(loss.join(*table), evaluated + len(rows))


class _Trial(NamedTuple):
    """Fits to try: the block of each, the examples it is fitted to, and those it is judged by, each with its owner."""

    block: np.ndarray
    owners: np.ndarray
    rows: np.ndarray
    all_owners: np.ndarray
    all_rows: np.ndarray

    @classmethod
    def of(cls, loss: BlockLoss, x: np.ndarray, f: np.ndarray, slot: int, doubtful: np.ndarray) -> _Trial:
        group, block = loss.sees[slot]
        most = -(-loss.groups[group][1] // loss.residual_size)
        order = np.lexsort((f, block))  # by loss, so that the order of rows does not matter
        begin = np.searchsorted(block[order], np.arange(loss.groups[group][0] + 1))
        rng = np.random.Generator(np.random.Philox(key=0))
        fits, everything = [], []
        for b in doubtful.tolist():
            members = order[begin[b] : begin[b + 1]]
            sizes = [most] if len(members) > most else range(1, len(members) + 1)
            subsets = list(chain.from_iterable(combinations(members.tolist(), size) for size in sizes))
            if len(subsets) > SUBSETS:
                subsets = [subsets[k] for k in rng.choice(len(subsets), SUBSETS, replace=False)]
            fits += [(b, subset) for subset in subsets]
            everything += [members] * len(subsets)
        number = np.arange(len(fits))
        return cls(
            np.array([b for b, _ in fits], np.int64),
            np.repeat(number, [len(subset) for _, subset in fits]),
            np.array([i for _, subset in fits for i in subset], np.int64),
            np.repeat(number, [len(members) for members in everything]),
            np.concatenate(everything) if everything else np.zeros(0, np.int64),
        )


def _doubtful(f: np.ndarray, w: np.ndarray, block: np.ndarray, count: int) -> np.ndarray:
    """The blocks with a kept example that fits badly, or with many trimmed ones."""
    kept = w > 0
    seen, gone = np.bincount(block, minlength=count), np.bincount(block[~kept], minlength=count)
    worst = np.zeros(count)
    np.maximum.at(worst, block[kept], f[kept])
    bad = worst > MISFIT * float(np.mean(f[kept]))
    return np.flatnonzero((seen > 1) & (bad | (gone >= TRIMMED * seen)))


def _seen(loss: BlockLoss, x: np.ndarray, slot: int, rows: np.ndarray, places: np.ndarray) -> list[np.ndarray]:
    """What the examples see, with these places for their blocks of the eliminated group."""
    blocks = loss.blocks(x, rows)
    return [*blocks[:slot], places, *blocks[slot + 1 :]]


def _fitted(loss: BlockLoss, x: np.ndarray, slot: int, trial: _Trial) -> tuple[np.ndarray, int]:
    """Where each fit ends, and how many residuals that took: damped Gauss–Newton steps, of all fits at a time."""
    places = loss.split(x)[loss.sees[slot].group][trial.block]
    size, owner, rows = places.shape[1], trial.owners, trial.rows
    damping = np.full(len(places), DAMPING[0])

    def total(at: np.ndarray) -> np.ndarray:
        r = loss.residuals(_seen(loss, x, slot, rows, at[owner]), rows)
        return np.bincount(owner, weights=np.sum(r * r, axis=1), minlength=len(at))

    value = total(places)
    for _ in range(STEPS):
        blocks = _seen(loss, x, slot, rows, places[owner])
        r, J = loss.residuals(blocks, rows), loss.jacobian(blocks, rows)[slot]
        A = sum_by(np.einsum("mka,mkb->mab", J, J).reshape(len(rows), -1), owner, len(places)).reshape(-1, size, size)
        g = sum_by(np.einsum("mka,mk->ma", J, r), owner, len(places))
        A = np.nan_to_num(A + damping[:, None, None] * np.einsum("cii->ci", A)[:, :, None] * np.eye(size))
        new = places - np.einsum("cab,cb->ca", inverses(A), g)
        found = total(new)
        lower = found < value
        places, value = np.where(lower[:, None], new, places), np.where(lower, found, value)
        damping = np.where(lower, damping, DAMPING[1] * np.maximum(damping, 1e-4))
    return places, (2 * STEPS + 1) * len(rows)
