"""The losses f₁..fₙ, constructed from data.

A `PredictionLoss` sees the model x only through K numbers per example, zᵢ = Aᵢx, which one layer, `Linear`, computes
for dense, sparse, memory-mapped and torch data alike. Any other model derives from `Loss`.
"""

from trimlearn.losses.base import Loss, PredictionLoss, select, weighted
from trimlearn.losses.blocks import BlockLoss, Sees
from trimlearn.losses.check import check_loss
from trimlearn.losses.glm import Gamma, Logistic, Poisson
from trimlearn.losses.homography import Homography
from trimlearn.losses.linear import Block, Linear
from trimlearn.losses.newton_system import DenseSystem, NewtonSystem, SchurSystem
from trimlearn.losses.regression import Huber, LeastSquares, SmoothL1, StudentT
from trimlearn.losses.softmax import Mislabelled, Softmax
from trimlearn.losses.subspace import Subspace

__all__ = [
    "Block",
    "BlockLoss",
    "DenseSystem",
    "Gamma",
    "Homography",
    "Huber",
    "LeastSquares",
    "Linear",
    "Logistic",
    "Loss",
    "Mislabelled",
    "NewtonSystem",
    "Poisson",
    "PredictionLoss",
    "SchurSystem",
    "Sees",
    "SmoothL1",
    "Softmax",
    "StudentT",
    "Subspace",
    "check_loss",
    "select",
    "weighted",
]
