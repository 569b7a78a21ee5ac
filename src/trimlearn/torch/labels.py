"""Labels judged by networks that have not seen them, and what a network should learn in their place.

1. The examples are put into two halves, and a copy of the module is trained on each, on the labels as they are. Each
   predicts the other half, and the labels of the examples that it is surest of give a first noise matrix T
   (`trimlearn.robust.labels.noise_level.anchor_noise`).
2. Where T has noise, both copies are trained on with the likelihood P(label j | x) = Σₖ pₖ(x) T[k, j]: they learn p,
   the classes before labels went wrong, and have little to gain by learning wrong labels by heart.
3. `trimlearn.robust.labels.verdict` judges all labels by the networks of either step. The second one is believed where
   it explains labels that no model has seen significantly better, or where the first one finds nothing and it does so
   no worse.

All that the two copies share is T.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.noise_level import anchor_noise, estimate_noise
from trimlearn.robust.labels.proof import ONE_SIDED, significant
from trimlearn.robust.labels.verdict import LabelVerdict, label_verdict
from trimlearn.torch.data import Batch
from trimlearn.torch.epochs import Epochs, Objective
from trimlearn.torch.halves import Halves, steady
from trimlearn.torch.targets import Labels

NOISY = 0.01  # a share of wrong anchors below which there is nothing to correct: the verdict alone finds so few
MOST_ROWS = 20_000  # of a table that a forest judges as well, a limit on time: it takes a second
BELIEVED = float(np.log(1e-6))  # log-probabilities are taken no more seriously than this, as in robust.labels.flexible


def forward_corrected(epochs: Epochs, labels: Labels, T: np.ndarray) -> Objective:
    """−log Σₖ pₖ T[k, label]: the likelihood of labels that are mistaken as T says (Patrini et al. 2017)."""
    device = epochs.examples.device
    codes = torch.as_tensor(labels.codes, device=device)
    log_T = torch.as_tensor(np.log(np.maximum(T, 1e-12)).T.copy(), dtype=torch.float32, device=device)

    def objective(output: Tensor, batch: Batch) -> Tensor:
        losses = epochs.criterion.class_losses(output, labels.values, batch.y).float()
        return -torch.logsumexp(log_T[codes[batch.rows]] - losses, dim=1)

    return objective


def soft_labels(epochs: Epochs, labels: Labels, P: np.ndarray) -> Objective:
    """Σₖ Pₖ·(loss with label k): the expected loss where the class is known up to probabilities (n, K)."""
    weights = torch.as_tensor(P, dtype=torch.float32, device=epochs.examples.device)

    def objective(output: Tensor, batch: Batch) -> Tensor:
        losses = epochs.criterion.class_losses(output, labels.values, batch.y).float()
        return torch.sum(weights[batch.rows] * losses, dim=1)

    return objective


def judge_halves(halves: Halves, labels: Labels, given: Objective, level: float | None) -> LabelVerdict:
    """The verdict on all labels of the rows that are there; ``level``: the share of wrong ones, where it is known."""
    codes, s, epochs = labels.codes[halves.rows], np.ones(len(halves.rows)), halves.run.epochs
    models = halves.train("judge {} of 2", steady(epochs, given))
    plain = log_probabilities(halves.evaluate(models).classes)
    T = anchor_noise(plain, codes, s)
    noisy = float(np.mean(1 - T[codes, codes])) > NOISY
    corrected = plain
    if noisy:
        bounded = LabelNoise(T, np.ones(1), np.zeros(labels.K), 0.0).bounded
        objective = forward_corrected(epochs, labels, bounded)
        models = halves.train("judge {} of 2, noise allowed for", steady(epochs, objective), models)
        corrected = log_probabilities(halves.evaluate(models).classes)
    if level is not None:
        return LabelVerdict(estimate_noise([corrected], codes, largest=False), [corrected], codes, s)
    others = _flexible(halves, codes, s)
    verdict = label_verdict([plain, *others], codes, s)
    if not noisy:
        return verdict
    again = label_verdict([corrected, *others], codes, s)
    if again.clean:
        return replace(verdict, undecided=max(verdict.undecided, again.undecided)) if verdict.clean else verdict
    gain = again.log_likelihood - verdict.log_likelihood
    better = significant(gain, s, ONE_SIDED) or (verdict.clean and float(gain.sum()) > 0)
    return again if better else verdict


def _flexible(halves: Halves, codes: np.ndarray, s: np.ndarray) -> list[np.ndarray]:
    """What a forest and the nearest neighbours say, where examples are rows of a table that are not too many."""
    table = halves.run.epochs.examples.table()
    if table is None or len(codes) > MOST_ROWS or not np.all(np.isfinite(table[halves.rows])):
        return []
    from trimlearn.robust.labels.flexible import flexible_predictions

    return flexible_predictions(table[halves.rows], codes, s, halves.run.epochs.seed)


def log_probabilities(losses: np.ndarray | None) -> np.ndarray:
    """log p from the losses of all classes; what is no number is no opinion."""
    assert losses is not None
    z = np.where(np.isfinite(losses), -losses, BELIEVED)
    z = z - z.max(axis=1, keepdims=True)
    z = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    return np.asarray(np.maximum(z, BELIEVED))
