"""What a probability of a wrong label is worth: opinions whose law is known, at several levels of wrong labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from trimlearn.checks.findings import RIGHT_ANYWAY
from trimlearn.checks.target_labels import judge_target_labels, level_weights
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.noise_level import NoiseLevel, noise_levels


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
    p = np.concatenate([judge_target_labels(opinions, labels).probability for opinions, labels, _ in parts])
    wrong = np.concatenate([part[2] for part in parts])
    likely = p > 0.6
    assert likely.sum() > 0.5 * wrong.sum()
    assert -less < float(p[likely].mean() - wrong[likely].mean()) < 0.1
    assert 0.6 * float(wrong.mean()) < float(p.mean()) < float(wrong.mean()) + 0.03


def test_nothing_is_certain() -> None:
    opinions, labels, _ = case(0.25, 0)
    assert float(judge_target_labels(opinions, labels).probability.max()) <= 1 - RIGHT_ANYWAY


def test_right_labels_are_not_accused() -> None:
    opinions, labels, _ = case(0.0, 0)
    found = judge_target_labels(opinions, labels)
    assert not found.flagged.any()
    assert found.contamination < 0.01


def test_of_classes_that_overlap_none_is_accused_beside_a_clear_one() -> None:
    opinions, labels, _ = case(0.0, 0, K=3)
    rng = np.random.default_rng(1)
    coin = labels > 0
    opinions = [np.where(coin[:, None] & (np.arange(3) > 0), rng.normal(-0.9, 0.7, z.shape), z) for z in opinions]
    labels = np.where(coin, rng.integers(1, 3, len(labels)), labels)
    found = judge_target_labels(opinions, labels)
    assert not found.flagged.any()
    assert found.probability.max() < 0.3
    assert any("classes that overlap would explain them" in caveat for caveat in found.caveats)


def level(epsilon: float, log_posterior: float, doubt: float = 0.1, entries: int = 0, K: int = 10) -> NoiseLevel:
    noise = LabelNoise(np.eye(K), np.ones(1), np.zeros(K), epsilon)
    return NoiseLevel(noise, log_posterior, doubt, entries=entries)


def test_a_pattern_costs_what_it_has_of_free_numbers() -> None:
    """Each of ten classes taken for its neighbour is ten numbers, not the ninety that there might be."""
    random = [level(0.0, -70.0), level(0.1, -65.0), level(0.2, -60.0)]
    neighbours, anything = (level_weights([*random, level(0.2, 0.0, entries=k)], 300) for k in (10, 80))
    assert neighbours[-1] > 0.9
    assert anything[-1] < 0.01


def test_clear_classes_are_more_likely_than_blurred_ones() -> None:
    weights = level_weights([level(0.0, 0.0, 0.3), level(0.1, 0.0, 0.2), level(0.2, 0.0, 0.05)], 300)
    blurred = level_weights([level(0.0, 0.0, 0.3), level(0.1, 0.0, 0.3), level(0.2, 0.0, 0.3)], 300)
    assert weights[2] > blurred[2] and weights[0] < blurred[0]


def test_the_entries_of_a_pattern_are_counted() -> None:
    truth = np.arange(300) % 5
    labels = np.where(np.random.default_rng(0).random(300) < 0.25, (truth + 1) % 5, truth)
    found = noise_levels([8.0 * np.eye(5)[truth]], labels)
    assert found[0].at_random and found[0].noise.epsilon == 0
    assert found[-1].entries == 5 and found[-1].rates <= 5
    assert found[-1].doubt < 0.05
