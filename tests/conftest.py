"""What all tests share: where the data lies, how hypothesis searches, and fits that are quick."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from quick import quickly

# The same examples on every machine and every run: a failure seen once can be seen again.
settings.register_profile("trimlearn", deadline=None, derandomize=True, max_examples=50, database=None)
settings.load_profile("trimlearn")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cuda: needs a CUDA device, and is skipped without one")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") is None:
        return
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder with mnist/ and classic_robust/: ``$TRIMLEARN_DATA``, else ../shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    home = Path(os.environ.get("TRIMLEARN_DATA") or beside)
    if not (home / "mnist").is_dir():
        pytest.skip(f"no data: set TRIMLEARN_DATA to a folder that holds mnist/ (looked in {home})")
    return home


@pytest.fixture
def quick_fits() -> Iterator[None]:
    """Fits with few starts and few opinions: see `quickly`."""
    with quickly():
        yield


@pytest.fixture(scope="module")
def quick_checks() -> Iterator[None]:
    """Few folds and few trees for the models that judge a target: for clear cases, and for what is made of them."""
    target_learners = pytest.importorskip("trimlearn.checks.target_learners", reason="pandas is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_learners, "PLANS", ((10**12, 1, 4),))
        patch.setattr(target_learners, "TREES", 60)
        yield
