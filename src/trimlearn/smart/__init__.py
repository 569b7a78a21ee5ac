"""SMART and its relatives: Algorithm 1, its variants, its theory, and the rivals on the same problem."""

from trimlearn.smart.alternating import alternating
from trimlearn.smart.metrics import Metric
from trimlearn.smart.prox_gradient import prox_gradient
from trimlearn.smart.smart import SMART
from trimlearn.smart.variants import page, palm, prox_saga, prox_svrg, saga, sg, svrg, variable_projection

__all__ = [
    "SMART",
    "Metric",
    "alternating",
    "page",
    "palm",
    "prox_gradient",
    "prox_saga",
    "prox_svrg",
    "saga",
    "sg",
    "svrg",
    "variable_projection",
]
