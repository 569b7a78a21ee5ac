"""
A network on a table
====================

A dense network on the rows of a table, of which a fifth have a wrong label. On a table a forest and
the nearest neighbours are asked as well. Where nothing is wrong, the fit is the untrimmed one.

As it is, this takes half a minute. ``python plot_15_network_on_a_table.py full`` takes forest cover
types (581,012 rows; scikit-learn fetches them) and a GPU where there is one.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import fetch_covtype, load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

from trimlearn.torch import trim

full = sys.argv[1:] == ["full"]
device = "cuda" if full and torch.cuda.is_available() else "cpu"
X, y = fetch_covtype(return_X_y=True) if full else load_breast_cancer(return_X_y=True)
y = y.astype(np.int64) - y.min()
K = int(y.max()) + 1
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
scaler = StandardScaler().fit(X)
x, x_test = (torch.tensor(scaler.transform(a), dtype=torch.float32) for a in (X, X_test))

rng = np.random.default_rng(0)
is_wrong = rng.random(len(y)) < 0.2
labels = np.where(is_wrong, (y + rng.integers(1, K, len(y))) % K, y)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, K)).to(device)


def accuracy(module):
    with torch.no_grad():
        return float(np.mean(module.eval()(x_test.to(device)).argmax(1).cpu().numpy() == y_test))


losses = nn.CrossEntropyLoss(reduction="none")
epochs = 10 if full else 60
for name, given in (("right labels", y), ("a fifth wrong", labels)):
    plain = trim(network(), losses, (x, torch.tensor(given)), 0.0, epochs=epochs, progress=False)
    result = trim(network(), losses, (x, torch.tensor(given)), epochs=epochs, progress=False)
    print(f"{name}: {accuracy(plain.module):.1%} untrimmed, {accuracy(result.module):.1%} trimmed; {result}")

# %%
ax = result.plot_scores()
ax.set_title(f"{(~result.inlier_mask_)[is_wrong].mean():.0%} of the wrong labels are found")
plt.show()
