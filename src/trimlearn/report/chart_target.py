"""Charts of the target: how far each row is from what the models expect, and how sure that it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.report.chart_specs import Cloud, RowNames, Spec, axis, counted, share, short, table

if TYPE_CHECKING:
    import pandas as pd

    from trimlearn.checks.findings import TargetFindings
    from trimlearn.tables.table import Table

TOP = 1.5  # times the largest score that is finite: where infinite ones are drawn, above all others
GROUPS = 0.25  # of the rows beyond the limit of distances: so many are a group of their own rather than unusual
BINS = 20  # of a histogram of probabilities: 5 % each
FEWEST = 5  # rows of a chart of points; fewer are read better in the table of suspects


@final
@dataclass(frozen=True)
class JudgedTarget:
    """A target that was judged, with what its charts share."""

    target: TargetFindings
    cloud: Cloud
    given: NDArray[Any]  # as the table has it: numbers or labels
    residual: Floats  # the score; negative where a number is smaller than expected
    note: str  # on scores that are infinite

    @classmethod
    def of(cls, found: Table, target: TargetFindings, names: RowNames) -> Self:
        """The target of a table."""
        both = target.by_linear & target.by_boosting
        role = np.where(target.flagged, np.where(both, "wrong", "doubt"), "fits")
        thing = short(target.name)
        words = {
            "fits": "not flagged",
            "doubt": f"{thing} looks wrong, the models differ",
            "wrong": f"{thing} looks wrong to both models",
        }
        column = found.frame[target.name]
        given: NDArray[Any] = _labels(column) if target.classes else column.to_numpy(dtype=np.float64)
        score = np.asarray(target.score, dtype=np.float64)
        endless = np.isposinf(score)
        top = TOP * float(np.max(score[np.isfinite(score)], initial=1.0))
        note = f" Infinite scores ({int(endless.sum()):,}) are drawn as {top:.3g}." if endless.any() else ""
        score = np.where(endless, top, score)
        residual = score
        if not target.classes:
            expected = np.asarray(target.suggested, dtype=np.float64)
            residual = np.where(given < expected, -score, score)
        return cls(target, Cloud(names, target.flagged, score, role, words), given, residual, note)

    @property
    def score(self) -> Floats:
        """Finite, or NaN for rows that were not judged."""
        return self.cloud.worst

    @property
    def cut(self) -> float | None:
        """The score between rows that are flagged and rows that are not, if there is one."""
        score, flagged = self.score, self.target.flagged
        there = np.isfinite(score)
        bad, good = score[there & flagged], score[there & ~flagged]
        if len(bad) == 0 or len(good) == 0 or bad.min() <= good.max():
            return None
        return float((bad.min() + good.max()) / 2)

    def listed(self, rows: Ints) -> Spec:
        """The suspects among these rows, most probable first, as a table."""
        flagged = rows[self.target.flagged[rows]]
        order = flagged[np.argsort(-self.target.probability[flagged], kind="stable")]
        plain, lines = str if self.target.classes else float, []
        for i in order[:100].tolist():
            given, expected = plain(self.given[i]), plain(self.target.suggested[i])
            probability, score = share(float(self.target.probability[i])), float(self.target.score[i])
            lines.append([self.cloud.names(i), given, expected, probability, score])
        return table(["row", "given", "expected", "probability", "score"], lines, len(order))


def _labels(values: pd.Series) -> NDArray[np.str_]:
    """The labels as text, "" where there is none."""
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist()]
    return np.where(values.isna().to_numpy(), "", np.array(words, dtype=np.str_))


def outlier_map(judged: JudgedTarget, far: Floats | None, limit: float | None) -> Iterator[Spec]:
    """How badly a row is explained against how far out its predictors lie (Rousseeuw and Van Zomeren 1990)."""
    target = judged.target
    if far is None or len(far) != len(judged.score):
        return
    rows = np.flatnonzero(np.isfinite(far) & np.isfinite(judged.residual))
    if len(rows) < FEWEST:
        return
    limit, groups = (limit if limit is not None and np.isfinite(limit) else None), ""
    if limit is not None and np.mean(far[rows] > limit) > GROUPS:
        limit, groups = None, "So many rows lie far out that they are groups of their own. "
    points, note = judged.cloud.points(far, judged.residual, rows, far)
    signed = not target.classes
    up: dict[str, Any] = {"label": "score: larger is worse", "short": "score", "zero": True}
    if signed:
        up = {"label": "residual, in robust standard deviations", "short": "residual"}
    lines = [] if limit is None else [{"axis": "x", "at": limit, "label": "far from others"}]
    cuts = [] if judged.cut is None else [judged.cut, -judged.cut][: 1 + signed]
    lines += [{"axis": "y", "at": cut, "label": "flagged beyond"} for cut in cuts]
    yield {
        "type": "scatter",
        "key": "outlier-map",
        "title": _map_title(judged, rows, far, limit),
        "description": "Each point is a row: across, how unusual its predictors are; up and down, how far its "
        f"{short(target.name)} is from what the models expect. Rows far to the right weigh most in a plain fit. "
        f"{groups}{note}{judged.note}".strip(),
        "x": axis("distance of the predictors from the other rows", far[rows], short="distance"),
        "y": axis(values=judged.residual[rows], **up),
        "lines": lines,
        **points,
        "table": judged.listed(rows),
    }


def _map_title(judged: JudgedTarget, rows: Ints, far: Floats, limit: float | None) -> str:
    flagged = rows[judged.target.flagged[rows]]
    thing = short(judged.target.name)
    if len(flagged) == 0:
        return f"In no row is {thing} far from what the models expect"
    outside = 0 if limit is None else int(np.sum(far[flagged] > limit))
    start = f"{counted(len(flagged), 'row', start=True)} {'has' if len(flagged) == 1 else 'have'} an unexpected {thing}"
    if outside == 0:
        return f"{start}, none of them with unusual predictors" if limit is not None else start
    which = "and"
    if len(flagged) > 1:
        some = "all of them" if outside == len(flagged) else counted(outside, "of them", "of them")
        which = f"{some} with"
    return f"{start}, {which} unusual predictors too"


def sorted_scores(judged: JudgedTarget) -> Iterator[Spec]:
    """The scores from the worst on, with the cut."""
    target = judged.target
    score = judged.score
    rows = np.flatnonzero(np.isfinite(score))
    if len(rows) < FEWEST:
        return
    points, note = judged.cloud.points(judged.cloud.ranks(rows), score, rows, score)
    cut = judged.cut
    flagged = int(target.flagged[rows].sum())
    shape = "log" if len(rows) > 100 else "linear"  # else the first ones, which matter, share a few pixels
    yield {
        "type": "scatter",
        "key": "scores",
        "title": _scores_title(judged, rows, flagged),
        "description": f"The scores of {len(rows):,} rows, from the worst on: a gap between the flagged and the others "
        f"says that they are two kinds of rows. {note}{judged.note}".strip(),
        "x": {"label": "rank of the row, the worst first", "short": "rank", "shape": shape},
        "y": axis("score: larger is worse", score[rows], zero=True, short="score"),
        "lines": [] if cut is None else [{"axis": "y", "at": cut, "label": "flagged above"}],
        **points,
        "table": judged.listed(rows),
    }


def _scores_title(judged: JudgedTarget, rows: Ints, flagged: int) -> str:
    if flagged == 0:
        return "No score stands out"
    score, bad = judged.score, judged.target.flagged
    if judged.cut is None:
        return f"{counted(flagged, 'row', start=True)} of {len(rows):,} {'is' if flagged == 1 else 'are'} flagged"
    good = score[rows][~bad[rows]]
    width = score[rows][bad[rows]].min() - good.max()
    spread = float(np.median(np.abs(good - np.median(good))))
    gap = "a clear gap" if width > spread else "a small gap" if width > spread / 4 else "no gap"
    return f"There is {gap} between the {counted(flagged, 'flagged row')} and the others"


def probabilities(judged: JudgedTarget) -> Iterator[Spec]:
    """How sure it is that the suspects are wrong, and how many of them are innocent."""
    target = judged.target
    p = target.probability[target.flagged & np.isfinite(target.probability)]
    if len(p) < FEWEST:
        return
    others = target.probability[~target.flagged & np.isfinite(target.probability)]
    edges = np.linspace(0.0, 1.0, BINS + 1)
    near = others[others >= edges[1]]
    counts = [np.histogram(v, edges)[0].tolist() for v in (p, near)]
    thing = short(target.name)
    innocent, missed = float(np.sum(1 - p)), float(np.sum(others))
    bins = [
        {"from": round(a, 2), "to": round(b, 2), "counts": list(c)}
        for a, b, *c in zip(edges[:-1].tolist(), edges[1:].tolist(), *counts, strict=True)
    ]
    groups = [{"role": "wrong", "name": "flagged"}, {"role": "fits", "name": "not flagged"}]
    yield {
        "type": "histogram",
        "key": "probabilities",
        "title": f"By their probabilities, {_about(len(p) - innocent)} of the {len(p):,} rows flagged for {thing} are "
        "wrong",
        "description": f"If all {len(p):,} were called wrong, {_about(innocent)} of them would be innocent; "
        f"{_about(missed)} of the others would be missed. "
        f"{len(others) - len(near):,} rows below {share(1 / BINS)} are not drawn.",
        "x": {"label": f"probability that {thing} is wrong", "shape": "linear", "percent": True},
        "y": {"label": "rows", "shape": "linear"},
        "groups": groups,
        "bins": bins,
        "table": table(["probability", "flagged", "not flagged"],
                       [[f"{share(b['from'])} to {share(b['to'])}", *b["counts"]] for b in bins if sum(b["counts"])]),
    }  # fmt: skip


def _about(value: float) -> str:
    """A number of rows that is an estimate: of what is no whole number, digits after the point say nothing."""
    return f"about {value:,.0f}" if round(value) >= 1 else "hardly any"
