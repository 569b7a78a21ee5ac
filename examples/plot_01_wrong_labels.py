"""
Wrong labels among digits
=========================

A fifth of the labels of scikit-learn's digits is made wrong. Nobody tells the model how many,
or which.
"""

# %%
# Fit it as it comes
# ------------------
# `load_digits_contaminated` returns the images, the labels as given, and the truth, which the
# model does not see.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from trimlearn import TrimmedLogisticRegression
from trimlearn.datasets import load_digits_contaminated
from trimlearn.plots import plot_gallery, plot_noise_matrix

digits = load_digits_contaminated(fraction=0.2)
train, test = np.split(np.random.default_rng(0).permutation(len(digits.y)), [700])
model = TrimmedLogisticRegression(random_state=0).fit(digits.X[train], digits.y[train])

found, wrong = ~model.inlier_mask_, digits.is_wrong[train]
print(f"It says that {model.contamination_:.0%} of the labels are wrong.")
print(f"It finds {found[wrong].mean():.0%} of the wrong ones,")
print(f"and doubts {found[~wrong].mean():.1%} of the right ones.")

# %%
# What that is worth
# ------------------
# On digits it has not seen, with labels that are right, beside plain logistic regression on the
# same labels:

plain = LogisticRegression(max_iter=1000).fit(digits.X[train], digits.y[train])
truth = digits.y_true[test]
for name, reader in (("trimmed", model), ("plain", plain)):
    print(f"{name}: {reader.score(digits.X[test], truth):.1%} of new digits read")

# %%
# The most suspicious labels
# --------------------------
# Worst first, with the label given and the one suggested. `outlier_probability_` means what it
# says: of labels given 0.9, nine in ten are wrong.

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
plot_gallery(model, label=18, ax=ax)

# %%
# Which labels are mistaken for which
# -----------------------------------
# The labels were shifted by one, from k to k + 1: that is what the noise matrix shows.

figure, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
plot_noise_matrix(model, ax=ax)
