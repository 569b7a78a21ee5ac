"""Charts of the linear fit: its coefficients, who leaves when, and how it converged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trimlearn.report.chart_specs import Spec, axis, numbers, say, share, table
from trimlearn.report.chart_target import JudgedTarget

if TYPE_CHECKING:
    from trimlearn.checks.findings import TargetFindings

COEFFICIENTS = 20  # of a forest plot: more do not fit on a screen
LEAVERS = 25  # rows of the chart of who leaves when: likewise
SETTLED = 1e-4  # of both measures of stationarity: the tolerance at which `trimlearn.solve` stops


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
    names, score = judged.cloud.names, judged.score
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
            "name": names(int(rows[i])),
            "points": numbers([leaves[i]]),
            "low": 0,
            "high": numbers([leaves[i]])[0],
            "role": (role := str(judged.cloud.role[rows[i]])),
            "note": judged.cloud.words[role],
        }
        for i in first
    ]
    more = f" The first {len(first)} of {len(order):,} are drawn." if len(order) > len(first) else ""
    yield {
        "type": "rows",
        "key": "path",
        "title": f"As more and more rows are trimmed from the linear model, “{items[0]['name']}” leaves first",
        "description": "The linear model is fitted with more and more rows trimmed: each line ends where its row "
        f"leaves for good. By this model alone, about {share(found)} of the rows do not fit; later leavers may well "
        f"be right.{more}",
        "x": {"label": "share of rows trimmed", "shape": "linear", "percent": True, "zero": True},
        "groups": [{"role": "fits", "name": "leaves at"}],
        "thin": True,
        "lines": [{"at": numbers([found])[0], "label": f"do not fit: {share(found)}"}],
        "items": items,
        "table": table(["row", "leaves at"],
                       [[names(int(rows[i])), share(float(leaves[i]))] for i in order[:100]], len(order)),
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
