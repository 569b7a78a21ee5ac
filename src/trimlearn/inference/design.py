"""The design matrix, (1, X) or X, in blocks of dense rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.validation import is_sparse

Matrix = NDArray[np.float64]

BLOCK = 2**21  # numbers in a block, a limit on memory: 16 MB


def design(X: Any, intercept: bool) -> Matrix:
    """(1, X) or X as a dense matrix of float64.

    >>> design(np.array([[2], [3]]), intercept=True).tolist()
    [[1.0, 2.0], [1.0, 3.0]]
    """
    dense: Any = X.toarray() if is_sparse(X) else X
    A = np.asarray(dense, dtype=np.float64)
    return np.column_stack([np.ones(len(A)), A]) if intercept else A


def design_blocks(X: Any, intercept: bool, numbers: int, least: int = 1) -> Iterator[tuple[slice, Matrix]]:
    """Blocks of rows and where they lie, so that X, sparse or a memory map, is never dense as a whole.

    ``numbers``: how many the caller makes of each row; ``least``: rows in a block, however many numbers those are.

    >>> [(rows.start, A.shape) for rows, A in design_blocks(np.ones((5, 2)), True, numbers=BLOCK // 3)]
    [(0, (3, 3)), (3, (2, 3))]
    """
    step = max(1, BLOCK // max(1, numbers), least)
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        yield rows, design(X[rows], intercept)
