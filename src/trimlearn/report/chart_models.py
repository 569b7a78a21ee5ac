"""Charts of the models: calibration, noise of the labels, coefficients, who leaves when, convergence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trimlearn.report.chart_specs import Spec, axis, chosen, counted, numbers, points, say, share, table
from trimlearn.report.chart_target import Judged

if TYPE_CHECKING:
    from trimlearn.checks.findings import TargetFindings

__all__ = ["calibration", "coefficients", "convergence", "noise_matrix", "who_leaves"]

Floats = NDArray[np.float64]

COEFFICIENTS = 20  # of a forest plot: more do not fit on a screen
LEAVERS = 25  # rows of the chart of who leaves when: likewise
CLASSES = 12  # of a noise matrix: more squares have no room for numbers
BINS = 10  # of a reliability diagram, as is usual (Niculescu-Mizil and Caruana 2005)
NORMAL = 1.96  # two-sided 95 % of a normal law
OFF = 0.05  # what predictions may be off by on average, to be called right


def calibration(judged: Judged, predicted: Floats | None) -> Iterator[Spec]:
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


def _given_and_predicted(judged: Judged, predicted: Floats) -> Iterator[Spec]:
    target = judged.target
    given = np.asarray(judged.given, dtype=np.float64)
    rows = np.flatnonzero(np.isfinite(given) & np.isfinite(predicted))
    if len(rows) < BINS or np.ptp(given[rows]) == 0:
        return
    drawn, note = chosen(rows, target.flagged, given - np.median(given[rows]), target.score)
    both = np.concatenate([given[rows], predicted[rows]])
    kept = rows[~target.flagged[rows]]
    error = float(np.median(np.abs(given[kept] - predicted[kept]))) if len(kept) else float("nan")
    yield {
        "type": "scatter",
        "key": "calibration",
        "title": f"Half of the rows that are not flagged lie within {say(error)} of the expected {target.name}",
        "description": f"Each point is a row: across, the {target.name} that models expect without having seen it; up, the "
        f"one that is given. On the dashed line they agree. {note}".strip(),
        "x": axis(f"expected {target.name}", both),
        "y": axis(f"given {target.name}", both),
        "diagonal": True,
        **points(predicted[drawn], given[drawn], drawn, judged.groups, judged.names, target.score),
        "table": judged.listed(rows),
    }


def _reliability(judged: Judged, predicted: Floats) -> Iterator[Spec]:
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


def _wilson(share_: Floats, n: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Wilson's 95 % interval of a share of n."""
    z2 = NORMAL**2
    middle = (share_ + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL * np.sqrt(share_ * (1 - share_) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return middle - half, middle + half


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
        title = f"{share(float(off[k, j]))} of {target.classes[k]} bear the label {target.classes[j]}"
    left = (
        f" The {CLASSES} classes with the most noise are drawn, of {len(target.classes)}." if len(off) > CLASSES else ""
    )
    cells = [
        {
            "row": a,
            "column": b,
            "role": "fits" if a == b else "wrong",
            "strength": 0.1 if a == b else round(min(1.0, 2 * float(matrix[i, h])), 3),
            "text": share(float(matrix[i, h])) if matrix[i, h] >= 0.0005 else "0 %",
            "lines": [f"{share(float(matrix[i, h]))} of {target.classes[i]}", f"are labelled {target.classes[h]}"],
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
        "table": table(["in truth", *classes],
                       [[name, *(share(float(matrix[i, h])) for h in shown)] for name, i in zip(classes, shown, strict=True)]),
    }  # fmt: skip


def coefficients(target: TargetFindings) -> Iterator[Spec]:
    """The linear model, fitted to all rows and without the suspects."""
    there = [c for c in target.coefficients if _number(c["trimmed"]) is not None and _number(c["plain"]) is not None]
    if not there:
        return
    there.sort(key=lambda c: -max(abs(c["trimmed"]), abs(c["plain"])))
    items = [
        {
            "name": str(c["name"]),
            "points": numbers([c["plain"], c["trimmed"]]),
            "low": _number(c["low"]),
            "high": _number(c["high"]),
        }
        for c in there[:COEFFICIENTS]
    ]
    more = f" The {COEFFICIENTS} largest of {len(there)} are drawn." if len(there) > COEFFICIENTS else ""
    yield {
        "type": "rows",
        "key": "coefficients",
        "title": _coefficients_title(there),
        "description": "What each column adds to the linear model, per typical step of the column: with all rows (rings), "
        f"and with the suspects trimmed (dots, with their 95 % intervals). The largest first.{more}",
        "x": {"label": "coefficient", "shape": "linear"},
        "groups": [{"role": "plain", "name": "all rows"}, {"role": "trimmed", "name": "without the suspects"}],
        "interval": "95 % interval",
        "dumbbell": True,
        "lines": [{"at": 0, "solid": True}],
        "items": items,
        "table": table(["column", "all rows", "trimmed", "from", "to"],
                       [[str(c["name"]), *(float(c[k]) if _number(c[k]) is not None else "–"
                                           for k in ("plain", "trimmed", "low", "high"))] for c in there]),
    }  # fmt: skip


def _number(value: Any) -> float | None:
    """A finite number, rounded, or None."""
    return None if value is None else numbers([value])[0]


def _coefficients_title(there: Sequence[dict[str, Any]]) -> str:
    known = [c for c in there if _number(c["low"]) is not None and _number(c["high"]) is not None]
    moved = [c for c in known if not c["low"] <= c["plain"] <= c["high"]]
    turned = [c for c in moved if c["plain"] * c["trimmed"] < 0]
    if not known:
        return "The coefficients with all rows and without the suspects"
    if turned:
        return f"Without the suspects, {turned[0]['name']} changes its sign"
    if not moved:
        return "The suspects move no coefficient beyond its 95 % interval"
    if len(moved) == 1:
        return f"The suspects move the coefficient of {moved[0]['name']} beyond its 95 % interval"
    return f"The suspects move {len(moved)} of {len(known)} coefficients beyond their 95 % intervals"


def who_leaves(judged: Judged, path: Any) -> Iterator[Spec]:
    """The rows in the order in which they leave as more is trimmed."""
    if path is None:
        return
    leaves = np.asarray(path.leaves_at, dtype=np.float64)
    score = judged.target.score
    rows = np.arange(len(score)) if len(leaves) == len(score) else np.flatnonzero(np.isfinite(score))
    if len(rows) != len(leaves) or not np.any(np.isfinite(leaves)):
        return
    worst = np.nan_to_num(score[rows], nan=-np.inf)
    order = np.lexsort((-worst, leaves))
    order = order[np.isfinite(leaves[order])]
    first = order[:LEAVERS]
    elbow = float(path.elbow)
    before = int(np.sum(leaves <= elbow))
    items = [
        {
            "name": judged.names.of(int(rows[i])),
            "points": numbers([leaves[i]]),
            "low": 0,
            "high": numbers([leaves[i]])[0],
            "role": str(judged.groups.role[rows[i]]),
            "note": judged.groups.names[str(judged.groups.role[rows[i]])],
        }
        for i in first
    ]
    more = f" The first {LEAVERS} of {len(order):,} are drawn." if len(order) > LEAVERS else ""
    start = judged.names.of(int(rows[first[0]]))
    yield {
        "type": "rows",
        "key": "path",
        "title": f"{start} is the first to leave; {counted(before, 'row')} {'is' if before == 1 else 'are'} out where the "
        "data say stop",
        "description": "The linear model is fitted with more and more rows trimmed: each line ends where its row leaves "
        f"for good.{more}",
        "x": {"label": "share of rows trimmed", "shape": "linear", "percent": True, "zero": True},
        "groups": [{"role": "fits", "name": "leaves at"}],
        "thin": True,
        "lines": [{"at": numbers([elbow])[0], "label": f"found in the data: {share(elbow)}"}],
        "items": items,
        "table": table(["row", "leaves at"], [[judged.names.of(int(rows[i])), share(float(leaves[i]))] for i in order[:100]],
                       len(order)),
    }  # fmt: skip


def convergence(target: TargetFindings) -> Iterator[Spec]:
    """The objective of the linear fit, pass by pass."""
    history = target.fits.get("history")
    if history is None:
        history = getattr(target.fits.get("linear"), "history_", None)
    records = [r for r in history or () if np.isfinite(r.objective) and np.isfinite(r.passes)]
    if len(records) < 3:
        return
    passes, objective = (np.array([getattr(r, name) for r in records]) for name in ("passes", "objective"))
    last, drop = objective[-1], objective.max() - objective.min()
    settled = np.flatnonzero(np.abs(objective - last) > 0.01 * drop)
    after = passes[min(len(passes) - 1, settled[-1] + 1)] if len(settled) else passes[0]
    title = f"The fit had settled after {say(float(after))} of {say(float(passes[-1]))} passes over the data"
    if len(settled) and settled[-1] >= len(passes) - 2:
        title = f"The fit was still moving at the end of {say(float(passes[-1]))} passes over the data"
    yield {
        "type": "scatter",
        "key": "convergence",
        "title": title,
        "description": "The objective of the trimmed linear fit after each reweighting: it falls as the fit learns which rows "
        "to leave out, and is flat where nothing changes any more.",
        "x": {"label": "passes over the data", "shape": "linear"},
        "y": axis("objective", objective),
        "points": {"x": numbers(passes), "y": numbers(objective), "group": [0] * len(passes)},
        "groups": [{"role": "trimmed", "name": "objective"}],
        "join": [0],
        "label": [],
        "table": table(["passes", "objective"], [[float(a), float(b)] for a, b in zip(passes, objective, strict=True)]),
    }
