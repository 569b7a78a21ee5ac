"""scikit-learn's own checks on regressions, classifiers and what chooses penalties; others' are beside their tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from scikit_learn import checks_of_fits
from trimlearn import (
    TrimmedGLM,
    TrimmedGraphicalLassoCV,
    TrimmedLinearRegression,
    TrimmedLinearRegressionCV,
    TrimmedLogisticRegression,
    TrimmedLogisticRegressionCV,
)

CLASSES = [
    TrimmedLinearRegression(random_state=0),
    TrimmedGLM(random_state=0),
    TrimmedLogisticRegression(random_state=0),
]
# They read their data as those do, or as TrimmedGraphicalLasso does: by the same methods.
WAYS_TO_FIT = [
    TrimmedLinearRegression(contamination=0.2, penalty="l1", alpha=0.01, reweight=False, random_state=0),
    TrimmedLinearRegression(penalty="l1", alpha=0.1, random_state=0),
    TrimmedLinearRegressionCV(n_alphas=5, cv=3, random_state=0),
    TrimmedGLM("huber", random_state=0),
    TrimmedLogisticRegression(contamination=0.2, reweight=False, random_state=0),
    TrimmedLogisticRegressionCV(Cs=[0.1, 1.0], cv=3, random_state=0),
    TrimmedGraphicalLassoCV([0.1, 0.01], cv=3, random_state=0),
]

pytestmark = [
    pytest.mark.usefixtures("quick_fits"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning"),  # check_supervised_y_2d asks for it
    pytest.mark.filterwarnings("ignore:.*exactly on the fit"),  # some checks have a dozen rows and three values of y,
    pytest.mark.filterwarnings("ignore:.* rows are too few for"),  # or fewer rows than features,
    pytest.mark.filterwarnings("ignore:.* seem to follow a rule of their own"),  # or a y that counts 0, 1, 2, 0, 1, 2
    pytest.mark.filterwarnings("ignore:.*y holds only 3 different values"),  # 0, 1, 2, 0, 1, 2, … as a target
    pytest.mark.filterwarnings("ignore:features .* do not vary among the rows that agree"),  # or eight different rows
    pytest.mark.filterwarnings("ignore:the trimmed fit keeps no row"),  # others a class of two rows
    pytest.mark.filterwarnings("ignore:up to .* of the labels may be wrong"),  # or labels that X says nothing about
    pytest.mark.filterwarnings("ignore:.* look like a group of their own"),  # or three blobs
    pytest.mark.filterwarnings("ignore:the features explain the labels no better than chance"),
    pytest.mark.filterwarnings("ignore:about .* of the labels look wrong, but the classes overlap"),
]


@parametrize_with_checks(CLASSES)
def test_scikit_learn_checks(estimator: BaseEstimator, check: Callable[[Any], None]) -> None:
    check(estimator)


@checks_of_fits(WAYS_TO_FIT)
def test_scikit_learn_checks_of_fits(estimator: BaseEstimator, check: Callable[[Any], None]) -> None:
    check(estimator)
