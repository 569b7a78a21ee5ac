"""trimlearn fits models to data of which an unknown part is wrong, and says which part."""

from typing import TYPE_CHECKING, Any

from trimlearn._version import __version__
from trimlearn.checkpoint import Checkpoint
from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.problem import Problem
from trimlearn.solution import Solution, Status
from trimlearn.solve import solve

if TYPE_CHECKING:
    from trimlearn.checks.check import check
    from trimlearn.checks.found import Check
    from trimlearn.checks.model_file import load
    from trimlearn.estimators import (
        CellwiseOutliers,
        FormulaModel,
        TrimmedCovariance,
        TrimmedEstimator,
        TrimmedGLM,
        TrimmedGraphicalLasso,
        TrimmedGraphicalLassoCV,
        TrimmedLinearRegression,
        TrimmedLinearRegressionCV,
        TrimmedLogisticRegression,
        TrimmedLogisticRegressionCV,
        TrimmedPCA,
        forward_search,
        from_formula,
        label_errors,
        outlier_table,
        trim_path,
    )
    from trimlearn.streams import open_dataset

__all__ = [
    "CellwiseOutliers",
    "Check",
    "Checkpoint",
    "FormulaModel",
    "OutlierTable",
    "Problem",
    "Solution",
    "Status",
    "TrimmedCovariance",
    "TrimmedEstimator",
    "TrimmedGLM",
    "TrimmedGraphicalLasso",
    "TrimmedGraphicalLassoCV",
    "TrimmedLinearRegression",
    "TrimmedLinearRegressionCV",
    "TrimmedLogisticRegression",
    "TrimmedLogisticRegressionCV",
    "TrimmedPCA",
    "__version__",
    "check",
    "forward_search",
    "from_formula",
    "label_errors",
    "load",
    "on_dask",
    "open_dataset",
    "outlier_table",
    "solve",
    "trim_path",
]


def __getattr__(name: str) -> Any:
    """Estimators and checks, imported when first asked for: scikit-learn brings pandas along, the core does without."""
    if name not in __all__:
        raise AttributeError(f"module 'trimlearn' has no attribute {name!r}")
    if name in ("Check", "check"):
        from trimlearn.checks import check

        return getattr(check, name)
    if name == "load":
        from trimlearn.checks.model_file import load

        return load
    if name == "open_dataset":
        from trimlearn.streams import open_dataset

        return open_dataset
    if name == "on_dask":
        from trimlearn.estimators.on_dask import on_dask

        return on_dask
    from trimlearn import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    return __all__
