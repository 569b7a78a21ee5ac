"""r1(w), what is known about the example weights w: the sets they may lie in."""

from trimlearn.weights.base import AllOnes, WeightSet
from trimlearn.weights.groups import GroupCappedSimplex
from trimlearn.weights.projection import snap_h
from trimlearn.weights.simplex import CappedSimplex

__all__ = ["AllOnes", "CappedSimplex", "GroupCappedSimplex", "WeightSet", "snap_h"]
