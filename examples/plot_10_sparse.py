"""
More columns than rows
======================

80 rows, 120 columns, of which three matter, and 12 rows that are wrong. Cross-validation of a
lasso is misled twice: by the fit, and by the held-out errors that choose the penalty.
`TrimmedLinearRegressionCV` decides which rows are good and which penalty is best together.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from trimlearn import TrimmedLinearRegressionCV

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 120))
y = 2 * X[:, 0] - 2 * X[:, 1] + 2 * X[:, 2] + rng.standard_normal(80)
y[:12] += 30

model = TrimmedLinearRegressionCV(random_state=0, cv=3).fit(X, y)
plain = LassoCV(cv=3, random_state=0).fit(X, y)
flagged = ~model.inlier_mask_
print(f"{flagged[:12].sum()} of the 12 wrong rows are found, {flagged[12:].sum()} others flagged")

# %%
# The plain lasso spends its coefficients on the wrong rows:

figure, panels = plt.subplots(2, 1, figsize=(8, 4.5), layout="constrained", sharex=True, sharey=True)
for ax, name, coef, color in (
    (panels[0], "LassoCV", plain.coef_, "tab:red"),
    (panels[1], "TrimmedLinearRegressionCV", model.coef_, "tab:blue"),
):
    ax.stem(np.arange(1, 121), coef, linefmt=color, markerfmt=" ", basefmt="k-")
    ax.scatter([1, 2, 3], [2, -2, 2], marker="_", color="black", label="the truth")
    ax.set(title=name, ylabel="coefficient")
panels[0].legend(frameon=False)
panels[1].set(xlabel="column")
