"""What a notebook shows of an estimator: scikit-learn's diagram, and once it is fitted the verdict above it."""

from __future__ import annotations

import pickle
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.utils import estimator_html_repr

from trimlearn import CellwiseOutliers, TrimmedCovariance, TrimmedLinearRegression, TrimmedLogisticRegression
from trimlearn.estimators.base import Trimmed
from trimlearn.geometry import TrimmedHomography

pytestmark = pytest.mark.usefixtures("quick_fits")  # how well rows are judged is not asked here


def table(n: int = 40) -> tuple[Any, np.ndarray]:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = ["<script>alert(1)</script>", "a & b", *(f"row {i}" for i in range(2, n))]
    X = pd.DataFrame(rng.standard_normal((n, 2)), columns=["<i>x</i>", "y"], index=names)
    y = X.sum(axis=1).to_numpy() + 0.1 * rng.standard_normal(n)
    y[:2] += 30.0
    return X, y


def verdict(model: Any) -> str:
    html = model._repr_html_()
    diagram = html.index("<style>")
    assert html[:diagram].startswith('<div class="trimlearn-verdict"') and "sk-container" in html[diagram:]
    return str(html[:diagram])


class Balanced(HTMLParser):
    """Whether every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_before_fit_it_is_scikit_learns_diagram() -> None:
    model = TrimmedLinearRegression()
    plain = re.sub(r"sk-(container|estimator)-id-\d+", "", estimator_html_repr(model))
    assert re.sub(r"sk-(container|estimator)-id-\d+", "", model._repr_html_()) == plain
    assert "trimlearn-verdict" not in CellwiseOutliers()._repr_html_()


def test_the_verdict_names_the_worst_rows_and_escapes_them() -> None:
    X, y = table()
    html = verdict(TrimmedLinearRegression(random_state=0).fit(X, y))
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert "<script" not in html and "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "a &amp; b" in html
    assert "2 of 40 rows flagged (5 %)" in html and "vertical outlier" in html and "probability" in html
    assert "background" not in html and not re.search(r"color:\s*#", html)  # it is read on dark paper as well


def test_labels_are_shown_with_what_is_suggested() -> None:
    X, y = table(80)
    given = np.where(y > 0, "<yes>", "no")
    given[5] = "no" if given[5] == "<yes>" else "<yes>"
    html = verdict(TrimmedLogisticRegression(random_state=0).fit(X, given))
    assert "suggested" in html and "&lt;yes&gt;" in html and "<yes>" not in html


def test_displays_as_text_where_that_is_asked_for() -> None:
    X, y = table()
    model = TrimmedLinearRegression(random_state=0).fit(X, y)
    assert "trimlearn-verdict" in model._repr_mimebundle_()["text/html"]
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_to_be_shown_changes_nothing() -> None:
    X, y = table()
    model = TrimmedLinearRegression(random_state=0).fit(X, y)
    before = set(vars(model))
    model._repr_html_()
    assert set(vars(model)) == before


def test_an_unpickled_model_has_a_verdict() -> None:
    X, y = table()
    again = pickle.loads(pickle.dumps(TrimmedLinearRegression(random_state=0).fit(X, y)))
    assert "2 of 40 rows flagged" in verdict(again)


def test_what_the_fit_warned_of_is_a_caveat() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    with pytest.warns(UserWarning, match="half of the examples wrong"):
        model = TrimmedCovariance(0.5, random_state=0).fit(X)
    assert "Caveat:" in verdict(model) and "half of the examples wrong" in verdict(model)
    assert "close to one half" in verdict(model)
    assert "Caveat:" not in verdict(model.set_params(contamination="auto").fit(X))  # forgotten with the next fit


def test_cells_are_shown_by_row_and_column() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((60, 3)) + rng.standard_normal((60, 1)), columns=["a", "b", "<c>"])
    X.iloc[7, 2] = 50.0
    X["text"] = "word"
    html = verdict(CellwiseOutliers().fit(X))
    assert "1 of 180 cells deviate" in html and "&lt;c&gt;" in html and "text: no numbers" in html


def test_matches_are_called_matches() -> None:
    rng = np.random.default_rng(0)
    src, dst = rng.uniform(0, 1000, (2, 60, 2))
    dst[:40] = src[:40] + 10.0 + rng.standard_normal((40, 2))
    assert "of 60 matches flagged" in verdict(TrimmedHomography(max_samples=2000).fit(src, dst))


def test_large_data_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table()
    model = TrimmedLinearRegression(random_state=0).fit(X, y)
    monkeypatch.setattr("trimlearn.estimators.base.QUICK", 10)
    monkeypatch.setattr(Trimmed, "_tabulate", None)
    assert "kind" not in verdict(model) and "score" in verdict(model)
