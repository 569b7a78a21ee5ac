"""`trimlearn.checks.chart_inputs`: distances and leavers belong to the rows that they are drawn for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trimlearn import TrimmedLinearRegression, TrimmedLogisticRegression, trim_path
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
    assert "path" not in chart_inputs(*judged(labels=True))
    monkeypatch.setattr("trimlearn.checks.chart_inputs.NUMBERS", 100)
    assert "path" not in chart_inputs(*judged())


def test_without_a_linear_fit_there_is_nothing() -> None:
    target, frame = judged()
    target.fits.pop("linear")
    assert chart_inputs(target, frame) == {}
