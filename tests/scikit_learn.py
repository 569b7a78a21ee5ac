"""scikit-learn's checks of an estimator, without those that another instance of its class passes by the same lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

__all__ = ["checks_of_fits"]

# What is handed in, and how it is refused: lines that come before any parameter of an estimator is looked at.
INPUTS = frozenset(
    {
        "check_classifier_data_not_an_array",
        "check_complex_data",
        "check_dtype_object",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimators_empty_data_messages",
        "check_estimators_nan_inf",
        "check_f_contiguous_array_estimator",
        "check_fit1d",
        "check_fit_score_takes_y",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_regressor_data_not_an_array",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_sample_weights_list",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
        "check_supervised_y_2d",
        "check_supervised_y_no_nan",
        "check_transformer_data_not_an_array",
    }
)


def _mapped(check: Any) -> bool:
    """Whether it is one of the checks with memory maps in place of arrays."""
    return bool(check.keywords.get("readonly_memmap"))


def checks_of_fits(estimators: Sequence[Any]) -> pytest.MarkDecorator:
    """As `parametrize_with_checks`, for estimators that read their data as another one does, which passes all checks:
    those that depend on how the data are fitted."""
    mark = parametrize_with_checks(list(estimators))
    names, pairs = mark.args
    kept = [
        (estimator, check) for estimator, check in pairs if check.func.__name__ not in INPUTS and not _mapped(check)
    ]
    return pytest.mark.parametrize(names, kept, **mark.kwargs)
