"""What a user is told about each example: how bad, how unlikely, of which kind, and which features matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from trimlearn.inference.precision import design
from trimlearn.inference.text import find_pandas, grid, markdown
from trimlearn.validation import check_choice

__all__ = [
    "Findings",
    "TopFeatures",
    "classifier_p_values",
    "distance_parts",
    "label_kinds",
    "leverage_kinds",
    "logit_parts",
    "make_table",
    "plain_kinds",
    "prediction_parts",
    "reconstruction_parts",
    "render",
    "suggest_labels",
    "top_features",
]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]

REGULAR = "regular"
BLOCK = 2**21  # entries of X looked at in one go


@final
@dataclass(frozen=True)
class TopFeatures:
    """The features with the largest parts in what makes each row special, largest first: (n, k) each."""

    features: NDArray[np.int64]
    shares: Vector  # part / Σ|parts|, with its sign; 0 where nothing has a part


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


def label_kinds(P: Matrix, given: NDArray[np.int64], off: Flags, far: Flags | None = None) -> NDArray[np.str_]:
    """ "suspected mislabel": off, and the model gives more than half of its probability P (n, K) to one other label.

    "atypical": off, and no other label is likely; or ``far`` from all examples in X, where a model only extrapolates.

    >>> P = np.array([[0.9, 0.1, 0.0], [0.3, 0.4, 0.3], [0.1, 0.8, 0.1]])
    >>> label_kinds(P, np.array([1, 2, 1]), np.array([True, True, False])).tolist()
    ['suspected mislabel', 'atypical', 'regular']
    """
    other = (P.argmax(axis=1) != given) & (P.max(axis=1) > 0.5)
    far = np.zeros_like(off) if far is None else far
    return np.select([off & other & ~far, off | far], ["suspected mislabel", "atypical"], REGULAR)


def plain_kinds(off: Flags) -> NDArray[np.str_]:
    """ "outlier" or "regular"."""
    return np.where(off, "outlier", REGULAR)


def suggest_labels(P: Matrix, given: NDArray[np.int64], kind: NDArray[np.str_]) -> tuple[NDArray[np.int64], Vector]:
    """The most probable label of suspected mislabels, the given one elsewhere; and the model's probability of it."""
    label = np.where(kind == "suspected mislabel", P.argmax(axis=1), given)
    return label, P[np.arange(len(P)), label]


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


def prediction_parts(X: Matrix, coef: Vector, center: Vector) -> Matrix:
    """coefⱼ(xⱼ − centerⱼ): they sum to how far the (linear) prediction is from that at the centre."""
    return np.asarray((X - center) * coef)


def logit_parts(
    X: Matrix, coef: Matrix, center: Matrix, given: NDArray[np.int64], suggested: NDArray[np.int64]
) -> Matrix:
    """(coef_s − coef_g)ⱼ(xⱼ − centerⱼ): what speaks for label s in place of g, beside what does for every example.

    coef (K, p), or (1, p) for two classes as scikit-learn has it; center (p,), or (K, p): that of the given class, to
    learn what is unusual for it.
    """
    coef = np.concatenate([np.zeros_like(coef), coef]) if len(coef) == 1 else coef
    return np.asarray((X - (center[given] if center.ndim == 2 else center)) * (coef[suggested] - coef[given]))


def reconstruction_parts(X: Matrix, center: Vector, components: Matrix) -> Matrix:
    """Squared residuals from the subspace of the orthonormal rows of components: they sum to the squared distance."""
    Z = X - center
    return np.asarray((Z - (Z @ components.T) @ components) ** 2)


def top_features(X: Any, parts: Callable[[Matrix, NDArray[np.int64]], Matrix], k: int = 3) -> TopFeatures:
    """The k features of every row of X, dense or CSR, whose ``parts(rows of X, their numbers)`` are largest in size.

    >>> X = np.array([[3.0, 1.0], [0.0, 2.0]])
    >>> top = top_features(X, lambda A, i: distance_parts(A, np.zeros(2), np.eye(2)), k=1)
    >>> top.features.ravel(), top.shares.ravel()
    (array([0, 1]), array([0.9, 1. ]))
    """
    n, p = X.shape
    k, step = min(k, p), max(1, BLOCK // max(1, p))
    features, shares = np.zeros((n, k), dtype=np.int64), np.zeros((n, k))
    for start in range(0, n, step):
        rows = np.arange(start, min(n, start + step))
        C = parts(design(X[start : start + step], intercept=False), rows)
        size, i = np.abs(C), rows - start
        total = np.sum(size, axis=1, keepdims=True)
        for j in range(k):  # sorting 784 features takes over 20 times as long
            features[rows, j] = size.argmax(axis=1)
            size[i, features[rows, j]] = -1.0
        chosen = np.take_along_axis(C, features[rows], axis=1)
        shares[rows] = np.divide(chosen, total, out=np.zeros_like(chosen), where=total > 0)
    return TopFeatures(features, shares)


# -- the table --------------------------------------------------------------------------------------------------------


def make_table(
    findings: Findings,
    weights: NDArray[Any],
    feature_names: Sequence[str] | None = None,
    index: Sequence[Any] | None = None,
    rows: NDArray[np.int64] | None = None,
) -> Any:
    """A pandas DataFrame, or a NumPy structured array of the same columns where pandas is not installed; worst first.

    ``row``: number of the example; ``name``: its entry of ``index``; ``p_adjusted``: p-values after Benjamini and
    Hochberg (1995), among all examples: of those below 5 %, about 5 % are false alarms; ``features``: "name share"
    of those with the largest parts. ``rows``: a selection. Columns of which nothing is known are left out.

    >>> found = Findings(np.array([0.1, 9.0]), np.array([0.9, 1e-6]), np.array(["regular", "outlier"]))
    >>> print(render(make_table(found, np.array([1.0, 0.0]))))
    row  weight  outlier  score  p_value  p_adjusted     kind
      1       0     True      9    1e-06       2e-06  outlier
      0       1    False    0.1      0.9         0.9  regular
    """
    columns = _columns(findings, np.asarray(weights), feature_names, index)
    chosen = columns["row"] if rows is None else np.asarray(rows)
    order = chosen[np.argsort(-columns["score"][chosen], kind="stable")]
    columns = {name: column[order] for name, column in columns.items()}
    pandas = find_pandas()
    return _structured(columns) if pandas is None else pandas.DataFrame(columns)


def _columns(found: Findings, weights: NDArray[Any], features: Any, index: Any) -> dict[str, NDArray[Any]]:
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
        "features": None if found.top is None else describe(found.top, features),
    }
    columns = {name: np.asarray(column) for name, column in known.items() if column is not None}
    for name, column in columns.items():
        if len(column) != n:
            raise ValueError(f"{name} has {len(column)} entries, the scores have {n}; give one per example.")
    return columns


def describe(top: TopFeatures, names: Sequence[str] | None = None) -> NDArray[np.str_]:
    """Top features in words: "age 62%, income -20%"; those without a part are left out."""
    name = {j: f"x{j}" if names is None else str(names[j]) for j in np.unique(top.features).tolist()}
    pairs = zip(top.features.tolist(), top.shares.tolist(), strict=True)
    words = [
        ", ".join(f"{name[j]} {share:.0%}" for j, share in zip(*pair, strict=True) if abs(share) >= 0.005)
        for pair in pairs
    ]
    return np.asarray(words, dtype=np.str_)


def _structured(columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
    table = np.empty(len(columns["row"]), dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table


def render(table: Any, rows: int = 10, style: str = "text") -> str:
    """The first rows of a table of `make_table` as text, or as Markdown with style="markdown"."""
    check_choice(style, ("text", "markdown"), "style")
    names = list(table.dtype.names if isinstance(table, np.ndarray) else table.columns)
    cells = [[_cell(value) for value in np.asarray(table[name])[:rows]] for name in names]
    lines = [names, *map(list, zip(*cells, strict=True))]
    left = [j for j, name in enumerate(names) if name == "features"]
    text = markdown(lines) if style == "markdown" else grid(lines, left)
    return "\n".join([*text, f"({len(table) - rows} more)"] if len(table) > rows else text)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)
