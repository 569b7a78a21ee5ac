"""
How much to trim
================

One model for every contamination from 0 to 45 %: what is left to explain, how the coefficients
move, and who leaves when.
"""

import numpy as np

from trimlearn import TrimmedLinearRegression, trim_path
from trimlearn.plots import plot_trim_path

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 3))
y = X @ [1, 2, 3] + 0.3 * rng.standard_normal(200)
X[:40, 0], y[:40] = X[:40, 0] + 4, y[:40] + 20  # a fifth of the rows is wrong

path = trim_path(TrimmedLinearRegression(random_state=0), X, y)
print(f'"auto" says {path.auto:.3f}; the nearest point of the path is {path.elbow}')
print(f"at that point {np.sum(path.leaves_at[:40] <= path.elbow)} of the 40 wrong rows have left")

# %%
# Left of the elbow the coefficients are those of a compromise; right of it they stand still: more
# trimming changes nothing, and costs a little precision. That plateau is what to look for in data
# of your own.

_ = plot_trim_path(path)
