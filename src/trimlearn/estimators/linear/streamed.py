"""Linear regression of a dataset larger than memory: by a sample of its rows, then by all of them."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from trimlearn._utils.threads import each, team
from trimlearn.estimators.linear.many_rows import FinalFit, TrimmedRegression, fit_many_rows, standards
from trimlearn.estimators.streamed import StreamedData, column_names, refuse_choice, refuse_text
from trimlearn.losses.exact import COLUMNS
from trimlearn.progress import stage
from trimlearn.robust.regression.streamed_lts import concentrated
from trimlearn.robust.regression.streamed_rows import StreamedRows
from trimlearn.robust.streamed import newton_records
from trimlearn.streams import Dataset

__all__ = ["fit_linear_stream"]

PIECE = 1 << 17  # rows whose weights and probabilities are found in one go by a thread: a limit on memory, 1 MB each


def fit_linear_stream(model: Any, data: Dataset, h: float | None) -> None:
    """Fit ``model`` to the dataset, keeping h; None: find out."""
    refuse_choice(model)
    if model.penalty not in (None, "l2") or model.criterion != "lts" or data.p >= COLUMNS:
        raise ValueError(
            f"data larger than memory are fitted by criterion='lts' with penalty=None or 'l2' and fewer than {COLUMNS} "
            "columns; fit other models to a sample of the rows."
        )
    refuse_text(model, data)
    streamed = StreamedData(data, model._seed())
    known = streamed.fitted_to_sample(model)
    center, scale, penalty = standards(model, streamed.sample[0])
    t = streamed.t.astype(streamed.X.dtype, copy=False)
    rows = StreamedRows(streamed.X, t, center, scale, bool(model.fit_intercept), penalty)

    def trimmed(u: np.ndarray, h: float) -> TrimmedRegression:
        stage(f"least trimmed squares of {data.n:,} rows")
        found = concentrated(rows, u, h)
        history = newton_records(found.objectives, h)
        return TrimmedRegression(found.u, found.r, found.objectives[-1], history, found.weights())

    column_names(model, data)
    with team():
        fit_many_rows(model, rows, known, h, trimmed, lambda last: _publish(model, last))


def _publish(model: Any, last: FinalFit) -> None:
    """What is known of every row, in the order of the files."""
    scores = model.outlier_scores_ = last.r  # which nobody needs any more
    chance = model.outlier_probability_ = np.empty_like(scores)
    if model.reweight:
        model.weights_ = np.empty_like(scores)
    near = last.scores[last.chance > 0].min(initial=inf)  # up to there it is 0

    def part(at: slice) -> None:
        t = scores[at]
        np.abs(t, out=t)
        t /= t.dtype.type(model.scale_)
        far = np.flatnonzero(t >= near)
        chance[at] = 0
        chance[at][far] = last.chances(t[far])
        if model.reweight:
            model.weights_[at] = last.weights(t)

    each(part, [slice(i, i + PIECE) for i in range(0, len(scores), PIECE)])
