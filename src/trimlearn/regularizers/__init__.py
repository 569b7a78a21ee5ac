"""r2(x), what is known about the model: penalties and sets, each with its value and its exact prox."""

from trimlearn.regularizers.around import ExceptIntercept, Scaled
from trimlearn.regularizers.base import Indicator, Regularizer, Separable
from trimlearn.regularizers.check import check_regularizer
from trimlearn.regularizers.folded import MCP, SCAD
from trimlearn.regularizers.separable import L1, ElasticNet, Ridge, Zero
from trimlearn.regularizers.sets import Box, NonNegative, Rank, Simplex, Sphere, Stiefel
from trimlearn.regularizers.sparsity import L0, GroupL2

__all__ = [
    "L0",
    "L1",
    "MCP",
    "SCAD",
    "Box",
    "ElasticNet",
    "ExceptIntercept",
    "GroupL2",
    "Indicator",
    "NonNegative",
    "Rank",
    "Regularizer",
    "Ridge",
    "Scaled",
    "Separable",
    "Simplex",
    "Sphere",
    "Stiefel",
    "Zero",
    "check_regularizer",
]
