"""
A loss of your own
==================

Any loss that knows its values and its gradients can be trimmed. Here: a sine wave of unknown
amplitude and phase, which is linear in two numbers, with the loss log cosh, and then trimmed by
`solve`.
"""

import matplotlib.pyplot as plt
import numpy as np

from trimlearn import Problem, solve
from trimlearn.losses import Linear, PredictionLoss, check_loss, select
from trimlearn.weights import CappedSimplex


class LogCosh(PredictionLoss):
    """log cosh(z − t): about a square near 0, about a distance far out."""

    def __init__(self, V, t):
        super().__init__(Linear(V))
        self.t = t

    def evaluate(self, z, rows=None):
        u = z[:, 0] - select(self.t, rows)
        return np.logaddexp(u, -u) - np.log(2), np.tanh(u)[:, None]

    def curvature_bound(self):
        return 1.0

    def phi_hessp(self, z, u, rows=None):
        r = z[:, 0] - select(self.t, rows)
        return (1 - np.tanh(r) ** 2)[:, None] * u


rng = np.random.default_rng(0)
time = np.sort(rng.uniform(0, 10, 200))
waves = np.stack([np.sin(time), np.cos(time)], axis=1)
signal = waves @ [2.0, 1.0] + 0.2 * rng.standard_normal(200)
signal[60:120] = 5 + 0.2 * rng.standard_normal(60)  # the sensor was stuck

check_loss(LogCosh(waves, signal))  # silent: derivatives, rows, bounds are right
everything = solve(Problem(LogCosh(waves, signal), CappedSimplex(200)))
trimmed = solve(Problem(LogCosh(waves, signal), CappedSimplex(130)))
print("all rows:", everything.x.round(2), "  trimmed:", trimmed.x.round(2), "  the truth: [2. 1.]")
print(trimmed.status)

# %%
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
out = trimmed.w == 0
ax.scatter(time[~out], signal[~out], s=10, color="tab:blue", label="weight 1")
ax.scatter(time[out], signal[out], s=14, marker="x", color="tab:red", label="weight 0")
ax.plot(time, waves @ trimmed.x, color="black", label="trimmed")
ax.plot(time, waves @ everything.x, ":", color="black", label="all rows")
ax.set(xlabel="time", ylabel="signal")
ax.legend(frameon=False)
