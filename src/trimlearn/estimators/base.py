"""What all trimmed estimators share: how much to trim, what is known about each example, and how to ask again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import wraps
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.intact import intact
from trimlearn._utils.residence import given_back, on_host, residing
from trimlearn._utils.validation import is_collection, is_sparse
from trimlearn._utils.warn import noted_warnings, warn
from trimlearn.checkpoint.fit import remembered
from trimlearn.estimators.checkpointed import checkpointed
from trimlearn.estimators.inputs import refuse_collections
from trimlearn.estimators.notebook import SHOWN, Notebook, NotebookVerdict, in_percent
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.inference.probability import false_discovery_rate, flag
from trimlearn.inference.table import Findings, make_table
from trimlearn.progress import watching
from trimlearn.weights.simplex import h_of

QUICK = 20_000  # entries of X up to which kinds are told there: a limit on time, about half a second
# Methods whose answer has one entry per row of X.
ANSWERS = ("decision_function", "outlier_score", "predict", "predict_log_proba", "predict_proba", "score_samples")
MANY = 0.4  # the share of bad rows from which on it is said that half is the limit: a fifth below it


class Trimmed(Notebook, BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator that fits the examples it can explain, and says which ones it cannot.

    Parameters that all of them take: ``contamination``, the share (float) or number (int) of bad examples, or "auto";
    ``reweight``, whether what the trimmed fit explains is readmitted and the model fitted again; ``random_state``;
    ``verbose``, whether to show what a fit is doing.
    """

    contamination: float | int | str
    reweight: bool
    random_state: Any
    verbose: bool | int

    weights_: np.ndarray
    contamination_: float
    outlier_scores_: np.ndarray
    outlier_probability_: np.ndarray
    threshold_: float
    _table: OutlierTable  # of the training data, once it was asked for
    _doubts: list[str]  # what the fit warned of
    _asked: float | int | str  # the contamination of the last fit, by `rethreshold` as well
    _examples: str = "rows"  # what the model is fitted to
    _takes_dask: bool = False  # whether it fits to Dask's collections as they are

    def __init_subclass__(cls, **options: Any) -> None:
        """What is asked about rows that lie on a device is answered there (as scikit-learn wraps `transform`)."""
        super().__init_subclass__(**options)
        for name in ANSWERS:
            if callable(vars(cls).get(name)):
                setattr(cls, name, _answered_there(vars(cls)[name]))

    def __getstate__(self) -> dict[str, Any]:
        """Without the training data, which are only kept to answer `outlier_table` and `rethreshold`."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_training"}

    @property
    def inlier_mask_(self) -> np.ndarray:
        """Which of the training examples count: those of positive weight."""
        check_is_fitted(self, "weights_")
        mask: Any = self.weights_ > 0
        return mask if is_collection(mask) else np.asarray(mask)

    @property
    def false_discovery_rate_(self) -> float:
        """The expected share of innocents among the training rows that are flagged (``inlier_mask_`` is False)."""
        return false_discovery_rate(self._probability, ~self.inlier_mask_)

    @property
    def _probability(self) -> np.ndarray:
        check_is_fitted(self, "weights_")
        if not hasattr(self, "outlier_probability_"):
            raise AttributeError(
                f"this {type(self).__name__} has no outlier_probability_, by which rows are flagged: outlier_scores_ "
                "orders them, and rethreshold(contamination) leaves out as many as you say."
            )
        return self.outlier_probability_

    def flag(self, fdr: float = 0.1) -> np.ndarray:
        """The numbers of the training rows on the longest list of which a share ``fdr``, at most, is expected to be
        innocent; worst first, by ``outlier_probability_``."""
        # From a cluster too: one number a row.
        probability, scores = np.asarray(self._probability), np.asarray(self.outlier_scores_)
        order = np.lexsort((-scores, -probability))
        return np.asarray(order[flag(probability, fdr)[order]])

    def rethreshold(
        self, contamination: float | int | str, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> Self:
        """The same model for another ``contamination``, from where the present fit ended.

        The constructor's parameter stays as it is. After unpickling, give the training data again.
        """
        check_is_fitted(self, "weights_")
        with intact(self):
            return self._refit(self._remembered(X, y, sample_weight), contamination, warm=True)

    def outlier_table(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> OutlierTable:
        """What is known about each training example, or each row of X: worst first.

        Columns: row (and name, the index of a DataFrame), weight, outlier, score, p_value (under the model of the
        inliers), p_adjusted (Benjamini and Hochberg), probability (that a training row is wrong), kind, and where they
        make sense the given and the suggested label, the robust distance, and the features that contribute most. If X
        and y are the training data, the verdicts are those of the fit; other rows are judged as new ones. A model that
        is pickled takes along the table that it was asked for before, but not its training data. For a Pipeline:
        `trimlearn.outlier_table`.
        """
        if X is not None:
            return self._tabulate(X, y, sample_weight, getattr(self, "feature_names_in_", None), row_names(X))
        check_is_fitted(self, "weights_")
        if "_table" not in vars(self):
            names = vars(self).get("_row_names")
            self._table = self._tabulate(None, y, sample_weight, getattr(self, "feature_names_in_", None), names)
        return self._table

    # -- what a model has to say ---------------------------------------------------------------------------------------

    @abstractmethod
    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Any:
        """The data as `_fit` wants them."""

    @abstractmethod
    def _fit(self, data: Any, h: float | None, warm: bool) -> Self:
        """Fit to validated data, keeping h; None: find out. ``warm``: start from the present fit."""

    @abstractmethod
    def _scores(self, data: Any) -> np.ndarray:
        """The outlier scores of data that need not be the training data."""

    @abstractmethod
    def _findings(self, data: Any, scores: np.ndarray, off: np.ndarray) -> Findings:
        """What is known about each row; ``off``: which of them the model does not explain."""

    # -- its fits ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _fitting(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None, resume: bool = True
    ) -> Iterator[None]:
        """Around a fit to X: it is made wholly or not at all; saved to a ``checkpoint``, if there is one."""
        if not self._takes_dask:
            refuse_collections(self, X)
        saved = nullcontext() if checkpoint is None else checkpointed(self, checkpoint, resume, X, y, sample_weight)
        with intact(self), residing(X), self._noting(self.contamination), saved:
            self._row_names = row_names(X)
            yield

    @contextmanager
    def _noting(self, contamination: float | int | str) -> Iterator[None]:
        """Around a fit for this contamination: what was known about the last one is forgotten, and what this one warns
        of is kept."""
        self.__dict__.pop("_table", None)
        with watching(self.verbose, type(self).__name__), noted_warnings() as doubts:
            yield
        self._doubts, self._asked = doubts, contamination

    def _refit(self, data: Any, contamination: float | int | str, warm: bool) -> Self:
        """`_fit` for a contamination as users say it."""
        with self._noting(contamination):
            return self._fit(data, self._h(contamination, data.S), warm)

    def _h(self, contamination: Any, S: float) -> float | None:
        """Σs·(1 − contamination), the weight to keep; None for "auto"."""
        h = h_of(contamination, S)
        if h is not None and h <= S / 2:
            warn(
                f"contamination={contamination} calls half of the examples wrong, or more: a minority that agrees "
                "among itself may be taken for the truth. No estimator can tell.",
            )
        return h

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral) and not isinstance(self.random_state, bool):
            return int(self.random_state)
        generator = check_random_state(self.random_state)
        (seed,) = remembered("seed", lambda: (np.array(generator.randint(np.iinfo(np.int32).max)),))
        return int(seed)

    def _remembered(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """These data, or without any the training data; which stand for others that are the same."""
        training = vars(self).get("_training")
        if X is not None:
            data = self._validate(X, y, sample_weight, reset=False)
            return training if training is not None and _same(data, training) else data
        check_is_fitted(self, "weights_")
        if training is None:
            raise ValueError(
                f"this {type(self).__name__} keeps no training data, since it was unpickled, or fitted on a cluster or "
                "to data larger than memory: give X (and y), as in outlier_table(X, y) and "
                "inference(X=X, y=y).conf_int(), or ask before it is pickled."
            )
        return training

    # -- what is known about each row ----------------------------------------------------------------------------------

    def _tabulate(self, X: Any, y: Any, sample_weight: Any, features: Any, names: Any) -> OutlierTable:
        """The table of the rows of X, or of the training data, with the names of features and of rows."""
        check_is_fitted(self, "weights_")
        data = self._remembered(X, y, sample_weight)
        scores, weights, probability = self._judged_rows(data)
        findings = replace(self._findings(data, scores, weights <= 0), probability=probability)
        return make_table(findings, weights, features, names)

    def _judged_rows(self, data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Scores, weights and probabilities to be wrong: those of the fit for the training data; other rows are judged
        as new ones, without probabilities."""
        if data is vars(self).get("_training"):
            return self.outlier_scores_, self.weights_, getattr(self, "outlier_probability_", None)
        scores = self._scores(data)
        return scores, np.where(scores <= self.threshold_, 1.0, 0.0), None

    def _verdict(self) -> NotebookVerdict | None:
        if "weights_" not in vars(self):
            return None
        n, flagged = len(self.weights_), int(np.count_nonzero(~self.inlier_mask_))
        wrong = in_percent(self.contamination_)
        known = "are wrong by estimate" if vars(self).get("_asked", "auto") == "auto" else "were to be trimmed"
        sentence = f"{flagged:,} of {n:,} {self._examples} flagged ({in_percent(flagged / n)}); {wrong} {known}."
        caveats = list(vars(self).get("_doubts", []))
        if self.contamination_ > MANY:
            caveats.append(
                f"{wrong} is close to one half: beyond, nobody can tell the right {self._examples} from the wrong ones."
            )
        caption = f"The worst {self._examples}:" if flagged else "None is flagged; the most unusual ones:"
        return NotebookVerdict(sentence, self._worst(), caption, tuple(caveats))

    def _worst(self) -> OutlierTable:
        """The worst rows, with as much as is quickly told."""
        order = np.argsort(-self.outlier_scores_, kind="stable")[:SHOWN]
        names = vars(self).get("_row_names")
        columns: dict[str, Any] = {"row": order if names is None else names[order]}
        columns["score"] = self.outlier_scores_[order]
        if hasattr(self, "outlier_probability_"):
            columns["probability"] = self.outlier_probability_[order]
        quick = len(self.weights_) * int(getattr(self, "n_features_in_", 1)) <= QUICK
        if "_table" in vars(self) or (quick and "_training" in vars(self)):
            found = vars(self).get("_table") or self._tabulate(None, None, None, None, None)
            columns |= {name: found[name][:SHOWN] for name in ("kind", "given", "suggested") if name in found}
        return OutlierTable(columns)


def _answered_there(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, its answer on the device of its first argument."""

    @wraps(method)
    def answered(self: Any, X: Any, *rest: Any, **options: Any) -> Any:
        return given_back(method(self, on_host(X), *rest, **options), X)

    return answered


def row_names(X: Any) -> np.ndarray | None:
    """The index of a pandas DataFrame, unless it only numbers the rows; a MultiIndex as tuples."""
    names = np.asarray(X.index) if hasattr(X, "iloc") and not is_collection(X) else None
    return None if names is None or np.array_equal(names, np.arange(len(names))) else names


def _same(data: Any, training: Any) -> bool:
    """Whether validated data are the training data: the same numbers in every field."""
    fields = vars(data)
    return data is training or all(_equal(value, vars(training)[name]) for name, value in fields.items())


def _equal(a: Any, b: Any) -> bool:
    if a is b or a is None or b is None:
        return a is b
    if is_sparse(a) or is_sparse(b):
        return bool(is_sparse(a) and is_sparse(b) and a.shape == b.shape and (a != b).nnz == 0)
    if hasattr(a, "equals"):  # a data frame: missing entries are equal
        return type(a) is type(b) and bool(a.equals(b))
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))
