"""
Which cells are wrong
=====================

Tables have wrong cells, not wrong rows: a comma that slipped, a sign. Throwing away whole rows
would lose nearly all of a table of which 3 % of the cells are wrong. `CellwiseOutliers` names
the cells, and says what was expected there.
"""

import matplotlib.pyplot as plt
import numpy as np

from trimlearn import CellwiseOutliers
from trimlearn.plots import plot_cell_map

rng = np.random.default_rng(0)
size = rng.lognormal(sigma=0.5, size=(150, 1))
cars = 100 * size ** [1.0, 1.5, 0.5, 0.8, 1.2, -0.7] * rng.lognormal(sigma=0.08, size=(150, 6))
truth = cars.copy()
wrong = rng.random(cars.shape) < 0.03
cars[wrong] *= rng.choice([10, 0.1, -1], size=wrong.sum())

model = CellwiseOutliers().fit(cars)
found = model.cell_mask_
print(f"{wrong.sum()} cells are wrong; {found[wrong].sum()} of them are found")
print(f"and {found[~wrong].sum()} of {(~wrong).sum()} others flagged")
off = np.abs(model.expected_[wrong] / truth[wrong] - 1)
print(f"what was expected there is off by {np.median(off):.0%} in the median")

# %%
# The rows with the worst cells: red is too high, blue too low.

figure, ax = plt.subplots(figsize=(6, 7), layout="constrained")
plot_cell_map(model, ax=ax)
