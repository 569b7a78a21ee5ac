"""
Any scikit-learn model, trimmed
===============================

Boosted trees learn whatever they are given. Here a fifth of the targets is wrong.
`TrimmedEstimator` fits the same trees to the rows that models of *other* rows explain.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor

from trimlearn import TrimmedEstimator

X, y = make_friedman1(500, noise=1.0, random_state=0)
X_test, y_test = make_friedman1(1000, noise=1.0, random_state=1)
clean = y.copy()
y[:100] += 30

boosting = HistGradientBoostingRegressor(max_iter=40, random_state=0)
model = TrimmedEstimator(boosting, random_state=0).fit(X, y)
print(f"{model.contamination_:.0%} of the targets are wrong, it says")

scores = {
    "as it is": boosting.fit(X, y).score(X_test, y_test),
    "trimmed": model.score(X_test, y_test),
    "without the wrong rows": boosting.fit(X[100:], clean[100:]).score(X_test, y_test),
}
for name, r2 in scores.items():
    print(f"R² on new rows, {name}: {r2:.2f}")

# %%
# What the wrong rows cost, and how much of it is won back:

figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
ax.barh(list(scores), list(scores.values()), color=["tab:red", "tab:blue", "tab:gray"])
ax.axvline(0, color="black", linewidth=0.8)
ax.set(xlabel="R² on new rows")
