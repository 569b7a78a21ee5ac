"""A first noise matrix: which labels the examples bear that a model is surest of.

A model that was fitted to wrong labels predicts them, with the right odds: blurred classes and wrong labels explain
its predictions equally well. What tells them apart are the examples that it is surest of, among those it has not seen.
If labels are right, theirs are; if a share of all labels is wrong, so is a share of theirs, however clear the example
(Patrini et al. 2017 call them anchors; Northcutt et al. 2021 count labels as well). Their labels are counted, because
what a model says about its own errors is too good.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["anchor_noise"]

# Of the examples that a model takes for a class, the share that is surest. On 8,000 digits of which 40 % are shifted by
# one, 0.5, 0.2 and 0.05 give 43, 44 and 44 % of wrong labels, and 0.1, 0.1 and 0 % on the same digits as they are.
SUREST = 0.2
LEAST = 20  # anchors of a class: a share of 20 % then has a standard error of 9 points
MOST_WRONG = 0.5  # of a class: with more, what is called its label would be another one's


def anchor_noise(log_p: NDArray[np.float64], labels: NDArray[np.int64], s: NDArray[np.float64]) -> NDArray[np.float64]:
    """T[k, j], the share of labels j among the anchors of class k, from log-probabilities (n, K) out of sample; s: the
    weights of the rows.

    >>> rng = np.random.default_rng(0)
    >>> classes = np.repeat([0, 1, 2], 200)
    >>> labels = np.where(np.arange(600) % 5 == 0, (classes + 1) % 3, classes)
    >>> z = rng.uniform(1, 3, 600)[:, None] * np.eye(3)[classes]
    >>> float((1 - np.diag(anchor_noise(z, labels, np.ones(600)))).mean().round(1))
    0.2
    """
    K = log_p.shape[1]
    T, taken = np.eye(K), log_p.argmax(axis=1)
    for k in range(K):
        own = np.flatnonzero((taken == k) & (s > 0))
        surest = own[np.argsort(-log_p[own, k], kind="stable")][: max(LEAST, int(SUREST * len(own)))]
        if len(surest) < LEAST:
            continue
        counts = np.bincount(labels[surest], s[surest], K)
        T[k] = counts / counts.sum()
        wrong = 1 - T[k, k]
        if wrong > MOST_WRONG:
            T[k] *= MOST_WRONG / wrong
            T[k, k] = 1 - MOST_WRONG
    return T
