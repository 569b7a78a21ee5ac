"""trimlearn fits models to data of which an unknown part is wrong, and says which part."""

from importlib import import_module
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


ELSEWHERE = {
    "Check": "checks.found",
    "check": "checks.check",
    "load": "checks.model_file",
    "on_dask": "estimators.on_dask",
    "open_dataset": "streams",
}  # where those names are found that are not in ``estimators``


def __getattr__(name: str) -> Any:
    """Estimators and checks, imported when first asked for: scikit-learn brings pandas along, the core does without."""
    if name not in __all__:
        raise AttributeError(f"module 'trimlearn' has no attribute {name!r}")
    return getattr(import_module(f"trimlearn.{ELSEWHERE.get(name, 'estimators')}"), name)


def __dir__() -> list[str]:
    return __all__
