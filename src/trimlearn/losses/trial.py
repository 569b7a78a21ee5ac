"""One loss at one point, and what is wrong with it there: what `check_loss` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, final

import numpy as np
from array_api_compat import is_array_api_obj

from trimlearn._utils.arrays import Array, asarray_like, eps_of, index_like, namespace, to_numpy
from trimlearn.losses.base import Loss, PredictionLoss
from trimlearn.losses.blocks import BlockLoss
from trimlearn.regularizers import Zero

EXAMPLES = 20  # whose gradients are looked at one by one: a limit on time
DIRECTIONS = 3  # of differences; of these two must disagree, as a kink within 1e-5 of x is no error
GRID, HALVINGS = 32, 24  # points of a line where the gradient may jump, and closer looks at one: limits on time
ACROSS = 0.3, 5.0  # of 1 + |x|, the lengths of that line: near x, and where most losses take another branch
JUMP, POLE = 1e-2, 10.0  # of the gradient's range along the line: what stays a jump, and what is a pole instead
NAMES = 3  # examples that a sentence names


@dataclass
class TrialPoint:
    """A loss, and a point x to try it at."""

    loss: Loss
    given: Any
    rng: np.random.Generator

    @cached_property
    def x(self) -> Array:
        """The point given, or one near the start where as many losses as possible are finite."""
        if self.given is not None:
            return asarray_like(self.given, self.loss.like)
        start = to_numpy(self.loss.start()).astype(np.float64)
        noise = self.rng.standard_normal(start.shape) * (1 + np.abs(start)) / (1 + start.size) ** 0.5
        points = [asarray_like(start + size * noise, self.loss.like) for size in (0.3, 1e-2, 1e-4)]
        return max(points, key=lambda x: np.isfinite(to_numpy(self.loss.values(x))).sum())

    @cached_property
    def numbers(self) -> np.ndarray:
        """The examples looked at one by one: finite ones."""
        finite = np.flatnonzero(np.isfinite(to_numpy(self.loss.values(self.x))))
        return np.sort(self.rng.permutation(finite)[:EXAMPLES])

    @cached_property
    def one_by_one(self) -> np.ndarray:
        """Their gradients, flat, a row each."""
        return np.stack([self.gradient_of(self.x, i) for i in self.numbers])

    def gradient_of(self, x: Array, i: int) -> np.ndarray:
        one = self.row(np.array([i]))
        return self.flat(self.loss.gradient(x, self.like(np.ones(1)), one))

    def direction(self) -> np.ndarray:
        u = self.rng.standard_normal(self.x.shape) * (1 + np.abs(to_numpy(self.x)))
        return np.asarray(u / max(u.size, 1) ** 0.5)

    def moved(self, u: np.ndarray, h: float) -> Array:
        return asarray_like(to_numpy(self.x).astype(np.float64) + h * u, self.x)

    def like(self, a: Any) -> Array:
        return asarray_like(a, self.loss.like)

    def row(self, numbers: np.ndarray) -> Array:
        return index_like(numbers, self.loss.like)

    def flat(self, a: Any) -> np.ndarray:
        return np.asarray(to_numpy(a), np.float64).ravel()

    @property
    def step(self) -> float:
        return float(eps_of(self.x) ** (1 / 3))

    def off(self, a: Any, b: Any, size: Any = 0.0) -> np.ndarray:
        """Where a and b differ by more than differences of numbers of this size do."""
        a, b = self.flat(a), self.flat(b)
        slack = 10 * self.step * np.maximum(np.abs(a), np.abs(b)) + 100 * eps_of(self.x) * np.abs(size) / self.step
        return np.asarray(~(np.abs(a - b) <= slack + 1e-30))


@final
@dataclass
class Trial(TrialPoint):
    """One loss at one point; every check gives a sentence for what is wrong."""

    exact_hessian: bool
    smooth: bool

    def stages(self) -> list[list[Callable[[], Iterator[str]]]]:
        """The checks, in an order in which those of one stage make no sense where one before it has failed."""
        last = [self.weight_zero, self.value_gradient, self.hessp, self.lipschitz, self.minimiser]
        first = [[self.start], [self.values], [self.rows, self.gradient], [self.weights]]
        return [*first, [*last, self.kinks] if self.smooth else last]

    def start(self) -> Iterator[str]:
        for name, find in (("start()", self.loss.start), ("x", lambda: self.x)):
            point = find()
            if tuple(np.shape(point)) != self.loss.x_shape:
                yield f"{name} must have the shape x_shape = {self.loss.x_shape}, got {tuple(np.shape(point))}."
            elif not np.all(np.isfinite(to_numpy(point))):
                yield f"{name} must be finite."
            else:
                continue
            return

    def values(self) -> Iterator[str]:
        x, n = self.x, self.loss.n
        before = to_numpy(x).copy()
        f = self.loss.values(x)
        if tuple(np.shape(f)) != (n,):
            yield f"values must give one loss per example, shape ({n},), got shape {tuple(np.shape(f))}."
            return
        yield from self._kind("values", f)
        again = to_numpy(self.loss.values(x))
        if not np.array_equal(to_numpy(f), again, equal_nan=True):
            yield "values gives other numbers at the same x when it is called again: it must not be random."
        if not np.array_equal(before, to_numpy(x)):
            yield "values changes the x that it is given; work on a copy."
        if not np.any(np.isfinite(again)):
            yield "values are NaN or infinite for every example; give check_loss an x where they are not."

    def rows(self) -> Iterator[str]:
        n, f = self.loss.n, to_numpy(self.loss.values(self.x))
        mixed = self.rng.integers(0, n, min(n, EXAMPLES) + 1)
        for what, rows in (("a slice", slice(0, n, 2)), ("numbers", self.row(mixed)), ("no rows", self.row(mixed[:0]))):
            part = self.loss.values(self.x, rows)
            expected = f[rows if isinstance(rows, slice) else to_numpy(rows)]
            if tuple(np.shape(part)) != expected.shape:
                yield f"values(x, rows) must give one loss per row; for {what} it gives shape {tuple(np.shape(part))}."
            elif np.any(self.off(np.nan_to_num(self.flat(part)), np.nan_to_num(expected), np.nan_to_num(expected))):
                yield f"values(x, rows) differs from values(x)[rows] where rows are {what}: use `select`."

    def gradient(self) -> Iterator[str]:
        loss, x, numbers = self.loss, self.x, self.numbers
        g = loss.gradient(x, self.like(np.ones(1)), self.row(numbers[:1]))
        if tuple(np.shape(g)) != loss.x_shape:
            yield f"gradient must have the shape of x, {loss.x_shape}, got {tuple(np.shape(g))}."
            return
        yield from self._kind("gradient", g)
        size, wrong, seen = to_numpy(loss.values(x))[numbers], np.zeros(len(numbers), int), []
        for _ in range(DIRECTIONS):
            u = self.direction()
            ahead, back = (self.flat(loss.values(self.moved(u, h)))[numbers] for h in (self.step, -self.step))
            change, said = (ahead - back) / (2 * self.step), self.one_by_one @ u.ravel()
            wrong += self.off(change, said, size)
            seen.append((change, said))
        bad = np.flatnonzero(wrong >= 2)
        if len(bad):
            change, said = seen[0][0][bad], seen[0][1][bad]
            ratio = said / np.where(change == 0, np.nan, change)
            same = len(bad) > 1 and np.nanmax(np.abs(ratio - np.nanmedian(ratio))) < 0.01 * abs(np.nanmedian(ratio))
            how = f"{np.nanmedian(ratio):.3g} times what it should be" if same else "not that of values"
            at = f"values change by {change[0]:.3g} where gradient says {said[0]:.3g}"
            yield f"gradient is {how}: {at} ({_named(numbers[bad])})."
        elif (one := self._wrong_example()) is not None:
            yield f"gradient is not that of values (example {one}), though it is for most others."

    def _wrong_example(self) -> int | None:
        """An example whose gradient is off among those not looked at one by one: the half that is off, halved."""
        rows, first = np.flatnonzero(np.isfinite(to_numpy(self.loss.values(self.x)))), self.direction()

        def off(some: np.ndarray, u: np.ndarray = first) -> bool:
            at, c = self.row(some), self.like(np.ones(len(some)))
            ahead, back = (self.flat(self.loss.values(self.moved(u, h), at)) for h in (self.step, -self.step))
            said = self.flat(self.loss.gradient(self.x, c, at)) @ u.ravel()
            size = np.abs(to_numpy(self.loss.values(self.x, at))).sum(dtype=np.float64)
            return bool(np.any(self.off((ahead - back).sum() / (2 * self.step), said, size)))

        while len(rows) and off(rows):
            if len(rows) == 1:
                again = sum(off(rows, self.direction()) for _ in range(DIRECTIONS))
                return int(rows[0]) if again >= 2 else None
            rows = next((half for half in np.array_split(rows, 2) if off(half)), rows[:0])
        return None

    def weights(self) -> Iterator[str]:
        loss, x, numbers = self.loss, self.x, self.numbers
        c = self.rng.uniform(0.5, 2.0, len(numbers))
        expected, size = c @ self.one_by_one, c @ np.abs(self.one_by_one)
        if np.any(self.off(loss.gradient(x, self.like(c), self.row(numbers)), expected, size)):
            yield "gradient(x, c, rows) is not the sum of c times the gradients of these rows."
        full = np.zeros(loss.n)
        full[numbers] = c
        if np.any(self.off(loss.gradient(x, self.like(full)), expected, size)):
            yield "gradient(x, c) with c = 0 outside some rows differs from gradient(x, c, rows) of these."

    def weight_zero(self) -> Iterator[str]:
        """An example of weight 0 may hold anything: data that is NaN, or a loss that has overflowed."""
        cure = "use trimlearn.losses.weighted(a, c) in place of c * a, or leave out rows with c = 0 by indexing."
        most = float(namespace(self.x).finfo(self.x.dtype).max)
        far = self.like(np.full(self.x.shape, most**0.7))
        if np.any(self.flat(self.loss.gradient(far, self.like(np.zeros(self.loss.n)))) != 0):
            yield f"gradient with c = 0 is not 0 where losses overflow: {cure}"
        spoilt, c = copy(self.loss), np.ones(self.loss.n)
        for name, data in vars(self.loss).items():
            if is_array_api_obj(data) and data.ndim and data.shape[0] == self.loss.n and _floating(data):
                other = asarray_like(to_numpy(data).copy(), data)
                other[0] = float("nan")
                setattr(spoilt, name, other)
        c[0], c[1:] = 0.0, np.isfinite(to_numpy(self.loss.values(self.x)))[1:]
        if not np.all(np.isfinite(self.flat(spoilt.gradient(self.x, self.like(c))))):
            yield f"an example of weight 0 whose data is NaN makes the whole gradient NaN: {cure}"

    def value_gradient(self) -> Iterator[str]:
        loss, x, rows = self.loss, self.x, self.row(self.numbers)
        c = self.rng.uniform(0.5, 2.0, len(self.numbers))
        f = to_numpy(loss.values(x, rows)).astype(np.float64)
        value, g = loss.value_gradient(x, self.like(c), rows)
        if np.any(self.off(value, c @ f, c @ np.abs(f))) or np.any(
            self.off(g, c @ self.one_by_one, c @ np.abs(self.one_by_one))
        ):
            yield "value_gradient differs from what values and gradient give."

    def hessp(self) -> Iterator[str]:
        loss, rows = self.loss, self.row(self.numbers)
        if type(loss).hessp is Loss.hessp:  # differences, as good as the gradient
            return
        c, (u, v) = self.like(np.ones(len(self.numbers))), (self.direction() for _ in range(2))
        Hu, Hv = (self.flat(loss.hessp(self.x, self.like(d), c, rows)) for d in (u, v))
        size = float(np.linalg.norm(Hu) * np.linalg.norm(v) + np.linalg.norm(Hv) * np.linalg.norm(u))
        if np.any(self.off(Hu @ v.ravel(), Hv @ u.ravel(), size)):
            yield "hessp is not symmetric: u·(Hv) differs from v·(Hu)."
        elif self.exact_hessian and not isinstance(loss, BlockLoss):
            ahead, back = (loss.gradient(self.moved(u, h), c, rows) for h in (self.step, -self.step))
            change = (self.flat(ahead) - self.flat(back)) / (2 * self.step)
            a, b = float(change @ u.ravel()), float(Hu @ u.ravel())
            if np.any(self.off(a, b, np.abs(self.one_by_one @ u.ravel()).sum())):
                name = "phi_hessp" if isinstance(loss, PredictionLoss) else "hessp"
                meant = "if that is meant (Gauss-Newton, a parabola above the loss), pass exact_hessian=False"
                yield f"{name} is not the derivative of gradient: the curvature is {a:.3g}, it says {b:.3g}; {meant}."

    def lipschitz(self) -> Iterator[str]:
        try:
            L = self.flat(self.loss.lipschitz())
        except ValueError:  # that there is none may also be said this way, as `TorchLoss` does
            return
        name = "curvature_bound" if isinstance(self.loss, PredictionLoss) else "lipschitz"
        if L.shape != (self.loss.n,) or not np.all(L >= 0):
            yield f"{name} must give {self.loss.n} numbers >= 0, one per example; infinity where there is none."
            return
        if not np.any(np.isfinite(L[self.numbers])):
            return
        for scale in (1e-3, 1.0, 10.0):
            u = scale * self.direction()
            there = np.stack([self.gradient_of(self.moved(u, 1.0), i) for i in self.numbers])
            slope = np.linalg.norm(there - self.one_by_one, axis=1) / np.linalg.norm(u)
            rounding = 100 * eps_of(self.x) * np.linalg.norm(self.one_by_one, axis=1) / np.linalg.norm(u)
            bad = np.flatnonzero(slope > L[self.numbers] * (1 + 10 * self.step) + rounding)
            if len(bad):
                at = f"{L[self.numbers][bad[0]]:.3g} where the gradient changes by {slope[bad[0]]:.3g} per unit of x"
                yield f"{name} is too small: it gives {at} ({_named(self.numbers[bad])})."
                return

    def minimiser(self) -> Iterator[str]:
        loss, c = self.loss, np.zeros(self.loss.n)
        c[self.numbers if loss.n > EXAMPLES else slice(None)] = 1.0 / loss.n
        best = loss.minimiser(self.like(c), Zero(), self.x)
        if best is None:
            return
        if tuple(best.shape) != loss.x_shape:
            yield f"minimiser must give an x of shape {loss.x_shape}, or None, got shape {tuple(best.shape)}."
            return
        least, here = (loss.value_gradient(point, self.like(c))[0] for point in (best, self.x))
        u = self.direction() * self.step
        near = min(loss.value_gradient(self.like(to_numpy(best) + h * u), self.like(c))[0] for h in (1, -1))
        if not least <= min(near, here) + 100 * eps_of(self.x) * (abs(least) + abs(here)):
            yield f"minimiser is not the minimum: the sum is {least:.6g} there, and {min(near, here):.6g} elsewhere."

    def kinks(self) -> Iterator[str]:
        """A jump of the slope of one example along a line, that no closer look makes smaller."""
        halvings, u = HALVINGS if eps_of(self.x) < 1e-10 else HALVINGS // 3, self.direction()
        for i, across in product(self.numbers[: EXAMPLES // 2], ACROSS):

            def slope(t: float, i: int = int(i), across: float = across) -> float:
                return float(self.gradient_of(self.moved(u, across * t), i) @ u.ravel())

            ts = np.linspace(-1, 1, GRID + 1)
            slopes = np.array([slope(t) for t in ts])
            if not np.all(np.isfinite(slopes)):
                continue
            k = int(np.argmax(np.abs(np.diff(slopes))))
            (a, b), (fa, fb), span = ts[k : k + 2], slopes[k : k + 2], float(np.ptp(slopes))
            least = max(JUMP * span, 1e4 * eps_of(self.x) * float(np.abs(slopes).max()))
            for _ in range(halvings):
                if not abs(fb - fa) > least:
                    break
                middle = (a + b) / 2
                fm = slope(middle)
                a, b, fa, fb = (a, middle, fa, fm) if abs(fm - fa) >= abs(fb - fm) else (middle, b, fm, fb)
            if least < abs(fb - fa) < POLE * span:
                at = f"gradient jumps from {fa:.3g} to {fb:.3g} at a kink (example {i})"
                yield f"{at}: all methods assume smooth losses, so round it off, or pass smooth=False."
                return

    def _kind(self, name: str, a: Any) -> Iterator[str]:
        like = self.loss.like
        if not is_array_api_obj(a) or namespace(a) is not namespace(like) or a.dtype != like.dtype:
            got = f"{type(a).__name__} of {a.dtype}" if is_array_api_obj(a) else type(a).__name__
            yield f"{name} must give what `like` is, {type(like).__name__} of {like.dtype}, got {got}."


def _floating(a: Array) -> bool:
    return bool(namespace(a).isdtype(a.dtype, "real floating"))


def _named(numbers: np.ndarray) -> str:
    """The first of these examples."""
    some = ", ".join(str(int(i)) for i in numbers[:NAMES])
    return f"example{'s' if len(numbers) > 1 else ''} {some}{' …' if len(numbers) > NAMES else ''}"
