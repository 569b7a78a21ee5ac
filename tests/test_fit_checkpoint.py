"""Fits that are interrupted and go on: in this process, by files that are full, damaged, or of other fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import trimlearn.checkpoint.run
from trimlearn import Checkpoint, TrimmedGLM, TrimmedLinearRegression, TrimmedLogisticRegression, open_dataset
from trimlearn.checkpoint.fit import FitCheckpoint, begin_fit, remembered, saved_fit
from trimlearn.smart import alternating, svrg


def counts(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Counts, of which a tenth is wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = rng.poisson(np.exp(1 + X @ [0.5, -0.3])).astype(float)
    y[: n // 10] += 40
    return X, y


def poisson(contamination: float | str = "auto", **options: Any) -> TrimmedGLM:
    """A model that is fitted from one start."""
    return TrimmedGLM(**{"contamination": contamination, "method": alternating(), "random_state": 0, **options})


def labels() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    y[[3, 17, 60, 99, 120]] = [1, 2, 0, 2, 1]
    return X, y


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], tuple[np.ndarray, np.ndarray]]]] = {
    "poisson": (lambda: poisson(0.1), counts),
    "huber by svrg": (lambda: TrimmedGLM("huber", method=svrg(), random_state=0, max_passes=20, tol=0.0), counts),
    "lasso": (lambda: TrimmedLinearRegression(0.1, penalty="mcp", alpha=0.1, random_state=0), counts),
    "labels": (lambda: TrimmedLogisticRegression(random_state=0), labels),
}


class Killed(BaseException):
    """As abrupt as a signal."""


def killed_after(writes: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let fits be killed right after so many writes; what is returned takes that back."""
    left, real = [writes], FitCheckpoint.write

    def write(self: FitCheckpoint) -> None:
        real(self)
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    monkeypatch.setattr(FitCheckpoint, "write", write)
    return lambda: monkeypatch.setattr(FitCheckpoint, "write", real)


def assert_same(found: Any, expected: Any) -> None:
    for name in ("coef_", "intercept_", "raw_coef_", "weights_", "raw_weights_", "outlier_scores_", "objective_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert [record.objective for record in found.history_] == [record.objective for record in expected.history_]


@pytest.mark.filterwarnings("ignore:.*stopped short")
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_was_killed_goes_on_and_ends_as_if_it_had_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, data = MODELS[name]
    expected = make().fit(*data())
    for writes in (1, 6):
        file = Checkpoint(tmp_path / f"{writes}.npz", every=0)
        undo = killed_after(writes, monkeypatch)
        try:
            model = make()
            with pytest.raises(Killed):
                model.fit(*data(), checkpoint=file)
            assert "coef_" not in vars(model)
        finally:
            undo()
        assert_same(make().fit(*data(), checkpoint=file.path), expected)


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Checkpoint(tmp_path / "fit.npz", every=0)
    expected = poisson().fit(*counts(), checkpoint=file)
    steps: list[Any] = []
    run = import_module("trimlearn.smart.alternating").AlternatingRun
    monkeypatch.setattr(run, "advance", lambda *args: steps.append(args))
    assert_same(poisson().fit(*counts(), checkpoint=file), expected)
    assert steps == []


def test_what_other_threads_find_is_not_kept(tmp_path: Path) -> None:
    """They come in any order, also those that were handed the context of the fit."""
    file = Checkpoint(tmp_path / "fit.npz", every=0)
    with saved_fit(file, {}, resume=True):
        begin_fit(lambda: "data")
        other = Thread(target=copy_context().run, args=(remembered, "there", lambda: (np.ones(1),)))
        other.start()
        other.join()
        remembered("here", lambda: (np.zeros(1),))
    with np.load(file.path, allow_pickle=False) as kept:
        assert [part["name"] for part in json.loads(kept["meta"].tobytes())["parts"]] == ["here"]


def test_a_seed_that_nobody_gave_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Checkpoint(tmp_path / "fit.npz", every=0)
    model = TrimmedGLM("huber", method=svrg(b=20), max_passes=4, tol=0.0)
    with pytest.warns(UserWarning, match="stopped short"):
        expected = model.fit(*counts(), checkpoint=file)
    with pytest.warns(UserWarning, match="stopped short"):
        found = TrimmedGLM("huber", method=svrg(b=20), max_passes=4, tol=0.0).fit(*counts(), checkpoint=file)
    assert_same(found, expected)


def test_a_full_disk_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **arrays: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trimlearn.checkpoint.run.np, "savez", full)
    expected = poisson().fit(*counts())
    with pytest.warns(UserWarning, match=r"could not be written .*No space left.*the run goes on") as caught:
        found = poisson().fit(*counts(), checkpoint=Checkpoint(tmp_path / "a", every=0))
    assert len(caught) == 1 and list(tmp_path.iterdir()) == []
    assert_same(found, expected)


def test_another_fit_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (X, y), file = counts(), tmp_path / "fit.npz"
    poisson().fit(X, y, checkpoint=file)
    before = file.read_bytes()
    other, weights = X.copy(), np.ones(len(y))
    other[7, 1] += 1e-9
    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (poisson(loss="gamma"), (X, y + 1), "another fit, with loss='poisson', here 'gamma'; give"),
        (poisson(0.1), (X, y), "another fit, with contamination='auto', here 0.1;"),
        (poisson(random_state=1), (X, y), "another fit, with random_state=0, here 1;"),
        (TrimmedLinearRegression(random_state=0), (X, y), "another fit, with estimator=TrimmedGLM, here TrimmedL"),
        (poisson(), (other, y), "belongs to a fit to other data; give another path"),
        (poisson(), (X, y, weights), "belongs to a fit to other data"),
        (poisson(), (X[:-1], y[:-1]), "belongs to a fit to other data"),
    ]
    for model, data, message in cases:
        with pytest.raises(ValueError, match=message) as error:
            model.fit(*data, checkpoint=file)
        assert "\n" not in str(error.value) and file.read_bytes() == before
    poisson(verbose=0).fit(X.tolist(), y, checkpoint=file)  # the same numbers
    poisson(0.1).fit(X, y, checkpoint=file, resume=False)
    poisson(0.1).fit(X, y, checkpoint=file)


def test_files_that_are_no_checkpoints_of_fits_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(ValueError, match=r"is damaged or not one of a fit; move it away, or give resume=False"):
        TrimmedGLM().fit(*counts(), checkpoint=file)
    assert file.read_text() == "mine"
    with pytest.raises(ValueError, match="checkpoint must be a path, got 3"):
        TrimmedGLM().fit(*counts(), checkpoint=3)
    with pytest.raises(ValueError, match="in an existing folder"):
        TrimmedGLM().fit(*counts(), checkpoint=tmp_path / "nowhere" / "fit.npz")


def test_a_file_in_use_is_refused(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path / "fit.npz")
    poisson().fit(*counts(), checkpoint=file)
    with file.claimed(), pytest.raises(ValueError, match="is in use: another run saves there now"):
        poisson().fit(*counts(), checkpoint=file.path)


def test_frames_text_and_datasets_are_told_apart(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = labels()
    names = np.array(["a", "b", "c"], dtype=object)[y]
    frame = pd.DataFrame(X, columns=list("pqrs"))
    file = tmp_path / "labels.npz"
    TrimmedLogisticRegression(random_state=0).fit(frame, names, checkpoint=file)
    TrimmedLogisticRegression(random_state=0).fit(frame.copy(), names.tolist(), checkpoint=file)
    with pytest.raises(ValueError, match="other data"):
        TrimmedLogisticRegression(random_state=0).fit(frame, np.where(names == "a", "d", names), checkpoint=file)
    X, y = counts()
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    data, file = open_dataset(tmp_path / "rows.npy", target=-1), tmp_path / "rows.npz"
    expected = poisson().fit(data, checkpoint=file)
    assert_same(poisson().fit(tmp_path / "rows.npy", -1, checkpoint=file), expected)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y + 1]))
    with pytest.raises(ValueError, match="other data"):
        poisson().fit(tmp_path / "rows.npy", -1, checkpoint=file)


def test_answers_of_another_course_are_not_taken(tmp_path: Path) -> None:
    """An answer is known by its number and its name: from the first that has another name on, all are asked for."""

    def course(*names: str) -> list[str]:
        asked = []

        def answer(name: str) -> tuple[np.ndarray, ...]:
            asked.append(name)
            return (np.array(len(name)),)

        with saved_fit(Checkpoint(tmp_path / "fit.npz", every=0), {}, resume=True):
            begin_fit(lambda: "data")
            for name in names:
                assert remembered(name, lambda name=name: answer(name))[0] == len(name)  # type: ignore[misc]
        return asked

    assert course("a", "bb", "ccc") == ["a", "bb", "ccc"]
    assert course("a", "bb", "ccc") == []
    assert course("a", "other", "ccc") == ["other", "ccc"]
