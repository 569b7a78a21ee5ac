"""Where `check_loss` tries a loss: a point, some examples, directions, and how far differences may be off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trimlearn._utils.arrays import Array, asarray_like, eps_of, index_like, to_numpy
from trimlearn.losses.base import Loss

__all__ = ["EXAMPLES", "TrialPoint"]

EXAMPLES = 20  # whose gradients are looked at one by one: a limit on time


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
