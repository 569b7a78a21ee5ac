"""trimlearn fits models to data of which an unknown part is wrong, and says which part."""

from trimlearn._version import __version__
from trimlearn.checkpoint import Checkpoint
from trimlearn.problem import Problem
from trimlearn.solution import Solution, Status
from trimlearn.solve import solve

__all__ = ["Checkpoint", "Problem", "Solution", "Status", "__version__", "solve"]
