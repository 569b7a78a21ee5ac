"""What a probability of a wrong label is worth: opinions whose law is known, at several levels of wrong labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from trimlearn.checks.findings import RIGHT_ANYWAY
from trimlearn.checks.target_labels import judge_labels


def case(level: float, seed: int, n: int = 250, K: int = 2) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Two models that know the classes but for blur, and have learnt none of the errors."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, n)
    z = 4.0 * np.eye(K)[truth] + rng.gumbel(size=(n, K))
    opinions = [log_softmax(z + 0.3 * rng.normal(size=(n, K)), axis=1) for _ in range(2)]
    wrong = rng.random(n) < level
    labels = np.where(wrong, (truth + rng.integers(1, K, n)) % K, truth)
    return opinions, labels, wrong


@pytest.mark.parametrize(("level", "less"), [(0.05, 0.15), (0.2, 0.25)])
def test_a_probability_is_a_share(level: float, less: float) -> None:
    """No more is said than is so; less is, where many labels are wrong, as models have learnt none of them here."""
    parts = [case(level, seed) for seed in range(2)]
    p = np.concatenate([judge_labels(opinions, labels).probability for opinions, labels, _ in parts])
    wrong = np.concatenate([part[2] for part in parts])
    likely = p > 0.6
    assert likely.sum() > 0.5 * wrong.sum()
    assert -less < float(p[likely].mean() - wrong[likely].mean()) < 0.1
    assert 0.6 * float(wrong.mean()) < float(p.mean()) < float(wrong.mean()) + 0.03


def test_nothing_is_certain() -> None:
    opinions, labels, _ = case(0.25, 0)
    assert float(judge_labels(opinions, labels).probability.max()) <= 1 - RIGHT_ANYWAY


def test_right_labels_are_not_accused() -> None:
    opinions, labels, _ = case(0.0, 0)
    found = judge_labels(opinions, labels)
    assert not found.flagged.any()
    assert found.contamination < 0.01
