"""
A robust autoencoder
====================

An autoencoder puts images together again from a few numbers. A tenth of the images here are no
digits but noise, and an autoencoder that is trained on them learns to draw noise as well. Trimmed, it
learns digits, and the noise is what it cannot put together. An example of one part is its own target.

As it is, this takes half a minute on scikit-learn's small digits. ``python
plot_16_robust_autoencoder.py full`` takes MNIST (from ``$TRIMLEARN_DATA``) and a GPU where there is one.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from trimlearn.datasets import load_digits_contaminated, load_mnist
from trimlearn.torch import trim

full = sys.argv[1:] == ["full"]
device = "cuda" if full and torch.cuda.is_available() else "cpu"
X = (load_mnist("train", dtype="float32")[0] if full else load_digits_contaminated(0.0).X[:1000]).astype(np.float32)
rng = np.random.default_rng(0)
is_noise = rng.random(len(X)) < 0.1
X[is_noise] = rng.permuted(X[is_noise], axis=1)  # the same pixels, in any order
side = round(X.shape[1] ** 0.5)


def autoencoder():
    torch.manual_seed(0)
    p = X.shape[1]
    return nn.Sequential(nn.Linear(p, 64), nn.ReLU(), nn.Linear(64, 12), nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, p))


def squares(output, image):
    return ((output - image) ** 2).mean(1)


options = {"progress": False, "epochs": 20 if full else 40, "optimizer": lambda p: torch.optim.Adam(p, 3e-3)}
plain = trim(autoencoder().to(device), squares, X, 0.0, **options)
result = trim(autoencoder().to(device), squares, X, **options)
print(result)
flagged = ~result.inlier_mask_
print(f"noise found: {flagged[is_noise].mean():.1%}; digits flagged: {flagged[~is_noise].mean():.1%}")
digits = torch.tensor(X[~is_noise]).to(device)
for name, module in (("untrimmed", plain.module), ("trimmed", result.module)):
    with torch.no_grad():
        print(f"{name}: mean squared error on the digits {float(squares(module(digits), digits).mean()):.4f}")

# %%
figure, axes = plt.subplots(2, 8, figsize=(9, 2.6), layout="constrained")
order = np.argsort(result.outlier_scores_)
for row, chosen in zip(axes, (order[-8:], order[:8]), strict=True):
    for ax, i in zip(row, chosen, strict=True):
        ax.imshow(X[i].reshape(side, side), cmap="gray_r")
        ax.set_axis_off()
axes[0, 0].set_title("the worst", loc="left", fontsize=9)
axes[1, 0].set_title("the best", loc="left", fontsize=9)
