"""The models that judge labels: the rows they see, the neighbours they ask, and what is fitted only when asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from trimlearn.losses import Logistic, Softmax
from trimlearn.robust.labels import crossfit, judges, noise_em
from trimlearn.robust.labels.crossfit import judge_labels
from trimlearn.robust.labels.flexible import flexible_predictions, neighbour_votes
from trimlearn.robust.labels.judges import Judges
from trimlearn.robust.labels.noise_level import estimate_noise


def blobs(n: int, p: int, K: int, wrong: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K classes around corners, p columns, a share of the labels moved on by one: V, labels, which are wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, n)
    V = rng.standard_normal((n, p)).astype(np.float32)
    V[:, :K] += 4 * np.eye(K, dtype=np.float32)[truth]
    bad = rng.uniform(size=n) < wrong
    return V, np.where(bad, (truth + 1) % K, truth), bad


# -- neighbours --------------------------------------------------------------------------------------------------------


def brute_force(F: np.ndarray, seen: np.ndarray, votes: np.ndarray, k: int) -> np.ndarray:
    D = ((F[:, None] - F[seen][None]) ** 2).sum(axis=2)
    D[seen, np.arange(len(seen))] = np.inf
    return np.stack([votes[row].sum(axis=0) for row in np.argsort(D, axis=1)[:, :k]])


@pytest.mark.parametrize(("n", "m", "k"), [(300, 300, 1), (300, 211, 15), (40, 20, 15), (21, 21, 20)])
def test_neighbours_are_those_of_brute_force(n: int, m: int, k: int) -> None:
    rng = np.random.default_rng(n + m)
    F, votes = rng.standard_normal((n, 4)), rng.uniform(size=(m, 3))
    seen = rng.permutation(n)[:m]
    k = min(k, m - 1)
    np.testing.assert_allclose(neighbour_votes(F, seen, votes, k), brute_force(F, seen, votes, k))


def test_groups_add_a_neighbour_now_and_then_and_leave_none_out() -> None:
    rng = np.random.default_rng(0)
    F, votes = rng.standard_normal((4_500, 6)).astype(np.float32), np.ones((4_000, 1))
    found = neighbour_votes(F, np.arange(4_000), votes, 15)[:, 0]
    assert found.min() == 15 and found.mean() < 16


def test_of_equal_distances_all_count() -> None:
    F = np.array([[0.0], [1.0], [1.0], [-1.0], [5.0]])
    assert neighbour_votes(F, np.arange(5), np.ones((5, 1)), 1)[0, 0] == 3


def test_tensors_get_the_same_opinions() -> None:
    torch = pytest.importorskip("torch")
    V, labels, _ = blobs(500, 50, 3, 0.1)
    ours, theirs = (flexible_predictions(A, labels, np.ones(500)) for A in (V, torch.from_numpy(V)))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


# -- the rows of a fit -------------------------------------------------------------------------------------------------


def judges_of(V: Any, labels: np.ndarray, K: int, s: np.ndarray | None = None) -> Judges:
    loss = Logistic(V, labels, intercept=True) if K == 2 else Softmax(V, labels, K, intercept=True)
    return Judges(loss, labels, np.ones(len(labels)) if s is None else s, 1.0, None, 0, 1e-6)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_model_depends_on_the_rows_it_is_fitted_to_alone(K: int, sparse: bool) -> None:
    V, labels, _ = blobs(200, 5, K, 0.1)
    V = V.astype(np.float64)
    rows = np.arange(0, 200, 2)
    other, other_labels = V.copy(), labels.copy()
    other[1::2], other_labels[1::2] = 1e6, 0
    T = 0.8 * np.eye(K) + 0.2 / K
    found = []
    for A, t in ((V, labels), (other, other_labels)):
        judge = judges_of(sp.csr_array(A) if sparse else A, t, K)
        x = judge.trimmed((0.5, True), rows)
        found.append((x, judge.corrected(T, rows, x), judge.predict(x, rows)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_some_rows_hold_every_class() -> None:
    labels = np.repeat([0, 1, 2], [9_000, 990, 10])
    judge = judges_of(np.random.default_rng(0).standard_normal((10_000, 2)), labels, 3)
    some = judge.some(np.arange(10_000), 100)
    counts = np.bincount(labels[some])
    assert len(some) <= 103 and counts.min() >= 1 and counts[0] == pytest.approx(90, abs=2)
    np.testing.assert_array_equal(judge.some(np.arange(50), 100), np.arange(50))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int, bool]]:
    """What is asked of `Judges.trimmed` from now on: the start, how many rows, whether from an x0."""
    asked: list[tuple[Any, int, bool]] = []
    fit = Judges.trimmed

    def trimmed(self: Judges, start: Any, rows: np.ndarray, x0: Any = None) -> Any:
        asked.append((start, len(rows), x0 is not None))
        return fit(self, start, rows, x0)

    monkeypatch.setattr(Judges, "trimmed", trimmed)
    return asked


def test_no_model_is_fitted_that_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    V, labels, _ = blobs(300, 4, 3, 0.0)
    asked = counted(monkeypatch)
    judge_labels(Softmax(V, labels, 3, intercept=True))
    assert len(asked) == len(crossfit.STARTS) * crossfit.FOLDS


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the size is no longer small, and a twentieth of the rows are a sample."""
    monkeypatch.setattr(judges, "SMALL", judges.SMALL // 10)
    for module in (crossfit, judges):
        monkeypatch.setattr(module, "SAMPLE", 400)


@pytest.mark.parametrize("wrong", [0.0, 0.4])
def test_many_rows_begin_with_some(many: None, monkeypatch: pytest.MonkeyPatch, wrong: float) -> None:
    V, labels, bad = blobs(3_000, 20, 3, wrong)
    asked = counted(monkeypatch)
    judged = judge_labels(Softmax(V, labels, 3, intercept=True), tol=1e-3)
    first, later = ([at for at in asked if at[2] == from_x0] for from_x0 in (False, True))
    assert all(rows <= 403 for _, rows, _ in first)
    assert all(rows > 1_000 for _, rows, _ in later)
    if wrong:  # models that trust half of their rows are fitted to all with the noise allowed for, at once
        assert {start for start, _, _ in later} <= {crossfit.TRUSTING}
    assert judged.verdict.noise.epsilon == pytest.approx(np.mean(bad), abs=0.03)
    assert np.mean(judged.verdict.keep()[~bad]) > 0.97
    if wrong:
        assert np.mean(judged.verdict.keep()[bad] == 0) > 0.85


def test_rows_of_a_fit_are_limited(many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    V, labels, bad = blobs(3_000, 20, 3, 0.2)
    monkeypatch.setattr(judges, "COPIED", 900 * V[0].nbytes)
    seen: list[int] = []
    fit = Judges.corrected

    def corrected(self: Judges, T: Any, rows: np.ndarray, x0: Any) -> Any:
        seen.append(len(rows))
        return fit(self, T, rows, x0)

    monkeypatch.setattr(Judges, "corrected", corrected)
    judged = judge_labels(Softmax(V, labels, 3, intercept=True), tol=1e-3)
    assert seen and max(seen) <= 903
    assert judged.verdict.noise.epsilon == pytest.approx(np.mean(bad), abs=0.03)


# -- the noise of many rows --------------------------------------------------------------------------------------------


def test_some_rows_searched_first_lead_to_the_same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    z = 3.0 * rng.standard_normal((16_000, 4))
    labels = np.argmax(z + rng.gumbel(size=z.shape), axis=1)
    rare = np.flatnonzero(labels == 2)[::200]  # two dozen of 16,000 rows: of every sixth row, four
    moved = rng.uniform(size=len(labels)) < 0.2
    labels = np.where(moved, (labels + 1) % 4, labels)
    labels[rare] = 0
    begun = estimate_noise([z], labels, largest=False)
    monkeypatch.setattr(noise_em, "MANY", 10**9)
    whole = estimate_noise([z], labels, largest=False)
    np.testing.assert_allclose(begun.T, whole.T, atol=5e-3)
    np.testing.assert_allclose(begun.temperatures, whole.temperatures, atol=5e-3)
