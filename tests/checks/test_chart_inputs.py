"""`trimlearn.checks.chart_inputs`: distances and leavers belong to the rows that they are drawn for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trimlearn import TrimmedLinearRegression, TrimmedLogisticRegression, check, trim_path
from trimlearn.checks.chart_inputs import SHARES, chart_inputs
from trimlearn.checks.findings import TargetFindings


def judged(n: int = 120, labels: bool = False, missing: int = 10, p: int = 2) -> tuple[TargetFindings, pd.DataFrame]:
    """A target that is missing in the first rows, judged by a linear fit; 8 of the others are wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X.sum(axis=1) + 0.1 * rng.normal(size=n)
    y[missing : missing + 8] += 20
    X[-1] = 30.0
    rows = np.arange(missing, n)
    frame = pd.DataFrame(X)
    model = TrimmedLogisticRegression(random_state=0) if labels else TrimmedLinearRegression(random_state=0)
    linear = model.fit(X[rows], (y[rows] > 0).astype(int) if labels else y[rows])
    score = np.full(n, np.nan)
    score[rows] = linear.outlier_scores_
    design = SimpleNamespace(transform=lambda part: part.to_numpy())
    no = np.zeros(n, dtype=bool)
    fits = {"linear": linear, "design": design, "rows": rows}
    return TargetFindings("y", "regression", (), score, no, score, score, no, no, 0.07, fits=fits), frame


def test_distances_have_the_rows_of_the_table() -> None:
    target, frame = judged()
    found = chart_inputs(target, frame)
    assert np.isnan(found["distances"][:10]).all()
    assert np.isfinite(found["distances"][10:]).all()
    assert np.nanargmax(found["distances"]) == 119
    assert found["distances"][119] > 10 * found["distance_limit"]


def test_the_path_is_that_of_trim_path() -> None:
    target, frame = judged()
    path = chart_inputs(target, frame)["path"]
    assert (path.leaves_at[:8] <= 0.1).all()
    assert path.elbow == pytest.approx(0.05, abs=0.051)
    linear = target.fits["linear"]
    data = frame.to_numpy()[10:]
    again = trim_path(linear, data, linear._remembered(None, None).t, grid=SHARES)
    assert np.mean(path.leaves_at == again.leaves_at) > 0.9


def test_what_would_take_long_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimlearn.checks.chart_inputs.NUMBERS", 100)
    assert "path" not in chart_inputs(*judged())


def test_without_a_linear_fit_there_is_nothing() -> None:
    target, frame = judged()
    target.fits.pop("linear")
    assert chart_inputs(target, frame) == {}


def test_of_very_many_rows_some_are_drawn_and_all_that_are_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimlearn.checks.chart_inputs.ROWS", 40)
    target, frame = judged()
    target.flagged[10:18] = True
    drawn = np.isfinite(chart_inputs(target, frame)["distances"])
    assert drawn.sum() == 40 and drawn[10:18].all() and not drawn[:10].any()
    target.flagged[10:110] = True
    assert np.isfinite(chart_inputs(target, frame)["distances"]).sum() == 110


def test_wrong_labels_leave_first() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)
    wrong = np.argsort(-np.abs(X[:, 0]))[:10]
    y[wrong] = (y[wrong] + 1) % 3
    linear = TrimmedLogisticRegression(contamination=10, random_state=0).fit(X, y)
    target, frame = judged(200, missing=0)
    target.fits["linear"] = linear
    path = chart_inputs(target, frame)["path"]
    assert np.median(path.leaves_at[wrong]) <= 0.05 and np.mean(path.leaves_at <= 0.05) < 0.08
    assert path.auto == pytest.approx(0.05) and (path.weights.sum(axis=1) >= 0.6 * 200).all()


def keys(target: str | None) -> set[str]:
    """The charts of a check of 150 rows with some wrong values."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 1)) + 0.7 * rng.normal(size=(150, 4))
    frame = pd.DataFrame(X.round(3), columns=["length", "width", "height", "weight"])
    frame["price"] = (X.sum(axis=1) + 0.3 * rng.normal(size=150)).round(2)
    frame["size"] = np.where(frame["price"] > 0, "large", "small")
    frame.loc[:7, "price"] += 15.0
    frame.loc[8:14, "size"] = np.where(frame.loc[8:14, "price"] > 0, "small", "large")
    kept = {"price": ["size"], "size": ["price"]}.get(target or "", ["price", "size"])
    return {chart["key"] for chart in check(frame.drop(columns=kept), target=target).results["charts"]}


@pytest.mark.usefixtures("quick_checks")
@pytest.mark.filterwarnings("ignore")
def test_the_charts_of_a_check_have_their_inputs() -> None:
    assert {"outlier-map", "path"} <= keys("price")
    assert {"outlier-map", "path"} <= keys("size")
    assert "components" in keys(None)
