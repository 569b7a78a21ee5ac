"""What all trimmed estimators share: how much to trim, what is known about each example, and how to ask again.

What a notebook shows of a fitted estimator: the verdict, above scikit-learn's own diagram.

Fits that can be interrupted: what tells one from another, its settings and its data.

Objects that are changed wholly or not at all.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from hashlib import sha256
from html import escape
from numbers import Integral
from typing import Any, Self, final

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.residence import given_back, on_host, residing
from trimlearn._utils.validation import is_collection, is_sparse
from trimlearn._utils.warn import noted_warnings, warn
from trimlearn.checkpoint import Checkpoint
from trimlearn.checkpoint.fit import begin_fit, remembered, saved_fit
from trimlearn.estimators.inputs import refuse_collections
from trimlearn.estimators.on_dask import is_on_dask
from trimlearn.estimators.streamed import opened
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.inference.probability import false_discovery_rate, flag
from trimlearn.inference.table import Findings, make_table
from trimlearn.progress import watching
from trimlearn.streams import Dataset
from trimlearn.weights.simplex import h_of


@contextmanager
def intact(thing: object) -> Iterator[None]:
    """If the block raises, also by Ctrl-C, ``thing`` gets the attributes back that it had before.

    For a fit: what was fitted before stays whole. The values themselves must not be changed in place.

    >>> class Model:
    ...     coef_ = 1
    >>> model = Model()
    >>> with intact(model):
    ...     model.coef_, model.intercept_ = 2, 3
    >>> try:
    ...     with intact(model):
    ...         model.coef_ = 4
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(vars(model))
    {'coef_': 2, 'intercept_': 3}
    """
    before = dict(vars(thing))
    try:
        yield
    except BaseException:
        vars(thing).clear()
        vars(thing).update(before)
        raise


SILENT = ("verbose", "n_jobs")  # parameters that change nothing in the result


@contextmanager
def checkpointed(
    model: Any, checkpoint: Any, resume: bool, X: Any, y: Any = None, sample_weight: Any = None
) -> Iterator[None]:
    """Around a fit of ``model`` that is saved to ``checkpoint``, a path or a `Checkpoint`. Rows on a cluster are told
    from others by the workers, once these hold them."""
    file = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    with saved_fit(file, _settings(model), resume):
        if not is_on_dask(X):
            begin_fit(lambda: _digest(X, y, sample_weight))
        yield


def _settings(model: Any) -> dict[str, str]:
    said = {name: repr(value) for name, value in model.get_params(deep=False).items() if name not in SILENT}
    if "random_state" in said and not isinstance(model.random_state, Integral):
        said["random_state"] = "None"  # the seed that was drawn is in the file
    if said.get("warm_start") == "True" and "_x" in vars(model):
        said["the start"] = sha256(np.ascontiguousarray(model._x).tobytes()).hexdigest()[:16]
    return {"estimator": type(model).__name__, **said}


def _digest(X: Any, y: Any, sample_weight: Any) -> str:
    """What tells these data from others."""
    if isinstance(X, (Dataset, str, os.PathLike)):
        data = opened(X, y, sample_weight)
        assert data is not None, "it is a dataset"
        return data.fingerprint("fit")
    digest = sha256()
    for value in (X, y, sample_weight):
        _add(digest, value)
    return digest.hexdigest()[:24]


def _add(digest: Any, value: Any) -> None:
    if value is None:
        digest.update(b"none")
        return
    if hasattr(value, "columns") and hasattr(value, "items"):  # a data frame, by its columns
        for name, column in value.items():
            digest.update(repr(name).encode())
            _add(digest, np.asarray(column))
        return
    if is_sparse(value):
        rows = sp.csr_array(value)
        for part in (rows.data, rows.indices, rows.indptr):
            _add(digest, part)
        return
    array = np.asarray(on_host(value))
    text = array.dtype.kind in "OSU"  # the same text may be written in several ways
    digest.update(repr((array.shape, "text" if text else array.dtype)).encode())
    if text:
        digest.update("\x1f".join(map(str, array.ravel())).encode())
    else:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


# No ground and no colour of its own: it is read on light and on dark paper alike.
BOX = "margin:0.3em 0 0.8em 0;line-height:1.4;color:inherit"
DIM = "opacity:0.75"  # black on white is then 10:1, above the 4.5:1 of WCAG 2.1


@final
@dataclass(frozen=True)
class NotebookVerdict:
    """What a fit found, in a sentence; the worst rows or cells; what to be careful about."""

    sentence: str
    worst: OutlierTable
    caption: str
    caveats: tuple[str, ...] = ()

    def html(self, name: str) -> str:
        """The same as a piece of HTML, in which every value is escaped."""
        parts = [f"<b>{escape(name)}</b>: {escape(self.sentence)}"]
        if len(self.worst):
            parts.append(f'<div style="{DIM}">{escape(self.caption)}</div>{self.worst._repr_html_()}')
        parts += [f"<div><b>Caveat:</b> {escape(caveat)}</div>" for caveat in self.caveats]
        return f'<div class="trimlearn-verdict" style="{BOX}">{"".join(parts)}</div>'


class Notebook(ABC):
    """Adds the verdict to what scikit-learn shows of an estimator, once it is fitted.

    ``_repr_html_`` stays scikit-learn's property: it is there only where ``display="diagram"`` is set.
    """

    @abstractmethod
    def _verdict(self) -> NotebookVerdict | None:
        """What the fit found; None before fit."""

    def _repr_html_inner(self) -> str:
        with warnings.catch_warnings():  # to be shown is no occasion to warn: the fit has done so
            warnings.simplefilter("ignore")
            verdict = self._verdict()
        diagram = str(estimator_html_repr(self))
        return diagram if verdict is None else verdict.html(type(self).__name__) + diagram

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            shown["text/html"] = self._repr_html_inner()
        return shown


def in_percent(part: float) -> str:
    """A share of 1 in words, not rounded to nothing.

    >>> in_percent(0.0), in_percent(0.0004), in_percent(0.123), in_percent(0.9999)
    ('0 %', 'less than 0.1 %', '12.3 %', 'more than 99.9 %')
    """
    if 0 < part < 0.0005:
        return "less than 0.1 %"
    if 0.9995 <= part < 1:
        return "more than 99.9 %"
    return f"{100 * part:.3g} %"


SHOWN = 5  # rows in a notebook's verdict: they leave room for the next cell (a choice)
QUICK = 20_000  # entries of X up to which kinds are told there: a limit on time, about half a second
# Methods whose answer has one entry per row of X.
ANSWERS = ("decision_function", "outlier_score", "predict", "predict_log_proba", "predict_proba", "score_samples")
MANY = 0.4  # the share of bad rows from which on it is said that half is the limit: a fifth below it


@dataclass(frozen=True)
class FeatureRows:
    """Validated training data without a target: rows X (n, p) and their sample weights s."""

    X: Any
    s: np.ndarray

    @property
    def S(self) -> float:
        return float(self.s.sum())


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
        check_is_fitted(self, "outlier_probability_")
        return false_discovery_rate(self.outlier_probability_, ~self.inlier_mask_)

    def flag(self, fdr: float = 0.1) -> np.ndarray:
        """The numbers of the training rows on the longest list of which a share ``fdr``, at most, is expected to be
        innocent; worst first, by ``outlier_probability_``."""
        check_is_fitted(self, "outlier_probability_")
        # From a cluster too: one number a row.
        scores, probability = np.asarray(self.outlier_scores_), np.asarray(self.outlier_probability_)
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

    def _tabulate(self, X: Any, y: Any, sample_weight: Any, features: Any, names: Any) -> OutlierTable:
        """The table of the rows of X, or of the training data, with the names of features and of rows."""
        check_is_fitted(self, "weights_")
        data = self._remembered(X, y, sample_weight)
        training = vars(self).get("_training")
        data = training if training is not None and _same(data, training) else data
        scores, weights, probability = self._judged_rows(data)
        findings = replace(self._findings(data, scores, weights <= 0), probability=probability)
        return make_table(findings, weights, features, names)

    def _judged_rows(self, data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Scores, weights and probabilities to be wrong: those of the fit for the training data; other rows are judged
        as new ones, without probabilities."""
        training = vars(self).get("_training")
        if training is not None and _same(data, training):
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

    @abstractmethod
    def _scores(self, data: Any) -> np.ndarray:
        """The outlier scores of data that need not be the training data."""

    @abstractmethod
    def _findings(self, data: Any, scores: np.ndarray, off: np.ndarray) -> Findings:
        """What is known about each row; ``off``: which of them the model does not explain."""

    @abstractmethod
    def _fit(self, data: Any, h: float | None, warm: bool) -> Self:
        """Fit to validated data, keeping h; None: find out. ``warm``: start from the present fit."""

    @abstractmethod
    def _validate(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Any:
        """The data as `_fit` wants them."""

    @contextmanager
    def _fitting(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None, resume: bool = True
    ) -> Iterator[None]:
        """Around a fit to X: it is made wholly or not at all, and what was known about the last one is forgotten; saved
        to a ``checkpoint``, if there is one."""
        if not self._takes_dask:
            refuse_collections(self, X)
        with intact(self), residing(X), watching(self.verbose, type(self).__name__), noted_warnings() as doubts:
            self._row_names = row_names(X)
            self.__dict__.pop("_table", None)
            if checkpoint is None:
                yield
            else:
                with checkpointed(self, checkpoint, resume, X, y, sample_weight):
                    yield
            self._doubts, self._asked = doubts, self.contamination

    def _refit(self, data: Any, contamination: float | int | str, warm: bool) -> Self:
        """`_fit` for a contamination as users say it. What was found out about the last fit is forgotten."""
        self.__dict__.pop("_table", None)
        with watching(self.verbose, type(self).__name__), noted_warnings() as doubts:
            fitted = self._fit(data, self._h(contamination, data.S), warm)
        self._doubts, self._asked = doubts, contamination
        return fitted

    def _h(self, contamination: Any, S: float) -> float | None:
        """Σs·(1 − contamination), the weight to keep; None for "auto"."""
        h = h_of(contamination, S)
        if h is not None and h <= S / 2:
            warn(
                f"contamination={contamination} calls half of the examples wrong, or more: a minority that agrees "
                "among itself may be taken for the truth. No estimator can tell.",
            )
        return h

    def _remembered(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """These data, or without any the training data."""
        if X is not None:
            return self._validate(X, y, sample_weight, reset=False)
        if "_training" not in vars(self):
            raise ValueError(
                f"this {type(self).__name__} was unpickled, or fitted to data larger than memory, and has no training "
                "data: give X (and y), or ask for outlier_table() before it is pickled."
            )
        return vars(self)["_training"]

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral) and not isinstance(self.random_state, bool):
            return int(self.random_state)
        generator = check_random_state(self.random_state)
        (seed,) = remembered("seed", lambda: (np.array(generator.randint(np.iinfo(np.int32).max)),))
        return int(seed)


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
