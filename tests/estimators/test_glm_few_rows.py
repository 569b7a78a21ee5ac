"""TrimmedGLM on few rows: clean ones count, wrong ones are found, and what may be either is told."""

from __future__ import annotations

from collections.abc import Callable
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

from trimlearn import TrimmedGLM
from trimlearn.estimators.linear.examples import Examples
from trimlearn.estimators.linear.laws import RegressionLaw

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]
CLEAN: dict[str, tuple[str, Draw]] = {
    "gamma": ("gamma", lambda rng, z: rng.gamma(5.0, np.exp(z) / 5)),
    "proportions": ("binomial", lambda rng, z: rng.binomial(20, 1 / (1 + np.exp(-2 * z))) / 20),
    "counts": ("poisson", lambda rng, z: rng.poisson(np.exp(z + 2)).astype(float)),
    "huber": ("huber", lambda rng, z: z + rng.normal(size=len(z))),
}
SAMPLES = 5


def sample(draw: Draw, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, 2))
    return X, draw(rng, X @ [0.5, -0.3])


def fitted(loss: str, X: np.ndarray, y: np.ndarray) -> tuple[TrimmedGLM, list[str]]:
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        model = TrimmedGLM(loss, random_state=0).fit(X, y)
    return model, [str(warning.message) for warning in caught]


def test_clean_rows_are_hardly_ever_flagged_and_then_in_doubt() -> None:
    shares = []
    for loss, draw in CLEAN.values():
        for seed in range(SAMPLES):
            model, told = fitted(loss, *sample(draw, 24, seed))
            shares.append(1 - model.inlier_mask_.mean())
            assert shares[-1] <= 0.05 or any("in doubt" in message for message in told)
            assert np.all((model.outlier_scores_ > model.threshold_) == ~model.inlier_mask_)
    assert np.mean(shares) <= 0.03


@pytest.mark.parametrize("seed", range(6))
def test_rare_counts_keep_enough_events_for_their_coefficients(seed: int) -> None:
    """With few counts above 0, all but a few explained by rows left out, means run off to 0."""
    rng = np.random.default_rng(300 + seed)
    X = rng.normal(size=(40, 2))
    y = rng.poisson(np.exp(X @ [0.5, -0.3] - 2)).astype(float)
    model, _ = fitted("poisson", X, y)
    plain = TrimmedGLM("poisson", contamination=0, reweight=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1.0)


def test_counts_far_too_large_are_found_in_few_rows() -> None:
    loss, draw = CLEAN["counts"]
    for seed in range(4):
        X, y = sample(draw, 30, seed)
        y[:6] = 5 * y[:6] + 20
        model, told = fitted(loss, X, y)
        assert not model.inlier_mask_[:6].any() and model.inlier_mask_[6:].mean() > 0.9
        assert not any("chance" in message for message in told)
        assert model.contamination_ == pytest.approx(0.2, abs=0.06)


def test_what_chance_might_have_done_is_told() -> None:
    """Errors moved by about 4 σ: found, or not, but never flagged without a word where chance might do it."""
    told_of = 0
    for seed in range(8):
        X, y = sample(CLEAN["huber"][1], 20, seed)
        y[:2] += 4.0
        model, told = fitted("huber", X, y)
        doubt = [message for message in told if message.startswith("It is in doubt whether the rows flagged")]
        told_of += bool(doubt)
        assert not doubt or f", {np.count_nonzero(~model.inlier_mask_)} of 20," in doubt[0]
    assert told_of > 0


def test_a_contamination_given_is_taken_as_it_is() -> None:
    X, y = sample(CLEAN["huber"][1], 20, 0)
    model = TrimmedGLM("huber", contamination=0.2, random_state=0).fit(X, y)
    assert model.contamination_ == pytest.approx(0.2)


@pytest.mark.parametrize("n", [25, 50])
def test_shares_of_unequal_numbers_of_trials_are_no_more_rows_than_they_are(n: int) -> None:
    """Trials counted as rows: half of these were a few heavy ones, which fit exactly, and half of the others wrong."""
    shares = []
    for seed in range(4):
        rng = np.random.default_rng([n, seed, 7])
        X, trials = rng.normal(size=(n, 3)), rng.integers(5, 50, n)
        y = rng.binomial(trials, 1 / (1 + np.exp(-X @ [1.0, -0.6, 0.0]))) / trials
        shares.append(1 - TrimmedGLM("binomial", random_state=0).fit(X, y, trials).inlier_mask_.mean())
    assert np.mean(shares) < 0.1


def test_a_long_tail_of_counts_is_told_and_gross_errors_are_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    mean = np.exp(2.6 + X @ [0.5, -0.3])
    scattered = rng.negative_binomial(0.3, 0.3 / (0.3 + mean)).astype(float)
    wrong = rng.poisson(mean) + np.where(np.arange(400) % 10 == 0, 80.0, 0.0)
    model, told = fitted("poisson", X, scattered)
    assert not model.inlier_mask_.all()
    assert any("may scatter more than the family" in message for message in told)
    model, told = fitted("poisson", X, wrong)
    assert not told and not model.inlier_mask_[::10].any()


def test_labels_that_a_plane_parts_are_told_where_there_is_no_penalty() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (X[:, 0] > 0).astype(float)
    assert any("coefficients grow without end" in message for message in fitted("binomial", X, y)[1])
    noisy = np.where(rng.random(100) < 0.2, 1 - y, y)
    assert not any("without end" in message for message in fitted("binomial", X, noisy)[1])


def test_labels_of_one_class_are_named_as_such() -> None:
    with pytest.raises(ValueError, match="y holds one class only, 1"):
        TrimmedGLM("binomial").fit(np.arange(10.0)[:, None], np.ones(10))


def test_a_block_of_rows_may_hold_one_class_only() -> None:
    RegressionLaw("binomial").check(Examples(np.ones((5, 2)), np.zeros(5)))


def with_few_values(n: int, mean: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts beside one 0/1 column: n rows that are a few pairs (x, y), each many times."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, 1)).astype(float)
    return X, rng.poisson(mean * np.exp(0.3 * X[:, 0])).astype(float)


@pytest.mark.parametrize("mean", [0.5, 3.0])
def test_counts_beside_a_column_of_few_values_are_so_many_observations(mean: float) -> None:
    """Taken for weights of some twenty rows, they proved nothing: a tenth of them, far too large, were kept, or called
    doubtful."""
    X, y = with_few_values(400, mean, 102)
    y[:40] += 8 * round(mean + 1)
    model, told = fitted("poisson", X, y)
    assert not model.inlier_mask_[:40].any() and model.inlier_mask_[40:].all()
    assert not told


@pytest.mark.parametrize("seed", [100, 101, 103])
def test_a_group_whose_mean_would_run_off_to_zero_counts(seed: int) -> None:
    """All that is not 0 in one of the groups is less than half of the rows, and was left out."""
    model, told = fitted("poisson", *with_few_values(400, 0.5, seed))
    assert model.inlier_mask_.all() and abs(model.coef_[0]) < 2 and not told


@pytest.mark.parametrize("trials", [2, 20])
def test_shares_that_are_mostly_zero_are_no_exact_fit(trials: int) -> None:
    """Half of the rows are 0, and a fit to these alone left out all others."""
    for seed in range(2):
        rng = np.random.default_rng([trials, seed, 3])
        X = np.column_stack([rng.normal(size=200), rng.integers(0, 2, 200)])
        y = rng.binomial(trials, 1 / (1 + np.exp(3 - X @ [0.5, 0.3]))) / trials
        model, told = fitted("binomial", X, y)
        assert model.inlier_mask_.all() and np.abs(model.coef_).max() < 2 and not told


def test_more_zeros_than_counts_have_are_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = rng.poisson(np.exp(2 + X @ [0.5, -0.3])).astype(float)
    assert not fitted("poisson", X, y)[1]
    y[rng.random(200) < 0.3] = 0
    assert any("of the counts that the fit rests on are 0" in message for message in fitted("poisson", X, y)[1])


def test_zeros_are_not_told_of_means_that_a_penalty_makes_alike() -> None:
    rng = np.random.default_rng(72)
    X = rng.normal(size=(150, 2))
    y = rng.poisson(np.exp(0.3 + X @ [0.5, -0.5]))
    with catch_warnings():
        simplefilter("error")
        TrimmedGLM(loss="poisson", penalty="l2", alpha=10.0, random_state=0).fit(X, y)


@pytest.mark.parametrize("kind", CLEAN)
def test_one_row_that_weighs_more_than_all_others_proves_nothing_of_them(kind: str) -> None:
    loss, draw = CLEAN[kind]
    X, y = sample(draw, 100, 0)
    s = np.ones(100)
    s[0] = 1e6
    with pytest.warns(UserWarning, match="by their sample_weight are worth 1 equal ones, are too few"):
        model = TrimmedGLM(loss, random_state=0).fit(X, y, sample_weight=s)
    assert model.inlier_mask_.all() and model.contamination_ == 0
