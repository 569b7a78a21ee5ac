"""The doors of the linear models for data larger than memory: what is streamed, a sample of it, predictions for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.blocks import rows_apart
from trimlearn._utils.threads import team, team_size
from trimlearn._utils.validation import is_integer
from trimlearn.progress import stage
from trimlearn.smart.method import FEW
from trimlearn.streams import Dataset, OrderedCopy, ShuffledCopy, open_dataset

STREAMED = 1 << 26  # numbers in X from which on it is streamed: a limit on memory, 0.3 GB in float32 and some copies
WHOLE = 1 << 22  # numbers in X up to which labels are always read into memory: 34 MB in float64, which nobody misses
SAMPLED = 20_000  # rows that a streamed fit starts from: a share of 20 % is known to 0.3 points
PER_COLUMN = 20  # rows of the sample for each column, at least: then a fit errs by a fifth of σ in its predictions
MOST = 20_000_000  # numbers in the sample: a limit on memory, 160 MB in float64


def opened(X: Any, y: Any, sample_weight: Any = None, fit_of: Any = None) -> Dataset | None:
    """The dataset meant by X and y; None where they are arrays for memory.

    A path, a list of them or a table takes the name of its target as y. A large array is streamed too in a ``fit_of``
    an estimator that can, so that the same rows give the same fit whatever they lie in.
    """
    several = isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (str, os.PathLike))
    if several or isinstance(X, (str, os.PathLike)) or hasattr(X, "files"):
        if not isinstance(y, str) and not is_integer(y):
            named = "the files" if several or hasattr(X, "files") else X
            raise ValueError(f"y must name the column of {named} that holds the target, got {type(y).__name__}.")
        X, y = open_dataset(X, y), None
    elif isinstance(y, str) and X is not None and not isinstance(X, Dataset):
        X, y = open_dataset(X, y), None
    if isinstance(X, Dataset):
        if y is not None:
            raise ValueError("y is part of the dataset: name it in open_dataset(..., target=) and give no other.")
        if sample_weight is not None:
            raise ValueError("sample_weight is for arrays: fits to a dataset take none.")
        if not X.has_target:
            raise ValueError("the dataset has no target: name its column in open_dataset(..., target=).")
        return X
    large = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub" and X.size > STREAMED
    if not large or fit_of is None or sample_weight is not None or not can_stream(fit_of, X.shape[1]):
        return None
    return open_dataset(X, np.asarray(y)) if np.ndim(y) == 1 and np.asarray(y).dtype.kind in "fiub" else None


def can_stream(estimator: Any, p: int) -> bool:
    """Whether all that was asked of the estimator can be done for rows that are streamed."""
    asked = estimator.get_params()
    plain = asked["penalty"] in (None, "l2") and asked["method"] is None and not asked["warm_start"] and p < FEW
    usual = asked.get("criterion", "lts") == "lts" and asked.get("loss") != "binomial"
    usual = usual and "cv" not in asked
    return plain and usual and asked.get("class_weight") is None and not asked.get("balanced_trimming", False)


def is_small(n: int, p: int) -> bool:
    """Whether labels of n rows are judged as those in memory are, wherever they lie."""
    return n * p <= WHOLE


def fits_in_memory(n: int, p: int) -> bool:
    """Whether rows are few enough to be held, and to be asked about one by one."""
    return n * p <= STREAMED


def read_whole(data: Dataset, labels: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
    """X and y in memory, where there are few enough of them; of ``labels``, the fewest whatever the dataset says."""
    allowed = fits_in_memory(*data.shape) if data.in_memory is None else data.in_memory
    if not allowed and not (labels and is_small(*data.shape)):
        return None
    X, t = data.load()
    assert t is not None, "there is a target"
    return X, labels_of(data, t)


def labels_of(data: Dataset, t: np.ndarray) -> np.ndarray:
    """The target as it is written: text where it is text, whole numbers where it is those."""
    classes, written = data.layout.classes, data.layout.written
    if classes is not None:
        return np.asarray(classes)[t.astype(np.intp)]
    return t if written is None else t.astype(written)


def refuse_choice(model: Any) -> None:
    """ValueError for an estimator that chooses its penalty: that is done on arrays."""
    if "cv" in model.get_params():
        name = type(model).__name__
        raise ValueError(
            f"{name} chooses its penalty on arrays in memory: fit it to a sample of the rows, and then "
            f"{name.removesuffix('CV')} with the penalty found to all of them."
        )


def refuse_text(estimator: Any, data: Dataset) -> None:
    """ValueError where the target is text."""
    if data.layout.classes is not None:
        raise ValueError(
            f"the target holds text ({', '.join(data.layout.classes[:3])}), and {type(estimator).__name__} predicts "
            "numbers. For labels use TrimmedLogisticRegression."
        )


def set_column_names(estimator: Any, data: Any) -> None:
    """Set what scikit-learn's estimators know of their columns: those of a dataset, or of a Dask collection."""
    if isinstance(data, Dataset):
        names = data.feature_names if data.layout.named else []
    else:
        names = list(getattr(data, "columns", []))
    estimator.n_features_in_ = int(data.shape[1])
    estimator.__dict__.pop("feature_names_in_", None)
    if names and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


@final
@dataclass(frozen=True)
class StreamedData:
    """A dataset that is being fitted, with a copy of its rows: in order, which is enough for sums over all of them, or
    shuffled, where blocks of them are to be drawn."""

    data: Dataset
    seed: int
    shuffled: bool = False

    @cached_property
    def copy(self) -> OrderedCopy | ShuffledCopy:
        """The copy, made when first asked for."""
        stage(f"copy of {self.data.n:,} rows")
        return self.data.shuffled(self.seed) if self.shuffled else self.data.copied()

    @property
    def X(self) -> np.ndarray:
        """The rows, as they lie in the copy."""
        return self.copy.X

    @property
    def t(self) -> np.ndarray:
        """Their targets."""
        t = self.copy.t
        assert t is not None, "there is a target"
        return t

    @cached_property
    def sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that stand for all of them, drawn without replacement, in float64: in float32 steps never quite end."""
        rows = rows_apart(self.data.n, sample_size(self.data.n, self.data.p), self.seed)
        return np.asarray(self.X[rows], dtype=np.float64), self.t[rows]

    def fitted_to_sample(self, estimator: Any, labels: Any = None) -> Any:
        """A clone of the estimator, fitted to the sample; ``labels``: how targets are written there."""
        X, t = self.sample
        return fitted_to_sample(estimator, X, t if labels is None else labels(t), None, self.data.n, self.seed)


def fitted_to_sample(
    estimator: Any, X: Any, t: np.ndarray, s: np.ndarray | None, mass: float, seed: int, **changes: Any
) -> Any:
    """A clone of the estimator, with these changes of its parameters, fitted to some rows; mass: that of all rows."""
    stage(f"fit to a sample of {len(t):,} rows")
    contamination = estimator.contamination
    if is_integer(contamination):
        contamination = float(contamination) / mass
    alone = clone(estimator).set_params(contamination=contamination, random_state=seed, verbose=0, **changes)
    with team():  # BLAS's own threads would be woken for products that are too short for them
        if "n_jobs" in alone.get_params() and alone.n_jobs is None:
            alone.set_params(n_jobs=team_size())  # the same fit, sooner
        return alone.fit(X, t, s)


def sample_size(n: int, p: int) -> int:
    """How many of n rows of p columns make the sample."""
    return min(n, max(1, min(max(SAMPLED, PER_COLUMN * p), MOST // p)))


def targets_of(estimator: Any, data: Dataset) -> np.ndarray:
    """The target of all rows of a dataset, as it is written."""
    return by_blocks(estimator, data, lambda _, t: t)


def by_blocks(estimator: Any, data: Dataset, answer: Callable[[np.ndarray, Any], Any]) -> np.ndarray:
    """``answer`` for all rows of a dataset, a block at a time, in order."""
    check_is_fitted(estimator)
    if data.p != estimator.n_features_in_:
        raise ValueError(f"the dataset has {data.p} columns, and the fit was to {estimator.n_features_in_}.")
    if data.layout.named and "feature_names_in_" in vars(estimator):
        wanted = list(estimator.feature_names_in_)
        if data.feature_names != wanted:
            odd = next((a for a, b in zip(wanted, data.feature_names, strict=False) if a != b), wanted[-1])
            raise ValueError(
                f"the dataset has other columns than those of the fit, from {odd!r} on: open it with "
                "open_dataset(..., like=the dataset of the fit)."
            )
    found = [np.asarray(answer(X, None if t is None else labels_of(data, t))) for X, t in data.blocks()]
    return np.concatenate(found)
