"""
Bundle adjustment with wrong observations
=========================================

Cameras and points in space from where the points were seen. A tenth of the observations is wrong, as
where features were mistaken for each other. Least squares on everything spreads their error over the
whole scene; trimming leaves them out. `BlockLoss` solves the normal equations by a Schur complement,
so that thousands of points cost little more than the cameras that saw them.

With a problem file of "Bundle Adjustment in the Large": ``python plot_12_bundle_adjustment.py --bal FILE``.
"""

import argparse
import sys

import matplotlib.pyplot as plt
import numpy as np

from trimlearn import Problem, solve
from trimlearn.geometry import ReprojectionLoss, read_bal
from trimlearn.geometry.bundle_data import made_up_scene
from trimlearn.weights import AllOnes, CappedSimplex

parser = argparse.ArgumentParser()
parser.add_argument("--bal", help="a problem file of Bundle Adjustment in the Large")
parser.add_argument("--wrong", type=float, default=0.1, help="share of the observations to replace")
arguments = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])

if arguments.bal is None:
    loss, wrong, _ = made_up_scene(wrong=arguments.wrong)
else:
    given = read_bal(arguments.bal)
    rng = np.random.default_rng(0)
    wrong = np.zeros(given.n, bool)
    wrong[rng.permutation(given.n)[: int(arguments.wrong * given.n)]] = True
    seen = given.seen.copy()
    size = np.abs(seen).max(axis=0)
    seen[wrong] = rng.uniform(-size, size, (int(wrong.sum()), 2))  # anywhere in the image
    camera, point = (s.block for s in given.sees)
    loss = ReprojectionLoss(camera, point, seen, given.cameras, given.points)
print(f"{len(loss.cameras)} cameras, {len(loss.points)} points, {loss.n} observations, {wrong.sum()} of them wrong")

# %%
# Three fits: least squares on everything, least squares on the right observations alone, which nobody
# could know, and the trimmed one. They start from the same cameras and points.
right = ReprojectionLoss(*(s.block[~wrong] for s in loss.sees), loss.seen[~wrong], loss.cameras, loss.points)
fits = {
    "least squares": solve(Problem(loss, AllOnes()), max_passes=200),
    "the right ones alone": solve(Problem(right, AllOnes()), max_passes=200),
    "trimmed": solve(Problem(loss, CappedSimplex(loss.n - int(wrong.sum()))), max_passes=200),
}
errors = {name: np.sqrt(2 * right.values(fit.x)) for name, fit in fits.items()}
best = np.median(errors["the right ones alone"])
for name, fit in fits.items():
    median = np.median(errors[name])
    print(f"{name:>20}: median error {median:7.3f} px, {median / best:6.2f} of the best; {fit.status.name}")

trimmed = fits["trimmed"]
times = loss.times_seen(trimmed.w)[1]
print(f"{np.mean(trimmed.w[wrong] == 0):.1%} of the wrong observations were trimmed")
print(f"{np.sum(times < 2)} points are left with fewer than two views: their depth is not known")

# %%
# How far the right observations are from where the fits put them.
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
colours = ("tab:gray", "black", "tab:blue")
for (name, error), colour in zip(errors.items(), colours, strict=True):
    ax.plot(
        np.sort(error), np.linspace(0, 1, len(error)), color=colour, label=name, ls="--" if name[:3] == "the" else "-"
    )
ax.set(xscale="log", xlabel="error of a right observation, px", ylabel="share of them below")
ax.legend(frameon=False)
