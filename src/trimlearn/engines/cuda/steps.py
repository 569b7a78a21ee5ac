"""Stretches of x-steps on a device: x, the one before it and the mean of y stay there, and nobody waits until the end.

A step is that of `trimlearn.smart.algorithm.Algorithm1.x_step` for Dₖ = ∅ and duals kept as residuals, with r2 and the
metric one coordinate at a time. Everything it reads lies in buffers that are there from the start, γ included, so that
a step captured once as a CUDA graph serves the whole run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch

from trimlearn._utils.arrays import Tensor, asarray_like
from trimlearn._utils.graphs import Replay
from trimlearn.engines.cuda.drawing import Drawing
from trimlearn.engines.cuda.layout import MatrixLayout
from trimlearn.engines.cuda.rows import TorchRows
from trimlearn.engines.stretch import steps_are_alike
from trimlearn.regularizers.separable import as_elastic_net
from trimlearn.smart.algorithm import Algorithm1
from trimlearn.smart.draws import Stream, normals
from trimlearn.smart.method import State
from trimlearn.smart.row_laws import Nothing, Recipe

STEPS = 512  # of a stretch, at most: as many coins show tails in a row once in 10⁵ stretches of 40
ROWS = 1 << 25  # row numbers held for a stretch, at most: 128 MB
BLOCKS = (8, 1)  # steps in a graph: a stretch of 40 is five launches, and captures take a millisecond


@final
@dataclass(frozen=True)
class Drawn:
    """What a stretch has cost: distinct rows of positive weight, and draws of weight 0."""

    evaluated: int
    skipped: int


def knows(run: Algorithm1) -> bool:
    """Whether the steps of a run are among those that can be taken here."""
    net = as_elastic_net(run.problem.r2, run.problem.loss.x_shape)
    known = isinstance(run.refresh, Nothing) and run.duals == "residuals" and net is not None
    return known and steps_are_alike(run)


class Steps:
    """The x-steps of one run, by torch; `trimlearn.engines.cuda.fused` has the same in two kernels."""

    def __init__(self, rows: TorchRows, layout: MatrixLayout, run: Algorithm1, w: Tensor, drawing: Drawing) -> None:
        self.rows, self.layout, self.run, self.w = rows, layout, run, w
        self.b, self.capacity = run.b, max(1, min(STEPS, ROWS // run.b))
        self.drawing = drawing
        like = w
        pinned = like.device.type == "cuda"
        self._host = torch.zeros((3, *layout.shape), dtype=like.dtype, pin_memory=pinned)
        self.box = like.new_zeros((3, *layout.shape))  # x, the one before, the mean of y
        self.X, self.before, self.mean = self.box
        self._step_size = torch.zeros(1, dtype=torch.float64, pin_memory=pinned)
        self.gamma = torch.zeros(1, dtype=torch.float64, device=like.device)
        self.momentum = torch.full((1,), run.momentum, dtype=like.dtype, device=like.device)
        self.inverse = torch.ones(layout.width, dtype=torch.float64, device=like.device)
        self._learned: object = None
        net = as_elastic_net(run.problem.r2, run.problem.loss.x_shape)
        assert net is not None, "knows() sees to that"
        shares = net[1], 1.0 - net[1]
        self.l1, self.l2 = (torch.from_numpy(layout.written(net[0] * share)).to(like.device) for share in shares)
        self.drawn = torch.zeros((self.capacity, self.b), dtype=torch.int32, device=like.device)
        self.factor = like.new_full((self.capacity + 1,), 1.0 / self.b)
        self.notes = torch.zeros(4, dtype=torch.int32, device=like.device)  # the step, distinct rows, draws, not finite
        self._read = torch.zeros(4, dtype=torch.int32, pin_memory=pinned)
        self._blocks = {size: Replay(partial(_several, count=size), self, w.device) for size in BLOCKS}

    def draw(self, state: State, count: int) -> None:
        """The rows of the next ``count`` iterations: the coin has taken the first number of each."""
        self.drawing.fill(self.drawn, Recipe(self.run.batch, self.run.seed, state.k, skip=1), count)

    def distinct(self, count: int) -> np.ndarray:
        """How many distinct rows of positive weight each of the ``count`` steps drawn has."""
        rows = self.drawn[:count].sort(1).values
        alive = self.w[rows.long()] > 0
        alive[:, 1:] &= rows[:, 1:] != rows[:, :-1]
        return np.asarray(alive.sum(1).cpu().numpy())

    def take(self, state: State, count: int) -> Drawn | None:
        """Take the first ``count`` steps drawn; None, and the state as it was, where a number was not finite."""
        host = self._host.numpy()
        previous = state.x if state.previous is None else state.previous
        for part, x in zip(host, (state.x, previous, state.y_mean), strict=True):
            self.layout.put(x, part)
        self.box.copy_(self._host, non_blocking=True)
        self._step_size.fill_(state.gamma)
        self.gamma.copy_(self._step_size, non_blocking=True)
        if state.metric.inverse is not self._learned:
            self._learned = state.metric.inverse
            column = self.layout.written(state.metric.inverse)[0]  # the same for every prediction
            self.inverse.copy_(torch.from_numpy(column))
        # Where x has not moved, wᵢ∇fᵢ(x) − yᵢ = 0, exactly: the first step counts no row.
        self.factor[0] = 1.0 / self.b if state.moved else 0.0
        self.notes.zero_()
        self.walk(count)
        self._host[:2].copy_(self.box[:2], non_blocking=True)
        if self.run.rule.automatic:  # the device is busy: what the next w-step asks for first
            normals(self.run.seed, state.k + count, Stream.PROBE, 0, self.run.problem.loss.x_shape)
        self._read.copy_(self.notes)  # this waits for the device
        _, evaluated, alive, spoilt = self._read.tolist()
        if spoilt and self.run.rule.guards:
            return None
        like = self.run.problem.loss.like
        state.x, state.previous = (asarray_like(self.layout.x(part), like) + 0 for part in host[:2])  # copies
        counted = count - (not state.moved)
        state.moved = True
        state.k += count
        return Drawn(evaluated, counted * self.b - alive)

    def walk(self, count: int) -> None:
        """The first ``count`` steps drawn, from what lies in the buffers."""
        left = count
        for size in BLOCKS:
            while left >= size:
                self._blocks[size]()
                left -= size

    def step(self) -> None:
        """One x-step."""
        at = self.notes[:1].long()
        rows = self.drawn.index_select(0, at)[0].long()
        c = self.w.index_select(0, rows) * self.factor.index_select(0, at)
        g = self.mean + self.rows.difference(self.X, rows, c)[0]
        ahead = self.X + self.momentum * (self.X - self.before)
        gamma = self.gamma * self.inverse
        wide = ahead.double() - gamma * g.double()
        size = (wide.abs() - gamma * self.l1).clamp_min(0.0)
        self.before.copy_(self.X)
        self.X.copy_(wide.sign() * size / (1.0 + gamma * self.l2))
        order = rows.sort()
        first = torch.ones_like(order.values, dtype=torch.bool)
        first[1:] = order.values[1:] != order.values[:-1]
        alive = c != 0
        counts = [(alive[order.indices] & first).sum(), alive.sum(), (~torch.isfinite(g)).any().int()]
        self.notes += torch.stack([torch.ones_like(counts[0]), *counts]).int()


def _several(steps: Steps, count: int) -> None:
    for _ in range(count):
        steps.step()
