"""The driver: starts, stops, records, shows, saves. It wraps a method and knows nothing of how it steps."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf, isfinite, isnan
from time import perf_counter
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, to_numpy
from trimlearn._utils.residence import copy_on_device, lies_on_device
from trimlearn._utils.threads import team
from trimlearn._utils.validation import is_integer, is_number
from trimlearn.checkpoint import Checkpoint, Clock, RunFile
from trimlearn.checkpoint.fit import part_of_fit
from trimlearn.engines.base import Engine
from trimlearn.engines.cuda.place import hosted
from trimlearn.engines.local import LocalEngine
from trimlearn.kernels import why_not
from trimlearn.losses.base import PredictionLoss
from trimlearn.problem import Problem
from trimlearn.progress import show, stage, watching
from trimlearn.smart import alternating, svrg
from trimlearn.smart.blockwise import Blockwise
from trimlearn.smart.finish import Finished, decrease
from trimlearn.smart.method import Method, Record, Run, State, in_blocks, small
from trimlearn.smart.w_step import renew
from trimlearn.solution import Solution, Status
from trimlearn.starts import Continuation, MultiStart, Start, make_start

PATIENCE = 3.0  # passes between trials of how far F could fall, for each that one takes: trials are a quarter at most

Callback = Callable[[Record], Any]


def solve(
    problem: Problem,
    method: Method | None = None,
    *,
    start: str | Start | None = "continuation",
    w0: Any = None,
    x0: Any = None,
    engine: str | Engine = "auto",
    device: Any = None,
    max_passes: float = 100,
    max_seconds: float | None = None,
    tol: float = 1e-4,
    seed: int = 0,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    resume: bool = True,
    progress: bool = False,
) -> Solution:
    """Minimise F(w, x) = 1/S Σ sᵢwᵢfᵢ(x) + r1(w) + r2(x).

    Parameters
    ----------
    problem : Problem
        The losses, and what is known about w and x.
    method : Method, optional
        One of `trimlearn.smart`. None: SMART-SVRG, or alternating minimisation where n·dim(x) ≤ 10⁶, which is
        deterministic and does not depend on the order of the rows, and where the loss is one in blocks
        (`trimlearn.losses.BlockLoss`) with a smooth separable r2.
    start : {"continuation", "concentration", "multistart"}, Start or None
        Where to start (`trimlearn.starts`). None, or "given": w = h/n and the loss's own x, or w0 and x0. A loss that
        says that its own x is a good guess (`Loss.starts_near`) starts from there instead of a continuation.
    w0, x0 : array, optional
        Weights and model to start from, as they are. Without w0, it is the best for x0.
    engine : {"auto", "local", "cuda", "dask"} or Engine
        Where the examples live: in this process; on a CUDA device, to which NumPy data are moved once; on the workers
        of a Dask cluster on this machine, started for this solve. "auto": on the device where they are CUDA tensors,
        else here.
    device : str or torch.device, optional
        The CUDA device of engine="cuda", "cuda:1" say, which need not be named besides. None: where tensors lie, or
        the current one.
    max_passes, max_seconds : float
        Limits. A pass is n residuals evaluated.
    tol : float
        Stop when both stationarity measures, and the share of F by which it could still fall, are at most this.
    seed : int
        Every run with the same seed takes the same steps.
    callback : callable, optional
        Called with a `Record` after every w-step; a true answer stops the run.
    checkpoint : path or Checkpoint, optional
        Save here every 60 seconds (`Checkpoint(path, every)`), and at the start.
    resume : bool
        Go on from the checkpoint file if it exists. False overwrites it.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Solution
        The model, the weights, and how they were found. A run that stops short says so in its status and does not
        raise.

    Examples
    --------
    >>> import numpy as np
    >>> from trimlearn import Problem, solve
    >>> from trimlearn.losses import LeastSquares
    >>> from trimlearn.weights import CappedSimplex
    >>> V = np.column_stack([np.arange(10.0), np.ones(10)])
    >>> t = 3 * V[:, 0] + 1
    >>> t[[2, 7]] += 100
    >>> solution = solve(Problem(LeastSquares(V, t), CappedSimplex(8)))
    >>> solution.x.round(6), solution.w[[2, 7]]
    (array([3., 1.]), array([0., 0.]))
    """
    limits = _Limits(max_passes, max_seconds, tol)
    if not is_integer(seed) or not 0 <= int(seed) < 1 << 64:
        raise ValueError(f"seed must be an integer from 0 to 2**64 - 1, got {seed!r}.")
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem, got {type(problem).__name__}.")
    chosen = make_start(start, w0, x0, problem)
    if isinstance(chosen, MultiStart):
        if checkpoint is not None:
            raise ValueError("checkpoint is for one run; start='multistart' makes several. Use another start.")
        again = partial(
            solve, problem, method, engine=engine, device=device, callback=callback, progress=progress, **vars(limits)
        )
        return _best_of(again, chosen, int(seed))
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable, got {callback!r}.")
    if not (method is None or isinstance(method, Method)):
        raise ValueError(f"method must be one of trimlearn.smart, such as svrg(), got {method!r}.")
    is_small = small(problem)
    # About the medians of its columns, unless a step size or an engine was made for the problem as given.
    as_given = isinstance(engine, Engine) or not (method is None or method.automatic)
    centred = problem if as_given else problem.centred(exact=is_small)
    there = on_cuda(engine, problem, device)
    here = hosted(centred) if there else centred  # rows stay on the device, and x comes to the host
    with ExitStack() as opened:
        where = _engine(engine, here, there, device, opened)
        method = _default_method(problem, where.batch_size()) if method is None else method
        run = method.bind(here, int(seed))
        if checkpoint is not None and not run.renews:
            raise ValueError("checkpoint needs a method that renews its duals now and then, as prox_svrg does.")
        if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        saved: RunFile | None = checkpoint
        if checkpoint is None and run.renews:  # inside a fit that is saved, a part of it
            saved, resume = part_of_fit(run, here), True
        if start == "continuation" and isinstance(chosen, Continuation) and isinstance(run, Finished):
            chosen = Continuation(sample=True)
        chosen = chosen.carried(problem, centred)
        driver = _Driver(run, chosen, where, limits, int(seed), callback, saved)
        # A step that overflows is taken back: no reason to warn.
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        held = nullcontext() if saved is None else saved.claimed()
        threads = where.on_threads and not (is_small or lies_on_device(problem.loss.like))
        slow = None if is_small or not where.on_threads else why_not(problem.loss)
        with held, watching(progress), quiet, team(worth_it=threads):
            stage("" if slow is None else f"steps by matrix products, as {slow}")
            where.say = stage
            solution = driver.solve(resume)
    solution = _like_given(solution, problem) if there else solution
    return replace(solution, x=centred.carried(solution.x, problem))


@dataclass(frozen=True)
class _Limits:
    """When a run stops."""

    max_passes: float
    max_seconds: float | None
    tol: float

    def __post_init__(self) -> None:
        if not is_number(self.max_passes) or not self.max_passes > 0:
            raise ValueError(f"max_passes must be a number > 0, got {self.max_passes!r}.")
        if self.max_seconds is not None and (not is_number(self.max_seconds) or not self.max_seconds > 0):
            raise ValueError(f"max_seconds must be a number > 0 or None, got {self.max_seconds!r}.")
        if not is_number(self.tol) or not self.tol >= 0:
            raise ValueError(f"tol must be a number >= 0, got {self.tol!r}.")


@dataclass
class _Driver:
    """One solve."""

    run: Run
    start: Start
    engine: Engine
    limits: _Limits
    seed: int
    callback: Callback | None
    checkpoint: RunFile | None
    history: list[Record] = field(default_factory=list)
    began: float = field(default_factory=perf_counter)
    spent: float = 0.0  # passes that the start has made
    again: float = 0.0  # the passes made by when it may be tried again whether F could still fall
    stopped: bool = False

    def solve(self, resume: bool) -> Solution:
        self.engine.reset()
        if self.checkpoint is not None and resume and self.checkpoint.there:
            state = self._resume()
            if self.checkpoint.ended is not None:
                return self._solution(state, Status[self.checkpoint.ended])
        else:
            x = self.start.place(self.engine, self.seed)
            self.spent = self.engine.passes
            self.engine.max_passes = self.spent + self.limits.max_passes
            state = self.run.init(self.engine, x)
            if state.record is not None and isnan(state.record.objective):
                state = self._without_nan(x)
            elif self.start.near(self.engine):
                self.run.begin_near(self.engine, state)
            self._note(state)
            if self.checkpoint is not None:
                self._save(state)
        while (status := self._status(state)) is None:
            self.run.advance(self.engine, state)
            if state.record is not None:
                self._note(state)
                if self.checkpoint is not None and self.checkpoint.due():
                    self._save(state)
        self._finish(state)
        if status is not Status.DIVERGED and self._converged(state):
            status = Status.CONVERGED
        if self.checkpoint is not None:
            self.checkpoint.end(self.engine, state, self.history, self._clock, status.name)
        return self._solution(state, status)

    def _without_nan(self, x: Array) -> State:
        """The state at x with the examples trimmed whose losses are NaN there, and no continuation, which begins with
        all of them."""
        engine, problem = self.engine, self.engine.problem
        losses, n = asarray_like(engine.losses, problem.loss.like), problem.n
        lost = int(np.count_nonzero(np.isnan(to_numpy(losses))))
        engine.r1 = problem.r1
        engine.set_weights(problem.r1.minimise(losses, problem.s))
        state = self.run.init(engine, x)
        if state.record is not None and isnan(state.record.objective):
            raise ValueError(
                f"{lost} of {n} losses are NaN where the solver starts, and h = {engine.h:g} keeps some of these; "
                "repair or remove such examples, lower h, or give an x0 where they are not."
            )
        return state

    def _resume(self) -> State:
        assert self.checkpoint is not None
        state, self.history, clock = self.checkpoint.load(lambda: self._identity, self.engine)
        counts = replace(self.engine.counts)
        self.run.prepare(self.engine)
        self.engine.evaluate(state.x)  # f and y are left out of a checkpoint: they are found as they were at first
        y_mean = state.y_mean  # but their mean may have been summed in another order then
        renew(self.engine, state)
        state.y_mean = y_mean
        self.engine.counts = counts
        self.began, self.spent = perf_counter() - clock.seconds, clock.start_passes
        self.engine.max_passes = self.spent + self.limits.max_passes + state.elsewhere
        state.record = self.history[-1]
        return state

    @cached_property
    def _identity(self) -> str:
        """What a checkpoint must say to be this run's. Found once: the fingerprint takes three passes over the data."""
        return f"{self.run!r}, start={self.start!r}, data={self.engine.fingerprint()}"

    def _save(self, state: State) -> None:
        assert self.checkpoint is not None
        self.checkpoint.save(lambda: self._identity, self.engine, state, self.history, self._clock)

    @property
    def _clock(self) -> Clock:
        return Clock(self._seconds(), self.spent)

    def _note(self, state: State) -> None:
        assert state.record is not None
        h = self.history[-1].h if state.record.restored else state.record.h  # after a restore w is the old one
        state.record = replace(state.record, seconds=self._seconds(), h=h)
        self.history.append(state.record)
        show(state.record, self.limits.max_passes)
        if self.callback is not None:
            self.stopped = bool(self.callback(state.record))
        problem, engine = self.engine.problem, self.engine
        if engine.r1 is not problem.r1:  # lower h along the continuation
            h = self.start.h(problem, engine.passes - self.spent, state.w_steps, self.limits.max_passes)
            engine.r1 = problem.r1 if h <= problem.r1.h else problem.r1.at_h(h)

    def _seconds(self) -> float:
        return perf_counter() - self.began

    def _status(self, state: State) -> Status | None:
        """Why to stop, if at all."""
        record, engine = state.record, self.engine
        if self.stopped:
            return Status.CALLBACK
        if record is not None and record.k > 0 and not isfinite(record.objective):
            return Status.DIVERGED
        if record is not None and self._converged(state):
            return Status.CONVERGED
        if engine.passes + (record is None) >= engine.max_passes:  # the last w-step costs a pass
            return Status.MAX_PASSES if self.run.finishes else Status.UNFINISHED
        if self.limits.max_seconds is not None and self._seconds() >= self.limits.max_seconds:
            return Status.MAX_SECONDS
        return None

    def _stationary(self, record: Record) -> bool:
        """Whether both measures are at most tol, or a whole round has changed nothing, at the h we want."""
        at_target = self.engine.r1 is self.engine.problem.r1 and record.h == self.engine.h
        small = record.stationarity_x <= self.limits.tol and record.stationarity_w <= self.limits.tol
        settled = record.settled and self.limits.tol > 0
        return at_target and isfinite(record.stationarity_x) and (small or settled)  # with a NaN gradient x stays

    def _converged(self, state: State) -> bool:
        """Measures relative to a first residual can be small because an offset made that one large: so it must have
        been tried, by a solver that came to its end, that F(w, ·) falls by no more than tol. It is tried here if that
        is not known yet and the last trial is long ago."""
        record, begin = self.history[-1], self.engine.passes
        if not self._stationary(record):
            return False
        if isnan(record.decrease) and begin >= self.again:
            known = self.engine.keeps_duals and self.run.renews  # then the mean of y is the gradient at x
            found = decrease(self.engine, state, state.y_mean if known else None)
            record = replace(record, decrease=found, passes=self.engine.passes, seconds=self._seconds())
            state.record = self.history[-1] = record
            self.again = begin + (1 + PATIENCE) * (self.engine.passes - begin)
        return record.decrease <= self.limits.tol

    def _finish(self, state: State) -> None:
        """w, f and the record for the x we end with, at the h we want."""
        self.engine.r1 = self.engine.problem.r1
        if self.history[-1].h != self.engine.h:
            state.record = None
        before = state.record
        self.run.finish(self.engine, state)
        if state.record is not before:
            self.callback = None
            self._note(state)

    def _solution(self, state: State, status: Status) -> Solution:
        record = self.history[-1]
        return Solution(
            x=state.x,
            w=self.engine.weights,
            objective=record.objective,
            stationarity_x=record.stationarity_x,
            stationarity_w=record.stationarity_w,
            decrease=record.decrease,
            status=status,
            history=self.history,
            counts=replace(self.engine.counts),
            losses=self.engine.losses,
            passes=self.engine.passes,
            seconds=self._seconds(),
        )


def _best_of(solve_again: Callable[..., Solution], starts: MultiStart, seed: int) -> Solution:
    """The solution of least objective over the starts, each with a seed of its own."""
    found: list[Solution] = []
    for i, part in enumerate(starts.parts()):
        found.append(solve_again(start=part, seed=(seed + i) % (1 << 64)))
        if found[-1].status is Status.CALLBACK:
            break
    return min(found, key=lambda solution: inf if isnan(solution.objective) else solution.objective)


def _like_given(solution: Solution, problem: Problem) -> Solution:
    """The solution in arrays of the kind that the problem has."""
    x, w, losses = (asarray_like(a, problem.loss.like) for a in (solution.x, solution.w, solution.losses))
    return replace(solution, x=x, w=w, losses=losses)


def _default_method(problem: Problem, b: int | None) -> Method:
    """b: the draws of a batch that suit the engine, if any do."""
    if in_blocks(problem):
        return Blockwise()
    return alternating() if small(problem) else svrg(b=b)


def on_cuda(engine: Any, problem: Problem, device: Any = None) -> bool:
    """Whether the rows are put on a CUDA device for these arguments, or found there: with "auto" those of a linear
    prediction, which are all that the engine knows."""
    loss, named = problem.loss, engine if isinstance(engine, str) else None
    if device is not None and named not in ("auto", "cuda"):
        raise ValueError(f"device={str(device)!r} is for engine='cuda' or 'auto', not {engine!r}; give one of the two.")
    if device is not None or named == "cuda":
        asked = "engine='cuda'" if device is None else f"device={str(device)!r}"
        if not isinstance(loss, PredictionLoss):
            raise ValueError(f"{asked} is for losses of a linear prediction, not {type(loss).__name__}.")
        if device is not None and not str(device).startswith("cuda"):
            raise ValueError(f"device must be 'cuda', 'cuda:1' and so on, or None, got {device!r}.")
        return True
    if named != "auto" or not isinstance(loss, PredictionLoss):
        return False
    V = loss.linear.storage.V
    return lies_on_device(V) or copy_on_device(V) is not None


def _engine(engine: str | Engine, problem: Problem, there: bool, device: Any, opened: ExitStack) -> Engine:
    if isinstance(engine, Engine):
        if engine.problem is not problem:
            raise ValueError("engine was made for another problem; make it from this one.")
        return engine
    if engine not in ("auto", "local", "cuda", "dask"):
        raise ValueError(f"engine must be 'auto', 'local', 'cuda', 'dask' or an Engine, got {engine!r}.")
    if there:
        from trimlearn.engines.cuda.engine import CudaEngine  # imports torch

        return CudaEngine(problem, device)
    if engine == "dask":
        from trimlearn.engines.cluster.engine import DaskEngine  # imports dask

        on_dask = DaskEngine.of(problem)
        opened.callback(on_dask.close)
        return on_dask
    return LocalEngine(problem)
