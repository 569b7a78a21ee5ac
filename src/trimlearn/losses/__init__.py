"""The losses f₁..fₙ, constructed from data.

A `PredictionLoss` sees the model x only through K numbers per example, zᵢ = Aᵢx, which one layer, `Linear`, computes
for dense, sparse, memory-mapped and torch data alike. Any other model derives from `Loss`.
"""

from trimlearn.losses.base import Loss, PredictionLoss
from trimlearn.losses.glm import Gamma, Logistic, Poisson
from trimlearn.losses.homography import Homography
from trimlearn.losses.linear import Block, Linear
from trimlearn.losses.regression import Huber, LeastSquares, SmoothL1, StudentT
from trimlearn.losses.softmax import Mislabelled, Softmax
from trimlearn.losses.subspace import Subspace

__all__ = [
    "Block",
    "Gamma",
    "Homography",
    "Huber",
    "LeastSquares",
    "Linear",
    "Logistic",
    "Loss",
    "Mislabelled",
    "Poisson",
    "PredictionLoss",
    "SmoothL1",
    "Softmax",
    "StudentT",
    "Subspace",
]
