"""Newton's steps over rows that are read from a disk: what they read, and that sums are what they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trimlearn.losses import Logistic
from trimlearn.robust.streamed import TrimmedHere, WeighedHere, newton_streamed
from trimlearn.robust.streamed_newton import value_gradient
from trimlearn.weights import CappedSimplex


def rows(n: int = 4000, p: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    V = rng.standard_normal((n, p))
    return V, (V[:, 0] + rng.logistic(size=n) > 0).astype(float)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were predicted, each time."""
    V, t = rows(2)
    kind: Any = type(Logistic(V, t, part=True).linear)
    real, found = kind.predict, []

    def predict(self: Any, x: Any, at: Any) -> Any:
        z = real(self, x, at)
        found.append(len(z))
        return z

    monkeypatch.setattr(kind, "predict", predict)
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("off", "reads"), [(1.0, 1.001), (1.01, 1.02), (0.99, 1.02), (0.5, 2.0), (np.nan, 2.0)])
def test_rows_are_read_once_where_the_threshold_is_about_known(
    weighted: bool, off: float, reads: float, read: list[int]
) -> None:
    V, t = rows()
    n, x = len(t), np.r_[1.0, np.zeros(40)]
    s = np.random.default_rng(1).integers(0, 3, n).astype(float) if weighted else None
    loss = Logistic(V, t, intercept=True, part=True)
    known = TrimmedHere(loss, 0.8, s)
    value = known.value(x)
    w = CappedSimplex(0.8 * (n if s is None else s.sum())).minimise(known.f, s)
    w = w if s is None else w * s / s.mean()
    expected, slope = value_gradient(loss, x, w.__getitem__)
    assert value == pytest.approx(expected, rel=1e-12)
    some = TrimmedHere(loss, 0.8, s)
    some.expect(off * known.threshold)
    read.clear()
    assert some.value(x) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(some.slope(), slope, atol=1e-12)
    assert sum(read) <= reads * n
    assert sum(read) >= (2 * n if reads == 2 else n)


def test_weights_of_rows_are_rows_that_are_there_as_often() -> None:
    V, t = rows(500, 3)
    s = np.random.default_rng(1).integers(0, 3, 500).astype(float)
    often = np.repeat(np.arange(500), s.astype(int))
    one, other = (Logistic(A, b, intercept=True, part=True) for A, b in ((V, t), (V[often], t[often])))
    x, values = newton_streamed(TrimmedHere(one, 0.9, s), np.zeros(4), 1e-3)
    y, others = newton_streamed(TrimmedHere(other, 0.9), np.zeros(4), 1e-3)
    assert values[-1] == pytest.approx(others[-1], rel=1e-5)
    np.testing.assert_allclose(x, y, atol=2e-3)
    lead = TrimmedHere(one, 0.9, s)
    lead.value(x)
    assert newton_streamed(TrimmedHere(one, 0.9, s), x, 1e-3, lead)[1][-1] <= values[-1] * (1 + 1e-5)
    assert WeighedHere(one).value_gradient(x)[0] > values[-1]
