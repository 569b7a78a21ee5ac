"""
Counts, some of which were never reset
======================================

Poisson regression, where a sixth of the counters was not reset: their counts are too large by
40. Deviance residuals judge rows with large and with small means alike.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor

from trimlearn import TrimmedGLM

rng = np.random.default_rng(0)
x = rng.uniform(0, 2, size=300)
y = rng.poisson(np.exp(0.5 + x)).astype(float)
y[:50] += 40

model = TrimmedGLM("poisson", random_state=0).fit(x[:, None], y)
plain = PoissonRegressor(alpha=0).fit(x[:, None], y)
print(f"slope: trimmed {model.coef_[0]:.2f}, plain {plain.coef_[0]:.2f}; 1 is right")
print(f"{model.contamination_:.0%} of the counts are wrong, it says; 17 % are")

# %%
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
kept = model.inlier_mask_
ax.scatter(x[kept], y[kept], s=14, color="tab:blue", label="kept")
ax.scatter(x[~kept], y[~kept], s=18, marker="x", color="tab:red", label="trimmed")
grid = np.linspace(0, 2, 100)[:, None]
ax.plot(grid, model.predict(grid), color="black", label="trimmed fit")
ax.plot(grid, plain.predict(grid), ":", color="black", label="plain fit")
ax.set(xlabel="x", ylabel="count")
ax.legend(frameon=False)
