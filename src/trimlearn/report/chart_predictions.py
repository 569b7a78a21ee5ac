"""Charts of predictions: calibration, and the noise of labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.report.chart_specs import PERCENT, Spec, axis, numbers, say, share, short, table
from trimlearn.report.chart_target import JudgedTarget

if TYPE_CHECKING:
    from trimlearn.checks.findings import TargetFindings

CLASSES = 12  # of a noise matrix: more squares have no room for numbers
BINS = 10  # of a reliability diagram, as is usual (Niculescu-Mizil and Caruana 2005)
NORMAL = 1.96  # two-sided 95 % of a normal law
WIDE = 4.0  # times the median, from which on a logarithm shows both a value ten times too large and the bulk
OFF = 0.05  # what predictions may be off by on average, to be called right


def calibration(judged: JudgedTarget, predicted: Floats | None) -> Iterator[Spec]:
    """What was predicted against what is given."""
    target = judged.target
    if predicted is None and not target.classes:
        predicted = np.asarray(target.suggested, dtype=np.float64)
    if predicted is None or len(predicted) != len(target.flagged):
        return
    if target.classes and np.ndim(predicted) == 2 and predicted.shape[1] == len(target.classes):
        yield from _reliability(judged, np.asarray(predicted, dtype=np.float64))
    elif not target.classes and np.ndim(predicted) == 1:
        yield from _given_and_predicted(judged, np.asarray(predicted, dtype=np.float64))


def _given_and_predicted(judged: JudgedTarget, predicted: Floats) -> Iterator[Spec]:
    target = judged.target
    given = judged.given
    rows = np.flatnonzero(np.isfinite(given) & np.isfinite(predicted))
    if len(rows) < BINS or np.ptp(given[rows]) == 0:
        return
    points, note = judged.cloud.points(predicted, given, rows, given - np.median(given[rows]))
    both = np.concatenate([given[rows], predicted[rows]])
    kept = rows[~target.flagged[rows]]
    which, thing = "rows that are not flagged" if len(kept) < len(rows) else "rows", short(target.name)
    error = float(np.median(np.abs(given[kept] - predicted[kept]))) if len(kept) else float("nan")
    yield {
        "type": "scatter",
        "key": "calibration",
        "title": f"Half of the {which} lie within {say(error)} of the expected {thing}",
        "description": f"Each point is a row: across, the {thing} that models expect without having seen it; up, "
        f"the one that is given. On the dashed line they agree. {note}".strip(),
        "x": axis(f"expected {thing}", both, WIDE),
        "y": axis(f"given {thing}", both, WIDE),
        "diagonal": True,
        **points,
        "table": judged.listed(rows),
    }


def _reliability(judged: JudgedTarget, predicted: Floats) -> Iterator[Spec]:
    """How often the most probable label is the one that is given, by how probable the model says it is."""
    classes = np.asarray(judged.target.classes)
    there = np.flatnonzero(np.all(np.isfinite(predicted), axis=1) & np.isin(judged.given, classes))
    if len(there) < 5 * BINS:
        return
    said = predicted[there].max(axis=1)
    came = judged.given[there] == classes[predicted[there].argmax(axis=1)]
    edges = np.unique(np.quantile(said, np.linspace(0, 1, BINS + 1)))
    where = np.clip(np.searchsorted(edges, said, side="right") - 1, 0, max(0, len(edges) - 2))
    n = np.bincount(where)
    used = n > 0
    x, y = (np.bincount(where, weights=v)[used] / n[used] for v in (said, came.astype(np.float64)))
    low, high = _wilson(y, n[used])
    gap = float(np.sum(n[used] * (y - x)) / len(there))
    title = "Predicted labels come true about as often as the model says"
    if gap < -OFF:
        title = f"Predicted labels come true less often than the model says, by {share(-gap)} on average"
    elif gap > OFF:
        title = f"Predicted labels come true more often than the model says, by {share(gap)} on average"
    names = [f"{int(c):,} rows" for c in n[used]]
    yield {
        "type": "scatter",
        "key": "calibration",
        "title": title,
        "description": "Each point is a tenth of the rows: across, the probability of the most probable label, "
        "cross-validated; up, the share of rows that bear it, with its 95 % interval. Wrong labels, too, lower it.",
        "x": axis("predicted probability", x, percent=True),
        "y": axis("share of rows with that label", y, percent=True, include=[*numbers(low), *numbers(high)]),
        "diagonal": True,
        "points": {"x": numbers(x), "y": numbers(y), "low": numbers(low), "high": numbers(high), "name": names,
                   "group": [0] * len(x)},
        "groups": [{"role": "trimmed", "name": "rows"}],
        "label": [],
        "table": table(["predicted", "share", "rows"],
                       [[share(float(a)), share(float(b)), c] for a, b, c in zip(x, y, n[used].tolist(), strict=True)]),
    }  # fmt: skip


def _wilson(share_: Floats, n: Ints) -> tuple[Floats, Floats]:
    """Wilson's 95 % interval of a share of n."""
    z2 = NORMAL**2
    middle = (share_ + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL * np.sqrt(share_ * (1 - share_) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return middle - half, middle + half


def _whole(value: float) -> str:
    """A share that was estimated from a class's rows, a hundred or so: digits after the point would be chance."""
    return f"under 1{PERCENT}" if 0 < value < 0.005 else f"{100 * value:.0f}{PERCENT}"


def noise_matrix(target: TargetFindings) -> Iterator[Spec]:
    """How often a class is labelled as another one."""
    matrix = target.noise_matrix
    if matrix is None or len(target.classes) < 2 or not np.all(np.isfinite(matrix)):
        return
    off = np.asarray(matrix, dtype=np.float64).copy()
    np.fill_diagonal(off, 0.0)
    noisy = np.argsort(-(off.sum(axis=0) + off.sum(axis=1)), kind="stable")[:CLASSES]
    shown = np.sort(noisy)
    classes = [target.classes[k] for k in shown]
    k, j = np.unravel_index(int(off.argmax()), off.shape)
    title = "No class is often labelled as another one"
    if off[k, j] >= 0.005:  # what is printed as 0 %
        true, given = (short(target.classes[i]) for i in (k, j))
        title = f"About {_whole(float(off[k, j]))} of what should be “{true}” is labelled “{given}”"
    left = (
        f" The {CLASSES} classes with the most noise are drawn, of {len(target.classes)}." if len(off) > CLASSES else ""
    )
    shares = [[_whole(float(matrix[i, h])) for h in shown] for i in shown]
    cells = [
        {
            "row": a,
            "column": b,
            "role": "fits" if a == b else "wrong",
            "strength": 0.1 if a == b else round(min(1.0, 2 * float(matrix[i, h])), 3),
            "text": shares[a][b],
            "lines": [f"{shares[a][b]} of {target.classes[i]}", f"are labelled {target.classes[h]}"],
        }
        for a, i in enumerate(shown.tolist())
        for b, h in enumerate(shown.tolist())
    ]
    yield {
        "type": "matrix",
        "key": "noise",
        "title": title,
        "description": "Each line is a class as the models see it; the numbers say which labels its rows bear, in "
        f"percent of the class.{left}",
        "rows": classes,
        "columns": classes,
        "row_label": "in truth",
        "column_label": "as labelled",
        "cells": cells,
        "table": table(["in truth", *classes], [[name, *line] for name, line in zip(classes, shares, strict=True)]),
    }
