"""The chart of how sure it is that suspects are wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trimlearn.report.chart_specs import Spec, share, short, table
from trimlearn.report.chart_target import FEWEST, JudgedTarget

__all__ = ["probabilities"]

BINS = 20  # of a histogram of probabilities: 5 % each


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
