"""scikit-learn estimators."""

from trimlearn.estimators.cells import CellwiseOutliers
from trimlearn.estimators.covariance.covariance import TrimmedCovariance
from trimlearn.estimators.covariance.graphical_lasso import TrimmedGraphicalLasso
from trimlearn.estimators.covariance.graphical_lasso_cv import TrimmedGraphicalLassoCV
from trimlearn.estimators.formula import FormulaModel, from_formula
from trimlearn.estimators.forward_search import ForwardSearch, forward_search
from trimlearn.estimators.linear.glm import TrimmedGLM
from trimlearn.estimators.linear.linear import TrimmedLinearRegression
from trimlearn.estimators.linear.linear_cv import TrimmedLinearRegressionCV
from trimlearn.estimators.linear.logistic import TrimmedLogisticRegression
from trimlearn.estimators.linear.logistic_cv import TrimmedLogisticRegressionCV
from trimlearn.estimators.meta.wrapper import TrimmedEstimator
from trimlearn.estimators.path import TrimPath, trim_path
from trimlearn.estimators.pca import TrimmedPCA
from trimlearn.estimators.pipeline_table import outlier_table
from trimlearn.estimators.wrong_labels import LabelErrors, label_errors

__all__ = [
    "CellwiseOutliers",
    "FormulaModel",
    "ForwardSearch",
    "LabelErrors",
    "TrimPath",
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
    "forward_search",
    "from_formula",
    "label_errors",
    "outlier_table",
    "trim_path",
]
