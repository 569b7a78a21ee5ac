"""
A few rows that turn a regression
=================================

In a star cluster, hot stars are bright, but for a handful of giants: cool and brighter than all
others. They are few, but they lie far out along the axis, and that gives them leverage: least
squares says that hot stars are dim. The stars here are made up after the well-known cluster CYG
OB1 (Rousseeuw and Leroy 1987).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import HuberRegressor, LinearRegression

from trimlearn import TrimmedLinearRegression
from trimlearn.plots import plot_outlier_map

rng = np.random.default_rng(0)
temperature = rng.normal(4.4, 0.12, size=47)
light = 5 + 3 * (temperature - 4.4) + 0.25 * rng.standard_normal(47)
temperature[:5] = 3.5 + 0.03 * rng.standard_normal(5)  # the giants
light[:5] = 6.1 + 0.1 * rng.standard_normal(5)
X = temperature[:, None]

trimmed = TrimmedLinearRegression(random_state=0).fit(X, light)
print("not explained:", np.flatnonzero(~trimmed.inlier_mask_))
print(f"slope {trimmed.coef_[0]:.2f}, and 3 is right")

# %%
# Huber's loss does not help: it guards against rows whose *light* is wild, not against those that
# lie far out along the axis.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
kept = trimmed.inlier_mask_
ax.scatter(temperature[kept], light[kept], color="tab:blue", label="kept")
ax.scatter(temperature[~kept], light[~kept], color="tab:red", marker="x", label="trimmed")
grid = np.linspace(3.4, 4.75, 50)[:, None]
for name, model, style in (
    ("least squares", LinearRegression(), ":"),
    ("Huber", HuberRegressor(), "--"),
    ("least trimmed squares", trimmed, "-"),
):
    ax.plot(grid, model.fit(X, light).predict(grid), style, color="black", label=name)
ax.invert_xaxis()
ax.set(xlabel="log temperature", ylabel="log light intensity", ylim=(3.5, 6.5))
ax.legend(frameon=False)

# %%
# The outlier map tells the two kinds of outliers apart: far off the fit (up and down), and far
# out among the features (right).

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
plot_outlier_map(trimmed, ax=ax)
