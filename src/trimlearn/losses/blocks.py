"""Losses whose examples see a few blocks of many parameters each: half the squared norm of a residual."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, final

import numpy as np

from trimlearn._utils.arrays import Array, sum64
from trimlearn._utils.validation import check_count, is_integer
from trimlearn.losses.base import Loss, select
from trimlearn.losses.newton_system import DenseSystem, NewtonSystem, SchurSystem
from trimlearn.losses.storage import Rows

STEP = np.finfo(np.float64).eps ** (1 / 3)  # of a central difference: where truncation and rounding are equal


class Sees(NamedTuple):
    """Which block of a group each example sees.

    Parameters
    ----------
    group : int
        The number of the group.
    block : integer array of shape (n,)
        For every example the number of the block.

    Examples
    --------
    >>> Sees(0, [2, 0, 1]).block
    [2, 0, 1]
    """

    group: int
    block: Any


class BlockLoss(Loss):
    """Losses fᵢ(x) = ½‖rᵢ(x)‖² of residuals rᵢ ∈ R^k that see one block of x each, or a few.

    Cameras and points, users and films: x is flat, groups of parameters one after the other, each of ``count`` blocks
    of ``size`` numbers. The Hessian is Gauss and Newton's, Σ cᵢJᵢᵀJᵢ, in blocks: of the groups that an example sees
    once, the one with the most parameters is eliminated (`SchurSystem`), so that a Newton step costs little more than a
    pass over the data, plus the cube of the number of the other parameters. A subclass says what the residuals are
    (`residuals`), and may say how they change (`jacobian`).

    Parameters
    ----------
    groups : sequence of (count, size)
        The groups of parameters.
    sees : sequence of Sees
        Which blocks an example sees, in the order in which `residuals` gets them.

    Attributes
    ----------
    n : int
        How many examples there are.
    x_shape : tuple of int
        The shape of x.
    like : array
        An array with the namespace, device and dtype that x has.

    Examples
    --------
    Ratings of films by users, each a product of a user's and a film's number:

    >>> import numpy as np
    >>> from trimlearn.losses import BlockLoss, Sees
    >>> class Ratings(BlockLoss):
    ...     def __init__(self, user, film, rating):
    ...         super().__init__([(2, 1), (3, 1)], [Sees(0, user), Sees(1, film)])
    ...         self.rating = np.asarray(rating)
    ...     def residuals(self, blocks, rows=None):
    ...         user, film = blocks
    ...         return user * film - (self.rating if rows is None else self.rating[rows])[:, None]
    >>> loss = Ratings([0, 0, 1, 1], [0, 1, 1, 2], [1.0, 2.0, 4.0, 6.0])
    >>> loss.values(loss.join([[1.0], [2.0]], [[1.0], [2.0], [2.0]]))
    array([0., 0., 0., 2.])
    """

    def __init__(self, groups: Sequence[tuple[int, int]], sees: Sequence[Sees]) -> None:
        self.groups = [(check_count(count, "count"), check_count(size, "size")) for count, size in groups]
        if not sees:
            raise ValueError("sees must name at least one block for every example.")
        self.sees = [_checked(seen, self.groups) for seen in sees]
        lengths = {len(seen.block) for seen in self.sees}
        if len(lengths) > 1:
            raise ValueError(f"sees must have one block per example each, got lengths {sorted(lengths)}.")
        ends = np.cumsum([0, *(prod(group) for group in self.groups)]).tolist()
        self._parts = [slice(*part) for part in pairwise(ends)]
        self.n, self.x_shape, self.like = lengths.pop(), (ends[-1],), np.zeros(0)

    @abstractmethod
    def residuals(self, blocks: list[Array], rows: Rows = None) -> Array:
        """rᵢ, of shape (m, k), where ``blocks`` are what the examples see, each of shape (m, size)."""

    def jacobian(self, blocks: list[Array], rows: Rows = None) -> list[Array]:
        """∂rᵢ by each of the blocks, of shapes (m, k, size): by central differences, unless a subclass knows better."""
        found = []
        for at, block in enumerate(blocks):
            columns = []
            for j in range(block.shape[1]):
                h = STEP * np.maximum(np.abs(block[:, j]), 1.0)
                moved = [block + sign * h[:, None] * np.eye(block.shape[1])[j] for sign in (1, -1)]
                ahead, back = (self.residuals([*blocks[:at], b, *blocks[at + 1 :]], rows) for b in moved)
                columns.append((ahead - back) / (2 * h[:, None]))
            found.append(np.stack(columns, axis=2))
        return found

    @final
    def split(self, x: Array) -> list[Array]:
        """The groups of x, each of shape (count, size)."""
        return [x[part].reshape(group) for part, group in zip(self._parts, self.groups, strict=True)]

    @final
    def join(self, *groups: Any) -> Array:
        """The x of which these are the groups."""
        return np.concatenate([np.asarray(group, np.float64).ravel() for group in groups])

    @property
    @final
    def residual_size(self) -> int:
        """How many numbers k a residual has."""
        return int(self.residuals(self.blocks(self.start(), slice(0, 1)), slice(0, 1)).shape[1])

    @property
    def minimal(self) -> int:
        return min(self.n, -(-self.x_shape[0] // self.residual_size))

    @final
    def values(self, x: Array, rows: Rows = None) -> Array:
        return 0.5 * np.sum(self.residuals(self.blocks(x, rows), rows) ** 2, axis=1)

    @final
    def gradient(self, x: Array, c: Array, rows: Rows = None) -> Array:
        return self.value_gradient(x, c, rows)[1]

    @final
    def value_gradient(self, x: Array, c: Array, rows: Rows = None) -> tuple[float, Array]:
        rows, c = self._counting(c, rows)
        blocks = self.blocks(x, rows)
        r = self.residuals(blocks, rows)
        return sum64(0.5 * c * np.sum(r * r, axis=1)), self._pull(self.jacobian(blocks, rows), c[:, None] * r, rows)

    @final
    def hessp(self, x: Array, u: Array, c: Array, rows: Rows = None) -> Array:
        """Σ cᵢJᵢᵀJᵢu."""
        rows, c = self._counting(c, rows)
        J = self.jacobian(self.blocks(x, rows), rows)
        moved = sum(np.einsum("mkd,md->mk", D, du) for D, du in zip(J, self.blocks(u, rows), strict=True))
        return self._pull(J, c[:, None] * moved, rows)

    @final
    def hessian(self, x: Array, c: Array) -> np.ndarray:
        return self.newton_system(x, c).matrix()

    @final
    def newton_system(self, x: Array, c: Array) -> NewtonSystem:
        """Σ cᵢJᵢᵀJᵢ in blocks, for c ≥ 0."""
        rows, c = self._counting(c, None)
        root = np.sqrt(c)[:, None, None]
        J = [D * root for D in self.jacobian(self.blocks(x, rows), rows)]
        all_of_x = _sparse(J, [self._columns(slot, rows) for slot in range(len(J))], self.x_shape[0])
        gone = self.eliminated()
        if gone is None:
            return DenseSystem((all_of_x.T @ all_of_x).toarray())
        group, block = self.sees[gone]
        count, size = self.groups[group]
        go = np.arange(self.x_shape[0])[self._parts[group]]
        stay = np.delete(np.arange(self.x_shape[0]), go)
        squares = np.einsum("mka,mkb->mab", J[gone], J[gone]).reshape(len(c), -1)
        C = sum_by(squares, block[rows], count).reshape(count, size, size)
        first, last = all_of_x[:, stay], all_of_x[:, go]
        return SchurSystem((first.T @ first).toarray(), first.T @ last, C, stay, go)

    @final
    def eliminated(self) -> int | None:
        """Which of ``sees`` has the group that is eliminated; None where all groups are seen several times."""
        seen = [slot.group for slot in self.sees]
        once = [slot for slot, group in enumerate(seen) if seen.count(group) == 1]
        return max(once, key=lambda slot: prod(self.groups[seen[slot]])) if once else None

    @final
    def _columns(self, slot: int, rows: Rows) -> np.ndarray:
        """Where in x the numbers are that the examples see, (m, size)."""
        group, block = self.sees[slot]
        size = self.groups[group][1]
        return np.asarray(self._parts[group].start + size * select(block, rows)[:, None] + np.arange(size))

    @final
    def blocks(self, x: Array, rows: Rows = None) -> list[Array]:
        """What the examples see of x, each of shape (m, size)."""
        groups = self.split(x)
        return [groups[seen.group][select(seen.block, rows)] for seen in self.sees]

    @final
    def _counting(self, c: Array, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The rows with cᵢ ≠ 0, and their cᵢ: the others must not be touched, whatever their residuals."""
        c = np.asarray(c, np.float64)
        kept = np.flatnonzero(c)
        return (kept if rows is None else select(np.arange(self.n), rows)[kept]), c[kept]

    @final
    def _pull(self, J: list[Array], r: Array, rows: Rows) -> Array:
        """Σ Jᵢᵀrᵢ."""
        found = [np.zeros(group) for group in self.groups]
        for D, (group, block) in zip(J, self.sees, strict=True):
            found[group] += sum_by(np.einsum("mkd,mk->md", D, r), select(block, rows), self.groups[group][0])
        return self.join(*found)


def _checked(seen: Sees, groups: list[tuple[int, int]]) -> Sees:
    group, block = seen[0], np.asarray(seen[1])
    if not is_integer(group) or not 0 <= group < len(groups):
        raise ValueError(f"sees must name groups from 0 to {len(groups) - 1}, got {group!r}.")
    if block.ndim != 1 or block.dtype.kind not in "iu":
        raise ValueError(f"sees must have a 1-D array of integers for group {group}, got {block.dtype} {block.shape}.")
    if block.size and not (block.min() >= 0 and block.max() < groups[group][0]):
        most = groups[group][0] - 1
        raise ValueError(f"sees must name blocks 0 to {most} of group {group}, got {block.min()} to {block.max()}.")
    return Sees(int(group), block.astype(np.int64))


def _sparse(J: list[np.ndarray], columns: list[np.ndarray], width: int) -> Any:
    """All Jᵢ as one sparse matrix, with a row for every number of every residual."""
    from scipy.sparse import csr_array

    data = np.concatenate(J, axis=2)
    m, k, wide = data.shape
    index = np.repeat(np.concatenate(columns, axis=1)[:, None, :], k, axis=1)
    return csr_array((data.ravel(), index.ravel(), np.arange(0, m * k * wide + 1, wide)), shape=(m * k, width))


def sum_by(values: np.ndarray, block: np.ndarray, count: int) -> np.ndarray:
    """Σ of the rows of values (m, d) over each of ``count`` blocks, (count, d)."""
    d = values.shape[1]
    at = (block[:, None] * d + np.arange(d)).ravel()
    return np.asarray(np.bincount(at, weights=values.ravel(), minlength=count * d).reshape(count, d), np.float64)
