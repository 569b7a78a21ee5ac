"""
A network and wrong labels
==========================

A convolutional network, and images of digits of which 40 % are labelled as the next digit. A network
learns such mistakes by heart, and its own odds do not tell them from digits that are hard to read.
`trimlearn.torch.trim` asks networks that have not seen an image about its label, learns which digit
is mistaken for which, and fits what the labels should have been.

As it is, this takes half a minute on scikit-learn's small digits. ``python
plot_14_network_wrong_labels.py full`` takes MNIST (60,000 images; from ``$TRIMLEARN_DATA``) and a GPU
where there is one.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from trimlearn.datasets import load_digits_contaminated, load_mnist, shift_labels
from trimlearn.torch import trim

full = sys.argv[1:] == ["full"]
device = "cuda" if full and torch.cuda.is_available() else "cpu"
if full:
    (X, truth), (X_test, y_test) = load_mnist("train", dtype="float32"), load_mnist("test", dtype="float32")
else:
    digits = load_digits_contaminated(0.0)
    X, truth = digits.X[:1200].astype(np.float32), digits.y[:1200]
    X_test, y_test = digits.X[1200:].astype(np.float32), digits.y[1200:]
labels, is_wrong = shift_labels(truth, 0.4, modulo=10, seed=0)
side = round(X.shape[1] ** 0.5)
x, x_test = (torch.tensor(a).view(-1, 1, side, side) for a in (X, X_test))


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2 if full else 1)),
        *(nn.Flatten(), nn.Linear(32 * (side // (4 if full else 2)) ** 2, 64), nn.ReLU(), nn.Linear(64, 10)),
    ).to(device)


def accuracy(module):
    with torch.no_grad():
        guess = torch.cat([module.eval()(part.to(device)).argmax(1).cpu() for part in x_test.split(1000)])
    return float(np.mean(guess.numpy() == y_test))


losses = nn.CrossEntropyLoss(reduction="none")
options = {} if full else {"epochs": 16, "batch_size": 32, "optimizer": lambda p: torch.optim.Adam(p, 3e-3)}
plain = trim(network(), losses, (x, torch.tensor(labels)), 0.0, progress=False, **options)
result = trim(network(), losses, (x, torch.tensor(labels)), progress=False, **options)
print(result)
print(f"test accuracy: {accuracy(plain.module):.1%} untrimmed, {accuracy(result.module):.1%} trimmed")
flagged = ~result.inlier_mask_
print(f"wrong labels found: {flagged[is_wrong].mean():.1%}; right ones flagged: {flagged[~is_wrong].mean():.1%}")
print(result.table().head(5))

# %%
# Which digit is mistaken for which, and the images whose labels are most surely wrong.
figure = plt.figure(figsize=(9, 4), layout="constrained")
left, right = figure.subfigures(1, 2)
result.plot_noise_matrix(left.subplots())
for ax, i in zip(right.subplots(3, 4).flat, result.table()["row"][:12], strict=True):
    ax.imshow(X[i].reshape(side, side), cmap="gray_r")
    ax.set_title(f"{labels[i]} → {result.suggested_labels_[i]}", fontsize=9)
    ax.set_axis_off()
