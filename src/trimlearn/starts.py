"""Where to start. The start decides which local minimum is found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import sha256
from math import inf, prod
from typing import Any, final

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, namespace, to_numpy
from trimlearn._utils.validation import check_count, is_number
from trimlearn.engines.base import Engine
from trimlearn.problem import Problem
from trimlearn.regularizers import Zero
from trimlearn.smart.draws import Stream
from trimlearn.smart.inner import fista, lbfgs
from trimlearn.smart.inner.newton import newton
from trimlearn.smart.method import FEW, in_blocks
from trimlearn.smart.sample import from_sample
from trimlearn.weights import AllOnes


class Start(ABC):
    """(w⁰, x⁰), and how h comes down to its target."""

    @abstractmethod
    def place(self, engine: Engine, seed: int) -> Array:
        """Put w⁰ into the engine; returns x⁰."""

    def h(self, problem: Problem, passes: float, w_steps: int, max_passes: float) -> float:
        """What h should be by now."""
        return problem.r1.h

    def near(self, engine: Engine) -> bool:
        """Whether (w⁰, x⁰) as placed are close to the end already."""
        return False

    def carried(self, given: Problem, to: Problem) -> Start:
        """The same start of the problem that is solved in place of the given one."""
        return self


@final
@dataclass(frozen=True)
class Continuation(Start):
    """Start untrimmed and lower h from S to its target over ``passes`` passes, but over no fewer than ``w_steps``
    w-steps and at most half of the passes allowed. Cheap, deterministic, and blind to the order of the rows."""

    passes: float = 20.0
    w_steps: int = 8
    sample: bool = False  # begin with a sample of the rows instead, where they are many (`trimlearn.smart.sample`)

    def __post_init__(self) -> None:
        if not is_number(self.passes) or not self.passes > 0:
            raise ValueError(f"passes must be a number > 0, got {self.passes!r}.")
        check_count(self.w_steps, "w_steps")

    def place(self, engine: Engine, seed: int) -> Array:
        problem = engine.problem
        near = from_sample(engine, seed) if self.sample else None
        if near is not None:
            return near
        engine.r1 = problem.r1.at_h(problem.S)
        engine.set_even_weights()
        return problem.r2.feasible(problem.loss.start())

    def near(self, engine: Engine) -> bool:
        return self.sample and engine.r1 is engine.problem.r1

    def h(self, problem: Problem, passes: float, w_steps: int, max_passes: float) -> float:
        done = min(passes / min(self.passes, max_passes / 2), w_steps / self.w_steps, 1.0)
        if passes >= max_passes / 2:
            done = 1.0
        return problem.r1.h + (1.0 - done) * (problem.S - problem.r1.h)


@final
@dataclass(frozen=True, eq=False)
class Given(Start):
    """The user's w⁰ and x⁰. Without w⁰ it is the best for x⁰; without either, w⁰ = h/n and the loss's own x⁰."""

    w0: Any = None
    x0: Any = None

    def __repr__(self) -> str:
        """With a digest for an array: a checkpoint must tell one start from another."""
        return f"Given(w0={_digest(self.w0)}, x0={_digest(self.x0)})"

    def carried(self, given: Problem, to: Problem) -> Start:
        return self if self.x0 is None else Given(self.w0, given.carried(_model(self.x0, given), to))

    def place(self, engine: Engine, seed: int) -> Array:
        problem = engine.problem
        x = problem.r2.feasible(problem.loss.start() if self.x0 is None else _model(self.x0, problem))
        if self.w0 is not None:
            engine.set_weights(_weights(self.w0, problem))
        elif self.x0 is not None:
            engine.set_best_weights(x)
        else:
            engine.set_even_weights()
        return x


@final
@dataclass(frozen=True)
class Concentration(Start):
    """The best of ``subsets`` fits to random minimal subsets, each followed by ``steps`` concentration steps; the
    ``keep`` best get ten more (Rousseeuw and Van Driessen 2006). Its passes are counted, but max_passes is for what
    follows."""

    subsets: int = 100
    steps: int = 2
    keep: int = 5

    def __post_init__(self) -> None:
        for name in ("subsets", "steps", "keep"):
            check_count(getattr(self, name), name)

    def place(self, engine: Engine, seed: int) -> Array:
        rows = _distinct(engine)
        subsets = (_subset(engine, rows, seed, i) for i in range(self.subsets))
        tried = sorted((self._try(engine, subset) for subset in subsets), key=lambda found: found[0])
        x = min((_concentrate(engine, x, 10) for _, x in tried[: self.keep]), key=lambda found: found[0])[1]
        engine.evaluate(x)
        engine.reweigh(inf)
        return x

    def _try(self, engine: Engine, subset: np.ndarray) -> tuple[float, Array]:
        problem = engine.problem
        w = np.zeros(problem.n)
        w[subset] = 1.0
        engine.set_weights(w)
        return _concentrate(engine, _fit(engine, problem.r2.feasible(problem.loss.start())), self.steps)


@final
@dataclass(frozen=True)
class MultiStart(Start):
    """The whole solve from a continuation and from ``starts`` − 1 concentrations over different subsets; the best
    objective is kept. `trimlearn.solve` runs it; each of the runs may use all passes."""

    starts: int = 5

    def __post_init__(self) -> None:
        check_count(self.starts, "starts")

    def place(self, engine: Engine, seed: int) -> Array:
        raise TypeError("MultiStart is a start of several solves: pass it to trimlearn.solve.")

    def parts(self) -> list[Start]:
        """The starts to try, in order."""
        return [Continuation(), *[Concentration(subsets=20) for _ in range(self.starts - 1)]]


def _distinct(engine: Engine) -> np.ndarray:
    """The different rows of positive sample weight, in an order that is theirs: by their loss at a generic x.

    So neither the order of the rows nor how often one is repeated changes what is drawn from them.
    """
    problem = engine.problem
    engine.evaluate(problem.loss.generic())
    rows = np.arange(problem.n) if problem.s is None else np.flatnonzero(to_numpy(problem.s) > 0)
    values = to_numpy(engine.losses)[rows]
    digits = 5 if values.dtype == np.float32 else 11  # equal rows have losses that are equal up to rounding
    unit = np.median(values[values > 0]) if np.any(values > 0) else 1.0
    return rows[np.unique(np.round(values / unit, digits), return_index=True)[1]]


def _subset(engine: Engine, rows: np.ndarray, seed: int, i: int) -> np.ndarray:
    """A minimal subset: as many of ``rows`` as determine x."""
    m = min(engine.problem.loss.minimal, len(rows))
    u = engine.draws(seed, i, Stream.START).uniforms(len(rows))
    return rows[np.argpartition(u, m - 1)[:m]]


def _concentrate(engine: Engine, x: Array, steps: int) -> tuple[float, Array]:
    """The best w for x and a good x for w in turn; the objective reached, and x."""
    value = inf
    for _ in range(steps):
        engine.evaluate(x)
        found = engine.reweigh(inf)
        if not found.value < value:
            break
        value, x = found.value, _fit(engine, x)
    engine.evaluate(x)
    return engine.reweigh(inf).value + engine.problem.r2.value(x), x


def _fit(engine: Engine, x: Array) -> Array:
    """A good x for the weights as they are. Only a start: where r2 forbids a closed form, that without r2 will do."""
    r2 = engine.problem.r2
    exact = engine.minimise(x)
    if exact is None:
        exact = engine.minimise(x, Zero())
    if exact is not None:
        return r2.feasible(exact)
    value, gradient = engine.value_gradient(x)
    if prod(x.shape) <= FEW or in_blocks(engine.problem):
        return newton(engine, x, value, gradient, 4)[0]
    if r2.smooth:
        return lbfgs(engine, x, value, gradient, 20)[0]
    return fista(engine, x, value, gradient, 1.0, 20)[0]


def _digest(a: Any) -> str:
    if a is None:
        return "None"
    return sha256(np.ascontiguousarray(to_numpy(a), dtype=np.float64).tobytes()).hexdigest()[:16]


def _model(x0: Any, problem: Problem) -> Array:
    x = _numbers("x0", x0, problem)
    if tuple(x.shape) != problem.loss.x_shape:
        raise ValueError(f"x0 must have shape {problem.loss.x_shape}, got {tuple(x.shape)}.")
    if not bool(namespace(x).all(namespace(x).isfinite(x))):
        raise ValueError("x0 must be finite, it holds NaN or infinity.")
    return x


def _numbers(name: str, value: Any, problem: Problem) -> Array:
    try:
        return asarray_like(value, problem.loss.like)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers, got {type(value).__name__}.") from error


def _weights(w0: Any, problem: Problem) -> Array:
    w = _numbers("w0", w0, problem)
    if tuple(w.shape) != (problem.n,):
        raise ValueError(f"w0 must have one entry per row, shape ({problem.n},), got {tuple(w.shape)}.")
    if not problem.r1.contain(w, problem.s):
        raise ValueError(f"w0 does not lie in {problem.r1!r}: weights from 0 to 1 that sum to h.")
    return w


def make_start(start: str | Start | None, w0: Any, x0: Any, problem: Problem) -> Start:
    """The start meant by the arguments of `trimlearn.solve`. A given w⁰ or x⁰ is where to start, as it is."""
    named: dict[str, type[Continuation | Concentration | MultiStart | Given]] = {
        "continuation": Continuation,
        "concentration": Concentration,
        "multistart": MultiStart,
        "given": Given,
    }
    if not (start is None or isinstance(start, Start) or (isinstance(start, str) and start in named)):
        raise ValueError(f"start must be one of {', '.join(map(repr, named))}, a Start or None, got {start!r}.")
    if w0 is not None or x0 is not None:
        if isinstance(start, Start) or start in ("concentration", "multistart"):
            raise ValueError("start makes its own w0 and x0; leave it out when you give w0 or x0.")
        return Given(w0, x0)
    chosen = start if isinstance(start, Start) else named["given" if start is None else start]()
    if isinstance(chosen, Continuation) and isinstance(problem.r1, AllOnes):
        return Given()
    # Least squares on everything, where a continuation begins, would drag a good guess to the outliers.
    return Given(x0=problem.loss.start()) if start == "continuation" and problem.loss.starts_near else chosen
