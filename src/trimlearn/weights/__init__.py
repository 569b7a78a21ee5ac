"""r1(w), what is known about the example weights w: the sets they may lie in."""

from trimlearn.weights.base import AllOnes, WeightSet
from trimlearn.weights.simplex import CappedSimplex, GroupCappedSimplex, snap_h

__all__ = ["AllOnes", "CappedSimplex", "GroupCappedSimplex", "WeightSet", "snap_h"]
