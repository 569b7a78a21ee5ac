"""
A heavy tail is not an error
============================

Exponential errors have a long tail on one side. Rules such as a box plot's whiskers call its
end wrong, for ever. Nothing is wrong here, and the more rows there are, the clearer that gets.
This shows what trimlearn flags, and where it fails: in small samples.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from trimlearn import TrimmedLinearRegression
from trimlearn.plots import plot_scores

rng = np.random.default_rng(0)


def flagged(n, errors):
    """The share that trimlearn flags, that beyond a box plot's whiskers, and whether it warns."""
    X = rng.standard_normal((n, 2))
    y = X @ [1.0, -1.0] + errors(n)
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    residuals = y - model.predict(X)
    low, high = np.quantile(residuals, [0.25, 0.75])
    whiskers = (residuals > high + 1.5 * (high - low)) | (residuals < low - 1.5 * (high - low))
    return (~model.inlier_mask_).mean(), whiskers.mean(), bool(doubts)


for name, errors in (("normal", rng.standard_normal), ("exponential", rng.standard_exponential)):
    for n in (50, 200, 1000):
        samples = [flagged(n, errors) for _ in range(5)]
        ours, whiskers, doubts = np.transpose(samples)
        print(
            f"{name:>11}, {n:>4} rows: flagged {ours.mean():4.1%} (at worst {ours.max():4.1%}), "
            f"whiskers {whiskers.mean():4.1%}; {doubts.sum():.0f} of 5 warn"
        )

# %%
# The caveat
# ----------
# With 50 rows a tail and a group of errors can look the same, and now and then a large part of a
# clean sample is called wrong. A warning says so where it can be seen. Look at the scores before
# you throw anything away: errors stand apart, a tail is a slope without a gap. The left picture
# is such a sample. If you know that nothing is wrong, say ``contamination=0``.

X = rng.standard_normal((200, 2))
tail = X @ [1.0, -1.0] + rng.standard_exponential(200)
errors = X @ [1.0, -1.0] + 0.5 * rng.standard_normal(200)
errors[:20] += 8
figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, y, title in zip(panels, (tail, errors), ("a tail", "a tenth of the rows is wrong"), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TrimmedLinearRegression(random_state=0).fit(X, y)
    plot_scores(model, ax=ax)
    ax.set_title(title)
