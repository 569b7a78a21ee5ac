"""Checkpoints: a killed run goes on bit for bit; a file of another run, or a broken one, is refused and left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trimlearn.checkpoint.run
from killing import kill_when_ready
from trimlearn import Checkpoint, Problem, Solution, Status, solve
from trimlearn._utils.arrays import to_numpy
from trimlearn.checkpoint.run import FORMAT
from trimlearn.engines import LocalEngine
from trimlearn.losses import Huber, LeastSquares, Logistic, Softmax
from trimlearn.regularizers import L1, ElasticNet, Ridge
from trimlearn.smart import alternating, page, palm, prox_gradient, prox_saga, prox_svrg, saga, sg, svrg
from trimlearn.smart.method import Method, Record
from trimlearn.starts import Continuation, Given
from trimlearn.weights import AllOnes, CappedSimplex, GroupCappedSimplex

N, P = 240, 4
RNG = np.random.default_rng(2)
V = RNG.standard_normal((N, P))
T = (V @ np.arange(P) + RNG.standard_normal(N) > 0).astype(float)
R1 = CappedSimplex(200)
PROBLEM = Problem(Logistic(V, T), R1, Ridge(1e-2))
KW: dict[str, Any] = {"max_passes": 40, "tol": 0.0, "seed": 5}
METHODS: dict[str, Method | None] = {
    "default": None,
    "svrg": svrg(),
    "svrg-tau": svrg(tau=30.0),
    "svrg-theory": svrg(step="theory", tau="theory"),
    "svrg-lbfgs": svrg(metric="lbfgs"),
    "svrg-euclidean": svrg(metric="euclidean"),
    "svrg-gradients": svrg(duals="gradients"),
    "svrg-snapshot": svrg(duals="snapshot"),
    "svrg-random": svrg(output="random"),
    "saga": saga(),
    "page": page(),
    "palm": palm(),
    "palm-coin": palm(cyclic=False),
    "sg": sg(),
    "sg-growing": sg(growth=0.1),
    "prox_gradient": prox_gradient(),
    "alternating-lbfgs": alternating(inner="lbfgs"),
    "alternating-proximal": alternating(inner="proximal"),
}


class Killed(Exception):
    """Raised by a callback, in place of a kill."""


def assert_same(a: Solution, b: Solution) -> None:
    """Bit for bit, the clock apart."""
    np.testing.assert_array_equal(to_numpy(a.x), to_numpy(b.x))
    np.testing.assert_array_equal(to_numpy(a.w), to_numpy(b.w))
    for name in Record.__dataclass_fields__:
        if name != "seconds":
            np.testing.assert_array_equal(a.trace(name), b.trace(name), err_msg=name)
    assert a.counts == b.counts
    assert a.status is b.status


def interrupted(path: Path, records: int, problem: Problem, method: Method | None, **options: Any) -> None:
    """A run that saves at every record and dies while the ``records``-th is shown: the file holds the one before."""
    seen: list[Record] = []

    def die(record: Record) -> None:
        seen.append(record)
        if len(seen) > records:
            raise Killed

    with pytest.raises(Killed):
        solve(problem, method, checkpoint=Checkpoint(path, 0.0), callback=die, **{**KW, **options})


# ---- going on ----


@pytest.mark.parametrize("name", METHODS)
def test_a_resumed_run_is_the_undisturbed_one(name: str, tmp_path: Path) -> None:
    method, path = METHODS[name], tmp_path / "run.npz"
    short = {"max_passes": 10} if name == "svrg-gradients" else {}  # row by row, and so slow
    undisturbed = solve(PROBLEM, method, **{**KW, **short})
    for records in (1, len(undisturbed.history) // 2, len(undisturbed.history) - 2):
        path.unlink(missing_ok=True)
        interrupted(path, records, PROBLEM, method, **short)
        assert_same(solve(PROBLEM, method, checkpoint=path, **{**KW, **short}), undisturbed)


@pytest.mark.parametrize("kind", ["float32", "torch", "weights", "l1", "groups", "softmax", "given", "untrimmed"])
def test_so_it_is_for_other_problems(kind: str, tmp_path: Path) -> None:
    method: Method = svrg()
    start: dict[str, Any] = {}
    loss: Any = Logistic(V, T)
    problem = Problem(loss, R1, Ridge(1e-2))
    if kind == "float32":
        problem = Problem(Logistic(V.astype(np.float32), T), R1, Ridge(1e-2))
    elif kind == "torch":
        torch = pytest.importorskip("torch")
        problem = Problem(Logistic(torch.asarray(V), T), R1, Ridge(1e-2))
    elif kind == "weights":
        problem = Problem(loss, R1, Ridge(1e-2), np.arange(N) % 3 + 0.5)
    elif kind == "l1":
        problem = Problem(loss, R1, L1(np.full(P, 1e-2)))
    elif kind == "groups":
        problem = Problem(loss, GroupCappedSimplex(T, 200), Ridge(1e-2))
    elif kind == "softmax":
        problem = Problem(Softmax(V, T.astype(int), intercept=True), R1, ElasticNet(1e-2))
    elif kind == "given":
        start = {"x0": np.ones(P), "w0": np.roll(R1.minimise(np.arange(N, dtype=float)), 7)}
    else:
        problem, method = Problem(loss, AllOnes(), Ridge(1e-2)), prox_svrg()
    undisturbed = solve(problem, method, **KW, **start)
    path = tmp_path / "run.npz"
    interrupted(path, 4, problem, method, **start)
    assert_same(solve(problem, method, checkpoint=path, **KW, **start), undisturbed)


def test_an_interruption_may_come_twice(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    interrupted(path, 3, PROBLEM, svrg())
    interrupted(path, 2, PROBLEM, svrg())
    assert_same(solve(PROBLEM, svrg(), checkpoint=path, **KW), solve(PROBLEM, svrg(), **KW))


def test_the_mean_of_the_duals_is_the_one_that_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Summed anew, in another order, it may be another by rounding."""
    undisturbed, path = solve(PROBLEM, svrg(), **KW), tmp_path / "run.npz"
    interrupted(path, 4, PROBLEM, svrg())
    real, off = LocalEngine.mean_duals, [1 + 1e-9]

    def summed(self: LocalEngine) -> Any:
        return real(self) * (off.pop() if off else 1.0)

    monkeypatch.setattr(LocalEngine, "mean_duals", summed)
    assert_same(solve(PROBLEM, svrg(), checkpoint=path, **KW), undisturbed)
    assert not off


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    first = solve(PROBLEM, checkpoint=Checkpoint(path, 0.0))
    assert first.status is Status.CONVERGED
    calls: list[Record] = []
    again = solve(PROBLEM, checkpoint=path, callback=calls.append)
    assert_same(first, again)
    assert not calls


def test_seconds_go_on_where_they_were(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(Killed):

        def slow(record: Record) -> None:
            time.sleep(0.05)
            if record.k > 20:
                raise Killed

        solve(PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), callback=slow, **KW)
    found = solve(PROBLEM, svrg(), checkpoint=path, **KW)
    seconds = found.trace("seconds")
    assert np.all(np.diff(seconds) >= 0)
    assert found.seconds >= seconds[-1] > 0.1


def test_more_passes_may_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    short = solve(PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), start=None, max_passes=15, tol=0.0)
    longer = solve(PROBLEM, svrg(), checkpoint=path, start=None, max_passes=40, tol=0.0)
    assert longer.passes > short.passes
    assert longer.objective < short.objective


# ---- a real kill ----

NAMES = ("svrg", "lbfgs")  # a kill is about the file; that every method goes on from it is tested above
SCRIPT = """
import sys, time
import numpy as np
from trimlearn import Checkpoint, Problem, solve
from trimlearn.losses import Logistic
from trimlearn.regularizers import Ridge
from trimlearn.smart import svrg
from trimlearn.weights import CappedSimplex

folder, mode, *names = sys.argv[1:]
rng = np.random.default_rng(2)
V = rng.standard_normal((2000, 6))
t = (V @ np.arange(6) + rng.standard_normal(2000) > 0).astype(float)
methods = {"svrg": svrg(), "lbfgs": svrg(metric="lbfgs")}

def callback(record):
    if mode == "victim" and record.passes > 12:
        print("ready", flush=True)
        time.sleep(0.01)  # so that the kill comes while the run is under way

for name in names:
    found = solve(Problem(Logistic(V, t), CappedSimplex(1700), Ridge(1e-3)), methods[name], max_passes=60, tol=0.0,
                  seed=9, checkpoint=None if mode == "undisturbed" else Checkpoint(f"{folder}/{name}.npz", 0.0),
                  callback=callback)
    columns = {c: found.trace(c).tolist() for c in found.history[0].__dataclass_fields__ if c != "seconds"}
    print(repr((name, found.x.tobytes().hex(), found.w.tobytes().hex(), columns, found.counts)))
"""


def script(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )


def test_kill_9_in_the_middle(tmp_path: Path) -> None:
    kill_when_ready([script(str(tmp_path), "victim", name) for name in NAMES])
    processes = [script(str(tmp_path), mode, *NAMES) for mode in ("undisturbed", "resumed")]
    undisturbed, resumed = (process.communicate()[0].splitlines() for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert len(undisturbed) == len(NAMES)
    for name, one, other in zip(NAMES, undisturbed, resumed, strict=True):
        assert len(one) > 30_000
        assert one == other, name


# ---- the file ----


def test_the_file_holds_no_pickle_and_no_rest_is_left(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    solve(PROBLEM, svrg(metric="lbfgs"), checkpoint=Checkpoint(path, 0.0), **KW)
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert all(array.dtype != object for array in arrays.values())
    assert arrays["w"].shape == (N,)
    assert arrays["x"].shape == (P,)
    meta = json.loads(arrays["meta"].tobytes())
    assert meta["format"].startswith("trimlearn checkpoint")


def test_the_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that dies while it writes leaves the last good file, and nothing else."""
    path = tmp_path / "run.npz"
    interrupted(path, 3, PROBLEM, svrg())
    before = path.read_bytes()
    real = np.savez

    def torn(file: Any, *args: Any, **arrays: Any) -> None:
        real(file, x=np.zeros(3))
        raise OSError("disk full")

    monkeypatch.setattr(trimlearn.checkpoint.run.np, "savez", torn)
    with pytest.warns(UserWarning, match="could not be written .*disk full") as caught:
        found = solve(PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), **KW)
    assert len(caught) == 1  # though every save failed
    assert caught[0].filename == __file__
    assert_same(found, solve(PROBLEM, svrg(), **KW))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def test_a_disk_that_has_room_again_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, failures = tmp_path / "run.npz", np.savez, [OSError("disk full")] * 2

    def torn(*args: Any, **arrays: Any) -> None:
        if failures:
            raise failures.pop()
        real(*args, **arrays)

    monkeypatch.setattr(trimlearn.checkpoint.run.np, "savez", torn)
    with pytest.warns(UserWarning, match="could not be written"):
        found = solve(PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), **KW)
    assert_same(solve(PROBLEM, svrg(), checkpoint=path, **KW), found)


def test_the_fingerprint_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs three passes over the data, and the data do not change."""
    taken: list[Problem] = []
    real = Problem.fingerprint

    def counting(self: Problem) -> str:
        taken.append(self)
        return real(self)

    monkeypatch.setattr(Problem, "fingerprint", counting)
    found = solve(PROBLEM, svrg(), checkpoint=Checkpoint(tmp_path / "run.npz", 0.0), **KW)
    assert len(found.history) > 10
    assert len(taken) == 1


# ---- two runs, one path ----


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("other", [svrg(), saga()], ids=["the same run", "another"])
def test_a_path_in_use_is_refused(other: Method, resume: bool, tmp_path: Path) -> None:
    """Whatever the second run is, and whether or not it would overwrite: the first goes on as if nothing had been."""
    path, refused = tmp_path / "run.npz", []

    def intrude(record: Record) -> None:
        if path.exists() and not refused:
            before = path.read_bytes()
            with pytest.raises(ValueError, match="in use: another run saves there now") as caught:
                solve(PROBLEM, other, checkpoint=path, resume=resume, **KW)
            refused.append(caught.value)
            assert path.read_bytes() == before

    found = solve(PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), callback=intrude, **KW)
    assert refused
    assert_same(found, solve(PROBLEM, svrg(), **KW))
    assert_same(solve(PROBLEM, svrg(), checkpoint=path, **KW), found)  # the path is free again


@pytest.mark.parametrize("locks", [True, False])
def test_a_file_that_another_run_put_there_is_left_alone(
    locks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that begin at once, or where locks are not to be had: the one that comes second says so."""
    path = tmp_path / "run.npz"
    if not locks:
        monkeypatch.setattr(trimlearn.checkpoint.run, "lock", lambda path: None)

    def intrude(record: Record) -> None:
        elsewhere = tmp_path / "elsewhere.npz"
        solve(PROBLEM, saga(), checkpoint=elsewhere, **KW)
        elsewhere.replace(path)

    with pytest.raises(ValueError, match="was written by another run meanwhile"):
        solve(PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), callback=intrude, **KW)
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    assert_same(solve(PROBLEM, saga(), checkpoint=path, **KW), solve(PROBLEM, saga(), **KW))


def test_a_file_that_was_moved_away_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    found = solve(
        PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), callback=lambda _: path.unlink(missing_ok=True), **KW
    )
    assert_same(found, solve(PROBLEM, svrg(), **KW))


def test_an_interrupted_run_lets_go_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    interrupted(path, 3, PROBLEM, svrg())
    open_files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        interrupted(path, 3, PROBLEM, saga(), resume=False)
    if open_files:
        assert len(os.listdir("/proc/self/fd")) == open_files


def test_a_run_saves_at_the_start_and_then_when_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    real = Checkpoint.save

    def counting(self: Checkpoint, *args: Any) -> None:
        saved.append(len(args[3]))
        real(self, *args)

    monkeypatch.setattr(Checkpoint, "save", counting)
    found = solve(PROBLEM, svrg(), checkpoint=tmp_path / "rarely.npz", **KW)
    assert saved == [1]  # a second of work, a minute between two
    saved.clear()
    found = solve(PROBLEM, svrg(), checkpoint=Checkpoint(tmp_path / "often.npz", 0.0), **KW)
    assert saved[0] == 1
    assert len(saved) >= len(found.history) - 1


def test_a_path_may_be_text_or_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    solve(PROBLEM, checkpoint="run.npz")
    assert (tmp_path / "run.npz").exists()


# ---- other runs ----

OTHER_V = V.copy()
OTHER_V[17, 2] += 1e-3
CHANGES: dict[str, tuple[Callable[[], Problem], Method, dict[str, Any]]] = {
    "method": (lambda: PROBLEM, saga(), {}),
    "batch": (lambda: PROBLEM, svrg(b=7), {}),
    "step": (lambda: PROBLEM, svrg(step=0.1), {}),
    "metric": (lambda: PROBLEM, svrg(metric="lbfgs"), {}),
    "momentum": (lambda: PROBLEM, svrg(momentum=0.5), {}),
    "tau": (lambda: PROBLEM, svrg(tau=7.0), {}),
    "seed": (lambda: PROBLEM, svrg(), {"seed": 6}),
    "start": (lambda: PROBLEM, svrg(), {"start": None}),
    "continuation": (lambda: PROBLEM, svrg(), {"start": Continuation(passes=7)}),
    "x0": (lambda: PROBLEM, svrg(), {"x0": np.ones(P)}),
    "one entry of V": (lambda: Problem(Logistic(OTHER_V, T), R1, Ridge(1e-2)), svrg(), {}),
    "the order of V": (lambda: Problem(Logistic(V[::-1], T), R1, Ridge(1e-2)), svrg(), {}),
    "one target": (lambda: Problem(Logistic(V, np.where(np.arange(N) == 9, 1 - T, T)), R1, Ridge(1e-2)), svrg(), {}),
    "scale": (lambda: Problem(Logistic(V, T, scale=np.full(P, 2.0)), R1, Ridge(1e-2)), svrg(), {}),
    "rows": (lambda: Problem(Logistic(V[:-1], T[:-1]), R1, Ridge(1e-2)), svrg(), {}),
    "loss": (lambda: Problem(LeastSquares(V, T), R1, Ridge(1e-2)), svrg(), {}),
    "h": (lambda: Problem(Logistic(V, T), CappedSimplex(200 + 1e-5), Ridge(1e-2)), svrg(), {}),
    "r1": (lambda: Problem(Logistic(V, T), GroupCappedSimplex(T, 200), Ridge(1e-2)), svrg(), {}),
    "alpha": (lambda: Problem(Logistic(V, T), R1, Ridge(1e-2 + 1e-9)), svrg(), {}),
    "r2": (lambda: Problem(Logistic(V, T), R1, L1(1e-2)), svrg(), {}),
    "sample_weight": (lambda: Problem(Logistic(V, T), R1, Ridge(1e-2), np.arange(N) % 3 + 1.0), svrg(), {}),
    "dtype": (lambda: Problem(Logistic(V.astype(np.float32), T), R1, Ridge(1e-2)), svrg(), {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_checkpoint_of_another_run_is_refused(change: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    interrupted(path, 3, PROBLEM, svrg())
    before = path.read_bytes()
    problem, method, options = CHANGES[change]
    with pytest.raises(ValueError, match=r"checkpoint .* belongs to another run; give another path or resume=False"):
        solve(problem(), method, checkpoint=Checkpoint(path, 0.0), **{**KW, **options})
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def assert_refused(a: Problem, b: Problem, tmp_path: Path, **options: Any) -> None:
    """A checkpoint of ``a`` is refused by ``b``."""
    path = tmp_path / "run.npz"
    first, second = options.pop("first", {}), options.pop("second", {})
    interrupted(path, 3, a, svrg(), **first)
    with pytest.raises(ValueError, match=r"checkpoint .* belongs to another run"):
        solve(b, svrg(), checkpoint=path, **KW, **second)


def test_other_sample_weights_are_another_run(tmp_path: Path) -> None:
    s = np.arange(N) % 3 + 1.0
    first, second = (Problem(Logistic(V, T), R1, Ridge(1e-2), weights) for weights in (s, s[::-1]))
    assert_refused(first, second, tmp_path)


def test_other_groups_are_another_run(tmp_path: Path) -> None:
    first, second = (Problem(Logistic(V, T), GroupCappedSimplex(g, 200), Ridge(1e-2)) for g in (T, np.arange(N) % 2))
    assert_refused(first, second, tmp_path)


def test_other_quotas_are_another_run(tmp_path: Path) -> None:
    g = np.arange(N) % 2
    first, second = (Problem(Logistic(V, T), GroupCappedSimplex(g, h), Ridge(1e-2)) for h in ([90, 110], [110, 90]))
    assert_refused(first, second, tmp_path)


def test_other_penalties_of_many_coordinates_are_another_run(tmp_path: Path) -> None:
    """An array of more than a thousand entries is not written out in full by repr."""
    W = np.random.default_rng(0).standard_normal((60, 1500))
    t = (np.arange(60) % 2).astype(float)
    alpha = np.full(1500, 0.1)
    other = np.where(np.arange(1500) == 700, 0.2, alpha)
    first, second = (Problem(Logistic(W, t), CappedSimplex(50), Ridge(a)) for a in (alpha, other))
    assert_refused(first, second, tmp_path)


def test_another_start_of_many_coordinates_is_another_run(tmp_path: Path) -> None:
    W = np.random.default_rng(0).standard_normal((60, 1500))
    problem = Problem(Logistic(W, np.arange(60) % 2), CappedSimplex(50), Ridge(0.1))
    x0 = np.zeros(1500)
    other = np.where(np.arange(1500) == 700, 0.2, x0)
    assert_refused(problem, problem, tmp_path, first={"x0": x0}, second={"x0": other})


def test_another_parameter_of_the_loss_is_another_run(tmp_path: Path) -> None:
    t = V @ np.arange(P)
    first, second = (Problem(Huber(V, t, delta=d), R1, Ridge(1e-2)) for d in (1.0, 1.5))
    assert_refused(first, second, tmp_path)


def test_the_same_run_described_anew_is_the_same(tmp_path: Path) -> None:
    """Nothing in the identity depends on where in memory things lie."""
    path = tmp_path / "run.npz"
    make = lambda: Problem(Logistic(V.copy(), T.copy()), CappedSimplex(200), L1(np.full(P, 1e-2)), np.arange(N) + 1.0)  # noqa: E731
    interrupted(path, 3, make(), svrg())
    solve(make(), svrg(), checkpoint=path, **KW)


# ---- broken files ----


def checkpoint_bytes(tmp_path: Path) -> bytes:
    path = tmp_path / "good.npz"
    interrupted(path, 3, PROBLEM, svrg())
    content = path.read_bytes()
    path.unlink()
    return content


def npz(path: Path, **arrays: Any) -> bytes:
    np.savez(path, **arrays)
    content = path.read_bytes()
    path.unlink()
    return content


def npy(path: Path) -> bytes:
    np.save(path.with_suffix(".npy"), np.zeros(3))
    content = path.with_suffix(".npy").read_bytes()
    path.with_suffix(".npy").unlink()
    return content


def meta(**entries: Any) -> np.ndarray:
    return np.frombuffer(json.dumps({"format": FORMAT, **entries}).encode(), dtype=np.uint8)


BROKEN: dict[str, Callable[[Path], bytes]] = {
    "empty": lambda folder: b"",
    "text": lambda folder: b"not a checkpoint",
    "zeros": lambda folder: bytes(5000),
    "zip header": lambda folder: b"PK\x03\x04" + bytes(100),
    "half": lambda folder: checkpoint_bytes(folder)[: len(checkpoint_bytes(folder)) // 2],
    "all but one byte": lambda folder: checkpoint_bytes(folder)[:-1],
    "flipped bits": lambda folder: checkpoint_bytes(folder).replace(b'"format"', b'"farmot"'),
    "npy": lambda folder: npy(folder / "other"),
    "other npz": lambda folder: npz(folder / "other.npz", a=np.zeros(3)),
    "meta is a number": lambda folder: npz(folder / "other.npz", meta=np.float64(3.0)),
    "meta is a list": lambda folder: npz(folder / "other.npz", meta=np.frombuffer(b"[1, 2]", dtype=np.uint8)),
    "meta is not JSON": lambda folder: npz(folder / "other.npz", meta=np.frombuffer(b"{", dtype=np.uint8)),
    "meta is not text": lambda folder: npz(folder / "other.npz", meta=np.full(4, 255, dtype=np.uint8)),
    "meta is short": lambda folder: npz(folder / "other.npz", meta=meta()),
    "another format": lambda folder: npz(folder / "other.npz", meta=meta(format="trimlearn checkpoint 0")),
    "pickle": lambda folder: npz(folder / "other.npz", meta=np.array([{"format": 1}], dtype=object)),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_and_left_as_it_is(kind: str, tmp_path: Path) -> None:
    content = BROKEN[kind](tmp_path)
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint .*run.npz.*resume=False"):
        solve(PROBLEM, svrg(), checkpoint=path, **KW)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.parametrize("missing", ["w", "x"])
def test_a_file_that_lacks_an_array_is_refused(missing: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    interrupted(path, 3, PROBLEM, svrg())
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != missing}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="checkpoint"):
        solve(PROBLEM, svrg(), checkpoint=path, **KW)


def test_resume_false_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(b"not a checkpoint")
    found = solve(PROBLEM, svrg(), checkpoint=Checkpoint(path, 0.0), resume=False, **KW)
    assert_same(found, solve(PROBLEM, svrg(), **KW))
    interrupted(path, 3, PROBLEM, saga(), resume=False)
    assert_same(solve(PROBLEM, saga(), checkpoint=path, **KW), solve(PROBLEM, saga(), **KW))


def test_an_error_before_the_first_step_leaves_the_file(tmp_path: Path) -> None:
    """Also with resume=False: nothing on disk is lost to a typing error."""
    path = tmp_path / "run.npz"
    interrupted(path, 3, PROBLEM, svrg())
    before = path.read_bytes()
    for options in ({"method": svrg(b=0)}, {"method": svrg(), "x0": np.ones(P + 1)}, {"method": svrg(), "tol": -1}):
        with pytest.raises(ValueError):
            solve(PROBLEM, checkpoint=Checkpoint(path, 0.0), resume=False, **{**KW, **options})
        assert path.read_bytes() == before


@pytest.mark.parametrize("bad", ["folder", "no folder"])
def test_a_path_that_cannot_be_written_is_refused(bad: str, tmp_path: Path) -> None:
    path = tmp_path if bad == "folder" else tmp_path / "missing" / "run.npz"
    for given in (path, str(path)):
        with pytest.raises(ValueError, match="checkpoint must be a file in an existing folder"):
            solve(PROBLEM, checkpoint=given)
    with pytest.raises(ValueError, match="checkpoint must be a file in an existing folder"):
        Checkpoint(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [3, True])
def test_a_path_is_a_path(value: Any) -> None:
    with pytest.raises(ValueError, match="checkpoint must be"):
        solve(PROBLEM, checkpoint=value)


def test_a_method_that_cannot_be_resumed_says_so(tmp_path: Path) -> None:
    """prox_saga never renews all of y: a checkpoint that leaves y out could not go on bit for bit."""
    problem = Problem(Logistic(V, T), AllOnes(), Ridge(1e-2))
    path = tmp_path / "run.npz"
    with pytest.raises(ValueError, match="checkpoint needs a method that renews its duals"):
        solve(problem, prox_saga(), checkpoint=path, **KW)
    assert not list(tmp_path.iterdir())


def test_given_starts_are_told_apart() -> None:
    assert repr(Given(None, np.zeros(2))) != repr(Given(None, np.ones(2)))
    assert asdict(Continuation()) == {"passes": 20.0, "w_steps": 8, "sample": False}
