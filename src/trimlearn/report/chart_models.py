"""Charts of predictions: calibration, and the noise of labels.

Charts of the linear fit: its coefficients, who leaves when, and how it converged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.report.chart_specs import PERCENT, Spec, axis, numbers, points, rows_to_draw, say, share, short, table
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
    drawn, note = rows_to_draw(rows, target.flagged, given - np.median(given[rows]), judged.score)
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
        **points(predicted[drawn], given[drawn], drawn, judged.groups, judged.names, judged.score),
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


COEFFICIENTS = 20  # of a forest plot: more do not fit on a screen
SETTLED = 1e-4  # of both measures of stationarity: the tolerance at which `trimlearn.solve` stops
LEAVERS = 25  # rows of the chart of who leaves when: likewise


def coefficients(target: TargetFindings, columns: Sequence[str] = ()) -> Iterator[Spec]:
    """The linear model, fitted to all rows, and trimmed; not where none of it is about a column (those of images)."""
    known = [c for c in target.coefficients if _number(c["trimmed"]) is not None and _number(c["plain"]) is not None]
    there = [c for c in known if not str(c["name"]).endswith("intercept")]  # it says nothing, and dwarfs the others
    if not there or (columns and not any(name in str(c["name"]) for c in there for name in columns)):
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
        "description": "What each column adds to the linear model, per typical step of the column: with all rows "
        f"(rings), and trimmed (dots, with their 95 % intervals). The largest first.{more}",
        "x": {"label": "coefficient", "shape": "linear"},
        "groups": [{"role": "plain", "name": "all rows"}, {"role": "trimmed", "name": "trimmed"}],
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
    opposite = [c for c in moved if c["plain"] * c["trimmed"] < 0 < c["low"] * c["high"]]
    turned = [c for c in opposite if 2 * abs(c["plain"]) > c["high"] - c["low"]]
    if not known:
        return "The coefficients with all rows, and trimmed"
    if turned:
        return f"When rows are trimmed, the coefficient of “{turned[0]['name']}” changes its sign"
    if not moved:
        return "Trimming moves no coefficient beyond its 95 % interval"
    if len(moved) == 1:
        return f"Trimming moves the coefficient of “{moved[0]['name']}” beyond its 95 % interval"
    return f"Trimming moves {len(moved)} of {len(known)} coefficients beyond their 95 % intervals"


def who_leaves(judged: JudgedTarget, path: Any) -> Iterator[Spec]:
    """The rows in the order in which they leave as more is trimmed."""
    if path is None:
        return
    leaves = np.asarray(path.leaves_at, dtype=np.float64)
    score = judged.score
    seen = [np.arange(len(score)), judged.target.fits.get("rows", ()), np.flatnonzero(np.isfinite(score))]
    rows = next((np.asarray(some) for some in seen if len(some) == len(leaves)), None)
    if rows is None or not np.any(np.isfinite(leaves)):
        return
    worst = np.nan_to_num(score[rows], nan=-np.inf)
    order = np.lexsort((-worst, leaves))
    order = order[np.isfinite(leaves[order])]
    found = float(path.elbow if path.auto is None else path.auto)
    if found <= 0:
        return
    early = int(np.sum(leaves <= max(float(path.elbow), leaves[order[0]])))
    first = order[: min(LEAVERS, 2 * early + 5)]
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
    more = f" The first {len(first)} of {len(order):,} are drawn." if len(order) > len(first) else ""
    start = judged.names.of(int(rows[first[0]]))
    yield {
        "type": "rows",
        "key": "path",
        "title": f"As more and more rows are trimmed from the linear model, “{start}” leaves first",
        "description": "The linear model is fitted with more and more rows trimmed: each line ends where its row "
        f"leaves for good. By this model alone, about {share(found)} of the rows do not fit; later leavers may well "
        f"be right.{more}",
        "x": {"label": "share of rows trimmed", "shape": "linear", "percent": True, "zero": True},
        "groups": [{"role": "fits", "name": "leaves at"}],
        "thin": True,
        "lines": [{"at": numbers([found])[0], "label": f"do not fit: {share(found)}"}],
        "items": items,
        "table": table(["row", "leaves at"],
                       [[judged.names.of(int(rows[i])), share(float(leaves[i]))] for i in order[:100]], len(order)),
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
    count, last = say(float(passes[-1])), records[-1]
    title = f"The linear fit had settled after {count} passes over the data"
    if not max(last.stationarity_x, last.stationarity_w) <= SETTLED:  # nor where one is not a number
        title = f"The linear fit was still moving after {count} passes over the data"
    kept = np.array([r.h for r in records])
    fewer = " At first more and more rows are left out, which lowers it too." if np.ptp(kept) > 0 else ""
    yield {
        "type": "scatter",
        "key": "convergence",
        "title": title,
        "description": "The objective of the trimmed linear fit after each reweighting: it falls as the fit learns "
        f"which rows to leave out.{fewer} Whether it has settled is measured by what one more step would change.",
        "x": {"label": "passes over the data", "shape": "linear"},
        "y": axis("objective", objective),
        "points": {"x": numbers(passes), "y": numbers(objective), "group": [0] * len(passes),
                   "name": [f"{say(float(h))} rows count" for h in kept]},
        "groups": [{"role": "trimmed", "name": "objective"}],
        "join": [0],
        "label": [],
        "table": table(["passes", "objective"], [[float(a), float(b)] for a, b in zip(passes, objective, strict=True)]),
    }  # fmt: skip
