"""What `trim` leaves as it was, what it refuses in a sentence, and what of its own flags it doubts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from torch import nn  # noqa: E402

from trimlearn.robust.verdict import Verdict  # noqa: E402
from trimlearn.torch import trim  # noqa: E402
from trimlearn.torch.doubts import doubt_of_flagged, is_region  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*not trained enough, not like wrong labels"),  # two epochs are few
    pytest.mark.filterwarnings("ignore:.*of the labels look wrong, more than half"),
]

CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")
QUICK: dict[str, Any] = {"epochs": 2, "progress": False}
RULE, TAIL = "a rule of their own", "a long tail"


def blobs(n: int = 90) -> tuple[Any, Any]:
    y = torch.arange(n) % 3
    noise = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    return 4 * nn.functional.one_hot(y, 3) + noise, y


def normed() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 3))


def modes(module: nn.Module) -> list[bool]:
    return [part.training for part in module.modules()]


@pytest.mark.parametrize("contamination", ["auto", 0.1, 0])
def test_every_part_gets_its_mode_back(contamination: Any) -> None:
    module = normed().eval()
    trim(module, CROSS_ENTROPY, blobs(), contamination, **QUICK)
    assert modes(module) == [False] * 5
    assert int(module[1].num_batches_tracked) > 0  # it was trained as one that trains
    with pytest.raises(ValueError, match="reduction='none'"):
        trim(module, nn.CrossEntropyLoss(), blobs(), contamination, **QUICK)
    assert modes(module) == [False] * 5


@pytest.mark.parametrize("gradient", ["plain", "variance-reduced"])
@pytest.mark.filterwarnings("ignore:gradient='variance-reduced' is void")
def test_a_frozen_part_stays_frozen(gradient: str) -> None:
    module = normed()
    module[1].eval()
    trim(module, CROSS_ENTROPY, blobs(), gradient=gradient, **QUICK)
    assert modes(module) == [True, True, False, True, True]
    assert int(module[1].num_batches_tracked) == 0


class Augmented(torch.utils.data.Dataset):
    def __init__(self) -> None:
        self.x, self.y = blobs()

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.x[i] + 0.1 * torch.randn(3), self.y[i]


@pytest.mark.filterwarnings("ignore:up to .* of the labels may be wrong")  # of so short a training
def test_random_numbers_of_the_user_go_on_and_those_of_a_fit_are_its_own() -> None:
    scores = []
    for start in (1, 2):
        torch.manual_seed(0)
        module = normed()
        torch.manual_seed(start)
        before = torch.get_rng_state()
        result = trim(module, CROSS_ENTROPY, Augmented(), **QUICK)
        result.outlier_score(Augmented())
        assert torch.equal(before, torch.get_rng_state())
        scores.append(result.outlier_scores_)
    np.testing.assert_array_equal(*scores)


def test_arrays_of_float64_become_what_the_module_is_made_of() -> None:
    x, y = blobs()
    arrays = x.double().numpy(), y.numpy()
    result = trim(normed().double(), CROSS_ENTROPY, arrays, **QUICK)
    assert result.outlier_score(arrays).shape == (90,)


def test_it_trains_where_gradients_are_off_and_says_where_it_cannot() -> None:
    module = normed()
    before = module[0].weight.detach().clone()
    with torch.no_grad():
        trim(module, CROSS_ENTROPY, blobs(), **QUICK)
    assert not torch.equal(before, module[0].weight)
    with torch.inference_mode(), pytest.raises(RuntimeError, match="call trim outside of it"):
        trim(normed(), CROSS_ENTROPY, blobs(), **QUICK)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"optimizer": torch.optim.LBFGS}, TypeError, "LBFGS evaluates the loss several times a step: use Adam"),
        ({"optimizer": lambda parameters: None}, TypeError, "make a torch Optimizer of the parameters, got a NoneType"),
        ({"dataset": {"x": torch.eye(3), "y": torch.arange(3)}}, TypeError, "not a dict: give "),
        ({"dataset": (torch.eye(3)[:1], torch.zeros(1).long())}, ValueError, "one example alone cannot be judged"),
        ({"dataset": (torch.ones(9, 3).byte(), torch.arange(9) % 3)}, ValueError, "convert the inputs by .float()"),
        ({"dataset": (torch.ones(9, 3), torch.arange(9) % 3 + 1)}, ValueError, "out of bounds; number the classes"),
    ],
    ids=["LBFGS", "no optimizer", "a dict", "one example", "bytes", "labels from 1"],
)
def test_what_it_refuses_in_a_sentence(given: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        trim(normed(), CROSS_ENTROPY, **{"dataset": blobs(), **QUICK, **given})


def test_labels_among_several_targets_are_not_judged_as_labels_and_it_says_so() -> None:
    x, y = blobs()
    several = [(x[i], (y[i], torch.tensor(1.0))) for i in range(90)]
    quiet = {**QUICK, "epochs": 30}
    with pytest.warns(UserWarning, match="of which one looks like labels"):
        trim(normed(), lambda output, t: CROSS_ENTROPY(output, t[0]) * t[1], several, 0.1, **quiet)


def test_a_network_that_has_not_learnt_is_told_in_words_for_networks() -> None:
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="use more epochs or a larger module"):
        trim(normed(), CROSS_ENTROPY, blobs(300), **QUICK)


# -- doubts -----------------------------------------------------------------------------------------------------------


def judged(scores: np.ndarray, cutoff: float = 3.0) -> Verdict:
    return Verdict(1.0, cutoff, scores <= cutoff, float(np.mean(scores > cutoff)))


def table(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and scores of which none is beyond 3."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 4)), np.minimum(np.abs(rng.standard_normal(n)), 2.9)


@pytest.mark.parametrize("edge", [1.3, 1.65])
def test_a_region_of_flagged_examples_is_told_however_few_they_are(edge: float) -> None:
    X, scores = table()
    scores[X[:, 0] > edge] = 40.0  # a tenth or a twentieth, far off: a step that a line was fitted to
    assert RULE in doubt_of_flagged(X, None, scores, judged(scores))
    assert RULE in doubt_of_flagged(X, scores, scores, judged(scores))


@pytest.mark.parametrize("share", [8, 20, 40])
def test_errors_anywhere_are_not_doubted(share: int) -> None:
    rng = np.random.default_rng(1)
    X, scores = table()
    scores[:share] = rng.uniform(3.1, 20, share)
    assert doubt_of_flagged(X, rng.standard_normal(400), scores, judged(scores)) == ""


def test_examples_with_wrong_inputs_lie_apart() -> None:
    X, scores = table()
    X[:40] = 30 + X[:40]
    scores[:40] = 20.0
    assert not is_region(X, scores > 3)


def test_a_long_tail_of_the_targets_is_told() -> None:
    """The targets' own distances from their median as scores: what a module that explains nothing leaves."""
    rng = np.random.default_rng(2)
    X, _ = table()
    y = np.exp(rng.standard_normal(400))
    scores = np.abs(y - np.median(y))
    assert TAIL in doubt_of_flagged(X, y, scores, judged(scores, np.quantile(scores, 0.85)))
    apart = np.where(scores > np.quantile(scores, 0.85), scores + 100, scores)  # a gap: they are something else
    assert doubt_of_flagged(X, y, apart, judged(apart, np.quantile(scores, 0.85))) == ""
    both = rng.standard_t(3, 400)  # either end
    assert doubt_of_flagged(X, both, np.abs(both), judged(np.abs(both), np.quantile(np.abs(both), 0.9))) == ""


def test_a_network_is_asked() -> None:
    """A line fitted to a step: a twentieth is flagged, and belongs."""
    X, noise = table()
    y = np.where(X[:, 0] > 1.65, 6.0, 0.0) + 0.2 * noise
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = trim(
            nn.Linear(4, 1),
            lambda output, t: (output[:, 0] - t) ** 2,
            (X, y),
            optimizer=lambda parameters: torch.optim.Adam(parameters, 0.03),
            epochs=20,
            progress=False,
        )
    assert 0.03 < np.mean(~result.inlier_mask_) < 0.1
    assert any(RULE in str(warning.message) for warning in seen)
