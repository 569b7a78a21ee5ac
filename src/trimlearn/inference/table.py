"""What a user is told about each example: how bad, how unlikely, of which kind, and which features matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import false_discovery_control

from trimlearn.inference.design import Matrix, design_blocks
from trimlearn.inference.outlier_table import OutlierTable

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]

REGULAR = "regular"
ROUNDED = 0.005  # a share that prints as 0 % is not worth a word

Parts = Callable[[Matrix, NDArray[np.int64]], Matrix]  # (m dense rows of X, their numbers) -> (m, p)


@final
@dataclass(frozen=True)
class ColumnOrigins:
    """Where the columns of X come from: column j is a part of ``names[column[j]]``, such as a dummy of a category."""

    names: tuple[str, ...]
    column: NDArray[np.int64]


@final
@dataclass(frozen=True)
class TopFeatures:
    """Which features make each row of X, dense or CSR, special: those whose ``parts`` are largest in size."""

    X: Any
    parts: Parts

    def largest(self, k: int = 3, origins: ColumnOrigins | None = None) -> tuple[NDArray[np.int64], Vector]:
        """The k features with the largest parts of every row, largest first, and part / Σ|parts|, with its sign.

        ``origins``: the parts of columns of one origin are summed, and origins take the place of features.

        >>> top = TopFeatures(np.array([[3.0, 1.0], [0.0, 2.0]]), lambda A, rows: A**2)
        >>> features, shares = top.largest(k=1)
        >>> features.ravel(), shares.ravel()
        (array([0, 1]), array([0.9, 1. ]))
        """
        n, p = self.X.shape
        count = p if origins is None else len(origins.names)
        k = min(k, count)
        features, shares = np.zeros((n, k), dtype=np.int64), np.zeros((n, k))
        for rows, A in design_blocks(self.X, intercept=False, numbers=p):
            C = self.parts(A, np.arange(n)[rows])
            if origins is not None:
                C = np.asarray(C @ _indicator(origins))
            size, i = np.abs(C), np.arange(len(C))
            total = np.sum(size, axis=1, keepdims=True)
            for j in range(k):  # sorting 784 features takes over 20 times as long
                features[rows, j] = size.argmax(axis=1)
                size[i, features[rows, j]] = -1.0
            chosen = np.take_along_axis(C, features[rows], axis=1)
            shares[rows] = np.divide(chosen, total, out=np.zeros_like(chosen), where=total > 0)
        return features, shares


def _indicator(origins: ColumnOrigins) -> csr_array:
    """(p, origins), 1 where a column belongs to an origin."""
    p = len(origins.column)
    return csr_array((np.ones(p), (np.arange(p), origins.column)), shape=(p, len(origins.names)))


@final
@dataclass(frozen=True)
class Findings:
    """One entry per example. ``score``: larger is worse; ``p_value`` under the inlier model; ``kind`` in words."""

    score: Vector
    p_value: Vector
    kind: NDArray[np.str_]
    given: NDArray[Any] | None = None  # label
    suggested: NDArray[Any] | None = None  # label, the given one unless it is suspected
    confidence: Vector | None = None  # of the model in the label suggested
    distance: Vector | None = None  # robust, in X
    probability: Vector | None = None  # that the row is wrong
    top: TopFeatures | None = None
    words: NDArray[np.str_] | None = None  # in place of the top features, where they are not empty

    def __str__(self) -> str:
        counts = Counter(map(str, self.kind)).most_common()
        return f"{len(self.score)} examples: " + ", ".join(f"{count} {kind}" for kind, count in counts)


# -- kinds ------------------------------------------------------------------------------------------------------------


def leverage_kinds(off: Flags, far: Flags, name: str = "vertical outlier") -> NDArray[np.str_]:
    """Of examples ``off`` the model (large residual) and ``far`` from the others within it (large distance).

    ``name``: what is off but not far, "vertical outlier" in regression, "orthogonal outlier" in PCA (Rousseeuw and van
    Zomeren 1990; Hubert, Rousseeuw and Vanden Branden 2005). Far and not off: "good leverage", which helps.

    >>> leverage_kinds(np.array([True, True, False, False]), np.array([False, True, True, False])).tolist()
    ['vertical outlier', 'bad leverage', 'good leverage', 'regular']
    """
    return np.select([off & far, off, far], ["bad leverage", name, "good leverage"], REGULAR)


def label_kinds(off: Flags, moved: Flags, wild: Flags | None = None) -> NDArray[np.str_]:
    """ "suspected mislabel": off, and another label is more likely. "atypical": off, but no other label is likely.
    "wild features": an entry of X that is no measurement of anything; what it says of the label counts for nothing.

    >>> label_kinds(np.array([True, True, False]), np.array([True, False, False])).tolist()
    ['suspected mislabel', 'atypical', 'regular']
    """
    wild = np.zeros_like(off) if wild is None else wild
    return np.select([wild, off & moved, off], ["wild features", "suspected mislabel", "atypical"], REGULAR)


def plain_kinds(off: Flags) -> NDArray[np.str_]:
    """ "outlier" or "regular"."""
    return np.where(off, "outlier", REGULAR)


def residual_words(residual: Vector, scores: Vector, which: Flags) -> NDArray[np.str_]:
    """How far y is off, in units of its scale, for the rows ``which``; nothing for the others.

    >>> residual_words(np.array([8.0, -1.0]), np.array([4.0, 0.5]), np.array([True, False])).tolist()
    ['y is 4 sigma too high', '']
    """
    words = [
        f"y is {score:.3g} sigma too {'high' if r > 0 else 'low'}" if chosen else ""
        for r, score, chosen in zip(residual.tolist(), scores.tolist(), which.tolist(), strict=True)
    ]
    return np.asarray(words, dtype=np.str_)


def classifier_p_values(P: Matrix, given: NDArray[np.int64]) -> Vector:
    """Σ of Pₖ over the labels k no more probable than the given one: P(p ≤ α) ≤ α if the model is right.

    >>> classifier_p_values(np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]]), np.array([0, 1])).round(3)
    array([1. , 0.3])
    """
    own = P[np.arange(len(P)), given][:, None]
    return np.asarray(np.minimum(1.0, np.sum(np.where(P <= own, P, 0.0), axis=1)))


# -- parts of the features, each (m, p) for a block of dense rows -----------------------------------------------------


def distance_parts(X: Matrix, center: Vector, precision: Matrix) -> Matrix:
    """zⱼ(Σ⁻¹z)ⱼ, z = x − center: they sum to the squared robust distance."""
    Z = X - center
    return np.asarray(Z * (Z @ precision))


def logit_parts(
    X: Matrix, coef: Matrix, center: Matrix, given: NDArray[np.int64], suggested: NDArray[np.int64]
) -> Matrix:
    """(coef_s − coef_g)ⱼ(xⱼ − centerⱼ): what speaks for label s in place of g, beside what does for every example.

    coef (K, p), or (1, p) for two classes as scikit-learn has it; center (p,), or (K, p): that of the given class, to
    learn what is unusual for it.
    """
    coef = np.concatenate([np.zeros_like(coef), coef]) if len(coef) == 1 else coef
    return np.asarray((X - (center[given] if center.ndim == 2 else center)) * (coef[suggested] - coef[given]))


# -- the table --------------------------------------------------------------------------------------------------------


def make_table(
    findings: Findings,
    weights: NDArray[Any],
    features: Sequence[str] | ColumnOrigins | None = None,
    index: Sequence[Any] | NDArray[Any] | None = None,
) -> OutlierTable:
    """All that is known about the examples, worst first.

    ``row``: number of the example; ``name``: its entry of ``index``; ``p_adjusted``: p-values after Benjamini and
    Hochberg (1995), among all examples: of those below 5 %, about 5 % are false alarms; ``features``: "name share"
    of those with the largest parts, or what is said in their place. Columns of which nothing is known are left out.

    >>> found = Findings(np.array([0.1, 9.0]), np.array([0.9, 1e-6]), np.array(["regular", "outlier"]))
    >>> make_table(found, np.array([1.0, 0.0]))
    row  weight  outlier  score  p_value  p_adjusted     kind
      1       0     True      9    1e-06       2e-06  outlier
      0       1    False    0.1      0.9         0.9  regular
    """
    columns = _columns(findings, np.asarray(weights), features, index)
    return OutlierTable(columns).chosen(np.argsort(-findings.score, kind="stable"))


def _columns(found: Findings, weights: NDArray[Any], features: Any, index: Any) -> dict[str, Any]:
    n = len(found.score)
    known: dict[str, Any] = {
        "row": np.arange(n),
        "name": index,
        "weight": weights,
        "outlier": weights <= 0,
        "score": found.score,
        "p_value": found.p_value,
        "p_adjusted": false_discovery_control(found.p_value) if n else found.p_value,
        "probability": found.probability,
        "kind": found.kind,
        "given": found.given,
        "suggested": found.suggested,
        "confidence": found.confidence,
        "distance": found.distance,
        "features": _features(found, features),
    }
    columns = {name: column for name, column in known.items() if column is not None}
    for name, column in columns.items():
        if len(column) != n:
            raise ValueError(f"{name} has {len(column)} entries, the scores have {n}; give one per example.")
    return columns


def _features(found: Findings, features: Any) -> NDArray[np.str_] | None:
    """What makes each row special, in words."""
    if found.top is None or found.words is None:
        return found.words if found.top is None else describe(found.top, features)
    return np.where(found.words == "", describe(found.top, features), found.words)


def describe(top: TopFeatures, features: Sequence[str] | ColumnOrigins | None = None) -> NDArray[np.str_]:
    """Top features in words: "age 62%, income -20%"; those without a part are left out."""
    origins = features if isinstance(features, ColumnOrigins) else None
    names = features.names if isinstance(features, ColumnOrigins) else features
    largest, shares = top.largest(origins=origins)
    name = {j: f"x{j}" if names is None else str(names[j]) for j in np.unique(largest).tolist()}
    words = [
        ", ".join(f"{name[j]} {share:.0%}" for j, share in zip(*pair, strict=True) if abs(share) >= ROUNDED)
        for pair in zip(largest.tolist(), shares.tolist(), strict=True)
    ]
    return np.asarray(words, dtype=np.str_)
