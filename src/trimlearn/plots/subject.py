"""What a picture is of: the estimator at the end of what was given, the rows, their names, and how bad they are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from trimlearn._utils.arrays import Flags, Floats
from trimlearn.estimators.base import Trimmed, row_names
from trimlearn.estimators.cells import CellwiseOutliers
from trimlearn.estimators.covariance.scatter import TrimmedScatter
from trimlearn.estimators.formula import FormulaModel
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.estimators.pipeline_table import unwrapped
from trimlearn.estimators.wrong_labels import LabelErrors
from trimlearn.geometry.homography.estimator import TrimmedHomography
from trimlearn.geometry.panorama.estimator import TrimmedPanorama
from trimlearn.inference.infer import InferenceMixin

# What each picture is called in a sentence, and the kinds of models that have it.
PICTURES: dict[str, tuple[str, frozenset[str]]] = {
    "plot_scores": ("a picture of scores", frozenset({"fit", "labels", "cells"})),
    "plot_outlier_map": ("an outlier map", frozenset({"numbers", "subspace"})),
    "plot_residuals": ("a picture of residuals", frozenset({"numbers"})),
    "plot_qq": ("a Q-Q picture of distances", frozenset({"numbers", "subspace", "scatter", "matches"})),
    "plot_distances": ("a distance-distance picture", frozenset({"numbers", "scatter"})),
    "plot_biplot": ("a biplot", frozenset({"subspace"})),
    "plot_noise_matrix": ("a noise matrix", frozenset({"labels"})),
    "plot_gallery": ("a gallery", frozenset({"numbers", "labels", "subspace", "scatter"})),
    "plot_coefficients": ("a picture of coefficients", frozenset({"linear"})),
    "plot_cell_map": ("a cell map", frozenset({"cells"})),
    "plot_matches": ("a picture of matches", frozenset({"matches"})),
    "plot_convergence": ("a picture of convergence", frozenset({"fit"})),
    "plot_trim_path": ("a trim path", frozenset({"rows"})),
}
# In words, for a sentence on what a picture is for.
KINDS = {
    "numbers": "regressors",
    "labels": "classifiers",
    "subspace": "TrimmedPCA",
    "scatter": "covariances",
    "matches": "homographies and panoramas",
    "cells": "CellwiseOutliers",
    "linear": "linear models",
    "fit": "trimmed estimators",
    "rows": "trimmed estimators of rows",
}
# What the score of a row is, by the kind of its model.
SCORES = {
    "numbers": "residual / scale",
    "labels": "log-odds that the label is wrong",
    "subspace": "distance from the subspace / scale",
    "scatter": "robust distance",
    "matches": "transfer error in pixels",
    "cells": "worst cell of the row / scale",
}


@final
@dataclass(frozen=True)
class Subject:
    """A fitted model, and rows that it judges: those given, as its own step of a Pipeline sees them, or those it was
    fitted to."""

    model: Any
    X: Any
    y: Any
    names: NDArray[Any] | None  # of the rows
    columns: list[str] | None  # what the columns of X are called, where a Pipeline made them

    @cached_property
    def kind(self) -> str:
        """What the model is about: a key of `SCORES`."""
        return next(kind for kind in SCORES if kind in traits(self.model))

    @cached_property
    def data(self) -> Any:
        """The rows, validated by the model."""
        return self.model._remembered(self.X, self.y)

    @cached_property
    def _verdict(self) -> tuple[Floats, Flags]:
        model = self.model
        if isinstance(model, LabelErrors):
            return model.scores_, ~model.mask_
        if isinstance(model, CellwiseOutliers):
            scores, mask = self.cells
            return np.max(np.abs(scores), axis=1, initial=0.0), np.asarray(~mask.any(axis=1))
        if self.X is None:
            return model.outlier_scores_, model.inlier_mask_
        scores, weights, _ = model._judged_rows(self.data)
        return scores, weights > 0

    @cached_property
    def cells(self) -> tuple[Floats, Flags]:
        """Of CellwiseOutliers: the scores of the cells, and which of them deviate."""
        if self.X is None:
            return self.model.cell_scores_, self.model.cell_mask_
        return self.model.score_cells(self.X), self.model.predict(self.X)

    @property
    def scores(self) -> Floats:
        """How bad the rows are."""
        return np.asarray(self._verdict[0], dtype=np.float64)

    @property
    def kept(self) -> Flags:
        """Which rows the model explains."""
        return np.asarray(self._verdict[1])

    @property
    def threshold(self) -> float:
        """The score beyond which a row is flagged."""
        return 0.0 if isinstance(self.model, LabelErrors) else float(self.model.threshold_)

    @property
    def title(self) -> str:
        """The model, and how many of the rows it flags."""
        flagged, n = int(np.count_nonzero(~self.kept)), len(self.kept)
        what = "matches" if self.kind == "matches" else "rows"
        return f"{type(self.model).__name__}: {flagged:,} of {n:,} {what} flagged"

    def features(self, count: int) -> list[str]:
        """What the columns that the model sees are called."""
        known = getattr(self.model, "feature_names_in_", None)
        names = [str(name) for name in (self.columns or () if known is None else known)]
        return names if len(names) == count else [f"x{j}" for j in range(count)]


def subject(picture: str, estimator: Any, X: Any = None, y: Any = None) -> Subject:
    """What a picture is of; TypeError where it is no estimator of ours, ValueError where it has no such picture."""
    if isinstance(estimator, FormulaModel):
        check_is_fitted(estimator, "estimator_")
        wants = is_regressor(estimator.estimator_) or is_classifier(estimator.estimator_)
        given = (None, None) if X is None else (*estimator._given(X, wants), None)[:2]
        return subject(picture, estimator.estimator_, *given)
    model, inner, columns = unwrapped(estimator, X)
    check_picture(picture, model)
    if not isinstance(model, LabelErrors):
        check_is_fitted(model, "cell_mask_" if isinstance(model, CellwiseOutliers) else "weights_")
    return Subject(model, inner, y, _names(model, X), columns)


def check_picture(picture: str, model: Any) -> None:
    """TypeError where a model is none of ours, ValueError where there is no such picture of it."""
    what, kinds = PICTURES[picture]
    if not isinstance(model, (Trimmed, CellwiseOutliers, LabelErrors)):
        raise TypeError(
            f"{picture} takes a fitted estimator of trimlearn, or a Pipeline that ends in one, "
            f"got {type(model).__name__}."
        )
    if not kinds & traits(model):
        others = [name for name, (_, of) in PICTURES.items() if of & traits(model)]
        raise ValueError(
            f"{what} is for {' and '.join(word for kind, word in KINDS.items() if kind in kinds)}, not for "
            f"{type(model).__name__}, which has {', '.join(others)}."
        )


def traits(model: Any) -> frozenset[str]:
    """What kinds of model it is: keys of `KINDS`."""
    if isinstance(model, CellwiseOutliers):
        return frozenset({"cells"})
    if isinstance(model, LabelErrors):
        return frozenset({"labels"})
    if not isinstance(model, Trimmed):
        return frozenset()
    if isinstance(model, (TrimmedHomography, TrimmedPanorama)):
        return frozenset({"fit", "matches"})
    found = {"fit", "rows"} | ({"linear"} if isinstance(model, InferenceMixin) else set())
    if isinstance(model, TrimmedPCA):
        return frozenset(found | {"subspace"})
    if isinstance(model, TrimmedScatter):
        return frozenset(found | {"scatter"})
    return frozenset(found | {"labels" if is_classifier(model) else "numbers"})


def _names(model: Any, X: Any) -> NDArray[Any] | None:
    if X is not None:
        return row_names(X)
    known = model.row_names_ if isinstance(model, CellwiseOutliers) else getattr(model, "_row_names", None)
    return None if known is None else np.asarray(known)


@contextmanager
def nameless() -> Iterator[None]:
    """Around a call with validated data, which have lost their feature names: that is no occasion to warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield
