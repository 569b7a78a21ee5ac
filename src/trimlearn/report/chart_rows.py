"""Charts of rows as a whole: their distances, beside what clean rows would have, and principal components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from trimlearn._utils.arrays import Floats, Ints
from trimlearn.report.chart_specs import Cloud, RowNames, Spec, axis, counted, numbers, say, share, table

if TYPE_CHECKING:
    from trimlearn.checks.findings import RowFindings

FEWEST = 5  # rows of a chart of points; fewer are read better in the table of suspects
ARROWS = 8  # columns of a biplot: more arrows hide each other and the points
REACH = 0.8  # of the half width of the cloud of points that the longest arrow of a biplot has


@final
@dataclass(frozen=True)
class Seen:
    """The rows that were judged, with what their charts share."""

    found: RowFindings
    cloud: Cloud
    rows: Ints  # those that have a score

    @classmethod
    def of(cls, found: RowFindings, names: RowNames) -> Self:
        """The rows of a table."""
        flagged = np.zeros(len(found.scores), dtype=bool)
        flagged[[odd.row for odd in found.odd]] = True
        words = {"fits": "like the others", "wrong": "odd as a whole"}
        score = np.nan_to_num(found.scores, nan=0.0)  # 0 for rows that have none
        cloud = Cloud(names, flagged, score, np.where(flagged, "wrong", "fits"), words)
        return cls(found, cloud, np.flatnonzero(np.isfinite(found.scores)))

    def of_fit(self, known: Any) -> Floats | None:
        """What a fit knows of its rows, for all rows of the table; None where it is not known which rows it saw."""
        values: Floats = np.asarray(known, dtype=np.float64)
        if values.shape[0] == len(self.found.scores):
            return values
        if values.shape[0] != len(self.rows):
            return None
        spread = np.full((len(self.found.scores), *values.shape[1:]), np.nan)
        spread[self.rows] = values
        return spread

    def scatter(self, key: str, x: Floats, y: Floats, far: Floats) -> tuple[Spec, str]:
        """The points of a chart, and what was left out."""
        rows = self.rows[np.isfinite(x[self.rows]) & np.isfinite(y[self.rows])]
        spec, note = self.cloud.points(x, y, rows, far)
        return {"type": "scatter", "key": key, **spec, "table": self.listed()}, note

    def listed(self) -> Spec:
        """The odd rows, most probable first."""
        order = sorted(self.found.odd, key=lambda odd: (-odd.probability, -odd.score))
        lines = [
            [self.cloud.names(o.row), share(o.probability), float(o.score), ", ".join(o.columns)] for o in order[:100]
        ]
        return table(["row", "probability", "score", "columns"], lines, len(order))


def row_charts(found: RowFindings, names: RowNames) -> Iterator[Spec]:
    """All charts that the fits allow."""
    seen = Seen.of(found, names)
    if len(seen.rows) < FEWEST:
        return
    yield from _components(seen, found.fits.get("pca"), found.fits.get("matrix"), found.fits.get("columns"))
    yield from _sorted(seen)
    if seen.cloud.flagged.any():  # else they would alarm, by rows that are far out in one view only
        yield from _distances(seen, found.fits.get("pca"))
        yield from _quantiles(seen, found.fits.get("covariance"))


def _sorted(seen: Seen) -> Iterator[Spec]:
    """The scores from the worst on, with the cut."""
    score, rows = seen.cloud.worst, seen.rows
    rank = seen.cloud.ranks(rows)
    spec, note = seen.scatter("row-scores", rank, np.where(np.isfinite(rank), score, np.nan), score)
    limit, odd = seen.found.threshold, len(seen.found.odd)
    verb = "is" if odd <= 1 else "are"
    beyond = int(np.sum((score[rows] > limit) & ~seen.cloud.flagged[rows]))
    other = f" {counted(beyond, 'row', start=True)} beyond the cut-off {'is' if beyond == 1 else 'are'} not called odd:"
    doubt = f"{other} not all models agree." if beyond else ""
    yield spec | {
        "title": f"{counted(odd, 'row', start=True)} of {len(rows):,} {verb} unlike all others as a whole",
        "description": f"How far each row lies from the bulk of the table, the furthest first.{doubt} {note}".strip(),
        "x": {
            "label": "rank of the row, the furthest first",
            "short": "rank",
            "shape": "log" if len(rows) > 100 else "linear",
        },
        "y": axis("score: larger is further from the others", score[rows], zero=True, short="score"),
        "lines": [{"axis": "y", "at": limit, "label": "cut-off"}] if np.isfinite(limit) else [],
    }


def _distances(seen: Seen, pca: Any) -> Iterator[Spec]:
    """Distance from the plane of the components against distance within it (Hubert, Rousseeuw, Vanden Branden 2005)."""
    if pca is None:
        return
    within, off = seen.of_fit(pca.score_distances_), seen.of_fit(pca.outlier_scores_)
    if within is None or off is None:
        return
    spec, note = seen.scatter("row-map", within, off, within)
    limit = float(pca.threshold_)
    beyond, odd = int(np.sum(off[seen.cloud.flagged] > limit)), int(seen.cloud.flagged.sum())
    some = f"{counted(odd, 'odd row', start=True)}" if beyond == odd else f"{beyond} of {counted(odd, 'odd row')}"
    yield spec | {
        "title": f"{some} {'lies' if odd == 1 else 'lie'} off the pattern that the columns share",
        "description": "Across, how far out a row lies within "
        f"{counted(int(pca.n_components_), 'principal component')}; up, how far off them: high points have values that "
        f"do not go together. {note}".strip(),
        "x": axis("distance within the components", within[seen.rows]),
        "y": axis("distance from the components", off[seen.rows], zero=True),
        "lines": [{"axis": "y", "at": limit, "label": "cut-off"}] if np.isfinite(limit) else [],
    }


def _components(seen: Seen, pca: Any, matrix: Any, columns: Any) -> Iterator[Spec]:
    """The rows by their first two components, and which columns these are made of (Gabriel 1971)."""
    if pca is None or matrix is None or pca.n_components_ < 2:
        return
    scores = seen.of_fit(pca.transform(matrix)[:, :2])
    if scores is None:
        return
    x, y = scores.T
    spec, note = seen.scatter("components", x, y, np.hypot(x, y))
    arrows = pca.components_[:2].T
    names = [str(name) for name in (columns if columns is not None else range(len(arrows)))]
    longest = np.argsort(-np.hypot(*arrows.T), kind="stable")[: min(ARROWS, len(arrows))]
    centre = np.abs(scores[seen.rows][~seen.cloud.flagged[seen.rows]])
    reach = float(np.quantile(centre.max(axis=1), 0.99)) if len(centre) else 1.0
    by = REACH * reach / max(float(np.hypot(*arrows.T).max()), 1e-300)
    tips = by * arrows[longest]
    held = float(np.sum(pca.explained_variance_ratio_[:2]))
    yield spec | {
        "title": f"Two directions hold {share(held)} of what varies in {counted(len(arrows), 'column')}",
        "description": "Each point is a row, placed by its first two principal components; the arrows say in which "
        f"direction a column grows. {note}".strip(),
        "x": axis("first component", x[seen.rows], include=numbers(tips[:, 0])),
        "y": axis("second component", y[seen.rows], include=numbers(tips[:, 1])),
        "arrows": [
            {"x": a, "y": b, "name": names[j]} for (a, b), j in zip(tips.round(6).tolist(), longest, strict=True)
        ],
    }


def _quantiles(seen: Seen, covariance: Any) -> Iterator[Spec]:
    """Distances against those of normal rows."""
    if covariance is None:
        return
    from scipy.stats import chi

    p = int(covariance.n_features_in_)
    score, rows = seen.of_fit(covariance.outlier_scores_), seen.rows
    if score is None or not np.all(np.isfinite(score[rows])):
        return
    order = rows[np.argsort(score[rows], kind="stable")]
    expected = np.full(len(score), np.nan)
    expected[order] = chi.ppf((np.arange(len(order)) + 0.5) / len(order), p)
    spec, note = seen.scatter("quantiles", expected, np.where(np.isfinite(expected), score, np.nan), score)
    ratio = float(score[order[-1]] / expected[order[-1]])
    times = "more than 1,000" if ratio > 1000 else say(ratio, 2)
    yield spec | {
        "title": f"The furthest row lies {times} times as far out as a normal distribution would put it",
        "description": "Sorted distances against those of as many rows from a normal distribution: on the dashed line "
        "they are the same; "
        f"odd rows rise above it, and a bend says that the columns are not normal. {note}".strip(),
        "x": axis("distance under a normal distribution", expected[rows]),
        "y": axis("robust distance", score[rows]),
        "diagonal": True,
    }
