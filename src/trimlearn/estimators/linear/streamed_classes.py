"""The labels of a dataset larger than memory."""

from __future__ import annotations

import numpy as np

from trimlearn.estimators.inputs import places
from trimlearn.estimators.linear.label_rows import label_pieces
from trimlearn.estimators.streamed import StreamedData, labels_of

__all__ = ["StreamedLabels"]

FEW_LABELS = 1000  # rows whose labels are likely all there are: a choice, checked against the others


class StreamedLabels:
    """The labels of all rows, in the order of the copy."""

    def __init__(self, streamed: StreamedData) -> None:
        t = streamed.t
        self.data = streamed.data
        values = np.unique(np.concatenate([_distinct(t[at]) for at in label_pieces(len(t))]))
        self.classes = np.unique(self.written(values))
        if len(self.classes) < 2:
            raise ValueError(f"y holds one class only, {self.classes[0]}; a classifier needs two at least.")
        if len(values) > len(t) ** 0.5 + 1 and self.classes.dtype.kind == "f":
            raise ValueError("y holds numbers, not labels: use TrimmedLinearRegression, or round them first.")
        self._t = t
        self._plain = len(values) == 2 and list(values) == [0, 1] and t.dtype == streamed.copy.X.dtype

    def written(self, t: np.ndarray) -> np.ndarray:
        """Labels as the files have them."""
        return labels_of(self.data, t)

    def codes(self, at: slice) -> np.ndarray:
        """The numbers of the classes of some rows."""
        t = self._t[at]
        return t.astype(np.int64) if self._plain else places(self.written(t), self.classes)

    def target(self) -> np.ndarray:
        """The target that a loss takes: the mapped numbers themselves where they are 0 and 1."""
        if self._plain:
            return self._t
        return np.concatenate([self.codes(at) for at in label_pieces(len(self._t))])


def _distinct(t: np.ndarray) -> np.ndarray:
    """The different labels among t; quickly where these are a few of the first."""
    few = np.unique(t[:FEW_LABELS])
    return few if len(few) < FEW_LABELS // 2 and np.isin(t, few).all() else np.unique(t)
