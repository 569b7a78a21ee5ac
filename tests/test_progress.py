"""verbose: what a fit is doing, on stderr, and nothing else changes."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from trimlearn import (
    TrimmedCovariance,
    TrimmedEstimator,
    TrimmedGLM,
    TrimmedGraphicalLasso,
    TrimmedLinearRegression,
    TrimmedLogisticRegression,
    TrimmedPCA,
)
from trimlearn.progress import stage, watching

pytestmark = pytest.mark.usefixtures("quick_fits")  # how well rows are judged is not asked here

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NUMBERS = X @ [1.0, 2.0, -1.0] + RNG.normal(size=60)
LABELS = (NUMBERS > 0).astype(int)

CASES: list[tuple[Any, Any, str]] = [
    (TrimmedLinearRegression(), NUMBERS, "least trimmed squares"),
    (TrimmedGLM("huber"), NUMBERS, "trimmed fit, keeping"),
    (TrimmedGLM("binomial"), LABELS, "labels judged"),
    (TrimmedLogisticRegression(), LABELS, "labels judged"),
    (TrimmedPCA(1, random_state=0), None, "trimmed subspace of 1 dimensions"),
    (TrimmedCovariance(random_state=0), None, "least determinant"),
    (TrimmedGraphicalLasso(0.1, random_state=0), None, "concentration step 1"),
    (TrimmedEstimator(Ridge(), random_state=0), NUMBERS, "round 1: 3 models"),
    (TrimmedEstimator(LogisticRegression(), random_state=0), LABELS, "final fit to"),
]
every = pytest.mark.parametrize(
    ("model", "y", "words"), CASES, ids=[f"{type(model).__name__}-{k}" for k, (model, _, _) in enumerate(CASES)]
)


@pytest.fixture
def no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_rich(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "rich":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_rich)


@every
@pytest.mark.usefixtures("no_rich")
def test_lines_where_there_is_no_rich(model: Any, y: Any, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = model.set_params(verbose=0).fit(X, y).weights_
    assert capsys.readouterr() == ("", "")
    loud = model.set_params(verbose=1).fit(X, y).weights_
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(type(model).__name__) and words in shown.err
    assert np.array_equal(quiet, loud)
    model.rethreshold(0.2)
    assert capsys.readouterr().err.startswith(type(model).__name__)


@every
def test_a_bar_by_rich(model: Any, y: Any, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    model.set_params(verbose=True).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == "" and "0:00:0" in shown.err


def test_one_display_for_a_model_in_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")  # of which two at a time would be an error
    TrimmedEstimator(TrimmedLinearRegression(verbose=1), verbose=1, max_iter=2, tol=1.0).fit(X, NUMBERS)
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("no_rich")
def test_the_display_is_closed_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="an error"), watching(True, "here"):
        raise ValueError("an error")
    stage("nobody watches")
    assert capsys.readouterr().err == "here\n"
